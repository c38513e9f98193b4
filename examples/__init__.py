"""Kernels to read first. Each file has a kernel, the NumPy program it replaces, and one `Case` that runs both."""
