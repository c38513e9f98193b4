"""Programs as LLVM 22 prints them: loops, switches, shared and local memory, parameters, calls, assembly."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm import TARGETS, each, launch
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError

RANDOM = np.random.default_rng(7)
N = np.arange(64, dtype=np.int32)
TID = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
BARRIER = "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
all_targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(map(str, target)))


# control flow


def test_collatz() -> None:
    """A loop with a branch in it, as long as each thread wants."""
    text = """br label %loop
loop:
  %x = phi i32 [ %a, %work ], [ %next, %again ]
  %n = phi i32 [ 0, %work ], [ %more, %again ]
  %done = icmp ule i32 %x, 1
  br i1 %done, label %end, label %body
body:
  %bit = and i32 %x, 1
  %odd = icmp eq i32 %bit, 1
  br i1 %odd, label %up, label %down
up:
  %triple = mul i32 %x, 3
  %plus = add i32 %triple, 1
  br label %again
down:
  %half = lshr i32 %x, 1
  br label %again
again:
  %next = phi i32 [ %plus, %up ], [ %half, %down ]
  %more = add i32 %n, 1
  br label %loop
end:
  %d = add i32 %n, 0"""

    def steps(x: int) -> int:
        n = 0
        while x > 1:
            x, n = (3 * x + 1 if x & 1 else x // 2), n + 1
        return n

    assert each(text, N, out=np.int32).tolist() == [steps(int(n)) for n in N]


def test_switches_and_swapped_phis() -> None:
    cases = "\n".join(f"    i32 {n}, label %case{n}" for n in range(12))
    blocks = "\n".join(f"case{n}:\n  %v{n} = mul i32 %a, {3 * n + 1}\n  br label %join" for n in range(12))
    phi = ", ".join(f"[ %v{n}, %case{n} ]" for n in range(12))
    text = f"""%which = urem i32 %a, 13
  switch i32 %which, label %other [
{cases}
  ]
{blocks}
other:
  br label %join
join:
  %v = phi i32 {phi}, [ -1, %other ]
  br label %swap
swap:
  %p = phi i32 [ %v, %join ], [ %q, %swap ]
  %q = phi i32 [ %a, %join ], [ %p, %swap ]
  %k = phi i32 [ 0, %join ], [ %k1, %swap ]
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, %a
  br i1 %more, label %swap, label %end
end:
  %x = shl i32 %q, 16
  %d = xor i32 %x, %p"""
    expected = []
    for n in N.tolist():
        p, q, k = (n * (3 * (n % 13) + 1) if n % 13 < 12 else -1), n, 1
        while k < n:
            p, q, k = q, p, k + 1
        expected.append((q << 16 ^ p) & 0xFFFF_FFFF)
    assert each(text, N, out=np.uint32).tolist() == expected


def test_nested_loops_with_early_exits() -> None:
    text = """br label %outer
outer:
  %i0 = phi i32 [ 0, %work ], [ %i1, %next ]
  %s0 = phi i32 [ 0, %work ], [ %s2, %next ]
  %stop = icmp sge i32 %i0, %a
  br i1 %stop, label %end, label %inner
inner:
  %j0 = phi i32 [ 0, %outer ], [ %j1, %step ]
  %s1 = phi i32 [ %s0, %outer ], [ %s3, %step ]
  %product = mul i32 %i0, %j0
  %big = icmp sgt i32 %product, 40
  br i1 %big, label %next, label %step
step:
  %s3 = add i32 %s1, %product
  %j1 = add i32 %j0, 1
  %more = icmp slt i32 %j1, 9
  br i1 %more, label %inner, label %next
next:
  %s2 = phi i32 [ %s1, %inner ], [ %s3, %step ]
  %i1 = add i32 %i0, 1
  %far = icmp sgt i32 %s2, 5000
  br i1 %far, label %end, label %outer
end:
  %d = phi i32 [ %s0, %outer ], [ 7, %next ]"""

    def program(a: int) -> int:
        i = s = 0
        while i < a:
            for j in range(9):
                if i * j > 40:
                    break
                s += i * j
            i += 1
            if s > 5000:
                return 7
        return s

    assert each(text, N, out=np.int32).tolist() == [program(n) for n in N.tolist()]


# memory


@all_targets
def test_vectors_in_memory(target: Any) -> None:
    x = RANDOM.normal(size=(64, 4)).astype(np.float32)
    h = RANDOM.normal(size=(64, 2)).astype(np.float16)
    text = (
        TID
        + """
