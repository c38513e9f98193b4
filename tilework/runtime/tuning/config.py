"""One candidate of the autotuner: values for compile-time parameters, and compile options.

>>> config = Config({"BLOCK": 128}, num_warps=8)
>>> str(config)
'BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: None'
>>> config.all_kwargs()
{'BLOCK': 128, 'num_warps': 8, 'num_ctas': 1, 'num_stages': 3}
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilework import knobs
from tilework.errors import AutotunerError
from tilework.process.triton_version import follows
from tilework.runtime.devices.active_driver import driver

DEFAULTS: dict[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "pre_hook": None,
    "ir_override": None,
}
SCALARS = frozenset({type(None), bool, int, float})  # reading an attribute that they lack takes long
DTYPE_TEXTS: dict[Any, str] = {}  # the text of a NumPy dtype takes longer than the rest of a launch
SHOWN = ("num_warps", "num_ctas", "num_stages", "maxnreg")


class Config:
    """A candidate for the autotuner: the settings to compile a kernel with.

    `kwargs` holds values of compile-time parameters; the other arguments are launch options. `pre_hook(args)` runs
    before each launch of this candidate. `ir_override` is a file (``.ttir``, ``.ttgir``, ``.ptx`` ...) that replaces
    that stage; it may also be in `kwargs`.

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
    """Return the text of a dtype, computed once."""
    text = DTYPE_TEXTS[dtype] = str(dtype)
    return text


def argument_key(keys: Sequence[str], names: Sequence[str], given: Mapping[str, object]) -> tuple[Any, ...]:
    """The values of the arguments called `keys`, and the dtypes of all that have one."""
    key = [given[name] for name in keys if name in given and name in names]
    for value in map(given.get, names):
        if type(value) not in SCALARS and (dtype := getattr(value, "dtype", None)) is not None:
            key.append(DTYPE_TEXTS.get(dtype) or dtype_text(dtype))
    return tuple(key)


def device_part() -> tuple[Any, ...]:
    """Return the end of a tuning key, which differs between the host and a GPU."""
    if driver._host is not None and driver.active is driver._host:
        return ("host",)
    kind = driver.active.device_kind()
    return () if kind is None else (kind,)


# ---- the configurations to measure: `prune_configs_by` of an autotuner


Pruned = dict[Config, str]
FREE = frozenset(
    "num_warps num_stages num_ctas maxnreg waves_per_eu matrix_instr_nonkdim kpack schedule_hint pre_hook".split()
)


class Tuning(threading.local):
    """The launch that a thread tunes for: its positional arguments by name."""

    named: dict[str, Any] | None = None

    @contextmanager
    def of(self, named: dict[str, Any]) -> Iterator[None]:
        """Tune for this launch inside of the block."""
        outside, self.named = self.named, named
        try:
            yield
        finally:
            self.named = outside


def prune(
    configs: Sequence[Config],
    named: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    early: Callable[..., Any] | None,
    model: Callable[..., Any] | None,
    top_k: float,
) -> tuple[list[Config], Pruned]:
    """Return (the configurations that are left, those with the best estimates first if there is a model; the reason for
    each of the others)."""
    left, reasons = list(configs), Pruned()
    if early is not None:
        left = list(early(configs, dict(named), **kwargs))
        if not left:
            raise AutotunerError(
                "No valid autotuner configs after pruning. `early_config_prune` should return at least one config."
            )
        reasons = {config: "early_config_prune leaves it out" for config in configs if config not in left}
    if model is None:
        return left, reasons
    count = top_k
    if isinstance(count, float) and count <= 1.0:
        count = max(1, int(len(left if follows("fraction-of-pruned") else configs) * count))
    elif not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"top_k must be a number of configurations, or a fraction up to 1.0; got {count!r}")
    if len(left) <= count:
        return left, reasons
    estimates = {config: model(**{**named, **kwargs, **config.all_kwargs()}) for config in left}
    ordered = sorted(left, key=lambda config: estimates[config])
    for config in ordered[count:]:
        last = estimates[ordered[count - 1]]
        text = f"perf_model estimates {estimates[config]:.4g}, and the last of the {count} that top_k leaves {last:.4g}"
        reasons[config] = text
    return ordered[:count], reasons


# ---- reproducible kernels


class FixedByFirst(UserWarning):
    """Configurations of a reproducible kernel that are not tried."""


def is_reproducible(fn: object, kwargs: Mapping[str, object]) -> bool:
    """Return True if a launch of a kernel, which may be wrapped, promises the same bits everywhere."""
    wanted = kwargs.get("reproducible")
    while wanted is None and fn is not None:
        wanted, fn = getattr(fn, "reproducible", None), getattr(fn, "fn", None)
    return bool(knobs.runtime.reproducible if wanted is None else wanted)


def like_first(name: str, configs: Sequence[Config]) -> tuple[list[Config], dict[Config, str]]:
    """Return (the configurations that compute the same bits as the first one, the difference of each of the others)."""
    left: list[Config] = []
    reasons: dict[Config, str] = {}
    wanted = fixed(configs[0])
    for config in configs:
        own = fixed(config)
        differ = [key for key in {**wanted, **own} if wanted.get(key) != own.get(key)]
        if not differ:
            left.append(config)
            continue
        texts = [f"{key} is {own.get(key)!r} and {wanted.get(key)!r} in the first configuration" for key in differ]
        reasons[config] = f"it may change the bits: {', '.join(texts)}"
    if reasons:
        text = next(iter(reasons.values())).removeprefix("it may change the bits: ")
        warnings.warn(
            f"{name} is reproducible: {len(reasons)} of its {len(configs)} configurations are not tried,"
            f" since they may change the bits ({text}). Put the one whose values you want first; the others may differ"
            " in num_warps, num_stages, num_ctas and maxnreg",
            FixedByFirst,
            stacklevel=5,
        )
    return left, reasons


def fixed(config: Config) -> dict[str, Any]:
    """Return the settings of a configuration that may change the bits of the result."""
    return {name: value for name, value in config.all_kwargs().items() if name not in FREE}
