"""Properties that the FileCheck files next to this one cannot express: remarks, results of whole loops, IR that no pass
may change."""

import re
from pathlib import Path

import pytest

from tilework.errors import PassError
from tilework.inspect.check_each import check_each, parts
from tilework.ir.create import clone_op
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import first_problem
from tilework.transforms.registry import make_pass, parse_pipeline, run_pipeline
from tilework.transforms.remarks import listening

PASSES = (
    "tritongpu-accelerate-matmul",
    "tritongpu-optimize-dot-operands",
    "triton-nvidia-optimize-descriptor-encoding",
    "tritongpu-fuse-nested-loops",
    "tritongpu-combine-tensor-select-and-if",
    "tritongpu-optimize-accumulator-init",
)
FILES = [
    Path(__file__).with_name(f"{name}.mlir")
    for name in (
        "accelerate_matmul",
        "accelerate_matmul_hopper",
        "carried_reductions",
        "coalesce",
        "combine_tensor_select_and_if",
        "convert_canonicalize",
        "decompose_dot_scaled",
        "fuse_nested_loops",
        "optimize_accumulator_init",
        "optimize_descriptor_encoding",
        "optimize_dot_operands",
        "optimize_thread_locality",
    )
]
FACTS = (
    'module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:{target}", '
    '"ttg.threads-per-warp" = 32 : i32}} {{{body}}}'
)
BLOCKED = (
    "#ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [{warps}, 1], order = [1, 0]}}>"
)


def dot(target: int, warps: int, m: int, n: int, k: int, element: str, result: str, options: str = "") -> str:
    """A module with one dot."""
    layout = BLOCKED.format(warps=warps)
    a = f"tensor<{m}x{k}x{element}, #ttg.dot_op<{{opIdx = 0, parent = {layout}}}>>"
    b = f"tensor<{k}x{n}x{element}, #ttg.dot_op<{{opIdx = 1, parent = {layout}}}>>"
    c = f"tensor<{m}x{n}x{result}, {layout}>"
    body = (
        f"tt.func @f(%a: {a}, %b: {b}, %c: {c}) -> {c} {{\n"
        f"%d = tt.dot %a, %b, %c{options} : {a} * {b} -> {c}\ntt.return %d : {c}\n}}"
    )
    return FACTS.format(warps=warps, target=target, body=body)


def remarks_of(text: str) -> list[str]:
    module = parse_module(text)
    with listening() as remarks:
        run_pipeline(module, [make_pass("tritongpu-accelerate-matmul")])
    return [remark.text for remark in remarks]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (dot(90, 4, 64, 64, 32, "f16", "f32"), []),
        (
            dot(90, 4, 64, 64, 32, "f64", "f64"),
            ["wgmma cannot be used for this dot: it does not multiply f64 and f64"],
        ),
        (dot(90, 2, 64, 64, 32, "f16", "f32"), ["groups of 4 warps, but num_warps is 2"]),
        (dot(90, 4, 32, 64, 32, "f16", "f32"), ["M must be a multiple of 64, but is 32"]),
        (dot(90, 4, 64, 8, 32, "f16", "f32"), ["N must be a multiple of 16, but is 8"]),
        (dot(90, 4, 64, 64, 16, "i8", "i32"), ["K must be at least 32, but is 16"]),
        (dot(90, 4, 64, 64, 32, "f8E5M2", "f32"), ["max_num_imprecise_acc must be at least 32 for fp8, but is 0"]),
        (dot(90, 4, 64, 64, 32, "f8E5M2", "f16"), ["the right operand is not contiguous along K"]),
        (
            dot(90, 4, 64, 64, 32, "f32", "f32"),
            ["wgmma cannot be used for this dot: f32 needs", "mma.sync cannot be used", "does not use tensor cores"],
        ),
        (dot(80, 4, 64, 64, 32, "i64", "i64"), ["it does not multiply i64 and i64", "does not use tensor cores"]),
        (dot(80, 4, 64, 64, 32, "f16", "f64"), ["it does not accumulate f16 in f64", "does not use tensor cores"]),
        (dot(86, 4, 64, 64, 32, "f64", "f64"), ["cuda:86 has no f64 tensor cores", "does not use tensor cores"]),
        (dot(75, 4, 64, 64, 32, "f16", "f32"), ["this dot does not use tensor cores: cuda:75 has none that are known"]),
    ],
)
def test_a_dot_says_why_it_misses_an_instruction(text: str, reasons: list[str]) -> None:
    said = remarks_of(text)
    assert len(said) == len(reasons), said
    for reason, sentence in zip(reasons, said, strict=True):
        assert reason in sentence


def test_the_capability_can_be_an_option() -> None:
    module = parse_module(dot(90, 4, 64, 64, 32, "f16", "f32"))
    run_pipeline(module, parse_pipeline("tritongpu-accelerate-matmul{compute-capability=80}"))
    assert "versionMajor = 2" in print_module(module)