define ptx_kernel void @k(ptr addrspace(1) align 16 %x, ptr addrspace(1) align 16 %h, ptr addrspace(1) %bytes) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %p
  %s = shufflevector <4 x float> %v, <4 x float> undef, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %t = fadd <4 x float> %v, %s
  store <4 x float> %t, ptr addrspace(1) %p
  %q = getelementptr <2 x half>, ptr addrspace(1) %h, i32 %i
  %w = load <2 x half>, ptr addrspace(1) %q
  %y = fmul <2 x half> %w, %w
  %z = insertelement <2 x half> %y, half 0xH3C00, i32 0
  store <2 x half> %z, ptr addrspace(1) %q
  %b = getelementptr <4 x i8>, ptr addrspace(1) %bytes, i32 %i
  %c = load <4 x i8>, ptr addrspace(1) %b
  %e = add <4 x i8> %c, <i8 1, i8 2, i8 -3, i8 100>
  store <4 x i8> %e, ptr addrspace(1) %b
  ret void
}"""
    )
    data = RANDOM.integers(0, 255, (64, 4), np.uint8)
    got = launch(text, x, h, data, target=target)
    np.testing.assert_array_equal(got[0], x + x[:, ::-1])
    np.testing.assert_array_equal(got[1], np.stack([np.ones(64, np.float16), h[:, 1] * h[:, 1]], 1))
    np.testing.assert_array_equal(got[2], data + np.array([1, 2, 253, 100], np.uint8))


@all_targets
def test_static_and_dynamic_shared_memory(target: Any) -> None:
    text = (
        TID
        + BARRIER
        + """
@static = internal addrspace(3) global [64 x i32] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 1024
define ptx_kernel void @k(ptr addrspace(1) %x) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %p
  %s = getelementptr [64 x i32], ptr addrspace(3) @static, i32 0, i32 %i
  store i32 %v, ptr addrspace(3) %s
  %g = addrspacecast ptr addrspace(3) @dynamic to ptr
  %gd = getelementptr i64, ptr %g, i32 %i
  %wide = sext i32 %v to i64
  store i64 %wide, ptr %gd
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %j = xor i32 %i, 63
  %sj = getelementptr [64 x i32], ptr addrspace(3) @static, i32 0, i32 %j
  %a = load i32, ptr addrspace(3) %sj
  %k1 = xor i32 %i, 1
  %dj = getelementptr i64, ptr addrspace(3) @dynamic, i32 %k1
  %b = load i64, ptr addrspace(3) %dj
  %c = trunc i64 %b to i32
  %base = ptrtoint ptr addrspace(3) @dynamic to i32
  %low = and i32 %base, 1023
  %m = mul i32 %c, 1000
  %n = add i32 %m, %a
  %r = add i32 %n, %low
  store i32 %r, ptr addrspace(1) %p
  ret void
}"""
    )
    x = RANDOM.integers(-100, 100, 64).astype(np.int32)
    got = launch(text, x, shared=64 * 8, target=target)[0]
    np.testing.assert_array_equal(got, x.reshape(-1, 2)[:, ::-1].reshape(-1) * 1000 + x[::-1])
    with pytest.raises(MemoryFault, match=r"(?s)shared address 0x\w+ are outside.*thread \(\d+, 0, 0\).*PTX line"):
        launch(text, x, shared=64 * 4, target=target)


@all_targets
def test_structures_by_value(target: Any) -> None:
    text = (
        TID
        + """
