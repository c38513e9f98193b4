"""Why was this compiled again, why is it slow, why were these configurations pruned, why is it different: docs/explain.md.

| question | module | what it looks at |
|---|---|---|
| why compiled | `recompiles.py` | the records of `runtime/recording`: which part of the key differs from the nearest specialisation |
| why tuned | `tunings.py` | the tunings of autotuners: their keys, and what became of each configuration |
| why slow | `slow.py`, `host.py` | the remarks of passes, the cost model, ptxas, counters of the emulator |
| why different | `different.py`, `bisect_passes.py` | one launch on all devices, and after every pass |

`watcher.py` runs inside of programs that are explained, `kernels.py` is `kernel.explain()`.
"""
