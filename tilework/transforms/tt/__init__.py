"""Passes over TTIR."""