%S = type { i32, double, [3 x i16], <2 x float> }
define ptx_kernel void @k(ptr addrspace(1) %out, ptr byval(%S) align 8 "nvvm.grid_constant" %s, i8 %small, half %h, i1 %flag, ptr byval(%S) align 8 %copy, i128 %wide, bfloat %bf) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p0 = getelementptr %S, ptr %s, i32 0, i32 0
  %a = load i32, ptr %p0
  %p1 = getelementptr %S, ptr %s, i32 0, i32 1
  %b = load double, ptr %p1
  %in = urem i32 %i, 3
  %p2 = getelementptr %S, ptr %copy, i32 0, i32 2, i32 %in
  store i16 77, ptr %p2
  %p3 = getelementptr %S, ptr %copy, i32 0, i32 2, i32 1
  %c = load i16, ptr %p3
  %cd = sitofp i16 %c to double
  %ad = sitofp i32 %a to double
  %sd = sitofp i8 %small to double
  %hd = fpext half %h to double
  %fd = uitofp i1 %flag to double
  %wh = lshr i128 %wide, 100
  %wt = trunc i128 %wh to i64
  %wd = uitofp i64 %wt to double
  %bd = fpext bfloat %bf to double
  %t0 = fadd double %ad, %b
  %t1 = fadd double %t0, %cd
  %t2 = fadd double %t1, %sd
  %t3 = fadd double %t2, %hd
  %t4 = fadd double %t3, %fd
  %t5 = fadd double %t4, %wd
  %t6 = fadd double %t5, %bd
  %o = getelementptr double, ptr addrspace(1) %out, i32 %i
  store double %t6, ptr addrspace(1) %o
  ret void
}"""  # noqa: E501
    )
    kind = np.dtype(
        {
            "names": ["a", "b", "c", "d"],
            "formats": ["i4", "f8", ("i2", 3), ("f4", 2)],
            "offsets": [0, 8, 16, 24],
            "itemsize": 32,
        }
    )
    value = np.zeros((), kind)
    value["a"], value["b"], value["c"], value["d"] = 5, 0.25, (10, 20, 30), (1, 2)
    wide = (9 << 100).to_bytes(16, "little")
    got = launch(
        text, np.zeros(64), value.tobytes(), -3, np.float16(1.5), 1, value.tobytes(), wide, b"\x80\x3f", target=target
    )[0]
    expected = 5 + 0.25 + np.where(N % 3 == 1, 77, 20) - 3 + 1.5 + 1 + 9 + 1
    np.testing.assert_array_equal(got, expected)


def test_local_arrays_and_constants() -> None:
    text = """%array = alloca [16 x i32], align 16
  br label %fill
fill:
  %k = phi i32 [ 0, %work ], [ %k1, %fill ]
  %at = getelementptr [16 x i32], ptr %array, i32 0, i32 %k
  %value = mul i32 %k, %a
  store i32 %value, ptr %at
  %k1 = add i32 %k, 1
  %more = icmp ult i32 %k1, 16
  br i1 %more, label %fill, label %pick
pick:
  %w = and i32 %a, 15
  %to = getelementptr [16 x i32], ptr %array, i32 0, i32 %w
  %x = load i32, ptr %to
  %tp = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %w4
  %y = load i32, ptr addrspace(4) %tp
  %g = load ptr addrspace(1), ptr addrspace(1) @pointer
  %z = load i32, ptr addrspace(1) %g
  %xy = add i32 %x, %y
  %d = add i32 %xy, %z"""
    declare = """@table = internal addrspace(4) constant [4 x i32] [i32 100, i32 200, i32 300, i32 400]
@numbers = internal addrspace(1) global [2 x i32] [i32 1000000, i32 2000000]
@pointer = internal addrspace(1) global ptr addrspace(1) getelementptr ([2 x i32], ptr addrspace(1) @numbers, i32 0, i32 1)
"""  # noqa: E501
    text = (
        text.replace("%array = alloca", "%w4 = and i32 %a, 3\n  %array = alloca")
        .replace("%to =", "%px =")
        .replace("ptr %to\n", "ptr %px\n")
    )
    expected = (N & 15) * N + 100 * (1 + (N & 3)) + 2_000_000
    np.testing.assert_array_equal(each(text, N, out=np.int32, declare=declare), expected)


# intrinsics and calls


def test_warp_intrinsics() -> None:
    declare = """declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare {i32, i1} @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.activemask()
"""
    rows = N.reshape(-1, 32)
    shifted = np.concatenate([rows[:, 3:], rows[:, 29:]], axis=1).reshape(-1)
    for text, expected in (
        ("%d = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %a, i32 3, i32 31)", shifted),
        (("%s = call {i32, i1} @llvm.nvvm.shfl.sync.up.i32p(i32 -1, i32 %a, i32 5, i32 0)\n"
          "%o = extractvalue {i32, i1} %s, 1\n%v = extractvalue {i32, i1} %s, 0\n%d = select i1 %o, i32 %v, i32 -1"),
          np.where(N % 32 >= 5, N - 5, -1)),
        (("%f = sitofp i32 %a to float\n%s = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 16, "
          "i32 31)\n%d = fptosi float %s to i32"), N ^ 16),
        ("%p = icmp slt i32 %a, 40\n%d = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %p)",
         np.where(N < 32, -1, 255)),
        ("%p = icmp eq i32 %a, 40\n%q = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %p)\n%d = zext i1 %q to i32",
         (N >= 32).astype(np.int32)),
        ("call void @llvm.nvvm.bar.warp.sync(i32 -1)\n%d = call i32 @llvm.nvvm.redux.sync.add(i32 %a, i32 -1)",
         np.repeat(rows.sum(1), 32)),
        ("%m = and i32 %a, 3\n%d = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %m)",
         (0x1111_1111 << (N & 3)).astype(np.uint32).view(np.int32)),
        ("%l = call i32 @llvm.nvvm.read.ptx.sreg.laneid()\n%m = call i32 @llvm.nvvm.activemask()\n%d = add i32 %m, %l",
         N % 32 - 1),
    ):  # fmt: skip
        np.testing.assert_array_equal(each(text, N, out=np.int32, declare=declare), expected, text)


def test_float_intrinsics() -> None:
    declare = """declare float @llvm.nvvm.ex2.approx.f(float)
