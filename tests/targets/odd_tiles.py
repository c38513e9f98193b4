"""Ops on tiles of sizes that are no powers of two, as machine code of the host, on arrays that end where readable
memory ends.

python -m tests.targets.odd_tiles --jobs 2           every op, 1 to 130 elements and 20 odd pairs (minutes)
python -m tests.targets.odd_tiles --draw 40          40 of those cases
python -m tests.targets.odd_tiles sort --size 96     one op, one size; see `tests/sweep.py` for what else it takes

Every array is at the end of a page that is followed by one without permissions, so an access behind it ends the
process. Results are compared with NumPy; the evaluator runs the TTIR and the loop nests too.
"""

import ctypes
import mmap
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tilework.language as tl
from tests.differential.devices import Array, machine_code, unoptimised
from tests.sweep import chosen, options, size_text, sweep
from tilework import jit
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.targets.cpu.pipeline import tile_loops
from tilework.targets.cpu.run import pool
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

PAIRS = [
    *((1, 3), (3, 1), (3, 5), (5, 3), (2, 7), (7, 12), (12, 7), (6, 20), (17, 17), (33, 9)),
    *((9, 33), (48, 80), (80, 48), (13, 96), (96, 13), (100, 6), (31, 65), (65, 31), (24, 24), (1, 127)),
]
LINES = range(1, 131)
CONTROL = tl.constexpr
_kept: list[Any] = []


