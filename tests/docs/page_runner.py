"""Runs the code of a page as its reader would: Python blocks from top to bottom in one namespace, commands in a folder
of its own.

Each page runs in a copy of this process, so that nothing is imported twice and nothing stays. What the text says about
a block is in a comment right above it, which the built page does not show:

    <!-- setup                       Python that the next blocks take for granted, up to the end of the comment
    <!-- not run: why -->            the block is only parsed
    <!-- raises ValueError -->       the block must fail so; of commands: the exit codes of the last ones, `raises 1 1`
    <!-- device emulator:sm_80 -->   TILEWORK_DEVICE for the block; cuda and hip are drivers of GPUs on emulated
                                     libraries
    <!-- printed above -->           a block of text: the block above it printed these lines (or parts of lines), and
                                     perhaps others between them

A Python block whose first line is ``# softmax.py`` becomes that file: commands below run it, or, where none names it,
it runs by itself. Blocks that import torch, and those after them, are left out where there is none.
"""

import ast
import contextlib
import faulthandler
import functools
import glob
import io
import json
import linecache
import os
import re
import runpy
import shlex
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from examples.add import add
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.emulated_hip import emulated_hip
from tests.runtime.emulator_fixture import emulator
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.oracles.evaluator import global_memory as global_memory
from tilework.process.output import bytes_in
from tilework.runtime.devices import checked_launch as checked_launch
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.emulated import emulated_libcuda as emulated_libcuda
from tilework.tools.cli import main

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("packages/*/*.md")])
PIECE = re.compile(
    (
        r"^<!-- setup\n(?P<setup>.*?)^-->$|^<!-- (?P<note>(?:not run:|raises|device|printed) .*?) "
        r"-->$|^```(?P<kind>\w+)\n(?P<code>.*?)^```$"
    ),
    re.DOTALL | re.MULTILINE,
)
DEVICES: dict[str, Callable[..., AbstractContextManager[object]]] = {
    "": nullcontext,
    "emulator": emulator,
    "cuda": emulated_cuda,
    "hip": emulated_hip,
}
LONGEST = 600  # seconds for a page
ELSEWHERE = ("pip", "make")  # `make check-install` runs the blocks with pip, and .ci/run the targets of make
# Without the kernels that tests/tools/test_doctor.py has it run.
SHORTER: dict[tuple[str, ...], list[str]] = {("tilework", "doctor"): ["--quick"]}


@dataclass(frozen=True)
class Block:
    """A piece of code and the line of the page that it begins in."""

    kind: str  # "python" or "sh"
    code: str
    line: int
    notes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def needs_torch(self) -> bool:
        return bool(re.search(r"^\s*(import|from) torch\b", self.code, re.MULTILINE))


def blocks_of(text: str) -> list[Block]:
    """Every block of a page that can be run, and text that is compared; other text and kinds (mlir) are not."""
    found: list[Block] = []
    notes: dict[str, str] = {}
    for piece in PIECE.finditer(text):
        line = text[: piece.start()].count("\n") + 2
        if piece["note"]:
            name, _, rest = piece["note"].replace("not run:", "skipped").partition(" ")
            notes[name] = rest
        elif piece["setup"] is not None:
            found.append(Block("python", piece["setup"], line))
        else:
            if piece["kind"] in ("python", "sh") or "printed" in notes:
                found.append(Block(piece["kind"], piece["code"], line, notes))
            notes = {}
    return found


