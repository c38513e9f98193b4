"""The fuzzer itself: it finds a planted mistake, makes the kernel smaller and writes a test that fails."""

import re
from pathlib import Path

import pytest

from tests.fuzz import devices, failures
from tests.fuzz.campaign import Campaign, Task
from tests.fuzz.devices import CRASHED, DIFFERENT, LOST, REFUSED, SAME, UNORDERED, Outcome, generated, outcome_of
from tests.fuzz.failures import Failure, read_failure, write_failure
from tests.fuzz.kernels import HEADER, Kernel
from tests.fuzz.reduction import reduced, tried
from tests.fuzz.rules import INT32
from tests.fuzz.workers import Lost
from tilework.errors import OutOfResources, PassError

BODY = """    pid = tl.program_id(0)
    if n > 3:
        for i in range(2):
            v1 = tl.load(x + tl.arange(0, 8))
            v2 = v1 * 3
            tl.static_assert(v2.dtype is tl.int32)
            tl.store(out + tl.arange(0, 8), tl.flip(v1, 0))
    v3 = early(n, n)
    tl.store(out + 100, v3)
"""


def kernel(body: str = BODY, seed: int = 7) -> Kernel:
    signature = {"x": "*i32", "out": "*i32", "n": "i32"}
    return Kernel(seed, f"{HEADER}@jit\ndef kernel(x, out, n):\n{body}", signature, (), {"x": INT32, "out": INT32})


def test_every_seed_gives_a_kernel() -> None:
    """Also where a dot of a long tile with itself, transposed, would fit into no array."""
    for seed in (857741499487, *range(100)):
        assert generated(seed, "native")[1].source


def test_a_failing_kernel_becomes_small() -> None:
    """The cause is kept: here the flip, which is in a loop in a branch."""

    def fails(candidate: Kernel) -> Outcome:
        body = candidate.source[candidate.source.index("def kernel") :]
        names = set(re.findall(r"\bv\d\b", body))
        is_whole = all(f"{name} = " in body for name in names)
        return Outcome(DIFFERENT) if "tl.flip(" in body and is_whole else Outcome(SAME)

    small = reduced(kernel(), Outcome(DIFFERENT), fails, 60).source
    assert small == (
        "import tilework.language as tl\nfrom tilework import jit\n\n\n@jit\ndef kernel(x, out, n):\n"
        "    v1 = tl.load(x + tl.arange(0, 8))\n    tl.store(out + tl.arange(0, 8), tl.flip(v1, 0))\n"
    )


def test_a_candidate_without_an_end_is_lost() -> None:
    endless = kernel("    while n > 0:\n        n = n + 0\n    tl.store(out, n)\n")
    assert tried(endless, "native", 0.5).kind == LOST


@pytest.mark.parametrize("device", ["native", "cuda:90"])
def test_a_failure_is_a_test_that_can_be_read_and_run(device: str, tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    failure = Failure(kernel(), device, Outcome(DIFFERENT, "out: index 3: 5, interpreter 6"), "plain")
    write_failure(failure, path)
    again = read_failure(path)
    assert again == failure
    with pytest.raises(AssertionError, match="the interpreter says something else"):
        failures.check(again.kernel, again.device, ("out", 3, "6"))
    failures.check(again.kernel, again.device, None)


def test_refusals_races_and_crashes_are_no_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(raises: type[Exception] | Exception) -> str:
        def run(kernel: Kernel, folder: Path) -> None:
            raise raises

        monkeypatch.setitem(devices.DEVICES, "native", run)
        return outcome_of(kernel(), "native", tmp_path).kind

    assert outcome(OutOfResources(3, 2, "shared memory")) == REFUSED
    assert outcome(PassError("not this")) == REFUSED
    assert outcome(devices.Unordered()) == UNORDERED
    assert outcome(AssertionError("block entry is finished")) == CRASHED
    assert outcome(KeyError("x")) == CRASHED


def test_wrong_types_of_the_frontend_are_differences(tmp_path: Path) -> None:
    wrong = kernel("    tl.static_assert((n + 1).dtype is tl.int64)\n    tl.store(out, n)\n")
    assert outcome_of(wrong, "native", tmp_path).kind == DIFFERENT
    refused = kernel("    tl.store(out, undefined_name)\n")
    assert outcome_of(refused, "native", tmp_path).kind == REFUSED


def test_a_racing_kernel_is_compared_with_barriers(tmp_path: Path) -> None:
    """Both programs write the same addresses, and threads read what others wrote."""
    body = (
        "    o = tl.arange(0, 64)\n    tl.store(out + o, o + tl.program_id(0))\n"
        "    tl.store(out + 100 + o, tl.load(out + 63 - o))\n"
    )
    with pytest.raises(devices.Unordered):
        devices.DEVICES["cuda:90"](kernel(body), tmp_path)
    assert outcome_of(kernel(body), "cuda:90", tmp_path).kind == SAME


def test_a_run_folds_counts_and_writes(tmp_path: Path) -> None:
    campaign = Campaign(["native", "cuda:90"], 0, 10, float("inf"), tmp_path)
    for seed in range(6):
        campaign.add(Task("native", seed), Lost("the process died with exit code -11"))
    campaign.add(Task("cuda:90", 6), ("plain", Outcome(REFUSED, "PassError: too much\nmore"), 1.0))
    campaign.add(Task("cuda:90", 7), ("plain", Outcome(SAME), 1.0))
    text = campaign.summary()
    assert campaign.outcomes["native"] == {LOST: 6} and campaign.outcomes["cuda:90"] == {REFUSED: 1, SAME: 1}
    assert "    1  refused PassError: too much   cuda:90 6" in text and "    6   lost: the process died" in text
    assert len(list(tmp_path.glob("test_native_*.py"))) == 3, "of one kind only some are kept"
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 8


def test_time_is_shared_among_devices(tmp_path: Path) -> None:
    campaign = Campaign(["native", "cuda:90"], 0, 20, float("inf"), tmp_path)
    for task in campaign.tasks():
        campaign.add(task, ("plain", Outcome(SAME), 4.0 if task.device == "cuda:90" else 1.0))
    assert campaign.outcomes["native"].total() == 15 and campaign.outcomes["cuda:90"].total() == 5


def test_the_same_seed_gives_the_same_kernel() -> None:
    assert generated(5, "cuda:90") == generated(5, "cuda:90")