def guarded(array: Array) -> Array:
    """A copy whose last byte is the last of its page; the next page must not be touched."""
    size = max(1, array.nbytes)
    pages = -(-size // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    _kept.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start + pages * mmap.PAGESIZE), mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    position = np.frombuffer(memory, np.uint8, array.nbytes, pages * mmap.PAGESIZE - array.nbytes)
    made = position.view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


class Case(NamedTuple):
    """A kernel of ``x, y, out``, their arrays by size, and what `out` should be."""

    kernel: Any
    arrays: Callable[..., tuple[Array, Array, Array]]
    expected: Callable[[Array, Array], Array]
    tolerance: float = 0.0


LINE: dict[str, Case] = {}
PAIR: dict[str, Case] = {}
random_numbers = np.random.default_rng(0)


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return random_numbers.standard_normal(shape).astype(np.float32).astype(dtype)


def ints(*shape: int, dtype: Any = np.int32, low: int = -50, high: int = 50) -> Array:
    return random_numbers.integers(low, high, shape).astype(dtype)


def line(
    expected: Callable[[Array, Array], Array],
    make: Callable[..., Array] = floats,
    out: Callable[[int], Any] = lambda n: (n,),
    dtype: Any = None,
    tolerance: float = 0.0,
    table: dict[str, Case] = LINE,
) -> Callable[[Any], Any]:
    """Put a kernel into a table of cases."""

    def arrays(*size: int) -> tuple[Array, Array, Array]:
        x, y = make(*size), make(*size)
        return x, y, np.zeros(out(*size), dtype or x.dtype)

    def add(function: Any) -> Any:
        table[function.__name__] = Case(jit(function), arrays, expected, tolerance)
        return function

    return add


def pair(expected: Callable[[Array, Array], Array], **options: Any) -> Callable[[Any], Any]:
    return line(expected, **{"out": lambda n, m: (n, m), "table": PAIR, **options})


# One dimension


@line(lambda x, y: x + y)
def added(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@line(lambda x, y: np.where(np.arange(len(x)) < 2 * len(x) // 3, x + y, 0))
def masked(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    inside = i < 2 * N // 3
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@line(lambda x, y: np.exp(x) + np.sin(y) + np.tanh(x), tolerance=1e-5)
def functions(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.exp(a) + tl.sin(b) + 2 / (1 + tl.exp(-2 * a)) - 1)


@line(lambda x, y: x // y + x % y, lambda *n: ints(*n, low=1))
def divided(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b + a % b)


@line(lambda x, y: x[::-1] * 2)
def reversed_places(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + (N - 1) - i) * 2)


@line(lambda x, y: x[::-1])
def flipped(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.flip(tl.load(x + i)))


@line(lambda x, y: np.array([x.sum(), x.max(), y.min(), x.argmax(), y.argmin()]), out=lambda n: 5, tolerance=1e-4)
def reduced(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out, tl.sum(a, 0))
    tl.store(out + 1, tl.max(a, 0))
    tl.store(out + 2, tl.min(b, 0))
    tl.store(out + 3, tl.argmax(a, 0).to(tl.float32))
    tl.store(out + 4, tl.argmin(b, 0).to(tl.float32))


@jit
def last_of(a, b):
    return b


@jit
def affine(a, b, c, d):
    return a * c, b * c + d


@jit
def without_neutral(a, b):
    return tl.where(a > b, a, b) | (a & b & 1)


def affine_of(x: Array, y: Array) -> Array:
    total = (1, 0)
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        total = (total[0] * a % 2**32, (total[1] * a + b) % 2**32)
    return np.array([int(x[-1]) % 2**32, *total]).astype(np.uint32).view(np.int32)


@line(affine_of, ints, out=lambda n: 3)
def combined(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out, tl.reduce(a, 0, last_of))
    product, total = tl.reduce((a, b), 0, affine)
    tl.store(out + 1, product)
    tl.store(out + 2, total)


@line(lambda x, y: np.cumsum(x) + np.cumsum(y[::-1])[::-1], ints)
def scanned(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0) + tl.cumsum(tl.load(y + i), 0, reverse=True))


def affine_scan(x: Array, y: Array) -> Array:
    return np.array([affine_of(x[: n + 1], y[: n + 1])[2] for n in range(len(x))], np.int32)


@line(affine_scan, lambda *n: ints(*n, low=-2, high=3))
def scanned_pairs(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    _, total = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, affine)
    tl.store(out + i, total)


@line(lambda x, y: np.sort(x))
def sort(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@line(lambda x, y: np.sort(x)[::-1], lambda *n: ints(*n, dtype=np.int8))
def sort_falling(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sort(tl.load(x + i), descending=True))


@line(lambda x, y: np.append(np.sort(x)[::-1], 0)[:2], out=lambda n: 2)
def largest(x, y, out, N: CONTROL):
    if N > 1:
        tl.store(out + tl.arange(0, 2), tl.topk(tl.load(x + tl.arange(0, N)), 2))
    else:
        tl.store(out, tl.load(x))


@line(lambda x, y: x[y], lambda *n: ints(*n, low=0, high=n[0]))
def gathered(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(y + i), 0))


@line(lambda x, y: np.bincount(x, minlength=len(x)), lambda *n: ints(*n, low=0, high=n[0]))
def counted(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.histogram(tl.load(x + i), N))


@line(lambda x, y: np.stack([x, y], 1).ravel(), out=lambda n: 2 * n)
def interleaved(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(tl.load(x + i), tl.load(y + i)))


@line(lambda x, y: x - y, out=lambda n: n)
def joined(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.split(tl.join(tl.load(x + i), tl.load(y + i)))
    tl.store(out + i, a - b)


@line(lambda x, y: np.concatenate([x, y]), out=lambda n: 2 * n)
def concatenated(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + tl.arange(0, 2 * N), tl.cat(tl.load(x + i), tl.load(y + i), can_reorder=True))


@line(
    lambda x, y: (x.astype(np.float32) * y.astype(np.float32)).astype(np.float16),
    lambda *n: floats(*n, dtype=np.float16),
)
def halves(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.float32) * tl.load(y + i).to(tl.float32))


@line(lambda x, y: x + y, lambda *n: floats(*n, dtype=ml_dtypes.bfloat16))
def brain_floats(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@line(lambda x, y: x.astype(np.float32), lambda *n: floats(*n, dtype=ml_dtypes.float8_e5m2), dtype=np.float32)
def eighths(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(tl.float32))


@line(lambda x, y: (x < y) | (x > 3), lambda *n: ints(*n, dtype=np.int64), dtype=np.bool_)
def conditions(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, (a < b) | (a > 3))


@line(lambda x, y: np.full(1, x.sum() + (y >= 0).sum()), ints, out=lambda n: 1)
def atomics(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    tl.atomic_add(out + i * 0, tl.load(x + i))
    tl.atomic_add(out + i * 0, 1, mask=tl.load(y + i) >= 0)


@line(lambda x, y: x * 3 + 2 * np.arange(len(x)), ints)
def carried(x, y, out, N: CONTROL):
    i = tl.arange(0, N)
    total = tl.load(x + i)
    for _ in range(2):
        total += tl.load(x + i) + i
    tl.store(out + i, total)


@line(lambda x, y: x * 2, out=lambda n: n)
def described(x, y, out, N: CONTROL):
    given = tl.make_tensor_descriptor(x, [N], [1], [N])
    made = tl.make_tensor_descriptor(out, [N], [1], [N])
    made.store([0], given.load([0]) * 2)


@line(lambda x, y: np.where(np.arange(len(x)) < len(x) - 1, x, 0) + y, tolerance=0)
def block_pointers(x, y, out, N: CONTROL):
    p = tl.make_block_ptr(x, (N - 1,), (1,), (0,), (N,), (0,))
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(p, boundary_check=(0,), padding_option="zero") + tl.load(y + i))


# Two


@pair(lambda x, y: x * y[:, :1] + y[:1], tolerance=1e-6)
def broadcasted(x, y, out, N: CONTROL, M: CONTROL):
    i, j = tl.arange(0, N), tl.arange(0, M)
    offsets = i[:, None] * M + j[None, :]
    tl.store(out + offsets, tl.load(x + offsets) * tl.load(y + i * M)[:, None] + tl.load(y + j)[None, :])


@pair(lambda x, y: x.T + 1, out=lambda n, m: (m, n))
def transposed(x, y, out, N: CONTROL, M: CONTROL):
    i, j = tl.arange(0, N), tl.arange(0, M)
    a = tl.load(x + i[:, None] * M + j[None, :])
    tl.store(out + j[:, None] * N + i[None, :], tl.trans(a) + 1)


@pair(
    lambda x, y: np.concatenate([x.sum(0), x.sum(1), y.max(0), y.argmin(1)]),
    out=lambda n, m: 2 * n + 2 * m,
    tolerance=1e-4,
)
def reduced_both(x, y, out, N: CONTROL, M: CONTROL):
    i, j = tl.arange(0, N), tl.arange(0, M)
    offsets = i[:, None] * M + j[None, :]
    a, b = tl.load(x + offsets), tl.load(y + offsets)
    tl.store(out + j, tl.sum(a, 0))
    tl.store(out + M + i, tl.sum(a, 1))
    tl.store(out + M + N + j, tl.max(b, 0))
    tl.store(out + 2 * M + N + i, tl.argmin(b, 1).to(tl.float32))


@pair(lambda x, y: np.full(1, x.sum() + y.max()), make=ints, out=lambda n, m: 1)
def reduced_all(x, y, out, N: CONTROL, M: CONTROL):
    offsets = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out, tl.sum(tl.load(x + offsets)) + tl.max(tl.load(y + offsets)))


@pair(lambda x, y: np.cumsum(x, 0) + np.cumsum(y[:, ::-1], 1)[:, ::-1], make=ints)
def scanned_both(x, y, out, N: CONTROL, M: CONTROL):
    offsets = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + offsets, tl.cumsum(tl.load(x + offsets), 0) + tl.cumsum(tl.load(y + offsets), 1, reverse=True))


def softmax_of(x: Array, y: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pair(softmax_of, tolerance=1e-5)
def softmax(x, y, out, N: CONTROL, M: CONTROL):
    offsets = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + offsets, tl.softmax(tl.load(x + offsets), dim=1, keep_dims=True))


@pair(lambda x, y: np.sort(x, 1))
def sorted_rows(x, y, out, N: CONTROL, M: CONTROL):
    offsets = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + offsets, tl.sort(tl.load(x + offsets)))


@pair(lambda x, y: (x.reshape(-1, len(x)) + y.T.reshape(-1, len(x))).T, make=ints)
def reshaped(x, y, out, N: CONTROL, M: CONTROL):
    i, j = tl.arange(0, N), tl.arange(0, M)
    offsets = i[:, None] * M + j[None, :]
    a, b = tl.load(x + offsets), tl.load(y + offsets)
    total = tl.reshape(a, (M, N)) + tl.reshape(tl.trans(b), (M, N))
    tl.store(out + offsets, tl.trans(total))


@pair(lambda x, y: x.T.ravel() + y.ravel() + np.arange(x.size), make=ints, out=lambda n, m: n * m)
def ravelled(x, y, out, N: CONTROL, M: CONTROL):
    i, j = tl.arange(0, N), tl.arange(0, M)
    offsets = i[:, None] * M + j[None, :]
    k = tl.arange(0, N * M)
    tl.store(out + k, tl.ravel(tl.trans(tl.load(x + offsets))) + tl.ravel(tl.load(y + offsets)) + k)


def product_case(dtype: Any, total: Any, tolerance: float, make: Callable[..., Array]) -> Case:
    def arrays(n: int, m: int) -> tuple[Array, Array, Array]:
        k = max(1, (n + m) // 2)
        return make(n, k).astype(dtype), make(k, m).astype(dtype), np.zeros((n, m), total)

    def expected(x: Array, y: Array) -> Array:
        wide = np.int64 if np.dtype(total).kind == "i" else np.float64
        return x.astype(wide) @ y.astype(wide)

    return Case(multiplied, arrays, expected, tolerance)


@jit
def multiplied(x, y, out, N: CONTROL, M: CONTROL):
    K: CONTROL = (N + M) // 2
    i, j, k = tl.arange(0, N), tl.arange(0, M), tl.arange(0, K)
    a, b = tl.load(x + i[:, None] * K + k[None, :]), tl.load(y + k[:, None] * M + j[None, :])
    tl.store(out + i[:, None] * M + j[None, :], tl.dot(a, b, input_precision="ieee", out_dtype=out.dtype.element_ty))


PAIR["dot_f32"] = product_case(np.float32, np.float32, 1e-4, floats)
PAIR["dot_f16"] = product_case(np.float16, np.float32, 1e-3, floats)
PAIR["dot_bf16"] = product_case(ml_dtypes.bfloat16, np.float32, 1e-3, floats)
PAIR["dot_i8"] = product_case(np.int8, np.int32, 0, ints)
PAIR["dot_f64"] = product_case(np.float64, np.float64, 1e-9, floats)


def problem(case: Case, sizes: tuple[int, ...], evaluates: bool = True) -> str | None:
    """Describe the failure of a case, or None."""
    x, y, out = case.arrays(*sizes)
    wanted = np.asarray(case.expected(x, y))
    constants: dict[str, Any] = dict(zip(("N", "M"), sizes, strict=False))
    args = {"x": x, "y": y, "out": out}
    module, signature = unoptimised(case.kernel, args, constants)
    run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cpu")))))
    found: dict[str, Array] = {}
    if evaluates:
        found["evaluator of TTIR"] = evaluated(module, args)
    nests = tile_loops(module.clone())
    nests.verify()
    if evaluates:
        found["evaluator of loop nests"] = evaluated(nests, args)
    native, interface, pack = machine_code(module, tuple(signature.values()), is_optimised=True)
    held = {name: guarded(array) for name, array in args.items()}
    pool.run(native, interface, pack([held[name] for name in signature]), (1, 1, 1))
    found["machine code"] = held["out"].copy()
    held.clear()
    for who, got in found.items():
        if (text := difference(got, wanted, case.tolerance)) is not None:
            return f"{who}: {text}"
    return None


def evaluated(module: Any, args: dict[str, Array]) -> Array:
    arrays = [array.copy() for array in args.values()]
    evaluate(module, None, arrays, (1,))
    return arrays[-1]


def difference(got: Array, wanted: Array, tolerance: float) -> str | None:
    if wanted.dtype != got.dtype and tolerance == 0:
        wanted = wanted.astype(got.dtype)
    if got.dtype == np.bool_ or got.dtype.kind in "iu":
        bad = got != wanted
    else:
        left, right = got.astype(np.float64), wanted.astype(np.float64)
        bad = ~(np.abs(left - right) <= tolerance * (1 + np.abs(right)))
    if not bad.any():
        return None
    position = tuple(int(index) for index in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {got.size} differ, first at {position}: {got[position]} instead of {wanted[position]}"


def cases() -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from ((name, (size,)) for name in LINE for size in LINES)
    yield from ((name, sizes) for name in PAIR for sizes in PAIRS)


def run_case(name: str, sizes: tuple[int, ...], evaluates: bool = True) -> None:
    """Raise if a case is wrong."""
    random_numbers.bit_generator.state = np.random.default_rng(sum(sizes)).bit_generator.state
    if (text := problem((LINE if name in LINE else PAIR)[name], sizes, evaluates)) is not None:
        raise AssertionError(text)


def repeat(case: tuple[Any, ...]) -> str:
    return f"python -m tests.targets.odd_tiles {case[0]} --size {size_text(case[1])}"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--fast", action="store_true", help="without the evaluator")
    args = parser.parse_args()
    return sweep(chosen(cases(), args), partial(run_case, evaluates=not args.fast), repeat, args)


if __name__ == "__main__":
    sys.exit(main())
