"""LLVM text for AMD GPUs on the emulator, form by form: what each intrinsic does with lanes, and which mistakes are
found."""

from typing import Any

import numpy as np
import pytest

from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.emulator.syntax import EmulatorError, Trapped

LANES = np.arange(64, dtype=np.uint32)
HEAD = """
@lds = external addrspace(3) global [0 x i8], align 16
@table = internal unnamed_addr addrspace(4) constant [4 x i32] [i32 10, i32 11, i32 12, i32 13], align 4
%pair = type { i8, i32 }
define internal i32 @triple(i32 %x) {
  %y = mul i32 %x, 3
  ret i32 %y
}
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %at = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %even.0 = and i32 %i, 1
  %even = icmp eq i32 %even.0, 0
  %l = getelementptr i32, ptr addrspace(3) @lds, i32 %i
"""
BARRIER = """
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
"""


def execute(body: str, arch: str = "gfx942", threads: int = 64, result: str = "i32 %r", **options: Any) -> Any:
    """Return the values that the threads store which run the body."""
    text = f"{HEAD}{body}\n  store {result}, ptr addrspace(1) %at, align 4\n  ret void\n}}\n"
    out = np.full(threads, 0xAAAAAAAA, np.uint32)
    run(
        text,
        [out, np.arange(threads, dtype=np.uint32)],
        1,
        threads,
        options.pop("lds_bytes", 4 * threads),
        arch,
        **options,
    )
    return out


def call(name: str, arguments: str, kind: str = "i32") -> str:
    return f"  %r = call {kind} @llvm.{name}({arguments})"


def xor(mask: int) -> Any:
    return LANES ^ mask


def dpp(control: int, old: str = "i32 99", rows: int = 15, banks: int = 15, bound: str = "false") -> str:
    return call("amdgcn.update.dpp.i32", f"{old}, i32 %i, i32 {control}, i32 {rows}, i32 {banks}, i1 {bound}")


