"""Launches in machine code, for calls like an earlier one that the Python path has done."""
