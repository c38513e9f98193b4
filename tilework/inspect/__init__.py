"""Facts about compilations and launches, and the views that show them.

| module | facts |
|---|---|
| `compilation.py` | one compilation: texts, times, passes, remarks, resources, occupancy and the cost model |
| `source_lines.py` | the source lines of every line of IR, LLVM, assembly and SASS |
| `replay.py` | a launch repeated on any device, with its memory restored afterwards; counters of the emulator by line |
| `check_each.py` | how results differ, and which pass changed them |
| `profiler/` | launches with their times, scopes and metrics; estimates; what the machine can reach |

| view | shown by |
|---|---|
| pages | `tilework explore`, `diff`, `kernel.explore()` (`explorer/`), `tilework profile --html` (`profiler/page.py`) |
| text | `tilework explain`, `kernel.explain()` (`explain/`), `tilework profile` (`profiler/`), `proton-viewer` |
| trace | `tilework profile --trace`, sessions with `data="trace"` (`profiler/sessions.py`) |
"""
