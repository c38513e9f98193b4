"""Passes over tiles that are laid out on threads: TTIR to TTGIR, and TTGIR to TTGIR."""
