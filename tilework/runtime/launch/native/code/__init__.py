"""The LLVM text of the native launcher."""
