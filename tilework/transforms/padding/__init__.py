"""Tiles of any size on GPUs: padded to powers of two, with lanes that nobody sees."""
