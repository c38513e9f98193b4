"""Classes that are defined quickly are the same classes."""

import dataclasses
import gc
import inspect
import subprocess
import sys
from typing import Any

import pytest

from tilework.quick_definitions import quick_definitions

CLASS = """
from dataclasses import dataclass, field

@dataclass(frozen=True, order=True)
class Place:
    row: int
    column: int = 7
    names: tuple = field(default_factory=tuple, compare=False)

@dataclass(frozen=True)
class Named(Place):
    name: str = ""
"""


def defined(module: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": module}
    sys.modules[module] = type(sys)(module)
    try:
        exec(CLASS, scope)
    finally:
        del sys.modules[module]
    return scope


@pytest.mark.skipif(
    not hasattr(dataclasses, "_create_fn"), reason="this Python compiles the methods of a class at once"
)
def test_methods_are_compiled_when_they_are_called() -> None:
    with quick_definitions():
        place, named = (defined("tilework.somewhere")[name] for name in ("Place", "Named"))
    assert place.__init__.__code__ is named.__init__.__code__  # both wait
    later = place.__init__
    assert place(3) == place(3, 7, ("x",)) != place(4) and place(3) < place(3, 8)
    assert place.__init__ is not later and place.__init__.__qualname__ == "Place.__init__"
    assert repr(named(3, name="n")) == "Named(row=3, column=7, names=(), name='n')"
    assert hash(place(3)) == hash(place(3)) and dataclasses.replace(place(3), row=1) == place(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        place(3).row = 4
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'row'"):
        named()


def test_classes_of_others_and_the_collector_are_as_before() -> None:
    create, thresholds = getattr(dataclasses, "_create_fn", None), gc.get_threshold()
    with quick_definitions():
        place = defined("somebody.else")["Place"]
        with quick_definitions():
            pass
        assert gc.get_threshold() != thresholds
    assert str(inspect.signature(place)).startswith("(row: int, column: int = 7")
    assert (getattr(dataclasses, "_create_fn", None), gc.get_threshold()) == (create, thresholds)


def test_a_format_that_was_put_off_reads_and_writes() -> None:
    program = """
from tilework.ir.deferred_formats import deferred_formats
with deferred_formats():
    from xdsl.dialects.arith import Arith
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
context = Context()
context.load_dialect(Arith), context.load_dialect(Builtin)
text = str(Parser(context, "%0 = arith.constant 1 : i32  %1 = arith.addi %0, %0 : i32").parse_module())
assert "%1 = arith.addi %0, %0 : i32" in text, text
"""
    subprocess.run([sys.executable, "-c", program], check=True)
