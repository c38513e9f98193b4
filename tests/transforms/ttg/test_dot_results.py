"""Dots compute the same before and behind the passes that change them, in the evaluator."""

import re

import pytest

from tilework.inspect.check_each import check_each
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.transforms.registry import parse_pipeline, run_pipeline

ELEMENTS = {"e2m1": "i8", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "bf16": "bf16", "fp16": "f16"}
M, N, K = 64, 32, 64
CONVERT = "convert-triton-to-tritongpu{{target=cuda:{target} num-warps=4}},tritongpu-accelerate-matmul"


def load(name: str, rows: int, columns: int, element: str) -> str:
    """``%name = `` the row-major matrix at ``%p_name``."""
    shape = f"{rows}x{columns}x"
    return f"""
  %{name}_r = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>
  %{name}_c = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>
  %{name}_r1 = tt.expand_dims %{name}_r {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
  %{name}_c1 = tt.expand_dims %{name}_c {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
  %{name}_w = arith.constant dense<{columns}> : tensor<{rows}x1xi32>
  %{name}_m = arith.muli %{name}_r1, %{name}_w : tensor<{rows}x1xi32>
  %{name}_rb = tt.broadcast %{name}_m : tensor<{rows}x1xi32> -> tensor<{shape}i32>
  %{name}_cb = tt.broadcast %{name}_c1 : tensor<1x{columns}xi32> -> tensor<{shape}i32>
  %{name}_o = arith.addi %{name}_rb, %{name}_cb : tensor<{shape}i32>
  %{name}_s = tt.splat %p_{name} : !tt.ptr<{element}> -> tensor<{shape}!tt.ptr<{element}>>
  %{name}_p = tt.addptr %{name}_s, %{name}_o : tensor<{shape}!tt.ptr<{element}>>, tensor<{shape}i32>
  %{name} = tt.load %{name}_p : tensor<{shape}!tt.ptr<{element}>>"""


def exponents(name: str, rows: int) -> str:
    """Scales between 2 ** -7 and 1, from any bytes at ``%p_name``."""
    type = f"tensor<{rows}x{K // 32}xi8>"
    return f"""{load(name + "0", rows, K // 32, "i8")}
  %{name}_mask = arith.constant dense<7> : {type}
  %{name}_least = arith.constant dense<120> : {type}
  %{name}_low = arith.andi %{name}0, %{name}_mask : {type}
  %{name} = arith.addi %{name}_low, %{name}_least : {type}"""


def scaled(lhs: str, rhs: str, scales: str, options: str) -> str:
    """A kernel with one `tt.dot_scaled`; `scales` names the sides that have them."""
    a, b = [M, K], [K, N]
    if lhs == "e2m1":
        a[0 if "lhs_k_pack = false" in options else 1] //= 2
    if rhs == "e2m1":
        b[1 if "rhs_k_pack = false" in options else 0] //= 2
    types = {
        "a": f"tensor<{a[0]}x{a[1]}x{ELEMENTS[lhs]}>",
        "b": f"tensor<{b[0]}x{b[1]}x{ELEMENTS[rhs]}>",
        "sa": f", tensor<{M}x{K // 32}xi8>" if "a" in scales else "",
        "sb": f", tensor<{N}x{K // 32}xi8>" if "b" in scales else "",
    }
    sides = ["%a scale %sa" if "a" in scales else "%a", "%b scale %sb" if "b" in scales else "%b"]
    return f"""module {{
tt.func public @kernel(%p_a: !tt.ptr<{ELEMENTS[lhs]}>, %p_b: !tt.ptr<{ELEMENTS[rhs]}>, %p_sa0: !tt.ptr<i8>,
                       %p_sb0: !tt.ptr<i8>, %p_c: !tt.ptr<f32>) {{
  {load("a", a[0], a[1], ELEMENTS[lhs])}{load("b", b[0], b[1], ELEMENTS[rhs])}{load("c", M, N, "f32")}
  {exponents("sa", M)}{exponents("sb", N)}
  %d = tt.dot_scaled {", ".join(sides)}, %c lhs = {lhs} rhs = {rhs} {{{options}}}
       : {types["a"]}{types["sa"]} * {types["b"]}{types["sb"]} -> tensor<{M}x{N}xf32>
  tt.store %c_p, %d : tensor<{M}x{N}x!tt.ptr<f32>>
  tt.return
}}
}}"""


