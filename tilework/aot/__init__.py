"""Kernels compiled ahead of time, for programs without Python: C for GPUs, object files for CPUs (docs/aot.md)."""
