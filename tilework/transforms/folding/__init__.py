"""The rules of `canonicalize`, by subject, and the worklist that applies them."""
