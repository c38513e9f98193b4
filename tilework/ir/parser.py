r"""Modules from text: the reference compiler's output, its older spellings, and text written by hand.

    >>> module = parse_module('tt.func @f() { tt.return } loc(#loc)\n#loc = loc("k.py":1:2)')
    >>> str(module.body.block.first_op.location)
    'loc("k.py":1:2)'

Built on xDSL's parser; these gaps between that and MLIR's text are closed here:

    aliases        may be used before they are defined, as locations are: definitions are found in a first pass over
                   the lines and parsed when first used
    hex floats     0x7FC00000 is a bit pattern where the type is a float, also inside `dense<...>`
    names          `%x_1` keeps its name, so that printing gives the same text
    locations      all forms, interned
    scopes         leaving a region forgets its names without copying those outside
    old spellings  text of older compilers (`legacy/`)

Any mistake in the text is an `IRSyntaxError` that shows the location.

The lexer finds the common tokens by one regular expression. Parsing needs the kind and the text of every token and the
position of few, so a `FastToken` stores the first two; `FastParser` overrides the methods of xDSL's parser that are
called for each token.

`snapshot_locations` gives a module locations in its own text, for debugging a compiler with the tools of its users:

    module = snapshot_locations(module, "/cache/KEY/add.ttir")      # loc("/cache/KEY/add.ttir":4:5)

Later stages, machine code and profiles then refer to lines of that file instead of lines of the kernel.
"""

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NoReturn, cast

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    Builtin,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FusedLoc,
    IndexType,
    IntegerType,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, PunctuationSpelling

from tilework.ir import cf, scf, ub
from tilework.ir.amdg import AMDG, ROCDL
from tilework.ir.arith import Arith
from tilework.ir.attr_text import LOCATIONS, float_from_bits
from tilework.ir.encodings import NAMES as ENCODINGS
from tilework.ir.encodings import encoding_attr, read_encoding
from tilework.ir.fields import SEGMENTS, fields_of
from tilework.ir.form_text import reader_of
from tilework.ir.legacy import spellings
from tilework.ir.legacy.ops import TRANSLATED_OPS, TRITON_GPU
from tilework.ir.legacy.shared_tensors import OLD_SPELLINGS, is_shared_tensor, translate_shared_tensors
from tilework.ir.legacy.spellings import modern_name
from tilework.ir.llvm import LLVM
from tilework.ir.locations import callsite_loc, file_loc, name_loc, read_loc, unknown
from tilework.ir.math import Math
from tilework.ir.printer import print_module
from tilework.ir.tt import TT
from tilework.ir.ttc import TTC
from tilework.ir.ttg import TTG
from tilework.ir.ttng import TTNG
from tilework.ir.types import bf16, f16, f32, f64, i1, i8, i16, i32, i64, index

# White space and comments, then an identifier, a decimal integer or a character of punctuation that starts nothing
# longer.
COMMON_TOKEN = re.compile(
    r"(?:\s++|//[^\n]*+)*+"
    r"([A-Za-z_][\w$.]*+|[%!^](?:[0-9]++|[A-Za-z$._-][\w$.-]*+)|#(?!-\})(?:[0-9]++|[A-Za-z$._-][\w$.-]*+)"
    r"|[:,()}\[\]<>=*?|+]|\{(?!-#)|[0-9]++(?![.x]))",
    re.ASCII,
)
BARE_IDENT = MLIRTokenKind.BARE_IDENT
TOKEN_KINDS = {
    **{kind.value: kind for kind in MLIRTokenKind if kind.value in set(":,(){}[]<>=*?|+")},
    **dict.fromkeys("0123456789", MLIRTokenKind.INTEGER_LIT),
    "%": MLIRTokenKind.PERCENT_IDENT,
    "!": MLIRTokenKind.EXCLAMATION_IDENT,
    "^": MLIRTokenKind.CARET_IDENT,
    "#": MLIRTokenKind.HASH_IDENT,
}


class FastToken:
    """A token of xDSL's in use; `span` is created on first use."""

    __slots__ = ("input", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, input: Input) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.input = input

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.text), self.input)


