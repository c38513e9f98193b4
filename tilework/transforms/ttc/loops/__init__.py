"""Lowering of tiles to loop nests: which tiles are stored or recomputed, and the order of the nests."""
