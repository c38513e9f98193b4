"""Kernels compiled ahead of time for the CPU: objects that a C program links, called here without our runtime."""

import ctypes
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.aot.c_files import CompileArgs, compile_kernel, main
from tilework.aot.link import LinkerError, link_headers
from tilework.aot.signature import GridError, parse_expression, parse_grid
from tilework.targets.cpu import standalone
from tilework.tools import cli

ROOT = Path(__file__).parent.parent.parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or ""
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C compiler")

KERNELS = """
import tilework, tilework.language as tl

@tilework.jit
def scaled(x, out, n, scale, BLOCK: tl.constexpr, NAME: tl.constexpr = "exp"):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.device_assert(v >= 0, "x must not be negative", mask=i < n)
    v = tl.exp(v) if NAME == "exp" else tl.erf(v)
    tl.store(out + i, v * scale, mask=i < n)

@tilework.jit
def kinds(out, stream, small, half, wide, word, double, BLOCK: tl.constexpr):
    tl.store(out, small.to(tl.float64))
    tl.store(out + 1, half.to(tl.float64))
    tl.store(out + 2, wide.to(tl.float64))
    tl.store(out + 3, word.to(tl.float64))
    tl.store(out + 4, double)
    tl.store(out + 5, stream.to(tl.float64) + tl.num_programs(0) * 100 + tl.num_programs(1))

@tilework.jit
def in_turn(turn, order):
    pid = tl.program_id(0)
    while tl.atomic_add(turn, 0) != tl.num_programs(0) - 1 - pid:
        pass
    tl.store(order + pid, pid)
    tl.atomic_add(turn, 1)

@tilework.jit
def added(x, out):
    tl.atomic_add(out, tl.load(x + tl.program_id(0)), ordered=True)

@tilework.jit
def prints(x):
    tl.device_print("x", tl.load(x))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("aot_cpu")
    (path / "kernels.py").write_text(KERNELS)
    return path


def compiled(folder: Path, name: str, signature: str, grid: str = "1, 1, 1", **more: Any) -> tuple[str, list[Path]]:
    args = {"target": "cpu", "out_path": folder / more.get("out_name", name), **more}
    return compile_kernel(CompileArgs(str(folder / "kernels.py"), name, signature, grid, **args))


def library(folder: Path, name: str, files: list[Path], text: str = "") -> Any:
    (folder / f"{name}_more.c").write_text(text)
    command = [COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", f"-I{folder}", "-o", str(folder / f"{name}.so")]
    sources = [str(path) for path in [*files, folder / f"{name}_more.c"]]
    subprocess.run([*command, *sources, "-lm", "-lpthread"], check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


THREADS = """
#define TT_PTHREADS
#include "both.h"
TTresult in_threads(int threads, TTptr x, TTptr out, int n, float scale, int algo) {
  TTthreads some = {threads, 0, tt_pthreads_run};
  return scaled(&some, x, out, n, scale, algo);
}
"""


@needs_compiler
def test_the_linked_function_runs_what_fits(folder: Path) -> None:
    """Two functions that differ in a constant, each with a variant for aligned arrays; threads or none; an assert that
    fails."""
    command = [
        "compile",
        "--aot",
        f"{folder / 'kernels.py'}:scaled",
        "-t",
        "cpu",
        "--debug",
        "-o",
        str(folder / "both"),
    ]
    for entry in ("*fp32:16, *fp32:16", "*fp32, *fp32"):
        command += ["-s", f"{entry}, i32, fp32, 256", "-s", f'{entry}, i32, fp32, 256, "erf"']
    assert cli.main([*command, "-g", "(n + BLOCK - 1) / BLOCK, 1, 1"]) == 0
    lib = library(folder, "both", [folder / "both.c", *folder.glob("both.*.o")], THREADS)
    lib.scaled_error_string.restype = ctypes.c_char_p
    lib.scaled.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_float, ctypes.c_int]
    lib.in_threads.argtypes = [ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, ctypes.c_float, ctypes.c_int]
    assert lib.scaled_get_num_algos() == 2
    x = np.linspace(0, 3, 10_001, dtype=np.float32)
    for algo, function in enumerate((np.exp, np.vectorize(math.erf))):
        for threads in (0, 1, 3):
            for shift in (0, 1):
                out = np.zeros_like(x)
                call = [x[shift:].ctypes.data, out[shift:].ctypes.data, 10_001 - shift, 0.5, algo]
                assert (lib.in_threads(threads, *call) if threads else lib.scaled(None, *call)) == 0
                np.testing.assert_allclose(out[shift:], function(x[shift:]) * 0.5, rtol=1e-5, atol=1e-6)
    x[5000] = -1
    code = lib.scaled(None, x.ctypes.data, out.ctypes.data, 10_001, 0.5, 1)
    assert code > 0
    assert lib.scaled_error_string(code).endswith(
        b"kernels.py:8:4: device-side assert triggered: x must not be negative"
    )
    assert lib.scaled(None, x.ctypes.data, out.ctypes.data, 0, 0.5, 0) == 0, "an empty grid"
    assert lib.scaled(None, x.ctypes.data, out.ctypes.data, -1000, 0.5, 0) == -4
    assert lib.scaled(None, x.ctypes.data, out.ctypes.data, 1, 0.5, 2) == -4, "no such algorithm"


@needs_compiler
def test_arguments_of_every_size_and_names_that_c_has_taken(folder: Path) -> None:
    name, (header, object) = compiled(
        folder, "kinds", "*fp64, i32, i8, fp16, i64, u32, fp64, 16", "stream * 2, wide, 1"
    )
    assert (
        f"TTresult {name}(TTstream stream, TTptr out, int32_t stream_, int8_t small, uint16_t half,"
        in header.read_text()
    )
    function = library(folder, "kinds", [object])[name]
    function.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_int32, ctypes.c_int8, ctypes.c_uint16, ctypes.c_int64]
    function.argtypes += [ctypes.c_uint32, ctypes.c_double]
    out = np.zeros(6)
    assert function(None, out.ctypes.data, 2, -7, 0x3E00, 3, 4_000_000_000, 0.1) == 0
    assert list(out) == [-7, 1.5, 3, 4e9, 0.1, 2 + 400 + 3]


@needs_compiler
def test_programs_that_wait_for_each_other(folder: Path) -> None:
    name, (_, object) = compiled(folder, "in_turn", "*i32, *i32", "6, 1, 1")
    text = f'#define TT_PTHREADS\n#include "{_.name}"\nTTthreads six = {{6, 0, tt_pthreads_run}};\n'
    lib = library(folder, "in_turn", [object], text)
    turn, order = np.zeros(1, np.int32), np.full(6, -1, np.int32)
    six = ctypes.byref(ctypes.c_byte.in_dll(lib, "six"))
    assert lib[name](six, ctypes.c_void_p(turn.ctypes.data), ctypes.c_void_p(order.ctypes.data)) == 0
    assert list(order) == [0, 1, 2, 3, 4, 5] and turn[0] == 6


@needs_compiler
def test_programs_that_wait_in_vain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread for programs of which the last has to be first: an error, after a time that is short here."""
    monkeypatch.setattr(standalone, "PATIENCE", -1)
    name, (_, object) = compiled(folder, "in_turn", "*i32, *i32", "6, 1, 1", out_name="in_vain")
    turn, order = np.zeros(1, np.int32), np.full(6, -1, np.int32)
    lib = library(folder, "in_vain", [object])
    assert lib[name](None, ctypes.c_void_p(turn.ctypes.data), ctypes.c_void_p(order.ctypes.data)) == -3
    assert list(order) == [-1] * 6


