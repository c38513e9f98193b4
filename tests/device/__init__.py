"""Programs for a machine with a GPU; each prints a table and ends with 1 if a row failed."""
