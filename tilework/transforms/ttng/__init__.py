"""Passes for features of NVIDIA GPUs."""
