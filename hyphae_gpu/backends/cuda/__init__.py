"""The CUDA backend: kernels from `kernels/`, tensors of torch, launched by CuPy."""
