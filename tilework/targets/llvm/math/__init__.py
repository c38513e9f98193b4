"""Elementary functions as branch-free formulas over the builder; `table.py` lists them all."""
