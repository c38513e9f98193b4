"""Caches of compiled kernels that machines share."""
