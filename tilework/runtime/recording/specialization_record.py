"""One specialisation that a program needs, as a value that is the same on every machine and for every target.

    record = SpecializationRecord(specialization, backend)      from a launch
    record.key                                      a hash of everything below, the key of entries in bundles
    record.parts()                                  the same as `key_parts.py` compares it
    line = record.to_json()                         as TILEWORK_RECORD writes it; `specialization_from` is the inverse

A line names a kernel by module and qualified name, types as signatures have them, and constants as
`constants_json.py` writes them; the parts of a tuple are called ``pair[1]``. What the backend of a target adds to
the options of a launch is left out, because every target adds its own.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tilework.language.constant_text import PLAIN, Writer, has_twins, is_portable, portable_text
from tilework.language.function import JITFunction
from tilework.runtime.kernel_cache.key import arguments_of, cache_invalidating_env_vars, code_parts
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.launch.python.specialize import FACTS, leaves_of

VERSION = 1  # of the lines
NAMING_FILES = frozenset(("ir_override", "extern_libs"))
SMALL = "S"  # the fact that an array is small, which only some targets use

Path = tuple[int, ...]


class SpecializationRecord:
    """See the module. `types`, `facts` and `constants` are texts by leaf, which is what can be compared."""

    def __init__(
        self, specialization: Specialization, backend: Any, environment: Mapping[str, str] | None = None
    ) -> None:
        self.fn, self.specialization = specialization.fn, specialization
        self.source = specialization.fn.portable_key
        self.arguments = arguments = arguments_of(specialization, portable_text)
        self.types = {leaf: parts["type"] for leaf, parts in arguments.items()}
        self.facts = {leaf: parts["facts"] for leaf, parts in arguments.items()}
        constants = {leaf: parts["constant"] for leaf, parts in arguments.items()}
        self.constants = {leaf: text for leaf, text in constants.items() if text is not None}
        self.whole = whole_text(specialization.fn, specialization.constants)
        self.given = given_options(specialization, backend.launch_defaults())
        self.environment = cache_invalidating_env_vars() if environment is None else environment

    @property
    def options(self) -> dict[str, str]:
        given = self.given
        if not NAMING_FILES.isdisjoint(given):
            from tilework.targets.options import by_content  # lazily: few launches name files

            given = {name: by_content(name, value) for name, value in given.items()}
        return {name: portable_text(value) for name, value in given.items()}

    @property
    def name(self) -> str:
        """``module:qualname``; the module as it is imported."""
        from tilework.runtime.recording.constants_json import name_of  # lazily: what is served is not written

        return name_of(self.fn)

    @property
    def key(self) -> str:
        """The key of entries in bundles."""
        return self.key_with(self.facts)

    def key_with(self, facts: Mapping[str, str]) -> str:
        """Return the key of the specialisation with other facts about the arguments."""
        known = {leaf: flags for leaf, flags in facts.items() if flags}
        parts = [self.fn.__qualname__, self.source, self.types, known, self.constants, self.options, self.environment]
        parts += [self.whole] if self.whole else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]

    def usable_keys(self) -> Iterator[str]:
        """Yield the key, and the keys of more general code that can be used instead: for arrays of any size."""
        yield self.key
        if any(SMALL in flags for flags in self.facts.values()):
            yield self.key_with({leaf: flags.replace(SMALL, "") for leaf, flags in self.facts.items()})

    def parts(self) -> dict[str, Any]:
        """Return the parts of the key in the form that `KeyParts.from_json` takes."""
        return {
            "kernel": f"{self.fn.fn.__module__}.{self.fn.__qualname__}",
            "arguments": self.arguments,
            "others": {
                **code_parts(self.fn),
                **{f"option {name}": text for name, text in self.options.items()},
                **{f"environment {name}": text for name, text in self.environment.items()},
            },
        }

    @property
    def values(self) -> dict[str, str]:
        """The arguments of the launch, for people."""
        from tilework.runtime.recording.recorder import value_text  # lazily: what is served needs no texts

        return dict(zip(self.fn.arg_names, map(value_text, self.specialization.values), strict=False))

    def to_json(self) -> dict[str, Any]:
        """Return the record as a line; raise `Unwritable` if another process cannot have the same constants."""
        from tilework.runtime.recording.constants_json import Unwritable  # lazily: what is served is not written

        specialization = self.specialization
        paths = {path: leaf for leaf, path, _ in leaves_of(specialization.signature, self.fn.arg_names)}
        for leaf, text in (*self.constants.items(), *self.options.items()):
            if not is_portable(text):
                raise Unwritable(f"`{leaf}` is {text.partition('@')[0]}, which no other process can have")
        return {
            "record": "kernel",
            "version": VERSION,
            "kernel": self.name,
            "source": self.source,
            "signature": {name: written_as(name, type) for name, type in specialization.signature.items()},
            "constants": {
                paths[path]: written_as(paths[path], value) for path, value in specialization.constants.items()
            },
            "facts": {leaf: flags for leaf, flags in self.facts.items() if flags},
            "options": {name: written_as(name, value) for name, value in self.given.items()},
            "environment": dict(self.environment),
            "globals": {
                name.removeprefix("global "): text
                for name, text in code_parts(self.fn).items()
                if name.startswith("global ")
            },
            "values": self.values,
            "key": self.key,
        }  # fmt: skip


def whole_text(fn: JITFunction, constants: Mapping[Path, Any]) -> str:
    """The text of a kernel and its constants that says which of equal objects in it are the same; empty if no two are
    equal."""
    writer = Writer()
    values = fn, *(value for value in constants.values() if type(value) not in PLAIN)
    writer.items(values)
    return Writer(is_whole=True).items(values) if has_twins(writer.seen) else ""


def written_as(name: str, value: Any) -> Any:
    """Return an argument as JSON; `Unwritable` names an argument that has no form."""
    from tilework.runtime.recording.constants_json import (  # lazily: what is served is not written
        Unwritable,
        constant_to_json,
    )

    try:
        return constant_to_json(value)
    except Unwritable as error:
        raise Unwritable(f"`{name}` is {error}") from None


def specialization_from(line: Mapping[str, Any], fn: Any, backend: Any) -> Specialization:
    """The specialisation of a kernel that a line describes, with the options that the backend of a target adds."""
    from tilework.runtime.recording.constants_json import constant_from_json  # lazily: serving reads no lines

    indices = {name: index for index, name in enumerate(fn.arg_names)}

    def path(leaf: str) -> Path:
        name, *inside = leaf.split("[")
        return (indices[name], *(int(part.removesuffix("]")) for part in inside))

    dropped = "" if backend.specializes_small_arrays else SMALL
    facts = {
        path(leaf): [FACTS[flag] for flag in flags if flag not in dropped] for leaf, flags in line["facts"].items()
    }
    return Specialization(
        fn,
        {name: constant_from_json(type) for name, type in line["signature"].items()},
        {path(leaf): constant_from_json(value) for leaf, value in line["constants"].items()},
        {path: found for path, found in facts.items() if found},
        {**backend.launch_defaults(), **{name: constant_from_json(value) for name, value in line["options"].items()}},
        line["key"],
    )  # fmt: skip


def given_options(specialization: Specialization, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that are not set, and without what every launch on a target has."""
    return {
        name: value
        for name, value in sorted(specialization.options.items())
        if value is not None and not (name in defaults and defaults[name] == value)
    }


def is_kernel(value: Any) -> bool:
    """Return True for a compiled kernel, False for wrappers and interpreted functions."""
    return isinstance(value, JITFunction) and hasattr(value, "device_caches")
