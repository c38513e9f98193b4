"""Every op, type, enumeration and attribute of the dialects is read and printed as the same text."""

from pathlib import Path

import pytest
from xdsl.ir import Attribute, Operation

from tests.ir.test_ttc import ALL
from tests.ir.values import in_function
from tilework.ir import enums, tt
from tilework.ir.enums import Keyword
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.ttc import TTC, BufferType
from tilework.ir.types import PointerType, TensorDescType
from tilework.ir.verify import verify

OPS = (Path(__file__).parent / "ops.mlir").read_text()


def same_text(text: str) -> None:
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


def ops_in(text: str) -> set[type[Operation]]:
    return {type(op) for op in parse_module(text).walk()}


def test_every_op_has_a_round_trip() -> None:
    """`ops.mlir` and the text of `test_ttc.py` are printed back to the letter; no op is missing in them."""
    same_text(OPS)
    same_text(ALL)
    assert set(tt.TT.operations) - ops_in(OPS) == {
        tt.OrderedEndOp,
        tt.ResizeOp,
        tt.SortRunsOp,
        tt.OrderedBeginOp,
    }  # ours alone: their text is in `test_ops.py`
    assert set(TTC.operations) - ops_in(ALL) == set()


TYPES = [
    *("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"),
    *("i1", "i4", "i8", "i16", "i32", "i64", "index"),
    *("!tt.ptr<f32>", "!tt.ptr<f32, 3>", "!tt.ptr<!tt.ptr<i8>>", "!tt.ptr<tensor<64x32xf16>>"),
    *("tensor<128x64xf16>", "tensor<f32>", "tensor<8x!tt.ptr<bf16>>", 'tensor<8xi32, "encoding">'),
    *("!tt.tensordesc<tensor<64x64xf16>>", "!tt.tensordesc<tensor<32xui8>>", "!tt.tensordesc<tensor<32xsi32>>"),
    *("!ttc.buf<64x128xf32>", "!ttc.buf<f32>", "!ttc.buf<4x!tt.ptr<f32>>"),
]


@pytest.mark.parametrize("type", TYPES)
def test_types(type: str) -> None:
    same_text(f"module {{\n  tt.func public @f(%x: {type}) {{\n    tt.return\n  }}\n}}\n")


def test_every_type_is_listed() -> None:
    listed = " ".join(TYPES)
    types: set[type[Attribute]] = {*tt.TT.attributes, *TTC.attributes}
    assert types == {PointerType, TensorDescType, BufferType}
    assert all(f"!{type.name}<" in listed for type in types)


def test_the_global_address_space_is_not_printed() -> None:
    text = in_function("%0 = tt.load %p : !tt.ptr<f32, 1>")
    assert "tt.load %p : !tt.ptr<f32>" in print_module(parse_module(text))


# How each enumeration is written: a keyword (%k) in the form of an op, or a number (%d) in its dictionary.
ENUMS: dict[type[Keyword], str] = {
    enums.SchedHint: "amdg.instruction_sched_hint {{variant = #amdg.SchedHintVariant<{k}>}}",
    enums.AddrSpace: "ttg.barrier {k}",
    enums.CacheModifier: "%0 = tt.load %p {{cache = {d} : i32}} : !tt.ptr<f32>",
    enums.EvictionPolicy: "%0 = tt.load %p {{evict = {d} : i32}} : !tt.ptr<f32>",
    enums.PaddingOption: ("%0 = tt.load %bp {{boundaryCheck = array<i32: 0>, padding = {d} : i32}} "
                          ": !tt.ptr<tensor<64x32xf32>>"),
    enums.MemSemantic: "%0 = tt.atomic_rmw fadd, {k}, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32",
    enums.MemSyncScope: "%0 = tt.atomic_rmw fadd, relaxed, {k}, %p, %x : (!tt.ptr<f32>, f32) -> f32",
    enums.RMWOp: "%0 = tt.atomic_rmw {k}, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32",
    enums.DescriptorReduceKind: ("tt.descriptor_reduce {k}, %d[%n, %n], %row32 : !tt.tensordesc<tensor<1x32xf32>>, "
                                 "tensor<1x32xf32>"),
    enums.ProgramDim: "%0 = tt.get_num_programs {k} : i32",
    enums.RoundingMode: "%0 = tt.fp_to_fp %x, rounding = {k} : f32 -> f16",
    enums.PropagateNan: "%0 = tt.clampf %x, %x, %x, propagateNan = {k} : f32",
    enums.InputPrecision: '%0 = "tt.dot"(%m, %m, %m) <{{inputPrecision = {d} : i32}}> '
    ": (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>",
    enums.ScaleDotElemType: "%0 = tt.dot_scaled %q, %w, %m lhs = e2m1 rhs = {k} {{fastMath = false}} : "
    "tensor<16x64xi8> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
}  # fmt: skip
PACKED = enums.ScaleDotElemType.E2M1  # the right operand is not packed, but the left one is: written in every case
MEMBERS = [(enum, member) for enum in ENUMS for member in enum if member is not PACKED]


def test_every_enumeration_is_listed() -> None:
    assert set(Keyword.__subclasses__()) == set(ENUMS)


@pytest.mark.parametrize(("enum", "member"), MEMBERS, ids=[f"{e.__name__}-{m.name}" for e, m in MEMBERS])
def test_enumerations(enum: type[Keyword], member: Keyword) -> None:
    module = parse_module(in_function(ENUMS[enum].format(k=member.keyword, d=member.value)))
    verify(module)
    text = print_module(module)
    again = parse_module(text)
    assert again.is_structurally_equivalent(module) and print_module(again) == text
    hidden = {enums.CacheModifier.NONE, enums.EvictionPolicy.NORMAL, enums.InputPrecision.IEEE}
    if member not in hidden and enum is not enums.PaddingOption:
        assert f"{member.keyword}" in text


ATTRIBUTES = """module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %b: !tt.tensordesc<tensor<8xf32>> {tt.nv_tma_desc = 1 : i32}, %c: i32 {tt.constancy = 4 : i64, tt.contiguity = dense<8> : tensor<1xi32>}) attributes {noinline = false, "ttg.num-warps" = 8 : i32} {
    %r = tt.make_range {end = 16 : i32, start = 0 : i32, tt.constancy = dense<1> : tensor<1xi32>, tt.contiguity = dense<16> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>} : tensor<16xi32>
    scf.for %i = %c to %c step %c  : i32 {
      %v = tt.load %a {loop.cluster = 1 : i32, loop.stage = 0 : i32, tt.latency = 2 : i32, tt.self_latency = 1 : i32} : !tt.ptr<f32>
    } {tt.disallow_acc_multi_buffer, tt.flatten, tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32, tt.scheduled_max_stage = 2 : i32, tt.warp_specialize}
    tt.return
  }
}
"""  # noqa: E501


def test_discardable_attributes() -> None:
    same_text(ATTRIBUTES)
