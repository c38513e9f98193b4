"""From Triton's reference kernels our front end and passes make the TTIR that Triton 3.7.1 makes, op by op.

Compared are the effects in order, each with the ops that compute its operands; the order of those may differ, because
Python evaluates arguments from left to right and Triton evaluates keyword arguments first.
"""

import hashlib
import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from tests.pipeline.reference_kernels import KERNELS
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.effects import is_pure
from tilework.ir.functions import symbol_of
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import run_pipeline, ttir_pipeline

REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
OTHERWISE_ON_PURPOSE = {
    "sort": "one op, tt.sort_runs on integer keys that put NaN last, instead of a bitonic network of 370 ops",
}
PAIRS = [
    (path.parent.name, path.stem)
    for path in sorted(REFERENCE.glob("sm_*/*.ttir"))
    if path.stem not in OTHERWISE_ON_PURPOSE
]


def compiled(name: str, arch: str) -> ModuleOp:
    capability = int(arch.removeprefix("sm_"))
    kernel, types, constants = KERNELS[name]
    known = [name for name, type in types.items() if type.startswith("*") or type == "i32"]
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in known}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    module = compile_to_ttir(
        kernel, signature, constants, attrs, frontend_options(GPUTarget("cuda", capability, 32), {})
    )
    run_pipeline(module, ttir_pipeline(Target.parse(f"cuda:{capability}")))
    return module


def describe(module: ModuleOp) -> list[str]:
    """List the pure ops of each block, sorted, and its effects in order; operands are named by what computes them."""
    names: dict[SSAValue, str] = {}

    def block_lines(block: Block, indent: str) -> list[str]:
        for index, argument in enumerate(block.args):
            names[argument] = f"{indent}argument {index}: {argument.type}"
        pure, effects = [], []
        for op in block.ops:
            operands = ", ".join(names[operand] for operand in op.operands)
            inner = [line for region in op.regions for one in region.blocks for line in block_lines(one, indent + "  ")]
            attributes = {**op.properties, **op.attributes}
            facts = sorted(f"{key}={value}" for key, value in attributes.items() if key != "sym_name")
            types = [str(result.type) for result in op.results]
            text = f"{indent}{op.name} {operands} {facts} -> {types}"
            key = hashlib.sha256("\n".join([text, *inner]).encode()).hexdigest()[:8]
            for index, result in enumerate(op.results):
                names[result] = f"%{key}#{index}"
            (pure if is_pure(op) else effects).append("\n".join([f"{key} = {text}", *inner]))
        return sorted(pure) + effects

    (function,) = module.body.block.ops
    return [symbol_of(function), *block_lines(function.regions[0].blocks[0], "  ")]


@pytest.mark.parametrize(("arch", "name"), PAIRS)
def test_our_ttir_is_tritons(arch: str, name: str) -> None:
    wanted = parse_module((REFERENCE / arch / f"{name}.ttir").read_text())
    assert describe(compiled(name, arch)) == describe(wanted)


def test_there_are_pairs() -> None:
    assert len(PAIRS) >= 24


ARGUMENTS = {  # of the pipelined loop, as Triton 3.7.1 names them, without the numbers that make names unique
    ("matmul_f16", "sm_90", 8): "acc pa pb acc acc x x y y",
    ("matmul_descriptor", "sm_90", 8): "acc acc acc acc",
    ("attention_causal", "sm_80", 4): "m_i l_i acc pk pv pv pv k k v v",
}


@pytest.mark.parametrize(("kernel", "arch", "warps"), ARGUMENTS)
def test_arguments_that_the_pipeliner_adds_have_names(
    kernel: str, arch: str, warps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWORK_PLAIN_DOTS", "1")
    monkeypatch.setenv("TILEWORK_WARP_SPECIALIZE", "1")
    module = compiled(kernel, arch)
    run_pipeline(module, ttgir_pipeline(Target.parse(arch.replace("sm_", "cuda:")), warps))
    (arguments,) = re.findall(r"iter_args\((.*?)\) ->", print_module(module))
    names = [re.sub(r"_\d+$", "", name) for name in re.findall(r"%(\w+) = ", arguments)]
    assert names == ARGUMENTS[kernel, arch, warps].split()
