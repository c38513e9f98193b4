"""TTGIR to LLVM text for AMD GPUs."""
