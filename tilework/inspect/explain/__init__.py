"""Why was this compiled again, why is it slow, why were these configurations pruned, why is it different:
docs/explain.md.

| question | module | evidence |
|---|---|---|
| why compiled, why tuned | `compiled.py` | the records of `runtime/recording`: which part of the key differs from the nearest one |
| why slow | `slow.py` | remarks of passes, the cost model, ptxas, counters of the emulator, the grid against the cores |
| why different | `different.py` | one launch on all devices, and its modules after every pass |

`watcher.py` runs inside of programs that are explained, `kernels.py` is `kernel.explain()`.
"""