@needs_compiler
def test_programs_that_take_turns(folder: Path) -> None:
    name, (_, object) = compiled(folder, "added", "*fp32, *fp32", "64, 1, 1")
    x, out, wanted = (10.0 ** np.linspace(-3, 6, 64)).astype(np.float32), np.zeros(1, np.float32), np.float32(0)
    lib = library(folder, "added", [object])
    assert lib[name](None, ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data)) == 0
    for value in x:
        wanted += value
    assert out[0] == wanted


def test_what_cannot_be_compiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, entries, grid, words in [
        ("prints", "*fp32", "1, 1, 1", "prints (tl.device_print)"),
        (
            "scaled",
            "*fp32, *fp32, i32, fp32, 256",
            "scale, 1, 1",
            "scale is no integer argument of the kernel; it has n",
        ),
        ("scaled", "*fp32, *fp32, i32, fp32, 256", "ceil(n), 1, 1", "'(' is not expected here"),
        ("scaled", "tensordesc<fp32[16, 16]>, *fp32, i32, fp32, 256", "1, 1, 1", "cannot take a descriptor"),
        ("scaled", "*fp32, *fp32, i32, fp32, row", "1, 1, 1", "'row' is not a value for it"),
        ("scaled", "*fp32, *fp32, i32, fp32, 256", "n / (BLOCK - 256), 1, 1", "no program whatever the arguments are"),
        ("missing", "*fp32", "1, 1, 1", "has no kernel 'missing'"),
    ]:
        with pytest.raises(SystemExit) as stopped:
            main(
                [
                    str(folder / "kernels.py"),
                    "-n",
                    name,
                    "-s",
                    entries,
                    "-g",
                    grid,
                    "-t",
                    "cpu",
                    "-o",
                    str(folder / "no"),
                ]
            )
        assert words in str(stopped.value)
    assert (
        cli.main(["compile", "--aot", f"{folder / 'kernels.py'}:scaled", "-s", "i32", "-t", "cpu:none", "-g", "1,1,1"])
        == 1
    )
    assert "has the parameters x, out, n, scale, BLOCK, NAME; the signature has 1 entries" in capsys.readouterr().err
    command = ["compile", "--aot", f"{folder / 'kernels.py'}:prints", "-s", "*fp32"]
    assert cli.main([*command, "-t", "cpu:none", "-g", "1, 1, 1"]) == 1
    assert "no CPU called 'none'" in capsys.readouterr().err
    other = "x86-64" if platform.machine() == "aarch64" else "armv8-a"
    assert cli.main([*command, "-t", f"cpu:{other}", "-g", "1, 1, 1"]) == 1
    assert f"programs for '{other}' are made on machines of that kind" in capsys.readouterr().err
    assert cli.main(command) == 1 and "--aot needs the launch grid" in capsys.readouterr().err
    for more, words in [(["-on", "1x"], "no name for a function in C"), (["--num-ctas", "2"], "without clusters")]:
        assert cli.main([*command, "-g", "1, 1, 1", "-t", "cpu", *more]) == 1 and words in capsys.readouterr().err
    (folder / "cuda.h").write_text("// tt-linker: k_ab_0:int32_t x:_w\n")
    (folder / "host.h").write_text("// tt-linker: k_cd_0:int32_t x:_w\n// tt-linker-target: cpu\n")
    with pytest.raises(LinkerError, match=r"^differing backend cuda vs\. cpu: "):
        link_headers([folder / "cuda.h", folder / "host.h"], folder / "mixed")


