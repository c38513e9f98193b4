"""Reductions in nests: along and across the vector, several operands, any combination."""

import numpy as np
import pytest

from tests.targets.cpu_run import NUMPY, compile_text, compile_texts

COMBINES = {
    "addf": ("arith.addf", np.add),
    "mulf": ("arith.mulf", np.multiply),
    "maximumf": ("arith.maximumf", np.maximum),
    "minimumf": ("arith.minimumf", np.minimum),
    "maxnumf": ("arith.maxnumf", np.fmax),
    "minnumf": ("arith.minnumf", np.fmin),
    "addi": ("arith.addi", np.add),
    "muli": ("arith.muli", np.multiply),
    "andi": ("arith.andi", np.bitwise_and),
    "ori": ("arith.ori", np.bitwise_or),
    "xori": ("arith.xori", np.bitwise_xor),
    "maxsi": ("arith.maxsi", np.maximum),
    "minsi": ("arith.minsi", np.minimum),
}


def kernel_text(type: str, shape: tuple[int, int], axis: int, combine: str) -> str:
    """out = reduce(src, axis) of a row-major matrix."""
    kept = "ij"[1 - axis]
    size = shape[1 - axis]
    return f"""tt.func public @k(%src: !tt.ptr<{type}>, %out: !tt.ptr<{type}>) {{
      %w = arith.constant {shape[1]} : i32
      %acc = ttc.alloc : !ttc.buf<{size}x{type}>
      ttc.nest [{shape[0]}, {shape[1]}] {{
      ^bb0(%i: i32, %j: i32):
        %a = arith.muli %i, %w : i32
        %x = arith.addi %a, %j : i32
        %p = tt.addptr %src, %x : !tt.ptr<{type}>, i32
        %v = tt.load %p : !tt.ptr<{type}>
        ttc.reduce %v into %acc[%{kept}] {{
        ^bb0(%l: {type}, %r: {type}):
          {combine}
          ttc.yield %s : {type}
        }} : !ttc.buf<{size}x{type}>
        ttc.end
      }}
      ttc.nest [{size}] {{
      ^bb0(%i: i32):
        %v = ttc.read %acc[%i] : !ttc.buf<{size}x{type}>
        %p = tt.addptr %out, %i : !tt.ptr<{type}>, i32
        tt.store %p, %v : !tt.ptr<{type}>
        ttc.end
      }}
      tt.return
    }}"""


def data(type: str, shape: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(1)
    if np.dtype(NUMPY[type]).kind == "i":
        return rng.integers(-50, 50, shape).astype(NUMPY[type])
    return rng.integers(-4, 5, shape).astype(NUMPY[type])


SHAPES = [(4, 64), (16, 16), (64, 4), (8, 1), (1, 32), (3, 40), (256, 128)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["addf", "maximumf", "addi"])
def test_shapes(name: str, axis: int) -> None:
    op, function = COMBINES[name]
    type = "f32" if name.endswith("f") else "i32"
    kernels = compile_texts(kernel_text(type, shape, axis, f"%s = {op} %l, %r : {type}") for shape in SHAPES)
    for shape, kernel in zip(SHAPES, kernels, strict=True):
        source, out = data(type, shape), np.zeros(shape[1 - axis], NUMPY[type])
        kernel(source, out)
        np.testing.assert_array_equal(out, function.reduce(source, axis=axis), str(shape))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINES)
def test_combinations(name: str, axis: int) -> None:
    op, function = COMBINES[name]
    types = ("f32", "f64", "f16", "bf16") if name.endswith("f") else ("i8", "i32", "i64")
    kernels = compile_texts(kernel_text(type, (8, 32), axis, f"%s = {op} %l, %r : {type}") for type in types)
    for type, kernel in zip(types, kernels, strict=True):
        source = data(type, (8, 32))
        if name in ("mulf",):
            source = np.sign(source.astype(np.float32)).astype(source.dtype)
        out = np.zeros(source.shape[1 - axis], NUMPY[type])
        kernel(source, out)
        np.testing.assert_array_equal(out, function.reduce(source, axis=axis, dtype=source.dtype), type)


