"""Passes over tiles distributed over threads: TTIR to TTGIR, and TTGIR to TTGIR."""
