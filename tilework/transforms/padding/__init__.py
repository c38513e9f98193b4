"""Tiles of any size on GPUs: padded to powers of two with invisible lanes."""
