"""The tuning key of a launch as JSON: its family, which one decision tree answers, and its sizes.

    launch = TunedLaunch.of(matmul, {"M": 4096, "N": 512, "CAUSAL": True, "x": x}, reproducible=False)
    launch.key         [4096, 512, True, "fp16"]
    launch.shape       {"M": 4096, "N": 512}
    launch.family      {"sizes": ["M", "N"], "others": {"tuning CAUSAL": True, "dtype x": "fp16"}, ...}

Sizes are the numbers in the tuning key. Launches are of one family if everything else in their keys is equal.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tilework.runtime.recording.constants_json import constant_to_json
from tilework.runtime.tuning.config import argument_key

PARAMETER = "tuning "  # of the names in `key_names`: an entry that `key=` asks for


class TunedLaunch(NamedTuple):
    """See the module; `key` does not contain the device."""

    key: list[Any]
    shape: dict[str, int | float]
    family: dict[str, Any]

    @classmethod
    def of(cls, tuner: Any, given: Mapping[str, object], reproducible: bool) -> "TunedLaunch":
        """The key of a launch with these arguments; `Unwritable` if it contains an object of this process."""
        key = [constant_to_json(value) for value in argument_key(tuner.keys, tuner.arg_names, given)]
        shape: dict[str, int | float] = {}
        others: dict[str, Any] = {}
        for name, value in zip(tuner.key_names(given), key, strict=True):
            if name.startswith(PARAMETER) and type(value) in (int, float):
                shape[name.removeprefix(PARAMETER)] = value
            else:
                others[name] = value
        return cls(key, shape, {"sizes": list(shape), "others": others, "reproducible": reproducible})
