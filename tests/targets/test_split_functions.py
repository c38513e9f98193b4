"""Functions that are split for LLVM: every kind of long kernel, split into parts of a few instructions, computes the
same bits as in one piece."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from benchmarks.growth_kernels import CURVES, source_of
from tests.targets.llvm_run import load, new_module
from tilework import knobs
from tilework.targets.base import GPUTarget, find_backend
from tilework.targets.llvm import split_functions
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i1, i64, ptr, void

SMALL = 24


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_functions, "LONGEST", SMALL)
    monkeypatch.setattr(split_functions, "PART", SMALL // 2)
    monkeypatch.setattr(split_functions, "SLACK", SMALL // 8)


def run(kernel: Any, *args: Any, **constants: Any) -> Any:
    """Launch a kernel that is compiled now."""
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        kernel.device_caches.clear()
        return kernel[(2,)](*args, **constants)


def llvm_text(source: Any) -> str:
    backend = find_backend(GPUTarget("cpu", "host", 1))
    product = source.module({})
    for name, stage in backend.stages(backend.parse_options({})).items():
        product = stage(product)
        if name == "llir":
            break
    return product


def lines_of_functions(text: str) -> list[int]:
    return [len(found.splitlines()) for found in re.findall(r"(?ms)^define.*?^}", text)]


@pytest.mark.parametrize("name", CURVES)
def test_parts_compute_the_same(name: str, tmp_path: Path, short_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", "native")
    curve, n = CURVES[name], 16
    source = source_of(curve, n, tmp_path)
    x = np.random.default_rng(1).standard_normal(1024 * n, np.float32)
    more = [np.float32(k) for k in range(len(curve.parameters(n)))]

    def result() -> tuple[Any, Any]:
        out = np.zeros(1024 * n, np.float32)
        kernel = run(source.fn, x, out, 9, *more, BLOCK=1024)
        return out, kernel.asm["llir"]

    split, text = result()
    assert ".part.0(" in text
    with monkeypatch.context() as scope:
        scope.setattr(split_functions, "LONGEST", 10**9)
        whole, text = result()
    assert ".part." not in text
    np.testing.assert_array_equal(split, whole)


@tilework.jit(noinline=True)
def search(x_ptr, wanted, n):
    for k in range(n):
        if tl.load(x_ptr + k) == wanted:
            return k
        for j in range(k):
            if tl.load(x_ptr + j) * 3 + k * 7 + j * 5 == wanted:
                return k * 100 + j
    return -1


@tilework.jit
def searches(x_ptr, out_ptr, n):
    for k in range(n):
        found = search(x_ptr, k * k, n)
        if found < 0:
            tl.store(out_ptr + k, -k)
        else:
            tl.store(out_ptr + k, found)


def test_a_part_returns_from_the_whole_function(short_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", "native")
    x, out, wanted = np.arange(3, 15, dtype=np.int32), np.zeros(12, np.int32), np.zeros(12, np.int32)
    kernel = run(searches, x, out, 12)
    assert ".part." in kernel.asm["llir"]
    tilework.jit(searches.fn, interpret=True)[(1,)](x, wanted, 12)
    assert out.tolist() == wanted.tolist()


def test_a_value_is_returned_from_inside_of_parts_in_parts(short_parts: None) -> None:
    """`f(n)`: the first k below n whose hash is divisible by 61, or -1; the search is long enough to be cut, and is
    itself in a part of what is around it."""
    module = new_module()
    b = Builder(module.function("f", i64, [(i64, "n")]))
    (n,) = b.function.args
    total = n
    for k in range(30):
        total = b.xor(b.mul(total, 3), k)
    with b.loop(0, n) as index:
        x = index
        for k in range(40):
            x = b.xor(b.mul(x, 5), k + 1)
        with b.if_(b.icmp("eq", b.urem(x, 61), 0)):
            b.ret(b.add(b.mul(index, 1 << 32), b.and_(total, 255)))
    for k in range(30):
        total = b.xor(b.mul(total, 7), k)
    b.ret(b.sub(0, b.and_(total, 255)))
    main = Builder(module.function("main", void, [(ptr, "out"), (i64, "n")]))
    out, n = main.function.args
    main.store(main.call("f", i64, [n]), out, align=8)
    main.ret()
    split_functions.split_long_functions(module)
    assert i1 in {function.result for name, function in module.functions.items() if ".part." in name}
    function: Callable[..., None] = load(module, "main", 2)

    def expected(n: int) -> int:
        mask = (1 << 64) - 1
        total = n
        for k in range(30):
            total = (total * 3 & mask) ^ k
        for index in range(n):
            x = index
            for k in range(40):
                x = (x * 5 & mask) ^ (k + 1)
            if x % 61 == 0:
                return (index << 32) + (total & 255)
        for k in range(30):
            total = (total * 7 & mask) ^ k
        return -(total & 255)

    found = np.zeros(1, np.int64)
    values = []
    for n in (0, 1, 5, 50, 100, 1000):
        function(found.ctypes.data, n)
        values.append(int(found[0]))
        assert values[-1] == expected(n)
    assert min(values) <= 0 < max(values)


@pytest.mark.parametrize(
    "name, n",
    [("static_range", 2000), ("static_range, stores", 300), ("loops", 100), ("ifs", 120), ("nested ifs", 120)],
)
def test_no_function_is_long(name: str, n: int, tmp_path: Path) -> None:
    """LLVM's time for a function grows faster than its length, so the work is linear if no function is long."""
    text = llvm_text(source_of(CURVES[name], n, tmp_path))
    assert ".part.1(" in text
    assert max(lines_of_functions(text)) < 1.5 * split_functions.LONGEST


def test_ordinary_kernels_stay_whole() -> None:
    from benchmarks.cpu_compile import ROWS

    assert all(".part." not in llvm_text(row.source(row.tile)) for row in ROWS)
