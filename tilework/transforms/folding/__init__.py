"""What `canonicalize` knows, by subject, and the worklist that applies it."""