class IRLexer(MLIRLexer):
    """The common tokens by one regular expression; string literals in linear time, with any text that is UTF-8."""

    def lex(self) -> MLIRToken:
        match = COMMON_TOKEN.match(self.input.content, self.pos)
        if match is None:
            return super().lex()
        start, self.pos = match.span(1)
        text = match[1]
        kind = TOKEN_KINDS.get(text[0], BARE_IDENT)
        return FastToken(kind, text, start, self.input)  # pyright: ignore[reportReturnType]

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: int) -> MLIRToken:
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT and is_utf8(token.span.bytes_contents):  # pyright: ignore
            return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token


def is_utf8(data: bytes) -> bool:
    """Return True if `data` is text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class FastParser(Parser):
    """xDSL's parser; what it does for every token is done here at once."""

    @property
    def pos(self) -> int:
        state = self._parser_state
        return state.lexer.pos - len(state.current_token.text)

    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        state = self._parser_state
        token = state.current_token
        state.current_token = state.lexer.lex()
        return token

    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    def parse_optional_characters(self, text: str) -> str | None:
        state = self._parser_state
        if state.current_token.text != text:
            return None
        state.current_token = state.lexer.lex()
        return text

    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        return None if self.parse_optional_characters(punctuation) is None else punctuation

    def parse_punctuation(self, punctuation: PunctuationSpelling, context_msg: str = "") -> PunctuationSpelling:
        if self.parse_optional_characters(punctuation) is None:
            self.raise_error(f"Expected '{punctuation}'{context_msg}")
        return punctuation


DIALECTS = (Builtin, Arith, Math, scf.Scf, cf.Cf, ub.UB, LLVM, TT, TTC, TTG, TTNG, TRITON_GPU, AMDG, ROCDL)


@cache
def make_context() -> Context:
    """The shared context; callers must not load more into it."""
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    for op in TRANSLATED_OPS:
        context.load_op(op)
    return context


ALIAS_DEFINITION = re.compile(r"^[ \t]*([#!][A-Za-z_$.-][\w$.-]*)[ \t]*=", re.ASCII | re.MULTILINE)
NUMBERED = re.compile(r"[0-9]+")
# A type with parameters, nested up to five deep; a deeper one is parsed each time it is met.
TYPE_TEXT = re.compile(
    r"[A-Za-z_!][\w$.]*+<(?:[^<>]++|<(?:[^<>]++|<(?:[^<>]++|<(?:[^<>]++|<[^<>]*+>)*+>)*+>)*+>)*+>", re.ASCII
)
SCALARS: dict[str, TypeAttribute] = {str(type): type for type in (i1, i8, i16, i32, i64, bf16, f16, f32, f64, index)}
MAX_WIDTH = (1 << 24) - 1  # of an integer, as in MLIR
MAX_ELEMENTS = 1 << 24  # of a dense constant: beyond that the text is taken for a mistake


LONGEST_SHOWN = 200  # characters of a line on each side of a mistake


class IRSyntaxError(ValueError):
    """Text that is no IR: ``file:line:column: error: message``, with the line and a caret."""

    def __init__(self, message: str, text: str, position: int, filename: str) -> None:
        position = min(position, len(text))
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        first = max(start, position - LONGEST_SHOWN)
        source = text[first : min(end if end >= 0 else len(text), first + 2 * LONGEST_SHOWN)]
        self.message = message
        self.filename = filename
        self.line = text.count("\n", 0, position) + 1
        self.column = position - start + 1
        super().__init__(
            f"{filename}:{self.line}:{self.column}: error: {message}\n  {source}\n  {' ' * (position - first)}^"
        )


def parse_module(
    text: str, filename: str = "<string>", parser_type: "Callable[[str, str], IRParser] | None" = None
) -> ModuleOp:
    """The module written in `text`; several ops at the top are put into one. Raises `IRSyntaxError`."""
    parser = None
    try:
        parser = (parser_type or IRParser)(text, filename)
        return parser.parse_module()
    except ParseError as error:
        raise IRSyntaxError(error.msg.strip(), text, error.span.start, filename) from error
    except OverflowError as error:
        raise IRSyntaxError("a constant does not fit its type", text, parser.pos if parser else 0, filename) from error
    except RecursionError as error:
        raise IRSyntaxError("nested too deeply", text, parser.pos if parser else 0, filename) from error
    except Exception as error:  # xDSL's op classes report bad input with many kinds of exceptions
        message = str(error) or type(error).__name__
        raise IRSyntaxError(message, text, parser.pos if parser else 0, filename) from error


