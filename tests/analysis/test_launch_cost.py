"""Times of launches by the cost model, and the estimates that a search gets from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from examples.matmul import matmul
from tests.runtime.emulator_fixture import emulator
from tilework.compiler import ASTSource, GPUTarget
from tilework.runtime.compile.stages import estimated
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.tuning.estimates import Estimates
from tilework.runtime.tuning.searching import estimated_costs

H200 = GPUTarget("cuda", 90, 32)
SIZES = {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8}
NAMES = ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")


def matmul_ms(k: int = 4096, programs: int = 512, target: GPUTarget = H200, memory: int = 0, **sizes: int) -> Any:
    types = {**dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"), **dict.fromkeys(NAMES, "i32")}
    types |= dict.fromkeys(SIZES, "constexpr")
    source = ASTSource(matmul, types, {**SIZES, **sizes}, {(index,): [["tt.divisibility", 16]] for index in range(9)})
    arguments = {**dict.fromkeys(NAMES, 4096), "K": k}
    return estimated(source, target, {"num_warps": 8}, arguments, (programs,), memory)


def test_iterations_follow_the_arguments() -> None:
    time = matmul_ms()
    assert 0.14 < time < 0.4, "0.204 ms were measured"
    assert matmul_ms(k=8192) == pytest.approx(2 * time, rel=0.1)
    assert matmul_ms(programs=1024) == pytest.approx(2 * time, rel=0.1)
    assert matmul_ms(BM=64, BN=64, BK=32, programs=4096) > time, "small tiles are slower"


def test_targets_without_rates_have_no_cost() -> None:
    assert matmul_ms(target=GPUTarget("hip", "gfx942", 64)) is None


@jit
def twice(x, out, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0) * n + i, tl.load(x + i) - total)


def test_what_is_read_again_comes_from_l2() -> None:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(twice, types, {"BLOCK": 1024}, {(index,): [["tt.divisibility", 16]] for index in range(3)})
    times = [estimated(source, H200, {}, {"n": 65536}, (1320,), memory) for memory in (0, 1320 * 65536 * 4)]
    assert times[0] is not None and times[1] is not None and times[1] < 0.6 * times[0]


def test_estimates_of_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_COMPILE_WORKERS", "0")
    arrays = tuple(np.zeros((256, 256), np.float16) for _ in range(3))
    blocks = [{"BM": size, "BN": size, "BK": 32, "GROUP": 1, "num_warps": 4} for size in (16, 32, 64, 1024)]
    launches: list[Any] = [((*arrays, *[256] * 6), block) for block in (*blocks, {"BM": 16})]
    kernel = jit(matmul.fn)  # other tests launch `matmul` itself on the host
    with emulator(cache=str(tmp_path)):
        estimates = Estimates(kernel, launches, [(256,), (64,), None, (1,), (1,)])
        found = estimates.of(range(5))
    assert found.keys() >= {0, 1} and 2 not in found and 4 not in found, "no grid; a mistake"
    assert 0 < found[1] <= found[0] < 1 and estimates.count == 3


def test_the_host_has_no_estimates() -> None:
    launch: Any = ((np.zeros(64, np.float32), np.zeros(64, np.float32), 64), {"BLOCK": 16})
    estimates = Estimates(twice, [launch] * 3, [(1,)] * 3)
    assert estimates.of([0, 1, 2]) == {}


def test_the_second_half_is_where_estimates_are_small() -> None:
    from tilework.runtime.tuning.config import Config
    from tilework.runtime.tuning.search import Search

    configs = [Config({"N": 2**power, "M": 2**other}) for power in range(10) for other in range(10)]
    costs = [(power - 7) ** 2 + (other - 2) ** 2 + 1.0 for power in range(10) for other in range(10)]
    asked: list[list[int]] = []

    def cost(indices: list[int]) -> dict[int, float]:
        asked.append(indices)
        return {index: costs[index] for index in indices}

    found = estimated_costs(configs, Search(), cost, 30)
    assert [len(indices) for indices in asked] == [15, 15] and len(found) == 30
    assert np.mean([costs[index] for index in asked[1]]) < np.mean([costs[index] for index in asked[0]]) / 2
