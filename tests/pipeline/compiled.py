"""The examples compiled for every target, and when two modules are the same.

module = frontend_module(case, "cuda:80")
for name in passes("cuda:80"): ...
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from examples.case import Case
from examples.demo import all_cases
from tilework.frontend.generator import compile_to_ttir
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.registry import run_pipeline, ttir_pipeline

TARGETS: dict[str, Callable[[], Any]] = {
    "cuda:80": lambda: frontend_options(GPUTarget("cuda", 80, 32), {}),
    "cuda:90": lambda: frontend_options(GPUTarget("cuda", 90, 32), {}),
    "cpu": lambda: frontend_options(GPUTarget.parse("cpu"), {}),
}
CASES = {case.name: case for case in all_cases()}


def passes(target: str) -> list[str]:
    return ttir_pipeline(Target.parse(target))


def frontend_module(case: Case, target: str, **constexprs: Any) -> ModuleOp:
    """The module of `case` before any pass, with some of its compile-time parameters changed."""
    options = TARGETS[target]()
    return compile_to_ttir(case.kernel, case.types, {**case.constexprs, **constexprs}, case.attrs, options)


def optimise(module: ModuleOp, target: str) -> ModuleOp:
    run_pipeline(module, passes(target))
    return module


@cache
def optimised(name: str, target: str) -> ModuleOp:
    """The product of the stage `ttir`; do not change it."""
    return optimise(frontend_module(CASES[name], target), target)


def locations(root: Operation) -> Iterator[tuple[str, Attribute]]:
    """The location of every op and block argument that the text has, in order: loops show their arguments without."""
    for op in root.walk():
        yield op.name, op.location
        for region in () if op.name == "scf.for" else op.regions[1:] if op.name == "scf.while" else op.regions:
            for block in region.blocks:
                for argument in block.args:
                    yield "argument", argument.location


def first_difference(a: Operation, b: Operation) -> str | None:
    """Describe the first op in which two modules differ; None when they are equal except for names and locations."""
    if a.is_structurally_equivalent(b):
        return None
    for x, y in zip(a.walk(), b.walk(), strict=False):
        facts = [(o.name, o.properties, o.attributes, [r.type for r in o.results], len(o.operands)) for o in (x, y)]
        if facts[0] != facts[1]:
            return f"{facts[0]}\n{facts[1]}"
    return "the same ops with other operands"


def location_difference(a: Operation, b: Operation) -> str | None:
    """The first place where the locations of two modules differ."""
    for x, y in zip(locations(a), locations(b), strict=False):
        if x != y:
            return f"{x}\n{y}"
    return None
