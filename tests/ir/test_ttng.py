"""Every `ttng` op: read, built with `make`; and what each verifier refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Dialect, Operation

from tests.ir.ttg_cases import problem
from tilework.ir import ttng
from tilework.ir.enums import CacheModifier, DescriptorReduceKind, EvictionPolicy, InputPrecision
from tilework.ir.locations import file_loc
from tilework.ir.parser import parse_module
from tilework.ir.ttng import TTNG
from tilework.ir.verify import first_problem

HERE = Path(__file__).parent
LOC = file_loc("k.py", 1, 2)


def ops_of(dialect: Dialect) -> list[Operation]:
    """The ops of `dialect` in the module with every op."""
    module = parse_module((HERE / "ttg_ops.mlir").read_text())
    assert first_problem(module) is None
    return [op for op in module.walk() if type(op) in set(dialect.operations)]


MAKES: dict[type[Operation], Callable[[Any], Operation]] = {
    ttng.ArriveBarrierOp: lambda op: ttng.ArriveBarrierOp.make(op.alloc, 2, op.pred, LOC),
    ttng.AsyncCopyMbarrierArriveOp: lambda op: ttng.AsyncCopyMbarrierArriveOp.make(op.barrier, LOC, True),
    ttng.AsyncTMACopyGlobalToLocalOp: lambda op: ttng.AsyncTMACopyGlobalToLocalOp.make(
        op.desc,
        op.coord,
        op.offsets,
        op.barrier,
        op.dst,
        op.pred,
        LOC,
        cache=CacheModifier(op.cache.value.data),
        evict=EvictionPolicy(op.evict.value.data),
        is_volatile=op.is_volatile.value.data != 0,
        multicast=op.multicast is not None,
    ),
    ttng.AsyncTMACopyLocalToGlobalOp: lambda op: ttng.AsyncTMACopyLocalToGlobalOp.make(op.desc, op.coord, op.src, LOC),
    ttng.AsyncTMAGatherOp: lambda op: ttng.AsyncTMAGatherOp.make(
        op.desc, op.x_offsets, op.y_offset, op.barrier, op.dst, op.pred, LOC
    ),
    ttng.AsyncTMAReduceOp: lambda op: ttng.AsyncTMAReduceOp.make(
        DescriptorReduceKind.ADD, op.desc, op.coord, op.src, LOC
    ),
    ttng.AsyncTMAScatterOp: lambda op: ttng.AsyncTMAScatterOp.make(op.desc, op.x_offsets, op.y_offset, op.src, LOC),
    ttng.AsyncTMAStoreWaitOp: lambda op: ttng.AsyncTMAStoreWaitOp.make(1, LOC),
    ttng.BarrierExpectOp: lambda op: ttng.BarrierExpectOp.make(op.alloc, 8192, op.pred, LOC),
    ttng.ClusterArriveOp: lambda op: ttng.ClusterArriveOp.make(False, LOC),
    ttng.ClusterWaitOp: lambda op: ttng.ClusterWaitOp.make(LOC),
    ttng.FenceMbarrierInitReleaseClusterOp: lambda op: ttng.FenceMbarrierInitReleaseClusterOp.make(LOC),
    ttng.FenceAsyncSharedOp: lambda op: ttng.FenceAsyncSharedOp.make(False, LOC),
    ttng.PingPongSignalOp: lambda op: ttng.PingPongSignalOp.make(op.barriers, LOC),
    ttng.InitBarrierOp: lambda op: ttng.InitBarrierOp.make(op.alloc, 1, LOC),
    ttng.InvalBarrierOp: lambda op: ttng.InvalBarrierOp.make(op.alloc, LOC),
    ttng.ReinterpretTensorDescOp: lambda op: ttng.ReinterpretTensorDescOp.make(op.raw_desc, op.result.type, LOC),
    ttng.PingPongWaitOp: lambda op: ttng.PingPongWaitOp.make(op.barriers, op.phase, LOC),
    ttng.TensormapCreateOp: lambda op: ttng.TensormapCreateOp.make(
        op.desc_ptr,
        op.global_address,
        op.box_dim,
        op.global_dim,
        op.global_stride,
        op.element_stride,
        3,
        0,
        2,
        0,
        LOC,
    ),
    ttng.TensormapFenceproxyAcquireOp: lambda op: ttng.TensormapFenceproxyAcquireOp.make(op.desc_ptr, LOC),
    ttng.WaitBarrierOp: lambda op: ttng.WaitBarrierOp.make(op.alloc, op.phase, op.pred, op.deps, LOC),
    ttng.WarpGroupDotOp: lambda op: ttng.WarpGroupDotOp.make(
        op.a,
        op.b,
        op.c,
        op.use_c,
        LOC,
        input_precision=InputPrecision(op.input_precision.value.data),
        max_num_imprecise_acc=op.max_num_imprecise_acc.value.data,
        is_async=op.is_async.value.data != 0,
    ),
    ttng.WarpGroupDotWaitOp: lambda op: ttng.WarpGroupDotWaitOp.make(op.inputs, 1, LOC),
}


def test_every_op_is_built_as_it_is_read() -> None:
    ops = ops_of(TTNG)
    assert {type(op) for op in ops} == set(MAKES) == set(TTNG.operations)
    for op in ops:
        made = MAKES[type(op)](op)
        assert made.location == LOC
        assert made.is_structurally_equivalent(op), (str(made), str(op))
        made.drop_all_references()


NXI64 = "barrier allocation must be a descriptor of Nxi64 type with N <= number of CTAs"
COPY = "ttng.async_tma_copy_global_to_local"
BAR = "!ttg.memdesc<1xi64, #bar, #smem, mutable>"
TILE = "!ttg.memdesc<64x64xf16, #nv, #smem, mutable>"
IM2COL = "!ttng.tensordesc_im2col<tensor<64x64xf16, #nv>>"
BAD = [
    (NXI64,
     "%b: !ttg.memdesc<2xi64, #bar, #smem, mutable>",
     "ttng.init_barrier %b, 1 : !ttg.memdesc<2xi64, #bar, #smem, mutable>"),
    (NXI64,
     "%b: !ttg.memdesc<3x1xi64, #bar, #smem, mutable>",
     "ttng.inval_barrier %b : !ttg.memdesc<3x1xi64, #bar, #smem, mutable>"),
    *(("requires ttg.num-ctas > 1", "", f"ttng.{op}{rest}") for op, rest in (
        ("cluster_arrive", " {relaxed = false}"), ("cluster_wait", ""), ("fence_mbarrier_init_release_cluster", ""),
    )),
    ("TensorDescIm2ColType requires rank-2 blockType, got rank 1",
     "%d: !ttng.tensordesc_im2col<tensor<64xf16>>", ""),
    *((message,
       f"%d: {type}, %m: {TILE}, %b: {BAR}, %p: i1, %i: i32, %o: i16",
       f"{COPY} %d[{coordinates}]{offsets} %m, %b, %p : {type}, {BAR} -> {TILE}")
      for message, type, coordinates, offsets in (
        ("TILED mode does not support offsets", "!tt.tensordesc<tensor<64x64xf16, #nv>>", "%i, %i", " offsets = [%o]"),
        ("IM2COL mode requires at least 3D coordinates, but got 2D", IM2COL, "%i, %i", ""),
        ("IM2COL mode requires offsets to be provided", IM2COL, "%i, %i, %i", ""),
        ("IM2COL mode with 4D coordinates requires 2 offsets, but got 1", IM2COL, "%i, %i, %i, %i", " offsets = [%o]"),
    )),
    ("operand 'desc' must be a tensor descriptor", f"%d: {IM2COL}, %m: {TILE}, %i: i32",
     f"ttng.async_tma_copy_local_to_global %d[%i, %i] %m : {IM2COL}, {TILE}"),
    ("operand 'alloc' must be memory of i64, a barrier",
     "%b: !ttg.memdesc<1xi32, #bar, #smem, mutable>",
     "ttng.init_barrier %b, 1 : !ttg.memdesc<1xi32, #bar, #smem, mutable>"),
    ("count must be greater than or equal to 1",
     "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>",
     "ttng.arrive_barrier %b, 0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>"),
    ("WGMMA A operand must have NVMMA shared or dot layout",
     "%a: tensor<64x64xf16, #blocked>, %b: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, #mma3>",
     ("%d = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #blocked> * !ttg.memdesc<64x64xf16, #nv, #smem> "
      "-> tensor<64x64xf32, #mma3>")),
    ("WGMMA result layout must be Hopper NVMMA",
     "%a: !ttg.memdesc<64x64xf16, #nv, #smem>, %b: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, #mma2>",
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nv, #smem> * !ttg.memdesc<64x64xf16, #nv, "
      "#smem> -> tensor<64x64xf32, #mma2>")),
    ("WGMMA A operand must have NVMMA shared or dot layout",
     ("%a: !ttg.memdesc<64x64xf16, #shared, #smem>, %b: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, "
      "#mma3>"),
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, "
      "#nv, #smem> -> tensor<64x64xf32, #mma3>")),
    ("WGMMA result M dimension must be divisible by 64",
     "%a: !ttg.memdesc<32x64xf16, #nv, #smem>, %b: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<32x64xf32, #mma3>",
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<32x64xf16, #nv, #smem> * !ttg.memdesc<64x64xf16, #nv, "
      "#smem> -> tensor<32x64xf32, #mma3>")),
    (("the last dimension of the first operand to be equal to the second-to-last dimension of the second "
      "operand: 128, 64"),
     "%a: !ttg.memdesc<64x128xf16, #nv, #smem>, %b: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, #mma3>",
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x128xf16, #nv, #smem> * !ttg.memdesc<64x64xf16, #nv, "
      "#smem> -> tensor<64x64xf32, #mma3>")),
    ("in-register LHS operand must have a kWidth of 2 but got 4",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma3, kWidth = 4}>>, %b: !ttg.memdesc<64x64xf16, "
      "#nv, #smem>, %c: tensor<64x64xf32, #mma3>"),
     ("%d = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma3, "
      "kWidth = 4}>> * !ttg.memdesc<64x64xf16, #nv, #smem> -> tensor<64x64xf32, #mma3>")),
    ("Cannot use F32 as the accumulator element type when the max_num_imprecise_acc is less than 32",
     ("%a: !ttg.memdesc<64x64xf8E5M2, #nv8, #smem>, %b: !ttg.memdesc<64x64xf8E5M2, #nv8, #smem>, "
      "%c: tensor<64x64xf32, #mma3>"),
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf8E5M2, #nv8, #smem> * !ttg.memdesc<64x64xf8E5M2, "
      "#nv8, #smem> -> tensor<64x64xf32, #mma3>")),
    ("expected to be waiting on at least one dependency",
     "",
     '"ttng.warp_group_dot_wait"() <{pendings = 0 : i32}> : () -> ()'),
    ("Cannot store into immutable memory",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xf16, #nv, #smem>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nv, #smem>")),
    ("TMA copies must have between 1 and 5 coordinates",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xf16, #nv, #smem, mutable>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[] %m, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>")),
    ("TMA copies must have between 1 and 5 coordinates",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xf16, #nv, #smem, mutable>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[%i, %i, %i, %i, %i, %i] %m, %b, %p "
      ": !tt.tensordesc<tensor<64x64xf16, #nv>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> "
      "-> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>")),
    ("TMA result must have NVMMA shared layout",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>")),
    ("does not fit",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<32x128xf16, #nv, #smem, mutable>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<32x128xf16, #nv, #smem, mutable>")),
    ("a tensormap has at least one dimension",
     "%p: !tt.ptr<i8>",
     ("ttng.tensormap_create %p, %p, [], [], [], [] {elem_type = 3 : i32, fill_mode = 0 : i32, "
      "interleave_layout = 0 : i32, swizzle_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>) -> ()")),
    ("Rank mismatch for global dim. Got 0 but expected 1",
     "%p: !tt.ptr<i8>, %i: i32",
     ("ttng.tensormap_create %p, %p, [%i], [], [], [%i] {elem_type = 3 : i32, fill_mode = 0 : i32, "
      "interleave_layout = 0 : i32, swizzle_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32) -> ()")),
    ("Rank mismatch for global stride. Got 2 but expected 0",
     "%p: !tt.ptr<i8>, %i: i32, %l: i64",
     ("ttng.tensormap_create %p, %p, [%i], [%i], [%l, %l], [%i] {elem_type = 3 : i32, fill_mode = 0 : i32, "
      "interleave_layout = 0 : i32, swizzle_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i64, i64, i32) "
      "-> ()")),
    ("elem_type must be between 0 and 15",
     "%p: !tt.ptr<i8>, %i: i32, %l: i64",
     ("ttng.tensormap_create %p, %p, [%i], [%i], [], [%i] {elem_type = 16 : i32, fill_mode = 0 : i32, "
      "interleave_layout = 0 : i32, swizzle_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()")),
    ("ttng.warp_group_dot with an accumulator of",
     "%a: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, #mma3>",
     ('%d = "ttng.warp_group_dot"(%a, %a, %c) : (!ttg.memdesc<64x64xf16, #nv, #smem>, !ttg.memdesc<64x64xf16, #nv, '
      '#smem>, tensor<64x64xf32, #mma3>) -> tensor<64x64xf16, #mma3>')),
    ("WGMMA result N dimension must be divisible by 8",
     "%a: !ttg.memdesc<64x64xf16, #nv, #smem>, %b: !ttg.memdesc<64x4xf16, #nv0, #smem>, %c: tensor<64x4xf32, #mma3>",
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nv, #smem> * !ttg.memdesc<64x4xf16, #nv0, "
      "#smem> -> tensor<64x4xf32, #mma3>")),
    ("Cannot use warp_group_dot when the warps per group are not 4",
     "%a: !ttg.memdesc<64x64xf16, #nv, #smem>, %c: tensor<64x64xf32, #mma3w>",
     ("%d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #nv, #smem> * !ttg.memdesc<64x64xf16, #nv, "
      "#smem> -> tensor<64x64xf32, #mma3w>")),
    ("WGMMA B operand must have NVMMA shared layout",
     ("%a: !ttg.memdesc<64x64xf16, #nv, #smem>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>, %c: tensor<64x64xf32, "
      "#mma3>"),
     ("%d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16, #nv, #smem> * !ttg.memdesc<64x64xf16, "
      "#shared, #smem> -> tensor<64x64xf32, #mma3>")),
    ("WGMMA A operand must be an operand of the result's layout",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: !ttg.memdesc<64x64xf16, "
      "#nv, #smem>, %c: tensor<64x64xf32, #mma3>"),
     ("%d = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, "
      "kWidth = 2}>> * !ttg.memdesc<64x64xf16, #nv, #smem> -> tensor<64x64xf32, #mma3>")),
    ("ttng.warp_group_dot_wait of",
     "%a: !ttg.memdesc<64x64xf16, #nv, #smem>",
     ('%d = "ttng.warp_group_dot_wait"(%a) <{pendings = 0 : i32}> : (!ttg.memdesc<64x64xf16, #nv, #smem>) '
      '-> tensor<64x64xf32, #mma3>')),
    ("descriptor block and tensor element types must match, but got descriptor element type 'f16' and tensor element "
     "type 'bf16'",
     "%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xbf16, #nv, #smem>, %i: i32",
     ("ttng.async_tma_copy_local_to_global %d[%i, %i] %m : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<64x64xbf16, #nv, #smem>")),
    ("must have at least 8 rows",
     ("%d: !tt.tensordesc<tensor<1x64xf16, #nv>>, %m: !ttg.memdesc<4x64xf16, #nv, #smem>, %i: i32, "
      "%x: tensor<4xi32, #line>"),
     ("ttng.async_tma_scatter %d[%x, %i] %m : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<4xi32, #line>, i32, "
      "!ttg.memdesc<4x64xf16, #nv, #smem>")),
    ("Expected ','",
     ("%d: !tt.tensordesc<tensor<1x64xf16, #nv>>, %m: !ttg.memdesc<8x64xf16, #nv, #smem>, %i: i32, "
      "%x: tensor<8xi32, #line>"),
     ("ttng.async_tma_gather %d[%x, %i] %m : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<8xi32, #line>, i32, "
      "!ttg.memdesc<8x64xf16, #nv, #smem>")),
    ("cannot store into immutable memory",
     ("%d: !tt.tensordesc<tensor<1x64xf16, #nv>>, %m: !ttg.memdesc<8x64xf16, #nv, #smem>, %i: i32, "
      "%x: tensor<8xi32, #line>, %b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1"),
     ("ttng.async_tma_gather %d[%x, %i] %m, %b, %p : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<8xi32, #line>, "
      "i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<8x64xf16, #nv, #smem>, i1")),
]  # fmt: skip
GOOD = [
    ("bar_imm",
     "%b: !ttg.memdesc<1xi64, #bar, #smem>",
     "ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #bar, #smem>"),
    ("tma_n1",
     ("%d: !tt.tensordesc<tensor<64x64xf16, #nv>>, %m: !ttg.memdesc<64x64xf16, #nv, #smem, mutable>, "
      "%b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %p: i1, %i: i32"),
     ("ttng.async_tma_copy_global_to_local %d[%i] %m, %b, %p : !tt.tensordesc<tensor<64x64xf16, #nv>>, "
      "!ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "arguments", "body"), BAD, ids=[f"{i}-{case[0][:50]}" for i, case in enumerate(BAD)]
)
def test_the_message(message: str, arguments: str, body: str) -> None:
    found = problem(arguments, body)
    assert found is not None and message in found, found


@pytest.mark.parametrize(("arguments", "body"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_what_is_allowed(arguments: str, body: str) -> None:
    assert problem(arguments, body) is None
