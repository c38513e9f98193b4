"""A space of configurations: all combinations of some values, as a sequence of `Config`s.

    >>> space = Space(BM=[64, 128], BK=[32, 64], num_warps=[4, 8], where=lambda BM, num_warps: BM >= 16 * num_warps)
    >>> len(space), space[0].all_kwargs()["num_warps"]
    (6, 4)

The last name varies fastest. A configuration is made when it is read; only `where` is called for all of them, once.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, overload

from tilework.errors import AutotunerError, did_you_mean
from tilework.runtime.tuning.config import DEFAULTS, Config

Values = tuple[Any, ...]


class Space(Sequence[Config]):
    """Every combination of the given values, as `configs=` of `autotune`.

    Each keyword is a compile-time parameter of the kernel or a launch option (such as `num_warps` or `num_stages`), and
    its value is the list of possible values. `where` is a function of some of them, by name, that returns True for the
    combinations to keep. `pre_hook` is passed to each configuration.

    Example:
        fits = lambda BLOCK, num_warps: BLOCK >= 32 * num_warps
        space = tilework.Space(BLOCK=[64, 128, 256], num_warps=[4, 8], where=fits)
        assert len(space) == 3 and space[0] == tilework.Config({"BLOCK": 128}, num_warps=4)
    """

    def __init__(
        self,
        *,
        where: Callable[..., object] | None = None,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        **values: Sequence[Any],
    ) -> None:
        if not values:
            raise AutotunerError("a Space needs the values of at least one parameter or option: Space(BLOCK=[64, 128])")
        self.axes = {name: axis(name, given) for name, given in values.items()}
        self.where, self.pre_hook = where, pre_hook
        self.kept: list[Values] | None = None  # what `where` keeps, once that is known
        self.asked = None if where is None else parameters_of(where, self.axes)

    def __len__(self) -> int:
        return prod(map(len, self.axes.values())) if self.where is None else len(self.combinations())

    @overload
    def __getitem__(self, index: int) -> Config: ...
    @overload
    def __getitem__(self, index: slice) -> list[Config]: ...
    def __getitem__(self, index: int | slice) -> Config | list[Config]:
        chosen = range(len(self))[index]
        return self.config(chosen) if isinstance(chosen, int) else [self.config(one) for one in chosen]

    def __iter__(self) -> Iterator[Config]:
        return map(self.config, range(len(self)))

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={list(values)}" for name, values in self.axes.items())
        return f"Space({axes}{'' if self.where is None else ', where=...'})"

    def combinations(self) -> list[Values]:
        """Return the combinations that `where` accepts."""
        if self.kept is None:
            assert self.where is not None and self.asked is not None
            self.kept = []
            for values in product(*self.axes.values()):
                named = dict(zip(self.axes, values, strict=True))
                if self.where(**{name: named[name] for name in self.asked}):
                    self.kept.append(values)
            if not self.kept:
                raise AutotunerError(f"`where` is true for no combination of {self!r}")
        return self.kept

    def config(self, index: int) -> Config:
        """Return the configuration at an index."""
        if self.where is not None:
            values = self.combinations()[index]
        else:
            values = ()
            for choices in reversed(self.axes.values()):
                index, digit = divmod(index, len(choices))
                values = (choices[digit], *values)
        named = dict(zip(self.axes, values, strict=True))
        options = {name: named.pop(name) for name in list(named) if name in DEFAULTS}
        return Config(named, **options, pre_hook=self.pre_hook)

    def check_names(self, kernel: str, parameters: Sequence[str]) -> None:
        """Refuse a name that is neither a parameter of the kernel nor an option."""
        from tilework.targets.options import AMD_OPTIONS, NAMES  # lazily: importing a program need not load them

        known = {*NAMES, *AMD_OPTIONS, *DEFAULTS}
        for name in self.axes:
            if name not in parameters and name not in known:
                guess = did_you_mean(name, [*parameters, *sorted(known)])
                raise AutotunerError(f"Space: {name} is neither a parameter of {kernel} nor an option{guess}")


def axis(name: str, given: object) -> Values:
    """Return the values of one name, checked."""
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise AutotunerError(f"Space: {name} is {given!r}, and must be a list of values: {name}=[{given!r}]")
    values: Values = tuple(given)  # pyright: ignore[reportArgumentType]
    if not values:
        raise AutotunerError(f"Space: the list of {name} is empty")
    for index, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            raise AutotunerError(f"Space: {name} has the value {value!r}, which cannot be hashed") from None
        if value in values[:index]:
            other = values[values.index(value)]
            same = type(value) is type(other)
            what = f"value {value!r} twice" if same else f"values {other!r} and {value!r}, which are equal"
            raise AutotunerError(f"Space: {name} has the {what}")
    return values


def parameters_of(where: Callable[..., object], axes: Mapping[str, Values]) -> list[str]:
    """Return the names that `where` takes."""
    parameters = named_parameters(where, "Space: `where`")
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return list(axes)
    for one in parameters:
        if one.name not in axes and one.default is one.empty:
            guess = did_you_mean(one.name, axes)
            raise AutotunerError(f"Space: `where` asks for {one.name}, which the space does not have{guess}")
    return [one.name for one in parameters if one.name in axes]


def named_parameters(function: Callable[..., object], what: str) -> list[inspect.Parameter]:
    """Return the parameters of a user's function that is called by name; an error says `what` it is."""
    try:
        found = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        raise AutotunerError(f"{what} must be a function with named parameters, got {function!r}") from None
    for one in found:
        if one.kind in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL):
            raise AutotunerError(f"{what} must be a function with named parameters, and has {one}")
    return found
