"""Where things are in the table of a sanitized launch; `checks.py` describes it. Nothing of the compiler is imported.

>>> ENTRIES + WORDS * 2  # the word where the entry of parameter 2 begins
13
"""

ENTRIES, WORDS = 7, 3