FORMS: dict[str, tuple[str, Any]] = {
    "quad": (dpp(0xB1), xor(1)),
    "row_shl": (dpp(0x101), np.where(LANES % 16 < 15, LANES + 1, 99)),
    "row_shr": (dpp(0x112, bound="true"), np.where(LANES % 16 >= 2, LANES - 2, 0)),
    "row_ror": (dpp(0x121), LANES // 16 * 16 + (LANES - 1) % 16),
    "mirror": (dpp(0x140), LANES // 16 * 16 + 15 - LANES % 16),
    "banks": (dpp(0x114, banks=10), np.where(LANES // 4 % 2 == 1, LANES - 4, 99)),
    "bcast15": (dpp(0x142, rows=10), np.where(LANES // 16 % 2 == 1, LANES // 16 * 16 - 1, 99)),
    "bcast31": (dpp(0x143), np.where(LANES >= 32, 31, 99)),
    "swizzle": (call("amdgcn.ds.swizzle", "i32 %i, i32 16415"), xor(16)),
    "swizzle quad": (call("amdgcn.ds.swizzle", "i32 %i, i32 32945"), xor(1)),
    "readlane": (call("amdgcn.readlane.i32", "i32 %i, i32 5"), 5 + 0 * LANES),
    "readfirstlane": (call("amdgcn.readfirstlane.i32", "i32 %i"), 0 * LANES),
    "bpermute": ("  %a = xor i32 %i, 33\n  %b = shl i32 %a, 2\n" + call("amdgcn.ds.bpermute", "i32 %b, i32 %i"),
                 xor(33)),
    "permute": ("  %a = add i32 %i, 1\n  %b = shl i32 %a, 2\n" + call("amdgcn.ds.permute", "i32 %b, i32 %i"),
                (LANES - 1) % 64),
    "ballot": ("  %b = call i64 @llvm.amdgcn.ballot.i64(i1 %even)\n  %r = trunc i64 %b to i32", 0x55555555 + 0 * LANES),
    "mbcnt": (
        "  %a = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)\n" + call("amdgcn.mbcnt.hi", "i32 -1, i32 %a"),
        LANES,
    ),
    "swap32": (
        "  %n = sub i32 0, %i\n  %s = call { i32, i32 } @llvm.amdgcn.permlane32.swap(i32 %i, i32 %n, i1 false, "
        "i1 false)\n"
        "  %r = extractvalue { i32, i32 } %s, 0",
        np.where(LANES < 32, LANES, 32 - LANES),
    ),
    "perm": (call("amdgcn.perm", "i32 287454020, i32 1432778632, i32 67306756"), 0x44553344 + 0 * LANES),
    "switch": (
        "  switch i32 %i, label %d [\n    i32 3, label %a\n    i32 5, label %b\n  ]\na:\n  br label %j\nb:\n"
        "  br label %j\nd:\n  br label %j\n"
        "j:\n  %r = phi i32 [ 7, %a ], [ 8, %b ], [ 9, %d ]",
        np.where(LANES == 3, 7, np.where(LANES == 5, 8, 9)),
    ),
    "loop": (
        "  br label %loop\nloop:\n  %n = phi i32 [ 0, %entry ], [ %m, %loop ]\n"
        "  %s = phi i32 [ 0, %entry ], [ %t, %loop ]\n"
        "  %m = add i32 %n, 1\n  %t = add i32 %s, %n\n  %c = icmp ult i32 %n, %i\n"
        "  br i1 %c, label %loop, label %done\n"
        "done:\n  %r = phi i32 [ %t, %loop ]",
        LANES * (LANES + 1) // 2,
    ),
    "function": ("  %r = call i32 @triple(i32 %i)", LANES * 3),
    "table": (
        "  %w = and i32 %i, 3\n  %p = getelementptr [4 x i32], ptr addrspace(4) @table, i64 0, i32 %w\n"
        "  %r = load i32, ptr addrspace(4) %p, align 4",
        10 + LANES % 4,
    ),
    "stack": (
        "  %s = alloca %pair, align 4, addrspace(5)\n  %p = getelementptr %pair, ptr addrspace(5) %s, i32 0, i32 1\n"
        "  store i32 %i, ptr addrspace(5) %p, align 4\n  %r = load i32, ptr addrspace(5) %p, align 4",
        LANES,
    ),
    "flat": (
        "  store i32 %i, ptr addrspace(3) %l, align 4\n  %f = addrspacecast ptr addrspace(3) %l to ptr\n"
        "  %r = load i32, ptr %f, align 4",
        LANES,
    ),
    "wide": (
        "  %a = zext i32 %i to i128\n  %b = shl i128 %a, 100\n  %c = lshr i128 %b, 99\n  %r = trunc i128 %c to i32",
        (LANES * 2) % (1 << 29),
    ),
    "signed": ("  %n = sub i32 3, %i\n  %r = sdiv i32 %n, 2", np.trunc((3 - LANES.astype(np.int64)) / 2)),
    "saturating": (call("usub.sat.i32", "i32 %i, i32 9"), np.maximum(LANES.astype(np.int64) - 9, 0)),
    "vector": (
        "  %v = insertelement <2 x i32> poison, i32 %i, i32 0\n"
        "  %w = shufflevector <2 x i32> %v, <2 x i32> poison, <2 x i32> zeroinitializer\n"
        "  %x = add <2 x i32> %w, <i32 1, i32 2>\n  %y = bitcast <2 x i32> %x to i64\n  %z = lshr i64 %y, 32\n"
        "  %r = trunc i64 %z to i32",
        LANES + 2,
    ),
    "dynamic element": (
        ("  %v = insertelement <2 x i32> zeroinitializer, i32 %i, i32 %even.0\n"
         "  %r = extractelement <2 x i32> %v, i32 1"),
        np.where(LANES % 2, LANES, 0),
    ),
    "bf16": (
        "  %f = uitofp i32 %i to float\n  %g = fdiv float %f, 3.000000e+00\n  %h = fptrunc float %g to bfloat\n"
        "  %w = fpext bfloat %h to float\n"
        "  %m = fmul float %w, 3.000000e+00\n  %o = call float @llvm.rint.f32(float %m)\n  %r = fptoui float %o to i32",
        LANES,
    ),
    "frexp": (
        "  %f = uitofp i32 %i to float\n  %m = call float @llvm.amdgcn.frexp.mant.f32(float %f)\n"
        "  %n = fmul float %m, 1.024000e+03\n"
        "  %o = fptoui float %n to i32\n  %e = call i32 @llvm.amdgcn.frexp.exp.i32.f32(float %f)\n"
        "  %r = add i32 %o, %e",
        1024 * np.frexp(LANES.astype(float))[0] + np.frexp(LANES.astype(float))[1],
    ),
    "fp8 fnuz": (
        "  call void @llvm.amdgcn.s.setreg(i32 1473, i32 1)\n"
        "  %p = call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float 1.000000e+00, float 1.000000e+09, i32 0, i1 false)\n"
        "  %q = call <2 x float> @llvm.amdgcn.cvt.pk.f32.fp8(i32 %p, i1 false)\n"
        "  %e = extractelement <2 x float> %q, i64 1\n"
        "  %r = fptoui float %e to i32",
        240 + 0 * LANES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_form(name: str) -> None:
    body, expected = FORMS[name]
    assert execute(body).view(np.int32).tolist() == np.asarray(expected).astype(np.int64).astype(np.int32).tolist()


def test_rows_of_waves_of_32() -> None:
    body = call("amdgcn.permlanex16.i32", "i32 %i, i32 %i, i32 1985229328, i32 -19088744, i1 true, i1 false")
    assert execute(body, "gfx1100").tolist() == xor(16).tolist()


def found(body: str, **options: Any) -> list[str]:
    """Return the findings as texts, with their kinds."""
    with pytest.raises(CheckFailed) as caught:
        execute(body, **options)
    return [f"{finding.kind}: {finding.what.partition(': ')[2]}" for finding in caught.value.findings]


STORE, LOAD = "  store i32 %i, ptr addrspace(3) %l, align 4\n", "  %r = load i32, ptr addrspace(3) %m, align 4\n"
OTHER = "  %a = xor i32 %i, 64\n  %m = getelementptr i32, ptr addrspace(3) @lds, i32 %a\n"


def test_order_in_lds() -> None:
    assert execute(STORE + BARRIER + OTHER + LOAD, threads=128).tolist() == (np.arange(128) ^ 64).tolist()
    (race,) = found(STORE + OTHER + LOAD, threads=128)
    assert race == "race: reads LDS address 0x100, which wave 1 wrote, and nothing orders the two"
    unwaited = STORE + "  call void @llvm.amdgcn.s.barrier()\n" + OTHER + LOAD
    assert "barrier without its wait" in found(unwaited, threads=128)[0]
    same = STORE + "  %m = getelementptr i8, ptr addrspace(3) @lds, i32 8\n  %n = xor i32 %i, 3\n" + LOAD
    assert execute(same, threads=64)[0] == 2  # lanes of a wave go in step
    both = "  %r = add i32 %i, 1\n  store i32 %r, ptr addrspace(3) @lds, align 4"
    assert found(both)[0].startswith("race: writes LDS address 0x0 together with another thread")


def test_bad_accesses() -> None:
    far = "  %m = getelementptr i32, ptr addrspace(3) @lds, i32 64\n" + STORE + LOAD
    assert found(far) == ["bad access: 4 bytes at LDS address 0x100 are outside of its 256 bytes"]
    odd = STORE + "  %m = getelementptr i8, ptr addrspace(3) @lds, i32 2\n" + LOAD
    assert found(odd) == ["bad access: LDS address 0x2 is not a multiple of 4"]
    buffer = (
        "  %b = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %in, i16 0, i64 {0}, "
        "i32 159744)\n"
    ) + (
        "  %o = shl i32 %i, {1}\n  %r = call i32 @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) %b, "
        "i32 %o, i32 0, i32 0)"
    )
    assert execute(buffer.format(128, 2)).tolist() == np.where(LANES < 32, LANES, 0).tolist()
    assert "bad access: 4 bytes at" in found(buffer.format(2147483646, 3))[0]
    assert found(buffer.format(256, 27)) == ["bad access: the offset -2013265920 of a buffer is negative"]


def test_undefined_values() -> None:
    assert found(OTHER.replace("64", "1") + LOAD) == [
        "undefined value: what is stored depends on LDS that was never written"
    ]
    assert found("  %r = add i32 %i, poison") == ["undefined value: what is stored depends on undef or poison"]
    assert execute("  %u = add i32 %i, poison\n  %r = select i1 true, i32 %i, i32 %u").tolist() == LANES.tolist()
    shift = (
        "  %s = shl i32 1, %i\n  %c = icmp eq i32 %s, 4\n  br i1 %c, label %a, label %b\na:\n  br label %b\n"
        "b:\n  %r = add i32 %i, 0"
    )
    assert found(shift) == ["undefined value: a branch depends on a shift by too much, or a division by zero"]
    asleep = (
        "  br i1 %even, label %a, label %b\na:\n"
        + dpp(0xB1).replace("%r", "%s")
        + "\n  br label %b\nb:\n  %r = phi i32 [ %s, %a ], [ 1, %entry ]"
    )
    assert found(asleep) == ["undefined value: what is stored depends on a lane that is not active"]


def test_broken_assumption() -> None:
    assert found("  call void @llvm.assume(i1 %even)\n  %r = add i32 %i, 0")[0].startswith("broken assumption")
    execute("  %c = icmp ult i32 %i, 64\n  call void @llvm.assume(i1 %c)\n  %r = add i32 %i, 0")


def test_divergent_code() -> None:
    half = (
        "  br i1 %even, label %a, label %b\na:\n  call void @llvm.amdgcn.s.barrier()\n  br label %b\nb:\n"
        "  %r = add i32 %i, 0"
    )
    assert "barrier in divergent code: lane 1 of wave 0 is elsewhere" in found(half)[0]
    wave = (
        "  %c = icmp ult i32 %i, 64\n  br i1 %c, label %a, label %b\na:\n  call void @llvm.amdgcn.s.barrier()\n"
        "  br label %b\nb:\n  %r = add i32 %i, 0"
    )
    assert found(wave, threads=128)[0].startswith("barrier that not all reach: wave 1 has ended")
    matrix = (
        "  br i1 %even, label %a, label %b\na:\n  %m = call <4 x float> "
        "@llvm.amdgcn.mfma.f32.16x16x4f32(float 1.0, float 1.0, <4 x float> zeroinitializer, i32 0, i32 0, "
        "i32 0)\n  br label %b\nb:\n  %r = add i32 %i, 0"
    )
    assert "divergent matrix instruction" in found(matrix)[0]


CALLS = f"""  br label %loop
loop:
  %n = phi i32 [ 0, %entry ], [ %next, %join ]
  %sum = phi i32 [ 0, %entry ], [ %more, %join ]
{BARRIER}
  br i1 %even, label %alone, label %join
alone:
  %t = call i32 @triple(i32 %i)
  br label %join
join:
  %p = phi i32 [ %t, %alone ], [ 1, %loop ]
  %more = add i32 %sum, %p
  %next = add i32 %n, 1
  %again = icmp ult i32 %next, 2
  br i1 %again, label %loop, label %end
end:
  %r = add i32 %more, 0"""


def test_lanes_that_call_a_function_on_their_own_are_waited_for() -> None:
    assert execute(CALLS).tolist() == np.where(LANES % 2, 2, 6 * LANES).tolist()


def test_errors_say_where() -> None:
    with pytest.raises(EmulatorError, match=r"LLVM line \d+: llvm.amdgcn.unknown is not supported"):
        execute("  %r = call i32 @llvm.amdgcn.unknown()")
    with pytest.raises(Trapped, match=r"a trap \(workgroup \(0, 0, 0\)\)"):
        execute("  call void @llvm.trap()\n  %r = add i32 %i, 0")
    with pytest.raises(EmulatorError, match=r"LLVM line 16: nonsense is not known"):
        execute("  %r = nonsense i32 %i")
    with pytest.raises(EmulatorError, match="is a loop endless"):
        execute("  br label %a\na:\n  br label %a\nb:\n  %r = add i32 %i, 0", max_instructions=100)
