"""Vectors across several small dimensions: every order of lanes gives what NumPy gives."""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.cpu_run import NUMPY, compile_texts


def nest(type: str, shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...]) -> str:
    """Copy the input to a buffer, then out[target . index] = buffer[source . index], through a second buffer."""
    count = int(np.prod(shape))
    names = [f"%i{dim}" for dim in range(len(shape))]

    def line(result: str, strides: tuple[int, ...]) -> str:
        text = f"%{result}z = arith.constant 0 : i32\n"
        total = f"%{result}z"
        for dim, stride in enumerate(strides):
            if stride == 0:
                text += f"%{result}{dim} = arith.addi {total}, %{result}z : i32\n"
                total = f"%{result}{dim}"
                continue
            text += f"%{result}s{dim} = arith.constant {stride} : i32\n"
            text += f"%{result}m{dim} = arith.muli {names[dim]}, %{result}s{dim} : i32\n"
            text += f"%{result}{dim} = arith.addi {total}, %{result}m{dim} : i32\n"
            total = f"%{result}{dim}"
        return text

    last = len(shape) - 1
    block = ", ".join(f"{name}: i32" for name in names)
    listed = ", ".join(map(str, shape))
    return f"""tt.func public @k(%in: !tt.ptr<{type}>, %out: !tt.ptr<{type}>) {{
      %a = ttc.alloc : !ttc.buf<{count}x{type}>
      %b = ttc.alloc : !ttc.buf<{count}x{type}>
      ttc.nest [{count}] {{
      ^bb0(%i: i32):
        %p = tt.addptr %in, %i : !tt.ptr<{type}>, i32
        %v = tt.load %p : !tt.ptr<{type}>
        ttc.write %v, %a[%i] : !ttc.buf<{count}x{type}>
        ttc.end
      }}
      ttc.nest [{listed}] {{
      ^bb0({block}):
        {line("x", source)}
        {line("y", target)}
        %v = ttc.read %a[%x{last}] : !ttc.buf<{count}x{type}>
        ttc.write %v, %b[%y{last}] : !ttc.buf<{count}x{type}>
        ttc.end
      }}
      ttc.nest [{count}] {{
      ^bb0(%i: i32):
        %p = tt.addptr %out, %i : !tt.ptr<{type}>, i32
        %v = ttc.read %b[%i] : !ttc.buf<{count}x{type}>
        tt.store %p, %v : !tt.ptr<{type}>
        ttc.end
      }}
      tt.return
    }}"""


TYPES = ["f32", "i8", "i1", "f64", "bf16", "i64"]


@pytest.mark.parametrize(
    ("shape", "source", "target"),
    [
        ((64, 2, 2), (4, 1, 2), (4, 2, 1)),  # two bits exchanged
        ((64, 2), (1, 0), (2, 1)),  # each element twice
        ((32, 2, 4), (4, 0, 1), (8, 4, 1)),  # rows of four repeated
        ((128, 2), (2, -1), (2, 1)),  # a negative step, from behind the start
        ((2, 128), (1, 2), (128, 1)),  # even elements, then odd ones
        ((4, 4), (4, 1), (4, 1)),  # less than one vector of small types
        ((16, 2, 2, 2, 2), (16, 1, 2, 4, 8), (16, 8, 4, 2, 1)),  # four bits reversed
        ((8, 8), (1, 8), (8, 1)),  # a transposition: too far apart, lanes one by one
    ],
)
def test_lanes_across_dimensions(shape: tuple, source: tuple, target: tuple) -> None:
    count = int(np.prod(shape))
    index = np.indices(shape).reshape(len(shape), -1)
    reads, writes = np.tensordot(source, index, 1), np.tensordot(target, index, 1)
    start = max(0, -int(reads.min()))
    texts = [nest(type, shape, source, target) for type in TYPES]
    # keep the reads inside of the buffer
    texts = [text.replace("%xz = arith.constant 0", f"%xz = arith.constant {start}") for text in texts]
    for type, kernel in zip(TYPES, compile_texts(texts), strict=True):
        values = np.random.default_rng(1).integers(0, 2 if type == "i1" else 100, count).astype(NUMPY[type])
        out = np.zeros_like(values)
        assert kernel(values, out) == 0
        expected = np.zeros_like(values)
        expected[writes] = values[reads + start]
        np.testing.assert_array_equal(out, expected, type)


@tilework.jit
def sort_kernel(out, x, COLS: tl.constexpr, DESCENDING: tl.constexpr):
    row = tl.program_id(0) * COLS + tl.arange(0, COLS)
    tl.store(out + row, tl.sort(tl.load(x + row), descending=DESCENDING))


@tilework.jit
def flip_kernel(out, x, ROWS: tl.constexpr, COLS: tl.constexpr):
    index = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out + index, tl.flip(tl.load(x + index), 0))


SORTS = [
    (dtype, columns, way) for dtype in ("f4", "f8", "i1", "u2", "i8") for columns in (2, 8, 64) for way in (False, True)
]
LONG_SORTS = [("f4", 512, False), ("f8", 512, True), ("u2", 512, False), ("i8", 512, True)]  # a second to compile, each


@pytest.mark.parametrize(("dtype", "columns", "descending"), SORTS + LONG_SORTS)
def test_sort(dtype: str, columns: int, descending: bool) -> None:
    x = np.random.default_rng(columns).integers(0, 120, (3, columns)).astype(dtype)
    out = np.empty_like(x)
    sort_kernel[(3,)](out, x, COLS=columns, DESCENDING=descending)
    expected = np.sort(x, axis=1)
    np.testing.assert_array_equal(out, expected[:, ::-1] if descending else expected)


@pytest.mark.parametrize(("rows", "columns"), [(16, 1), (8, 2), (4, 4), (2, 64)])
def test_flip_of_short_rows(rows: int, columns: int) -> None:
    x = np.arange(rows * columns, dtype="i4").reshape(rows, columns)
    out = np.empty_like(x)
    flip_kernel[(1,)](out, x, ROWS=rows, COLS=columns)
    np.testing.assert_array_equal(out, x[::-1])
