"""Targets: each is a list of named stages. Start at `base`."""
