"""One table of calls, good and bad, through the compiler's frontend and through the interpreter: same types, same
words.

A row is an expression. ``b("fp16", 16, 16)`` is a block of unknown values, ``b("fp16")`` a scalar, and ``p("fp32",
64)`` a block of pointers; everything else is the language. Its outcome is the type of the result, or the error with its
text.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block

import tilework.language as tl
from tilework.errors import CompilationError
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.kernel import FrontendOptions
from tilework.frontend.semantic import Semantic as Frontend
from tilework.frontend.semantic.building import Builder, ir_type
from tilework.ir.locations import unknown
from tilework.language.compile_time import ACTIVE
from tilework.language.dtypes import block_type, dtype, pointer_type
from tilework.language.function import JITFunction
from tilework.language.typing.carrier import Carrier
from tilework.oracles.interpreter import InterpretedFunction
from tilework.oracles.interpreter.allowed_memory import Memory, region_of_array
from tilework.oracles.interpreter.function import Options
from tilework.oracles.interpreter.semantic import Semantic as Interpreter
from tilework.oracles.interpreter.tensors import storage

MEMORY = np.zeros(1 << 20, np.uint8)  # where every pointer of the interpreter points

ROWS = [
    line
    for line in Path(__file__).with_name("typing_rows.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]


def one_value(type: dtype) -> Any:
    """An argument as the frontend holds it: an SSA value."""
    return Block(arg_types=[ir_type(type)]).args[0]


def zeros(type: dtype) -> Any:
    """An argument as the interpreter holds it: an array; a pointer points into `MEMORY`."""
    shape = tuple(type.shape.values) if isinstance(type, block_type) else ()
    start = MEMORY.ctypes.data if type.scalar.is_ptr() else 0
    return np.full(shape, start, storage(type.scalar))


@contextmanager
def frontend() -> Iterator[Callable[[dtype], Any]]:
    builder, entry = Builder(), Block()
    builder.loc = unknown
    with builder.enter_function(entry):
        builder.set_to_end(entry)
        with active(Frontend(builder, FrontendOptions(beyond_triton="error"))):
            yield one_value


@contextmanager
def interpreter() -> Iterator[Callable[[dtype], Any]]:
    memory = Memory()
    memory.add(region_of_array("memory", MEMORY), MEMORY)
    semantic = Interpreter(Options(beyond_triton="error"), memory, (1, 1, 1))
    semantic.enter_program((0, 0, 0))
    with active(semantic), np.errstate(all="ignore"):
        yield zeros


@contextmanager
def active(semantic: Any) -> Iterator[None]:
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        return fn(*args)

    token = ACTIVE.set(SimpleNamespace(semantic=semantic, call_JitFunction=call))  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        ACTIVE.reset(token)


def names(handle: Callable[[dtype], Any]) -> dict[str, Any]:
    """The names that rows may use."""

    def value(type: dtype, *shape: int) -> tl.tensor:
        type = block_type(type, shape) if shape else type
        return tl.tensor(handle(type), type)

    def b(name: str, *shape: int) -> tl.tensor:
        return value(dtype(name), *shape)

    def p(name: str, *shape: int) -> tl.tensor:
        return value(pointer_type(dtype(name)), *shape)

    def bp(name: str = "fp32") -> Any:
        return tl.make_block_ptr(p(name), (8, 8), (8, 1), (0, 0), (4, 8), (1, 0))

    def desc(name: str = "fp32", block: tuple[int, ...] = (4, 8)) -> Any:
        return tl.make_tensor_descriptor(p(name), [8, 64], [64, 1], block)

    return {
        **{"tl": tl, "b": b, "p": p, "bp": bp, "desc": desc, "scaled": tl.dot_scaled},
        "const": lambda name: value(pointer_type(dtype(name), const=True)),
        "pp": lambda name, *shape: value(pointer_type(pointer_type(dtype(name))), *shape),
        "add": lambda x, y: x + y,
        "widen": lambda x, y: (x + y).to(tl.float32),
        "first": lambda a, i, c, j: tl.tuple([a, i]),
        "swap": lambda a, i, c, j: tl.tuple([i, a]),
        "one": lambda a, i, c, j: a,
    }


def outcome(house: Any, row: str) -> str:
    """The type of a row's result, or its error."""
    with house() as handle:
        try:
            result = eval(row, names(handle))
        except (TypeError, ValueError, AssertionError, IndexError) as error:
            return f"{type(error).__name__}: {error}".replace(" on interpreter", " on cuda")  # each names itself
        except Exception as error:
            return f"CRASH {type(error).__name__}: {error}"
    return str(getattr(result, "type", result))


