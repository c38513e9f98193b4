"""Every example computes what NumPy does: before and after the passes, for each target and for other block sizes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from examples import add, attention, dropout, matmul, softmax, sort
from examples.case import Arrays, Case
from examples.demo import run_case
from tests.pipeline.compiled import CASES, TARGETS, frontend_module, optimise, optimised


def resized(case: Case, grid: tuple[int, ...], arguments: Any, expected: Any = None, **constexprs: Any) -> Case:
    """The case with other blocks and sizes."""
    return replace(
        case,
        grid=grid,
        arguments=arguments,
        expected=expected or case.expected,
        constexprs={**case.constexprs, **constexprs},
        divisible=(),
    )


def normal(*shape: int) -> Any:
    return lambda rng: rng.standard_normal(shape).astype("f4")


def vectors(count: int) -> Any:
    """Inputs of `add`; the block need not divide `count`."""
    return lambda rng: {name: normal(count)(rng) for name in ("x_ptr", "y_ptr", "out_ptr")} | {"n": count}


def rows(count: int, columns: int) -> Any:
    def inputs(rng: np.random.Generator) -> Arrays:
        both = {name: normal(count, columns)(rng) for name in ("out_ptr", "in_ptr")}
        return {**both, "in_stride": columns, "out_stride": columns, "n_cols": columns}

    return inputs


def matrices(m: int, n: int, k: int) -> Any:
    def inputs(rng: np.random.Generator) -> Arrays:
        draw = lambda *shape: rng.standard_normal(shape).astype("f2")
        return {
            "a_ptr": draw(m, k), "b_ptr": draw(k, n), "c_ptr": draw(m, n),
            "M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n,
        }  # fmt: skip

    return inputs


def sorted_rows(log2: int) -> Any:
    size = 1 << log2
    return lambda rng: {"x_ptr": normal(3, size)(rng), "out_ptr": normal(3, size)(rng), "stride": size}


def tiles(m: int, n: int, block_m: int, block_n: int) -> tuple[int]:
    return (-(-m // block_m) * -(-n // block_n),)


def sizes() -> list[Any]:
    """Cases with other block sizes; few of them divide the arrays."""
    found: list[tuple[str, Case]] = []
    for block, count in ((1, 3), (16, 16), (64, 1000), (2048, 5)):
        found.append(
            (f"add-{block}-{count}", resized(add.CASES[0], (-(-count // block),), vectors(count), BLOCK=block))
        )
    for block, columns in ((16, 16), (32, 17), (2048, 1500), (1, 1)):
        found.append((f"softmax-{block}-{columns}", resized(softmax.CASES[0], (3,), rows(3, columns), BLOCK=block)))
    for case in matmul.CASES:
        for m, n, k, bm, bn, bk, group in (
            (16, 16, 16, 16, 16, 16, 1),
            (33, 50, 70, 16, 32, 32, 3),
            (64, 8, 24, 64, 16, 16, 8),
        ):
            if case.name == "matmul_descriptors":
                n, k = -(-n // 8) * 8, -(-k // 8) * 8  # strides are multiples of 16 bytes
            blocks = {"BM": bm, "BN": bn, "BK": bk, "GROUP": group}
            changed = resized(case, tiles(m, n, bm, bn), matrices(m, n, k), **blocks)
            found.append((f"{case.name}-{m}x{n}x{k}-{bm}x{bn}x{bk}", replace(changed, atol=4e-2)))
    for case in attention.CASES:
        for bm, bn in ((16, 16), (64, 32)):
            blocks = {**case.constexprs, "BM": bm, "BN": bn}
            found.append((f"{case.name}-{bm}x{bn}", replace(case, grid=(64 // bm, 2), constexprs=blocks)))
    found.append(("dropout", replace(dropout.CASES[0], constexprs={"BLOCK": 64}, grid=(16,))))
    for log2 in (1, 3, 8):
        found.append((f"sort-{1 << log2}", resized(sort.CASES[0], (3,), sorted_rows(log2), LOG2=log2)))
    return [pytest.param(case, id=name) for name, case in found]


@pytest.mark.parametrize("name", CASES)
def test_before_the_passes(name: str) -> None:
    case = CASES[name]
    assert run_case(case, frontend_module(case, "cuda:90")) <= case.atol


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_after_the_passes(name: str, target: str) -> None:
    assert run_case(CASES[name], optimised(name, target), seed=1) <= CASES[name].atol


@pytest.mark.parametrize("case", sizes())
def test_other_sizes(case: Case) -> None:
    target = "cuda:80" if sum(map(ord, case.name)) % 2 else "cuda:90"
    module = frontend_module(case, target)
    assert run_case(case, module, seed=2) <= case.atol
    assert run_case(case, optimise(module, target), seed=2) <= case.atol