@pytest.mark.parametrize("name", ["maxnumf", "minnumf", "maximumf", "minimumf"])
def test_nan_rules(name: str) -> None:
    op, function = COMBINES[name]
    source = np.ones((4, 64), np.float32)
    source[0, 5] = source[2] = np.nan
    source[3] = -np.inf
    out = np.zeros(4, np.float32)
    compile_text(kernel_text("f32", (4, 64), 1, f"%s = {op} %l, %r : f32"))(source, out)
    np.testing.assert_array_equal(out, function.reduce(source, axis=1))


def test_negative_zero_stays_negative() -> None:
    out = np.zeros(4, np.float32)
    compile_text(kernel_text("f32", (4, 64), 1, "%s = arith.addf %l, %r : f32"))(
        np.full((4, 64), -0.0, np.float32), out
    )
    assert np.signbit(out).all()


@pytest.mark.parametrize("type", ["f32", "i32", "f16"])
def test_a_combination_without_a_neutral_element(type: str) -> None:
    """2 * a * b: every combination doubles."""
    kind = "f" if type.startswith("f") else "i"
    combine = f"%t = arith.mul{kind} %l, %r : {type}\n%s = arith.add{kind} %t, %t : {type}\n"
    source = np.ones((4, 32), NUMPY[type])
    out = np.zeros(4, NUMPY[type])
    compile_text(kernel_text(type, (4, 32), 1, combine))(source, out)
    expected = {"f32": 2.0**31, "i32": -(2**31), "f16": np.inf}[type]
    np.testing.assert_array_equal(out, np.full(4, expected, NUMPY[type]))


def argmax_text(rows: int, columns: int, axis: int) -> str:
    kept, along = ("i", "j") if axis == 1 else ("j", "i")
    size = rows if axis == 1 else columns
    return f"""tt.func public @k(%src: !tt.ptr<f32>, %best: !tt.ptr<f32>, %at: !tt.ptr<i32>, %n: i32) {{
      %w = arith.constant {columns} : i32
      %low = arith.constant 0xFF800000 : f32
      %a0 = ttc.alloc : !ttc.buf<{size}xf32>
      %a1 = ttc.alloc : !ttc.buf<{size}xi32>
      ttc.nest [{rows}, {columns}] {{
      ^bb0(%i: i32, %j: i32):
        %a = arith.muli %i, %w : i32
        %x = arith.addi %a, %j : i32
        %m = arith.cmpi slt, %j, %n : i32
        %p = tt.addptr %src, %x : !tt.ptr<f32>, i32
        %v = tt.load %p, %m, %low : !tt.ptr<f32>
        ttc.reduce %v, %{along} into %a0, %a1[%{kept}] {{
        ^bb0(%l: f32, %lk: i32, %r: f32, %rk: i32):
          %gt = arith.cmpf ogt, %l, %r : f32
          %eq = arith.cmpf oeq, %l, %r : f32
          %first = arith.cmpi slt, %lk, %rk : i32
          %tie = arith.andi %eq, %first : i1
          %left = arith.ori %gt, %tie : i1
          %s = arith.select %left, %l, %r : f32
          %k = arith.select %left, %lk, %rk : i32
          ttc.yield %s, %k : f32, i32
        }} : !ttc.buf<{size}xf32>, !ttc.buf<{size}xi32>
        ttc.end
      }}
      ttc.nest [{size}] {{
      ^bb0(%i: i32):
        %v = ttc.read %a0[%i] : !ttc.buf<{size}xf32>
        %k = ttc.read %a1[%i] : !ttc.buf<{size}xi32>
        %p = tt.addptr %best, %i : !tt.ptr<f32>, i32
        tt.store %p, %v : !tt.ptr<f32>
        %q = tt.addptr %at, %i : !tt.ptr<i32>, i32
        tt.store %q, %k : !tt.ptr<i32>
        ttc.end
      }}
      tt.return
    }}"""


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("columns", [1, 4, 16, 128])
def test_argmax(columns: int, axis: int) -> None:
    """Ties go to the first."""
    rows = 8
    source = np.random.default_rng(3).integers(0, 6, (rows, columns)).astype(np.float32)
    kernel = compile_text(argmax_text(rows, columns, axis))
    for n in {columns, max(1, columns - 3)}:
        seen = np.where(np.arange(columns) < n, source, -np.inf)
        size = rows if axis == 1 else columns
        best, at = np.zeros(size, np.float32), np.zeros(size, np.int32)
        kernel(source, best, at, n)
        np.testing.assert_array_equal(best, seen.max(axis=axis))
        np.testing.assert_array_equal(at, seen.argmax(axis=axis))