class Numbers:
    """A builder that computes."""

    def __getattr__(self, name: str) -> Any:
        return {
            "icmp": lambda kind, a, b: {"eq": a == b, "ne": a != b, "slt": a < b, "sgt": a > b, "sle": a <= b}.get(
                kind, a >= b
            ),
            "select": lambda c, a, b: a if c else b,
            "sdiv": lambda a, b: int(a / b),
            "srem": lambda a, b: a - b * int(a / b),
            "not_": lambda a: not a,
            "ashr": lambda a, b: a >> b,
            "shl": lambda a, b: a << b,
        }.get(name) or getattr(int, f"__{name.rstrip('_')}__")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(n + 127) / 128", 8),
        ("n % 3 == 1 ? n / 2 - -1 : 0", 501),
        ("n - 1 - 1 << 1", 1996),
        ("n > 5 && !m || m", 1),
        ("0x10 | 3 & ~1 ^ 8", 0x10 | ((3 & ~1) ^ 8)),
        ("m ? n / m : 7u", 7),
        ("n / m", None),
        ("-7 / 2 * 2 + -7 % 2", -7),
    ],
)
def test_grids_are_c(text: str, value: int | None) -> None:
    values: Mapping[str, int] = {"n": 1000, "m": 0}
    found, is_wrong = parse_expression(text).emit(Numbers(), values, int)
    assert (None if is_wrong else found) == value


def test_constants_have_their_values_in_a_grid() -> None:
    assert parse_grid("N / BLOCK, 1, BLOCKS", {"BLOCK": 16}) == ["N / (16)", "1", "BLOCKS"]
    for text in ("n +", "(n", "n n", "1 ? 2", "", "n @ 2"):
        with pytest.raises(GridError):
            parse_expression(text)


@needs_compiler
def test_the_program_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/aot.md").read_text()
    for name in ("scale.py", "main.c"):
        found = re.search(rf"```\w+\n((?:#|//) {re.escape(name)}\n.*?)```", page, re.DOTALL)
        assert found is not None
        (tmp_path / name).write_text(found[1])
    first, *_ = re.findall(r"```sh\ntilework (compile --aot.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(first.replace("\\\n", " "))) == 0
    sources = ["main.c", "scale.c", *(path.name for path in tmp_path.glob("scale.*.o"))]
    subprocess.run([COMPILER, "-Wall", "-Werror", *sources, "-o", "main", "-lm"], check=True)
    assert subprocess.run(["./main"], capture_output=True, text=True, check=True).stdout == "2.5 247.5\n"


@needs_compiler
def test_the_example(tmp_path: Path) -> None:
    """`examples/aot/build.sh`, as a user runs it; the program has neither Python nor LLVM."""
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "CC": COMPILER,
        "PYTHONPATH": str(ROOT),
        "OUT": str(tmp_path),
    }
    ran = subprocess.run(
        ["sh", str(ROOT / "examples/aot/build.sh")], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert "all right" in ran.stdout
    needs = subprocess.run(["ldd", str(tmp_path / "main")], capture_output=True, text=True).stdout
    assert "python" not in needs.lower() and "llvm" not in needs.lower()


OVERLAPPING = """
import tilework, tilework.language as tl

@tilework.jit
def shifted(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + i + 1, tl.load(a + i))
"""


@needs_compiler
def test_arrays_of_c_may_overlap(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(OVERLAPPING)
    name, files = compiled(tmp_path, "shifted", "*i32, *i32, 64")
    call = library(tmp_path, "overlapping", [path for path in files if path.suffix == ".o"])[name]
    for first, second in ((0, 0), (0, 1), (5, 0), (0, 70)):
        memory = np.arange(140, dtype=np.int32)
        wanted = memory.copy()
        wanted[second + 1 : second + 65] = memory[first : first + 64]
        offsets = (ctypes.c_void_p(memory.ctypes.data + 4 * at) for at in (first, second))
        assert call(None, *offsets) == 0
        np.testing.assert_array_equal(memory, wanted)
