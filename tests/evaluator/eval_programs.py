"""Short TTIR programs for the evaluator's tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate


def function(parameters: Sequence[str], results: Sequence[str], body: str) -> str:
    """A module with `@f`; its parameters are called %a, %b, %c ..."""
    names = ", ".join(f"%{letter}: {type_}" for letter, type_ in zip("abcdefgh", parameters, strict=False))
    arrow = f" -> ({', '.join(results)})" if results else ""
    return f"module {{\n tt.func public @f({names}){arrow} {{\n{body}\n }}\n}}\n"


def call(parameters: Sequence[str], results: Sequence[str], body: str, *args: Any, **options: Any) -> list[Any]:
    """Run a function whose body is given."""
    return evaluate(parse_module(function(parameters, results, body)), "f", list(args), **options)


def binary(op: str, type_: str, lhs: Any, rhs: Any, result: str | None = None) -> np.ndarray[Any, Any]:
    """`op` on two values of `type_`."""
    body = f"%0 = {op} %a, %b : {type_}\n tt.return %0 : {result or type_}"
    return call([type_, type_], [result or type_], body, lhs, rhs)[0]


def cast(op: str, source: str, target: str, value: Any, keyword: str = "to") -> np.ndarray[Any, Any]:
    """`op` from `source` to `target`."""
    body = f"%0 = {op} : {source} {keyword} {target}\n tt.return %0 : {target}".replace(" : ", " %a : ", 1)
    if "," in op:
        name, option = op.split(",", 1)
        body = f"%0 = {name} %a,{option} : {source} {keyword} {target}\n tt.return %0 : {target}"
    return call([source], [target], body, value)[0]
