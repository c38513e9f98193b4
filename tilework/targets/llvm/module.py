"""Modules, functions and blocks: where the lines of LLVM text go, and everything around them.

    module = Module("add")
    function = module.function("add", i32, [(i32, "a"), (i32, "b")])
    b = Builder(function)
    b.ret(b.add(*function.args))
    module.text()       # a module that `llvmlite.binding.parse_assembly` reads

Attribute groups, metadata, declarations and string constants are interned by their text and numbered in the order of
first use, so equal programs give equal text.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tilework.targets.llvm.types import Type, array, i8, pointer, struct
from tilework.targets.llvm.values import Value, constant


class Block:
    """A basic block: a name and its lines. `terminated` once it ends in a branch, return or unreachable."""

    __slots__ = ("known", "lines", "name", "placed", "terminated")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.terminated = False
        self.placed = False
        self.known: dict[str, Value] | None = None


class Function:
    """A function being written. `args` are its parameters; blocks appear in the order in which they were entered."""

    def __init__(
        self, module: "Module", name: str, result: Type, params: Sequence[tuple[Type, str]], header: str
    ) -> None:
        self.module, self.name, self.result, self.header = module, name, result, header
        self.args = tuple(Value(type, f"%{text}") for type, text in params)
        self.blocks: list[Block] = []
        self.values: list[Value] = []  # in the order in which they were numbered
        self.effects = set[str]()  # values of instructions that read memory or have effects, by name
        self.taken: dict[str, int] = {text: 1 for _, text in params}
        self.subprogram: str | None = None
        self.entry = self.block("entry")

    def block(self, name: str) -> Block:
        """A new block with a name of its own, not placed yet: ``body``, then ``body.1``."""
        used = self.taken.get(name, 0)
        self.taken[name] = used + 1
        return Block(f"{name}.{used}" if used else name)

    def text(self) -> str:
        debug = f" !dbg {self.subprogram}" if self.subprogram else ""
        parts = [f"{self.header}{debug} {{"]
        for block in self.blocks:
            assert block.terminated, f"block {block.name} of @{self.name} does not end in a branch or return"
            parts.append(f"{block.name}:")
            parts.extend(block.lines)
        parts.append("}")
        return "\n".join(parts)


class Module:
    """A module of LLVM text."""

    def __init__(self, name: str = "tilework", data_layout: str = "") -> None:
        self.name, self.data_layout = name, data_layout
        self.functions: dict[str, Function] = {}
        self.declared: dict[str, str] = {}
        self.named_types: dict[str, Type] = {}
        self.globals: dict[str, str] = {}
        self.strings: dict[bytes, Value] = {}
        self.attributes: dict[str, str] = {}
        self.nodes: dict[str, str] = {}
        self.lists: dict[str, dict[str, str]] = {}  # named metadata: nodes by their keys
        self.node_lines: list[str] = []
        self.scales = False  # vectors times powers of two are one instruction (`Builder.scaled`)
        self.approximations: Mapping[str, Callable[..., Any]] = {}  # instructions of f32, by what they approximate
        self.exact = False  # only results that are the same on every machine
        self.load_notes: dict[Type, str] = {}  # metadata of loads, by the type of the address

    def function(
        self,
        name: str,
        result: Type,
        params: Sequence[tuple[Type, str]],
        *,
        linkage: str = "",
        attributes: Iterable[str] = (),
        param_attributes: dict[int, str] | None = None,
        convention: str = "",
    ) -> Function:
        """Start a definition. `linkage` is internal, private ...; `convention` is ptx_kernel, fastcc ..."""
        assert name not in self.functions, f"@{name} is defined twice"
        extra = param_attributes or {}
        listed = ", ".join(
            f"{type.text} {extra[position] + ' ' if position in extra else ''}%{text}"
            for position, (type, text) in enumerate(params)
        )
        parts = [part for part in ("define", linkage, convention, result.text) if part]
        header = f"{' '.join(parts)} @{name}({listed})"
        if group := " ".join(attributes):
            header += f" {self.attribute_group(group)}"
        made = self.functions[name] = Function(self, name, result, params, header)
        return made

    def declare(self, name: str, result: Type, params: Sequence[Type]) -> None:
        """Declare `@name` unless it is there already."""
        if name not in self.declared and name not in self.functions:
            self.declared[name] = f"declare {result.text} @{name}({', '.join([type.text for type in params])})"

    def attribute_group(self, attributes: str) -> str:
        """``#0`` for a list of attributes."""
        return self.attributes.setdefault(attributes, f"#{len(self.attributes)}")

    def named_struct(self, name: str, *fields: Type) -> Type:
        """A struct spelled ``%name`` wherever it is used."""
        if name not in self.named_types:
            made = Type("struct", f"%{name}", "", struct(*fields).bits)
            made.fields = fields
            self.named_types[name] = made
        return self.named_types[name]

    def wide_struct(self, fields: Sequence[Type]) -> Type:
        """A struct of many fields by name, which keeps the text short: ``%out_f32x64``."""
        runs = [(type.suffix, len(list(same))) for type, same in groupby(fields)]
        return self.named_struct("out_" + "_".join(f"{suffix}x{count}" for suffix, count in runs), *fields)

    def global_variable(
        self,
        name: str,
        type: Type,
        initial: str | None,
        *,
        linkage: str = "",
        constant: bool = False,
        align: int = 0,
        space: int = 0,
    ) -> Value:
        """``@name``; `initial` is LLVM text (None: defined elsewhere)."""
        if name not in self.globals:
            parts = [linkage or ("external" if initial is None else ""), f"addrspace({space})" if space else ""]
            parts += ["constant" if constant else "global", type.text, initial or ""]
            ending = f", align {align}" if align else ""
            self.globals[name] = f"@{name} = {' '.join(part for part in parts if part)}{ending}"
        return Value(pointer(space), f"@{name}")

    def table(self, name: str, element: Type, values: Sequence[Any], align: int = 0) -> Value:
        """A private constant array, for example of coefficients."""
        listed = ", ".join(constant(element, value).typed for value in values)
        type = array(element, len(values))
        return self.global_variable(name, type, f"[{listed}]", linkage="private", constant=True, align=align)

    def data(self, name: str, content: bytes | bytearray) -> Value:
        """A private constant of bytes, aligned as caches are."""
        spelled = "".join(f"\\{byte:02X}" for byte in content)
        type = array(i8, len(content))
        return self.global_variable(name, type, f'c"{spelled}"', linkage="private", constant=True, align=64)

    def string(self, text: str | bytes) -> Value:
        """A zero-terminated private string; equal strings are shared."""
        data = (text.encode() if isinstance(text, str) else text) + b"\0"
        if data not in self.strings:
            name = f"str.{len(self.strings)}"
            type = array(i8, len(data))
            self.strings[data] = self.global_variable(
                name, type, f'c"{escaped(data)}"', linkage="private unnamed_addr", constant=True
            )
        return self.strings[data]

    def node(self, text: str) -> str:
        """A metadata node, ``!7``, for text such as ``!{i32 1}``; equal nodes are shared."""
        if text not in self.nodes:
            self.nodes[text] = f"!{len(self.node_lines)}"
            self.node_lines.append(f"{self.nodes[text]} = {text}")
        return self.nodes[text]

    def distinct_node(self, *operands: str) -> str:
        """A node equal to no other, its own first operand, as loops and alias scopes need."""
        name = f"!{len(self.node_lines)}"
        self.node_lines.append(f"{name} = distinct !{{{', '.join((name, *operands))}}}")
        return name

    def flag(self, name: str, value: int, behaviour: int = 2) -> None:
        """One entry of ``!llvm.module.flags``."""
        self.list_node("llvm.module.flags", name, f'!{{i32 {behaviour}, !"{name}", i32 {value}}}')

    def list_node(self, name: str, key: str, text: str) -> str:
        """An entry of the named metadata ``!name``, written the first time its key is given."""
        listed = self.lists.setdefault(name, {})
        if key not in listed:
            listed[key] = self.node(text)
        return listed[key]

    def text(self) -> str:
        parts = [f'source_filename = "{self.name}"']
        if self.data_layout:
            parts.append(f'target datalayout = "{self.data_layout}"')
        parts.extend(f"%{name} = type {struct(*type.fields).text}" for name, type in self.named_types.items())
        parts.extend(self.globals.values())
        parts.extend(function.text() for function in self.functions.values())
        parts.extend(line for name, line in self.declared.items() if name not in self.functions)
        parts.extend(f"attributes {name} = {{ {group} }}" for group, name in self.attributes.items())
        parts.extend(f"!{name} = !{{{', '.join(nodes.values())}}}" for name, nodes in self.lists.items())
        parts.extend(self.node_lines)
        return "\n".join(parts) + "\n"


def escaped(text: str | bytes) -> str:
    """Text as LLVM writes it between quotes."""
    if isinstance(text, str):
        if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
            return text
        text = text.encode()
    return "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text)


def plain_symbol(name: str) -> str:
    """A name that LLVM reads without quotes; names of functions contain the spelling of constants."""
    return re.sub(r"[^A-Za-z0-9_.]", lambda found: f"${ord(found[0]):x}", name)
