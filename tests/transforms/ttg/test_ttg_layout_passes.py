"""The passes that give and change layouts: what FileCheck cannot see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilework.analysis.axis_info import axis_info
from tilework.errors import PassError
from tilework.ir import tt, ttg
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.layouts.encodings import Blocked
from tilework.layouts.to_linear import to_linear
from tilework.transforms.folding.convert_layout import clean_converts
from tilework.transforms.registry import make_pass, parse_pipeline, run_pipeline
from tilework.transforms.ttg.optimize_thread_locality import keeps_rows, thread_view

KERNEL = """
tt.func public @kernel(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<SIZExf32>
  %r = tt.make_range {end = SIZE : i32, start = 0 : i32} : tensor<SIZExi32>
  %e = tt.expand_dims %r {axis = 1 : i32} : tensor<SIZExi32> -> tensor<SIZEx1xi32>
  %f = tt.expand_dims %r {axis = 0 : i32} : tensor<SIZExi32> -> tensor<1xSIZExi32>
  %s = tt.splat %n : i32 -> tensor<SIZEx1xi32>
  %m = arith.muli %e, %s : tensor<SIZEx1xi32>
  %a = tt.broadcast %m : tensor<SIZEx1xi32> -> tensor<SIZExSIZExi32>
  %b = tt.broadcast %f : tensor<1xSIZExi32> -> tensor<SIZExSIZExi32>
  %o = arith.addi %a, %b : tensor<SIZExSIZExi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<SIZExSIZEx!tt.ptr<f32>>
  %t = tt.addptr %q, %o : tensor<SIZExSIZEx!tt.ptr<f32>>, tensor<SIZExSIZExi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<SIZExf32>) : i32 {
    %x = tt.load %t : tensor<SIZExSIZEx!tt.ptr<f32>>
    %y = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %k: f32):
      %z = arith.addf %l, %k : f32
      tt.reduce.return %z : f32
    }) : (tensor<SIZExSIZExf32>) -> tensor<SIZExf32>
    %u = scf.if %c -> (tensor<SIZExf32>) {
      scf.yield %y : tensor<SIZExf32>
    } else {
      %v = ub.poison : tensor<SIZExf32>
      scf.yield %v : tensor<SIZExf32>
    }
    %w = arith.addf %acc, %u : tensor<SIZExf32>
    scf.yield %w : tensor<SIZExf32>
  }
  %g = tt.splat %p : !tt.ptr<f32> -> tensor<SIZEx!tt.ptr<f32>>
  %h = tt.addptr %g, %r : tensor<SIZEx!tt.ptr<f32>>, tensor<SIZExi32>
  tt.store %h, %sum : tensor<SIZEx!tt.ptr<f32>>
  tt.return
}
"""
PASSES = (
    "tritongpu-coalesce,tritongpu-F32DotTC{emu-tf32=1},triton-nvidia-gpu-plan-cta,tritongpu-optimize-thread-locality,"
    "canonicalize,cse,relayout-tritongpu"
)


def laid_out(size: int, warps: int, ctas: int, passes: str = "") -> str:
    """The kernel behind `passes`, verified behind each."""
    module = parse_module(KERNEL.replace("SIZE", str(size)))
    convert = f"convert-triton-to-tritongpu{{target=cuda:90 num-warps={warps} num-ctas={ctas}}}"
    run_pipeline(module, parse_pipeline(f"{convert},{passes}"), after=lambda _, module: verify(module))
    return print_module(module)


@pytest.mark.parametrize("size", [1, 2, 16, 128])
@pytest.mark.parametrize(("warps", "ctas"), [(1, 1), (4, 1), (16, 1), (4, 2), (2, 8)])
def test_every_size_on_every_machine(size: int, warps: int, ctas: int) -> None:
    first = laid_out(size, warps, ctas, PASSES)
    assert first == laid_out(size, warps, ctas, PASSES)
    assert print_module(parse_module(first)) == first


@pytest.mark.parametrize("target", ["", "hip:gfx77", "metal:m1", "cuda", "cuda:ninety"])
def test_a_target_is_needed(target: str) -> None:
    with pytest.raises(
        PassError,
        match=r"convert-triton-to-tritongpu: target .*(expected BACKEND:ARCH|there is no compiler|is not known)",
    ):
        make_pass("convert-triton-to-tritongpu", f"target={target}").run(parse_module("module {}"))


def test_a_module_says_what_it_is_for() -> None:
    module = parse_module("tt.func public @f(%t: tensor<128xi32>) { tt.return }")
    with pytest.raises(PassError, match=r'no attribute "ttg\.num-warps": it is not TTGIR yet'):
        run_pipeline(module, ["relayout-tritongpu"])


def test_clean_converts_leaves_other_rewrites_alone() -> None:
    """`addi (addi x, 1), 2` is merged by `canonicalize` only; the conversion goes."""
    layout = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    module = parse_module(f"""tt.func public @f(%x: i32, %t: tensor<128xi32, {layout}>) -> (i32, tensor<128xi32, {layout}>) {{
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %0 = arith.addi %x, %c1 : i32
      %1 = arith.addi %0, %c2 : i32
      %2 = ttg.convert_layout %t : tensor<128xi32, {layout}> -> tensor<128xi32, {layout}>
      tt.return %1, %2 : i32, tensor<128xi32, {layout}>
    }}""")  # noqa: E501
    (function,) = module.body.block.ops
    assert clean_converts(function)
    assert [op.name for op in function.walk()].count("arith.addi") == 2
    assert not any(type(op) is ttg.ConvertLayoutOp for op in function.walk())
    assert not clean_converts(function)


def test_axis_info_goes_through_conversions() -> None:
    module = parse_module(laid_out(128, 4, 1, "tritongpu-coalesce"))
    facts = axis_info(module)
    (load,) = [op for op in module.walk() if type(op) is tt.LoadOp]
    info = facts.of(load.operands[0])
    assert type(load.operands[0].owner) is ttg.ConvertLayoutOp
    assert (info.contiguity, info.divisibility) == ((1, 128), (4, 16))


SPECIALIZED = """
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32} {
tt.func public @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 8 : i32}) {
  %r = ttg.warp_specialize(%p)
  default {
    %d = arith.addi %n, %n : i32
    ttg.warp_yield %d : i32
  }
  partition0(%a: !tt.ptr<f32>) num_warps(2) {
    %q = tt.addptr %a, %n0 : !tt.ptr<f32>, i32
    tt.store %q, %z : !tt.ptr<f32>
    ttg.warp_return
  } : (!tt.ptr<f32>) -> i32
  tt.return
}
}
"""


def test_axis_info_enters_partitions() -> None:
    body = SPECIALIZED.replace("%q = tt", "%n0 = arith.constant 4 : i32\n%z = arith.constant 0.0 : f32\n%q = tt")
    module = parse_module(body)
    facts = axis_info(module)
    (address,) = [op for op in module.walk() if type(op) is tt.AddPtrOp]
    (specialized,) = [op for op in module.walk() if type(op) is ttg.WarpSpecializeOp]
    assert facts.of(address.results[0]).divisibility == (16,)
    assert facts.of(specialized.results[0]).divisibility == (8,)


POWERS = st.sampled_from([1, 2, 4])


@given(
    st.permutations(range(3)), st.tuples(POWERS, POWERS, POWERS), st.sampled_from([(1, 1, 32), (2, 4, 4), (8, 2, 2)])
)
def test_the_view_of_a_carried_reduction_keeps_rows(
    order: list[int], held: tuple[int, ...], lanes: tuple[int, ...]
) -> None:
    """Every element stays in its row and in its register: the view is a renaming."""
    shape, source = (16, 8, 64), Blocked(held, lanes, (2, 1, 2), tuple(order))
    text = """module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32} {
    tt.func public @f(%p: tensor<16x8x64x!tt.ptr<f32>, #l>) {
      %x = tt.load %p : tensor<16x8x64x!tt.ptr<f32>, #l>
      %y = "tt.reduce"(%x) <{axis = 2 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %z = arith.addf %a, %b : f32
        tt.reduce.return %z : f32
      }) : (tensor<16x8x64xf32, #l>) -> tensor<16x8xf32, #ttg.slice<{dim = 2, parent = #l}>>
      tt.return
    } }"""
    fields = (held, lanes, (2, 1, 2), tuple(order))
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    inside = ", ".join(f"{name} = {list(values)}" for name, values in zip(names, fields, strict=True))
    module = parse_module(f"#l = #ttg.blocked<{{{inside}}}>\n{text}")
    (reduce,) = [op for op in module.walk() if type(op) is tt.ReduceOp]
    found = thread_view(reduce)
    if found is not None:
        view, view_shape = found
        before, after = to_linear(source, shape), to_linear(view, view_shape)
        assert keeps_rows(before, after, 2)
        for (_, old), (_, new) in zip(before.bases, after.bases, strict=True):
            assert [vector[:2] for vector in old] == [vector[:2] for vector in new]
