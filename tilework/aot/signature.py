"""What a kernel is compiled for: the entries of a signature, and the names in C that follow from them.

>>> entries = parse_signature(add, "*fp32:16, *fp32:16, i32:1, 128")
>>> Names.of("add", entries, num_warps=4, num_stages=3).function
'add_2c8f7d51_0d1d2c3'

An entry is a type (``*fp32``, ``i32``), with ``:16`` for a multiple of 16 or ``:1`` for the number 1, or the value of a compile-time
parameter: a number, as in Triton, or also ``True``, ``None``, ``"text"`` and a type for a parameter that is a `tl.constexpr`. Who does not
compile ahead of time can also say ``:S`` (``:16S``), an array of less than 2 GiB.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tilework.compiler import ASTSource
from tilework.language import core as tl
from tilework.language.function import JITFunction, ascii_symbol
from tilework.runtime.devices import driver
from tilework.runtime.launch.python.specialize import parse_attr

POINTER = "CUdeviceptr"
C_TYPES = driver.C_TYPES | {"fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "f32": "float"}  # not widened
TAKEN = frozenset(  # what a parameter in C cannot be called: keywords of C and C++, and names in the generated functions
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue default"
    " delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable"
    " namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict"
    " return short signed sizeof static static_assert static_cast struct switch template this throw true try typedef typeid"
    " typename union unsigned using virtual void volatile wchar_t while xor xor_eq"
    " stream args gX gY gZ global_scratch profile_scratch algo_id NULL".split()
)
SPELLED = {"-": "m", ".": "p", "+": ""}


@dataclass(frozen=True)
class Entry:
    """One parameter: its entry in the signature, and what that means. Constants have a `value`; so have those that are 1."""

    name: str
    text: str
    type: str
    value: Any = None
    hint: int | None = None
    is_small: bool = False

    @property
    def is_constant(self) -> bool:
        return self.type == "constexpr" or self.hint == 1

    @property
    def c_name(self) -> str:
        return f"{self.name}_" if self.name in TAKEN else ascii_symbol(self.name)

    @property
    def c_type(self) -> str:
        if self.type.startswith("*"):
            return POINTER
        if self.type.startswith("tensordesc"):
            raise ValueError(
                f"{self.name}: a C function cannot take a descriptor; pass a pointer, sizes and strides, and call"
                " tl.make_tensor_descriptor in the kernel"
            )
        if self.type not in C_TYPES:
            raise ValueError(f"{self.name}: {self.text!r} is not a type that a C function can take")
        return C_TYPES[self.type]


@dataclass(frozen=True)
class Names:
    """The names of a compiled kernel: ``add_43432d39_0d1d23c4`` and what it is made of."""

    base: str
    digest: str
    suffix: str
    algorithm: str
    settings: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        return f"{self.base}_{self.digest}_{self.suffix}"

    def file(self, base: Path, extension: str) -> Path:
        return base.with_suffix(f".{self.digest}_{self.suffix}{extension}")

    def words(self, entries: "Sequence[Entry]") -> dict[str, str]:
        """What headers have of it: the function, its parameters, and what the linker is told."""
        return {
            "name": self.function,
            "parameters": "".join(f", {entry.c_type} {entry.c_name}" for entry in passed(entries)),
            "full": ", ".join(f"{entry.c_type} {entry.c_name}" for entry in linked(entries)),
            "algorithm": self.algorithm,
            "hints": ",".join(str(entry.hint or 0) for entry in linked(entries)),
        }

    @classmethod
    def of(cls, base: str, entries: Sequence[Entry], num_warps: int, num_stages: int) -> "Names":
        meta = f"warps{num_warps}xstages{num_stages}"
        digest = hashlib.sha256(" ".join([*(entry.text for entry in entries), meta]).encode()).hexdigest()[:8]
        letters = {1: "c", 16: "d"}
        suffix = "".join(f"{index}{letters.get(entry.hint or 0, '')}" for index, entry in enumerate(entries))
        constants = [
            *(str(entry.value) for entry in values_of(entries)),
            *("1" for entry in entries if entry.hint == 1),
        ]
        settings = (f"num_warps={num_warps}", f"num_stages={num_stages}")
        return cls(base, digest, suffix, f"{identifier('x'.join(constants))}_{meta}", settings)


def identifier(text: str) -> str:
    """As part of a name in C: ``0.5x-1`` is ``0p5xm1``."""
    return re.sub(r"\W", lambda found: SPELLED.get(found[0], "_"), text)


def values_of(entries: Sequence[Entry]) -> list[Entry]:
    """The parameters whose values are given."""
    return [entry for entry in entries if entry.type == "constexpr"]


def passed(entries: Sequence[Entry]) -> list[Entry]:
    """The parameters of the C function."""
    return [entry for entry in entries if not entry.is_constant]


def linked(entries: Sequence[Entry]) -> list[Entry]:
    """The parameters of the function that chooses among several: those that are 1 here need not be elsewhere."""
    return [entry for entry in entries if entry.type != "constexpr"]


def parse_signature(kernel: JITFunction, text: str, hints: Sequence[str] = ("1", "16")) -> list[Entry]:
    """An entry for each parameter; those that are left out at the end take their defaults."""
    texts = split_entries(text)
    left = kernel.params[len(texts) :]
    missing = [param.name for param in left if not param.has_default]
    if len(texts) > len(kernel.params) or missing:
        more = f", and no entry for {', '.join(missing)}" if missing else ""
        example = "" if texts else ': it is like "*fp32:16, i32, 1024"'
        raise ValueError(
            f"{kernel.__name__} has the parameters {', '.join(kernel.arg_names)}; the signature has {len(texts)} entries{more}{example}"
        )
    entries = [parse_entry(param, part, hints) for param, part in zip(kernel.params, texts, strict=False)]
    return entries + [Entry(param.name, repr(param.default), "constexpr", param.default) for param in left]


def split_entries(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    commas = [position for position, char, depth in unquoted(text) if char == "," and depth == 0]
    entries = [text[start + 1 : end].strip() for start, end in pairwise([-1, *commas, len(text)])]
    return entries if entries[-1] else entries[:-1]


def unquoted(text: str) -> Iterator[tuple[int, str, int]]:
    """(position, character, brackets that are open behind it) of all that is not in quotes."""
    depth, quote = 0, ""
    for position, char in enumerate(text):
        if char in "\"'" and quote in ("", char) and text[position - 1 : position] != "\\":
            quote = "" if quote else char
        elif not quote:
            depth += (char in "<[({") - (char in ">])}")
            yield position, char, depth


def parse_entry(param: Any, text: str, hints: Sequence[str]) -> Entry:
    found = re.fullmatch(r"(.*):\s*(\d+S?|S)\s*", text)
    code, hint = (found[1].strip(), found[2]) if found is not None else (text, "")
    if param.is_constexpr or type_of(code) is None:
        return Entry(param.name, text, "constexpr", constant_of(param, text))
    assert not hint or hint in hints, f"Only {' and '.join(hints)} are valid hints, got {hint}"
    number = int(hint.removesuffix("S") or 0) or None
    return Entry(param.name, text, code, 1 if number == 1 else None, number, hint.endswith("S"))


def type_of(code: str) -> Any:
    """``*fp32``, ``i32``, ``tensordesc<...>`` as a type; None for anything else."""
    try:
        return tl.str_to_ty(code, None)
    except (KeyError, ValueError, AssertionError, TypeError, AttributeError, IndexError):
        return None


def constant_of(param: Any, text: str) -> Any:
    """A Python literal, ``nan`` or ``inf``, or the name of a type."""
    for read in (ast.literal_eval, float):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    if (found := type_of(text)) is not None:
        return found
    if param.is_constexpr:
        raise ValueError(f"{param.name} is a compile-time parameter, and {text!r} is not a value for it")
    raise ValueError(f"{param.name}: {text!r} is neither a type nor a constant")


def called_with(entries: Sequence[Entry]) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
    """Types, constants and facts."""
    signature = {entry.name: "constexpr" if entry.is_constant else entry.type for entry in entries}
    constants = {entry.name: entry.value for entry in entries if entry.is_constant}
    keys = [("D" if entry.hint == 16 else "") + ("S" if entry.is_small else "") for entry in entries]
    return signature, constants, {(index,): parse_attr(key) for index, key in enumerate(keys) if key}


def source_of(kernel: JITFunction, entries: Sequence[Entry]) -> ASTSource:
    """The kernel with the types and facts of a signature."""
    return ASTSource(kernel, *called_with(entries))
