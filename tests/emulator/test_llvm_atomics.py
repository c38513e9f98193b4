"""atomicrmw and cmpxchg as LLVM 22 prints them, in global, shared and generic memory."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm import BF16, TARGETS, launch

RANDOM = np.random.default_rng(8)
THREADS = 33  # more than a warp, and not a whole number of them
TID = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
BARRIER = "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
# one of each processor and PTX version: LLVM's optimiser leaves atomics alone
all_targets = pytest.mark.parametrize(
    "target", (TARGETS[0], *TARGETS[2:]), ids=lambda target: "-".join(map(str, target))
)


INTEGERS = {
    "add": (5, lambda s, v: s + sum(v)),
    "sub": (5, lambda s, v: s - sum(v)),
    "and": (-1, lambda s, v: np.bitwise_and.reduce([s, *v])),
    "or": (0, lambda s, v: np.bitwise_or.reduce([s, *v])),
    "xor": (9, lambda s, v: np.bitwise_xor.reduce([s, *v])),
    "max": (0, lambda s, v: max([s, *v])),
    "min": (0, lambda s, v: min([s, *v])),
    "umax": (3, lambda s, v: max([s, *v], key=lambda x: x % 2**64)),
    "umin": (-2, lambda s, v: min([s, *v], key=lambda x: x % 2**64)),
    "nand": (1, lambda s, v: nands(s, 9, THREADS)),
    "uinc_wrap": (0, lambda s, v: THREADS % 10),
    "udec_wrap": (0, lambda s, v: -THREADS % 10),
}


@all_targets
@pytest.mark.parametrize("space", (1, 3, 0))
def test_atomics_on_integers(target: Any, space: int) -> None:
    """Every operation by all threads on an address of its own; its result does not depend on the order."""
    for bits in (32, 64):
        dtype = np.dtype(f"i{bits // 8}")
        values = RANDOM.integers(-1000, 1000, (len(INTEGERS), THREADS)).astype(dtype)
        values[[name in ("uinc_wrap", "udec_wrap", "nand") for name in INTEGERS]] = 9
        starts = {name: start for name, (start, _) in INTEGERS.items()}
        got = atomics(f"i{bits}", starts, values, space, target)
        for (name, (start, function)), given in zip(INTEGERS.items(), values, strict=True):
            assert got[name] == int(dtype.type(function(start, given.tolist()))), (name, bits)


SPACES = {0: "", 1: " addrspace(1)", 3: " addrspace(3)"}


def nands(value: int, other: int, times: int) -> int:
    for _ in range(times):
        value = ~(value & other)
    return value


def atomics(
    type: str, starts: dict[str, Any], values: Any, space: int, target: Any, order: str = "monotonic"
) -> dict[str, Any]:
    """One kernel: each operation in every thread, with its row of `values`, on its own address; return the final
    values."""
    here = {1: "%out", 3: "%shared", 0: "%generic"}[space]
    begin, update, finish = [], [], []
    indices = ""
    for k, (name, start) in enumerate(starts.items()):
        indices += f"""
  %out{k} = getelementptr {type}, ptr addrspace(1) %out, i32 {k}
  %shared{k} = getelementptr {type}, ptr addrspace(3) @cells, i32 {k}
  %generic{k} = addrspacecast ptr addrspace(1) %out{k} to ptr"""
        begin += [
            f"store {type} {start!r}, ptr addrspace(1) %out{k}",
            f"store {type} {start!r}, ptr addrspace(3) %shared{k}",
        ]
        update += [
            f"%at{k} = add i32 %i, {THREADS * k}",
            f"%p{k} = getelementptr {type}, ptr addrspace(1) %x, i32 %at{k}",
            f"%v{k} = load {type}, ptr addrspace(1) %p{k}",
            f"%old{k} = atomicrmw {name} ptr{SPACES[space]} {here}{k}, {type} %v{k} {order}",
        ]
        finish += [
            f"%r{k} = load {type}, ptr{SPACES[space]} {here}{k}",
            f"store {type} %r{k}, ptr addrspace(1) %out{k}",
        ]
    text = f"""{TID}{BARRIER}
@cells = internal addrspace(3) global [{len(starts)} x {type}] undef, align 8
define ptx_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %x) {{
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(){indices}
  %first = icmp eq i32 %i, 0
  br i1 %first, label %begin, label %go
begin:
  {NEXT.join(begin)}
  br label %go
go:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  {NEXT.join(update)}
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %first, label %finish, label %end
finish:
  {NEXT.join(finish)}
  br label %end
end:
  ret void
}}"""
    found = launch(text, np.zeros(len(starts), values.dtype), values.ravel(), block=THREADS, target=target)[0]
    return dict(zip(starts, found, strict=True))


NEXT = "\n  "


@all_targets
@pytest.mark.parametrize("space", (1, 3, 0))
def test_atomics_on_floats(target: Any, space: int) -> None:
    for type, dtype in (("float", np.float32), ("double", np.float64), ("half", np.float16), ("bfloat", BF16)):
        values = RANDOM.integers(-8, 8, (4, THREADS)).astype(dtype)
        a, b, c, d = values.astype(np.float64)
        expected = {"fadd": 3 + a.sum(), "fsub": 3 - b.sum(), "fmax": max(3, c.max()), "fmin": min(3, d.min())}
        got = atomics(type, dict.fromkeys(expected, 3.0), values, space, target)
        assert {name: float(value) for name, value in got.items()} == expected, type


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
        total, winners = launch(text, np.zeros(8, dtype), np.zeros(THREADS, dtype), block=THREADS, target=target)
        assert total[0] == THREADS and not total[1:].any() and sorted(winners.tolist()) == list(range(THREADS)), type
        assert atomics(type, {"xchg": 1}, np.full((1, THREADS), 4, dtype), 1, target, "seq_cst") == {"xchg": 4}
