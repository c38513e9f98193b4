"""Examples for AMD GPUs in the emulator, compared with NumPy: a few here, all of them with ``python -m
tests.emulator.test_amd_examples``."""

import copy

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases, largest_error
from tilework.compiler import ASTSource, compile
from tilework.oracles.emulator.llvm.run_llvm import extent_of, run
from tilework.target import Target

ARCHS = ("gfx942", "gfx1100")
CASES = {case.name: case for case in all_cases()}


def error_on(case: Case, arch: str) -> float:
    """Return the largest difference from NumPy's results."""
    target = Target.parse(f"hip:{arch}")
    arrays = case.arguments(np.random.default_rng(0))
    expected = case.expected(copy.deepcopy(arrays))
    source = ASTSource(case.kernel, signature=case.types, constexprs=case.constexprs, attrs=case.attrs)
    kernel = compile(source, target=target.name)
    facts = kernel.metadata
    scratch = np.zeros(max(16, facts.global_scratch_size * int(np.prod(case.grid))), np.uint8)
    arguments = [*(arrays[name] for name in case.signature), scratch, None]
    lent = [extent_of(array) for array in case.memory(arrays)]
    run(kernel.asm["llir"], arguments, case.grid, target.warp_size * facts.num_warps, facts.shared, arch, lent=lent)
    return largest_error(arrays, expected)


@pytest.mark.parametrize(("name", "arch"), [("grouped_gemm", "gfx942"), ("layernorm_backward", "gfx1100")])
def test_example(name: str, arch: str) -> None:
    assert error_on(CASES[name], arch) <= CASES[name].atol


if __name__ == "__main__":
    for arch in ARCHS:
        for case in CASES.values():
            error = error_on(case, arch)
            print(f"{arch:8} {case.name:24} {error:.1e} {'' if error <= case.atol else 'WRONG'}")
