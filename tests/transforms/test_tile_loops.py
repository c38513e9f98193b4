"""Turning tiles into loop nests keeps what kernels compute: the examples, generated kernels, and one kernel per kind of
op."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.fuzz.amount import amount
from tests.fuzz.kernels import generate_kernel
from tests.fuzz.run import capability, compile_generated
from tests.pipeline.compiled import CASES, frontend_module, optimise
from tests.pipeline.stages import StageError, check_stage
from tilework.errors import PassError
from tilework.inspect.check_each import check_each
from tilework.ir import ttc
from tilework.ir.create import clone_op
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.transforms.registry import make_pass, run_pipeline, ttc_pipeline, ttir_pipeline

FOLDER = Path(__file__).parent
KERNELS = parse_module((FOLDER / "ttc" / "kernels.ttir").read_text())
REFERENCE = sorted((FOLDER.parent / "ir" / "reference" / "sm_90").glob("*.ttir"))
PUBLIC = [f.sym_name.data for f in KERNELS.ops if f.sym_visibility.data == "public"]  # pyright: ignore
GENERATED, CHUNK = amount(10), 5


def converted(module: ModuleOp) -> ModuleOp:
    """A copy of `module` as loop nests: well formed, of the stage, and the same when its text is read again."""
    copy = clone_op(module, {})
    run_pipeline(copy, ttc_pipeline())
    verify(copy)
    check_stage(copy, "ttcir")
    text = print_module(copy)
    assert print_module(parse_module(text)) == text
    return copy


def assert_kept(module: ModuleOp, *seeds: int, programs: int = 2) -> None:
    for seed in seeds:
        report = check_each(module, [make_pass(name) for name in ttc_pipeline()], seed, programs=programs)
        assert report.ok and not report.unchecked, str(report)
    converted(module)


def only(name: str) -> ModuleOp:
    """The module of one of the kernels, with the functions it may call."""
    module = clone_op(KERNELS, {})
    for function in tuple(module.ops):
        if function.sym_visibility.data == "public" and function.sym_name.data != name:  # pyright: ignore
            function.detach()
            function.erase()
    return module


@pytest.mark.parametrize("name", PUBLIC)
def test_every_kind_of_op(name: str) -> None:
    assert_kept(only(name), 0, 1, 2, programs=1)


@pytest.mark.parametrize("name", CASES)
def test_examples(name: str) -> None:
    case = CASES[name]
    module = optimise(frontend_module(case, "cpu"), "cpu")

    def run(module: ModuleOp) -> list[bytes]:
        arrays = case.arguments(np.random.default_rng(0))
        memory = case.memory(arrays)
        evaluate(module, None, [arrays[parameter] for parameter in case.signature], case.grid, memory=memory)
        results = memory or [array for array in arrays.values() if isinstance(array, np.ndarray)]
        return [array.tobytes() for array in results]

    assert run(converted(module)) == run(module)


@pytest.mark.parametrize("path", REFERENCE, ids=lambda path: path.stem)
def test_reference_kernels(path: Path) -> None:
    module = parse_module(path.read_text())
    run_pipeline(module, ttir_pipeline(Target.parse("cpu")))
    assert_kept(module, 1)


@pytest.mark.parametrize("first", range(0, GENERATED, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_generated_kernels(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        module = compile_generated(generate_kernel(seed, capability(seed)), tmp_path)
        run_pipeline(module, ttir_pipeline(Target.parse("cpu")))
        assert_kept(module, seed)


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [
        ("softmax", {"BLOCK": 1024}, {"BLOCK": 16384}),
        ("matmul", {"BM": 32, "BN": 32, "BK": 16}, {"BM": 128, "BN": 128, "BK": 64}),
    ],
)
def test_the_code_does_not_grow_with_the_tile(name: str, small: dict[str, Any], large: dict[str, Any]) -> None:
    counts: list[int] = []
    for sizes in (small, large):
        known = {key: value for key, value in sizes.items() if key in CASES[name].constexprs}
        module = converted(optimise(frontend_module(CASES[name], "cpu", **known), "cpu"))
        counts.append(sum(op.name != "arith.constant" for op in module.walk()))
    assert counts[0] == counts[1]


def nests(module: ModuleOp) -> list[tuple[int, ...]]:
    return [tuple(op.shape.get_values()) for op in module.walk() if isinstance(op, ttc.NestOp)]  # pyright: ignore


def test_softmax_is_three_nests() -> None:
    assert nests(converted(optimise(frontend_module(CASES["softmax"], "cpu"), "cpu"))) == [(1024,)] * 3


def test_matmul_carries_no_pointers() -> None:
    """Two loads and a dot in the loop; only how far the pointers moved is carried."""
    module = converted(optimise(frontend_module(CASES["matmul"], "cpu"), "cpu"))
    (loop,) = (op for op in module.walk() if op.name == "scf.for")
    names = [op.name for op in loop.regions[0].block.ops if op.name.startswith("ttc.")]
    assert names == ["ttc.nest", "ttc.nest", "ttc.dot"]
    assert {str(result.type) for result in loop.results} == {"i64"}


@pytest.mark.parametrize("name", [name for name in CASES if "attention" in name])
def test_tiles_of_before_a_loop_are_not_copied_in_it(name: str) -> None:
    """The operand of a dot in the loop is written to its buffer where it is loaded."""
    module = converted(optimise(frontend_module(CASES[name], "cpu"), "cpu"))
    copies = [
        tuple(nest.shape.get_values())  # pyright: ignore
        for nest in module.walk()
        if isinstance(nest, ttc.NestOp)
        and [op.name for op in nest.regions[0].block.ops] == ["ttc.read", "ttc.write", "ttc.end"]
    ]
    assert all(len(shape) == 1 for shape in copies)  # rows of sums and maxima, which the loop carries


def test_inline_assembly_is_refused_with_its_line() -> None:
    module = parse_module("""
