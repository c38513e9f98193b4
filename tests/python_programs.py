"""`python ARGUMENTS` without the start: each program is a copy of a process that has imported NumPy, and nothing of tilework.

    done = run_python("-m", "tilework", "--version", cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0 and done.stdout

A quarter of the time that short programs take is Python's start, and half is NumPy's. A copy ends as every program does, with what is registered
for its end, and finds its modules where ``python`` would. Options of Python itself (``-W``) and variables that only its start reads
(``PYTHONWARNINGS``) need `subprocess`, and so do programs that are about what is imported.
"""

import atexit
import builtins
import json
import os
import runpy
import select
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


class Programs:
    """Runs programs, each in a process of its own: a copy of one that has imported `modules`, and ends as any other."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self.server = subprocess.Popen(
            [sys.executable, __file__, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )  # fmt: skip

    def end(self) -> int:
        """The exit code of the process that was copied."""
        self.server.stdin.close()  # type: ignore[union-attr]
        with self.server.stdout:  # type: ignore[union-attr]
            return self.server.wait(60)

    def run(
        self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` with `capture_output` and `text`."""
        with tempfile.NamedTemporaryFile() as stdout, tempfile.NamedTemporaryFile() as stderr:
            place, environment = str(cwd or Path.cwd()), dict(os.environ if env is None else env)
            request = json.dumps([arguments, place, environment, stdout.name, stderr.name])
            self.server.stdin.write(f"{request}\n".encode())  # type: ignore[union-attr]
            process = int(self.server.stdout.readline())  # type: ignore[union-attr]
            in_time = select.select([self.server.stdout], [], [], timeout)[0]
            if not in_time:
                os.kill(process, signal.SIGKILL)
            code = int(self.server.stdout.readline())  # type: ignore[union-attr]
            printed, log = stdout.read().decode(), stderr.read().decode()
        assert in_time, f"{arguments} hung: {log[-2000:]}"
        return subprocess.CompletedProcess(arguments, code, printed, log)


@cache
def programs() -> Programs:
    """Of this process of the tests; without its PYTHONPATH, since each program brings its own."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    made = Programs(["numpy", "numpy.random"], environment)
    atexit.register(made.end)
    return made


def run_python(*arguments: str, **settings: Any) -> "subprocess.CompletedProcess[str]":
    """See the top of this file."""
    return programs().run(*arguments, **settings)


def serve(modules: Sequence[str]) -> Sequence[str]:
    """What the next program is called with; returns in its process only."""
    for module in modules:
        __import__(module)
    for line in sys.stdin:
        arguments, folder, environment, *outputs = json.loads(line)
        if (child := os.fork()) == 0:
            for number, path in enumerate((os.devnull, *outputs)):
                os.dup2(os.open(path, os.O_RDWR), number)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            return arguments
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)


def run_as_python(arguments: Sequence[str], path: Sequence[str]) -> None:
    """As ``python ARGUMENTS`` would, where `path` is what every Python of this installation searches."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main).update(__builtins__=builtins)
    searched = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    is_option = arguments[0] in ("-c", "-m")
    first = {"-c": "", "-m": str(Path.cwd())}.get(arguments[0], str(Path(arguments[0]).resolve().parent))
    sys.argv = [arguments[0], *arguments[2:]] if is_option else list(arguments)
    sys.orig_argv = [sys.executable, *arguments]
    sys.path = [*searched, *path]
    sys.modules.pop("sitecustomize", None)
    site.execsitecustomize()
    sys.path.insert(0, first)
    if arguments[0] == "-m":
        runpy._run_module_as_main(arguments[1])  # type: ignore[attr-defined]
    elif arguments[0] == "-c":
        exec(compile(arguments[1], "<string>", "exec"), vars(main))
    else:
        main.__file__ = str(Path(arguments[0]).absolute())
        exec(compile(Path(arguments[0]).read_bytes(), main.__file__, "exec"), vars(main))


if __name__ == "__main__":
    OURS = sys.modules["__main__"]  # it lasts
    PATH = sys.path[1:]
    PROGRAM = serve(sys.argv[1:])
    try:
        run_as_python(PROGRAM, PATH)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)
