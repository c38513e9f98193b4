"""Every `ttg` op: read, built with `make`, printed; and what each verifier refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Dialect, Operation

from tests.ir.ttg_cases import M, module_text, problem
from tilework.ir import ttg
from tilework.ir.effects import is_pure, is_speculatable, reads, writes
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.locations import file_loc
from tilework.ir.module_facts import MissingFact, num_ctas, num_warps, target, threads_per_warp
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.ttg import TTG
from tilework.ir.types import f16, i32_array, shape_of
from tilework.ir.verify import first_problem
from tilework.layouts.encodings import SwizzledShared
from tilework.target import Target

HERE = Path(__file__).parent
LOC = file_loc("k.py", 1, 2)


def ops_of(dialect: Dialect) -> list[Operation]:
    """The ops of `dialect` in the module with every op."""
    module = parse_module((HERE / "ttg_ops.mlir").read_text())
    assert first_problem(module) is None
    return [op for op in module.walk() if type(op) in set(dialect.operations)]


MAKES: dict[type[Operation], Callable[[Any], Operation]] = {
    ttg.AsyncCommitGroupOp: lambda op: ttg.AsyncCommitGroupOp.make(op.tokens, LOC),
    ttg.AsyncCopyGlobalToLocalOp: lambda op: ttg.AsyncCopyGlobalToLocalOp.make(
        op.src,
        op.dst,
        op.mask,
        op.other,
        LOC,
        cache=CacheModifier.CG,
        evict=EvictionPolicy.LAST,
        is_volatile=True,
        contiguity=4,
    ),
    ttg.AsyncWaitOp: lambda op: ttg.AsyncWaitOp.make(op.tokens, op.num.value.data, LOC),
    ttg.ConvertLayoutOp: lambda op: ttg.ConvertLayoutOp.make(op.src, op.result.type, LOC),
    ttg.FetchOp: lambda op: ttg.FetchOp.make(op.src, op.mask, LOC),
    ttg.Fp4ToFpOp: lambda op: ttg.Fp4ToFpOp.make(op.src, 1, op.result.type, LOC),
    ttg.GlobalScratchAllocOp: lambda op: ttg.GlobalScratchAllocOp.make(256, 16, LOC, backend=op.backend.data),
    ttg.LocalAllocOp: lambda op: ttg.LocalAllocOp.make(op.src, op.result.type, LOC, op.alignment and 16),
    ttg.BarrierOp: lambda op: ttg.BarrierOp.make(op.addr_space.value.data, LOC),
    ttg.LocalDeallocOp: lambda op: ttg.LocalDeallocOp.make(op.src, LOC),
    ttg.LocalDotOp: lambda op: ttg.LocalDotOp.make(op.a, op.b, op.c, LOC),
    ttg.LocalGatherOp: lambda op: ttg.LocalGatherOp.make(
        op.src, op.indices, op.token, op.axis.value.data, op.result.type, LOC
    ),
    ttg.LocalScatterOp: lambda op: ttg.LocalScatterOp.make(
        op.dst, op.indices, op.values, op.token, op.axis.value.data, LOC
    ),
    ttg.LocalLoadOp: lambda op: ttg.LocalLoadOp.make(op.src, op.result.type, LOC, op.token),
    ttg.LocalStoreOp: lambda op: ttg.LocalStoreOp.make(op.src, op.dst, LOC),
    ttg.MaskOp: lambda op: ttg.MaskOp.make(op.pred, [op.result[0].type], op.body.clone(), LOC),
    ttg.MaskReturnOp: lambda op: ttg.MaskReturnOp.make(op.operands, LOC),
    ttg.MemDescIndexOp: lambda op: ttg.MemDescIndexOp.make(op.src, op.index, LOC),
    ttg.MemDescReinterpretOp: lambda op: ttg.MemDescReinterpretOp.make(op.src, op.result.type, LOC),
    ttg.MemDescReshapeOp: lambda op: ttg.MemDescReshapeOp.make(op.src, (2, 32, 64), LOC),
    ttg.MemDescSubsliceOp: lambda op: ttg.MemDescSubsliceOp.make(op.src, (0, 32), (64, 32), LOC),
    ttg.MemDescTransOp: lambda op: ttg.MemDescTransOp.make(op.src, (1, 0), LOC),
    ttg.PredicateStageOp: lambda op: ttg.PredicateStageOp.make(op.iv, op.ub, op.step, 3, 1, LOC),
    ttg.WarpIdOp: lambda op: ttg.WarpIdOp.make(LOC, "omitUniformHint" in op.properties),
    ttg.WarpReturnOp: lambda op: ttg.WarpReturnOp.make(LOC),
    ttg.WarpSpecializeOp: lambda op: with_registers(
        ttg.WarpSpecializeOp.make(
            op.captures, [op.result[0].type], (4, 1), op.default_region.clone(), [r.clone() for r in op.partitions], LOC
        )
    ),
    ttg.WarpSpecializePartitionsOp: lambda op: ttg.WarpSpecializePartitionsOp.make(
        [r.clone() for r in op.regions], LOC
    ),
    ttg.WarpYieldOp: lambda op: ttg.WarpYieldOp.make(op.values, LOC),
}


def with_registers(op: Operation) -> Operation:
    op.properties["requestedRegisters"] = i32_array(24, 32)
    return op


def test_every_op_is_built_as_it_is_read() -> None:
    ops = ops_of(TTG)
    assert {type(op) for op in ops} == set(MAKES) == set(TTG.operations)
    for op in ops:
        made = MAKES[type(op)](op)
        assert made.location == LOC
        assert made.is_structurally_equivalent(op), (str(made), str(op))
        made.drop_all_references()


def test_the_text_of_every_op_is_stable() -> None:
    module = parse_module((HERE / "ttg_ops.mlir").read_text())
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    for op in module.walk():
        assert str(op)


def test_memory_types_are_interned() -> None:
    encoding = SwizzledShared(8, 1, 8, (1, 0))
    type = ttg.memdesc_type((3, 64, 64), f16, encoding, mutable=True)
    assert type is ttg.memdesc_type((3, 64, 64), f16, encoding, mutable=True)
    assert (shape_of(type), type.alloc_dims, type.is_mutable) == ((3, 64, 64), (3, 64, 64), True)


def test_what_ops_do_to_memory() -> None:
    named = {op.name: op for op in ops_of(TTG)}
    load, store, wait = named["ttg.local_load"], named["ttg.local_store"], named["ttg.async_wait"]
    assert reads(load) and not writes(load) and not is_pure(load)
    assert writes(store) and not reads(store)
    assert reads(wait) and writes(wait)
    for name in ("convert_layout", "memdesc_index", "memdesc_trans", "memdesc_subslice", "predicate_stage"):
        assert is_pure(named[f"ttg.{name}"]) and is_speculatable(named[f"ttg.{name}"])


def test_memory_that_is_never_written_again_is_a_value() -> None:
    allocs = [op for op in ops_of(TTG) if isinstance(op, ttg.LocalAllocOp)]
    value = next(op for op in allocs if op.src is not None)
    buffer = next(op for op in allocs if op.src is None)
    assert is_pure(value) and is_speculatable(value) and not writes(value)
    assert not is_pure(buffer) and not is_speculatable(buffer) and not reads(buffer) and not writes(buffer)
    value.attributes["allocation.offset"] = i32_array(0)
    assert not is_pure(value) and writes(value)


@pytest.mark.parametrize(("type", "message"), [
    ("1xi64, #bar2, #smem, mutable", "Layout has tensor size at least 2, but the memdesc type has 1 elements."),
    ("3x1xi64, #bar2, #smem, mutable", "Layout has tensor size at least 2, but the memdesc type has 1 elements."),
    ("3x2xi64, #bar2, #smem, mutable", None),
    ("1xi64, #bar2, #smem, mutable, 2", None),
    ("64x64xf16, #plain, #smem", "Layout has 1 CTAs per CGA, but the context requires 2 CTAs per CGA."),
])  # fmt: skip
def test_memory_of_a_cluster(type: str, message: str | None) -> None:
    text = module_text(f"%x: {M}<{type}>", f"ttg.local_dealloc %x : {M}<{type}>")
    found = first_problem(parse_module(text.replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')))
    assert found is None if message is None else found is not None and message in found[1], found


def test_the_default_backend_of_scratch_memory_is_not_printed() -> None:
    op = '%x = ttg.global_scratch_alloc {alignment = 16 : i32, backend = "BACKEND", nbytes = 64 : i32} : !tt.ptr<i8>'
    own, default = (
        print_module(parse_module(module_text("", op.replace("BACKEND", name)))) for name in ("p", "default")
    )
    assert op.replace("BACKEND", "p") in own
    assert op.replace('backend = "BACKEND", ', "") in default


def test_facts_of_a_module() -> None:
    module = parse_module((HERE / "ttg_ops.mlir").read_text())
    assert (num_warps(module), num_ctas(module), threads_per_warp(module), target(module)) == (
        4,
        1,
        32,
        Target.parse("cuda:90"),
    )
    ends = [op for op in module.walk() if isinstance(op, ttg.WarpReturnOp)]
    assert [num_warps(op) for op in ends] == [4, 1]
    plain = parse_module("tt.func @f() { tt.return }")
    assert (num_ctas(plain), threads_per_warp(plain)) == (1, 32)
    with pytest.raises(MissingFact, match=r"ttg\.num-warps"):
        num_warps(plain)
    with pytest.raises(MissingFact, match=r"ttg\.target"):
        target(plain)


def test_old_names_are_read() -> None:
    text = module_text(f"%m: {M}<64x64xf16, #shared, #smem>", f"ttg.local_dealloc %m : {M}<64x64xf16, #shared, #smem>")
    old = text.replace("ttg.", "triton_gpu.").replace("#triton_gpu.swizzled_shared", "#triton_gpu.shared")
    assert print_module(parse_module(old)) == print_module(parse_module(text))


GATHER, SCATTER = (
    f"{op} {{axis = AXIS : i32}}" for op in ("%r = ttg.local_gather %m[%i]", "ttg.local_scatter %m[%i], %v")
)
I32, F16 = "tensor<64x64xi32, #blocked>", "tensor<64x64xf16, #blocked>"
INDEXED = [
    ("result shape must match indices shape", GATHER, "tensor<32x64xi32, #blocked>", F16, "0", ""),
    ("result element type must match source element type", GATHER, I32, "tensor<64x64xf32, #blocked>", "0", ""),
    ("source and indices must have the same rank", GATHER, "tensor<64xi32, #line>", "tensor<64xf16, #line>", "0", ""),
    ("axis 2 is out of bounds for source rank 2", GATHER, I32, F16, "2", ""),
    ("axis 4294967295 is out of bounds for source rank 2", GATHER, I32, F16, "-1", ""),
    ("indices and result must have the same layout", GATHER, "tensor<64x64xi32, #blockedT>", F16, "0", ""),
    ("operand 'indices' must be a tensor of integers", GATHER, F16, F16, "0", ""),
    ("indices of dimension 1 reach 128, but the source has 64 elements", GATHER, "tensor<64x128xi32, #blocked>",
     "tensor<64x128xf16, #blocked>", "0", ""),
    ("values shape must match indices shape", SCATTER, "tensor<32x64xi32, #blocked>", F16, "0", ", mutable"),
    ("values element type must match destination element type", SCATTER, I32, "tensor<64x64xf32, #blocked>", "0",
     ", mutable"),
    ("destination and indices must have the same rank", SCATTER, "tensor<64xi32, #line>", "tensor<64xf16, #line>", "0",
     ", mutable"),
    ("axis 2 is out of bounds for destination rank 2", SCATTER, I32, F16, "2", ", mutable"),
    ("values must have the same layout as indices", SCATTER, "tensor<64x64xi32, #blockedT>", F16, "0", ", mutable"),
    ("Cannot store into immutable memory", SCATTER, I32, F16, "0", ""),
]  # fmt: skip
BAD = [
    ("rank 0 memdesc is not allowed",
     "%x: !ttg.memdesc<f16, #bar, #smem>",
     ""),
    ("shape has 0 dimension",
     "%x: !ttg.memdesc<0x4xf16, #plain, #smem>",
     ""),
    ("block shape along the contiguous dimension 1 is too small for the swizzle byte size 128 in an "
     "NVMMASharedLayout, got 32 but expected at least 64",
     "%x: !ttg.memdesc<2x64x32xf16, #nv, #smem>",
     ""),
    ("block shape along the contiguous dimension 0 is too small for the swizzle byte size 128 in an "
     "NVMMASharedLayout, got 32 but expected at least 64",
     "%x: !ttg.memdesc<32x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, "
     "elementBitWidth = 16}>, #smem>",
     ""),
    ("Mismatch in expected shape for dimension 0. Expected: 8, got: 4",
     "%x: !ttg.memdesc<8xf16, #ttg.shared_linear<{offset = [[1], [2]]}, alignment = 16>, #smem>",
     ""),
    ("Mismatch in expected shape for dimension 0. Expected: 2, got: 4",
     "%x: !ttg.memdesc<2x4xf16, #ttg.padded_shared<[16:+4] {order = [1, 0], shape = [4, 4]}>, #smem>",
     ""),
    ("Operand 0 (!ttg.memdesc<64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], "
     "CGALayout = [[1]]}>, #ttg.shared_memory>) has an invalid layout: Layout has 2 CTAs per CGA, but the context "
     "requires 1 CTAs per CGA.",
     "%x: !ttg.memdesc<64xf16, #bar2, #smem>",
     "ttg.local_dealloc %x : !ttg.memdesc<64xf16, #bar2, #smem>"),
    ("shape must have power-of-2 and non-zero dimensions; got 3, 3",
     "%x: !ttg.memdesc<3x3xf16, #plain, #smem>",
     ""),
    ("memory holds floats, integers or pointers, not",
     "%x: !ttg.memdesc<64x64xindex, #plain, #smem>",
     ""),
    ("is not a permutation of the 2 dimensions of the layout",
     "%x: !ttg.memdesc<2x64x64xf16, #plain, #smem>",
     ("%r = ttg.memdesc_trans %x {order = array<i32: 0, 2, 1>} : !ttg.memdesc<2x64x64xf16, #plain, #smem> "
      "-> !ttg.memdesc<2x64x64xf16, #plain, #smem>")),
    ("alloc shape must have at least as many dimensions as shape",
     "%x: !ttg.memdesc<64x64xf16, #plain, #smem, 64>",
     ""),
    ("shape must be less than or equal to allocShape. shape = 64, 64, allocShape = 64, 32",
     "%x: !ttg.memdesc<64x64xf16, #plain, #smem, 64x32>",
     ""),
    ("is not a valid encoding",
     "%x: !ttg.memdesc<64x64xf16, #blocked, #smem>",
     ""),
    ("rank must be equal to or one less than the shape size. Got 1 and 3",
     "%x: !ttg.memdesc<64x64x64xf16, #bar, #smem>",
     ""),
    ("memorySpace must be SharedMemorySpace for shared encoding. Got 3 : i32",
     "%x: !ttg.memdesc<64x64xf16, #plain, 3 : i32>",
     ""),
    ("uninitialized alloc must have a mutable memdesc type",
     "",
     "%m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem>"),
    ("source shape [64, 64] must match [destination shape 64, 32]",
     "%x: tensor<64x64xf16, #blocked>",
     "%m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared, #smem>"),
    ("source element type 'f16' must match destination element type 'f32'",
     "%x: tensor<64x64xf16, #blocked>",
     "%m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf32, #shared, #smem>"),
    ("source has rank 2 but memdesc encoding has rank 1",
     "%x: tensor<64x64xf16, #blocked>",
     "%m = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #bar, #smem>"),
    ("result shape and its alloc shape must match",
     "",
     "%m = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable, 64x64>"),
    ("source shape [64, 64] must match [destination shape 64, 32]",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     "%x = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x32xf16, #blocked>"),
    ("source element type 'f16' must match destination element type 'f32'",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     "%x = ttg.local_load %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #blocked>"),
    ("ttg.local_dot of shapes (64, 64) and (64, 64) cannot give (64, 32)",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>, %x: tensor<64x32xf32, #blocked>",
     ("%d = ttg.local_dot %m, %m, %x : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, "
      "#smem> -> tensor<64x32xf32, #blocked>")),
    ("ttg.local_dot needs a blocked layout of its sums",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>, %x: tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>",
     ("%d = ttg.local_dot %m, %m, %x : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, "
      "#smem> -> tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>")),
    ("Cannot store into immutable memory",
     "%x: tensor<64x64xf16, #blocked>, %m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     "ttg.local_store %x, %m : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem>"),
    ("source shape [64, 64] must match [destination shape 64, 32]",
     "%x: tensor<64x64xf16, #blocked>, %m: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>",
     "ttg.local_store %x, %m : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>"),
    *(
        (message,
         f"%m: {M}<64x64xf16, #plain, #smem{mutable}>, %i: {indices}, %v: {values}",
         f"{op} : {M}<64x64xf16, #plain, #smem{mutable}>, {indices}{arrow} {values}".replace("AXIS", axis))
        for message, op, indices, values, axis, mutable in INDEXED
        for arrow in (" ->" if "gather" in op else ",",)
    ),
    ("result rank must be input rank - 1",
     "%m: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<3x64x64xf16, "
      "#shared, #smem>")),
    ("result shape must equal to srcShape[1:]",
     "%m: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#shared, #smem>")),
    ("result element type must match desc element type",
     "%m: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf32, "
      "#shared, #smem>")),
    ("result mutability must match source mutability",
     "%m: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, "
      "#shared, #smem, mutable>")),
    ("We don't support memdesc_index of a subview",
     "%m: !ttg.memdesc<2x64x64xf16, #shared, #smem, 4x64x64>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x64x64xf16, #shared, #smem, 4x64x64> "
      "-> !ttg.memdesc<64x64xf16, #shared, #smem>")),
    ("alloc shape must match shape for both result and src",
     "%m: !ttg.memdesc<2x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, "
      "#shared, #smem, 2x64x64>")),
    ("result rank must be input rank - 1",
     "%m: !ttg.memdesc<1xi64, #bar, #smem>, %i: i32",
     "%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<1xi64, #bar, #smem> -> !ttg.memdesc<1xi64, #bar, #smem>"),
    ("offsets must have the same rank as input",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#shared, #smem, 64x64>")),
    ("rank must be equal to or one less than the shape size. Got 2 and 1",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<32xf16, "
      "#shared, #smem, 64x64>")),
    ("src and result must have the same encoding",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#sharedT, #smem, 64x64>")),
    ("src and result must have the same alloc shape",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#shared, #smem>")),
    ("result shape cannot be larger than input shape at dimension 1: 64, 32",
     "%m: !ttg.memdesc<64x32xf16, #shared, #smem, 64x64>",
     ("%x = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<64x32xf16, #shared, #smem, 64x64> "
      "-> !ttg.memdesc<64x64xf16, #shared, #smem>")),
    ("A non zero offset found in a dimension that is not being split",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 32] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, "
      "#shared, #smem>")),
    ("The split offset may not touch the tile",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 8] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#shared, #smem, 64x64>")),
    ("dimension 1 has 64 elements, but 32 from 64 are taken",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 64] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, "
      "#shared, #smem, 64x64>")),
    ("We don't support splitting along the swizzling pattern",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[4, 0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<4x64xf16, "
      "#shared, #smem, 64x64>")),
    ("order must be a permutation of [0, ..., rank - 1]",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_trans %m {order = array<i32: 1, 1>} : !ttg.memdesc<64x64xf16, #shared, #smem> "
      "-> !ttg.memdesc<64x64xf16, #sharedT, #smem>")),
    ("cannot give",
     "%m: !ttg.memdesc<64x32xf16, #shared, #smem>",
     ("%x = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared, #smem> "
      "-> !ttg.memdesc<64x32xf16, #sharedT, #smem>")),
    ("inferred type(s)",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> "
      "-> !ttg.memdesc<64x64xf16, #shared, #smem>")),
    ("number of src and dst elements of reshape must be the same",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_reshape %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, #shared, "
      "#smem>")),
    ("inferred type(s)",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     "%x = ttg.memdesc_reshape %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<4096xf16, #bar, #smem>"),
    ("result element type must match desc element type",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     "%x = ttg.memdesc_reshape %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<4096xf32, #bar, #smem>"),
    ("memdesc_reshape of memdesc_subslice is not supported",
     "%m: !ttg.memdesc<64x32xf16, #plain, #smem, 64x64>",
     ("%x = ttg.memdesc_reshape %m : !ttg.memdesc<64x32xf16, #plain, #smem, 64x64> -> !ttg.memdesc<2048xf16, #bar, "
      "#smem>")),
    ("is larger than the memory behind it",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_reinterpret %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf32, "
      "#shared, #smem>")),
    ("ttg.memdesc_reinterpret needs a whole buffer",
     "%m: !ttg.memdesc<64x32xf16, #plain, #smem, 64x64>",
     ("%x = ttg.memdesc_reinterpret %m : !ttg.memdesc<64x32xf16, #plain, #smem, 64x64> -> !ttg.memdesc<64x16xf32, "
      "#plain, #smem>")),
    ("result mutability must match source mutability",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_reinterpret %m : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, "
      "#shared, #smem, mutable>")),
    ("requires the same shape for all operands and results",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = ttg.convert_layout %x : tensor<64x64xf16, #blocked> -> tensor<32x64xf16, #blockedT>"),
    ("ttg.convert_layout needs tensors with an encoding",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = ttg.convert_layout %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16>"),
    ("Cannot store into immutable memory",
     "%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%r = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf16, #shared, "
      "#smem>")),
    ("source shape [64, 64] must match [destination shape 64, 32]",
     "%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>",
     ("%r = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x32xf16, #shared, "
      "#smem, mutable>")),
    ("source element type 'f16' must match destination element type 'f32'",
     "%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>",
     ("%r = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf32, #shared, "
      "#smem, mutable>")),
    ("ttg.async_wait for -1 groups: the number is not negative",
     "",
     "%r = ttg.async_wait {num = -1 : i32}"),
    ("ttg.fp4_to_fp reads i8, not tensor<64x64xf16,",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xf16, #blocked> -> tensor<64x128xf16, #blocked>"),
    ("dimension 0 mismatch (src=64, dst=128, axis=1)",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<128x64xf16, #blocked>"),
    ("must be neighbours along axis 1",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf16, #blockedT>"),
    ("axis 2 out of range for rank 2",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 2 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf16, #blockedT>"),
    ("ttg.mask gives (i32), but its body returns (i1)",
     "%p: i1",
     '%r = "ttg.mask"(%p) ({ ttg.mask.return %p : i1 }) : (i1) -> i32'),
    ("has 1 partitions but `partitionNumWarps` has 2 elements",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4, 4>}> ({"ttg.warp_yield"(%i) : (i32) '
      '-> ()}, {"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) '
      ': (i32) -> i32')),
    ("partition #0 number of warps (3) must be a power of 2",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 3>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) '
      '-> i32')),
    ("partition region #0 argument #0 has type",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0(%a: i64): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) '
      '-> i32')),
    ("partition region #0 has 0 arguments but expected 1",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0: "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) -> i32')),
    ("partition region #0 must end with ttg.warp_return",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_yield"() : () -> ()}) : () -> ()}) : (i32) '
      '-> i32')),
    ("ttg.warp_yield has 0 operands but parent op expected 1",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"() : () -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) '
      '-> i32')),
    ("ttg.warp_yield operand #0 has type",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) '
      '-> i64')),
    ("has 2 warp group start IDs but expected 1",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>, warpGroupStartIds = array<i32: 4, '
      '8>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, {"ttg.warp_specialize.partitions"() '
      '({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) -> i32')),
    ("ttg.fp4_to_fp gives f16 or bf16",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf32, #blocked>"),
    ("source and result must have the same rank",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<128xf16, #line>"),
    ("both or neither of source and result have an encoding",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf16>"),
    ("hold different elements",
     "%x: tensor<64x64xi8, #blocked>",
     "%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<64x64xi8, #blocked> -> tensor<64x128xf16, #blocked>"),
    ("a buffer of several is taken with ttg.memdesc_index",
     "%m: !ttg.memdesc<4x64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[2, 0, 0] : !ttg.memdesc<4x64x64xf16, #shared, #smem> "
      "-> !ttg.memdesc<2x64x64xf16, #shared, #smem, 4x64x64>")),
    ("result rank must equal to input rank",
     "%m: !ttg.memdesc<4x64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[0, 0, 0] : !ttg.memdesc<4x64x64xf16, #shared, #smem> "
      "-> !ttg.memdesc<64x64xf16, #shared, #smem, 4x64x64>")),
    ("needs a mask of",
     "%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %k: tensor<64x64xi1, #blockedT>",
     '"ttg.fetch"(%p, %k) : (tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi1, #blockedT>) -> ()'),
    ("needs a mask of",
     ("%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, "
      "%k: tensor<64x64xi1, #blockedT>"),
     ('%r = "ttg.async_copy_global_to_local"(%p, %m, %k) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> '
      ': (tensor<64x64x!tt.ptr<f16>, #blocked>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, tensor<64x64xi1, '
      '#blockedT>) -> !ttg.async.token')),
    ("as other",
     ("%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %m: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, "
      "%k: tensor<64x64xf16, #blockedT>"),
     ('%r = "ttg.async_copy_global_to_local"(%p, %m, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}> '
      ': (tensor<64x64x!tt.ptr<f16>, #blocked>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, '
      'tensor<64x64xf16, #blockedT>) -> !ttg.async.token')),
    ("ttg.mask must end with ttg.mask.return",
     "%p: i1",
     '"ttg.mask"(%p) ({ "tt.return"() : () -> () }) : (i1) -> ()'),
    ("ttg.predicate_stage needs operands of one type",
     "%i: i32, %l: i64",
     '%r = "ttg.predicate_stage"(%i, %l, %i) <{maxStage = 1 : i32, stage = 0 : i32}> : (i32, i64, i32) -> i1'),
    ("needs ttg.warp_specialize.partitions",
     "",
     ('"ttg.warp_specialize"() <{partitionNumWarps = array<i32>}> ({"ttg.warp_yield"() : () -> ()}, '
      '{"ttg.warp_return"() : () -> ()}) : () -> ()')),
    ("the default region must end with ttg.warp_yield",
     "",
     ('"ttg.warp_specialize"() <{partitionNumWarps = array<i32>}> ({"ttg.warp_return"() : () -> ()}, '
      '{"ttg.warp_specialize.partitions"() : () -> ()}) : () -> ()')),
    ("value defined out of its IsolatedFromAbove parent",
     "%i: i32",
     ('"ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4>}> ({"ttg.warp_yield"() : () -> ()}, '
      '{"ttg.warp_specialize.partitions"() ({ %r = arith.addi %i, %i : i32 "ttg.warp_return"() : () -> ()}) : () '
      '-> ()}) : () -> ()')),
]  # fmt: skip
GOOD = [
    *((f"{op[:20]}_loses_mutable",
       f"%m: !ttg.memdesc<{count}64x64xf16, #plain, #smem, mutable>, %i: i32",
       f"%x = ttg.{op} : !ttg.memdesc<{count}64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<{result}>")
      for op, count, result in (
        ("memdesc_subslice %m[32, 0]", "", "32x64xf16, #plain, #smem, 64x64"),
        ("memdesc_reinterpret %m", "", "64x64xi16, #plain, #smem"),
        ("memdesc_index %m[%i]", "3x", "64x64xf16, #plain, #smem"),
    )),
    ("idx_enc",
     "%m: !ttg.memdesc<3x64x64xf16, #shared, #smem>, %i: i32",
     ("%x = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, "
      "#sharedT, #smem>")),
    ("sub_ok",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[8, 0] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<8x64xf16, "
      "#shared, #smem, 64x64>")),
    ("sub_one",
     "%m: !ttg.memdesc<64x64xf16, #shared, #smem>",
     ("%x = ttg.memdesc_subslice %m[8, 16] : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<8x16xf16, "
      "#shared, #smem, 64x64>")),
    ("ws_regs",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>, requestedRegisters = array<i32: 4, '
      '8>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, {"ttg.warp_specialize.partitions"() '
      '({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) -> i32')),
    ("ws_areg",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>, actualRegisters = array<i32: 4, 8, '
      '9>}> ({"ttg.warp_yield"(%i) : (i32) -> ()}, {"ttg.warp_specialize.partitions"() '
      '({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) : (i32) -> i32')),
    ("ws_all",
     "%i: i32",
     ('%r = "ttg.warp_specialize"(%i) <{partitionNumWarps = array<i32: 4>, actualRegisters = array<i32: 24, 32>, '
      'requestedRegisters = array<i32: 24>, warpGroupStartIds = array<i32: 4>}> ({"ttg.warp_yield"(%i) : (i32) '
      '-> ()}, {"ttg.warp_specialize.partitions"() ({^bb0(%a: i32): "ttg.warp_return"() : () -> ()}) : () -> ()}) '
      ': (i32) -> i32')),
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
