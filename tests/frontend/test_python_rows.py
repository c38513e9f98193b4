"""The Python subset: what the other files of this folder leave open.

A case is named after its row; `rows.py` says what a body and an expectation are.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import error, innermost, text
from tilework.errors import CompilationError, UnsupportedLanguageConstruct

HEADER = """
CHANGES = 5
ITEMS = tl.constexpr([1, 2, 3])
LARGEST = tl.constexpr(tl.maximum)

class Pair(NamedTuple):
    a: object
    b: object

@tilework.jit
def add_default(y, amount=CHANGES):
    return y + amount

CHANGES = 6

@tilework.jit
def increment(y):
    return y + 1

@tilework.autotune([tilework.Config({})], key=[])
@tilework.jit
def tuned(y):
    return y

@tilework.heuristics({})
@tilework.jit
def heuristic(y):
    return y

@tilework.jit(noinline=True)
def far(y):
    return y + 1

@tilework.jit(noinline=True)
def far_block(y):
    return tl.arange(0, 4) + y

@tilework.jit(noinline=True)
def far_load(d):
    return d.load([1, 0])

@tilework.jit
def nothing():
    pass

@tilework.jit
def is_constant(y):
    return isinstance(y, tl.constexpr) or y is None

def make():
    outer = 1

    @tilework.jit
    def changes_outer(y):
        nonlocal outer
        return y

    return changes_outer

