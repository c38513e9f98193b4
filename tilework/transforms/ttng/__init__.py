"""Passes for what only NVIDIA GPUs have."""
