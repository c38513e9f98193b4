"""The pipeliner keeps what loops compute: for each form of loop, each number of stages and of iterations.

The evaluator checks on the way that no buffer is read before its copy is done, or written while it is read.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.transforms.ttg.pipeline_programs import BODIES, program
from tests.transforms.ttg.reference import steps
from tilework.inspect.check_each import check_each
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.transforms.registry import parse_pipeline, run_pipeline

DUMPS = Path(__file__).parent / "dumps"
PASSES = (
    "nvgpu-warp-specialization,tritongpu-assign-latencies{{num-stages={0}}},tritongpu-schedule-loops,"
    "tritongpu-pipeline{{num-stages={0}}},canonicalize,triton-loop-aware-cse"
)


def arguments(trips: int, **more: int) -> dict[str, object]:
    draw = np.random.default_rng(7)
    return {
        "a": draw.standard_normal((64, 512)).astype(np.float16),
        "b": draw.standard_normal((512, 64)).astype(np.float16),
        "c": np.zeros((64, 64), np.float32),
        "w": np.zeros((64, 512), np.float16),
        "idx": draw.integers(0, 8, 64).astype(np.int32),
        "n": trips,
        "lb": 1,
        "step": 2,
        "odd": 1,
        **more,
    }


def check(text: str, stages: int, *trips: int) -> None:
    module = parse_module(text)
    for count in trips:
        report = check_each(module, PASSES.format(stages), given=arguments(count), grid=(1, 1, 1))
        assert report.ok and report.checked, f"{stages} stages, {count} iterations: {report}"


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("name", BODIES)
def test_every_body(name: str, sm: int) -> None:
    check(program(name, sm=sm), 3, 0, 1, 5)


@pytest.mark.parametrize("sm", [80, 90])
@pytest.mark.parametrize("stages", [1, 2, 4, 5])
def test_every_number_of_stages(stages: int, sm: int) -> None:
    for name in ("plain", "indirect"):
        check(program(name, sm=sm), stages, 1, 6)


@pytest.mark.parametrize("sm", [80, 90])
def test_bounds_that_are_not_constant(sm: int) -> None:
    check(program("plain", sm=sm, lower="%lb", step="%step"), 3, 0, 2, 7)


def test_a_loop_says_how_many_stages_it_wants() -> None:
    check(program("used_twice", attributes="{tt.num_stages = 4 : i32}"), 1, 0, 2, 5)
    assert "async_copy" not in pipelined(program("plain", attributes="{tt.num_stages = 1 : i32}"), 3)


def descriptor_program(made_in_the_loop: bool) -> str:
    """Triton's product of descriptors, before it is pipelined; perhaps with a descriptor that the loop makes itself."""
    (step,) = steps(DUMPS / "sm_90" / "matmul_descriptor.passes", "tritongpu-assign-latencies")
    text = step.before.replace("@matmul_tma(", "@matmul_tma(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, ")
    if not made_in_the_loop:
        return text
    load = re.search(r"^.*tt.descriptor_load %a\[", text, re.MULTILINE)
    assert load
    made = """%one = arith.constant 1 : i64
      %stride = arith.extsi %K : i32 to i64
      %made = tt.make_tensor_descriptor %p, [%M, %K], [%stride, %one] : !tt.ptr<f16>, !tt.tensordesc<tensor<128x64xf16, #shared>>
"""  # noqa: E501
    return text.replace(load[0], made + load[0].replace("%a[", "%made["))


@pytest.mark.parametrize("made_in_the_loop", [False, True])
def test_descriptors(made_in_the_loop: bool) -> None:
    draw = np.random.default_rng(3)
    text = descriptor_program(made_in_the_loop)
    for size in (64, 256):
        a, b = draw.standard_normal((128, size)), draw.standard_normal((size, 256))
        given: dict[str, object] = {"p": a.astype(np.float16), "M": 128, "N": 256, "K": size}
        for name, array in (("a", a), ("b", b), ("c", np.zeros((128, 256)))):
            given[name] = (array.astype(np.float16), array.shape, (array.shape[1], 1))
        report = check_each(parse_module(text), PASSES.format(3), given=given, grid=(1, 1, 1))
        assert report.ok and report.checked, f"{size}: {report}"


@pytest.mark.parametrize("name", ["indirect", "if_result"])
def test_the_same_text_twice(name: str) -> None:
    text = program(name, sm=90)
    assert pipelined(text, 3) == pipelined(text, 3)


def pipelined(text: str, stages: int) -> str:
    module = parse_module(text)
    run_pipeline(module, parse_pipeline(PASSES.format(stages)))
    verify(module)
    return print_module(module)
