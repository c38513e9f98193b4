"""Passes that make kernels check themselves."""
