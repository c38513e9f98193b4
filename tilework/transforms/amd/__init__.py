"""Passes for what only AMD GPUs have."""
