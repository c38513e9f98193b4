"""Every operator as a jit function, one kernel that applies it to arrays, and the same operators in NumPy.

    z = apply(OPERATORS["+"], {0: "fp16", 1: "fp16"}, "fp16", x, y)     # compiled, then evaluated; the type is asserted

The NumPy side (`expected`) follows the words of the language's rules and shares nothing with the compiler.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tests.frontend.run import OPTIONS
from tests.frontend.semantic.arith_kernel import NUMPY
from tilework.frontend.generator import compile_to_ttir
from tilework.language.dtypes import dtype
from tilework.language.function import JITFunction
from tilework.oracles.evaluator import evaluate

LANES = 64
CODES = {
    "int1": "u1",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}


@tilework.jit
def add(x, y):
    return x + y


@tilework.jit
def sub(x, y):
    return x - y


@tilework.jit
def mul(x, y):
    return x * y


@tilework.jit
def truediv(x, y):
    return x / y


@tilework.jit
def floordiv(x, y):
    return x // y


@tilework.jit
def mod(x, y):
    return x % y


@tilework.jit
def and_(x, y):
    return x & y


@tilework.jit
def or_(x, y):
    return x | y


@tilework.jit
def xor(x, y):
    return x ^ y


@tilework.jit
def shl(x, y):
    return x << y


@tilework.jit
def shr(x, y):
    return x >> y


@tilework.jit
def lt(x, y):
    return x < y


@tilework.jit
def le(x, y):
    return x <= y


@tilework.jit
def gt(x, y):
    return x > y


@tilework.jit
def ge(x, y):
    return x >= y


@tilework.jit
def eq(x, y):
    return x == y


@tilework.jit
def ne(x, y):
    return x != y


OPERATORS: dict[str, JITFunction] = {
    **{"+": add, "-": sub, "*": mul, "/": truediv, "//": floordiv, "%": mod},
    **{"&": and_, "|": or_, "^": xor, "<<": shl, ">>": shr},
    **{"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne},
}
DIVISIONS, BITWISE, SHIFTS = ("/", "//", "%"), ("&", "|", "^", "<<", ">>"), ("<<", ">>")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@tilework.jit
def call_unary(x, z, f: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    value = f(tl.load(x + i))
    tl.static_assert(value.dtype == z.dtype.element_ty)
    tl.store(z + i, value)


@tilework.jit
def call_binary(x, y, z, f: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    value = f(tl.load(x + i), tl.load(y + i))
    tl.static_assert(value.dtype == z.dtype.element_ty)
    tl.store(z + i, value)


@tilework.jit
def call_ternary(w, x, y, z, f: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    value = f(tl.load(w + i), tl.load(x + i), tl.load(y + i))
    tl.static_assert(value.dtype == z.dtype.element_ty)
    tl.store(z + i, value)


@tl.core.builtin
def loaded(memory: Any, position: Any, _semantic: Any = None) -> Any:
    """The array at a location in `memory`: an offset, a type, a size."""
    start = memory.__add__(int(position[0]), _semantic=_semantic).to(tl.pointer_type(position[1]), _semantic=_semantic)
    offsets = tl.arange(0, int(position[2]), _semantic=_semantic)
    return tl.load(start.__add__(offsets, _semantic=_semantic), _semantic=_semantic)


@tl.core.builtin
def operand(arrays: Any, which: Any, _semantic: Any = None) -> Any:
    """One of the arrays, by its number in a tuple; a number is what it is."""
    return arrays[int(which[0])] if isinstance(which, tl.tuple) else which


@tl.core.builtin
def put(memory: Any, position: Any, value: Any, _semantic: Any = None) -> None:
    assert value.dtype == position[1], f"the type is {value.dtype}, not {position[1]}"
    start = memory.__add__(int(position[0]), _semantic=_semantic).to(tl.pointer_type(position[1]), _semantic=_semantic)
    offsets = tl.arange(0, int(position[2]), _semantic=_semantic)
    tl.store(start.__add__(offsets, _semantic=_semantic), value, _semantic=_semantic)


@tilework.jit
def call_all(memory, OFFSETS: tl.constexpr, CELLS: tl.constexpr):
    arrays = [loaded(memory, OFFSET) for OFFSET in OFFSETS]
    for n in tl.static_range(len(CELLS)):  # pyright: ignore[reportArgumentType]  a tuple at compile time
        put(memory, CELLS[n][3], CELLS[n][0](operand(arrays, CELLS[n][1]), operand(arrays, CELLS[n][2])))


CALLS = {1: call_unary, 2: call_binary, 3: call_ternary}


def code(name: str) -> str:
    """The signature code of a pointer to `name`."""
    return "*" + CODES.get(name, name)


def launch(kernel: JITFunction, names: list[str], arrays: list[np.ndarray], **constants: Any) -> None:
    """Compile `kernel` for pointers to the named types, and evaluate it on `arrays`."""
    signature = {arg: code(name) for arg, name in zip(kernel.arg_names, names)}
    signature |= dict.fromkeys(constants, "constexpr")
    known = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    module = compile_to_ttir(kernel, signature, known, None, OPTIONS)
    evaluate(module, kernel.__name__, arrays)


def apply(f: Any, operands: dict[int, str], result: str, *arrays: np.ndarray) -> np.ndarray:
    """`f` on arrays of the types `operands`; the kernel asserts that its value has the type `result`."""
    out = np.zeros(arrays[0].size, NUMPY[result])
    names = [*operands.values(), result]
    launch(CALLS[len(arrays)], names, [*arrays, out], f=f, LANES=arrays[0].size)
    return out


Cell = tuple[Any, list[Any], str]  # a function, two operands, (array, type) or a number, and the type of the result


def apply_row(cells: Sequence[Cell]) -> list[np.ndarray]:
    """Every function on its operands, in one kernel, which loads each array once and asserts the types of the
    results."""
    memory, inputs, results = bytearray(), {}, []

    def placed(array: np.ndarray, name: str) -> tuple[int, Any, int]:
        position = len(memory), dtype(name), array.size
        memory.extend(array.tobytes())
        memory.extend(bytes(-len(memory) % 16))
        return position

    def number_of(array: np.ndarray, name: str) -> tuple[int]:
        key = array.tobytes(), name
        if key not in inputs:
            inputs[key] = len(inputs), placed(array, name)
        return (inputs[key][0],)

    for function, operands, result in cells:
        size = next(one[0].size for one in operands if isinstance(one, tuple))
        given = [number_of(*one) if isinstance(one, tuple) else one for one in operands]
        results.append((function, *given, placed(np.zeros(size, NUMPY[result]), result)))
    data = np.frombuffer(memory, np.uint8).copy()
    indices = tuple(position for _, position in inputs.values())
    launch(call_all, ["uint8"], [data], OFFSETS=indices, CELLS=tuple(results))
    starts = [
        (start, size * NUMPY[name].itemsize, NUMPY[name]) for (*_, (start, _, size)), (*_, name) in zip(results, cells)
    ]
    return [data[start : start + size].view(kind) for start, size, kind in starts]


def values(name: str) -> np.ndarray:
    """Eight values of a type: both ends of its range and ordinary numbers between."""
    kind = NUMPY[name]
    if name == "int1":
        return np.array([0, 1] * 4, kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.array([info.min, info.max, 0, 1, 2, 7, 100, 13 if kind.kind == "u" else -7], kind)
    extremes = [2.0**-9, 100.0] if name.startswith("fp8") else [np.nan, np.inf]
    return np.array([*extremes, -0.0, 0.0, 1.0, -1.75, 3.5, 12.0], np.float32).astype(kind)


def pairs(left: str, right: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of values of two types."""
    return np.repeat(values(left), 8), np.tile(values(right), 8)


