"""LLVM for every target: a text builder that folds and shares as it goes, elementary functions, and the last steps.

Start with `builder.py` (an example is in its docstring), then `math/` and `compile.py`.
"""
