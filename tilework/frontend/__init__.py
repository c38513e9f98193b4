"""Python's AST to TTIR: visitors know Python, `semantic` knows types and builds ops. Start at `generator`."""
