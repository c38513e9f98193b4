"""Run programs written for Triton: `import triton` gives tilework, in this process and in those it starts.

    import tilework
    tilework.as_triton()
    import triton                      # this is tilework
    import triton.language as tl       # and this tilework.language

or, for a program that is not to be changed:

    python -m tilework.as_triton script.py --its arguments
    python -m tilework.as_triton -m pytest tests

Submodules are the same objects under both names: a knob set in `triton.knobs` is set in `tilework.knobs`, and classes
compare equal. Only `triton.__version__` is Triton's (TILEWORK_TRITON_VERSION selects it). An installed Triton is
ignored; one that has already been imported is an error, because objects of two compilers would be mixed.

Processes that the program starts (subprocess, multiprocessing, the workers of pytest and torch) find tilework's
`triton` before any other, because its folder is added to this process's search path and to PYTHONPATH. Processes with
another environment do not find it. To use tilework instead of Triton in every process, run `pip install
./packages/triton`. The implementation is in `tilework/triton/finder.py`.

Example:
    import subprocess, sys, tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write("import triton; print(triton.__version__, triton.jit.__module__)")
        script.flush()
        command = [sys.executable, "-m", "tilework.as_triton", script.name]
        shown = subprocess.check_output(command, text=True)
    assert shown.startswith(tilework.knobs.language.triton_version) and "tilework" in shown
"""

import builtins
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from tilework.triton.finder import as_triton, is_active, replace_stand_in

__all__ = ["as_triton", "is_active", "main", "replace_stand_in"]

IMPORT = r"^\s*(import\s+(.*,\s*)?|from\s+)triton\b"


class CallableModule(ModuleType):
    """This module, which is also the function of the same name."""

    def __call__(self) -> ModuleType:
        return as_triton()


def main(arguments: Sequence[str]) -> None:
    """Run a script, or with ``-m`` a module, as `python` would."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print("usage: python -m tilework.as_triton [-m MODULE | SCRIPT] [ARGUMENT ...]", file=sys.stderr)
        raise SystemExit(0 if arguments and arguments[0] != "-m" else 2)
    as_triton()
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    script = Path(arguments[0])
    if script.is_file():
        run_script(script)
    elif script.is_dir():
        runpy.run_path(str(script), run_name="__main__")
    else:
        print(f"tilework.as_triton: there is no file {script}", file=sys.stderr)
        raise SystemExit(2)


def run_script(script: Path) -> None:
    """Run a file as the main module, which is kept after its last line (`atexit`, threads and pickles need it)."""
    module = ModuleType("__main__")
    vars(module).update(__file__=str(script.absolute()), __builtins__=builtins)
    sys.modules["__main__"] = module
    sys.path[0] = str(script.resolve().parent)  # -m had put the current folder there
    exec(compile(script.read_bytes(), str(script.absolute()), "exec"), vars(module))


def says_triton(script: str) -> bool:
    """Return True if a file imports triton, and does not call `as_triton` itself."""
    text = Path(script).read_text(encoding="utf-8", errors="replace")
    return re.search(IMPORT, text, re.MULTILINE) is not None and "as_triton" not in text


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__].__class__ = CallableModule
