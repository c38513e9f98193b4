"""Records of compilations, loads and tunings, and the parts of cache keys."""
