"""The signature and the launch grid of a kernel that is compiled ahead of time, as texts.

>>> entries = parse_signature(add, "*fp32:16, *fp32:16, i32:1, 128")
>>> Names.of("add", entries, num_warps=4, num_stages=3).function
'add_2c8f7d51_0d1d2c'
>>> parse_grid("(n + BLOCK - 1) / BLOCK, 2, 1", {"BLOCK": 128})
['(n + (128) - 1) / (128)', '2', '1']
>>> parse_expression("n > 8 ? n / 4 : 1").names()
{'n'}

An entry is a type (``*fp32``, ``i32``), with ``:16`` for a multiple of 16 or ``:1`` for the value 1, or the value of a
compile-time parameter: an integer or a float, as in Triton, or also ``True``, ``None``, ``"text"`` and a type for a
parameter that is a `tl.constexpr`. `tilework compile` without `--aot` also takes ``:S`` (``:16S``), an array of less
than 2 GiB.

A grid is three C expressions over the arguments. For GPUs a C compiler reads them. For CPUs there is none:
`Expression.emit` writes the same arithmetic as LLVM instructions, in signed 64 bits, for C's operators on integers;
casts, calls and floats are refused.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tilework.language import core as tl
from tilework.language.function import JITFunction, ascii_symbol
from tilework.process.triton_version import follows
from tilework.runtime.devices import driver
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.launch.python.specialize import parse_attr

POINTER = "CUdeviceptr"
C_TYPES = driver.C_TYPES | {"fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "f32": "float"}  # not widened
TAKEN = frozenset(  # no names for parameters in C: keywords of C and C++, and names in the generated functions
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue"
    " default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline"
    " int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register"
    " reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct switch template"
    " this throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq"
    " stream args gX gY gZ global_scratch profile_scratch algo_id NULL".split()
)
SPELLED = {"-": "m", ".": "p", "+": ""}


@dataclass(frozen=True)
class Entry:
    """One parameter: its entry in the signature, and what that means. Constants have a `value`; so have those that are
    1."""

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
    """The names of a compiled kernel: ``add_43432d39_0d1d3c`` and its parts."""

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

    def header_fields(self, entries: "Sequence[Entry]") -> dict[str, str]:
        """The fields of a header: the function, its parameters, and the lines for the linker."""
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
        flags = {1: "c", 16: "d"}
        letters = [flags.get(entry.hint or 0, "") for entry in entries]
        listed = [index for index, letter in enumerate(letters) if letter or not follows("aot-files")]
        suffix = "".join(f"{index}{letters[index]}" for index in listed)
        constants = [
            *(str(entry.value) for entry in values_of(entries)),
            *("1" for entry in entries if entry.hint == 1),
        ]
        settings = (f"num_warps={num_warps}", f"num_stages={num_stages}")
        return cls(base, digest, suffix, f"{identifier('x'.join(constants))}_{meta}", settings)


def identifier(text: str) -> str:
    """Return a text as part of a name in C: ``0.5x-1`` becomes ``0p5xm1``."""
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
            f"{kernel.__name__} has the parameters {', '.join(kernel.arg_names)}; the signature has {len(texts)}"
            f" entries{more}{example}"
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
    factor = int(hint.removesuffix("S") or 0) or None
    return Entry(param.name, text, code, 1 if factor == 1 else None, factor, hint.endswith("S"))


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


def specialization_of(kernel: JITFunction, entries: Sequence[Entry], options: dict[str, Any]) -> Specialization:
    """The specialisation of a kernel that a signature and options describe."""
    signature, constants, attrs = called_with(entries)
    paths = {(index,): constants[name] for index, name in enumerate(signature) if name in constants}
    return Specialization(kernel, dict(signature), paths, dict(attrs), options)


TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|([A-Za-z_]\w*)|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:()]))"
)
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"))
LEVELS += (("+", "-"), ("*", "/", "%"))
COMPARED = {"==": "eq", "!=": "ne", "<": "slt", ">": "sgt", "<=": "sle", ">=": "sge"}
COMPUTED = {"+": "add", "-": "sub", "*": "mul", "|": "or_", "^": "xor", "&": "and_", "<<": "shl", ">>": "ashr"}
DIVIDED = {"/": "sdiv", "%": "srem"}


class GridError(ValueError):
    """A grid that cannot be used."""


def parse_grid(text: str, constants: Mapping[str, Any]) -> list[str]:
    """The three expressions, with the values of constants instead of their names."""
    parts = [part.strip() for part in text.split(",")]
    assert len(parts) == 3, f"the grid has three parts, separated by commas: got {text!r}"
    if "" in parts:
        raise GridError(f"grid {text!r}: a part is empty; write 1 for a dimension that is not used")
    return [re.sub(r"[A-Za-z_]\w*", lambda found: value_of(found[0], constants), part) for part in parts]


def value_of(name: str, constants: Mapping[str, Any]) -> str:
    return f"({constants[name]})" if name in constants else name


@dataclass(frozen=True)
class Expression:
    """A C expression as a tree: an operator and its operands, a name, or an integer."""

    text: str
    tree: Any

    def names(self) -> set[str]:
        return {leaf for leaf in leaves(self.tree) if isinstance(leaf, str)}

    def emit(self, b: Any, values: Mapping[str, Any], constant: Any) -> tuple[Any, Any]:
        """Emit with a builder of LLVM text: the value, and a flag for a division by 0; `constant` makes an i64."""
        return emit(self.tree, b, values, constant)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree[1:] for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def parse_expression(text: str) -> Expression:
    """Read an expression; a GridError says what is not understood."""
    tokens, at = [], 0
    while at < len(text.rstrip()):
        if (found := TOKEN.match(text, at)) is None:
            raise GridError(
                f"grid {text!r}: {text[at:].strip()!r} is not understood, only C's operators on integers are"
            )
        tokens.append(int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10) if found[1] else found[2] or found[3])
        at = found.end()
    reader = Reader(text, tokens)
    tree = reader.choice()
    if reader.at < len(tokens):
        raise reader.error()
    return Expression(text, tree)


class Reader:
    """Recursive descent over tokens, one level of precedence per row of LEVELS."""

    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    def error(self) -> GridError:
        found = repr(self.tokens[self.at]) if self.at < len(self.tokens) else "the end"
        return GridError(f"grid {self.text!r}: {found} is not expected here; only C's operators on integers are known")

    def next_is(self, *wanted: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, token: str) -> None:
        if self.next_is(token) is None:
            raise self.error()

    def choice(self) -> Any:
        condition = self.binary(0)
        if self.next_is("?") is None:
            return condition
        then = self.choice()
        self.need(":")
        return ("?", condition, then, self.choice())

    def binary(self, level: int) -> Any:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.next_is(*LEVELS[level])) is not None:
            left = (operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Any:
        if (operator := self.next_is("-", "+", "!", "~")) is not None:
            return ("unary" + operator, self.unary())
        if self.next_is("(") is not None:
            inside = self.choice()
            self.need(")")
            return inside
        if self.at == len(self.tokens) or (
            self.tokens[self.at] in ("?", ":", ")") or is_operator(self.tokens[self.at])
        ):
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1]


def is_operator(token: Any) -> bool:
    return isinstance(token, str) and not (token[0].isalpha() or token[0] == "_")


def emit(tree: Any, b: Any, values: Mapping[str, Any], constant: Any) -> tuple[Any, Any]:
    """See `Expression.emit`. A side that C would not evaluate is computed too, and what goes wrong there is
    forgotten."""
    never = b.icmp("ne", constant(0), constant(0))
    if isinstance(tree, int):
        return constant(tree), never
    if isinstance(tree, str):
        return values[tree], never

    def truth(value: Any) -> Any:
        return b.icmp("ne", value, constant(0))

    def as_integer(condition: Any) -> Any:
        return b.select(condition, constant(1), constant(0))

    operator, *parts = tree
    (first, wrong), *rest = [emit(part, b, values, constant) for part in parts]
    if operator == "?":
        (then, then_wrong), (other, other_wrong) = rest
        condition = truth(first)
        return b.select(condition, then, other), b.or_(wrong, b.select(condition, then_wrong, other_wrong))
    if operator.startswith("unary"):
        made = {
            "unary-": lambda: b.sub(constant(0), first),
            "unary+": lambda: first,
            "unary!": lambda: as_integer(b.icmp("eq", first, constant(0))),
            "unary~": lambda: b.xor(first, constant(-1)),
        }
        return made[operator](), wrong
    ((second, second_wrong),) = rest
    if operator in ("&&", "||"):
        decides = truth(first) if operator == "||" else b.not_(truth(first))
        value = b.select(decides, as_integer(truth(first)), as_integer(truth(second)))
        return value, b.or_(wrong, b.select(decides, never, second_wrong))
    wrong = b.or_(wrong, second_wrong)
    if operator in DIVIDED:
        is_zero = b.icmp("eq", second, constant(0))
        divisor = b.select(is_zero, constant(1), second)
        return getattr(b, DIVIDED[operator])(first, divisor), b.or_(wrong, is_zero)
    if operator in COMPARED:
        return as_integer(b.icmp(COMPARED[operator], first, second)), wrong
    return getattr(b, COMPUTED[operator])(first, second), wrong