declare float @llvm.nvvm.lg2.approx.f(float)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
declare float @llvm.nvvm.fma.rz.f(float, float, float)
declare float @llvm.nvvm.fmax.nan.f(float, float)
declare float @llvm.nvvm.fmin.ftz.f(float, float)
declare float @llvm.nvvm.sqrt.rn.f(float)
declare float @llvm.nvvm.saturate.f(float)
declare float @llvm.exp2.f32(float)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare float @llvm.nvvm.add.rp.f(float, float)
"""
    x = RANDOM.uniform(0.1, 20, 64).astype(np.float32)
    wide = x.astype(np.float64)
    for text, expected in (
        ("%d = call float @llvm.nvvm.ex2.approx.f(float %a)", 2**wide),
        ("%d = call float @llvm.nvvm.lg2.approx.f(float %a)", np.log2(wide)),
        ("%d = call float @llvm.nvvm.rcp.approx.ftz.f(float %a)", 1 / wide),
        ("%d = call float @llvm.nvvm.sqrt.rn.f(float %a)", np.sqrt(wide)),
        ("%d = call float @llvm.nvvm.saturate.f(float %a)", np.minimum(wide, 1)),
        ("%d = call float @llvm.exp2.f32(float %a)", 2**wide),
        ("%d = call float @llvm.nvvm.fmax.nan.f(float %a, float 5.0)", np.maximum(wide, 5)),
        ("%d = call float @llvm.nvvm.fmin.ftz.f(float %a, float 5.0)", np.minimum(wide, 5)),
        ("%d = call float @llvm.nvvm.fma.rz.f(float %a, float %a, float 1.0)", wide * wide + 1),
        ("%d = call float @llvm.nvvm.add.rp.f(float %a, float 3.0)", wide + 3),
        ("%d = fdiv afn float 1.0, %a", 1 / wide),
        ("%s = fcmp ogt float %a, 1.0e1\n%d = select i1 %s, float %a, float -1.0", np.where(wide > 10, wide, -1)),
        ("%s = call i32 @llvm.fptosi.sat.i32.f32(float %a)\n%d = sitofp i32 %s to float", np.trunc(wide)),
        ("%s = fpext float %a to double\n%e = fmul double %s, 1.5\n%d = fptrunc double %e to float", wide * 1.5),
        ("%s = fptoui float %a to i64\n%d = uitofp i64 %s to float", np.trunc(wide)),
    ):  # fmt: skip
        np.testing.assert_allclose(each(text, x, out=np.float32, declare=declare), expected, rtol=1e-6, err_msg=text)


CALLEES = """
%Pair = type { i32, double, [2 x i16] }
define internal %Pair @pair(i32 %x, i8 signext %y, i1 zeroext %z, <2 x float> %w) noinline {
  %first = extractelement <2 x float> %w, i32 1
  %wide = fpext float %first to double
  %s = sext i8 %y to i32
  %t = add i32 %x, %s
  %u = zext i1 %z to i32
  %v = add i32 %t, %u
  %short = trunc i32 %v to i16
  %r0 = insertvalue %Pair undef, i32 %v, 0
  %r1 = insertvalue %Pair %r0, double %wide, 1
  %r2 = insertvalue %Pair %r1, i16 %short, 2, 1
  ret %Pair %r2
}
define internal void @through(ptr byval(%Pair) align 8 %p, ptr %out) noinline {
  %q = getelementptr %Pair, ptr %p, i32 0, i32 2, i32 1
  %v = load i16, ptr %q
  %n = mul i16 %v, 3
  store i16 %n, ptr %q
  %m = load i16, ptr %q
  %w = zext i16 %m to i32
  store i32 %w, ptr %out
  ret void
}
define internal i32 @depth(i32 %n, ptr %above) noinline {
entry:
  %mine = alloca i32
  store i32 %n, ptr %mine
  %done = icmp sle i32 %n, 0
  br i1 %done, label %end, label %more
more:
  %m = sub i32 %n, 1
  %below = call i32 @depth(i32 %m, ptr %mine)
  %again = load volatile i32, ptr %mine
  %up = load volatile i32, ptr %above
  %s = add i32 %below, %again
  %x = xor i32 %s, %up
  ret i32 %x
end:
  ret i32 1
}
"""


def test_calls_with_structures() -> None:
    text = """%y = trunc i32 %a to i8
  %z = icmp ugt i32 %a, 30
  %f = sitofp i32 %a to float
  %w0 = insertelement <2 x float> undef, float 1.0, i32 0
  %w = insertelement <2 x float> %w0, float %f, i32 1
  %box = alloca %Pair, align 8
  %result = alloca i32
  br i1 %z, label %left, label %right
