"""Errors as the user sees them: layout, causes, tracebacks, and that nothing but CompilationError is raised."""

# The kernels are odd on purpose.
# ruff: noqa: B018, F821, F841
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportUnboundVariable=false
# pyright: reportUndefinedVariable=false, reportUnusedExpression=false

import ast
import copy
import pickle
import random
import traceback
import warnings
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from examples.demo import all_cases
from tests.frontend.run import OPTIONS, error, innermost, message_of, ttir
from tilework.errors import CompilationError, UnsupportedLanguageConstruct
from tilework.frontend.generator import compile_to_ttir
from tilework.language.function import JITFunction


@tilework.jit
def undefined(p, n):
    a += 1


@tilework.jit
def binary(p, n):
    0 + "a"


@tilework.jit
def unary(p, n):
    -(0, 0)


@tilework.jit
def shift(p, n):
    1.0 << 1


@tilework.jit
def assertion(p, n):
    tl.static_assert(isinstance(0, tl.tensor))


@tilework.jit
def builtin(p, n):
    tl.expand_dims(None, -1)


@tilework.jit
def program(p, n):
    tl.program_id(20)


@pytest.mark.parametrize("kernel", [undefined, binary, unary, shift, assertion, builtin, program])
def test_position_and_source(kernel) -> None:
    problem = error(kernel, np.zeros(1), 1)
    lines = str(problem).splitlines()
    assert lines[0].startswith("at 2:4:")
    assert lines[1].startswith("def ") and lines[3] == "    ^"
    assert "<source unavailable>" not in str(problem)
    assert issubclass(CompilationError, Exception) and isinstance(problem, tilework.TritonError)


@pytest.mark.parametrize("kernel", [undefined, binary, unary, shift, assertion])
def test_operators_have_no_cause(kernel) -> None:
    assert error(kernel, np.zeros(1), 1).__cause__ is None


def test_the_message_of_an_operator_is_the_repr() -> None:
    assert message_of(error(binary, np.zeros(1), 1)).startswith("TypeError(")


@pytest.mark.parametrize("kernel", [builtin, program])
def test_the_cause_of_a_builtin_error_starts_in_core(kernel) -> None:
    problem = error(kernel, np.zeros(1), 1)
    cause = problem.__cause__
    assert cause is not None and str(problem).endswith(str(cause))
    files = [frame.filename for frame in traceback.extract_tb(cause.__traceback__)]
    assert files[0].endswith("core.py")
    shown = "".join(traceback.format_exception(problem))
    for internal in ("code_generator.py", "statements.py", "expressions.py", "calls.py", "visit_"):
        assert internal not in shown


def test_there_are_no_visitor_frames() -> None:
    problem = error(undefined, np.zeros(1), 1)
    frames = [frame.name for frame in traceback.extract_tb(problem.__traceback__)]
    assert not any(name.startswith("visit") for name in frames)


@tilework.jit
def fails(x):
    y = x
    return y + tl.arange(0, 32)


@tilework.jit
def between(x):
    return fails(x)


@tilework.jit
def nested(p, n):
    x = tl.arange(0, 64)
    between(x)


def test_errors_in_callees_are_a_chain() -> None:
    problem = error(nested, np.zeros(1), 1)
    chain = [problem]
    while isinstance(chain[-1].__cause__, CompilationError):
        chain.append(chain[-1].__cause__)
    assert [str(link).split(":", 2)[:2] for link in chain] == [["at 3", "4"], ["at 2", "11"], ["at 3", "11"]]
    assert [link.error_message is None for link in chain] == [True, True, False]
    for copied in (problem, pickle.loads(pickle.dumps(problem))):  # a worker's error has nothing but its text
        assert str(copied).endswith(str(chain[-1])) and str(copied).startswith(problem.message)


@tilework.jit
def bad_combine(a, b):
    return a + missing


@tilework.jit
def reduces(p, n):
    x = tl.arange(0, 4)
    tl.reduce(x, 0, bad_combine)


