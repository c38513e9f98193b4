"""Values that are known to be non-negative, by what they are computed from."""

import pytest

import tilework
import tilework.language as tl
from tilework.analysis.non_negative import is_non_negative
from tilework.compiler import ASTSource, lower
from tilework.ir import arith
from tilework.ir.parser import parse_module
from tilework.targets.base import GPUTarget


@tilework.jit
def products(out, M, N, K, GROUP: tl.constexpr, B: tl.constexpr):
    """The tiles of a product, in groups of rows."""
    pid, rows, columns = tl.program_id(0), tl.cdiv(M, B), tl.cdiv(N, B)
    group = pid // (GROUP * columns)
    height = min(rows - group * GROUP, GROUP)
    row, column = group * GROUP + pid % height, pid % (GROUP * columns) // height
    i = tl.arange(0, B)
    for k in range(0, K, B):
        tl.store(out + k, tl.sum(((row * B + i) % M)[:, None] + ((column * B + i) % N)[None, :] + (k + i) % 64))


@tilework.jit
def carried(out, n, B: tl.constexpr):
    i, x = tl.arange(0, B), tl.program_id(0)
    while x < n:
        x = tl.where(x % 2 == 0, x + 3, tl.maximum(x & 7, n))
        tl.store(out + (x * B + i) % 64, i)


@tilework.jit
def flattened(out, n, m, S, B: tl.constexpr):
    """Its counter starts a step before the first number."""
    i = tl.arange(0, B)
    for t in tl.range(tl.program_id(0), n, S, flatten=True):
        x = (t // 3 * B + i) % 64
        for k in range(0, m):
            tl.store(out + k * B + i, x)
    for t in tl.range(tl.program_id(0), n, 7, flatten=True):
        x = (t // 3 * B + i) % 64
        for k in range(0, m):
            tl.store(out + k * B + i, x)


@tilework.jit
def assumed(out, n, B: tl.constexpr):
    tl.assume(n >= 0)
    tl.store(out + (n + tl.arange(0, B)) % 64, 1)


@tilework.jit
def differences(out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.program_id(0)
    for k in range(n, 9):
        x -= 1
        tl.store(out + i, (n + i) % 64 + (i - 8) % 64 + (tl.load(out + i) + i) % 64 + (k + i) % 64 + (x + i) % 64)
    tl.store(out + i, (-1 * i) % 64 + (-(n > 3).to(tl.int32) + i) % 64)


@tilework.jit
def hashes(out, n, B: tl.constexpr):
    """Products and shifts that overflow on purpose."""
    pid, i = tl.program_id(0), tl.arange(0, B)
    mixed = pid ^ (pid << 13)
    grown, doubled = pid, pid
    for _ in range(0, n):
        grown, doubled = grown * 33 + 1, doubled + doubled
    far = (pid.to(tl.int64) * 4096).to(tl.int32)
    x = (pid * 1540483477 + i) % 64 + (mixed * 16 + i) % 64 + ((pid << 28) + i) % 64 + (2147483640 + i) % 64
    x += (grown * 16 + i) % 64 + (doubled * 16 + i) % 64 + (far + i) % 64 + (((pid << 5) | (pid >> 27)) * 16 + i) % 64
    tl.store(out + i, x)


@tilework.jit
def bounded_hashes(out, n, B: tl.constexpr):
    """The remainders are small."""
    pid, i = tl.program_id(0), tl.arange(0, B)
    mixed = (pid * 1540483477) ^ (pid << 13)
    wide = (pid & 1023).to(tl.int64) * 4096
    x = (
        ((mixed & 1023) * 16 + i) % 64
        + (((pid & 7) ^ 5) * 16 + i) % 64
        + (i * 100000) % 64
        + (wide.to(tl.int32) + i) % 64
    )
    for _ in range(0, n):
        pid = (pid * 33 + 1) & 255
        x += (pid * 16 + i) % 64
    tl.store(out + i, x)


@pytest.mark.parametrize(
    ("kernel", "numbers", "expected"),
    [
        (products, "MNK", True),
        (carried, "n", True),
        (flattened, "nmS", True),
        (assumed, "n", True),
        (differences, "n", False),
        (hashes, "n", False),
        (bounded_hashes, "n", True),
    ],
)
def test_non_negative_dividends(kernel: tilework.JITFunction, numbers: str, expected: bool) -> None:
    constants = {name: 16 for name in ("GROUP", "B") if name in kernel.arg_names}
    source = ASTSource(kernel, {"out": "*i32", **dict.fromkeys(numbers, "i32")}, constants)
    module = parse_module(str(lower(source, GPUTarget("cuda", 90, 32), ["ttgir"])["ttgir"]))
    dividends = [op.operands[0] for op in module.walk() if type(op) is arith.RemSIOp]
    found = [value for value in dividends if is_non_negative(value) == expected]
    assert len(found) == len(dividends) >= 1, [str(value.owner) for value in dividends if value not in found]
