"""Records: of specialisations and programs, of compilations, loads and tunings, and the parts of cache keys."""
