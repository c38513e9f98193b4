"""Light dataclasses behave like those of the standard library."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from tilework.light_dataclass import light_dataclass


@light_dataclass
class Light:
    """Fields of every sort."""

    first: int
    second: str = "s"
    hidden: int = field(default=0, repr=False)
    ignored: int = field(default=0, compare=False)
    items: tuple[int, ...] = field(default_factory=tuple, kw_only=True)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError(self.first)


@light_dataclass(frozen=False)
class Mutable:
    """Not hashable, because it can change."""

    value: int
    items: list[int] = field(default_factory=list)
    later: int = field(init=False)


@dataclass(frozen=True)
class Standard:
    """The fields of `Light`."""

    first: int
    second: str = "s"
    hidden: int = field(default=0, repr=False)
    ignored: int = field(default=0, compare=False)
    items: tuple[int, ...] = field(default_factory=tuple, kw_only=True)


ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "t"), {}),
    ((1, "t", 2, 3), {}),
    ((), {"second": "t", "first": 1}),
    ((1,), {"items": (4, 5), "ignored": 6}),
]


@pytest.mark.parametrize(("values", "named"), ARGUMENTS)
def test_values_text_and_hash_are_those_of_a_standard_dataclass(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    light, standard = Light(*values, **named), Standard(*values, **named)
    assert asdict(light) == asdict(standard)
    assert repr(light) == repr(standard).replace("Standard", "Light")
    assert hash(light) == hash(standard)
    assert light == Light(*values, **named) != Light(7)
    assert copy.deepcopy(light) == pickle.loads(pickle.dumps(light)) == light


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "missing the required argument 'first'"),
        ((1,), {"first": 2}, "multiple values for argument 'first'"),
        ((1,), {"other": 2}, "unexpected keyword argument 'other'"),
        ((1, "t", 2, 3, ()), {}, "takes 4 positional arguments but 5 were given"),
    ],
)
def test_wrong_arguments_are_refused(values: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Light(*values, **named)


def test_functions_of_dataclasses_work() -> None:
    light = Light(1)
    assert is_dataclass(Light) and [found.name for found in fields(light)][:2] == ["first", "second"]
    assert replace(light, second="u") == Light(1, "u")
    with pytest.raises(ValueError, match="-1"):
        replace(light, first=-1)
    match light:
        case Light(first, second):
            assert (first, second) == (1, "s")


def test_signature_names_the_fields() -> None:
    shown = str(inspect.signature(Light))
    assert shown.startswith("(first: int, second: str = 's', hidden: int = 0") and "*, items:" in shown


def test_frozen_and_mutable() -> None:
    with pytest.raises(FrozenInstanceError):
        Light(1).first = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del Light(1).first  # type: ignore[misc]
    one = Mutable(1)
    one.value, one.later = 2, 3
    one.items.append(4)
    assert one.later == 3 and (Mutable(1).items, hasattr(Mutable(1), "later")) == ([], False)
    assert one != Light(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_methods_of_the_body_and_identity() -> None:
    @light_dataclass
    class Named:
        """Its own text."""

        name: str

        def __repr__(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and other.name.lower() == self.name.lower()

    @light_dataclass(eq=False)
    class Identity:
        """Equal to itself alone."""

        name: str

    assert repr(Named("a")) == "a" and Named("a") == Named("A") and hash(Named("a")) == hash(Named("a"))
    same = Identity("a")
    assert same == same and same != Identity("a") and len({same, Identity("a")}) == 2