@pytest.mark.parametrize("target", [80, 90])
@pytest.mark.parametrize(
    ("lhs", "rhs", "scales", "options"),
    [
        ("e4m3", "e5m2", "ab", "fastMath = false"),
        ("e2m1", "e4m3", "ab", "fastMath = false"),
        ("bf16", "e2m1", "b", "fastMath = true"),
        ("fp16", "e5m2", "b", "fastMath = false"),
        ("e5m2", "e2m1", "ab", "fastMath = false, rhs_k_pack = false"),
        ("e2m1", "bf16", "a", "fastMath = false, lhs_k_pack = false"),
        ("e4m3", "e4m3", "", "fastMath = false"),
    ],
)
def test_a_scaled_dot(lhs: str, rhs: str, scales: str, options: str, target: int) -> None:
    passes = parse_pipeline(CONVERT.format(target=target))
    report = check_each(parse_module(scaled(lhs, rhs, scales, options)), passes, 3)
    assert report.ok, report


@pytest.mark.parametrize("target", [90, 100, 120])
def test_scaled_operands_carried_by_integers(target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tt.fp_to_fp` takes floats: the bits of fp8 in i8, and of bf16 in i16, are made floats first."""
    for lhs, rhs, scales in (("e4m3", "e5m2", "ab"), ("bf16", "e4m3", "b"), ("e5m2", "bf16", "a")):
        monkeypatch.setitem(ELEMENTS, "e4m3", "i8")
        monkeypatch.setitem(ELEMENTS, "e5m2", "i8")
        monkeypatch.setitem(ELEMENTS, "bf16", "i16")
        module = parse_module(scaled(lhs, rhs, scales, "fastMath = false"))
        run_pipeline(module, parse_pipeline(CONVERT.format(target=target)))
        verify(module)


def reset_loop(before: str, after: str, carried: str, initial: str) -> str:
    """A matmul in a loop whose accumulator is reset by `before` (makes ``%acc0``) and `after` (makes ``%e``)."""
    c = f"tensor<{M}x{N}xf32>"
    return f"""module {{
tt.func public @kernel(%p_a: !tt.ptr<f16>, %p_b: !tt.ptr<f16>, %p_c: !tt.ptr<f32>) {{
  %zero = arith.constant dense<0.0> : {c}
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c5 = arith.constant 5 : i32
  {load("a", M, K, "f16")}{load("b", K, N, "f16")}{load("c", M, N, "f32")}
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = {initial}) -> ({c}) : i32 {{
    %is = arith.cmpi eq, %i, %c{carried} : i32
    {before}
    %d = tt.dot %a, %b, %acc0 : tensor<{M}x{K}xf16> * tensor<{K}x{N}xf16> -> {c}
    {after}
    scf.yield %e : {c}
  }}
  tt.store %c_p, %r : tensor<{M}x{N}x!tt.ptr<f32>>
  tt.return
}}
}}"""


C = f"tensor<{M}x{N}xf32>"
SAME = f"%acc0 = arith.select %is, %acc, %acc : {C}"
RESETS = {
    "start": (SAME, f"%e = arith.select %is, %d, %d : {C}"),
    "select behind": (SAME, f"%e = arith.select %is, %zero, %d : {C}"),
    "other side": (SAME, f"%e = arith.select %is, %d, %zero : {C}"),
    "select before": (f"%acc0 = arith.select %is, %zero, %acc : {C}", f"%e = arith.select %is, %d, %d : {C}"),
    "branch behind": (
        SAME,
        f"%e = scf.if %is -> ({C}) {{\ntt.store %c_p, %d : tensor<{M}x{N}x!tt.ptr<f32>>\nscf.yield %zero : {C}\n}} "
        f"else {{\nscf.yield %d : {C}\n}}",
    ),
    "used elsewhere": (
        SAME,
        f"%f = arith.select %is, %zero, %d : {C}\ntt.store %c_p, %f : tensor<{M}x{N}x!tt.ptr<f32>>\n"
        f"%e = arith.select %is, %f, %f : {C}",
    ),
}


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("when", ["2", "5", "0"], ids=["in between", "never", "first"])
@pytest.mark.parametrize("initial", ["%zero", "%c"])
def test_an_accumulator_that_is_reset(reset: str, when: str, initial: str) -> None:
    text = reset_loop(*RESETS[reset], when, initial)
    passes = parse_pipeline(
        f"canonicalize,{CONVERT.format(target=90)},tritongpu-remove-layout-conversions,"
        "tritongpu-optimize-accumulator-init,canonicalize"
    )
    report = check_each(parse_module(text), passes, 1)
    assert report.ok, report


def test_a_reset_in_the_last_iteration_reaches_the_result() -> None:
    text = (
        reset_loop(*RESETS["select behind"], "2", "%zero")
        .replace("%c5 step", "%c3 step")
        .replace("%c5 = arith.constant 5", "%c3 = arith.constant 3")
    )
    passes = parse_pipeline(
        f"canonicalize,{CONVERT.format(target=90)},tritongpu-remove-layout-conversions,"
        "tritongpu-optimize-accumulator-init"
    )
    assert check_each(parse_module(text), passes, 1).ok
    module = parse_module(text)
    run_pipeline(module, passes)
    assert "ttng.warp_group_dot" in print_module(module) and "-> (tensor" in print_module(module)


def tiles(rounds: str, steps: str) -> str:
    """Products added to a matrix in memory, one outer iteration after the other."""
    return f"""module {{
tt.func public @kernel(%p_a: !tt.ptr<f16>, %p_b: !tt.ptr<f16>, %p_c: !tt.ptr<f32>, %x: i32, %y: i32) {{
  %zero = arith.constant dense<0.0> : {C}
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %drawn = arith.remsi %x, %c4 : i32
  %few = arith.remsi %y, %c4 : i32
  {load("a", M, K, "f16")}{load("b", K, N, "f16")}{load("c", M, N, "f32")}
  scf.for %t = %c0 to {rounds} step %c1 : i32 {{
    %sum = scf.for %k = %c0 to {steps} step %c1 iter_args(%acc = %zero) -> ({C}) : i32 {{
      %d = tt.dot %a, %b, %acc : tensor<{M}x{K}xf16> * tensor<{K}x{N}xf16> -> {C}
      scf.yield %d : {C}
    }}
    %old = tt.load %c_p : tensor<{M}x{N}x!tt.ptr<f32>>
    %i = arith.sitofp %t : i32 to f32
    %factor = tt.splat %i : f32 -> {C}
    %scaled = arith.mulf %old, %factor : {C}
    %new = arith.addf %sum, %scaled : {C}
    tt.store %c_p, %new : tensor<{M}x{N}x!tt.ptr<f32>>
  }} {{tt.flatten}}
  tt.return
}}
}}"""


@pytest.mark.parametrize(("rounds", "steps"), [("%c4", "%c2"), ("%drawn", "%few"), ("%few", "%c2"), ("%c2", "%drawn")])
def test_a_persistent_loop_becomes_one_loop_with_a_flag(rounds: str, steps: str) -> None:
    passes = parse_pipeline(
        f"{CONVERT.format(target=90)},tritongpu-remove-layout-conversions,tritongpu-fuse-nested-loops,canonicalize,"
        "triton-licm,tritongpu-combine-tensor-select-and-if,tritongpu-optimize-accumulator-init,canonicalize"
    )
    for seed in range(4):
        report = check_each(parse_module(tiles(rounds, steps)), passes, seed)
        assert report.ok, report
    module = parse_module(tiles(rounds, steps))
    run_pipeline(module, passes)
    text = print_module(module)
    # The zeros of each outer iteration became the fourth operand of the dot.
    assert re.search(r"ttng.warp_group_dot %\w+, %\w+, %\w+, %\w+ ", text), text
