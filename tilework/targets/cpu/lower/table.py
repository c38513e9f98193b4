"""Where things are in the table of a sanitized launch; `checks.py` describes it. Nothing of the compiler is imported.

>>> ENTRIES + WORDS * 2  # the word where the entry of parameter 2 begins
13
"""

TABLE = 24  # where the control block of an arena has the address of the table
ENTRIES, WORDS = 7, 3