changes_outer = make()
"""

UNSUPPORTED = {
    "break": "for i in range(n):\n    break",
    "continue": "for i in range(n):\n    continue",
    "try": "try:\n    pass\nfinally:\n    pass",
    "raise": "raise ValueError()",
    "import": "import os",
    "import from": "from os import path",
    "global": "global ITEMS",
    "nonlocal": "changes_outer(n)",
    "del": "del n",
    "yield": "yield n",
    "yield from": "yield from (1, 2)",
    "match": "match n:\n    case 1:\n        pass",
    "class": "class A:\n    pass",
    "async def": "async def f():\n    pass",
    "def": "def f():\n    pass",
    "dict": "y = {1: 2}",
    "set": "y = {1}",
    "generator": "y = (i for i in (1, 2))",
    "lambda": "y = lambda: 1",
    "walrus": "y = (z := 1)",
    "** in a call": "increment(**{'y': 1})",
    "for else": "for i in range(n):\n    pass\nelse:\n    pass",
    "while else": "while n > 0:\n    n -= 1\nelse:\n    pass",
    "list target": "[a, b] = (n, n)",
    "starred target": "a, *b = (n, n)",
    "attribute target": "n.a = 1",
    "subscript target": "n[0] = 1",
    "f-string of a run-time value": "y: tl.constexpr = f'{n}'",
    "string condition": "if 'a':\n    pass",
    "float condition": "if 1.5:\n    pass",
    "dtype condition": "if tl.int8:\n    pass",
    "tuple condition": "if (1, 2):\n    pass",
    "condition of several elements": "if tl.arange(0, 4) > n:\n    pass",
    "return in a for loop": "for i in range(n):\n    return",
    "return in a while loop": "while n > 0:\n    return",
    "block for a noinline function": "far(tl.arange(0, 4))",
}


@pytest.mark.parametrize("row", UNSUPPORTED)
def test_unsupported(tmp_path: Path, row: str) -> None:
    """Each of these is an UnsupportedLanguageConstruct, and compiles where it is never visited."""
    body = UNSUPPORTED[row]
    problem = innermost(error(kernel(tmp_path, body, HEADER), np.zeros(8, np.int32), *arguments(), C=4))
    assert isinstance(problem, UnsupportedLanguageConstruct)
    if not row.startswith("yield"):  # a generator is one as a whole
        unvisited = "if C == 3:\n" + "\n".join("    " + line for line in body.split("\n")) + "\ntl.store(out, 1)"
        check(tmp_path, unvisited, [1], HEADER)


NOT_BUILTIN = (
    "abs all any bool bytes callable chr dict dir divmod enumerate eval exec filter hash id iter map next open ord "
    "pow repr"
    " reversed round set slice sorted str sum super tuple type vars zip"
)


@pytest.mark.parametrize("name", NOT_BUILTIN.split())
def test_not_a_builtin(tmp_path: Path, name: str) -> None:
    """Every builtin but `range len list float int isinstance getattr hasattr print min max`."""
    check(tmp_path, f"{name}(n)", Refused(NameError, f"{name} is not defined"))


ROWS = {
    "assignment, expression statements": ("'text'\n...\nNone\nn\ntl.store(out, 1)", [1]),
    "assignment, nested targets": ("(a, (b, c)), d = (1, (2, 3)), 4\ntl.store(out, a + 10 * b + 100 * c + 1000 * d)",
                                   [4321]),
    "assignment, one target": ("a = b = 1", Refused(UnsupportedLanguageConstruct, "multiple assignment")),
    "assignment, augmented, undefined": ("y += 1", Refused(NameError, "is not defined")),
    "assignment, other annotations": ("y: undefined_name = 3\ntl.store(out, y)", [3]),
    "assignment, constexpr without value": ("y: tl.constexpr\ntl.static_assert(y is None)", []),
    "expression, bytes": ("y: tl.constexpr = b'ab'\ntl.store(out, y[1])", [98]),
    "expression, bytes are no run-time value": ("y = b'ab'", Refused(TypeError, "tl.constexpr")),
    "expression, comprehension filter": (("t = [i * n for i in (1, 2, 3) if i != 2]\n"
                                          "tl.store(out, len(t) * 100 + t[1])"), [209]),
    "expression, comprehension of a range": ("t = [i for i in range(3)]",
                                             Refused(UnsupportedLanguageConstruct, "comprehension")),
    "expression, f-string": (("y: tl.constexpr = f'{\"é\"!a}|{C!r}|{C!s}|{C:03d}'\n"
                              "tl.static_assert(y == \"'\\\\xe9'|4|4|004\")"), []),
    "expression, slice of a constexpr": ("y: tl.constexpr = ITEMS[1:]\ntl.store(out, len(y) * 10 + y[-1])", [23]),
    "expression, slice of a tuple": ("y = (n, 1, 2, 3)[::2]\ntl.store(out, y[0] * 10 + y[1] + len(y) * 100)", [232]),
    "expression, shape": ("tl.store(out, tl.zeros((2, 8), tl.int8).shape[-1])", [8]),
    "expression, operator without meaning": ("n @ n", Refused(TypeError, "@")),
    "expression, ternary, constexpr": ("y: tl.constexpr = C if C > 3 else undefined_name\ntl.static_assert(y == 4)",
                                       []),
    "expression, ternary, run time": ("tl.store(out, 7 if n > 2 else n)", [7]),
    "expression, ternary types": ("y = n if n > 2 else x",
                          Refused(TypeError, "Ternary expression with dynamic condition has inconsistent type")),
    "expression, ternary of calls without value": ("nothing() if n > 2 else nothing()\ntl.store(out, 1)", [1]),
    "expression, star": ("t = (n, 5)\ntl.store(out, max(*t) + tl.add(*t))", [13]),
    "name, default from a global, once": ("tl.store(out, add_default(n))", [8]),
    "name, autotuned": ("tuned(n)", Refused(NameError, "Cannot access global variable tuned")),
    "name, heuristics": ("heuristic(n)", Refused(NameError, "Cannot access global variable heuristic")),
    "name, plain global": ("tl.store(out, CHANGES)", Refused(NameError, "Cannot access global variable CHANGES")),
    "name, local first": ("ITEMS = n\ntl.store(out, ITEMS)", [3]),
    "name, global before local": ("y = ITEMS[2]\nITEMS = n\ntl.store(out, y * 10 + ITEMS)", [33]),
    "name, NamedTuple": ("y = Pair(b=n, a=1)\ntl.store(out, y.a * 10 + y[1])", [13]),
    "name, len": ("tl.store(out, len(ITEMS) + 10 * len('ab') + 100 * len((n,)) + 1000 * len(tl.arange(0, 4).shape))",
                  [1123]),
    "name, int and float": ("tl.store(out, int('12') + int(float('2.5') * 2))\ntl.static_assert(float('-inf') < 0)",
                            [17]),
    "name, int of a run-time value": ("int(n)", Refused(TypeError, "compile-time value")),
    "name, list": ("y: tl.constexpr = list(ITEMS)\ntl.store(out, y[2])", [3]),
    "name, range": ("y = range(4)", Refused(TypeError, "for i in range")),
    "name, min and max": ("tl.store(out, min(C, 9) * 100 + max(n, 2, 5) * 10 + max([1, 2]))", [452]),
    "name, max of one value": ("max(n)", Refused(TypeError, "at least 2 values")),
    "name, max of nan": ("max(float('nan'), 1.0)", Refused(ValueError, "nan or -0.0")),
    "name, min of -0.0": ("min(-0.0, 1.0)", Refused(ValueError, "nan or -0.0")),
    "name, print": ("print('n', n)", 'tt.print " n: "'),
    "name, print without a prefix": ("print(n)", Refused(AssertionError, "prefix")),
    "name, getattr of a function": ("tl.store(out, getattr(tl, 'maximum')(n, 5))", [5]),
    "call, literals stay constexpr": (
        "tl.store(out, tl.to_tensor(is_constant(3)) + tl.full((), is_constant('a'), tl.int32) + is_constant(n))",
        [2]),
    "call, missing argument": ("increment()", Refused(TypeError, "y")),
    "call, noinline, one element": ("tl.store(out + tl.arange(0, 1), far(tl.full((1,), n, tl.int32)))", [4]),
    "call, noinline, block result": ("tl.store(out + tl.arange(0, 4), far_block(n))", [3, 4, 5, 6]),
    "call, noinline, descriptor": ("d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])\n"
                                 "tl.store(out + tl.arange(0, 8), far_load(d).reshape(8).to(tl.int32))",
                                 [*range(8, 16)]),
    "call, builtin in a constexpr": ("tl.store(out, LARGEST(n, 7))", [7]),
    "call, math": ("tl.store(out, int(math.sqrt(C)) + math.frexp(8.0)[1])", [6]),
    "call, math of a run-time value": ("math.exp(x)", Refused(TypeError, "use tl.exp")),
    "constant, number": ("y = 3\ntl.static_assert(y.dtype == tl.int32 and y.shape == ())", []),
    "constant, None, then a number": ("y = None\ny = n\ny = 2.5\ntl.static_assert(y.dtype == tl.float32)", []),
    "constant, string": ("y = 'a'", Refused(TypeError, "tl.constexpr")),
    "constant, string in a tuple": ("y = (1, 'a')", Refused(TypeError, "tl.constexpr")),
    "constant, twice constexpr": ("y: tl.constexpr = 1\ny: tl.constexpr = 2", Refused(ValueError, "already defined")),
    "constant, plain after constexpr": ("y: tl.constexpr = 1\ny = y + n\ntl.store(out, y)", [4]),
    "constant, constexpr in a branch": ("y: tl.constexpr = 1\nif n > 2:\n    y = 2",
                                        Refused(TypeError, "constexpr[1]")),
    "constant, constexpr in a loop": ("y: tl.constexpr = 1\nfor i in range(n):\n    y = 2",
                                      Refused(TypeError, "constexpr 1")),
    "constant, parameter": ("C = C + n\ntl.static_assert(isinstance(C, tl.tensor))\ntl.store(out, C)", [7]),
    "if, None": ("if None:\n    undefined_name\ntl.store(out, 1)", [1]),
    "if, int": ("if C:\n    tl.store(out, 1)\nelse:\n    undefined_name", [1]),
    "if, pointer": ("if p:\n    tl.store(out, 1)", [1]),
    "if, item": ("if tl.full((1,), n, tl.int32).item() > 2:\n    tl.store(out, 1)", [1]),
    "if, rebound type": ("y = n\nif n > 2:\n    y = x", Refused(TypeError, "`y` is of type int32")),
    "if, None rebound": ("y = None\nif n > 2:\n    y = x\ntl.store(out, y)", Refused(TypeError, "`y` is None")),
    "if, dtype rebound": ("y = tl.int8\nif n > 2:\n    y = tl.int16", Refused(TypeError, "constexpr[")),
    "if, function rebound": ("y = increment\nif n > 2:\n    y = far", Refused(TypeError, "constexpr[")),
    "if, new in both": ("if n > 2:\n    y = 1\nelse:\n    y = 2\ntl.store(out, y)", [1]),
    "if, new in both, types": ("if n > 2:\n    y = 1\nelse:\n    y = x", Refused(TypeError, "Mismatched type for y")),
    "if, new in one": ("if n > 2:\n    y = 1\ntl.store(out, y)", Refused(NameError, "y is not defined")),
    "if, a branch that returns": ("if n > 5:\n    return\nelse:\n    y = 2\ntl.store(out, y)", [2]),
    "loop, float bound": ("for i in range(x):\n    pass", Refused(TypeError, "must all be ints")),
    "loop, block bound": ("for i in range(tl.arange(0, 4)):\n    pass", Refused(TypeError, "must all be ints")),
    "loop, type of the index": ("for i in range(n.to(tl.int64)):\n    tl.static_assert(i.dtype == tl.int64)\n"
                              "for j in range(n.to(tl.int8)):\n    tl.static_assert(j.dtype == tl.int32)", []),
    "loop, keywords of range": ("for i in range(start=3):\n    pass", Refused(TypeError, "keyword")),
    "loop, the index is a run-time value": ("for i in range(2):\n    tl.static_assert(isinstance(i, tl.tensor))", []),
    "loop, negative step": ("for i in range(7, n, -2):\n    tl.store(out + i, i)", [-1, -1, -1, -1, -1, 5, -1, 7]),
    "loop, index after the loop": ("for i in range(0, 10, 4):\n    pass\ntl.store(out, i)", [8]),
    "loop, index after a loop down": ("for i in range(n, 0, -1):\n    pass\ntl.store(out, i)", [1]),
    "loop, index after no iteration": ("i = 9\nfor i in range(n - 3):\n    pass\ntl.store(out, i)", [9]),
    "loop, index after break": ("for i in range(n):\n    if i == 1:\n        break\ntl.store(out, i)", [1]),
    "loop, index assigned in the body": ("for i in range(n):\n    i = 10 * i\ntl.store(out, i)", [20]),
    "loop, index in else": ("for i in range(n):\n    pass\nelse:\n    tl.store(out, i)", [2]),
    "loop, index after two loops": ("for i in range(n):\n    pass\nfor i in range(n - 3):\n    pass\ni += 1\n"
                                    "tl.store(out, i)", [3]),
    "loop, index after a branch": ("i = 9\nif n > 2:\n    for i in range(n):\n        pass\ntl.store(out, i)", [2]),
    "loop, index in the next iteration": ("i = 9\nfor j in range(2):\n    tl.store(out + j, i)\n    "
                                          "for i in range(n):\n        pass", [9, 2]),
    "loop, index in the next iteration of while": ("""
        i = 9
        j = 0
        while j < 2:
            tl.store(out + j, i)
            j += 1
            for i in range(n):
                pass
        """, [9, 2]),
    "loop, index after a nested loop": ("""
        for j in range(2):
            for i in range(n):
                pass
            tl.store(out + j, i)
        """, [2, 2]),
    "loop, index after unrolled loops": ("for i in tl.static_range(2):\n    pass\nfor i in range(n - 3):\n    pass\n"
                                         "tl.store(out, i)", [1]),
    "loop, index after loops of other types": ("""
        for i in range(n):
            pass
        for i in range(n.to(tl.int64)):
            pass
        tl.static_assert(i.dtype == tl.int64)
        tl.store(out, i)
        """, [2]),
    "loop, index that was wider": ("i = n.to(tl.int64)\nfor i in range(n):\n    pass\ntl.store(out, i)",
                                   Refused(TypeError, "initial type int64 but is re-assigned to int32")),
    "loop, index assigned in a later loop": ("""
        for k in range(n):
            pass
        y = 0.0
        for i in range(n):
            k = tl.load(p + tl.arange(0, 4))
            y += tl.sum(k)
        tl.store(out, y)
        """, [18]),
    "loop, index assigned in both branches": ("""
        for k in range(n):
            pass
        if n > 2:
            k = x
        else:
            k = 2.5
        tl.store(out, k)
        """, [1]),
    "loop, index assigned in one branch": ("""
        for k in range(n):
            pass
        if n > 5:
            k = 7
        tl.store(out, k)
        """, [2]),
    "loop, index that is assigned again": ("for i in range(n):\n    pass\ni = 2.5\ntl.store(out, i)", [2]),
    "loop, target": ("for i, j in range(n):\n    pass", Refused(UnsupportedLanguageConstruct, "one name")),
    "loop, iterator": ("for i in ITEMS:\n    pass", Refused(RuntimeError, "Only `range` and `static_range`")),
    "loop, no iteration": ("y = 5\nfor i in range(n, n):\n    y = 6\ntl.store(out, y)", [5]),
    "loop, carried type": ("y = 1\nfor i in range(n):\n    y = x", Refused(TypeError, ("variable y has initial "
                                                                                       "type int32"))),
    "loop, None carried": ("y = None\nfor i in range(n):\n    y = i", Refused(TypeError, "`y` is None")),
    "loop, defined in the body": ("for i in range(n):\n    y = i\ntl.store(out, y)",
                                  Refused(NameError, "y is not defined")),
    "loop, static_range": ("for i in tl.static_range(2):\n    tl.static_assert(isinstance(i, tl.constexpr))", []),
    "loop, while, constexpr": ("while C > 0:\n    pass", Refused(UnsupportedLanguageConstruct, "run-time value")),
    "loop, while, block": ("while tl.arange(0, 4) < n:\n    pass", Refused(UnsupportedLanguageConstruct, "scalar")),
    "return, value of a kernel": ("tl.store(out, 1)\nreturn n", [1]),
    "return None": ("tl.store(out, 1)\nreturn None", [1]),
    "return, after a return": ("return\nundefined_name", []),
    "return, void result": ("y = nothing()\ntl.store(out, y)", Refused(TypeError, "None")),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_row(tmp_path: Path, row: str) -> None:
    check(tmp_path, *ROWS[row], header=HEADER)


def test_one_function_per_specialisation(tmp_path: Path) -> None:
    """Compiled once per distinct combination of argument types and constants."""
    fn = kernel(
        tmp_path, "increment(n)\nincrement(n + 1)\nincrement(x)\nincrement(3)\nincrement(3)\nincrement(4)", HEADER
    )
    module = text(fn, np.zeros(8, np.int32), *arguments(), C=4)
    assert module.count("tt.func private") == 4 and module.count("tt.call") == 6


def test_propagate_nan_of_min_is_deprecated(tmp_path: Path) -> None:
    fn = kernel(tmp_path, "tl.store(out, min(x, 2.0, propagate_nan=tl.PropagateNan.ALL))", parameters="out, x")
    with pytest.warns(UserWarning, match="propagate_nan"):
        assert "arith.minimumf" in text(fn, np.zeros(1, np.float32), 1.5)


@pytest.mark.parametrize(
    ("body", "kind", "has_cause"),
    [("0 + 'a'", CompilationError, False), ("tl.expand_dims(n, 5)", CompilationError, True),
     ("print(n)", CompilationError, True),
     ("increment('a')", CompilationError, True), ("lambda: 1", UnsupportedLanguageConstruct, False)],
)  # fmt: skip
def test_causes(tmp_path: Path, body: str, kind: type, has_cause: bool) -> None:
    """Operators and syntax have no cause; builtins and callees have one."""
    problem = error(kernel(tmp_path, body, HEADER), np.zeros(8, np.int32), *arguments(), C=4)
    assert type(problem) is kind and (problem.__cause__ is not None) == has_cause
    assert str(problem).startswith("at 2:4:")
    assert (problem.error_message is None) == isinstance(problem.__cause__, CompilationError)


def test_noinline_functions_keep_their_lines(tmp_path: Path) -> None:
    fn = kernel(tmp_path, "tl.store(out, far(n))", HEADER)
    module = text(fn, np.zeros(8, np.int32), *arguments(), C=4, debuginfo=True)
    lines = (tmp_path / "row0.py").read_text().split("\n")
    line = next(number for number, code in enumerate(lines, 1) if "def far(" in code)
    assert f'row0.py":{line + 1}:' in module and "callsite" not in module
