"""TTGIR to LLVM IR, one rule file per family of ops."""
