"""Kernels that are wrong in every way we could think of: each compiles, or gets a diagnostic about what the user wrote.

No Python traceback from inside the compiler, and no message that only makes sense to its authors ("'str' object has no
attribute 'is_fp8'" for a dtype in quotes).
"""

import importlib.util
import re
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from tests.golden.harness import DEFAULT, TARGET, source
from tilework.compiler import lower
from tilework.errors import CompilationError
from tilework.language.function import JITFunction

# One a line, ``\\n`` where a new line begins: `p` is a pointer to fp32, `n` an int32, BLOCK the constexpr 64.
STATEMENTS = Path(__file__).with_name("odd_statements.txt").read_text()
HEAD = """
import math
from typing import NamedTuple

import tilework
import tilework.language as tl

G = 5
CE = tl.constexpr(3)


class Point(NamedTuple):
    x: int
    y: int


@tilework.jit
def one_arg(x):
    return x


@tilework.jit
def wrong_type(a, b):
    return a + 0.5


@tilework.jit
def returns_nothing(a):
    pass


@tilework.jit
def pair(a, b, c, d):
    return a + c, b + d


@tilework.jit
def recursive(x):
    return recursive(x)


@tilework.jit
def mutual_a(x):
    return mutual_b(x)


@tilework.jit
def mutual_b(x):
    return mutual_a(x)


@tilework.jit
def recursive_ce(N: tl.constexpr):
    return recursive_ce(N + 1)


@tilework.jit
def two_types(x):
    if x > 0:
        return 1
    return 2.0
"""
INTERNAL = re.compile(  # what only the authors of the compiler understand
    r"_semantic|_generator|forget the @jit|list index|no attribute '(is_fp8|is_bf16|scalar|signature|lower|handle)'"
    r"|Traceback|tilework\.frontend|NotImplemented|no truth value while compiling|int_max_str_digits"
)


def kernels(folder: Path, statements: list[str]) -> ModuleType:
    """A module with one kernel `k0`, `k1` ... per statement."""
    text = HEAD
    for number, statement in enumerate(statements):
        body = "\n".join(f"    {line}" for line in statement.replace("\\n", "\n").split("\n"))
        text += f"\n\n@tilework.jit\ndef k{number}(p, n, BLOCK: tl.constexpr):\n{body}\n"
    path = folder / "odd.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("odd", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        spec.loader.exec_module(module)
    return module


def rendered(kernel: JITFunction) -> str:
    """The diagnostic of a kernel, or nothing if it compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lower(source(kernel, DEFAULT), TARGET)
        except CompilationError as error:
            return error.diagnostic().render()
    return ""


def test_every_statement_compiles_or_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statements = [line for line in STATEMENTS.splitlines() if line]
    assert len(statements) > 500
    module = kernels(tmp_path, statements)
    unclear = []
    for number, statement in enumerate(statements):
        text = rendered(getattr(module, f"k{number}"))
        if text and (not text.startswith(str(tmp_path)) or INTERNAL.search(text)):
            unclear.append(f"{statement}: {text}")
    assert not unclear


EXPLAINED = {
    'x = tl.zeros((4,), "fp32")': "`dtype` cannot be 'fp32' (a str)",
    "x = n.to(3)": (
        "to: `dtype` cannot be 3 (an int)\n*it is called as to(dtype, fp_downcast_rounding=None, bitcast=False)"
    ),
    "x = tl.program_id(n)": "program_id: `axis` must be known at compile time, but is int32\n*tl.constexpr",
    "x = tl.load(p, volatile=n)": "load: `volatile` must be known at compile time, but is int32",
    "x = tl.tuple(n)": "must be a list or a tuple, but is int32",
    "x = tl.sum(3)": "the constexpr 3 is not a tensor: it has no `dtype`",
    "x = tl.reduce(tl.arange(0, 8), 0, math.fsum)": "expected a @jit function, got fsum",
    "x = tl.zeros((16, 16), tl.float32)\\nx = tl.dot(x, x, input_precision=3)": "input_precision must be one of (",
    "x = (1, 2)[5]": "index 5 is out of range: there are 2 elements",
    "x = tl.sort(n)": "only minor dimension is currently supported",
    "x = 1 << 100000": "Nonrepresentable integer of 100001 bits.",
    "x = tl.full((4,), 1 << 70, tl.int32)": "Nonrepresentable integer 1180591620717411303424.",
    "for i in range(1, 2, 3, 4):\\n    pass": "range() takes 1 to 3 arguments by position, got 4",
    "for i in range(start=3):\\n    pass": "range() takes no keyword arguments, got 'start'",
    'tl.static_assert("a")': "the condition of static_assert must be a bool, not the constexpr 'a'",
    "tl.static_assert(BLOCK == 3, n)": "the message of static_assert is a compile-time string",
    'x = tl.inline_asm_elementwise("", "=r", [n], tl.int32, True, 0)': "pack must be a compile-time power of 2, got 0",
    'x = tl.inline_asm_elementwise(n, "=r", [n], tl.int32, True, 1)': "must be compile-time strings",
    'x = tl.inline_asm_elementwise("", "=r", [n], n, True, 1)': "inline assembly returns one dtype",
    "x = one_arg[(1,)](n)": "a kernel cannot launch `one_arg` on a grid\n*`one_arg(...)`",
    "x = recursive_ce(BLOCK)": "`recursive_ce` is called inside itself again and again\n*more calls",
    "x = getattr(n, n)": "the attribute name for getattr must be a compile-time string, not int32",
    "x = hasattr(n, 3)": "the attribute name for hasattr must be a compile-time string, not the constexpr 3",
    "with tl.arange(0, 4):\\n    pass": "is not a context manager\n*without `with`",
    "class A:\\n    pass": "unsupported AST node type: ClassDef\n*define it at module level",
    'x = p + "a"': "invalid operands of type pointer<fp32> and str",
}


def test_explanations(tmp_path: Path) -> None:
    """The words of some of them; ``*`` matches any text between."""
    module = kernels(tmp_path, list(EXPLAINED))
    for number, (statement, wanted) in enumerate(EXPLAINED.items()):
        text = rendered(getattr(module, f"k{number}"))
        position = 0
        for part in wanted.split("\n*"):
            assert part in text[position:], f"{statement}: {text}"
            position = text.index(part, position)