# How the names of Triton's operations begin that tilework does not have, and what they are for.
MISSING = {
    **dict.fromkeys(("amdg.async_tdm_", "amdg.tdm_"), "the tensor data mover (TDM) of gfx1250"),
    **dict.fromkeys(
        ("amdg.arrive_barrier", "amdg.async_copy_mbarrier_arrive", "amdg.init_barrier", "amdg.read_barrier_phase",
         "amdg.wait_barrier"), "barriers in shared memory of gfx1250",
    ),
    "amdg.cluster_barrier_": "clusters of gfx1250",
    **dict.fromkeys(("ttng.tc_gen5_", "ttng.tmem_"), "tensor memory and tcgen05 of sm_100"),
    "ttng.clc_": "cluster launch control of sm_100",
    "ttng.cluster_barrier": "a barrier of a cluster as one operation (Triton 3.8)",
    "ttng.packed_arith": "arithmetic on pairs of numbers, of sm_100",
    **dict.fromkeys(("ttg.local_atomic_scatter_rmw", "ttng.async_shared_store"), "Gluon, of Triton 3.8"),
    "nvws.": "the dialect of partitions before they are lowered",
}  # fmt: skip
VERBATIM = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[(\[{)\]}\n]')


class IRParser(FastParser):
    """xDSL's parser with the differences listed above."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(make_context(), "", filename)
        self._parser_state = ParserState(IRLexer(Input(text, filename)))
        self.source = text
        self._interned: dict[Attribute, Attribute] = {}
        self._types: dict[str, TypeAttribute] = dict(SCALARS)
        self._definitions: dict[str, int] = {}  # alias: where its value starts
        self._ends: dict[str, int] = {}  # alias: where its value ends, once parsed
        self._resolving: dict[str, None] = {}
        self._scopes: list[list[str]] = [[]]  # names defined in each open region
        self._regions: list[int] = [0]  # indices of the open regions
        self._region_count = 0
        self._starts: dict[Operation, int] = {}  # where each op is written
        self._early_uses: dict[str, tuple[Span, list[tuple[int, ...]]]] = {}
        for match in ALIAS_DEFINITION.finditer(text):
            if match[1] in self._definitions:
                self.raise_error(f"alias '{match[1]}' is defined twice", match.start(1))
            self._definitions[match[1]] = match.end()

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        ops: list[Operation] = []
        while (kind := self._current_token.kind) is not MLIRTokenKind.EOF:
            if kind in (MLIRTokenKind.HASH_IDENT, MLIRTokenKind.EXCLAMATION_IDENT):
                self._parse_alias_def()
            elif kind is MLIRTokenKind.FILE_METADATA_BEGIN:
                self._parse_file_metadata_dictionary()
            elif (op := self.parse_optional_operation()) is not None:
                ops.append(op)
            else:
                self.raise_error(f"an operation is expected here, not '{self._current_token.text}'")
        for name, (span, _) in self._early_uses.items():
            self.raise_error(f"value %{name} is used but not defined", span)
        module = ops[0] if len(ops) == 1 and isinstance(ops[0], ModuleOp) else ModuleOp(ops)
        if any(spelling in self.source for spelling in OLD_SPELLINGS) or any(map(is_shared_tensor, self._interned)):
            translate_shared_tensors(module, self._raise_at)
        return module

    def _raise_at(self, op: Operation, message: str) -> NoReturn:
        self.raise_error(message, self._starts[op])

    def _parse_external_resources(self) -> None:
        """``{mlir_reproducer: {pipeline: "builtin.module(cse)"}}``: what tools leave for each other says nothing
        here."""
        depth = 0
        while depth or self._current_token.kind is MLIRTokenKind.L_BRACE:
            kind = self._consume_token().kind
            if kind is MLIRTokenKind.EOF:
                self.raise_error("the section of resources is not closed")
            depth += (kind is MLIRTokenKind.L_BRACE) - (kind is MLIRTokenKind.R_BRACE)
            if not depth:
                return

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        """The generic form; older text has the properties among the attributes."""
        op = super()._parse_generic_operation(op_type)
        for key in (SEGMENTS, *(field.key for field in fields_of(op_type).properties.values())):
            if key in op.attributes:
                op.properties[key] = op.attributes.pop(key)
        return op

    # Aliases

    def _parse_alias_def(self) -> None:
        token = self._consume_token()
        name, value_start = token.text, self._current_token.span.end
        self.parse_punctuation("=", " after the name of an alias")
        # An alias that does not start its line was missed by the first pass.
        if self._definitions.setdefault(name, value_start) != value_start:
            self.raise_error(f"alias '{name}' is defined twice", token.span)
        self._alias(name)
        self._resume_from(self._ends[name])

    def _alias(self, name: str) -> Attribute:
        """The attribute called `name`, parsed where it is defined when it is met for the first time."""
        if (value := self.attribute_aliases.get(name)) is not None:
            return value
        if (start := self._definitions.get(name)) is None:
            self._alias_error(f"alias '{name}' is not defined", name)
        if name in self._resolving:
            chain = [*self._resolving][list(self._resolving).index(name) :]
            self._alias_error(f"alias '{name}' is defined by itself: {' -> '.join([*chain, name])}", name)
        position, token = self.lexer.pos, self._current_token
        self._resolving[name] = None
        self._resume_from(start)
        value = self.attribute_aliases[name] = self.parse_attribute()
        self._ends[name] = self.pos
        del self._resolving[name]
        self.lexer.pos, self._parser_state.current_token = position, token
        return value

    def _alias_error(self, message: str, name: str) -> NoReturn:
        """Raise an error at the use of the alias, the token before the current one."""
        self.raise_error(message, max(self.source.rfind(name, 0, self.pos), 0))

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        if "." not in attr_or_dialect_name and self._current_token.kind is not MLIRTokenKind.LESS:
            return self._alias(("!" if is_type else "#") + attr_or_dialect_name)
        name = modern_name(attr_or_dialect_name)
        if is_type:
            name = spellings.TYPES.get(name, name)
        elif attr_or_dialect_name == spellings.DOT_OPERAND:
            return spellings.read_dot_operand(self)
        elif (encoding := ENCODINGS.get(name)) is not None:
            return encoding_attr(read_encoding(encoding, self))
        return super()._parse_extended_type_or_attribute(name, is_type)

    # Attributes and types

    def parse_optional_type(self) -> TypeAttribute | None:
        """The same text is the same type: it is looked up by its text when it comes again."""
        token = self._current_token
        if token.kind is not MLIRTokenKind.BARE_IDENT and token.kind is not MLIRTokenKind.EXCLAMATION_IDENT:
            return super().parse_optional_type()
        start = self.pos
        match = TYPE_TEXT.match(self.source, start)
        text = token.text if match is None else match[0]
        if (known := self._types.get(text)) is not None:
            self._resume_from(start + len(text))
            return known
        type = super().parse_optional_type()
        if type is None:
            return None
        if isinstance(type, IntegerType) and type.width.data > MAX_WIDTH:
            self.raise_error(f"an integer has at most {MAX_WIDTH} bits, not {type.width.data}", token.span)
        type = spellings.sized(type) or type
        type = cast(TypeAttribute, self._interned.setdefault(type, type))  # pyright: ignore
        if not self.source[start + len(text) : self._current_token.span.start].strip():
            self._types[text] = type
        return type

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        name, value = super()._parse_attribute_entry()
        return modern_name(name), value

    def _parse_dense_literal_type(self) -> Any:
        position = self.pos
        type = self.parse_type()
        element = getattr(type, "element_type", None)
        if not isinstance(type, TensorType | VectorType) or not isinstance(element, IntegerType | IndexType | AnyFloat):
            self.raise_error("a dense constant is a tensor of integers or floats", position)
        if any(dim < 0 for dim in type.get_shape()):
            self.raise_error("a dense constant has a static shape", position)
        return type

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        self.parse_punctuation("<", " in dense attribute")
        raw = values = None
        shape: list[int] = [0]
        if self.parse_optional_punctuation(">") is None:
            if (raw := self.parse_optional_str_literal()) is None:
                values, shape = self._parse_tensor_literal()
            self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        expected = list(type.get_shape())
        if math.prod(expected) > MAX_ELEMENTS:
            self.raise_error(f"a dense constant of {math.prod(expected)} elements is too large")
        if raw is not None:
            return self._dense_from_hex(raw, type)
        if shape and shape != expected and (values or math.prod(expected)):
            self.raise_error(f"the elements have shape {shape}, their type has {expected}")
        elements = [self._dense_element(value, type.element_type) for value in values or ()]
        return DenseIntOrFPElementsAttr.from_list(type, elements)

    def _dense_element(self, literal: Any, type: Any) -> Any:
        if isinstance(type, AnyFloat) and literal.span.text[:2] == "0x":
            return float_from_bits(literal.value, type)
        return literal.to_type(self, type)

    def _dense_from_hex(self, text: str, type: Any) -> DenseIntOrFPElementsAttr:
        """``dense<"0x0000803F"> : tensor<4xf32>``: the bytes of all elements, or of the one that fills the tensor."""
        if text[:2] != "0x" or len(text) % 2 or re.fullmatch(r"[0-9a-fA-F]*", text[2:]) is None:
            self.raise_error("the data of a dense attribute is written 0x and an even number of hexadecimal digits")
        data, count, size = bytes.fromhex(text[2:]), math.prod(type.get_shape()), type.element_type.compile_time_size
        if len(data) == size:
            data *= count
        if len(data) != size * count:
            self.raise_error(f"{len(data)} bytes are given for {count} elements of {size} bytes")
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))

    def _parse_location(self) -> LocationAttr:
        if self.parse_optional_keyword("unknown"):
            return unknown
        if (text := self.parse_optional_str_literal()) is not None:
            if self.parse_optional_punctuation(":"):
                line = self.parse_integer(False, False)
                self.parse_punctuation(":")
                return read_loc(text, line, self.parse_integer(False, False))
            if self.parse_optional_punctuation("("):
                inner = self._parse_location()
                self.parse_punctuation(")", " after the location inside a name")
                return name_loc(text, inner)
            return name_loc(text, unknown)
        if self._current_token.kind is MLIRTokenKind.HASH_IDENT:
            position = self.pos
            alias = self.parse_attribute()
            if not isinstance(alias, LOCATIONS):
                self.raise_error("this alias is not a location", position)
            return alias
        if self.parse_optional_keyword("callsite"):
            self.parse_punctuation("(")
            callee = self._parse_location()
            self.parse_keyword("at")
            caller = self._parse_location()
            self.parse_punctuation(")")
            return callsite_loc(callee, caller)
        if self.parse_optional_keyword("fused"):
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<"):
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            locations = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
            return FusedLoc(tuple(locations), metadata)
        self.raise_error('a location is expected: "file":1:2, "name"(...), callsite(... at ...), fused[...], unknown')

    # Operations

    def parse_operation(self) -> Operation:
        start = self._current_token.span
        bound = self._parse_op_result_list()
        generic = self._current_token.kind is MLIRTokenKind.STRING_LIT
        if generic:
            op_type = self._get_op_by_name(self.parse_str_literal())
        else:
            name = self._parse_token(MLIRTokenKind.BARE_IDENT, "the name of an operation is expected")
            op_type = self._get_op_by_name(name.text)
        stack = self._parser_state.dialect_stack
        stack.append(op_type.dialect_name())
        if generic:
            op = self._parse_generic_operation(op_type)
        elif (reader := reader_of(op_type)) is not None:
            op = reader(self, op_type)
        else:
            op = op_type.parse(self)
        stack.pop()
        self._starts[op] = start.start
        if (location := self.parse_optional_location()) is not None:
            op.location = location
        if bound and (count := sum(size for _, size in bound)) != len(op.results):
            self.raise_error(f"'{op.name}' has {len(op.results)} results, {count} are named", start)
        first = 0
        for span, size in bound:
            self._register_ssa_definition(span.text[1:], op.results[first : first + size], span)
            first += size
        return op

    def read_verbatim(self) -> str:
        """Return the text up to the end of a line outside of all brackets and strings, and go on behind it."""
        start, depth = self.pos, 0
        for found in VERBATIM.finditer(self.source, start):
            if found[0] == "\n" and depth == 0:
                break
            depth += (found[0] in "([{") - (found[0] in ")]}")
        else:
            self.raise_error("the text of this operation does not end", start)
        self._resume_from(found.start())
        return self.source[start : found.start()].strip()

    def _get_op_by_name(self, name: str) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        for spelling in (name, modern_name(name), spellings.OPS.get(name)):
            if spelling is not None and (op_type := self.ctx.get_optional_op(spelling, dialect_stack=stack)):
                return op_type
        position = max(self.source.rfind(name, 0, self.pos), 0)
        feature = next((feature for start, feature in MISSING.items() if name.startswith(start)), None)
        if feature is not None:
            self.raise_error(f"{feature} cannot be compiled: there is no operation '{name}'", position)
        self.raise_error(f"there is no operation '{name}'", position)

    # Values and regions

    def resolve_operand(self, operand: UnresolvedOperand, type: Any) -> SSAValue:
        name = operand.operand_name
        if name not in self.ssa_values:
            use = self._early_uses.setdefault(name, (operand.span, []))
            use[1].append(tuple(self._regions))
        return super().resolve_operand(operand, type)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if (early := self._early_uses.pop(name, None)) is not None:
            here = self._regions[-1]
            if not all(here in regions for regions in early[1]):
                self.raise_error(f"value %{name} is used outside of the region that defines it", early[0])
        super()._register_ssa_definition(name, values, span)
        self._scopes[-1].append(name)
        if NUMBERED.fullmatch(name) is None:
            for value in values:
                value._name = name  # the setter would cut the suffix off `%x_1`

    def parse_optional_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region | None:
        if self.parse_optional_punctuation("{") is None:
            return None
        outer = self.blocks, self.forward_block_references
        self.blocks, self.forward_block_references = {}, defaultdict(list)
        self._region_count += 1
        self._regions.append(self._region_count)
        self._scopes.append([])
        region = Region()
        named = list(arguments or ())
        if named or (arguments is not None and self._current_token.kind is not MLIRTokenKind.CARET_IDENT):
            region.add_block(self._parse_entry_block(named))
        elif self._current_token.kind not in (MLIRTokenKind.CARET_IDENT, MLIRTokenKind.R_BRACE):
            block = Block()
            self._parse_block_body(block)
            region.add_block(block)
        while self.parse_optional_punctuation("}") is None:
            if self._current_token.kind is not MLIRTokenKind.CARET_IDENT:
                self.raise_error("an operation, a block label or '}' is expected in a region")
            name = self._current_token.text[1:]
            if name in self.blocks and name not in self.forward_block_references:
                self.raise_error(f"block ^{name} is defined twice in this region")
            region.add_block(self._parse_block())
        for name, spans in self.forward_block_references.items():
            self.raise_error(f"block ^{name} is not defined in this region", spans[0])
        for name in self._scopes.pop():
            del self.ssa_values[name]
        self._regions.pop()
        self.blocks, self.forward_block_references = outer
        return region

    def _parse_entry_block(self, arguments: list[Parser.Argument]) -> Block:
        """The first block of a region whose arguments were written before it, as those of functions and loops are."""
        if self._current_token.kind is MLIRTokenKind.CARET_IDENT:
            self.raise_error("invalid block name in region with named arguments")
        block = Block(arg_types=[argument.type for argument in arguments])
        for value, argument in zip(block.args, arguments, strict=True):
            self._register_ssa_definition(argument.name.text[1:], (value,), argument.name)
            if argument.location is not None:
                value.location = argument.location
        self._parse_block_body(block)
        return block


class LocationParser(IRParser):
    """Set the location of every op to the start of its text; with `only_missing` those that have no location."""

    def __init__(self, text: str, filename: str, only_missing: bool = False) -> None:
        super().__init__(text, filename)
        self.file, self.only_missing = filename, only_missing
        self.line_starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        if self.only_missing and op.location != unknown:
            return op
        line = bisect_right(self.line_starts, start)
        op.location = file_loc(self.file, line, start - self.line_starts[line - 1] + 1)
        return op


def snapshot_locations(module: ModuleOp, path: str) -> ModuleOp:
    """The same module, with the locations of its ops in the text at `path`."""
    return LocationParser(print_module(module), path).parse_module()


def parse_with_locations(text: str, path: str, only_missing: bool) -> ModuleOp:
    """Parse a user's file; the location of each op (with `only_missing`, of each op that has none) is its position in
    the file."""
    return parse_module(text, path, lambda text, path: LocationParser(text, path, only_missing))
