"""`tritongpu-remove-layout-conversions` on generated programs: valid, the same twice, and computing the same."""

import pytest

from tests.fuzz.amount import amount
from tests.transforms.ttg.generated_layouts import draw
from tilework.inspect.check_each import check_each
from tilework.ir import ttg
from tilework.ir.create import clone_op
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import first_problem, verify
from tilework.transforms.registry import make_pass, run_pipeline

PASS = "tritongpu-remove-layout-conversions"


@pytest.mark.parametrize("seed", range(amount(24)))
def test_generated_programs(seed: int) -> None:
    module = parse_module(draw(seed))
    assert first_problem(module) is None
    report = check_each(module, [make_pass(PASS)], seed)
    assert "error" not in str(report), report
    again = clone_op(module, {})
    run_pipeline(module, [PASS])
    verify(module)
    run_pipeline(again, [PASS])
    assert print_module(again) == print_module(module)


def conversions(text: str, *passes: str) -> int:
    module = parse_module(text)
    run_pipeline(module, passes)
    return sum(isinstance(op, ttg.ConvertLayoutOp) for op in module.walk())


def test_most_conversions_go() -> None:
    texts = [draw(seed) for seed in range(10)]
    assert 2 * sum(conversions(text, PASS) for text in texts) < sum(map(conversions, texts))


LONG = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @long(%p: tensor<512x!tt.ptr<i32>, #E>) {
    %x0 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #D>
LINES
    %y = ttg.convert_layout %xLAST : tensor<512xi32, #D> -> tensor<512xi32, #E>
    tt.store %p, %y : tensor<512x!tt.ptr<i32>, #E>
    tt.return
  }
}
"""


def test_a_chain_longer_than_the_stack_of_python() -> None:
    count = 3000
    lines = [f"    %x{i + 1} = arith.addi %x{i}, %x{i} : tensor<512xi32, #D>" for i in range(count)]
    text = LONG.replace("LINES", "\n".join(lines)).replace("LAST", str(count))
    for name, size in (("#D", 1), ("#E", 4)):
        blocked = f"sizePerThread = [{size}], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]"
        text = text.replace(name, f"#ttg.blocked<{{{blocked}}}>")
    assert conversions(text) == 1
    assert conversions(text, PASS) == 0