def defined_operands(op: str, x: np.ndarray, y: np.ndarray, result: str) -> np.ndarray:
    """`y` with the operands of undefined results replaced: division by zero, INT_MIN / -1, counts beyond the width."""
    wide = dtype(result)
    if op in SHIFTS:
        counts = np.abs(y.astype(np.int64)) % max(1, wide.primitive_bitwidth)
        return np.minimum(counts, 100).astype(y.dtype)
    if op in ("//", "%") and wide.is_int():
        bad = (y == 0) | ((x == convert(x, result).min()) & (y.astype(np.float64) == -1))
        return np.where(bad, 1, y).astype(y.dtype)
    return y


def convert(x: np.ndarray, name: str) -> np.ndarray:
    """The cast for the steps that promotion takes: integers wrap, floats round once."""
    target = NUMPY[name]
    if x.dtype.kind in "biu" and target.itemsize == 2 and target.kind not in "iu":
        x = x.astype(np.float64)
    return x.astype(target)


def expected(op: str, x: np.ndarray, y: np.ndarray, common: str) -> np.ndarray:
    """``x op y`` in the type `common`."""
    left, right = convert(x, common), convert(y, common)
    kind = dtype(common)
    if op in COMPARISONS:
        a, b = (v.astype(np.float32) if kind.is_fp8() or common == "bf16" else v for v in (left, right))
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]
    if kind.is_floating():
        return float_result(op, left, right)
    if op == "/":
        return left.astype(np.float32) / right.astype(np.float32)
    if op == ">>":
        signed = x.dtype.kind == "i"
        bits = left.view(f"{'i' if signed else 'u'}{left.dtype.itemsize}") if left.dtype.kind != "b" else left
        return (bits >> right.astype(bits.dtype)).view(left.dtype)
    exact = [integer_result(op, int(a), int(b)) for a, b in zip(left, right)]
    width = kind.primitive_bitwidth
    return np.array([e % 2**width for e in exact], np.uint64).astype(left.dtype)


def float_result(op: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """One operation in float64 and one rounding, which is right for every narrower format."""
    kind = left.dtype
    a, b = (left, right) if kind == np.float64 else (left.astype(np.float64), right.astype(np.float64))
    exact = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}[op](a, b)
    if kind.itemsize == 1:
        limit = 57344.0 if kind.name == "float8_e5m2" else 448.0
        return np.clip(exact.astype(np.float16).astype(np.float32), -limit, limit).astype(kind)
    return exact.astype(kind)


def integer_result(op: str, a: int, b: int) -> int:
    """Exact; the quotient goes towards zero, the remainder has the sign of the dividend."""
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return {
        "+": a + b,
        "-": a - b,
        "*": a * b,
        "//": quotient,
        "%": a - quotient * b,
        "&": a & b,
        "|": a | b,
        "^": a ^ b,
        "<<": a << b if op == "<<" else 0,
    }[op]


def same(actual: np.ndarray, wanted: np.ndarray) -> bool:
    """Equal bits, but any NaN equals any NaN."""
    if actual.dtype != wanted.dtype:
        return False
    if actual.dtype.kind in "biu":
        return bool((actual == wanted).all())
    with np.errstate(invalid="ignore"):
        a, b = actual.astype(np.float64), wanted.astype(np.float64)
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all())