@pytest.mark.filterwarnings("ignore")
def test_the_frontend_and_the_interpreter_say_the_same() -> None:
    differing = []
    for row in ROWS:
        compiled, interpreted = outcome(frontend, row), outcome(interpreter, row)
        if compiled != interpreted or compiled.startswith("CRASH"):
            differing.append(f"{row}\n    frontend:    {compiled}\n    interpreter: {interpreted}")
    assert not differing, "\n" + "\n".join(differing)


@pytest.mark.parametrize("house", [Frontend, Interpreter])
def test_everything_that_the_rules_leave_open_is_carried_out(house: type) -> None:
    open_ends = [name for name, member in vars(Carrier).items() if callable(member) and not name.startswith("_")]
    assert len(open_ends) > 50
    assert not [name for name in open_ends if getattr(house, name) is vars(Carrier)[name]]


def origin(error: BaseException) -> str:
    """The first of a chain of errors; the compiler ends its text with it."""
    if error.__cause__ is not None:
        return origin(error.__cause__)
    return str(error).splitlines()[-1] if isinstance(error, CompilationError) else repr(error)


STATEMENTS = """
return len(x)
return int(x)
return float(x, 1)
return float(1.5, 2)
return len(x, y)
return min(x)
return max(0.0, -0.0)
return max(x, 1, key=2)
return max(x, 1)
return min(3, 2.5)
return getattr(x, 3)
return hasattr(x, y)
return hasattr(x, "shape")
return isinstance(x)
return (x, y)[x]
return x.T
y = "text"
for i in range(1.5): y = i
for i in range(x): y = i
for i in range(tl.full((), 3, tl.int8)): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.uint16), 5): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.uint32), tl.full((), 5, tl.int32)): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.int32), tl.full((), 5, tl.int64)): tl.core.to_tensor(i.type)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
def test_pythons_own_names_mean_the_same(tmp_path: Path) -> None:
    """Statements of a kernel with two blocks, `x` and `y`, compiled and interpreted: what is refused, or the type
    returned."""
    head = "import tilework, tilework.language as tl\n"
    body = """
@tilework.jit
def function{0}(x, y):
    {1}
    return y

@tilework.jit
def kernel{0}(o):
    v = function{0}(tl.arange(0, 4), tl.arange(0, 4))
    tl.core.to_tensor(v.type)
"""
    path = tmp_path / "statements.py"
    path.write_text(head + "".join(body.format(number, row) for number, row in enumerate(STATEMENTS)))
    module: Any = ModuleType("statements")
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    differing = []
    for number, row in enumerate(STATEMENTS):
        fn = getattr(module, f"kernel{number}").fn
        with pytest.raises(CompilationError) as compiled:
            compile_to_ttir(JITFunction(fn), {"o": "*fp32"}, {}, {}, FrontendOptions())
        with pytest.raises(CompilationError) as interpreted:
            InterpretedFunction(fn)[(1,)](np.zeros(4, np.float32))
        texts = [origin(caught.value) for caught in (compiled, interpreted)]
        if texts[0] != texts[1]:
            differing.append(f"{row}\n    frontend:    {texts[0]}\n    interpreter: {texts[1]}")
    assert not differing, "\n" + "\n".join(differing)


WORDS = """
b("uint8", 4) + 300                     | Scalar 300 is out of range for type uint8
b("int32", 4) // b("uint32", 4)         | Cannot use // with int32 and uint32 because they have different signedness
b("fp32", 4) & 1                        | invalid operands of type fp32 and int
tl.umulhi(b("int32", 4), 1.5)           | Expected dtype ['int32', 'int64', 'uint32', 'uint64'] but got fp32
tl.arange(0, 6)                         | arange's range must be a power of 2
b("fp32", 4) + b("fp32", 8)             | Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8
tl.load(b("int32", 8))                  | Unsupported ptr type <['8'], int32> in `tl.load`
tl.store(const("fp32"), 1)              | Cannot store to a constant pointer
tl.dot(b("fp16", 16, 16), b("fp32", 16, 16))    | Both operands must be same dtype. Got fp16 and fp32
tl.dot(b("fp16", 16, 16), b("fp16", 16, 16), out_dtype=tl.bfloat16) | out_dtype=bfloat16 is unsupported. Please use
"""


@pytest.mark.parametrize("line", WORDS.strip().splitlines())
def test_words_that_programs_written_for_triton_know(line: str) -> None:
    row, words = line.split(" | ")
    assert words.strip() in outcome(frontend, row.strip())
