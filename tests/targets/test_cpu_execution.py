"""Kernels as machine code on this machine: stages and their files, arguments, faults, caches, threads."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tilework import knobs
from tilework.compiler import ASTSource, IRSource, compile, lower
from tilework.targets.base import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor

CPU = GPUTarget("cpu", "host", 1)
ROOT = Path(tilework.__file__).parent.parent


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr = 64):  # pyright: ignore[reportArgumentType]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@tilework.jit
def affine(x_ptr, out_ptr, scale, shift, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * scale + shift, mask=i < n)


@tilework.jit
def program_ids(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    linear = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.atomic_add(out_ptr + linear, linear + 1)


@tilework.jit
def checked(x_ptr, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_assert(x < limit, "too large")
    tl.store(x_ptr + i, x + 1)


@tilework.jit
def described(desc, out_ptr, M: tl.constexpr, N: tl.constexpr):
    tile = desc.load([M, 0])
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tile)


@tilework.jit
def scalars(out_ptr, pair, flag, wide, value: tl.float64, half: tl.float16, brain: tl.bfloat16):
    tl.store(out_ptr + 0, pair[0].to(tl.float64))
    tl.store(out_ptr + 1, pair[1].to(tl.float64))
    tl.store(out_ptr + 2, flag.to(tl.float64))
    tl.store(out_ptr + 3, wide.to(tl.float64))
    tl.store(out_ptr + 4, value)
    tl.store(out_ptr + 5, half.to(tl.float64))
    tl.store(out_ptr + 6, brain.to(tl.float64))


@tilework.jit
def shout(x_ptr):
    tl.device_print("x", tl.load(x_ptr + tl.program_id(0)))


@tilework.jit
def loops(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pointer, out = x_ptr, out_ptr
    for _ in range(n):
        tl.store(out + tl.arange(0, BLOCK), tl.load(pointer + tl.arange(0, BLOCK)))
        pointer += BLOCK
        out += BLOCK


@pytest.fixture(autouse=True)
def native(tmp_path: Path) -> Iterator[None]:
    """Machine code, a cache of its own, and no kernel left from another test."""
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.runtime.device = "native"
        forget()
        yield
    forget()


def forget() -> None:
    for kernel in (add, affine, program_ids, checked, described, scalars, shout, loops):
        kernel.device_caches.clear()


def numbers(n: int, dtype: Any = "f4", seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(n) * 8
    return (np.abs(values) if np.dtype(dtype).kind == "u" else values).astype(dtype)


DTYPES = ["f4", "f8", "f2", ml_dtypes.bfloat16, "i1", "i2", "i4", "i8", "u1", "u4"]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_add(dtype: Any) -> None:
    for n in (1, 63, 64, 1000):
        x, y, out = numbers(n, dtype), numbers(n, dtype, 1), np.zeros(n, dtype)
        add[(tilework.cdiv(n, 64),)](x, y, out, n)
        assert (out == x + y).all(), n


def test_stages_and_their_files() -> None:
    n = 100
    kernel = add[(2,)](numbers(n), numbers(n), np.zeros(n, "f4"), n)
    assert [stage for stage in kernel.asm if stage != "source"] == ["ttir", "ttcir", "llir", "obj"]
    assert "ttc.nest" in kernel.asm["ttcir"] and "define" in kernel.asm["llir"]
    assert isinstance(kernel.asm["obj"], bytes) and kernel.kernel is kernel.asm["obj"]
    assert kernel.metadata.binary_ext == "obj"
    assert kernel.metadata.interface["parameters"] == ["ptr", "ptr", "ptr", "i32"]
    assert kernel.metadata.interface["stored"] == [2]
    suffixes = {Path(path).suffix for path in kernel.metadata_group.values()}
    assert {".source", ".ttir", ".ttcir", ".llir", ".obj", ".json"} <= suffixes


@pytest.mark.parametrize("stage", ["ttir", "ttcir", "llir"])
def test_compilation_goes_on_from_the_file_of_a_stage(stage: str, tmp_path: Path) -> None:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    text = lower(ASTSource(add, signature, {"BLOCK": 64}), CPU, [stage, "obj"])
    path = tmp_path / f"add.{stage}"
    path.write_text(text[stage])
    assert lower(IRSource(path), CPU, ["obj"])["obj"]
    x, y, out = numbers(100), numbers(100, seed=1), np.zeros(100, "f4")
    compile(path, CPU)[(2, 1, 1)](x, y, out, 100)
    assert (out == x + y).all()


def test_a_stage_can_be_overridden(tmp_path: Path) -> None:
    x, out = np.ones(64, "f4"), np.zeros(64, "f4")
    kernel = affine[(1,)](x, out, 2.0, 3.0, 64, BLOCK=64)
    assert (out == 5).all()
    path = tmp_path / "affine.ttcir"
    path.write_text(kernel.asm["ttcir"].replace("arith.addf", "arith.subf"))
    affine[(1,)](x, out, 2.0, 3.0, 64, BLOCK=64, ir_override=str(path))
    assert (out == -1).all()


@pytest.mark.parametrize("grid", [(1,), (2, 3, 4), (1000, 7), (0,), (3, 0)])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_program_runs_once(grid: Any, threads: int) -> None:
    count = int(np.prod(grid))
    out = np.zeros(max(count, 1), "i4")
    knobs.runtime.num_threads = threads
    for _ in range(3):
        program_ids[grid](out)
    assert (out[:count] == 3 * np.arange(1, count + 1)).all() and not out[count:].any()


def test_too_many_programs() -> None:
    with pytest.raises(ValueError, match="programs"):
        program_ids[2**20, 2**20](np.zeros(1, "i4"))


def test_scalar_arguments() -> None:
    out = np.zeros(7, "f8")
    scalars[(1,)](out, (7, 2.5), True, 2**40, 0.1, 1.5, 2.5)
    assert out.tolist() == [7, 2.5, 1, 2**40, 0.1, 1.5, 2.5]


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_descriptor_arguments(padding: str) -> None:
    a = np.arange(20 * 32, dtype="f4").reshape(20, 32)
    desc = TensorDescriptor.from_tensor(a, [16, 32], padding=padding)
    out = np.zeros((16, 32), "f4")
    described[(1,)](desc, out, M=16, N=32)
    assert (out[:4] == a[16:]).all()
    assert np.isnan(out[4:]).all() if padding == "nan" else not out[4:].any()


def test_an_assert_that_fails() -> None:
    x = np.zeros((100, 32), "f4")
    x[57, 3] = 10
    with pytest.raises(RuntimeError, match="device-side assert") as caught:
        checked[(100,)](x, 5.0, BLOCK=32, debug=True)
    line = checked.def_line + 3
    assert "too large" in str(caught.value) and "program (57, 0, 0)" in str(caught.value)
    assert f"{Path(__file__).name}:{line}:" in str(caught.value)
    x[:] = 0
    checked[(100,)](x, 5.0, BLOCK=32, debug=True)
    assert (x == 1).all()
    x[57, 3] = 10
    checked[(100,)](x, 5.0, BLOCK=32)  # without debug there are no asserts


def test_read_only_arrays() -> None:
    x, y, out = numbers(64), numbers(64), np.zeros(64, "f4")
    for array in (x, y):
        array.flags.writeable = False
    add[(1,)](x, y, out, 64)
    assert (out == x + y).all()
    with pytest.raises(ValueError, match="read-only"):
        add[(1,)](x, y, x, 64)


def test_pointers_that_loops_carry_are_distinguished() -> None:
    x, out = numbers(256), np.zeros(256, "f4")
    x.flags.writeable = False
    loops[(1,)](x, out, 4, BLOCK=64)
    assert (out == x).all()


def test_zero_size_and_strided_arrays() -> None:
    empty = np.zeros(0, "f4")
    add[(1,)](empty, empty, empty, 0)
    x = numbers(200)
    out = np.zeros(100, "f4")
    add[(2,)](x[1:], x[3:101], out, 98)
    assert (out[:98] == x[1:99] + x[3:101]).all() and not out[98:].any()


def test_unaligned_arrays() -> None:
    raw = np.zeros(4 * 100 + 1, "u1")
    x = raw[1:].view("f4")
    x[:] = numbers(100)
    out = np.zeros(100, "f4")
    add[(2,)](x, x, out, 100)
    assert (out == x + x).all()


def test_launches_from_several_threads() -> None:
    def launch(seed: int) -> bool:
        x, y, out = numbers(5000, seed=seed), numbers(5000, seed=seed + 1), np.zeros(5000, "f4")
        for _ in range(50):
            add[(79,)](x, y, out, 5000)
        return bool((out == x + y).all())

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(launch, range(12)))


def test_printing(capsys: Any) -> None:
    shout[(2,)](np.array([1.5, 2.5], "f4"))
    lines = sorted(capsys.readouterr().out.splitlines())
    assert len(lines) == 2 and "(0, 0, 0)" in lines[0] and "1.500000" in lines[0] and "2.500000" in lines[1]


SECOND = """
import numpy as np
import tilework
import tilework.language as tl
from tilework import knobs

