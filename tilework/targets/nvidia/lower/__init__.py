"""TTGIR to LLVM text, for NVIDIA GPUs: what they can do, and the rules of ops that only they have."""
