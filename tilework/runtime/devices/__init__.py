"""What kernels run on: the host and GPUs."""
