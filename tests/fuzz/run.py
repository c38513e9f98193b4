"""Compile a generated kernel, and compare what it computes before and after passes.

python -m tests.fuzz.run 17            the source of kernel 17, and the report
"""

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tests.fuzz.kernels import CPU, Kernel, generate_kernel
from tests.pipeline.stages import check_stage
from tilework.frontend.generator import compile_to_ttir
from tilework.inspect.check_each import Report, check_each, parts
from tilework.ir.create import clone_op
from tilework.ir.printer import print_module
from tilework.ir.verify import op_problem, use_problem, user_problem
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.passes import Pass
from tilework.transforms.registry import make_pass, ttir_pipeline

LEGACY_TTIR_PIPELINE = [  # of Triton 3.0
    "inline",
    "triton-rewrite-tensor-pointer",
    "triton-combine",
    "canonicalize",
    "triton-reorder-broadcast",
    "cse",
    "triton-licm",
    "symbol-dce",
]
EXTRA = ["triton-licm", "sccp", "canonicalize", "triton-loop-aware-cse", "triton-loop-unroll", "cse", "dce"]


class Passes(Pass):
    """Passes in a row that count as one, the last of them."""

    parts: tuple[Pass, ...]
    name = "passes"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.parts[-1].name)

    def run(self, module: ModuleOp) -> None:
        for part in self.parts:
            part.run(module)


def check(module: ModuleOp, when: str) -> None:
    """The module is well formed and of the stage."""
    positions = {op: number for number, op in enumerate(module.walk())}
    for op in positions:
        problem = op_problem(op) or use_problem(op, positions) or user_problem(op, positions)
        assert problem is None, f"{when}: {op.name}: {problem}"
    check_stage(module, "ttir")


def capability(seed: int) -> int:
    return 90 if seed % 2 else 80


def load(kernel: Kernel, folder: Path) -> Any:
    """The jit function of a generated kernel; its source must be in a file."""
    path = folder / f"generated_{kernel.seed}.py"
    path.write_text(kernel.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def compile_generated(
    kernel: Kernel, folder: Path, target: GPUTarget | None = None, ranges: tuple[str, ...] = ()
) -> ModuleOp:
    """The module of a generated kernel before any pass, for the target that it was generated for if there is no other.

    `ranges` are pointers to less than 2 GB."""
    attrs = {
        (position,): [
            *([["tt.divisibility", 16]] if name in kernel.divisible else ()),
            *([["tt.pointer_range", 32]] if name in ranges else ()),
        ]
        for position, name in enumerate(kernel.signature)
    }
    own = GPUTarget("cuda", kernel.capability, 32) if kernel.capability != CPU else GPUTarget("cpu", "host", 1)
    options = frontend_options(target or own, {})
    module = compile_to_ttir(load(kernel, folder), kernel.signature, {}, attrs, options)
    check(module, "before any pass")
    return module


def pipelines(seed: int) -> list[list[str]]:
    """The pipelines that a kernel goes through: today's pipeline with more passes behind it, and the old one."""
    return [[*ttir_pipeline(Target.parse(f"cuda:{capability(seed)}")), *EXTRA], LEGACY_TTIR_PIPELINE]


def prove(kernel: Kernel, folder: Path) -> list[Report]:
    """Every pass leaves a well-formed module of the stage, which computes what the kernel does."""
    module = compile_generated(kernel, folder)
    seen = {print_module(module)}
    return [check_each(module, steps(module, names, seen), kernel.seed) for names in pipelines(kernel.seed)]


def steps(module: ModuleOp, names: list[str], seen: set[str]) -> list[Passes]:
    """The passes, split after those that produce a module not in `seen`; many change nothing, or do what others did."""
    found: list[Passes] = []
    waiting: list[Pass] = []
    changed = clone_op(module, {})
    before = parts(changed)
    for name in names:
        waiting.append(make_pass(name))
        waiting[-1].run(changed)
        if (after := parts(changed)) == before:
            continue
        before = after
        if (text := print_module(changed)) not in seen:
            check(changed, f"after {name}")
            seen.add(text)
            found.append(Passes(tuple(waiting)))
            waiting.clear()
    return found


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        generated = generate_kernel(int(argument), capability(int(argument)))
        print(generated.source[generated.source.index("@jit\ndef kernel") :])
        with tempfile.TemporaryDirectory() as name:
            for report in prove(generated, Path(name)):
                print(report)
