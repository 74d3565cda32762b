"""`python -m hyphae_gpu` is the command `hyphae-gpu`."""

from hyphae_gpu.cli import main

main()
