"""Every `tt` op: built with `make`, verified, printed, parsed back."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tests.ir.values import TYPES, in_function
from tests.pipeline.stages import StageError, check_stage
from tilework.ir import arith, math, tt, ttg
from tilework.ir.arith import RemfOp, SelectOp, binary, cmpf, cmpi, convert, ternary, unary
from tilework.ir.enums import (
    AddrSpace,
    CacheModifier,
    DescriptorReduceKind,
    EvictionPolicy,
    InputPrecision,
    MemSemantic,
    MemSyncScope,
    PaddingOption,
    PropagateNan,
    RMWOp,
    RoundingMode,
    ScaleDotElemType,
)
from tilework.ir.llvm import AssumeOp
from tilework.ir.locations import file_loc
from tilework.ir.parser import make_context, parse_module
from tilework.ir.printer import print_module
from tilework.ir.types import f16, f32, f64, i32, i64, pointer_type, tensor_type
from tilework.ir.verify import verify

LOC = file_loc("k.py", 1, 2)
HERE = Path(__file__).parent


class Values:
    """Function arguments by name: `v.x` is the f32 argument ``%x``."""

    def __init__(self) -> None:
        self.entry = Block(arg_types=TYPES.values())
        for name, argument in zip(TYPES, self.entry.args, strict=True):
            argument.name_hint = name

    def __getattr__(self, name: str) -> SSAValue:
        return self.entry.args[list(TYPES).index(name)]


def region(*types: Attribute, terminator: Callable[..., Operation], results: int) -> Region:
    block = Block(arg_types=types)
    block.add_op(terminator(block.args[:results], LOC))
    return Region(block)


tensor = tensor_type
ENUM = (MemSemantic.ACQ_REL, MemSyncScope.GPU)
MAKES: list[tuple[str, Callable[[Values], Operation]]] = [
    ("tt.splat %x : f32 -> tensor<8xf32>", lambda v: tt.SplatOp.make(v.x, tensor((8,), f32), LOC)),
    ("tt.unsplat %one : tensor<1xf32>", lambda v: tt.UnsplatOp.make(v.one, LOC)),
    (
        "tt.expand_dims %t {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>",
        lambda v: tt.ExpandDimsOp.make(v.t, 1, LOC),
    ),
    (
        "tt.reshape %t allow_reorder efficient_layout : tensor<64xf32> -> tensor<8x8xf32>",
        lambda v: tt.ReshapeOp.make(v.t, tensor((8, 8), f32), LOC, True, True),
    ),
    ("tt.reshape %t : tensor<64xf32> -> tensor<8x8xf32>", lambda v: tt.ReshapeOp.make(v.t, tensor((8, 8), f32), LOC)),
    (
        "tt.broadcast %row : tensor<1x64xf32> -> tensor<4x64xf32>",
        lambda v: tt.BroadcastOp.make(v.row, tensor((4, 64), f32), LOC),
    ),
    ("tt.resize %t : tensor<64xf32> -> tensor<96xf32>", lambda v: tt.ResizeOp.make(v.t, tensor((96,), f32), LOC)),
    ("tt.cat %t, %t : tensor<64xf32> -> tensor<128xf32>", lambda v: tt.CatOp.make(v.t, v.t, tensor((128,), f32), LOC)),
    ("tt.join %t, %t : tensor<64xf32> -> tensor<64x2xf32>", lambda v: tt.JoinOp.make(v.t, v.t, LOC)),
    ("tt.split %pair : tensor<32x2xf32> -> tensor<32xf32>", lambda v: tt.SplitOp.make(v.pair, LOC)),
    (
        "tt.trans %ma {order = array<i32: 1, 0>} : tensor<16x32xf16> -> tensor<32x16xf16>",
        lambda v: tt.TransOp.make(v.ma, [1, 0], LOC),
    ),
    ("tt.make_range {end = 72 : i32, start = 8 : i32} : tensor<64xi32>", lambda v: tt.MakeRangeOp.make(8, 72, LOC)),
    ("tt.addptr %tp, %ti : tensor<64x!tt.ptr<f32>>, tensor<64xi32>", lambda v: tt.AddPtrOp.make(v.tp, v.ti, LOC)),
    ("tt.int_to_ptr %l : i64 -> !tt.ptr<f32>", lambda v: tt.IntToPtrOp.make(v.l, pointer_type(f32), LOC)),
    ("tt.ptr_to_int %p : !tt.ptr<f32> -> i64", lambda v: tt.PtrToIntOp.make(v.p, i64, LOC)),
    ("tt.bitcast %x : f32 -> i32", lambda v: tt.BitcastOp.make(v.x, i32, LOC)),
    ("tt.fp_to_fp %x, rounding = rtz : f32 -> f16", lambda v: tt.FpToFpOp.make(v.x, f16, LOC, RoundingMode.RTZ)),
    ("tt.fp_to_fp %x : f32 -> f64", lambda v: tt.FpToFpOp.make(v.x, f64, LOC)),
    (
        "tt.clampf %x, %x, %x, propagateNan = all : f32",
        lambda v: tt.ClampFOp.make(v.x, v.x, v.x, PropagateNan.ALL, LOC),
    ),
    ("tt.precise_sqrt %x : f32", lambda v: tt.PreciseSqrtOp.make(v.x, LOC)),
    ("tt.precise_divf %t, %t : tensor<64xf32>", lambda v: tt.PreciseDivFOp.make(v.t, v.t, LOC)),
    ("tt.mulhiui %n, %n : i32", lambda v: tt.MulhiUIOp.make(v.n, v.n, LOC)),
    (
        'tt.extern_elementwise %x {libname = "l", libpath = "p", pure = true, symbol = "s"} : (f32) -> f32',
        lambda v: tt.ExternElementwiseOp.make([v.x], f32, "l", "p", "s", True, LOC),
    ),
    (
        'tt.elementwise_inline_asm "a\\0A" {constraints = "=r,r", packed_element = 2 : i32, pure = false} '
        "%t : tensor<64xf32> -> tensor<64xi32>",
        lambda v: tt.ElementwiseInlineAsmOp.make([v.t], [tensor((64,), i32)], "a\n", "=r,r", False, 2, LOC),
    ),
    ("tt.load %p : !tt.ptr<f32>", lambda v: tt.LoadOp.make(v.p, None, None, LOC)),
    (
        "tt.load %tp, %tb, %t cacheModifier = cg evictionPolicy = evict_last {isVolatile = true} "
        ": tensor<64x!tt.ptr<f32>>",
        lambda v: tt.LoadOp.make(
            v.tp, v.tb, v.t, LOC, cache=CacheModifier.CG, evict=EvictionPolicy.LAST, is_volatile=True
        ),
    ),
    (
        "tt.load %bp {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<64x32xf32>>",
        lambda v: tt.LoadOp.make(v.bp, None, None, LOC, boundary_check=(0, 1), padding=PaddingOption.NAN),
    ),
    ("tt.store %tp, %t, %tb : tensor<64x!tt.ptr<f32>>", lambda v: tt.StoreOp.make(v.tp, v.t, v.tb, LOC)),
    (
        "tt.store %bp, %rows cacheModifier = wt {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<64x32xf32>>",
        lambda v: tt.StoreOp.make(v.bp, v.rows, None, LOC, cache=CacheModifier.WT, boundary_check=[0]),
    ),
    (
        "tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %b : (!tt.ptr<f32>, f32, i1) -> f32",
        lambda v: tt.AtomicRMWOp.make(RMWOp.FADD, v.p, v.x, v.b, *ENUM, LOC),
    ),
    (
        "tt.atomic_cas acq_rel, gpu, %pi, %n, %n : (!tt.ptr<i32>, i32, i32) -> i32",
        lambda v: tt.AtomicCASOp.make(v.pi, v.n, v.n, None, *ENUM, LOC),
    ),
    (
        "tt.make_tensor_ptr %ph, [%l, %l], [%l, %l], [%n, %n] {order = array<i32: 1, 0>} : <tensor<64x32xf16>>",
        lambda v: tt.MakeTensorPtrOp.make(v.ph, [v.l] * 2, [v.l] * 2, [v.n] * 2, (64, 32), (1, 0), LOC),
    ),
    ("tt.advance %bp, [%n, %n] : <tensor<64x32xf32>>", lambda v: tt.AdvanceOp.make(v.bp, [v.n] * 2, LOC)),
    (
        "tt.make_tensor_descriptor %p, [%n], [%l] : <f32>, <tensor<64xf32>>",
        lambda v: tt.MakeTensorDescOp.make(v.p, [v.n], [v.l], tensor((64,), f32), PaddingOption.ZERO, LOC),
    ),
    (
        "tt.make_tensor_descriptor %p, [%n], [%l] {padding = 2 : i32} : <f32>, <tensor<64xf32>>",
        lambda v: tt.MakeTensorDescOp.make(v.p, [v.n], [v.l], tensor((64,), f32), PaddingOption.NAN, LOC),
    ),
    (
        "tt.descriptor_load %d[%n, %n] evictionPolicy = evict_first : "
        "!tt.tensordesc<tensor<1x32xf32>> -> tensor<1x32xf32>",
        lambda v: tt.DescriptorLoadOp.make(v.d, [v.n] * 2, LOC, evict=EvictionPolicy.FIRST),
    ),
    (
        "tt.descriptor_load %d[%n, %n] : !tt.tensordesc<tensor<1x32xf32>> -> tensor<32xf32>",
        lambda v: tt.DescriptorLoadOp.make(v.d, [v.n] * 2, LOC, type=tensor((32,), f32)),
    ),
    (
        "tt.descriptor_store %d[%n, %n], %row32 : !tt.tensordesc<tensor<1x32xf32>>, tensor<1x32xf32>",
        lambda v: tt.DescriptorStoreOp.make(v.d, v.row32, [v.n] * 2, LOC),
    ),
    (
        "tt.descriptor_reduce max, %d[%n, %n], %row32 : !tt.tensordesc<tensor<1x32xf32>>, tensor<1x32xf32>",
        lambda v: tt.DescriptorReduceOp.make(DescriptorReduceKind.MAX, v.d, v.row32, [v.n] * 2, LOC),
    ),
    (
        (
            "tt.descriptor_gather %d[%ti, %n] : (!tt.tensordesc<tensor<1x32xf32>>, tensor<64xi32>, i32) "
            "-> tensor<64x32xf32>"
        ),
        lambda v: tt.DescriptorGatherOp.make(v.d, v.ti, v.n, tensor((64, 32), f32), LOC),
    ),
    (
        "tt.descriptor_scatter %d[%ti, %n], %rows : "
        "!tt.tensordesc<tensor<1x32xf32>>, tensor<64xi32>, i32, tensor<64x32xf32>",
        lambda v: tt.DescriptorScatterOp.make(v.d, v.ti, v.n, v.rows, LOC),
    ),
    ("tt.get_program_id y : i32", lambda v: tt.GetProgramIdOp.make(1, LOC)),
    ("tt.get_num_programs z : i32", lambda v: tt.GetNumProgramsOp.make(2, LOC)),
    (
        "tt.dot %ma, %mb, %m : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>",
        lambda v: tt.DotOp.make(v.ma, v.mb, v.m, LOC),
    ),
    (
        "tt.dot %m, %m, %m, inputPrecision = bf16x3 {maxNumImpreciseAcc = 8 : i32} : "
        "tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>",
        lambda v: tt.DotOp.make(v.m, v.m, v.m, LOC, InputPrecision.BF16X3, 8),
    ),
    (
        "tt.dot_scaled %q scale %s, %w, %m lhs = e2m1 rhs = e4m3 {fastMath = false} : "
        "tensor<16x64xi8>, tensor<16x4xi8> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
        lambda v: tt.DotScaledOp.make(
            v.q, v.w, v.m, v.s, None, ScaleDotElemType.E2M1, ScaleDotElemType.E4M3, False, LOC
        ),
    ),
    (
        '"tt.reduce"(%m) <{axis = 1 : i32}> ({',
        lambda v: tt.ReduceOp.make([v.m], 1, region(f32, f32, terminator=tt.ReduceReturnOp.make, results=1), LOC),
    ),
    (
        '"tt.reduce"(%t, %ti) <{axis = 0 : i32}> ({',
        lambda v: tt.ReduceOp.make(
            [v.t, v.ti], 0, region(f32, i32, f32, i32, terminator=tt.ReduceReturnOp.make, results=2), LOC
        ),
    ),
    (
        '"tt.scan"(%m) <{axis = 0 : i32, reverse = true}> ({',
        lambda v: tt.ScanOp.make([v.m], 0, True, region(f32, f32, terminator=tt.ScanReturnOp.make, results=1), LOC),
    ),
    (
        '"tt.map_elementwise"(%t) <{pack = 2 : i32}> ({',
        lambda v: tt.MapElementwiseOp.make(
            [v.t], [v.t.type], 2, region(f32, f32, terminator=tt.MapElementwiseReturnOp.make, results=2), LOC
        ),
    ),
    (
        "tt.sort_runs %ti {bits = 3 : i32, merges = false, order = 2 : i32, signed = true} : tensor<64xi32>",
        lambda v: tt.SortRunsOp.make(v.ti, 3, 2, False, True, LOC),
    ),
    ("tt.histogram %ti, %tb : tensor<64xi32> -> tensor<16xi32>", lambda v: tt.HistogramOp.make(v.ti, v.tb, 16, LOC)),
    (
        "tt.gather %t[%ti] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>",
        lambda v: tt.GatherOp.make(v.t, v.ti, 0, LOC),
    ),
    (
        'tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %n : i32',
        lambda v: tt.PrintOp.make("x: ", False, [v.n], [1], LOC),
    ),
    ('tt.print "hi" {hex = true, isSigned = array<i32>}', lambda v: tt.PrintOp.make("hi", True, [], [], LOC)),
    ('tt.assert %tb, "say \\22no\\22" : tensor<64xi1>', lambda v: tt.AssertOp.make(v.tb, 'say "no"', LOC)),
    ("tt.call @callee(%x) : (f32) -> f32", lambda v: tt.CallOp.make("callee", [v.x], [f32], LOC)),
    ("ttg.barrier all", lambda v: ttg.BarrierOp.make(AddrSpace.ALL, LOC)),
    ("ttg.barrier none", lambda v: ttg.BarrierOp.make(AddrSpace.NONE, LOC)),
    (
        "ttg.barrier local|global_read",
        lambda v: ttg.BarrierOp.make(AddrSpace.LOCAL | AddrSpace.GLOBAL_READ, LOC),
    ),
    ("tt.ordered_begin", lambda v: tt.OrderedBeginOp.make(LOC)),
    ("tt.ordered_end", lambda v: tt.OrderedEndOp.make(LOC)),
    ("llvm.intr.assume %b : i1", lambda v: AssumeOp.make(v.b, LOC)),
    ("arith.select %b, %t, %t : tensor<64xf32>", lambda v: SelectOp.make(v.b, v.t, v.t, LOC)),
    ("arith.select %tb, %t, %t : tensor<64xi1>, tensor<64xf32>", lambda v: SelectOp.make(v.tb, v.t, v.t, LOC)),
    ("arith.remf %x, %x : f32", lambda v: RemfOp.make(v.x, v.x, LOC)),
    ("arith.addi %n, %n : i32", lambda v: binary(arith.AddiOp, v.n, v.n, LOC)),
    ("arith.mulf %t, %t : tensor<64xf32>", lambda v: binary(arith.MulfOp, v.t, v.t, LOC)),
    ("arith.cmpi ule, %n, %n : i32", lambda v: cmpi("ule", v.n, v.n, LOC)),
    ("arith.cmpf une, %t, %t : tensor<64xf32>", lambda v: cmpf("une", v.t, v.t, LOC)),
    ("math.exp2 %x : f32", lambda v: unary(math.Exp2Op, v.x, LOC)),
    ("math.fma %x, %x, %x : f32", lambda v: ternary(math.FmaOp, v.x, v.x, v.x, LOC)),
    ("arith.sitofp %n : i32 to f32", lambda v: convert(arith.SIToFPOp, v.n, f32, LOC)),
]


def callee() -> tt.FuncOp:
    block = Block(arg_types=[f32])
    block.add_op(tt.ReturnOp.make(block.args, LOC))
    return tt.FuncOp.make("callee", (f32,), (f32,), Region(block), LOC, visibility="private", noinline=True)


def module_with(make: Callable[[Values], Operation]) -> ModuleOp:
    values = Values()
    values.entry.add_ops([make(values), tt.ReturnOp.make((), LOC)])
    kernel = tt.FuncOp.make("k", list(TYPES.values()), (), Region(values.entry), LOC)
    return ModuleOp([kernel, callee()])


def xdsl_text(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize(("text", "make"), MAKES, ids=[text.split(" : ")[0] for text, _ in MAKES])
def test_make_verify_print_parse(text: str, make: Callable[[Values], Operation]) -> None:
    module = module_with(make)
    verify(module)
    check_stage(module, "ttir")
    printed = print_module(module)
    assert text in printed
    again = parse_module(printed)
    assert print_module(again) == printed
    assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize(("text", "make"), [case for case in MAKES if case[0].strip('"').startswith("tt.")])
def test_the_forms_need_nothing_but_xdsl(text: str, make: Callable[[Values], Operation]) -> None:
    printed = xdsl_text(module_with(make))
    assert text in printed
    again = Parser(make_context(), printed).parse_module()
    again.verify()
    assert xdsl_text(again) == printed


def test_every_op_has_a_make_case() -> None:
    tested = {text.split("(")[0].strip('"').split(" ")[0] for text, _ in MAKES}
    implied = {"tt.func", "tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
    assert {op.name for op in set(tt.TT.operations)} - tested == implied


def test_the_reference_text_of_every_op_is_read_and_written() -> None:
    """`ops.mlir` is what the reference compiler prints; we print the same."""
    text = (HERE / "ops.mlir").read_text()
    module = parse_module(text)
    module.verify()
    assert print_module(module).strip() == text.strip()


def test_func_with_attributes() -> None:
    block = Block(arg_types=[i32, i32])
    block.add_op(tt.ReturnOp.make((), LOC))
    hint = {"tt.divisibility": tt.GetProgramIdOp.make(0, LOC).properties["axis"]}
    func = tt.FuncOp.make("k", (i32, i32), (), Region(block), LOC, arg_attrs=[hint, {}])
    text = xdsl_text(ModuleOp([func]))
    assert "tt.func public @k(%0: i32 {tt.divisibility = 0 : i32}, %1: i32) attributes {noinline = false} {" in text
    assert xdsl_text(Parser(make_context(), text).parse_module()) == text


def test_generic_form_fills_in_defaults() -> None:
    module = parse_module(
        in_function('%0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f32')
    )
    module.verify()
    assert "tt.load %p : !tt.ptr<f32>" in print_module(module)


def test_return_must_fit_the_function() -> None:
    module = parse_module("tt.func @k(%n: i32) {\n  tt.return %n : i32\n}")
    with pytest.raises(VerifyException, match=r"has 1 operands, but enclosing function \(@k\) returns 0"):
        module.verify()


def test_stage_refuses_foreign_ops_and_encodings() -> None:
    encoded = '%0 = tt.splat %x : f32 -> tensor<64xf32, "layout">'
    with pytest.raises(StageError, match="ttir has no encodings"):
        check_stage(parse_module(in_function(encoded)), "ttir")
    with pytest.raises(StageError, match="is not an op of ttir"):
        check_stage(parse_module("tt.func @f() {\n  ub.unreachable\n}"), "ttir")
