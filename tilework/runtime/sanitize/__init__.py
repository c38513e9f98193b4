"""Launches of kernels that check themselves."""
