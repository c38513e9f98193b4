"""Aggregates on the host."""

from typing import Any

import pytest

import tilework.language as tl
from tilework import constexpr_function, jit


@tl.core._aggregate
class Window:
    """A range of elements."""

    start: tl.tensor
    size: tl.constexpr

    def __init__(self, start: Any, size: Any) -> None:
        self.start = start
        self.size = size

    def moved(self, start: Any) -> "Window":
        return Window(start, self.size)

    @jit
    def end(self) -> Any:
        return self.start + self.size

    @constexpr_function
    def doubled(self) -> int:
        return 2 * self.size.value

    @staticmethod
    def empty(start: Any) -> Any:
        return Window(start, 0)


@tl.core._aggregate
class Nested:
    inner: Window
    rest: tl.tuple

    def __init__(self, inner: Any, rest: Any, _semantic: Any = None) -> None:
        assert _semantic == "semantic"
        self.inner = inner
        self.rest = tl.tuple(rest)


X, Y = tl.tensor("x", tl.int32), tl.tensor("y", tl.float32)


def test_fields_decide_the_type() -> None:
    window = Window(X, tl.constexpr(4))
    assert window.type == Window(X, 4).type
    assert window.type != Window(X, 8).type and window.type != Window(Y, 4).type
    assert window.type.mangle() == f"{__name__}.Window<i32, c4>"
    assert hash(window.type) == hash(Window(X, 4).type)
    assert str(window.type) == "Window<start: int32, size: constexpr_type[4]>"


def test_an_instance_is_a_kernel_value_of_its_own_class() -> None:
    window = Window(X, 4)
    assert Window.__aggregate__ and window.__aggregate__
    assert Window.__name__ == "Window" and Window.__doc__ == "A range of elements."
    assert isinstance(window.size, tl.constexpr)
    assert isinstance(window, tl.core.base_value) and isinstance(window, Window)


def test_methods() -> None:
    window = Window(X, 4)
    assert window.moved(Y).start is Y
    assert window.doubled() == 8
    assert Window.empty(X).size == 0
    assert "end" in vars(Window) and "doubled" in vars(Window)  # what the cache key contains


def test_flattening_keeps_constants_in_the_type() -> None:
    nested = Nested(Window(X, 4), (Y, tl.constexpr(1)), _semantic="semantic", _generator="generator")
    handles: list[Any] = []
    nested._flatten_ir(handles)
    assert handles == ["x", "y"]
    copy, cursor = nested.type._unflatten_ir(["a", "b"], 0)
    assert cursor == 2 and isinstance(copy, Nested) and copy.type == nested.type
    assert (copy.inner.start.handle, copy.inner.size.value, copy.rest[0].handle, copy.rest[1].value) == ("a", 4, "b", 1)


def test_a_missing_field_is_named() -> None:
    @tl.core._aggregate
    class Lazy:
        value: tl.tensor

        def __init__(self) -> None:
            pass

    with pytest.raises(AttributeError, match="'value'"):
        Lazy()


def test_a_field_of_the_wrong_class_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'start'.*tensor.*constexpr"):
        Window(tl.constexpr(1), 4)
    with pytest.raises(TypeError, match="'size'"):
        Window(X, X)


def test_undeclared_attributes_are_refused() -> None:
    with pytest.raises(AttributeError, match="'other'"):
        Window(X, 4).other = X


def test_a_method_may_change_a_field() -> None:
    window = Window(X, 4)
    window.start = Y
    assert window.type == Window(Y, 4).type


def test_annotations_may_be_text() -> None:
    @tl.core._aggregate
    class Late:
        a: "tl.tensor"
        b: "Window"
        c: "Local"

        def __init__(self, a: Any, b: Any, c: Any) -> None:
            self.a, self.b, self.c = a, b, c

    @tl.core._aggregate
    class Local:
        x: tl.tensor

        def __init__(self, x: Any) -> None:
            self.x = x

    assert Late(X, Window(X, 1), Local(X)).c.x is X
    with pytest.raises(TypeError, match=r"'c'.*Local"):
        Late(X, Window(X, 1), X)
    with pytest.raises(TypeError, match=r"'b'.*Window"):
        Late(X, X, Local(X))


def test_init_may_be_a_constexpr_function() -> None:
    @tl.core._aggregate
    class Sizes:
        sizes: tl.tuple

        @constexpr_function
        def __init__(self, size: Any) -> None:
            self.sizes = tl.tuple([size, 2 * size])

    assert Sizes(tl.constexpr(4), _semantic=object(), _generator=object()).sizes == (4, 8)


def test_a_subclass_inherits_fields() -> None:
    @tl.core._aggregate
    class Named(Window):
        name: tl.constexpr

        def __init__(self, start: Any, size: Any, name: Any) -> None:
            self.start, self.size, self.name = start, size, name

    named = Named(X, 4, "n")
    assert [field for field, _ in named.type.fields] == ["start", "size", "name"]
    assert isinstance(named, Window)
