"""Passes that know nothing of tiles."""
