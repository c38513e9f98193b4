"""Kernels compiled ahead of time for Python programs, in one file that is verified before anything of it is used."""