tt.func public @asm(%x: tensor<16xi32>) {
  %y = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<16xi32> -> tensor<16xi32> loc("k.py":7:3)
  tt.return
}""")  # noqa: E501
    with pytest.raises(PassError, match=r"k\.py.*:7:3.*inline assembly"):
        run_pipeline(module, ["convert-triton-to-tile-loops"])


def test_the_stage_has_no_tensors() -> None:
    module = parse_module("tt.func public @f(%x: tensor<4xi32>) {\n  tt.return\n}")
    with pytest.raises(StageError, match="ttcir has no tensors"):
        check_stage(module, "ttcir")


@pytest.mark.parametrize("operands", ["%v{n}, %v{n}", "%v{n}, %v0", "%v0, %v{n}"])
def test_long_chains_of_ops_are_cut(operands: str) -> None:
    """Elements are computed by recursion: an unrolled kernel must not exhaust the stack."""
    steps = "\n".join(f"%v{n + 1} = arith.addf {operands.format(n=n)} : tensor<64xf32>" for n in range(1500))
    module = parse_module(f"""
tt.func public @long(%x: !tt.ptr<f32>) {{
  %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %v0 = tt.load %q : tensor<64x!tt.ptr<f32>>
  {steps}
  tt.store %q, %v1500 : tensor<64x!tt.ptr<f32>>
  tt.return
}}""")
    run_pipeline(module, ["convert-triton-to-tile-loops"])
    assert nests(module) == [(64,)]


def test_pointers_seen_with_sizes_that_no_loops_have() -> None:
    """Of 6x10 as 5x12 each element's offset is computed from the row-major index; of other tiles the elements are
    stored first."""
    assert_kept(
        parse_module("""
tt.func public @reshaped(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %r6 = tt.make_range {end = 6 : i32, start = 0 : i32} : tensor<6xi32>
  %r10 = tt.make_range {end = 10 : i32, start = 0 : i32} : tensor<10xi32>
  %c20 = arith.constant dense<20> : tensor<6x1xi32>
  %i = tt.expand_dims %r6 {axis = 1 : i32} : tensor<6xi32> -> tensor<6x1xi32>
  %j = tt.expand_dims %r10 {axis = 0 : i32} : tensor<10xi32> -> tensor<1x10xi32>
  %rows = arith.muli %i, %c20 : tensor<6x1xi32>
  %a = tt.broadcast %rows : tensor<6x1xi32> -> tensor<6x10xi32>
  %b = tt.broadcast %j : tensor<1x10xi32> -> tensor<6x10xi32>
  %o = arith.addi %a, %b : tensor<6x10xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<6x10x!tt.ptr<i32>>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<6x10x!tt.ptr<i32>>
  %px = tt.addptr %xs, %o : tensor<6x10x!tt.ptr<i32>>, tensor<6x10xi32>
  %py = tt.addptr %ys, %o : tensor<6x10x!tt.ptr<i32>>, tensor<6x10xi32>
  %qx = tt.reshape %px : tensor<6x10x!tt.ptr<i32>> -> tensor<5x12x!tt.ptr<i32>>
  %qy = tt.reshape %py : tensor<6x10x!tt.ptr<i32>> -> tensor<5x12x!tt.ptr<i32>>
  %v = tt.load %qx : tensor<5x12x!tt.ptr<i32>>
  %r5 = tt.make_range {end = 5 : i32, start = 0 : i32} : tensor<5xi32>
  %row = tt.expand_dims %r5 {axis = 1 : i32} : tensor<5xi32> -> tensor<5x1xi32>
  %w = tt.broadcast %row : tensor<5x1xi32> -> tensor<5x12xi32>
  %s = arith.addi %v, %w : tensor<5x12xi32>
  tt.store %qy, %s : tensor<5x12x!tt.ptr<i32>>
  tt.return
}"""),
        0,
    )
