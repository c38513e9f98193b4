"""`ttg.warp_specialize` as PTX in the checking emulator: right code is clean, and every mistake in it is found."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.emulator_fixture import emulator
from tests.targets.gpu_text import launch, ptx_of
from tests.transforms.warp_specialized_kernels import blocks
from tilework import knobs
from tilework.errors import PassError
from tilework.oracles.emulator.check import CheckFailed
from tilework.targets.nvidia import ptx_text
from tilework.tools.tensor_descriptor import TensorDescriptor

HEAD = """
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#two = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 1], order = [0, 1]}>
#row = #ttg.slice<{dim = 0, parent = #two}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
"""  # noqa: E501
BAR, BARS = (f"!ttg.memdesc<{shape}xi64, #one, #smem, mutable>" for shape in ("1", "2x1"))
TILE, RING = (f"!ttg.memdesc<{shape}16x64xf16, #nv, #smem, mutable>" for shape in ("", "2x"))


def made(bars: str, count: int) -> str:
    """An array of two barriers for so many arrivals."""
    return f"""
 %{bars} = ttg.local_alloc : () -> {BARS}
 %{bars}0 = ttg.memdesc_index %{bars}[%c0] : {BARS} -> {BAR}
 ttng.init_barrier %{bars}0, {count} : {BAR}
 %{bars}1 = ttg.memdesc_index %{bars}[%c1] : {BARS} -> {BAR}
 ttng.init_barrier %{bars}1, {count} : {BAR}"""


def slot(index: str) -> str:
    """Return the slot of a round in a ring buffer of two, and its phase."""
    return f"""
   %k = arith.andi {index}, %u1 : i32
   %h = arith.shrsi {index}, %u1 : i32
   %ph = arith.andi %h, %u1 : i32"""


# y = scale * x: the default region copies tiles by TMA, the partition computes. `scale` is loaded in front of the op.
STREAM = f"""{HEAD}
tt.func public @kernel(%x: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %y: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %scale: !tt.ptr<f16>, %count: !tt.ptr<i32>, %n: i32) {{
 %c0 = arith.constant 0 : i32
 %c1 = arith.constant 1 : i32{made("full", 1)}{made("empty", 4)}
 %ring = ttg.local_alloc : () -> {RING}
 %f = tt.load %scale : !tt.ptr<f16>
 %done = ttg.warp_specialize(%y, %f, %n, %full, %empty, %ring) attributes {{requestedRegisters = array<i32: 232>}}
 default {{
  %u1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %bytes = arith.constant 128 : i64
  %true = arith.constant true
  %rows = arith.muli %n, %c16 : i32
  %place = ttg.global_scratch_alloc {{alignment = 128 : i32, nbytes = 128 : i32}} : !tt.ptr<i8>
  ttng.tensormap_create %place, %x, [%c64, %c16], [%c64, %rows], [%bytes], [%c1, %c1] {{elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
  ttng.tensormap_fenceproxy_acquire %place : !tt.ptr<i8>
  %d = ttng.reinterpret_tensor_descriptor %place : !tt.ptr<i8> to !tt.tensordesc<tensor<16x64xf16, #nv>>
  scf.for %i = %c0 to %n step %c1 : i32 {{{slot("%i")}
   %inverted = arith.xori %ph, %u1 : i32
   %e = ttg.memdesc_index %empty[%k] : {BARS} -> {BAR}
   ttng.wait_barrier %e, %inverted : {BAR}
   %b = ttg.memdesc_index %full[%k] : {BARS} -> {BAR}
   ttng.barrier_expect %b, 2048, %true : {BAR}
   %m = ttg.memdesc_index %ring[%k] : {RING} -> {TILE}
   %row = arith.muli %i, %c16 : i32
   ttng.async_tma_copy_global_to_local %d[%row, %c0] %m, %b, %true : !tt.tensordesc<tensor<16x64xf16, #nv>>, {BAR} -> {TILE}
  }}
  ttg.warp_yield %n : i32
 }}
 partition0(%to: !tt.ptr<f16>, %g: f16, %m: i32, %ready: {BARS}, %free: {BARS}, %tiles: {RING}) num_warps(4) {{
  %z = arith.constant 0 : i32
  %u1 = arith.constant 1 : i32
  %c1024 = arith.constant 1024 : i32
  %r0 = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = #b}}>>
  %r1 = tt.expand_dims %r0 {{axis = 1 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = #b}}>> -> tensor<16x1xi32, #b>
  %c64 = arith.constant dense<64> : tensor<16x1xi32, #b>
  %r2 = arith.muli %r1, %c64 : tensor<16x1xi32, #b>
  %r3 = tt.broadcast %r2 : tensor<16x1xi32, #b> -> tensor<16x64xi32, #b>
  %l0 = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #b}}>>
  %l1 = tt.expand_dims %l0 {{axis = 0 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #b}}>> -> tensor<1x64xi32, #b>
  %l2 = tt.broadcast %l1 : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
  %at = arith.addi %r3, %l2 : tensor<16x64xi32, #b>
  %factor = tt.splat %g : f16 -> tensor<16x64xf16, #b>
  scf.for %j = %z to %m step %u1 : i32 {{{slot("%j")}
   %b = ttg.memdesc_index %ready[%k] : {BARS} -> {BAR}
   ttng.wait_barrier %b, %ph : {BAR}
   %t = ttg.memdesc_index %tiles[%k] : {RING} -> {TILE}
   %v = ttg.local_load %t : {TILE} -> tensor<16x64xf16, #b>
   %e = ttg.memdesc_index %free[%k] : {BARS} -> {BAR}
   ttng.arrive_barrier %e, 4 : {BAR}
   %w = arith.mulf %v, %factor : tensor<16x64xf16, #b>
   %start = arith.muli %j, %c1024 : i32
   %own = tt.addptr %to, %start : !tt.ptr<f16>, i32
   %p0 = tt.splat %own : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #b>
   %p = tt.addptr %p0, %at : tensor<16x64x!tt.ptr<f16>, #b>, tensor<16x64xi32, #b>
   tt.store %p, %w : tensor<16x64x!tt.ptr<f16>, #b>
  }}
  ttg.warp_return
 }} : (!tt.ptr<f16>, f16, i32, {BARS}, {BARS}, {RING}) -> i32
 tt.store %count, %done : !tt.ptr<i32>
 tt.return
}}
}}
"""  # noqa: E501


def stream(text: str, tiles: int) -> str:
    x = np.random.default_rng(0).standard_normal((tiles * 16, 64)).astype(np.float16)
    y, scale, count = np.zeros_like(x), np.array([3], np.float16), np.zeros(1, np.int32)
    ptx = ptx_of(text, 90)
    launch(ptx, "kernel", [x, y, scale, count, tiles], 8)
    assert np.array_equal(y, x * np.float16(3)) and count[0] == tiles
    return ptx


def test_a_producer_and_a_consumer() -> None:
    """The first warp of the producer waits and copies alone; registers go to the consumer and come back."""
    ptx = stream(STREAM, 5)
    assert ptx_text.entries(ptx)["kernel"] == {"reqntid": (256,), "maxnreg": (248,)}
    assert ptx_text.metadata(ptx)["num_warps"] == 8
    assert re.findall(r"barrier\.sync\s+1, 256", ptx) and not re.findall(r"bar\.sync\s+0;", ptx)
    producer = ptx[ptx.index("expect_tx") :]
    assert "bar.sync" not in producer[: producer.index("bra")]
    assert len(re.findall("mbarrier.arrive.shared::cta.b64", ptx)) == 1  # a lane of each warp, behind no barrier


def test_registers_are_given_up_before_warps_meet_again() -> None:
    """A partition waits for those of the default region, which has to wait for it at the barrier behind passed
    values."""
    ptx = stream(STREAM.replace("module attributes {", "module attributes {ttg.maxnreg = 168 : i32, "), 2)
    assert "setmaxnreg.inc.sync.aligned.u32 \t232" in ptx and ptx_text.entries(ptx)["kernel"]["maxnreg"] == (168,)


WAIT = rf" *ttng\.wait_barrier %b, %ph : {re.escape(BAR)}\n"
FOUND = "used before its wait|race|uninitialised shared memory"
MISTAKES: dict[str, tuple[str, str, str]] = {
    "missing wait": (WAIT, "", FOUND),
    "wrong phase": (r"wait_barrier %b, %ph", "wait_barrier %b, %z", f"{FOUND}|all threads wait"),
    "released too early": (r"( *%v = ttg.local_load.*\n)((?:.*\n)*?)( *%w = arith.mulf)", r"\2\1\3", FOUND),
    "no release": (
        r" *ttng.arrive_barrier.*\n",
        "",
        r"does not happen \(also threads 32-127 at .*threads 0-31 at PTX line",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    old, new, words = MISTAKES[mistake]
    wrong, count = re.subn(old, new, STREAM)
    assert count == 1
    with pytest.raises(CheckFailed, match=words):
        stream(wrong, 3)


# Partitions of two warps and of one, in a loop: out[i] = {sum of 0..127 + i, then what partition 0 sums up, i}
LOOP = f"""{HEAD}
tt.func public @kernel(%out: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
 %c0 = arith.constant 0 : i32
 %c1 = arith.constant 1 : i32
 %c64 = arith.constant 64 : i32
 %c33 = arith.constant 33 : i32
 scf.for %i = %c0 to %n step %c1 : i32 {{
  %base = arith.muli %i, %c64 : i32
  %own = tt.addptr %out, %base : !tt.ptr<i32>, i32
  %first = tt.load %own : !tt.ptr<i32>
  %sum = ttg.warp_specialize(%own, %i, %first) attributes {{requestedRegisters = array<i32: 24, 24>}}
  default {{
   %r = tt.make_range {{start = 0 : i32, end = 128 : i32}} : tensor<128xi32, #line>
   %s = "tt.reduce"(%r) <{{axis = 0 : i32}}> ({{
   ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
   }}) : (tensor<128xi32, #line>) -> i32
   %t = arith.addi %s, %i : i32
   ttg.warp_yield %t : i32
  }}
  partition0(%to: !tt.ptr<i32>, %j: i32, %z: i32) num_warps(2) {{
   %x = tt.splat %j : i32 -> tensor<16x32xi32, #two>
   %s = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{
   ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
   }}) : (tensor<16x32xi32, #two>) -> tensor<32xi32, #row>
   %l = tt.make_range {{start = 1 : i32, end = 33 : i32}} : tensor<32xi32, #row>
   %v = arith.addi %s, %l : tensor<32xi32, #row>
   %p0 = tt.splat %to : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #row>
   %p = tt.addptr %p0, %l : tensor<32x!tt.ptr<i32>, #row>, tensor<32xi32, #row>
   tt.store %p, %v : tensor<32x!tt.ptr<i32>, #row>
   ttg.warp_return
  }}
  partition1(%to: !tt.ptr<i32>, %j: i32, %z: i32) num_warps(1) {{
   %c33_1 = arith.constant 33 : i32
   %p = tt.addptr %to, %c33_1 : !tt.ptr<i32>, i32
   %v = arith.addi %j, %z : i32
   tt.store %p, %v : !tt.ptr<i32>
   ttg.warp_return
  }} : (!tt.ptr<i32>, i32, i32) -> i32
  tt.store %own, %sum : !tt.ptr<i32>
 }}
 tt.return
}}
}}
""".replace("#line", "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>")


def test_an_op_that_runs_often_and_groups_of_several_sizes() -> None:
    out = np.full((3, 64), 7, np.int32)
    ptx = ptx_of(LOOP, 90)
    launch(ptx, "kernel", [out, 3], 8)
    for i, row in enumerate(out):
        assert row[0] == sum(range(128)) + i and row[33] == i + 7 and (row[34:] == 7).all()
        assert (row[1:33] == 16 * i + np.arange(1, 33)).all()
    assert re.search(r"bar\.sync\s+2, 64", ptx) and "setmaxnreg" in ptx


# Shared memory that is written in front of the op and read in its regions, by other threads than those that wrote it;
# in a loop it is written again behind the op. out[0] is what the default region reads, out[1] what the partition does.
CROSSING = f"""{HEAD}
tt.func public @kernel(%x: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %n: i32) {{
 %c0 = arith.constant 0 : i32
 %c1 = arith.constant 1 : i32
 %tile = ttg.local_alloc : () -> {TILE}
 LOOP
 %s = tt.splat %x : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #b>
 OFFSETS#b_
 %p = tt.addptr %s, %at_ : tensor<16x64x!tt.ptr<f16>, #b>, tensor<16x64xi32, #b>
 %v = tt.load %p : tensor<16x64x!tt.ptr<f16>, #b>
 ttg.local_store %v, %tile : tensor<16x64xf16, #b> -> {TILE}
 ttg.warp_specialize(%out, %tile)
 default {{
  OFFSETS#t_1
  %w = ttg.local_load %tile : {TILE} -> tensor<16x64xf16, #t>
  %q = tt.splat %out : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #t>
  %r = tt.addptr %q, %at_1 : tensor<16x64x!tt.ptr<f16>, #t>, tensor<16x64xi32, #t>
  tt.store %r, %w : tensor<16x64x!tt.ptr<f16>, #t>
  ttg.warp_yield
 }}
 partition0(%to: !tt.ptr<f16>, %from: {TILE}) num_warps(4) {{
  %c1024 = arith.constant 1024 : i32
  OFFSETS#t_2
  %w = ttg.local_load %from : {TILE} -> tensor<16x64xf16, #t>
  %second = tt.addptr %to, %c1024 : !tt.ptr<f16>, i32
  %q = tt.splat %second : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #t>
  %r = tt.addptr %q, %at_2 : tensor<16x64x!tt.ptr<f16>, #t>, tensor<16x64xi32, #t>
  tt.store %r, %w : tensor<16x64x!tt.ptr<f16>, #t>
  ttg.warp_return
 }} : (!tt.ptr<f16>, {TILE}) -> ()
 END
 tt.return
}}
}}
"""  # noqa: E501
ACROSS = "#t = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [2, 16], warpsPerCTA = [1, 4], order = [0, 1]}>\n"
OFFSETS = """%c64{1} = arith.constant dense<64> : tensor<16x1xi32, {0}>
  %r0{1} = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = {0}}}>>
  %r1{1} = tt.expand_dims %r0{1} {{axis = 1 : i32}} : tensor<16xi32, #ttg.slice<{{dim = 1, parent = {0}}}>> -> tensor<16x1xi32, {0}>
  %r2{1} = arith.muli %r1{1}, %c64{1} : tensor<16x1xi32, {0}>
  %r3{1} = tt.broadcast %r2{1} : tensor<16x1xi32, {0}> -> tensor<16x64xi32, {0}>
  %l0{1} = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = {0}}}>>
  %l1{1} = tt.expand_dims %l0{1} {{axis = 0 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = {0}}}>> -> tensor<1x64xi32, {0}>
  %l2{1} = tt.broadcast %l1{1} : tensor<1x64xi32, {0}> -> tensor<16x64xi32, {0}>
  %at{1} = arith.addi %r3{1}, %l2{1} : tensor<16x64xi32, {0}>"""  # noqa: E501
CROSSINGS = {  # around the op: nothing, a use of the memory behind it, a loop
    "once": ("", ""),
    "once, and written behind": ("", f"ttg.local_store %v, %tile : tensor<16x64xf16, #b> -> {TILE}"),
    "in a loop": ("scf.for %i = %c0 to %n step %c1 : i32 {", "}"),
}


def crossing(around: str) -> str:
    start, end = CROSSINGS[around]
    text = CROSSING.replace("LOOP", start).replace("END", end).replace("#two =", f"{ACROSS}#two =")
    return re.sub(r"OFFSETS(#\w)(\w+)", lambda found: OFFSETS.format(found[1], found[2]), text)


def copied_twice(ptx: str) -> bool:
    x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float16)
    out = np.zeros((2, 16, 64), np.float16)
    launch(ptx, "kernel", [x, out, 3], 8)
    return bool((out == x).all())


def problem_of(ptx: str) -> str:
    try:
        copied_twice(ptx)
    except CheckFailed as error:
        return str(error)
    return ""


@pytest.mark.parametrize("around", CROSSINGS)
def test_memory_that_is_written_in_front_is_read_inside(around: str) -> None:
    """All warps meet where the op begins and ends, so neither region needs a barrier of its own at its start. The check
    would see it: where warps do not wait for each other in one of these meetings there is a race."""
    ptx = ptx_of(crossing(around), 90)
    assert copied_twice(ptx)
    meetings = list(re.finditer(r"barrier\.sync(?=\s+1, 256;)", ptx))
    found = [problem_of(f"{ptx[: meeting.start()]}barrier.arrive{ptx[meeting.end() :]}") for meeting in meetings]
    assert any("race" in problem for problem in found), found


def test_a_kernel_that_asks_is_launched_with_all_its_warps(tmp_path: Path) -> None:
    """From Python to the launcher: two consumers, a ring that wraps around, and tiles that stick out of the arrays."""
    a, b = (np.random.default_rng(1).integers(-3, 4, (rows, 80)).astype(np.float16) for rows in (120, 24))
    c = np.full((120, 24), 7, np.float16)
    shapes = ((128, 16), (32, 16), (128, 32))
    given = [TensorDescriptor.from_tensor(array, list(shape)) for array, shape in zip((a, b, c), shapes, strict=True)]
    with emulator("sm_90", str(tmp_path)), knobs.nvidia.scope():
        knobs.nvidia.warp_specialize = "1"
        kernel = blocks[(1, 1)](*given, 120, 24, 80, BM=128, BN=32, BK=16, STAGES=2, num_warps=4)
    assert kernel.metadata.num_warps == 12
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_what_cannot_be_compiled() -> None:
    greedy = STREAM.replace("requestedRegisters = array<i32: 232>", "actualRegisters = array<i32: 168, 232>")
    with pytest.raises(PassError, match=r"partitions that want \[168, 232\] registers, of which there are 168"):
        ptx_of(greedy.replace("module attributes {", "module attributes {ttg.maxnreg = 168 : i32, "), 90)
    with pytest.raises(PassError, match="a captured value of type tensor"):
        text = STREAM.replace(
            "%f = tt.load %scale : !tt.ptr<f16>", "%f = arith.constant dense<0.0> : tensor<16x64xf16, #b>"
        )
        text = text.replace("%g: f16", "%g: tensor<16x64xf16, #b>").replace(
            "f16, i32, !ttg", "tensor<16x64xf16, #b>, i32, !ttg"
        )
        ptx_of(
            text.replace("tt.splat %g : f16 -> tensor<16x64xf16, #b>", "arith.addf %g, %g : tensor<16x64xf16, #b>"), 90
        )
