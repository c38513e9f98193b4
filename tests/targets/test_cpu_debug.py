"""`ttc.print` line by line, and `ttc.assert`."""

import ml_dtypes
import numpy as np
import pytest

import tilework.language as tl
from tests.targets.cpu_rules import buffer, run
from tilework import jit
from tilework.inspect.replay import Launch, run_on


def test_a_tile(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([1.5, -2, np.inf, np.nan], np.float32)
    run(
        f'    ttc.print " x: " {{hex = false, isSigned = array<i32: 0>}} : %x : {buffer(x)}',
        {"x": x},
        program=(1, 2, 3),
    )
    assert capsys.readouterr().out.splitlines() == [
        "pid (1, 2, 3) idx (0) x: 1.500000",
        "pid (1, 2, 3) idx (1) x: -2.000000",
        "pid (1, 2, 3) idx (2) x: inf",
        "pid (1, 2, 3) idx (3) x: nan",
    ]


def test_indices_are_aligned_and_operands_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = np.arange(32, dtype=np.int32).reshape(16, 2) - 1, np.array([-1], np.int64)
    run(
        f'    ttc.print " v: " {{hex = false, isSigned = array<i32: 1, 0>}} : %x, %y : {buffer(x)}, i64',
        {"x": x},
        {"y": y},
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pid (0, 0, 0) idx ( 0, 0) v: (operand 0) -1"
    assert lines[31] == "pid (0, 0, 0) idx (15, 1) v: (operand 0) 30"
    assert lines[32:] == ["pid (0, 0, 0) idx () v: (operand 1) 18446744073709551615"]


def test_hex_and_narrow_types(capsys: pytest.CaptureFixture[str]) -> None:
    half, brain, flag = np.array([1], np.float16), np.array([1.5], ml_dtypes.bfloat16), np.array([True])
    run(
        '    ttc.print " " {hex = true, isSigned = array<i32: 1, 1>} : %h, %f : f16, i1\n'
        '    ttc.print " " {hex = false, isSigned = array<i32: 1, 1>} : %b, %f : bf16, i1',
        {},
        {"h": half, "b": brain, "f": flag},
    )
    values = [line.rpartition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert values == ["0x3c00", "0x01", "1.500000", "1"]


def test_no_operands(capsys: pytest.CaptureFixture[str]) -> None:
    run('    ttc.print " here"', {}, program=(7, 0, 0))
    assert capsys.readouterr().out == "pid (7, 0, 0) here\n"


@pytest.mark.parametrize("count", [1, 8, 16, 100, 256])
def test_an_assert_gives_its_code_and_ends_the_program(count: int) -> None:
    good, last = np.ones(count, np.bool_), np.ones(count, np.bool_)
    last[-1] = False
    done = np.zeros(1, np.int32)
    body = (
        f'    ttc.assert %g, "never" : {buffer(good)}\n    ttc.assert %l, "last" : {buffer(last)}\n'
        f"    ttc.histogram %d into %d : {buffer(done)}, {buffer(done)}"
    )
    done[0] = 5
    assert run(body, {"g": good, "l": last, "d": done}) == 2
    assert done[0] == 5
    assert run(body, {"g": good, "l": good, "d": done}) == 0
    assert done[0] == 1


def test_a_scalar_condition() -> None:
    body = '    ttc.assert %c, "wrong" : i1'
    assert run(body, {}, {"c": np.array([True])}) == 0
    assert run(body, {}, {"c": np.array([False])}) == 1


@jit(debug=True)
def never(a, b):
    tl.device_assert(False, "constant")
    return a + b


@jit(debug=True, noinline=True)
def never_apart(x):
    tl.device_assert(False, "constant")
    return x + 1


@jit(debug=True)
def constant_asserts(x, n, WHERE: tl.constexpr):
    i = tl.arange(0, 16)
    if WHERE == "start":
        tl.device_assert(False, "constant")
    elif WHERE == "twice":
        tl.device_assert(1 == 2, "constant")
        tl.device_assert(False, "another")
        tl.device_print("n", n)
        tl.store(x, tl.load(x + 1, mask=False, other=3), mask=False)
    elif WHERE == "tile":
        tl.device_assert(tl.full((16,), 0, tl.int1), "constant")
    elif WHERE == "callee":
        n = never_apart(n)
    elif WHERE == "reduction":
        n += tl.reduce(tl.load(x + i), 0, never)
    elif WHERE == "scan":
        tl.store(x + i, tl.associative_scan(tl.load(x + i), 0, never))
    for k in range(n):
        if WHERE == "loop":
            tl.device_assert(False, "constant")
        tl.store(x + k, tl.load(x + k) + n)
    while n > 0:
        if WHERE == "while":
            tl.device_assert(False, "constant")
        n -= 1
    if WHERE == "branch" and n == 0:
        tl.device_assert(False, "constant")
    else:
        return
    tl.store(x + i, i)


WHERE = ("start", "twice", "tile", "callee", "reduction", "scan", "loop", "while", "branch")


@pytest.mark.parametrize("device", ["interpreter", "evaluator", "native", "emulator:sm_80"])
@pytest.mark.parametrize("where", WHERE)
def test_an_assert_whose_condition_is_the_constant_false(where: str, device: str) -> None:
    """Code after the assert is compiled but does not run."""
    x = np.zeros(16, np.int32)
    launch = Launch(constant_asserts, (x, 3, where), (2, 1, 1), {"num_warps": 1})
    with pytest.raises(Exception, match=r"assert.*constant"):
        run_on(device, launch)
    if where not in ("while", "branch"):
        assert not x.any()