left:
  %p = call %Pair @pair(i32 1000, i8 signext %y, i1 zeroext %z, <2 x float> %w)
  store %Pair %p, ptr %box, align 8
  call void @through(ptr byval(%Pair) align 8 %box, ptr %result)
  %l = load i32, ptr %result
  br label %join
right:
  %p2 = call %Pair @pair(i32 %a, i8 signext -7, i1 zeroext %z, <2 x float> %w)
  %r0 = extractvalue %Pair %p2, 1
  %r = fptosi double %r0 to i32
  br label %join
join:
  %d = phi i32 [ %l, %left ], [ %r, %right ]"""
    np.testing.assert_array_equal(each(text, N, out=np.int32, declare=CALLEES), np.where(N > 30, 3 * (1001 + N), N))


def test_recursion_has_its_own_local_memory() -> None:
    text = """%top = alloca i32
  store i32 9, ptr %top
  %n = and i32 %a, 7
  %d = call i32 @depth(i32 %n, ptr %top)"""

    def depth(n: int, above: int) -> int:
        return 1 if n <= 0 else (depth(n - 1, n) + n) ^ above

    np.testing.assert_array_equal(each(text, N, out=np.int32, declare=CALLEES), [depth(int(n) & 7, 9) for n in N])


# assembly


def test_assembly_with_scopes() -> None:
    text = """%x = call i32 asm "{ .reg .b32 t; .reg .pred p; setp.lt.u32 p, $1, 10; mov.u32 t, 5; @p bra L; mov.u32 t, 6; L: add.u32 $0, t, $1; }", "=r,r"(i32 %a)
  %y = call i32 asm "{ .reg .b32 t; .reg .pred p; setp.lt.u32 p, $1, 20; mov.u32 t, 50; @p bra L; mov.u32 t, 60; L: add.u32 $0, t, $1; }", "=r,r"(i32 %x)
  %p = icmp ugt i32 %a, 50
  %z = call i32 asm "{ .reg .b32 t<3>; { .reg .b32 t1; mov.b32 t1, 7; mov.b32 t2, t1; } mov.b32 t1, 100; @!$2 mov.b32 t1, 200; add.u32 $0, t1, t2; add.u32 $0, $0, $1; }", "=&r,r,b"(i32 %y, i1 %p)
  %two = call {i32, i32} asm "mov.b64 {$0, $1}, $2;", "=r,=r,l"(i64 4294967299)
  %e = extractvalue {i32, i32} %two, 0
  %g = extractvalue {i32, i32} %two, 1
  %h = add i32 %z, %e
  %d = add i32 %h, %g"""  # noqa: E501
    x = N + np.where(N < 10, 5, 6)
    y = x + np.where(x < 20, 50, 60)
    np.testing.assert_array_equal(each(text, N, out=np.int32), y + np.where(N > 50, 107, 207) + 3 + 1)


def test_recursion_without_end_is_an_error() -> None:
    text = (
        "%top = alloca i32\n  store i32 9, ptr %top\n  %n = add i32 %a, 1000\n  %d = call i32 @depth(i32 %n, ptr %top)"
    )
    with pytest.raises(EmulatorError, match=r"calls are nested more than \d+ deep"):
        each(text, N, out=np.int32, declare=CALLEES)
