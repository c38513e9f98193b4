"""Triton's tutorials, or any folder of scripts NN-*.py that say `import triton`: do they run here, and if not, why?

    python -m tests.device.check_tutorials FOLDER  all of them, on the GPU if there is one
    python -m tests.device.check_tutorials FOLDER 01 05-layer-norm --device cpu    two of them, on the CPU
    python -m tests.device.check_tutorials FOLDER --seconds 300 --logs out  a limit for each; what they print, as files

The folder is the user's own; nothing of it is in this repository. Each script runs in a process of its own, by
`python -m tilework.as_triton`, in a folder of its own. On the CPU only the name of the device is replaced: strings
"cuda" that are arguments of calls, defaults of parameters, or assigned to a name such as DEVICE. Every line that is
changed is printed. Needs torch, and whatever the scripts import (matplotlib draws nothing on a screen).
"""

import argparse
import ast
import importlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEVICE_NAME = re.compile(r"cuda(:\d+)?")


@dataclass(frozen=True)
class Run:
    """The outcome of a script; `code` is None after a timeout."""

    name: str
    code: int | None
    seconds: float
    output: str

    @property
    def reason(self) -> str:
        """The last line of what it printed, if it failed."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1].strip() if self.code != 0 and lines else ""


def device_names(tree: ast.AST) -> Iterator[ast.Constant]:
    """The strings that say where a tensor is; what is compared with "cuda" is a question, and stays."""
    for node in ast.walk(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.arguments):
            values = [*node.defaults, *node.kw_defaults]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(name, ast.Name) and name.id.lower() == "device" for name in names):
                values = [node.value]
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and DEVICE_NAME.fullmatch(value.value):
                yield value


def for_the_cpu(source: str) -> str:
    """The script with the other device's name, and nothing else changed.

    >>> for_the_cpu('x = torch.ones(3, device="cuda")')
    'x = torch.ones(3, device="cpu")'
    """
    lines = source.splitlines(keepends=True)
    for name in sorted(device_names(ast.parse(source)), key=lambda name: (name.lineno, name.col_offset), reverse=True):
        line = lines[name.lineno - 1].encode()
        assert name.end_col_offset is not None
        new = line[: name.col_offset] + b'"cpu"' + line[name.end_col_offset :]
        lines[name.lineno - 1] = new.decode()
    return "".join(lines)


def changed_lines(before: str, after: str) -> Iterator[str]:
    """The changed lines with their numbers."""
    for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines(), strict=True), start=1):
        if old != new:
            yield f"{number:5}: {old.strip()}\n{'':5}> {new.strip()}"


def run(name: str, source: str, device: str, seconds: float) -> Run:
    """The script in a new process; all that it started ends with it."""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    if device == "cpu":
        environment["TILEWORK_DEVICE"] = "native"
    with tempfile.TemporaryDirectory() as folder:
        script, printed = Path(folder, f"{name}.py"), Path(folder, "printed")
        script.write_text(source)
        start = time.perf_counter()
        with printed.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tilework.as_triton", str(script)],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return Run(name, code, time.perf_counter() - start, printed.read_text(errors="replace"))


def gpu_is_here() -> bool:
    return importlib.util.find_spec("torch") is not None and importlib.import_module("torch").cuda.is_available()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="how names of scripts begin; all unless given")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="the GPU if there is one")
    parser.add_argument("--seconds", type=float, default=1200.0, help="for each script")
    parser.add_argument("--logs", type=Path, help="a folder for what they print")
    options = parser.parse_args(arguments)
    device = options.device or ("cuda" if gpu_is_here() else "cpu")
    scripts = [
        script
        for script in sorted(options.folder.glob("[0-9][0-9]*-*.py"))
        if not options.names or script.stem.startswith(tuple(options.names))
    ]
    if not scripts:
        parser.error(f"no scripts NN-*.py in {options.folder}" + (f" named {options.names}" if options.names else ""))
    runs = []
    for script in scripts:
        before = script.read_text()
        after = for_the_cpu(before) if device == "cpu" else before
        changes = list(changed_lines(before, after))
        print(
            f"{script.name}: {len(changes) or 'no'} line{'' if len(changes) == 1 else 's'} changed",
            *changes,
            sep="\n",
            flush=True,
        )
        runs.append(run(script.stem, after, device, options.seconds))
        if options.logs:
            options.logs.mkdir(parents=True, exist_ok=True)
            (options.logs / f"{script.stem}.txt").write_text(runs[-1].output)
    print(f"\n{'on ' + device:40}{'rc':>6}{'seconds':>9}  last line of the error")
    for one in runs:
        print(f"{one.name:40}{'limit' if one.code is None else one.code:>6}{one.seconds:9.1f}  {one.reason}")
    return any(one.code != 0 for one in runs)


if __name__ == "__main__":
    sys.exit(main())