def test_rows_and_columns_of_one_nest() -> None:
    """Two reductions along different dimensions, and a store, in one nest."""
    text = """tt.func public @k(%src: !tt.ptr<f32>, %rows: !tt.ptr<f32>, %columns: !tt.ptr<f32>, %copy: !tt.ptr<f32>) {
      %w = arith.constant 32 : i32
      %a0 = ttc.alloc : !ttc.buf<8xf32>
      %a1 = ttc.alloc : !ttc.buf<32xf32>
      ttc.nest [8, 32] {
      ^bb0(%i: i32, %j: i32):
        %a = arith.muli %i, %w : i32
        %x = arith.addi %a, %j : i32
        %p = tt.addptr %src, %x : !tt.ptr<f32>, i32
        %v = tt.load %p : !tt.ptr<f32>
        %q = tt.addptr %copy, %x : !tt.ptr<f32>, i32
        tt.store %q, %v : !tt.ptr<f32>
        ttc.reduce %v into %a0[%i] {
        ^bb0(%l: f32, %r: f32):
          %s = arith.addf %l, %r : f32
          ttc.yield %s : f32
        } : !ttc.buf<8xf32>
        ttc.reduce %v into %a1[%j] {
        ^bb0(%l: f32, %r: f32):
          %s = arith.maximumf %l, %r : f32
          ttc.yield %s : f32
        } : !ttc.buf<32xf32>
        ttc.end
      }
      ttc.nest [8] {
      ^bb0(%i: i32):
        %v = ttc.read %a0[%i] : !ttc.buf<8xf32>
        %p = tt.addptr %rows, %i : !tt.ptr<f32>, i32
        tt.store %p, %v : !tt.ptr<f32>
        ttc.end
      }
      ttc.nest [32] {
      ^bb0(%i: i32):
        %v = ttc.read %a1[%i] : !ttc.buf<32xf32>
        %p = tt.addptr %columns, %i : !tt.ptr<f32>, i32
        tt.store %p, %v : !tt.ptr<f32>
        ttc.end
      }
      tt.return
    }"""
    source = data("f32", (8, 32))
    rows, columns, copy = np.zeros(8, np.float32), np.zeros(32, np.float32), np.zeros((8, 32), np.float32)
    compile_text(text)(source, rows, columns, copy)
    np.testing.assert_array_equal(rows, source.sum(axis=1))
    np.testing.assert_array_equal(columns, source.max(axis=0))
    np.testing.assert_array_equal(copy, source)


def test_a_whole_row_into_a_scalar() -> None:
    text = """tt.func public @k(%src: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
      %zero = arith.constant 0.0 : f32
      %acc = ttc.alloc : !ttc.buf<f32>
      ttc.nest [1024] {
      ^bb0(%i: i32):
        %m = arith.cmpi slt, %i, %n : i32
        %p = tt.addptr %src, %i : !tt.ptr<f32>, i32
        %v = tt.load %p, %m, %zero : !tt.ptr<f32>
        ttc.reduce %v into %acc[] {
        ^bb0(%l: f32, %r: f32):
          %s = arith.addf %l, %r : f32
          ttc.yield %s : f32
        } : !ttc.buf<f32>
        ttc.end
      }
      %v = ttc.read %acc[] : !ttc.buf<f32>
      tt.store %out, %v : !tt.ptr<f32>
      tt.return
    }"""
    kernel = compile_text(text)
    source = np.arange(1024, dtype=np.float32)
    for n in (0, 1, 15, 16, 500, 1024):
        out = np.zeros(1, np.float32)
        kernel(source, out, n)
        assert out[0] == source[:n].sum()