@functools.cache
def load_the_compiler() -> None:
    """Everything that commands load, once for all of their processes."""
    source = ASTSource(add, {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, {"BLOCK": 64})
    lower(source, GPUTarget("cpu", "host", 1), ["obj"], sanitize=True)
    lower(source, GPUTarget("cuda", 90, 32), ["ptx"])


def run_page(page: Path, cache: Path) -> tuple[int, list[str]]:
    """(how many blocks ran, what went wrong) for a page, in a copy of this process and a folder of its own."""
    load_the_compiler()
    blocks = blocks_of(page.read_text())
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile("w+") as report:

        def work() -> int:
            folder = Path(name)
            for shared in ("examples", "docs"):
                (folder / shared).symlink_to(ROOT / shared)
            os.chdir(folder)
            os.environ.update({"TRITON_CACHE_DIR": str(cache), "BROWSER": "true", "PYTHONPATH": str(ROOT)})
            sys.path[:0] = [str(folder), str(ROOT)]
            json.dump(run_blocks(page, blocks, folder), report)
            report.flush()
            return 0

        code = in_a_copy(work)
        return json.loads(bytes_in(report)) if code == 0 else (0, [f"{page.name}: the process ended with {code}"])


def in_a_copy(work: Callable[[], int]) -> int:
    """The exit code of a copy of this process that does some work and ends, at the latest by SIGALRM."""
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        code = 120
        signal.alarm(LONGEST)
        try:
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
            code = 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_blocks(page: Path, blocks: list[Block], folder: Path) -> tuple[int, list[str]]:
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong: list[str] = []
    ran, output = 0, io.StringIO()
    for index, block in enumerate(blocks):
        if block.needs_torch and find_spec("torch") is None:
            break
        if "skipped" in block.notes:
            ast.parse(block.code) if block.kind == "python" else None
            continue
        if block.kind == "text":
            if (line := first_missing(block.code, output.getvalue().replace(f"{folder}/", ""))) is not None:
                wrong.append(f"{page.name}:{block.line}: nothing printed {line!r}, but\n{output.getvalue()[-1800:]}")
            continue
        ran, output = ran + 1, io.StringIO()
        device, _, arch = block.notes.get("device", "").partition(":")
        with DEVICES[device](*([arch] if arch else [])):
            if block.kind == "python":
                commands = "".join(later.code for later in blocks[index:] if later.kind == "sh")
                wrong += run_python(page, block, names, folder, commands, output)
            else:
                wrong += run_commands(page, block, output)
    return ran, wrong


def first_missing(shown: str, printed: str) -> str | None:
    """The first line of a page that was not printed after those above it."""
    said = iter(printed.splitlines())
    lines = [line.strip() for line in shown.splitlines() if line.strip() not in ("", "...")]
    return next((line for line in lines if not any(line in one for one in said)), None)


def run_python(
    page: Path, block: Block, names: dict[str, Any], folder: Path, commands: str, output: io.StringIO
) -> Iterator[str]:
    """Execute a block, unless commands below do; its kernels find their source, and a traceback shows lines of the
    page."""
    expected = block.notes.get("raises")
    file = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    text = "\n" * (block.line - 1) + block.code
    if named := re.match(r"# (\w+\.py)\n", block.code):
        file, text = str(folder / named[1]), block.code
        Path(file).write_text(text)
        if named[1] in commands:
            return
    else:
        file = f"{file}:{block.line}"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(text, file, "exec"), names)
    except Exception as error:
        output.write(f"{type(error).__name__}: {error}\n")
        if expected not in [kind.__name__ for kind in type(error).__mro__]:
            yield f"{page.name}:{block.line}: {traceback.format_exc()[-1800:]}"
    else:
        if expected is not None:
            yield f"{page.name}:{block.line}: nothing raised {expected}"


def run_commands(page: Path, block: Block, output: io.StringIO) -> Iterator[str]:
    """Run the commands of a block, each in a copy of this process; the last ones may be ones that fail."""
    lines = block.code.replace("\\\n", " ").splitlines()
    commands = [words for line in lines if (words := shlex.split(line.removeprefix("$ "), comments=True))]
    codes = [int(code) for code in block.notes.get("raises", "").split()]
    for words, expected in zip(commands, [0] * (len(commands) - len(codes)) + codes, strict=True):
        with tempfile.TemporaryFile() as printed:
            code = run_command(words, printed.fileno())
            said = bytes_in(printed).decode()
        output.write(said)
        if code != expected:
            yield f"{page.name}:{block.line}: `{shlex.join(words)}` ended with {code}\n{said[-1800:]}"


def shown_warning(message: Any, category: Any, file: str, line: int, *_: Any) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, file, line))


def targets_of_ci() -> list[str]:
    """The targets of make that CI runs."""
    return re.findall(r"^make (.*)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)[-1].split()


def run_command(words: list[str], output: int) -> int:
    """The exit code of ``A=1 tilework ...``, ``python file.py ...`` or ``python -m module ...``, which prints into a
    file."""
    variables: dict[str, str] = {}
    while words and (found := re.fullmatch(r"([A-Z]\w*)=(.*)", words[0], re.DOTALL)):
        variables[found[1]] = found[2]
        words = words[1:]
    if words[0] in ELSEWHERE:
        return 0 if words[0] == "pip" or words[1] in targets_of_ci() else 2
    words = [name for word in words for name in (sorted(glob.glob(word)) or [word])]

    def work() -> int:
        os.environ.update(variables)
        knobs.refresh_knobs()
        if "TILEWORK_DEVICE" in variables:
            driver._active = driver._default = None
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout = sys.stderr = os.fdopen(1, "w", 1, closefd=False)
        warnings.showwarning = shown_warning  # pytest keeps them to itself
        faulthandler.enable(sys.stderr)  # pytest's would print the stack of a crash that a page shows
        if words[0] == "tilework":
            sys.argv = [*words, *SHORTER.get(tuple(words), ())]
            return main(sys.argv[1:])
        assert words[0] == "python", f"commands of {words[0]} are not run: say so above the block"
        is_module = words[1] == "-m"
        sys.argv = words[1 + is_module :]
        run = runpy.run_module if is_module else runpy.run_path
        # a spawned process looks for a relative one where `multiprocessing` was imported
        run(sys.argv[0] if is_module else os.path.abspath(sys.argv[0]), run_name="__main__")
        return 0

    return in_a_copy(work)
