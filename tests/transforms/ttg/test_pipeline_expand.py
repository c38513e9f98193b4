"""The expander on generated loops with generated schedules: every op anywhere its operands allow, results the same.

A schedule is what the attributes say, so `tritongpu-pipeline` runs it, whatever made it, and so does
`tritonamdgpu-pipeline`, which peels the last iterations.
"""

import random
from itertools import product

import numpy as np
import pytest

from tests.fuzz.amount import amount
from tilework.inspect.check_each import check_each
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.transforms.registry import run_pipeline
from tilework.transforms.remarks import listening
from tilework.transforms.ttg.pipeline.expand import problem
from tilework.transforms.ttg.pipeline.loops import body_ops, loops_in, set_integer
from tilework.transforms.ttg.pipeline.schedule import Schedule

HEAD = """module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32, %step: i32) {
    %c0 = arith.constant 0 : i32
    %c3 = arith.constant 3 : i32
    %c31 = arith.constant 31 : i32
"""  # noqa: E501


def generated_body(draw: random.Random) -> tuple[list[str], list[str]]:
    """Lines of a body, and the values they define."""
    lines: list[str] = []
    values = ["%k", "%x", "%y", "%z"]
    for number in range(draw.randint(4, 9)):
        name, (left, right) = f"%v{number}", draw.choices(values, k=2)
        kind = draw.choice(["addi", "muli", "xori", "load", "store", "if"])
        if kind == "load":
            lines += [
                f"%i{number} = arith.andi {left}, %c31 : i32",
                f"%p{number} = tt.addptr %p, %i{number} : !tt.ptr<i32>, i32",
                f"{name} = tt.load %p{number} : !tt.ptr<i32>",
            ]
        elif kind == "store":
            lines += [
                f"%o{number} = arith.constant {64 * (number + 1)} : i32",
                f"%i{number} = arith.addi %k, %o{number} : i32",
                f"%q{number} = tt.addptr %q, %i{number} : !tt.ptr<i32>, i32",
                f"tt.store %q{number}, {right} : !tt.ptr<i32>",
                f"{name} = arith.subi {left}, {right} : i32",
            ]
        elif kind == "if":
            lines += [
                f"%c{number}x = arith.cmpi slt, {left}, {right} : i32",
                f"{name} = scf.if %c{number}x -> (i32) {{\n  %t = arith.addi {left}, %c3 : i32\n"
                f"  scf.yield %t : i32\n}} else {{"
                f"\n  scf.yield {right} : i32\n}}",
            ]
        else:
            lines.append(f"{name} = arith.{kind} {left}, {right} : i32")
        values.append(name)
    return lines, values[4:]


def generated_program(draw: random.Random) -> str:
    lines, values = generated_body(draw)
    yields = draw.choices(values, k=3)
    body = "\n".join(lines)
    return f"""{HEAD}
    %r:3 = scf.for %k = %c0 to %n step %step iter_args(%x = %c0, %y = %c3, %z = %n) -> (i32, i32, i32) : i32 {{
{body}
      scf.yield {", ".join(yields)} : i32, i32, i32
    }}
    %q1 = tt.addptr %q, %c3 : !tt.ptr<i32>, i32
    tt.store %q, %r#0 : !tt.ptr<i32>
    tt.store %q1, %r#{draw.choice([1, 2])} : !tt.ptr<i32>
    tt.return
  }}
}}
"""


def scheduled(draw: random.Random) -> str:
    """A program with a schedule that can be carried out: generated until there is one."""
    while True:
        text = generated_program(draw)
        for _ in range(20):
            module = parse_module(text)
            (loop,) = loops_in(module)
            stages: dict[object, int] = {}
            for op in body_ops(loop):
                inner = [value.owner for nested in op.walk() for value in nested.operands]
                stages[op] = max([stages.get(owner, 0) for owner in inner], default=0) + draw.choice([0, 0, 0, 1])
                set_integer(op, "loop.stage", stages[op])
                set_integer(op, "loop.cluster", draw.randint(0, 3) if draw.random() < 0.3 else 3 - min(stages[op], 3))
            set_integer(loop, "tt.scheduled_max_stage", last := max(stages.values()))
            schedule = Schedule.read(loop)
            assert schedule is not None
            if last > 0 and problem(loop, schedule.in_order(loop)) is None:
                return print_module(module)


@pytest.mark.parametrize("seed", range(amount(10)))
def test_generated_schedules(seed: int) -> None:
    text = scheduled(random.Random(seed))
    module, numbers = parse_module(text), np.random.default_rng(seed)
    cases = product(("tritongpu-pipeline", "tritonamdgpu-pipeline"), ((0, 1), (1, 1), (2, 2), (7, 1), (9, 2)))
    for pass_name, (trips, step) in cases:
        given = {
            "p": numbers.integers(-9, 9, 64).astype(np.int32),
            "q": np.full(1024, -77, np.int32),
            "n": trips,
            "step": step,
        }
        report = check_each(module, f"{pass_name},canonicalize,cse", given=given, grid=(1, 1, 1))
        assert report.ok and report.checked, f"{pass_name}, {trips} iterations by {step}: {report}\n{text}"


def test_the_reason_is_reported() -> None:
    text = f"""{HEAD}
    scf.for %k = %c0 to %n step %step : i32 {{
      %i = arith.addi %k, %c3 {{loop.cluster = 1 : i32, loop.stage = 1 : i32}} : i32
      %a = tt.addptr %q, %i {{loop.cluster = 0 : i32, loop.stage = 0 : i32}} : !tt.ptr<i32>, i32
      tt.store %a, %k {{loop.cluster = 0 : i32, loop.stage = 1 : i32}} : !tt.ptr<i32>
    }} {{tt.scheduled_max_stage = 1 : i32}}
    tt.return
  }}
}}
"""
    module = parse_module(text)
    with listening() as remarks:
        run_pipeline(module, ["tritongpu-pipeline"])
    assert [str(found) for found in remarks] == [
        "scf.for: the loop is not pipelined: tt.addptr would run before arith.addi, which it needs"
    ]
    assert "loop.stage" not in print_module(module)
