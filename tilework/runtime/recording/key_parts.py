"""What decides which code a launch needs, part by part: a specialisation as a value that can be compared and stored.

    parts = parts_of(kernel.src, kernel.metadata, ...)
    parts.arguments["n"]        Argument(type="i32", facts="D", constant=None)          a multiple of 16
    parts.others["option num_warps"], parts.others["source"]        "4", "5e1f..."

The key of the cache is a hash of all of them; two hashes say that something differs, two of these say what
(`key_differences.py`). The parts of a compilation are stored with its products, so that another process can compare too.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tilework.runtime.recording.source_parts import shortened, source_parts
from tilework.targets.options import CompileOptions


@dataclass(frozen=True)
class Argument:
    """What the code knows of one argument: its type, the facts about its value, or the value itself.

    `declared` if the parameter is a `tl.constexpr`; others are constants when they are 1 or None.
    """

    type: str
    facts: str = ""
    constant: str | None = None
    declared: bool = False


@dataclass(frozen=True)
class KeyParts:
    """See the module. `values` are the arguments as they were given, for people: the code does not depend on them."""

    kernel: str
    arguments: Mapping[str, Argument]
    others: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "KeyParts":
        """The inverse of `to_json`."""
        arguments = {name: Argument(**argument) for name, argument in data["arguments"].items()}
        return cls(data["kernel"], arguments, data["others"], data.get("values", {}))

    def text(self) -> str:
        """``add(x: *fp32:16, n: i32, BLOCK=256, num_warps=8)``, for people."""
        shown = [argument_text(name, argument) for name, argument in self.arguments.items()]
        return f"{self.kernel.rpartition('.')[2]}({', '.join(shown)})"


def argument_text(name: str, argument: Argument) -> str:
    """``n: i32:16``: types and facts as `tilework compile --signature` takes them."""
    if argument.constant is not None:
        return f"{name}={argument.constant}"
    return f"{name}: {argument.type}{':16' if 'D' in argument.facts else ''}"


def parts_of(
    source: Any, target: Any, backend: Any, options: CompileOptions, environment: Mapping[str, str]
) -> KeyParts | None:
    """All parts of a compilation; None for what comes from a file of IR."""
    if not hasattr(source, "fn"):
        return None
    return stored_parts(source_parts(source, backend), {**asdict(options), **environment, "target": str(target)})


def stored_parts(own: Mapping[str, Any], metadata: Mapping[str, Any]) -> KeyParts:
    """The parts of a compilation from what is stored with its products."""
    target = metadata["target"]
    name = target if isinstance(target, str) else f"{target['backend']}:{target['arch']}"
    others = {"target": name.removesuffix(":host"), **own["others"]}
    for option in fields(CompileOptions):
        value = metadata.get(option.name)
        others[f"option {option.name}"] = shortened(repr(tuple(value) if isinstance(value, list) else value))
    others |= {f"environment {key}": str(text) for key, text in metadata.items() if key.isupper()}
    return KeyParts.from_json({**own, "others": others})
