"""Three ways to compute what a kernel should: each by itself, so that they check each other."""
