"""One candidate of the autotuner: values for compile-time parameters, and compile options.

>>> config = Config({"BLOCK": 128}, num_warps=8)
>>> str(config)
'BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None'
>>> config.all_kwargs()
{'BLOCK': 128, 'num_warps': 8, 'num_ctas': 1, 'num_stages': 3}
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilework.runtime.devices.active_driver import driver

DEFAULTS: dict[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "pre_hook": None,
    "ir_override": None,
}
NUMBERS = frozenset({type(None), bool, int, float})  # asking these for an attribute takes long, and there is none
DTYPE_TEXTS: dict[Any, str] = {}  # the text of a NumPy dtype takes longer than the rest of a launch
SHOWN = ("num_warps", "num_ctas", "num_stages", "maxnreg")


class Config:
    """A candidate of the autotuner: the settings to compile a kernel with.

    `kwargs` are values of compile-time parameters; the others are options of the launch. `pre_hook(args)` runs before
    each launch of this candidate. `ir_override` is a file (``.ttir``, ``.ttgir``, ``.ptx`` ...) that replaces that
    stage; it may also be in `kwargs`.

    Example:
        config = tilework.Config({"BLOCK": 128}, num_warps=8)
        assert config.all_kwargs() == {"BLOCK": 128, "num_warps": 8, "num_ctas": 1, "num_stages": 3}
        assert config == tilework.Config({"BLOCK": 128}, num_warps=8)
    """

    def __init__(
        self,
        kwargs: Mapping[str, object],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], object] | None = None,
        ir_override: str | None = None,
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """Pickles of older versions lack fields; those get their defaults."""
        self.__dict__.update({"kwargs": {}} | DEFAULTS | dict(state))

    def all_kwargs(self) -> dict[str, Any]:
        """Keyword arguments for a launch with this candidate.

        Example:
            best = tilework.Config({"BLOCK": 64}, num_stages=2)
            assert best.all_kwargs() == {"BLOCK": 64, "num_warps": 4, "num_ctas": 1, "num_stages": 2}
        """
        options = {name: getattr(self, name) for name in (*SHOWN, "ir_override")}
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __str__(self) -> str:
        parts = {**self.kwargs, **{name: getattr(self, name) for name in SHOWN}}
        return ", ".join(f"{name}: {value}" for name, value in parts.items())

    def __repr__(self) -> str:
        return f"Config({self})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.all_kwargs() == other.all_kwargs() and self.pre_hook == other.pre_hook

    def __hash__(self) -> int:
        return hash((frozenset(self.all_kwargs().items()), self.pre_hook))


# ---- tuning keys


def dtype_text(dtype: object) -> str:
    """The text of a dtype, computed once."""
    text = DTYPE_TEXTS[dtype] = str(dtype)
    return text


def argument_key(keys: Sequence[str], names: Sequence[str], given: Mapping[str, object]) -> tuple[Any, ...]:
    """The values of the arguments called `keys`, and the dtypes of all that have one."""
    key = [given[name] for name in keys if name in given and name in names]
    for value in map(given.get, names):
        if type(value) not in NUMBERS and (dtype := getattr(value, "dtype", None)) is not None:
            key.append(DTYPE_TEXTS.get(dtype) or dtype_text(dtype))
    return tuple(key)


def device_part() -> tuple[Any, ...]:
    """The end of a key: the best configuration of the host is another one than a GPU's."""
    if driver._host is not None and driver.active is driver._host:
        return ("host",)
    kind = driver.active.device_kind()
    return () if kind is None else (kind,)
