"""PTX text, as LLVM and nvcc print it, to `syntax.PtxModule`.

    >>> module = parse_ptx(".version 8.0\\n.target sm_80\\n.visible .entry k(.param .u64 p) .maxntid 128 { ret; }")
    >>> module.kernels, module.functions["k"].limits
    (['k'], {'maxntid': (128,)})

One regular expression splits the text into tokens; a recursive-descent parser reads them:

    >>> [token.text for token in tokenize("add.s32 %r1, %r2, 5;  // sum")]
    ['add.s32', '%r1', ',', '%r2', ',', '5', ';', '']

Debug sections are skipped, except ``.file`` and ``.loc``, which give the source location of an instruction.

"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tilework.oracles.emulator.syntax import (
    TYPE_BYTES,
    Address,
    Function,
    Imm,
    Instruction,
    Not,
    Operand,
    Pair,
    PtxModule,
    PtxSyntaxError,
    Reg,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)

BLANK = " \t\r\f"
TOKEN = re.compile(
    r"""[ \t\r\f]*+(?:(?P<name>[%$._a-zA-Z](?:[\w$.%]|::)*)|(?P<newline>\n)|(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
      |(?P<integer>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
      |(?P<string>"[^"\n]*")
      |(?P<sign>[-+*/{}()\[\]<>,;:@!|=&~^?])|(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
SPACES = {".global": "global", ".const": "const", ".shared": "shared", ".local": "local", ".param": "param"}
Item = TypeVar("Item")
GLUED = tuple(f"{directive}." for directive in (".reg", *SPACES))


@dataclass(slots=True)
class Token:
    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, line, kind = 0, 1, ""
    while kind != "end":
        match = TOKEN.match(text, at)
        if match is None:
            wrong = text[at:].lstrip(BLANK)[:20].splitlines()[0]
            raise PtxSyntaxError(f"PTX line {line}: {wrong!r} is not PTX")
        at, kind = match.end(), match.lastgroup or ""
        found = match[kind]
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += found.count("\n")
        elif kind == "name" and found.startswith(GLUED):  # ".reg.b32" is ".reg .b32"
            tokens += [Token(kind, f".{part}", line) for part in found[1:].split(".")]
        else:
            tokens.append(Token(kind, found, line))
    return tokens


def files_of(tokens: list[Token]) -> dict[int, str]:
    """Return the names of the source files by id; nvcc writes them after the code that refers to them."""
    found = {}
    for directive, index, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if directive.text == ".file" and index.kind == "integer" and name.kind == "string":
            found[parse_integer(index.text)] = name.text.strip('"')
    return found


def parse_integer(text: str) -> int:
    text = text.rstrip("U")
    if text.isdigit() and text[0] == "0" and text.strip("01234567"):
        raise PtxSyntaxError(f"{text} is not a number: it starts with 0, which means octal")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return int(text, 8)
    return int(text, 0)


def float_bits(text: str) -> Imm:
    match text[:2].lower():
        case "0f":
            return Imm(int(text[2:], 16), "f32")
        case "0d":
            return Imm(int(text[2:], 16), "f64")
        case _:
            return Imm(int.from_bytes(struct.pack("<d", float(text)), "little"), "f64")


def negated(value: Imm) -> Imm:
    return Imm(
        -value.value if value.kind == "int" else value.value ^ 1 << (31 if value.kind == "f32" else 63), value.kind
    )


class Cursor:
    """A position in the tokens of a text; `at` is the index of the next token."""

    def __init__(self, tokens: list[Token], lines: list[str]) -> None:
        self.tokens, self.lines, self.at = tokens, lines, 0

    def peek(self) -> str:
        return self.tokens[self.at].text

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise self.error("the text ends too early")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.peek() or 'the end'!r}")

    def error(self, what: str) -> PtxSyntaxError:
        line = self.tokens[self.at].line
        shown = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        return PtxSyntaxError(f"PTX line {line}: {what}" + (f"\n  {shown}" if shown else ""))

    def name(self) -> str:
        if self.tokens[self.at].kind != "name":
            raise self.error(f"expected a name, found {self.peek() or 'the end'!r}")
        return self.next().text

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if self.tokens[self.at].kind != "integer":
            raise self.error(f"expected a number, found {self.peek() or 'the end'!r}")
        return sign * parse_integer(self.next().text)

    def position(self) -> tuple[int, ...]:
        """Read the operands of .loc: file, line and column."""
        found = [self.integer(), self.integer()]
        if self.tokens[self.at].kind == "integer":
            found.append(self.integer())
        return tuple(found)

    def listed(self, one: Callable[[], Item]) -> list[Item]:
        """Read one or more items, separated by commas."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return found

    def skip_to(self, text: str) -> None:
        while self.next().text != text:
            pass

    def skip_braces(self) -> None:
        depth = 0
        while True:
            text = self.next().text
            depth += (text == "{") - (text == "}")
            if depth == 0 and text == "}":
                return

    def skip_rest_of(self, line: int) -> None:
        while self.tokens[self.at].line == line and self.tokens[self.at].kind != "end":
            self.at += 1


class Declarations(Cursor):
    """Parses declarations of variables and parameters: alignment, type, size and initial value.

    .global .align 16 .b8 table[8] = {1, 2, 3};    .param .align 8 .b8 k_param_0[24]    .extern .shared .b8 buffer[];
    """

    def variables(self, space: str) -> list[Variable]:
        """Read the rest of a declaration after the space: alignment, type, names with sizes and initial values, up to
        the semicolon."""
        align, type, lanes = self.type_of_variable()
        found = self.listed(lambda: self.variable(space, align, type, lanes))
        self.expect(";")
        return found

    def type_of_variable(self) -> tuple[int, str, int]:
        align, lanes, type, is_pointer = 0, 1, "", False
        while self.peek().startswith("."):
            text = self.next().text
            is_pointer |= text == ".ptr"
            if text == ".align":
                given = self.integer()
                if given < 1 or given & (given - 1):
                    raise self.error(f"an alignment is a power of two, not {given}")
                align = align if is_pointer else given  # after .ptr it is the alignment of the pointee
            elif text in (".v2", ".v4", ".v8"):
                lanes = int(text[2:])
            elif text == ".attribute":
                self.skip_to(")")
            elif text in (".ptr", ".global", ".const", ".shared", ".local", ".param", ".noalias", ".unified"):
                continue
            elif text[1:] in TYPE_BYTES:
                type = text[1:]
            else:
                raise self.error(f"{text!r} is not the type of a variable")
        if not type:
            raise self.error(f"expected a type, found {self.peek()!r}")
        return align or TYPE_BYTES[type] * lanes, type, lanes

    def variable(self, space: str, align: int, type: str, lanes: int) -> Variable:
        name = self.name()
        count: int | None = lanes
        while self.accept("["):
            if self.accept("]"):
                count = None
                continue
            count = (count or 1) * self.size_of_array()
            self.expect("]")
        initial, pointers = b"", ()
        if self.accept("="):
            values, pointers = bytearray(), []
            self.initial_value(type, values, pointers)
            initial, pointers = bytes(values), tuple(pointers)
            if count is None:
                count = len(initial) // TYPE_BYTES[type]
        return Variable(name, space, type, count, align, initial, tuple(pointers))

    def size_of_array(self) -> int:
        size = self.integer()
        if size < 0:
            raise self.error(f"an array of {size} elements")
        return size

    def initial_value(self, type: str, into: bytearray, pointers: list[tuple[int, Symbol, bool]]) -> None:
        if self.accept("{"):
            while not self.accept("}"):
                self.initial_value(type, into, pointers)
                self.accept(",")
            return
        size = TYPE_BYTES[type]
        if self.tokens[self.at].kind == "name":
            name = self.name()
            if self.peek() == "(" and name != "generic":
                raise self.error(f"{name!r} is not known in an initial value")
            generic = name == "generic"
            if generic:
                self.expect("(")
                name = self.name()
            offset = self.integer() if self.accept("+") else 0
            if generic:
                self.expect(")")
                offset += self.integer() if self.accept("+") else 0
            pointers.append((len(into), Symbol(name, offset), generic))
            into += bytes(size)
            return
        if self.tokens[self.at].kind not in ("integer", "float") and self.peek() != "-":
            raise self.error("an initial value is a number or the name of a variable")
        value = self.constant()
        bits = value.value & ((1 << 8 * size) - 1)
        if value.kind == "int" and type in ("f32", "f64"):
            bits = int.from_bytes(struct.pack("<f" if size == 4 else "<d", value.value), "little")
        elif value.kind == "f64" and size == 4:
            bits = int.from_bytes(struct.pack("<f", struct.unpack("<d", struct.pack("<Q", value.value))[0]), "little")
        into += bits.to_bytes(size, "little")

    def parameters(self) -> list[Variable]:
        """Read a parameter list in parentheses, if there is one."""
        found = []
        if not self.accept("("):
            return found
        while not self.accept(")"):
            if self.peek() == ".reg":
                self.next()
            else:
                self.expect(".param")
            align, type, lanes = self.type_of_variable()
            found.append(self.variable("param", align, type, lanes))
            self.accept(",")
        return found

    def constant(self) -> Imm:
        """Read a number, which may have a sign."""
        if self.accept("-"):
            return negated(self.constant())
        if self.tokens[self.at].kind not in ("integer", "float"):
            raise self.error(f"expected a number, found {self.peek() or 'the end'!r}")
        token = self.next()
        return Imm(parse_integer(token.text)) if token.kind == "integer" else float_bits(token.text)


SPECIAL = re.compile(
    r"%(?:(?:n?tid|n?ctaid|(?:is_explicit_)?cluster\w*|n?clusterid)(?:\.[xyzw])?|laneid|n?warpid|n?smid|gridid"
    r"|lanemask_\w+"
    r"|clock(?:_hi|64)?|pm\d+|globaltimer(?:_lo|_hi)?|envreg\d+|dynamic_smem_size|total_smem_size|aggr_smem_size"
    r"|reserved_smem_\w+|current_graph_exec)$"
)
LINKING = {".visible", ".extern", ".weak", ".common"}
LIMITS = {
    ".maxntid": 3, ".reqntid": 3, ".minnctapersm": 1, ".maxnreg": 1, ".maxnctapersm": 1,
    ".reqnctapercluster": 3, ".maxclusterrank": 1,
}  # fmt: skip
DEEPEST = 200  # nested scopes
MOST_REGISTERS = 1 << 20


def parse_ptx(text: str) -> PtxModule:
    """Parse `text`; a `PtxSyntaxError` names the line of a mistake."""
    parser = Parser(tokenize(text), text.splitlines())
    try:
        return parser.module()
    except (LookupError, ValueError, ArithmeticError, struct.error) as error:
        raise parser.error(f"this cannot be read ({error})") from error


class Parser(Declarations):
    """A recursive-descent parser over the tokens."""

    def __init__(self, tokens: list[Token], lines: list[str]) -> None:
        super().__init__(tokens, lines)
        self.files = files_of(tokens)
        self.current = Function("", False, [], [])
        self.source: tuple[str, int] | None = None
        self.callers: tuple[tuple[str, int], ...] = ()
        self.inlined: dict[tuple[int, ...], tuple[int, ...] | None] = {}
        self.scopes: list[dict[str, str]] = []
        self.scope_ids: list[int] = []
        self.scope_count = 0

    # the module

    def module(self) -> PtxModule:
        found = PtxModule((0, 0), "", {}, {})
        while self.tokens[self.at].kind != "end":
            self.top_level(found)
        if not found.target:
            raise PtxSyntaxError("this is not PTX: it has no .version and .target")
        return found

    def top_level(self, found: PtxModule) -> None:
        linking = set()
        while self.peek() in LINKING:
            linking.add(self.next().text)
        match self.peek():
            case ".version":
                self.next()
                version = re.fullmatch(r"(\d+)\.(\d+)", self.peek())
                if version is None:
                    raise self.error(f"{self.peek()!r} is not a version of PTX")
                self.next()
                found.version = (int(version[1]), int(version[2]))
            case ".target":
                self.next()
                found.target = self.listed(self.name)[0]
            case ".address_size":
                self.next()
                if self.integer() != 64:
                    raise self.error("only 64-bit addresses are known")
            case ".file":
                self.skip_rest_of(self.next().line)
            case ".section":
                self.next()
                self.next()
                self.skip_braces()
            case ".entry" | ".func":
                function = self.function(self.next().text == ".entry")
                if function.has_body or function.name not in found.functions:
                    found.functions[function.name] = function
            case ".pragma" | ".alias":
                self.skip_to(";")
            case text if text in SPACES:
                for variable in self.variables(SPACES[self.next().text]):
                    found.variables[variable.name] = variable
            case text:
                raise self.error(f"{text!r} is not known at the top of a module")

    # functions

    def function(self, is_kernel: bool) -> Function:
        line = self.tokens[self.at].line
        while self.peek() == ".attribute":
            self.skip_to(")")
        returns = [] if is_kernel else self.parameters()
        name = self.name()
        found = Function(name, is_kernel, self.parameters(), returns, line=line)
        while self.peek() not in ("{", ";"):
            directive = self.name()
            if directive in LIMITS:
                found.limits[directive[1:]] = tuple(self.listed(self.integer))
            elif directive in (".noreturn", ".explicitcluster", ".blocksareclusters"):
                found.limits[directive[1:]] = ()
            elif directive == ".pragma":
                self.skip_to(";")
            else:
                raise self.error(f"{directive!r} is not known of a function")
        if self.accept(";"):
            return found
        found.has_body = True
        self.current = found
        self.callers = ()
        self.source, self.scope_count, self.scopes, self.scope_ids = None, 0, [], []
        self.scope(found)
        return found

    def scope(self, function: Function) -> None:
        """Read from an opening brace to its closing one."""
        self.expect("{")
        self.scopes.append({})
        if len(self.scopes) > DEEPEST:
            raise self.error(f"scopes are nested more than {DEEPEST} deep")
        self.scope_count += 1
        self.scope_ids.append(self.scope_count)
        if len(self.scopes) > 1:
            self.declare_labels()
        while not self.accept("}"):
            self.statement(function)
        self.scopes.pop()
        self.scope_ids.pop()

    def declare_labels(self) -> None:
        """Declare the labels of an inner scope, which are its own; code may jump to a later one."""
        depth, at = 1, self.at
        while depth and at + 1 < len(self.tokens):
            token = self.tokens[at]
            depth += (token.text == "{") - (token.text == "}")
            if depth == 1 and token.kind == "name" and self.tokens[at + 1].text == ":":
                self.declare(token.text)
            at += 1

    def statement(self, function: Function) -> None:
        text = self.peek()
        if text == "{":
            self.scope(function)
        elif text == ";":
            self.next()
        elif text == ".loc":
            self.location()
        elif text == ".reg":
            self.next()
            self.registers(function)
        elif text in SPACES:
            for variable in self.variables(SPACES[self.next().text]):
                name = self.declare(variable.name)
                function.variables[name] = replace(variable, name=name)
        elif text in (".pragma", ".callprototype"):
            self.skip_to(";")
        elif text and self.tokens[self.at + 1].text == ":":
            self.label(function)
        elif text == ".file":
            self.skip_rest_of(self.next().line)
        else:
            self.instruction(function)

    def declare(self, name: str) -> str:
        """Return the unique name of a register or variable in its function."""
        unique = name if len(self.scopes) == 1 else f"{name}@{self.scope_ids[-1]}"
        self.scopes[-1][name] = unique
        return unique

    def resolve(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def label(self, function: Function) -> None:
        name = self.label_name()
        self.expect(":")
        if self.peek() == ".branchtargets":
            self.next()
            function.targets[name] = tuple(self.listed(self.label_name))
            self.expect(";")
        elif self.peek() in (".callprototype", ".calltargets"):
            self.skip_to(";")
        else:
            function.labels[name] = len(function.instructions)

    def label_name(self) -> str:
        name = self.name()
        return self.resolve(name) or name

    def location(self) -> None:
        line = self.next().line
        here = self.position()
        caller = None
        while self.tokens[self.at].line == line:
            if self.next().text == "inlined_at":
                caller = self.position()
        self.inlined[here] = caller  # the .loc of a caller comes before those of the code inlined into it
        if here[1] > 0:
            self.source = (self.files.get(here[0], f"file {here[0]}"), here[1])
            self.callers = self.chain(caller)

    def chain(self, caller: tuple[int, ...] | None) -> tuple[tuple[str, int], ...]:
        found: list[tuple[str, int]] = []
        while caller is not None and len(found) < DEEPEST:
            found.append((self.files.get(caller[0], f"file {caller[0]}"), caller[1]))
            caller = self.inlined.get(caller)
        return tuple(found)

    def registers(self, function: Function) -> None:
        lanes, type = 1, ""
        while self.peek().startswith("."):
            text = self.next().text
            if text in (".v2", ".v4", ".v8"):
                lanes = int(text[2:])
            elif text[1:] in TYPE_BYTES:
                type = text[1:]
            else:
                raise self.error(f"{text!r} is not the type of a register")
        if lanes != 1:
            raise self.error("registers that are vectors are not known")

        def declare() -> None:
            name = self.name()
            if not self.accept("<"):
                function.registers[self.declare(name)] = type
                return
            count = self.size_of_array()
            if count > MOST_REGISTERS:
                raise self.error(f"{count} registers")
            for index in range(count):
                function.registers[self.declare(f"{name}{index}")] = type
            self.expect(">")

        self.listed(declare)
        self.expect(";")

    # instructions

    def instruction(self, function: Function) -> None:
        start = self.tokens[self.at].line
        predicate, negated = None, False
        if self.accept("@"):
            negated = self.accept("!")
            predicate = self.operand()
            if not isinstance(predicate, Reg):
                raise self.error("a predicate is a register")
        opcode, *modifiers = self.name().split(".")
        operands: list[Operand] = []
        if opcode == "call":
            operands = self.call_operands()
        else:
            while self.peek() != ";":
                operands.append(self.operand())
                if not self.accept(","):
                    break
        self.expect(";")
        text = self.lines[start - 1].strip()
        function.instructions.append(
            Instruction(
                opcode, tuple(modifiers), tuple(operands), predicate, negated, start, self.source, text, self.callers
            )
        )

    def call_operands(self) -> list[Operand]:
        """Return (results, callee, arguments), each list a Vector; a prototype or list of targets may follow."""
        results = self.group() if self.peek() == "(" else Vector(())
        if results.items:
            self.expect(",")
        callee = self.operand()
        arguments = self.group() if self.accept(",") and self.peek() == "(" else Vector(())
        if self.accept(","):
            return [results, callee, arguments, self.operand()]
        return [results, callee, arguments]

    def group(self) -> Vector:
        self.expect("(")
        items = []
        while not self.accept(")"):
            items.append(self.operand())
            self.accept(",")
        return Vector(tuple(items))

    def operand(self) -> Operand:
        first = self.single_operand()
        if self.peek() == "|":
            self.next()
            return Pair(first, self.single_operand())
        return first

    def single_operand(self) -> Operand:
        token = self.tokens[self.at]
        match token.kind, token.text:
            case ("integer" | "float", _) | ("sign", "-"):
                return self.constant()
            case "name", _:
                return self.named_operand()
            case "sign", "!":
                self.next()
                value = self.single_operand()
                if isinstance(value, Reg):
                    return Not(value)
                raise self.error("only a predicate register can be negated")
            case "sign", "{":
                self.next()
                items = []
                while not self.accept("}"):
                    items.append(self.operand())
                    if not self.accept(",") and self.peek() != "}":
                        raise self.error(f"expected ',' or '}}', found {self.peek()!r}")
                return Vector(tuple(items))
            case "sign", "[":
                return self.address()
            case _:
                raise self.error(f"expected an operand, found {token.text or 'the end'!r}")

    def named_operand(self) -> Operand:
        name = self.name()
        if name == "_":
            return Sink()
        if (unique := self.resolve(name)) is not None:
            if unique in self.current.registers:
                return Reg(unique)
            return Symbol(unique, self.signed_offset())
        if SPECIAL.match(name):
            return Special(name)
        if name.startswith("%") and not name.startswith("%SP"):
            raise self.error(f"the register {name} is not declared")
        if name == "WARP_SZ":
            return Imm(32)
        return Symbol(name, self.signed_offset())

    def signed_offset(self) -> int:
        if self.peek() == "+" and self.tokens[self.at + 1].kind == "integer":
            self.next()
            return self.integer()
        return 0

    def address(self) -> Address:
        self.expect("[")
        base = self.operand()
        offset = 0
        while self.peek() in ("+", "-"):
            sign = -1 if self.next().text == "-" else 1
            offset += sign * self.integer()
        parts = self.listed(self.operand) if self.accept(",") else []
        self.expect("]")
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), offset + base.offset
        if not isinstance(base, Reg | Symbol | Imm):
            raise self.error("an address starts with a register, a name or a number")
        return Address(base, offset, tuple(parts))
