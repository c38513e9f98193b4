"""How tiles become loop nests: what is kept, what is computed again, and in which order."""
