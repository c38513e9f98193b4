"""Why was this compiled again, why is it slow, why were these configurations pruned, why is it different:
docs/explain.md.

| question | module | evidence |
|---|---|---|
| why compiled, why tuned | `compiled.py` | records of `runtime/recording`: parts of the key that differ |
| why slow | `slow.py` | remarks of passes, the cost model, ptxas, emulator counters, the grid against the cores |
| why different | `different.py` | one launch on all devices, and its modules after every pass |

`kernels.py` is `kernel.explain()`, and the listener inside programs that are explained.
"""
