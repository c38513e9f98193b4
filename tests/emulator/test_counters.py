"""Counters against numbers that can be worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from tests.emulator.programs.table import BY_NAME
from tests.emulator.test_programs import run
from tilework.oracles.emulator.counters import Counts, sectors_of, wavefronts_of
from tilework.oracles.emulator.device import Device

LANES = np.arange(32)


def counts_at(name: str, marker: str, check: bool = False) -> Counts:
    """Return the counts of the line of a program's source that contains `marker`."""
    program = BY_NAME[name]
    device = Device(counters=True, check=check)
    run(program, device)
    assert device.counters is not None
    source = (Path(__file__).parent / "programs" / f"{program.module}.cu").read_text().splitlines()
    (line,) = [number for number, text in enumerate(source, 1) if marker in text]
    return device.counters.lines[(f"{program.module}.cu", line)]


@pytest.mark.parametrize(
    ("addresses", "size", "sectors", "wanted"),
    [
        (LANES * 4, 4, 4, 128),
        (LANES * 32, 4, 32, 128),
        (LANES * 4 + 16, 4, 5, 128),
        (LANES * 0, 4, 1, 4),
        (LANES * 16, 16, 16, 512),
        (LANES * 2, 2, 2, 64),
        (LANES // 2 * 4, 4, 2, 64),
        (LANES * 24, 8, 24, 256),
    ],
)
def test_sectors_of_a_warp(addresses: np.ndarray, size: int, sectors: int, wanted: int) -> None:
    assert sectors_of(addresses.astype(np.uint64) + np.uint64(1 << 41), size, LANES) == (sectors, wanted, 1)


def test_warps_do_not_share_sectors() -> None:
    threads = np.arange(64)
    assert sectors_of(np.zeros(64, np.uint64), 4, threads) == (2, 8, 2)


@pytest.mark.parametrize(
    ("addresses", "size", "wavefronts", "best"),
    [
        (LANES * 4, 4, 1, 1),
        (LANES * 8, 4, 2, 1),
        (LANES * 128, 4, 32, 1),
        (LANES * 132, 4, 1, 1),
        (LANES * 0 + 64, 4, 1, 1),
        (LANES * 2, 2, 1, 1),
        (LANES * 8, 8, 2, 2),
        (LANES * 16, 16, 4, 4),
        (LANES * 64, 16, 16, 4),
    ],
)
def test_wavefronts_of_shared_memory(addresses: np.ndarray, size: int, wavefronts: int, best: int) -> None:
    assert wavefronts_of(addresses.astype(np.uint64), size, LANES) == (wavefronts, best, 1)


def test_a_column_of_a_tile_is_a_bank_conflict() -> None:
    counts = counts_at("transpose_conflicts", "out[(threadIdx.y + k) * 32 + threadIdx.x] = tile")
    assert (counts.shared_requests, counts.wavefronts, counts.conflicts) == (32, 32 * 32, 31 * 32)
    assert (counts.sectors, counts.bytes, counts.coalescing) == (128, 4096, 1.0)


def test_a_padded_tile_has_none() -> None:
    counts = counts_at("transpose_padded", "out[(row + k) * rows + column] = tile", check=True)
    assert counts.conflicts == 0 and counts.wavefronts == counts.shared_requests > 0


def test_scattered_writes_do_not_coalesce() -> None:
    counts = counts_at("transpose_scattered", "out[threadIdx.x * 32")
    assert (counts.sectors, counts.bytes) == (128 + 1024, 2 * 4096)


def test_atomics_of_a_warp_are_one_request() -> None:
    device = Device(counters=True)
    run(BY_NAME["all_kinds"], device)
    assert device.counters is not None
    total = device.counters.total
    assert total.instructions["atomic"] == 4 * 9 and total.requests == 4 * 9 + 4
    assert total.sectors == 4 * 9 + 4 * 4


def test_atomics_on_one_word_take_turns() -> None:
    assert wavefronts_of(np.zeros(32, np.uint64), 4, LANES, one_by_one=True) == (32, 1, 1)
    assert wavefronts_of(LANES.astype(np.uint64) * 4, 4, LANES, one_by_one=True) == (1, 1, 1)


def test_arrivals_of_copies_are_no_accesses() -> None:
    """One barrier for all lanes is what an mbarrier is for."""
    device = Device(counters=True)
    text = """.version 8.0 .target sm_90 .address_size 64
    .visible .entry k() { .reg .b32 %b; .reg .pred %p; .shared .align 8 .b64 bar; mov.u32 %b, bar;
    elect.sync _|%p, 0xffffffff; @%p mbarrier.init.shared.b64 [%b], 32; bar.sync 0;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%b]; W: mbarrier.test_wait.parity.shared.b64 %p, [%b], 0; @!%p bra W;
    ret; }"""
    device.launch(device.load(text).function("k"), 1, 32, [])
    assert device.counters is not None and device.counters.total.wavefronts == 0


def test_tensor_operations() -> None:
    for name, wanted in (("gemm_f16", 2 * 64**3), ("wgmma_f16", 2 * 64**3), ("gemm_s8", 2 * 16 * 8 * 64)):
        for check in (False, True):
            device = Device(counters=True, check=check)
            run(BY_NAME[name], device)
            assert device.counters is not None and device.counters.total.tensor_operations == wanted


def test_the_table_has_a_row_for_each_line_and_a_sum() -> None:
    device = Device(counters=True)
    run(BY_NAME["tree_sum"], device)
    assert device.counters is not None
    rows = device.counters.table().splitlines()
    assert rows[0].split()[:3] == ["line", "instructions", "threads"] and rows[-1].startswith("total")
    assert len(rows) == len(device.counters.lines) + 2 and any(row.startswith("reduce.cu:9") for row in rows)


def test_counters_are_those_of_the_last_launch() -> None:
    device = Device(counters=True)
    run(BY_NAME["tree_sum"], device)
    assert device.counters is not None
    first = device.counters.total
    run(BY_NAME["tree_sum"], device)
    assert device.counters.total == first
