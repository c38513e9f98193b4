"""Number formats, rounding, correctly rounded arithmetic, microscaling formats, and libdevice, in NumPy.

The oracles share this and nothing else, so it is tested against mpmath. `formats` and `libdevice_table` need no
NumPy: the language and the compiler read them too.
"""
