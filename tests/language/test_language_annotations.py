"""Annotations on every Python: 3.14 evaluates them lazily, and tilework must not evaluate too many."""

import inspect
import sys
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tilework.language import parameters
from tilework.language.parameters import annotations_of, as_text, signature_of


class ForwardReference:
    """As Python 3.14 gives for a name that does not exist."""

    def __init__(self, text: str) -> None:
        self.__forward_arg__ = text


class Format(Enum):
    FORWARDREF = 3


@pytest.fixture
def python_314(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """`annotationlib` and `inspect.signature` as they are there; the dict holds the notes of a class."""
    notes: dict[str, Any] = {}
    library = ModuleType("annotationlib")
    vars(library).update(Format=Format, get_annotations=lambda cls, format: dict(notes))
    signature = inspect.signature

    def lazy_signature(fn: Any, *, annotation_format: Format) -> inspect.Signature:
        assert annotation_format is Format.FORWARDREF
        found = signature(fn)
        parameters = [p.replace(annotation=lazy(p.annotation)) for p in found.parameters.values()]
        return found.replace(parameters=parameters)

    monkeypatch.setitem(sys.modules, "annotationlib", library)
    monkeypatch.setattr(parameters.inspect, "signature", lazy_signature)
    monkeypatch.setattr(parameters.sys, "version_info", (3, 14, 0))
    return notes


def lazy(note: Any) -> Any:
    return ForwardReference(note) if note == "Later" else note


def kernel(x: "Later", n: tl.int64, N: tl.constexpr):  # noqa: F821  # pyright: ignore
    pass


def test_unknown_names_stay_text() -> None:
    note = ForwardReference("Later")
    assert as_text(note) == "Later" and as_text(tl.constexpr) is tl.constexpr
    assert [p.annotation for p in signature_of(kernel).parameters.values()] == ["Later", tl.int64, tl.constexpr]


def test_a_kernel_under_python_314(python_314: dict[str, Any]) -> None:
    function = tilework.jit(kernel)
    assert [param.annotation for param in function.params] == ["Later", "i64", "constexpr"]
    assert [param.is_constexpr for param in function.params] == [False, False, True]


class Base:
    a: int


class Derived(Base):
    b: "tl.tensor"


class Bare(Base):
    pass


def test_annotations_of_a_class() -> None:
    assert annotations_of(Base) == {"a": int}
    assert annotations_of(Derived) == {"b": "tl.tensor"}
    assert annotations_of(Bare) == {}


def test_a_class_under_python_314(python_314: dict[str, Any]) -> None:
    python_314["next"] = ForwardReference("Derived")
    assert annotations_of(Derived) == {"next": "Derived"}
