"""The parts of a cache key: what decides which code a launch needs, and the differences of two keys as sentences.

    parts = parts_of(kernel.src, kernel.metadata, ...)
    parts.arguments["n"]        Argument(type="i32", facts="D", constant=None)          a multiple of 16
    parts.others["option num_warps"], parts.others["source"]        "4", "5e1f..."
    found = compared(new, earlier)                    the nearest of the earlier ones, and what differs from it
    found.differences[0].message                      "`n` = 1000 is not a multiple of 16, and 1024 was"
    found.differences[0].help                         "@jit(do_not_specialize=['n']) makes one kernel ..."

The key of the cache is a hash of all parts; two hashes show that something differs, two `KeyParts` show what. The parts
of a compilation are stored with its files, so that another process can compare too. Every kind of difference is a
row of a table, which `tilework explain` and the errors of launches that no bundle serves share.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tilework.runtime.kernel_cache.key import shortened, source_parts
from tilework.targets.options import CompileOptions


@dataclass(frozen=True)
class Argument:
    """The specialisation of one argument: its type, the facts about its value, or the value itself.

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

    def text(self, with_options: bool = False) -> str:
        """``add(x: *fp32:16, n: i32, BLOCK=256)``, for people; with options ``add(..., BLOCK=256, num_warps=8)``."""
        shown = [argument_text(name, argument) for name, argument in self.arguments.items()]
        for key, text in self.others.items() if with_options else ():
            if key.startswith(("option ", "environment ")) and (key, text) not in USUAL:
                shown.append(f"{key.partition(' ')[2]}={text}")
        return f"{self.kernel.rpartition('.')[2]}({', '.join(shown)})"


USUAL = (("option debug", "False"), ("option instrumentation_mode", "''"))  # of nearly every launch


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
    """The parts of a compilation from its stored metadata."""
    target = metadata["target"]
    name = target if isinstance(target, str) else f"{target['backend']}:{target['arch']}"
    others = {"target": name.removesuffix(":host"), **own["others"]}
    for option in fields(CompileOptions):
        value = metadata.get(option.name)
        if option.name == "extern_libs":  # where they are says nothing
            value = [[name, os.path.basename(path)] for name, path in value or ()]
        others[f"option {option.name}"] = shortened(repr(tuple(value) if isinstance(value, list) else value))
    others |= {f"environment {key}": str(text) for key, text in metadata.items() if key.isupper()}
    return KeyParts.from_json({**own, "others": others})


ONE_KERNEL = "makes one kernel for all values, which knows less about this one"
NONE = Argument("")


@dataclass(frozen=True)
class Difference:
    """One part of the key that differs from an earlier key."""

    part: str
    name: str
    before: str
    after: str
    message: str
    help: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """The key of a launch, the nearest of the earlier ones, and their differences; `nearest` is None if there was
    none."""

    new: KeyParts
    nearest: KeyParts | None
    differences: tuple[Difference, ...] = ()

    def message(self) -> str:
        """Return the differences as one sentence."""
        if self.nearest is None:
            return f"there is no other specialisation of {self.new.kernel}"
        if not self.differences:
            return "all parts of the key are the same"
        return "; ".join(difference.message for difference in self.differences)


def compared(new: KeyParts, earlier: Sequence[KeyParts]) -> Comparison:
    """`new` against the nearest of the earlier specialisations, of equally near ones the latest."""
    if not earlier:
        return Comparison(new, None)
    nearest = min(reversed(earlier), key=lambda old: distance(old, new))
    return Comparison(new, nearest, differences(nearest, new))


def distance(old: KeyParts, new: KeyParts) -> float:
    """The weighted count of differences."""
    changed = sum(argument_distance(old.arguments.get(name), argument) for name, argument in new.arguments.items())
    others = [key for key, text in new.others.items() if old.others.get(key) != text]
    missing = len(old.arguments.keys() - new.arguments.keys()) + len(old.others.keys() - new.others.keys())
    return changed + missing + sum(WEIGHTS.get(key.partition(" ")[0], 1.0) for key in others)


def argument_distance(before: Argument | None, after: Argument) -> float:
    """Return 0 for equal arguments, `FACTS` if only their facts (alignment, for example) differ, else 1."""
    if before == after:
        return 0.0
    is_near = before is not None and before == replace(after, facts=before.facts)
    return FACTS if is_near else 1.0


FACTS = 0.75
WEIGHTS = {"package": 2.5, "tools": 2.5, "target": 2.5, "source": 1.5}


def differences(old: KeyParts, new: KeyParts) -> tuple[Difference, ...]:
    """Return the differences, arguments first."""
    found: list[Difference] = []
    for name in dict.fromkeys((*new.arguments, *old.arguments)):
        before, after = old.arguments.get(name, NONE), new.arguments.get(name, NONE)
        if before != after:
            found.append(argument_difference(name, before, after, old.values.get(name), new.values.get(name)))
    for key in dict.fromkeys((*new.others, *old.others)):
        before, after = old.others.get(key), new.others.get(key)
        if before != after:
            group, _, name = key.partition(" ")
            found.append(PARTS[group](name, before, after))
    return tuple(found)


# ---- arguments


