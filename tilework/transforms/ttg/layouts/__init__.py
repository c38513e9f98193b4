"""Layout propagation forwards and backwards, and its cost."""
