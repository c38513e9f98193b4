"""IR to IR: one pass per file, found by name in `registry`; pipelines are lists of names in `pipelines`."""
