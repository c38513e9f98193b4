"""`ttc.sort_runs` against its network, step by step in NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from tests.targets.cpu_rules import buffer, run
from tilework.ir.tt import SortOrder
from tilework.targets.cpu.lower.sort_runs import HeldKeys
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i32, ptr, vector, void

HOST = HostTarget.detect()
FEW_REGISTERS, WIDE = replace(HOST, vector_registers=8), replace(HOST, vector_bytes=64)
CASES = [  # elements, bits of a run, order, merges
    *((2, 1, 0, False), (256, 2, 2, False), (256, 8, 0, False), (4096, 11, 2, False)),
    *((64, 6, 1, True), (512, 7, 2, True), (4096, 12, 0, True)),
]


def network(keys: np.ndarray, bits: int, order: int, merges: bool) -> np.ndarray:
    index = np.arange(keys.size)
    for stage in range(bits if merges else 1, bits + 1):
        falls = index >> stage & 1 if stage < bits or order == SortOrder.ALTERNATING else np.full(keys.size, order)
        for bit in reversed(range(stage)):
            other = keys[index ^ 1 << bit]
            keys = np.where((index >> bit & 1) != falls, np.maximum(keys, other), np.minimum(keys, other))
    return keys


@pytest.mark.parametrize(("dtype", "target"), [("int8", HOST), ("uint64", FEW_REGISTERS), ("int32", WIDE)])
def test_sorts_as_its_network(dtype: str, target: HostTarget) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(0)
    arrays, body, expected = {}, "", {}
    for number, (count, bits, order, merges) in enumerate(CASES):
        keys = random.integers(limits.min, limits.max, count, dtype, endpoint=True)
        source, target_name = f"a{number}", f"a{number}" if number % 2 else f"b{number}"
        arrays[source] = keys.view(dtype.removeprefix("u")).copy()
        arrays.setdefault(target_name, np.zeros_like(arrays[source]))
        settings = f"bits = {bits} : i32, merges = {merges}, order = {order} : i32, signed = {dtype[0] == 'i'}".lower()
        types = f"{buffer(arrays[source])}, {buffer(arrays[source])}"
        body += f"ttc.sort_runs %{source} into %{target_name} {{{settings}}} : {types}\n"
        expected[target_name] = network(keys, bits, order, merges)
    run(body, arrays, target=target)
    for name, values in expected.items():
        np.testing.assert_array_equal(arrays[name].view(dtype), values)


def test_few_exchanges_bring_all_bits_of_an_index_among_registers() -> None:
    b = Builder(Module().function("f", void, [(ptr, "p")]))
    values = [b.load(vector(i32, 16), b.gep(b.function.args[0], 64 * register)) for register in range(8)]
    held = HeldKeys(b, "s", values, 4)
    held.begin_with_registers(7)
    later = [bit for stage in range(1, 8) for bit in range(stage)[::-1]]
    held.compare(later)
    assert len(held.in_order()) == 8
    b.ret()
    text = b.function.text()
    assert text.count("@llvm.smin") == 4 * len(later)
    exchanges = text.count("@llvm.arithmetic.fence") // 8
    assert exchanges <= 15  # there and back it would be 44, as 22 of the 28 bits are those of lanes
    assert text.count("shufflevector") == 8 * exchanges + 8
