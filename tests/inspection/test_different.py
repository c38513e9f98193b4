"""Why a kernel gives other results: devices against the interpreter, and the pass that changed them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilework
import tilework.language as tl
from tests.inspection.kernels import add
from tilework import knobs
from tilework.inspect.check_each import Tolerance, gap_of
from tilework.inspect.explain.different import findings_of, why_different
from tilework.inspect.replay import DEVICES, Kept, Launch
from tilework.ir import arith
from tilework.ir.create import create_op
from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import replace_op
from tilework.transforms import registry
from tilework.transforms.passes import Pass

HOSTS = ("interpreter", "evaluator", "native")


class WrongPass(Pass):
    """Every addition of floats becomes a subtraction."""

    name = "test-wrong"

    def run(self, module: ModuleOp) -> None:
        for op in list(ops_in_order(*module.regions)):
            if type(op) is arith.AddfOp:
                types = [result.type for result in op.results]
                replace_op(op, create_op(arith.SubfOp, op.operands, types, op.location, op.properties, {}))


@pytest.fixture
def wrong_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """It runs in the middle of the pipeline of all targets; what it makes must not stay in the cache."""
    real = registry.ttir_pipeline

    def planted(*args: Any, **options: Any) -> list[str]:
        names = real(*args, **options)
        return [*names[:6], "test-wrong", *names[6:]]

    monkeypatch.setattr(registry, "ttir_pipeline", planted)
    monkeypatch.setattr(
        registry, "get_pass", lambda name, real=registry.get_pass: WrongPass if name == "test-wrong" else real(name)
    )
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield


def launch(n: int = 100) -> Launch:
    x = np.arange(128, dtype=np.float32)
    return Launch(add, (x, np.ones_like(x), np.zeros_like(x), n, 1, 32), (4, 1, 1))


def test_the_pass_that_changed_a_result_is_named(wrong_pass: None) -> None:
    case = launch()
    found = findings_of(case, ("interpreter", "native"))[0]
    assert found.severity == "error" and found.facts["culprit"] == "test-wrong"
    assert (
        "add is different on native: out[0] is -1.0, not 1.0; 100 of 100 written elements of `out` differ"
        in found.title
    )
    assert "the pass 'test-wrong' (make_ttir) changed it: out[0] is -1.0, not 1.0" in found.text()
    assert not case.values[2].any(), "the arguments are as they were"


def test_all_devices_agree() -> None:
    devices = (*HOSTS, "emulator:sm_90")
    assert set(devices) <= set(DEVICES)
    (found,) = why_different([launch()], devices).findings
    assert found.facts["equal"] == ["evaluator", "native", "emulator:sm_90"]


@tilework.jit(do_not_specialize=["n"])
def successor(out, n):
    tl.store(out, n.to(tl.int64) + 1)


def test_numbers_that_are_not_specialised_are_none_in_the_interpreter_either() -> None:
    (found,) = why_different([Launch(successor, (np.zeros(1, np.int64), 1), (1, 1, 1))], HOSTS).findings
    assert found.facts["equal"] == ["evaluator", "native"]


@tilework.jit
def mean(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.exp(tl.load(x + tl.arange(0, BLOCK)))) / BLOCK)


def test_rounding_is_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=1024).astype(np.float32)
    section = why_different([Launch(mean, (x, np.zeros(1, np.float32), 1024), (1, 1, 1))], HOSTS)
    assert "no wrong values" in section.summary
    tolerance = Tolerance("f32", 2e-4)
    near = gap_of("a", np.array([1.0, 2.0], np.float32), np.array([1.0, 2.00001], np.float32), tolerance)
    far = gap_of("a", np.array([1.0, 2.0], np.float32), np.array([1.0, 2.01], np.float32), tolerance)
    assert near is not None and near.is_rounding and far is not None and not far.is_rounding
    assert gap_of("a", np.array([np.nan], np.float32), np.array([np.nan], np.float32), tolerance) is None
    wrong = gap_of("a", np.array([[1, 2], [3, 4]], np.int32), np.array([[1, 2], [9, 4]], np.int32), tolerance)
    assert wrong is not None and not wrong.is_rounding and wrong.index == (1, 0) and wrong.largest == 6


@pytest.mark.parametrize("stale", [1e30, np.inf, np.nan, -3e38])
def test_only_what_was_written_is_compared(wrong_pass: None, stale: float) -> None:
    """Stale contents of the arrays do not change how large an error may be."""
    case = launch()
    case.values[2][100:] = stale
    found = findings_of(case, ("interpreter", "native"))[0]
    assert found.severity == "error" and found.facts["culprit"] == "test-wrong" and found.facts["largest_error"] == 2
    assert "100 of 100 written elements of `out` differ, the largest error is 2, 1.0e-02 of" in found.title


def test_elements_written_with_what_they_held_count() -> None:
    """The second launch writes the same values again; errors are relative to all of them."""
    x = np.random.default_rng(0).normal(size=1024).astype(np.float32)
    out = np.zeros(3, np.float32)[1:2]
    (found,) = why_different([Launch(mean, (x, out, 1024), (1, 1, 1))], HOSTS).findings
    mean[(1,)](x, out, 1024)
    (again,) = why_different([Launch(mean, (x, out, 1024), (1, 1, 1))], HOSTS).findings
    assert found.severity == again.severity == "note" and found.facts == again.facts
    kept = Kept([("x", x), ("out", out)])
    with kept, kept.noting_writes():
        tilework.jit(interpret=True)(mean.fn)[(1,)](x, out, 1024)
    assert kept.written()["out"].tolist() == [True] and not kept.written()["x"].any()


@tilework.jit
def total(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0))


@tilework.jit
def inner(x, out, BLOCK: tl.constexpr):
    row = tl.load(x + tl.arange(0, BLOCK))[None, :]
    product = tl.dot(tl.broadcast_to(row, (16, BLOCK)), tl.full((BLOCK, 16), 1.0, tl.float32), input_precision="ieee")
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], product)


@pytest.mark.parametrize("kernel", [total, inner])
def test_the_order_of_a_summation_is_named(kernel: Any) -> None:
    half = np.random.default_rng(1).normal(size=512).astype(np.float32) * 1e6
    x = np.concatenate((half, -half[::-1]))  # the sum is rounding, in any order
    section = why_different([Launch(kernel, (x, np.zeros(256, np.float32), 1024), (1, 1, 1))], HOSTS)
    found = [finding for finding in section.findings if finding.facts.get("culprit")]
    assert found and {finding.facts["culprit"] for finding in found} == {"order of summation"}
    assert all("by the order of a summation" in finding.title and finding.severity == "warning" for finding in found)
    assert "no wrong values" in section.summary and "code generator" not in section.text()


def test_a_wrong_sum_is_not_put_down_to_its_order(wrong_pass: None) -> None:
    x = np.random.default_rng(2).normal(size=1024).astype(np.float32)
    found = findings_of(Launch(total, (x, np.zeros(1, np.float32), 1024), (1, 1, 1)), ("interpreter", "native"))[0]
    assert found.severity == "error" and found.facts["culprit"] == "test-wrong"


@tilework.jit
def copy(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def test_what_the_interpreter_refuses_is_the_answer() -> None:
    x, out = np.zeros(20, np.float32), np.zeros(32, np.float32)
    found = findings_of(Launch(copy, (x, out, 32), (1, 1, 1)), HOSTS)[0]
    assert "reads element 20 of argument 'x', which has 20 elements" in found.title and "mend it first" in found.help


def test_arrays_that_overlap_are_put_back() -> None:
    whole = np.arange(64, dtype=np.float32)
    before = whole.copy()
    with Kept([("x", whole[:32]), ("out", whole[::-1][:40])]) as kept:
        whole[:] = 7
        assert (kept.arrays()["out"] == 7).all()
        kept.restore()
        assert (whole == before).all()
        whole[3] = 9
    assert (whole == before).all()
