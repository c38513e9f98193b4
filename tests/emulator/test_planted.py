"""The checker finds every planted bug, at the line that is marked in its source, and nothing in the corrected twin."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.oracles.emulator.check import CheckFailed
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.findings import Finding

HERE = Path(__file__).parent / "planted"


@dataclass(frozen=True)
class Bug:
    """The launch of a program of `planted`, and the kind of its finding. Arguments are numbers of words to allocate
    (filled with 0, 1, 2 ...), or a single number given as np.int32."""

    name: str
    kind: str
    block: int
    args: tuple[Any, ...]
    grid: int = 1
    shared: int = 0
    says: str = ""


BUGS = [
    Bug("missing_barrier", "race", 128, (128, 128)),
    Bug("missing_second_barrier", "race", 64, (256, 64)),
    Bug("missing_syncwarp", "race", 32, (32, 32)),
    Bug("wait_count", "used before its wait", 64, (256, 256)),
    Bug("copies_of_others", "used before its wait", 64, (64, 64)),
    Bug("overlapping_buffers", "race", 128, (128, 128), shared=512),
    Bug("uninitialised_shared", "uninitialised shared memory", 64, (64, 64)),
    Bug("uninitialised_register", "uninitialised register", 32, (32, 32)),
    Bug("out_of_bounds_shared", "bad access", 64, (64, 64), shared=256, says="outside of its 256 bytes"),
    Bug(
        "out_of_bounds_global",
        "bad access",
        64,
        (100, 100, np.int32(100)),
        grid=2,
        says="end 4 bytes after an allocation of 400 bytes",
    ),
    Bug("misaligned", "bad access", 32, (136, 32), says="is not a multiple of 16"),
    Bug("divergent_barrier", "barrier in divergent code", 32, (32, 32)),
    Bug("barrier_not_reached", "error", 128, (128, 64), says="barrier 1 is not reached by all threads"),
    Bug("wgmma_too_early", "used before its wait", 128, (1024, 512)),
    Bug("missing_proxy_fence", "missing proxy fence", 64, (64, 64)),
    Bug("missing_global_proxy_fence", "missing proxy fence", 64, (64, 64), says="reads global address"),
    Bug("bulk_store_not_done", "used before its wait", 64, (64, 64)),
    Bug("bulk_store_reuse", "used before its wait", 64, (192,)),
    Bug("missing_mbarrier_wait", "used before its wait", 64, (64, 64)),
    Bug("wrong_parity", "race|error", 64, (32, 32)),
    Bug("race_between_blocks", "race", 32, (4, 1), grid=4),
    Bug("missing_fence", "race", 32, (4, 4, 1), grid=4),
    Bug("two_writers", "race", 64, (64, 32)),
]


WAYS = ({"seed": 0}, {"seed": 1}, {"together": True})  # in which warps run


def findings(bug: Bug, kernel: str, way: dict[str, Any]) -> list[Finding]:
    device = Device(check=True, **way)
    args = [device.upload(np.arange(size, dtype=np.int32)) if isinstance(size, int) else size for size in bug.args]
    function = device.load((HERE / f"{bug.name}.ptx").read_text()).function(kernel)
    try:
        device.launch(function, bug.grid, bug.block, args, bug.shared)
    except CheckFailed as failed:
        return failed.findings
    return []


def marked(name: str) -> set[str]:
    """The lines of a program's source that say where its bug is found."""
    source = HERE / f"{name}.cu"
    if not source.exists():
        return {f"{name}.cu:6"}
    return {
        f"{name}.cu:{number}"
        for number, line in enumerate(source.read_text().splitlines(), 1)
        if "// found here" in line
    }


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, way: dict[str, Any]) -> None:
    found = findings(bug, "bug", way)
    mine = [finding for finding in found if finding.kind in bug.kind.split("|")]
    assert mine, [str(finding) for finding in found]
    lines = marked(bug.name)
    assert any(line in str(finding) for finding in mine for line in lines), [str(finding) for finding in mine]
    assert any(bug.says in str(finding) and "thread" in str(finding) for finding in mine), [
        str(finding) for finding in mine
    ]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_its_corrected_twin_is_not(bug: Bug, way: dict[str, Any]) -> None:
    assert not [str(finding) for finding in findings(bug, "fixed", way)]


def test_every_planted_bug_is_listed() -> None:
    assert {path.stem for path in HERE.glob("*.ptx")} == {bug.name for bug in BUGS}
