"""A small HTTP service whose kernels were compiled before it starts: docs/serving.md has the commands."""
