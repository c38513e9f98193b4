"""What a choice of the autotuner depends on: values of arguments, dtypes, and the device."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.runtime.devices.active_driver import driver

NUMBERS = frozenset({type(None), bool, int, float})  # asking these for an attribute takes long, and there is none
DTYPE_TEXTS: dict[Any, str] = {}  # the text of a NumPy dtype takes longer than the rest of a launch


def dtype_text(dtype: Any) -> str:
    """The text of a dtype, computed once."""
    text = DTYPE_TEXTS[dtype] = str(dtype)
    return text


def argument_key(keys: Sequence[str], names: Sequence[str], given: Mapping[str, Any]) -> tuple[Any, ...]:
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
