"""Tuning of reproducible kernels: only among configurations that cannot change the bits.

    configs = [Config({"BLOCK": 64}, num_warps=2), Config({"BLOCK": 64}, num_warps=8), Config({"BLOCK": 256})]

Warps, stages and registers are free. Values of the kernel's own parameters are not: a block of another size is reduced by another
tree. So the first configuration decides these, here the first two are tried, and a warning says why the third one is not.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tilework import knobs
from tilework.runtime.tuning.config import Config

FREE = frozenset(
    "num_warps num_stages num_ctas maxnreg waves_per_eu matrix_instr_nonkdim kpack schedule_hint pre_hook".split()
)


class FixedByFirst(UserWarning):
    """Configurations of a reproducible kernel that are not tried."""


def is_reproducible(fn: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether a launch of a kernel, which may be wrapped, promises the same bits everywhere."""
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
            f"{name} is reproducible: {len(reasons)} of its {len(configs)} configurations are not tried, since they may change the"
            f" bits ({text}). Put the one whose values you want first; the others may differ in num_warps, num_stages,"
            " num_ctas and maxnreg",
            FixedByFirst,
            stacklevel=5,
        )
    return left, reasons


def fixed(config: Config) -> dict[str, Any]:
    """What of a configuration decides what is computed."""
    return {name: value for name, value in config.all_kwargs().items() if name not in FREE}
