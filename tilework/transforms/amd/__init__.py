"""Passes for features of AMD GPUs."""
