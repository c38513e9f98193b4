"""Tile loops to LLVM text, for the host."""
