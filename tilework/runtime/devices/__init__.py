"""The devices that kernels run on: the host and GPUs."""
