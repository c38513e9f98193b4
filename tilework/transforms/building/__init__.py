"""Runs of ops that several passes build."""
