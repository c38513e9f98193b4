"""Kernels compiled ahead of time, in three steps with one value, `Specialization`, between the first two.

| describe a specialisation | compile it for a target | write it |
|---|---|---|
| a launch (`Specialization.of`) | `specialization.compile_for(target)` | the disk cache, always |
| a recorded line (`recording/manifest.py`, `specialization_from`) | the same | a bundle (`precompile.py`) |
| a signature as text (`signature.py`, `specialization_of`) | the same | C files (`c_files.py`), files of stages |

`docs/aot.md` describes C files, `docs/serving.md` bundles.
"""
