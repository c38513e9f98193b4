"""`canonicalize` changes no value: every rule of the folding tables, on expressions that share operands and on
constants at limits.

Rules of tiles, control flow and layouts are applied to the functions of `tests/transforms/**/*canonicalize*.mlir`,
whose values `tests/test_filecheck.py` compares.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from tests.transforms.folding_programs import (
    Function,
    cast_functions,
    comparison_functions,
    float_functions,
    integer_functions,
)
from tilework.ir.functions import functions
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate
from tilework.transforms.common.canonicalize import RULES
from tilework.transforms.folding import casts
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.worklist import Driver, Rule
from tilework.transforms.registry import run_pipeline

FUNCTIONS = [*integer_functions(), *comparison_functions(), *cast_functions(), *float_functions()]
FILES = sorted(Path(__file__).parent.rglob("*canonicalize*.mlir"))
VISITORS = {("scf.yield", "rewrite"), ("scf.condition", "rewrite")}  # change nothing: they queue the op around
OPS_LEFT = {  # after `canonicalize`: a rule that no longer applies leaves more
    "arith.addi of tiles": 1144, "arith.addi of scalars": 1142, "arith.andi of tiles": 903,
    "arith.ceildivsi of tiles": 1185, "arith.ceildivui of tiles": 1184, "arith.divsi of tiles": 1185,
    "arith.divui of tiles": 1183, "arith.floordivsi of tiles": 1186, "arith.maxsi of tiles": 940,
    "arith.maxui of tiles": 916, "arith.minsi of tiles": 940, "arith.minui of tiles": 916,
    "arith.muli of tiles": 1051, "arith.muli of scalars": 1050, "arith.ori of tiles": 916,
    "arith.remsi of tiles": 1183, "arith.remui of tiles": 1182, "arith.shli of tiles": 1198,
    "arith.shrsi of tiles": 1197, "arith.shrui of tiles": 1198, "arith.subi of tiles": 1034,
    "arith.subi of scalars": 1031, "arith.xori of tiles": 1013, "arith.andi of booleans": 31,
    "arith.ori of booleans": 35, "arith.xori of booleans": 55, "comparisons of i8, tiles: True": 271,
    "comparisons of i1, tiles: True": 216, "selects of i8, tiles: True": 323, "selects of i1, tiles: True": 337,
    "bits of extended values, tiles: True": 114, "comparisons of i8, tiles: False": 271,
    "comparisons of i1, tiles: False": 216, "selects of i8, tiles: False": 323, "selects of i1, tiles: False": 337,
    "bits of extended values, tiles: False": 114, "integer casts, tiles: True": 1076, "float casts, tiles: True": 141,
    "bitcasts, tiles: True": 59, "integer casts, tiles: False": 1076, "float casts, tiles: False": 141,
    "bitcasts, tiles: False": 59, "index casts": 17, "f16, tiles: True": 620, "bf16, tiles: True": 620,
    "f32, tiles: True": 620, "f32, tiles: False": 620, "f64, tiles: True": 620,
}  # fmt: skip
EXTREMES = tuple(kind.name for kind in casts.EXTREMES)


def calls(function: Function) -> Iterator[list[Any]]:
    """The arguments of each call: a list stands for as many calls as it has elements."""
    lists = [argument for argument in function.arguments if isinstance(argument, list)]
    for number in range(max(map(len, lists), default=1)):
        yield [
            argument[number % len(argument)] if isinstance(argument, list) else argument
            for argument in function.arguments
        ]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_no_value_changes(function: Function) -> None:
    before, after = parse_module(function.text), parse_module(function.text)
    run_pipeline(after, ["canonicalize"])
    assert len(list(after.walk())) == OPS_LEFT[function.name]
    for arguments in calls(function):
        expected, found = (evaluate(module, "f", arguments) for module in (before, after))
        for (value, type), one, other in zip(function.returned, expected, found, strict=True):
            same = bits(one) == bits(other)
            if function.made(value).startswith(EXTREMES):  # of zeros either one
                same |= (one == 0) & (other == 0)
            assert np.all(same), f"{function.expression(value)} : {type} is {other}, not {one}, for {arguments}"


def bits(value: Any) -> np.ndarray:
    """The bits of an array; those of all NaNs are equal."""
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return array
    return np.where(np.isnan(array.astype(np.float64)), -1, array.view(f"i{array.dtype.itemsize}"))


def counted(name: str, rule: Rule, fired: Counter[tuple[str, str]]) -> Rule:
    """`rule`, which counts how often its fold and its rewrite change something."""

    def fold(op: Operation) -> Any:
        found = rule.fold(op)  # type: ignore[misc]
        fired[name, "fold"] += found is not None
        return found

    def rewrite(op: Operation, driver: Driver) -> bool:
        changed = rule.rewrite(op, driver)  # type: ignore[misc]
        fired[name, "rewrite"] += changed
        return changed

    return Rule(rule.commutative, rule.fold and fold, rule.rewrite and rewrite)


def test_every_rule_is_applied_here() -> None:
    fired: Counter[tuple[str, str]] = Counter()
    rules = {name: counted(name, rule, fired) for name, rule in RULES.items()}
    for text in [*(function.text for function in FUNCTIONS), *(file.read_text() for file in FILES)]:
        for function in functions(parse_module(text)):
            Driver(rules).run(function, simplify_blocks)
    kinds = {(name, kind) for name, rule in RULES.items() for kind in ("fold", "rewrite") if getattr(rule, kind)}
    assert not [rule for rule in sorted(kinds - VISITORS) if not fired[rule]]
