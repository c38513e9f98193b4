"""Launches of kernels with sanitizer checks."""