def test_a_combination_with_a_branch_runs_on_scalars() -> None:
    combine = """%c = arith.cmpf ogt, %l, %r : f32
          %s = scf.if %c -> (f32) {
            scf.yield %l : f32
          } else {
            scf.yield %r : f32
          }"""
    source, out = data("f32", (4, 32)), np.zeros(4, np.float32)
    compile_text(kernel_text("f32", (4, 32), 1, combine))(source, out)
    np.testing.assert_array_equal(out, source.max(axis=1))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dimensions(axis: int) -> None:
    shape = (4, 8, 16)
    kept = [d for d in range(3) if d != axis]
    sizes = [shape[d] for d in kept]
    names = "ijk"
    index = ", ".join(f"%{names[d]}" for d in kept)
    buffer = f"!ttc.buf<{sizes[0]}x{sizes[1]}xi32>"
    text = f"""tt.func public @k(%src: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
      %c8 = arith.constant 8 : i32
      %c16 = arith.constant 16 : i32
      %width = arith.constant {sizes[1]} : i32
      %acc = ttc.alloc : {buffer}
      ttc.nest [4, 8, 16] {{
      ^bb0(%i: i32, %j: i32, %k: i32):
        %a = arith.muli %i, %c8 : i32
        %b = arith.addi %a, %j : i32
        %c = arith.muli %b, %c16 : i32
        %x = arith.addi %c, %k : i32
        %p = tt.addptr %src, %x : !tt.ptr<i32>, i32
        %v = tt.load %p : !tt.ptr<i32>
        ttc.reduce %v into %acc[{index}] {{
        ^bb0(%l: i32, %r: i32):
          %s = arith.addi %l, %r : i32
          ttc.yield %s : i32
        }} : {buffer}
        ttc.end
      }}
      ttc.nest [{sizes[0]}, {sizes[1]}] {{
      ^bb0(%i: i32, %j: i32):
        %v = ttc.read %acc[%i, %j] : {buffer}
        %a = arith.muli %i, %width : i32
        %x = arith.addi %a, %j : i32
        %p = tt.addptr %out, %x : !tt.ptr<i32>, i32
        tt.store %p, %v : !tt.ptr<i32>
        ttc.end
      }}
      tt.return
    }}"""
    source = np.arange(512, dtype=np.int32).reshape(shape)
    out = np.zeros(sizes, np.int32)
    compile_text(text)(source, out)
    np.testing.assert_array_equal(out, source.sum(axis=axis))


@pytest.mark.parametrize("columns", [4, 16, 128])
def test_order_is_kept_where_it_matters(columns: int) -> None:
    """Affine maps compose in order: (a, b) then (c, d) is (a * c, b * c + d)."""
    text = argmax_text(8, columns, 1).replace("f32", "i32").replace("0xFF800000", "0")
    start, end = text.index("%gt ="), text.index("ttc.yield")
    compose = "%s = arith.muli %l, %r : i32\n%t = arith.muli %lk, %r : i32\n%k = arith.addi %t, %rk : i32\n"
    kernel = compile_text(text[:start] + compose + text[end:])
    source = np.random.default_rng(0).integers(-3, 4, (8, columns)).astype(np.int32)
    scale, shift = np.zeros(8, np.int32), np.zeros(8, np.int32)
    kernel(source, scale, shift, columns)
    for row in range(8):
        a, b = 1, 0
        for column in range(columns):
            a, b = a * int(source[row, column]), b * int(source[row, column]) + column
        assert scale[row] == wrapped(a) and shift[row] == wrapped(b)


def wrapped(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31
