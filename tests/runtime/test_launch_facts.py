"""Both parts of the launcher decide by the facts of `runtime/launch/python/specialize.py`: generated launches take
machine code if, and only if, a launch with equal facts came before, and get the kernel that the Python path would find.
"""

# Kernels annotate parameters with values and texts that are no Python types.
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.language.parameters import KernelParam
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.native.machine import machine
from tilework.runtime.launch.python.specialize import ITEM, MULTIPLE, ONE, VALUE, WIDTH, facts_of

MEMORY = np.zeros(64, np.float64)
ARRAYS = (
    MEMORY[:32],
    MEMORY[1:32],
    MEMORY[2:32],
    np.zeros(8, np.float32),
    np.zeros(8, np.float32),
    np.zeros(8, np.int8),
)
INTEGERS = (
    0,
    1,
    2,
    3,
    16,
    17,
    48,
    -1,
    -16,
    2**31 - 1,
    -(2**31),
    2**31,
    2**40 + 1,
    -(2**31) - 1,
    -(2**40),
    2**62,
    -(2**63),
)
CONSTANTS = (
    0,
    1,
    2,
    -5,
    2**40,
    True,
    False,
    None,
    0.0,
    -0.0,
    1.0,
    2.5,
    "one",
    "".join(["o", "ne"]),
    "two",
    (1, 2),
    (1, 2.0),
    (),
)


def decided(a, b, fixed: tl.int64, d, e, x: tl.float32, N: tl.constexpr):
    pass


def torch_tensors() -> tuple[Any, ...]:
    try:
        import torch
    except ImportError:
        return ()
    whole = torch.zeros(64)
    return whole[:32], whole[1:32], whole[4:32], torch.zeros(8, dtype=torch.int64), torch.nn.Parameter(torch.zeros(4))


def draw(random: random.Random, name: str) -> Any:
    """A value for a parameter."""
    if name == "N":
        return random.choice(CONSTANTS)
    if name == "fixed":
        return random.choice(INTEGERS)
    if name == "x":
        return random.choice((0.5, 1.0, -0.0))
    kinds: list[Callable[[], Any]] = [
        lambda: random.choice(INTEGERS),
        lambda: random.choice((*ARRAYS, *torch_tensors())),
        lambda: random.choice((None, True, False, 0.5, 1.0)),
        lambda: (random.choice(INTEGERS), random.choice(ARRAYS)),
    ]
    return random.choice(kinds)()


def decision(value: Any, facts: int) -> Any:
    """The decision of `specialize.py` about an argument, written out by hand."""
    if isinstance(value, tuple):
        return tuple, tuple(decision(item, facts if facts & VALUE else ITEM) for item in value)
    if facts & VALUE:
        return type(value), repr(value)
    if type(value) is int:
        width = "i32" if -(2**31) <= value < 2**31 else ("positive", "negative")[value < 0]
        is_one = facts & ONE and value == 1
        return int, is_one, not is_one and facts & MULTIPLE and value % 16 == 0, facts & WIDTH and width
    if hasattr(value, "dtype"):
        address = value.data_ptr() if hasattr(value, "data_ptr") else value.__array_interface__["data"][0]
        name = str(value.dtype).removeprefix("torch.")
        return "memory", type(value), name, facts & MULTIPLE and address % 16 == 0
    return type(value)


def compiled_for(found: Any) -> Any:
    """Return a decision without what only the native launcher distinguishes: the library of an array, and the sign of
    ``i64``."""
    if isinstance(found, tuple):
        return tuple(map(compiled_for, found[2:] if found[:1] == ("memory",) else found))
    return "i64" if isinstance(found, str) and found in ("positive", "negative") else found


@pytest.mark.parametrize("seed", range(3))
def test_both_parts_decide_by_the_facts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if machine() is None:
        pytest.skip("this Python has no native launcher")
    generated = random.Random(seed)
    kernel: Any = tilework.jit(decided, do_not_specialize=["d"], do_not_specialize_on_alignment=["e"])
    state = kernel[(1,)].__self__[0]
    python, calls = state[0], list[Any]()
    state[0] = lambda *args, **kwargs: calls.append(args) or python(*args, **kwargs)
    bind = kernel.device_caches[driver.cache_key(driver.active)][4]
    facts = {param.name: facts_of(param) for param in kernel.params}
    known: dict[Any, Any] = {}
    specs: dict[Any, Any] = {}
    values = {name: draw(generated, name) for name in facts}
    for _ in range(120):
        if generated.random() < 0.5:
            values = dict(generated.choice(list(known.values()))) if known else values
        for name in generated.sample(list(facts), generated.choice((0, 0, 1, 1, 2))):
            values = values | {name: draw(generated, name)}
        found = tuple(decision(value, facts[name]) for name, value in values.items())
        *positional, constant = values.values()
        _, spec, kinds, _ = bind(*positional, N=constant)
        assert specs.setdefault(compiled_for(found), (spec, kinds)) == (spec, kinds)
        del calls[:]
        launched = kernel[(1,)](*positional, N=constant)
        assert bool(calls) == (found not in known), (values, found)
        assert launched is kernel.run(*positional, N=constant, grid=(1,), warmup=True)
        known[found] = values
    assert len(set(map(repr, specs.values()))) == len(specs), "launches with different facts are different"
    assert 30 < len(known) < 110


def test_facts_of_parameters() -> None:
    def kernel(n, wide: tl.int64, f: tl.float32, flag: tl.int1, p: "*fp32", N: tl.constexpr):  # noqa: F722
        pass

    def found(**settings: bool) -> list[int]:
        made = {"do_not_specialize": False, "do_not_specialize_on_alignment": False} | settings
        plain = tilework.jit(kernel).params
        return [facts_of(KernelParam(param.num, param._param, **made)) for param in plain]

    assert found() == [ITEM, ONE | MULTIPLE, 0, 0, ONE | MULTIPLE, VALUE]
    assert found(do_not_specialize=True) == [WIDTH, 0, 0, 0, 0, VALUE]
    assert found(do_not_specialize_on_alignment=True) == [WIDTH | ONE, ONE | MULTIPLE, 0, 0, ONE, VALUE]
