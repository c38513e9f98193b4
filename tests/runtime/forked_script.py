"""A script run in a copy of this process: what it prints as a program, without importing everything again."""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import tilework
from tilework import knobs
from tilework.process.output import bytes_in


def run_forked(script: Path, environment: Mapping[str, str], says_triton: bool = False) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a script that ends by an error or at its end, run in its
    folder."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            code = 1
            try:
                for to, file in (("stdout", printed), ("stderr", log)):
                    stream = getattr(sys, f"__{to}__")
                    os.dup2(file.fileno(), stream.fileno())
                    setattr(sys, to, stream)
                os.chdir(script.parent)
                os.environ.update(environment)
                knobs.refresh_knobs()
                if says_triton:
                    tilework.as_triton()
                code = run_as_main(script)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status), bytes_in(printed).decode(), bytes_in(log).decode()


def run_as_main(script: Path) -> int:
    """As ``python script`` does."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = str(script)
    try:
        exec(compile(script.read_text(), str(script), "exec"), vars(main))
        return 0
    except Exception as error:
        trace = error.__traceback__.tb_next  # pyright: ignore[reportOptionalMemberAccess]
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