def argument_difference(name: str, before: Argument, after: Argument, was: str | None, now: str | None) -> Difference:
    """Return the difference between the specialisations of one argument."""

    def made(part: str, message: str, help: str = "") -> Difference:
        return Difference(part, name, argument_key(before), argument_key(after), message, help)

    is_now = f"`{name}` = {now}" if now is not None else f"`{name}`"
    was_then = was if was is not None and was != now else "it"
    if NONE in (before, after):
        return made("parameter", f"`{name}` is {'no parameter any more' if after is NONE else 'a new parameter'}")
    if after.declared and before.constant != after.constant:
        message = f"the constant `{name}` is {after.constant}, not {before.constant}"
        return made("constant", message, CONSTANT_HELP.format(name=name))
    if (one := next((side for side in (before, after) if side.constant not in (None, "None")), None)) is not None:
        message = (
            f"`{name}` is {one.constant}, which the code takes as a constant; before it was {described(before, was)}"
            if one is after
            else f"{is_now} is not {one.constant}, which was a constant of the code"
        )
        return made(f"value {one.constant}", message, f"@jit(do_not_specialize=[{name!r}]) {ONE_KERNEL}")
    if before.constant != after.constant:
        return made("None", f"`{name}` is {described(after, now)}, not {described(before, was)}")
    if before.type != after.type:
        return made(*type_message(name, before.type, after.type, is_now))
    return made(*fact_message(name, before, after, is_now, was_then))


CONSTANT_HELP = (
    "every value of a tl.constexpr is code of its own: pass `{name}` as an ordinary argument if the code need not"
    " know it, or round it to few values (tilework.next_power_of_2)"
)


def argument_key(argument: Argument) -> str:
    """``i32:D``, ``constexpr=256``: a part of the key as a text."""
    return (
        f"{argument.type}={argument.constant}" if argument.constant is not None else f"{argument.type}:{argument.facts}"
    )


def described(argument: Argument, value: str | None) -> str:
    """``an i32 (1000)``."""
    if argument.constant is not None:
        return argument.constant
    if argument.type.startswith("*"):
        return f"a pointer to {argument.type.lstrip('*').removeprefix('k')}"
    return f"any {argument.type}" + (f" ({value})" if value is not None else "")


def type_message(name: str, before: str, after: str, is_now: str) -> tuple[str, ...]:
    if before.startswith("*") and after.startswith("*"):
        return "dtype", f"`{name}` points to {after[1:]}, not to {before[1:]}", DTYPE_HELP
    if before[:1] in "iu" and after[:1] in "iu" and before[1:].isdecimal() and after[1:].isdecimal():
        help = f"annotate it, `{name}: tl.int64`, and there is one kernel for both"
        return "width", f"{is_now} is an {after}, not an {before}", help
    return "dtype", f"{is_now} is {after}, not {before}"


DTYPE_HELP = "another dtype always needs other code: convert the array, if it was not meant to differ"


def fact_message(name: str, before: Argument, after: Argument, is_now: str, was_then: str) -> tuple[str, ...]:
    changed = set(before.facts) ^ set(after.facts)
    is_pointer = after.type.startswith("*")
    if changed == {"S"}:
        holds = "has less than 2 GiB" if "S" in after.facts else "has 2 GiB or more"
        return (
            "size",
            f"`{name}` {holds}, and before it was the other way round",
            "arrays on both sides of 2 GiB need a kernel each",
        )
    holds, one = "D" in after.facts, f"@jit(do_not_specialize_on_alignment=[{name!r}]) {ONE_KERNEL}"
    if is_pointer:
        is_multiple, was_not = ("a", " not") if holds else ("not a", "")
        message = f"the address of `{name}` is {is_multiple} multiple of 16 bytes, and before it was{was_not}"
        better = "slice at multiples of 16 bytes, copy what is not aligned, or "
        return "divisibility by 16", message, one if holds else better + one
    message = f"{is_now} is {'a' if holds else 'not a'} multiple of 16, and {was_then} was{' not' if holds else ''}"
    return (
        "divisibility by 16",
        message,
        one if holds else f"pad it to a multiple of 16, which is faster code, too; or {one}",
    )


# ---- everything else: a row for each group of parts


def plain(part: str, message: str, help: str = "") -> Callable[[str, str | None, str | None], Difference]:
    def row(name: str, before: str | None, after: str | None) -> Difference:
        old, new = ("not set" if text is None else text for text in (before, after))
        text = message.format(name=name, before=old, after=new).replace(", not not set", ", and was not set")
        return Difference(part, name, old, new, text, help.format(name=name))

    return row


OPTION = plain("option", "the option {name} is {after}, not {before}", "give it the same value in every launch")
OVERLAP = plain(
    "option",
    "its arguments overlap ({name} is {after}), so that it loads and stores in program order",
    "pass arrays of their own, if speed matters",
)
PARTS: dict[str, Callable[[str, str | None, str | None], Difference]] = {
    "option": lambda name, before, after: (OVERLAP if name == "may_alias" else OPTION)(name, before, after),
    "environment": plain(
        "environment",
        "the variable {name} is {after}, not {before}: it changes what is compiled",
        "set it to the same value in every process, and before the first launch",
    ),
    "source": plain("source", "the text of the kernel has changed"),
    "function": plain("function", "the function `{name}`, which it calls, has changed"),
    "global": plain("global", "the global {name} is {after}, not"
                              " {before}", "pass {name} as an argument, if it changes often"),
    "target": plain("target", "it is compiled for {after}, not for {before}"),
    "tools": plain("tools", "the tools that make the code are others: {after}, not {before}"),
    "package": plain("package", "tilework is another version, or its own files have changed"),
    "tuning": plain(
        "tuning key", "`{name}`, which is in `key=`, is {after}, not"
                      " {before}", "leave {name} out of `key=`, or round it before the launch, if the best"
                                   " configuration does not depend on it"
    ),
    "dtype": plain("tuning key", "`{name}` is an array of {after}, not of {before}"),
    "device": plain("tuning key", "the device is {after}, not {before}"),
}  # fmt: skip
