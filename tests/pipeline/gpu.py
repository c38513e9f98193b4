"""A kernel on its way to TTGIR, run on real data after every pass.

problem = check(Config("matmul_fp16", 90, warps=8, stages=4))      None, or the pass that did it and what it did

The evaluator finds more than wrong results: copies read before their wait, buffers written while still read, missing
fences. At the end shared memory is allocated and barriers are inserted; then a missing barrier is a mistake too.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from examples.case import Case
from examples.demo import all_cases
from tests.pipeline.gpu_kernels import KERNELS
from tests.pipeline.gpu_loops import LOOPS
from tilework.frontend.generator import compile_to_ttir
from tilework.inspect.check_each import PROMISES, array_difference
from tilework.ir.create import clone_op
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

CASES: dict[str, Case] = {case.name: case for case in (*all_cases(), *KERNELS, *LOOPS)}
MAX_STEPS = 20_000_000


@dataclass(frozen=True)
class Config:
    """One kernel and what it is compiled for."""

    name: str
    arch: int
    warps: int = 4
    stages: int = 3
    ctas: int = 1

    def __str__(self) -> str:
        return f"{self.name} sm_{self.arch} warps={self.warps} stages={self.stages} ctas={self.ctas}"

    @property
    def passes(self) -> list[str]:
        """The passes to TTGIR."""
        return ttgir_pipeline(Target.parse(f"cuda:{self.arch}"), self.warps, self.stages, self.ctas)

    @property
    def memory_passes(self) -> list[str]:
        """The passes about shared memory that precede code generation."""
        return [f"allocate-shared-memory-nv{{compute-capability={self.arch}}}", "test-print-membar"]


@cache
def ttir(name: str, arch: int) -> ModuleOp:
    """The optimised TTIR of a kernel; do not change it."""
    case = CASES[name]
    options = frontend_options(GPUTarget("cuda", arch, 32), {})
    module = compile_to_ttir(case.kernel, case.types, dict(case.constexprs), case.attrs, options)
    run_pipeline(module, ttir_pipeline(Target.parse(f"cuda:{arch}")))
    return module


def ttgir(config: Config) -> ModuleOp:
    """The product of the stage."""
    module = clone_op(ttir(config.name, config.arch), {})
    run_pipeline(module, [one for item in config.passes for one in parse_pipeline(item)])
    return module


Outcome = list[tuple[str, np.ndarray[Any, Any]]]


def run(
    case: Case, module: ModuleOp, barriers: bool = False, fences: bool = False, truncate_tf32: bool = False
) -> Outcome:
    """Return the arrays after the kernel has run."""
    arrays = case.arguments(np.random.default_rng(11))
    names = [name for name in case.kernel.arg_names if name in case.signature]
    evaluate(
        module,
        case.kernel.__name__,
        [arrays[name] for name in names],
        case.grid,
        memory=case.memory(arrays),
        max_steps=MAX_STEPS,
        barriers=barriers,
        fences=fences,
        truncate_tf32=truncate_tf32,
    )
    return list(contents(arrays))


def contents(arrays: dict[str, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name, value in arrays.items():
        for number, array in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(array, np.ndarray):
                yield f"{name}[{number}]" if isinstance(value, list) else name, array


@cache
def wanted(name: str, arch: int) -> Outcome:
    """Return the results of the TTIR, which must be NumPy's."""
    case = CASES[name]
    outcome = run(case, ttir(name, arch))
    expected = dict(contents(case.expected(copy.deepcopy(case.arguments(np.random.default_rng(11))))))
    for label, array in outcome:
        if label in expected:
            error = np.max(np.abs(array.astype("f8") - expected[label].astype("f8").reshape(array.shape)))
            assert error <= case.atol, f"{name} sm_{arch}: the TTIR of {label} is off by {error}"
    return outcome


def difference(before: Outcome, after: Outcome) -> str | None:
    """Describe the difference of two outcomes."""
    for (name, old), (_, new) in zip(before, after, strict=True):
        if name not in ("a_ptrs", "b_ptrs", "c_ptrs") and (where := array_difference(old, new)) is not None:
            return f"{name} at {where}"
    return None


def check(config: Config, memory: bool = True, every: int = 1, product: str | None = None) -> str | None:
    """The first pass that breaks the module or changes what it computes, in words.

    With `every` above one the module is looked at behind each so many passes and at the end, and a problem is looked
    for again. `product` is the text that the passes to TTGIR are to make.
    """
    module, case = clone_op(ttir(config.name, config.arch), {}), CASES[config.name]
    before, last, has = wanted(config.name, config.arch), "", set[str]()
    items = config.passes + (config.memory_passes if memory else [])
    for number, item in enumerate(items, 1):
        (one,) = parse_pipeline(item)
        try:
            run_pipeline(module, [one])
            if number == len(config.passes) and product not in (None, print_module(module)):
                return f"{config}: compiled twice, two texts"
            has |= PROMISES.get(one.name, set())
            if (number % every and number < len(items)) or (text := f"{print_module(module)}{has}") == last:
                continue
            verify(module)
            found = difference(before, run(case, module, "barriers" in has, "fences" in has))
        except (VerifyException, EvaluationError) as error:
            found, text = f"{type(error).__name__}: {str(error)[:400]}", ""
        if found is not None:
            return (check(config, memory) if every > 1 else None) or f"{config}: after {item}: {found}"
        last = text
    return None