def test_a_format_that_nothing_can_unpack_is_an_error() -> None:
    layout = BLOCKED.format(warps=4)
    types = [f"tensor<{shape}, {layout}>" for shape in ("64x64xi8", "64x2xi8", "64x64xbf16", "64x64xf32")]
    a, scale, b, c = types
    body = (
        f"tt.func @f(%a: {a}, %s: {scale}, %b: {b}, %c: {c}) -> {c} {{\n"
        f"%d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m3 rhs = bf16 {{fastMath = false}} : {a}, {scale} * {b} "
        f"-> {c}\n"
        f"tt.return %d : {c}\n}}"
    )
    module = parse_module(FACTS.format(warps=4, target=80, body=body))
    with pytest.raises(PassError, match="e2m3 is not available"):
        run_pipeline(module, [make_pass("tritongpu-accelerate-matmul")])


NESTED = """tt.func public @f(%p: !tt.ptr<i32>, %x: i32, %y: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c5 = arith.constant 5 : i32
  %c7 = arith.constant 7 : i32
  %n = arith.remsi %x, %c5 : i32
  %rest = arith.remsi %x, %c7 : i32
  %m = arith.subi %rest, %c2 : i32
  %l = arith.remsi %y, %c5 : i32
  %r:2 = scf.for %i = %c1 to %n step {step} iter_args(%o = %x, %w = %c0) -> (i32, i32) : i32 {{
    %a = arith.addi %o, %i : i32
    %k:2 = scf.for %j = %c0 to %m step %c3 iter_args(%q = %c7, %z = %a) -> (i32, i32) : i32 {{
      %s = arith.muli %q, %a : i32
      %s2 = arith.addi %s, %j : i32
      %s3 = arith.muli %z, %c3 : i32
      %s4 = arith.addi %s3, %i : i32
      scf.yield %s2, %s4 : i32, i32
    }}
    {more}
    %e = arith.xori %k#0, %k#1 : i32
    %e2 = arith.addi %e, %k2 : i32
    scf.yield %e2, %o : i32, i32
  }} {{{option}}}
  tt.store %p, %r#0 : !tt.ptr<i32>
  %p1 = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
  tt.store %p1, %r#1 : !tt.ptr<i32>
  tt.return
}}"""
SECOND = """%b = arith.addi %k#0, %i : i32
    %t = arith.muli %b, %a : i32
    %k2 = scf.for %j = %c2 to %l step %c1 iter_args(%q = %o) -> i32 : i32 {{
      {inner}
      %v4 = arith.addi %u, %t : i32
      scf.yield %v4 : i32
    }}"""
INNER = """%u = scf.for %h = %c0 to %m step %c1 iter_args(%v = %q) -> i32 : i32 {
         %v2 = arith.muli %v, %c7 : i32
         %v3 = arith.addi %v2, %h : i32
         scf.yield %v3 : i32
      }"""
ALWAYS = '"ttg.always-fuse"'


@pytest.mark.parametrize(
    ("more", "option", "loops"),
    [
        ("%k2 = arith.addi %a, %i : i32", "tt.flatten", 2),  # one fused, one for the case that the inner loop is empty
        ("%k2 = arith.addi %a, %i : i32", ALWAYS, 1),
        (SECOND.format(inner="%u = arith.muli %q, %j : i32"), ALWAYS, 1),
        (SECOND.format(inner=INNER), ALWAYS, 1),
    ],
    ids=["pair", "pair without assumption", "two children", "three levels"],
)
@pytest.mark.parametrize("step", ["%c1", "%c2"])
def test_fused_loops_compute_the_same(more: str, option: str, loops: int, step: str) -> None:
    body = NESTED.format(more=more, option=option, step=step)
    text = FACTS.format(warps=4, target=90, body=body)
    passes = parse_pipeline("tritongpu-fuse-nested-loops,canonicalize")
    module = parse_module(text)
    for seed in range(12):
        report = check_each(module, passes, seed)
        assert report.ok, report
    run_pipeline(module, passes)
    assert print_module(module).count("scf.for") == loops


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_any_input_gives_the_same_text_twice(file: Path) -> None:
    for section in re.split(r"^// -----.*$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if '"ttg.num-warps"' not in section:
            continue
        module = parse_module(section)
        assert first_problem(module) is None
        for name in PASSES:
            copy, again = clone_op(module, {}), clone_op(module, {})
            untouched = parts(copy)
            run_pipeline(copy, [make_pass(name)])
            if parts(copy) == untouched:
                continue
            run_pipeline(again, [make_pass(name)])
            assert first_problem(copy) is None and print_module(copy) == print_module(again), name
