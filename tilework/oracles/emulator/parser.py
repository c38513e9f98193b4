"""PTX text to `syntax.PtxModule`, as LLVM and nvcc print it.

    >>> module = parse_ptx(".version 8.0\\n.target sm_80\\n.visible .entry k(.param .u64 p) .maxntid 128 { ret; }")
    >>> module.kernels, module.functions["k"].limits
    (['k'], {'maxntid': (128,)})

One regular expression cuts the text into tokens; the rest is recursive descent over them. Sections of debug information are
passed over, except ``.file`` and ``.loc``, which say where an instruction comes from.
"""

import re
import struct
from dataclasses import replace

from tilework.oracles.emulator.declarations import Declarations
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
    Vector,
)
from tilework.oracles.emulator.tokens import SPACES, Token, files_of, tokenize

SPECIAL = re.compile(
    r"%(?:(?:n?tid|n?ctaid|(?:is_explicit_)?cluster\w*|n?clusterid)(?:\.[xyzw])?|laneid|n?warpid|n?smid|gridid|lanemask_\w+"
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
    """The module in `text`; `PtxSyntaxError` says the line of what is wrong."""
    parser = Parser(tokenize(text), text.splitlines())
    try:
        return parser.module()
    except (LookupError, ValueError, ArithmeticError, struct.error) as error:
        raise parser.error(f"this cannot be read ({error})") from error


class Parser(Declarations):
    """One pass over the tokens; `at` is the next one."""

    def __init__(self, tokens: list[Token], lines: list[str]) -> None:
        super().__init__(tokens, lines)
        self.files = files_of(tokens)
        self.current = Function("", False, [], [])
        self.source: tuple[str, int] | None = None
        self.callers: tuple[tuple[str, int], ...] = ()
        self.inlined: dict[tuple[int, ...], tuple[int, ...] | None] = {}
        self.scopes: list[dict[str, str]] = []
        self.scope_numbers: list[int] = []
        self.scope_count = 0

    # the module

    def module(self) -> PtxModule:
        found = PtxModule((0, 0), "", {}, {})
        while self.tokens[self.at].kind != "end":
            self.top_level(found)
        if not found.target:
            raise PtxSyntaxError("this is no PTX: it has no .version and .target")
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
                found.target = self.listed(self.word)[0]
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
        name = self.word()
        found = Function(name, is_kernel, self.parameters(), returns, line=line)
        while self.peek() not in ("{", ";"):
            directive = self.word()
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
        self.source, self.scope_count, self.scopes, self.scope_numbers = None, 0, [], []
        self.scope(found)
        return found

    def scope(self, function: Function) -> None:
        """From an opening to its closing brace."""
        self.expect("{")
        self.scopes.append({})
        if len(self.scopes) > DEEPEST:
            raise self.error(f"scopes are nested more than {DEEPEST} deep")
        self.scope_count += 1
        self.scope_numbers.append(self.scope_count)
        if len(self.scopes) > 1:
            self.declare_labels()
        while not self.accept("}"):
            self.statement(function)
        self.scopes.pop()
        self.scope_numbers.pop()

    def declare_labels(self) -> None:
        """The labels of an inner scope are its own, and code may jump to one that comes later."""
        depth, at = 1, self.at
        while depth and at + 1 < len(self.tokens):
            token = self.tokens[at]
            depth += (token.text == "{") - (token.text == "}")
            if depth == 1 and token.kind == "word" and self.tokens[at + 1].text == ":":
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
        """The name of a register or variable in its function."""
        unique = name if len(self.scopes) == 1 else f"{name}@{self.scope_numbers[-1]}"
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
        name = self.word()
        return self.resolve(name) or name

    def location(self) -> None:
        line = self.next().line
        here = self.position()
        caller = None
        while self.tokens[self.at].line == line:
            if self.next().text == "inlined_at":
                caller = self.position()
        self.inlined[here] = caller  # a caller's own .loc comes before those of what is inlined into it
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
            name = self.word()
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
        opcode, *modifiers = self.word().split(".")
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
        """Always (results, callee, arguments), each list a Vector; a prototype or list of targets may follow."""
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
            case ("number" | "float", _) | ("sign", "-"):
                return self.constant()
            case "word", _:
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
        raise self.error(f"expected an operand, found {token.text or 'the end'!r}")

    def named_operand(self) -> Operand:
        name = self.word()
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
        if self.peek() == "+" and self.tokens[self.at + 1].kind == "number":
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
