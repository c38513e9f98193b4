"""How metrics are called: ``flops (inc)`` is summed up the tree, ``cpu_time (ns)(exc)`` is not, ``name (pty)`` is a property.

>>> Metric.named("cpu_time (ns)(exc)")
Metric(name='cpu_time (ns)', kind='exc')
"""

from typing import NamedTuple

KINDS = ("inc", "exc", "pty")
Number = int | float


class Metric(NamedTuple):
    """The stored name, and how values of it go together."""

    name: str
    kind: str

    @classmethod
    def named(cls, text: str) -> "Metric":
        for kind in KINDS:
            if text.endswith(f"({kind})"):
                return cls(text.removesuffix(f"({kind})").rstrip(), kind)
        return cls(text, "inc")


def joined(name: str, kind: str, before: Number | str | None, value: Number | str) -> Number | str:
    """A metric of a node with one more value; a property is replaced."""
    if before is None or kind == "pty" or isinstance(value, str) or isinstance(before, str):
        return value
    if type(before) is not type(value):
        raise RuntimeError(
            f"Metric value type mismatch for {name}: it was {type(before).__name__} ({before}) and is {type(value).__name__}"
            f" ({value}) now"
        )
    return before + value


def checked(metrics: dict[str, Number]) -> dict[str, Number]:
    """Metrics of a user: names and numbers."""
    for name, value in metrics.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(name, str) or not (is_number or hasattr(value, "item")):
            raise TypeError(f"a metric is a name and a number, not {name!r}: {value!r}")
    return {name: value if isinstance(value, int | float) else value.item() for name, value in metrics.items()}