def test_errors_in_combine_functions_name_the_call() -> None:
    problem = error(reduces, np.zeros(1), 1)
    assert str(problem).startswith("at 3:4:") and "missing is not defined" in message_of(problem)
    assert "called from here" in problem.diagnostic().render()


@tilework.jit
def long_kernel(p, n):
    a0 = n
    a1 = n
    a2 = n
    a3 = n
    a4 = n
    a5 = n
    a6 = n
    a7 = n
    a8 = n
    a9 = n
    b0 = n
    b1 = n
    b2 = n
    wrong(n)
    c0 = n


def test_at_most_twelve_lines_are_shown() -> None:
    lines = str(error(long_kernel, np.zeros(1), 1)).splitlines()
    assert lines[0].startswith("at 15:4:")
    assert lines[1] == "    a2 = n" and lines[12] == "    wrong(n)" and lines[13] == "    ^"


# fmt: off
@tilework.jit
def several_lines(p, n):
    x = (
        n
        + undefined_name
    )
    tl.store(p, x)
# fmt: on


def test_positions_in_expressions_over_several_lines() -> None:
    assert str(error(several_lines, np.zeros(1), 1)).startswith("at 4:10:")


def test_front_end_debugging_wraps_nothing() -> None:
    with pytest.raises(NameError) as caught:
        ttir(undefined, np.zeros(1), 1, options={"front_end_debugging": True})
    assert any(frame.name.startswith("visit") for frame in traceback.extract_tb(caught.value.__traceback__))


@tilework.jit
def unsupported(p, n):
    x = lambda: n


def test_unsupported_syntax() -> None:
    problem = error(unsupported, np.zeros(1), 1)
    assert isinstance(problem, UnsupportedLanguageConstruct) and "Lambda" in str(problem)


# -- nothing else comes out --------------------------------------------------------------------------------------------


OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.BitAnd, ast.MatMult)
COMPARISONS = (ast.Lt, ast.Eq, ast.Is, ast.In, ast.NotIn, ast.GtE)


def mutate(tree: ast.Module, random: random.Random) -> ast.Module:
    """One random change: another operator, an argument less, another name, a constant, statements swapped."""
    tree = copy.deepcopy(tree)
    nodes = list(ast.walk(tree.body[0]))
    names = [node.id for node in nodes if isinstance(node, ast.Name)] + ["nothing", "tl", "len"]
    while True:
        node = random.choice(nodes)
        if isinstance(node, ast.BinOp | ast.AugAssign):
            node.op = random.choice(OPERATORS)()
        elif isinstance(node, ast.Compare):
            node.ops = [random.choice(COMPARISONS)()] * len(node.ops)
        elif isinstance(node, ast.Call) and node.args:
            change = random.randrange(3)
            if change == 0:
                del node.args[random.randrange(len(node.args))]
            elif change == 1:
                node.args.append(random.choice(node.args))
            else:
                node.keywords.append(ast.keyword("nothing", node.args[0]))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            node.id = random.choice(names)
        elif isinstance(node, ast.Constant):
            values: list[Any] = [0, -1, 3, 2.5, None, "text", True, 2**70, (), b"x", ...]
            node.value = random.choice(values)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            node.attr = random.choice(["T", "to", "shape", "dtype", "load", "value", "nothing", "float32", "sum"])
        elif isinstance(node, ast.Subscript):
            node.slice = ast.copy_location(ast.Constant(random.choice([0, -9, None, "x"])), node.slice)
        elif isinstance(node, ast.For | ast.If | ast.While):
            random.shuffle(node.body)
        else:
            continue
        return ast.fix_missing_locations(tree)


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_mutated_kernels_compile_or_are_diagnosed(case, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(case.name)
    kernel: JITFunction = case.kernel
    tree = kernel.parse()
    for _ in range(25):
        changed = mutate(tree, generator)
        monkeypatch.setattr(kernel, "_tree", changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile_to_ttir(kernel, case.types, case.constexprs, case.attrs, OPTIONS)
            except CompilationError as problem:
                rendered = problem.diagnostic().render()
                assert "error:" in rendered
                assert not isinstance(innermost(problem), AssertionError | KeyError) or message_of(problem)
