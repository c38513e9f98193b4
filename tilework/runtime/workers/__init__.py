"""Compiling in other threads and processes."""
