"""atomicrmw and cmpxchg as LLVM 22 prints them, in global, shared and generic memory."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm import BF16, TARGETS, launch

RANDOM = np.random.default_rng(8)
TID = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
BARRIER = "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
all_targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(map(str, target)))


@all_targets
@pytest.mark.parametrize("space", (1, 3, 0))
def test_atomics_on_integers(target: Any, space: int) -> None:
    """Every operation by 64 threads on one place; its result does not depend on the order, and the old values are each seen once."""
    for bits in (32, 64):
        for name, start, function in (
            ("add", 5, lambda s, v: s + sum(v)), ("sub", 5, lambda s, v: s - sum(v)), ("and", -1, lambda s, v: np.bitwise_and.reduce([s, *v])),
            ("or", 0, lambda s, v: np.bitwise_or.reduce([s, *v])), ("xor", 9, lambda s, v: np.bitwise_xor.reduce([s, *v])),
            ("max", 0, lambda s, v: max([s, *v])), ("min", 0, lambda s, v: min([s, *v])), ("umax", 3, lambda s, v: max([s, *v], key=lambda x: x % 2**64)),
            ("umin", -2, lambda s, v: min([s, *v], key=lambda x: x % 2**64)), ("nand", 1, None), ("uinc_wrap", 0, None), ("udec_wrap", 0, None),
        ):  # fmt: skip
            dtype = np.dtype(f"i{bits // 8}")
            values = RANDOM.integers(-1000, 1000, 64).astype(dtype)
            if name in ("uinc_wrap", "udec_wrap", "nand"):
                values[:] = 9
            got = atomic(
                f"atomicrmw {name} ptr{SPACES[space]} PLACE, i{bits} %v monotonic",
                f"i{bits}",
                dtype,
                start,
                values,
                space,
                target,
            )
            if function is not None:
                assert got == int(dtype.type(function(start, values.tolist()))), name
            elif name == "nand":
                assert got == nands(start, 9, 64)
            else:
                assert got == (64 % 10 if name == "uinc_wrap" else (0 - 64) % 10), name


SPACES = {0: "", 1: " addrspace(1)", 3: " addrspace(3)"}


def nands(value: int, other: int, times: int) -> int:
    for _ in range(times):
        value = ~(value & other)
    return value


def atomic(update: str, type: str, dtype: Any, start: Any, values: Any, space: int, target: Any) -> Any:
    """Run an update in every thread on one place that starts as `start`; what is there at the end."""
    number = start if not isinstance(start, float) else repr(start)
    place = {1: "%out", 3: "@place", 0: "%generic"}[space]
    text = (
        TID
        + BARRIER
        + f"""
@place = internal addrspace(3) global {type} undef, align 8
define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %x) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %generic = addrspacecast ptr addrspace(1) %out to ptr
  %first = icmp eq i32 %i, 0
  br i1 %first, label %begin, label %go
begin:
  store {type} {number}, ptr addrspace(1) %out
  store {type} {number}, ptr addrspace(3) @place
  br label %go
go:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %p = getelementptr {type}, ptr addrspace(1) %x, i32 %i
  %v = load {type}, ptr addrspace(1) %p
  %old = {update.replace("PLACE", place)}
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %first, label %finish, label %end
finish:
  %r = load {type}, ptr{SPACES[space]} {place}
  store {type} %r, ptr addrspace(1) %out
  br label %end
end:
  ret void
}}"""
    )
    return launch(text, np.zeros(1, dtype), values, target=target)[0][0]


@all_targets
@pytest.mark.parametrize("space", (1, 3, 0))
def test_atomics_on_floats(target: Any, space: int) -> None:
    for type, dtype in (("float", np.float32), ("double", np.float64), ("half", np.float16), ("bfloat", BF16)):
        values = RANDOM.integers(-8, 8, 64).astype(dtype)
        exact = values.astype(np.float64)
        for name, expected in (
            ("fadd", 3 + exact.sum()),
            ("fsub", 3 - exact.sum()),
            ("fmax", max(3, exact.max())),
            ("fmin", min(3, exact.min())),
        ):
            got = atomic(
                f"atomicrmw {name} ptr{SPACES[space]} PLACE, {type} %v monotonic",
                type,
                values.dtype,
                3.0,
                values,
                space,
                target,
            )
            assert got == expected, (type, name)


@all_targets
def test_compare_and_exchange(target: Any) -> None:
    for type, dtype in (("i32", np.int32), ("i64", np.int64), ("i16", np.int16), ("i8", np.int8)):
        text = (
            TID
            + f"""
define ptx_kernel void @k(ptr addrspace(1) %sum, ptr addrspace(1) %winners) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %start = load volatile {type}, ptr addrspace(1) %sum
  br label %again
again:
  %old = phi {type} [ %start, %entry ], [ %seen, %again ]
  %new = add {type} %old, 1
  %pair = cmpxchg ptr addrspace(1) %sum, {type} %old, {type} %new acq_rel monotonic
  %seen = extractvalue {{ {type}, i1 }} %pair, 0
  %won = extractvalue {{ {type}, i1 }} %pair, 1
  br i1 %won, label %end, label %again
end:
  %p = getelementptr {type}, ptr addrspace(1) %winners, i32 %i
  store {type} %old, ptr addrspace(1) %p
  ret void
}}"""
        )
        total, winners = launch(text, np.zeros(8, dtype), np.zeros(64, dtype), target=target)
        assert total[0] == 64 and not total[1:].any() and sorted(winners.tolist()) == list(range(64))
        swap = f"atomicrmw xchg ptr addrspace(1) PLACE, {type} %v seq_cst"
        assert atomic(swap, type, dtype, 1, np.full(64, 4, dtype), 1, target) == 4
