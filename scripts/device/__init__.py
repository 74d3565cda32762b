"""The check of the CUDA backend on a real device: `scripts/device_check`. Needs only what the numeric core needs."""
