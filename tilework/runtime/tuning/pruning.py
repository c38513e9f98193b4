"""Select the configurations to measure: `prune_configs_by` of an autotuner, and reproducible kernels.

    configs = [Config({"BLOCK": 64}, num_warps=2), Config({"BLOCK": 64}, num_warps=8), Config({"BLOCK": 256})]

A reproducible kernel is tuned among configurations that compute the same bits. Warps, stages and registers may
differ. The kernel's own parameters may not: a block of another size is reduced by another tree. The first
configuration decides them: the first two are tried here, and a warning gives the reason for the third.
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilework import knobs
from tilework.errors import AutotunerError
from tilework.runtime.tuning.config import Config

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
    """(what is left, best estimates first if there is a model; the reason for each of the others)."""
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
        count = max(1, int(len(configs) * count))
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
    asked = kwargs.get("reproducible")
    while asked is None and fn is not None:
        asked, fn = getattr(fn, "reproducible", None), getattr(fn, "fn", None)
    return bool(knobs.runtime.reproducible if asked is None else asked)


def like_first(name: str, configs: Sequence[Config]) -> tuple[list[Config], dict[Config, str]]:
    """The configurations that compute what the first one computes, and what is different in each of the others."""
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