@tilework.jit
def affine(x_ptr, out_ptr, scale, shift, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * scale + shift, mask=i < n)

@tilework.jit
def ordered(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i)))

hits = []
knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
x, out = np.arange(16, dtype="f4"), np.zeros(16, "f4")
ordered[(1,)](x[::-1].copy(), out, BLOCK=16)
right = (out == x).all()
affine[(1,)](x, out, 2.0, 3.0, 16, BLOCK=16)
print(hits, right and (out == 2 * x + 3).all())
"""


def test_a_second_process_loads_without_compiling(tmp_path: Path) -> None:
    environment = {**os.environ, "TRITON_CACHE_DIR": knobs.cache.dir, "TILEWORK_DEVICE": "native"}
    script = tmp_path / "second.py"
    script.write_text(SECOND)
    found = []
    for _ in range(2):
        done = run_python(str(script), cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found == ["[False, False] True\n", "[True, True] True\n"]


def test_the_evaluator_can_be_chosen() -> None:
    knobs.runtime.device = "evaluator"
    x, out = np.ones(64, "f4"), np.zeros(64, "f4")
    kernel = add[(1,)](x, x, out, 64)
    assert kernel.metadata.binary_ext == "ttir" and (out == 2).all()
    knobs.runtime.device = "abacus"
    add.device_caches.clear()
    with pytest.raises(ValueError, match="TILEWORK_DEVICE"):
        add[(1,)](x, x, out, 64)
