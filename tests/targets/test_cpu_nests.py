"""Nests: every way to reach memory, every mask, every element type."""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.cpu_run import NUMPY, compile_text, compile_texts
from tilework.targets.cpu.target import HostTarget

TYPES = ["f16", "bf16", "f32", "f64", "f8E5M2", "i1", "i8", "i16", "i32", "i64"]


def array(type: str, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if type == "i1":
        return rng.integers(0, 2, count).astype(bool)
    return rng.integers(-100, 100, count).astype(NUMPY[type])


def copy_kernel(type: str, size: int, index: str, mask: str = "", other: str = "", target: str = "") -> str:
    """out[i] = src[index(i)], masked by `mask`; `%n` and `%k` are arguments."""
    masked = ", %m" if mask else ""
    return f"""tt.func public @k(%src: !tt.ptr<{type}>, %out: !tt.ptr<{type}>, %n: i32, %k: i32, %o: {type}) {{
      %c2 = arith.constant 2 : i32
      %c1 = arith.constant 1 : i32
      %c5 = arith.constant 5 : i32
      %c0 = arith.constant 0 : i32
      %last = arith.constant {size - 1} : i32
      ttc.nest [{size}] {{
      ^bb0(%i: i32):
        {index}
        {mask}
        %p = tt.addptr %src, %x : !tt.ptr<{type}>, i32
        %v = tt.load %p{masked}{", %o" if mask else ""} : !tt.ptr<{type}>
        {target or "%q = tt.addptr %out, %i : !tt.ptr<" + type + ">, i32"}
        tt.store %q, %v{masked if other else ""} : !tt.ptr<{type}>
        ttc.end
      }}
      tt.return
    }}"""


INDICES = {
    "contiguous": ("%x = arith.addi %i, %k : i32", lambda i, k: i + k),
    "reversed": ("%x = arith.subi %last, %i : i32", lambda i, k: i[::-1]),
    "strided": ("%x = arith.muli %i, %c2 : i32", lambda i, k: 2 * i),
    "run-time stride": ("%x = arith.muli %i, %k : i32", lambda i, k: k * i),
    "uniform": ("%x = arith.addi %k, %c0 : i32", lambda i, k: 0 * i + k),
    "scattered": ("%y = arith.muli %i, %i : i32\n%x = arith.remsi %y, %c5 : i32", lambda i, k: i * i % 5),
}
MASKS = {
    "none": ("", lambda i, n: i >= 0),
    "prefix": ("%m = arith.cmpi slt, %i, %n : i32", lambda i, n: i < n),
    "prefix, at most": ("%m = arith.cmpi sle, %i, %n : i32", lambda i, n: i <= n),
    "suffix": ("%m = arith.cmpi sge, %i, %n : i32", lambda i, n: i >= n),
    "mirrored": ("%m = arith.cmpi sgt, %n, %i : i32", lambda i, n: n > i),
    "window": (
        "%a = arith.cmpi slt, %i, %n : i32\n%b = arith.cmpi sgt, %i, %c5 : i32\n%m = arith.andi %a, %b : i1",
        lambda i, n: (i < n) & (i > 5),
    ),
    "uniform": ("%m = arith.cmpi slt, %c5, %n : i32", lambda i, n: (n > 5) & (i >= 0)),
    "odd": ("%a = arith.remsi %i, %c2 : i32\n%m = arith.cmpi eq, %a, %c1 : i32", lambda i, n: i % 2 == 1),
}


@pytest.mark.parametrize("index", INDICES)
def test_loads_and_stores(index: str) -> None:
    """Elements that are masked off read as `other`, and memory beyond the mask is neither read nor written."""
    size, k = 128, 3
    text, positions = INDICES[index]
    source, i = array("f32", 400), np.arange(size)
    both = [{}, {"other": "store"}]
    texts = [copy_kernel("f32", size, text, mask, **given) for mask, _ in MASKS.values() for given in both]
    kernels = iter(compile_texts(texts))
    for mask, (_, condition) in MASKS.items():
        loads, stores = next(kernels), next(kernels)
        for n in (0, 1, 5, 16, 37, 64, 127, 128, 200):
            on = condition(i, n) & (i >= 0)
            expected = np.where(on, source[positions(i, k)], np.float32(-7))
            out = np.zeros(size, np.float32)
            loads(source, out, n, k, -7.0)
            np.testing.assert_array_equal(out, expected, f"loads, {mask}, {n}")
            out = np.full(size, 5, np.float32)
            stores(source, out, n, k, -7.0)
            np.testing.assert_array_equal(out, np.where(on, expected, 5), f"stores, {mask}, {n}")


@pytest.mark.parametrize("target", ["reversed", "strided"])
@pytest.mark.parametrize("mask", ["none", "prefix", "odd"])
def test_stores_that_are_not_contiguous(target: str, mask: str) -> None:
    size = 64
    position = {"reversed": "%t = arith.subi %last, %i : i32", "strided": "%t = arith.muli %i, %c2 : i32"}[target]
    where = f"{position}\n%q = tt.addptr %out, %t : !tt.ptr<i16>, i32"
    mask_text, condition = MASKS[mask]
    kernel = compile_text(copy_kernel("i16", size, INDICES["contiguous"][0], mask_text, other="x", target=where))
    source, i = array("i16", 100), np.arange(size)
    for n in (0, 7, 64):
        out, expected = np.zeros(128, np.int16), np.zeros(128, np.int16)
        kernel(source, out, n, 3, 0)
        on = condition(i, n)
        expected[(size - 1 - i if target == "reversed" else 2 * i)[on]] = source[(i + 3)[on]]
        np.testing.assert_array_equal(out, expected)


SIZES = [1, 2, 3, 4, 8, 12, 24, 64, 100, 1024]


@pytest.mark.parametrize("type", TYPES)
def test_every_type_and_size(type: str) -> None:
    index, mask = INDICES["contiguous"][0], MASKS["prefix"][0]
    kernels = compile_texts(copy_kernel(type, size, index, mask, other="x") for size in SIZES)
    for size, kernel in zip(SIZES, kernels, strict=True):
        source = array(type, size + 8)
        for n in {0, 1, size // 2, size - 1, size}:
            out = np.zeros(size, NUMPY[type])
            kernel(source, out, n, 3, 1)
            expected = np.zeros(size, NUMPY[type])
            expected[:n] = source[3 : 3 + n]
            np.testing.assert_array_equal(out, expected, f"{n} of {size}")


@pytest.mark.parametrize("type", TYPES)
def test_buffers_hold_every_type(type: str) -> None:
    """Through a buffer, transposed: the second nest reads columns."""
    text = f"""tt.func public @k(%src: !tt.ptr<{type}>, %out: !tt.ptr<{type}>) {{
      %w = arith.constant 16 : i32
      %h = arith.constant 32 : i32
      %b = ttc.alloc : !ttc.buf<32x16x{type}>
      ttc.nest [32, 16] {{
      ^bb0(%i: i32, %j: i32):
        %a = arith.muli %i, %w : i32
        %x = arith.addi %a, %j : i32
        %p = tt.addptr %src, %x : !tt.ptr<{type}>, i32
        %v = tt.load %p : !tt.ptr<{type}>
        ttc.write %v, %b[%i, %j] : !ttc.buf<32x16x{type}>
        ttc.end
      }}
      ttc.nest [16, 32] {{
      ^bb0(%i: i32, %j: i32):
        %v = ttc.read %b[%j, %i] : !ttc.buf<32x16x{type}>
        %a = arith.muli %i, %h : i32
        %x = arith.addi %a, %j : i32
        %p = tt.addptr %out, %x : !tt.ptr<{type}>, i32
        tt.store %p, %v : !tt.ptr<{type}>
        ttc.end
      }}
      tt.return
    }}"""
    source, out = array(type, 512), np.zeros(512, NUMPY[type])
    compile_text(text)(source, out)
    np.testing.assert_array_equal(out.reshape(16, 32), source.reshape(32, 16).T)


def test_pointers_in_buffers() -> None:
    text = """tt.func public @k(%src: !tt.ptr<i32>, %out: !tt.ptr<i32>) {
      %b = ttc.alloc : !ttc.buf<32x!tt.ptr<i32>>
      %c3 = arith.constant 3 : i32
      ttc.nest [32] {
      ^bb0(%i: i32):
        %x = arith.muli %i, %c3 : i32
        %p = tt.addptr %src, %x : !tt.ptr<i32>, i32
        ttc.write %p, %b[%i] : !ttc.buf<32x!tt.ptr<i32>>
        ttc.end
      }
      ttc.nest [32] {
      ^bb0(%i: i32):
        %p = ttc.read %b[%i] : !ttc.buf<32x!tt.ptr<i32>>
        %v = tt.load %p : !tt.ptr<i32>
        %q = tt.addptr %out, %i : !tt.ptr<i32>, i32
        tt.store %q, %v : !tt.ptr<i32>
        ttc.end
      }
      tt.return
    }"""
    source, out = array("i32", 100), np.zeros(32, np.int32)
    compile_text(text)(source, out)
    np.testing.assert_array_equal(out, source[:96:3])


def test_lines_are_exact_where_they_wrap_around() -> None:
    """`i + k` used as a number: sign extension and comparison see the wrap-around of each lane."""
    text = """tt.func public @k(%out: !tt.ptr<i64>, %less: !tt.ptr<i32>, %k: i32) {
      %zero = arith.constant 0 : i32
      ttc.nest [64] {
      ^bb0(%i: i32):
        %x = arith.addi %i, %k : i32
        %y = arith.extsi %x : i32 to i64
        %q = tt.addptr %out, %i : !tt.ptr<i64>, i32
        tt.store %q, %y : !tt.ptr<i64>
        %c = arith.cmpi slt, %x, %zero : i32
        %d = arith.extui %c : i1 to i32
        %r = tt.addptr %less, %i : !tt.ptr<i32>, i32
        tt.store %r, %d : !tt.ptr<i32>
        ttc.end
      }
      tt.return
    }"""
    kernel = compile_text(text)
    for k in (0, -5, 2**31 - 10):
        out, less = np.zeros(64, np.int64), np.zeros(64, np.int32)
        kernel(out, less, k)
        expected = np.arange(64, dtype=np.int32) + np.int32(k)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(less, expected < 0)


def test_rows_share_what_does_not_depend_on_columns() -> None:
    """A 2-D tile with row and column masks, scaled by a value per row that is read from a buffer."""
    text = """tt.func public @k(%src: !tt.ptr<f32>, %scale: !tt.ptr<f32>, %out: !tt.ptr<f32>, %m: i32, %n: i32) {
      %row = ttc.alloc : !ttc.buf<8xf32>
      ttc.nest [8] {
      ^bb0(%i: i32):
        %p = tt.addptr %scale, %i : !tt.ptr<f32>, i32
        %v = tt.load %p : !tt.ptr<f32>
        %w = math.exp %v : f32
        ttc.write %w, %row[%i] : !ttc.buf<8xf32>
        ttc.end
      }
      ttc.nest [8, 64] {
      ^bb0(%i: i32, %j: i32):
        %s = ttc.read %row[%i] : !ttc.buf<8xf32>
        %a = arith.muli %i, %n : i32
        %x = arith.addi %a, %j : i32
        %in_rows = arith.cmpi slt, %i, %m : i32
        %in_columns = arith.cmpi slt, %j, %n : i32
        %ok = arith.andi %in_rows, %in_columns : i1
        %p = tt.addptr %src, %x : !tt.ptr<f32>, i32
        %v = tt.load %p, %ok : !tt.ptr<f32>
        %y = arith.mulf %v, %s : f32
        %q = tt.addptr %out, %x : !tt.ptr<f32>, i32
        tt.store %q, %y, %ok : !tt.ptr<f32>
        ttc.end
      }
      tt.return
    }"""
    kernel = compile_text(text)
    scale = np.linspace(-1, 1, 8).astype(np.float32)
    for m, n in ((8, 64), (5, 37), (8, 16), (1, 1), (3, 63)):
        source = array("f32", m * n)
        out = np.zeros(m * n + 4, np.float32)
        kernel(source, scale, out, m, n)
        expected = source.reshape(m, n) * np.exp(scale[:m])[:, None]
        np.testing.assert_allclose(out[: m * n].reshape(m, n), expected, rtol=1e-6)
        assert (out[m * n :] == 0).all()


def test_a_buffer_updated_in_place() -> None:
    """Reads of a buffer that the nest also writes stay in their place."""
    text = """tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %b = ttc.alloc : !ttc.buf<4x16xi32>
      ttc.nest [4, 16] {
      ^bb0(%i: i32, %j: i32):
        %x = arith.addi %i, %j : i32
        ttc.write %x, %b[%i, %j] : !ttc.buf<4x16xi32>
        ttc.end
      }
      scf.for %t = %zero to %n step %one : i32 {
        ttc.nest [4, 16] {
        ^bb0(%i: i32, %j: i32):
          %x = ttc.read %b[%i, %j] : !ttc.buf<4x16xi32>
          %y = arith.addi %x, %t : i32
          ttc.write %y, %b[%i, %j] : !ttc.buf<4x16xi32>
          ttc.end
        }
      }
      ttc.nest [4, 16] {
      ^bb0(%i: i32, %j: i32):
        %x = ttc.read %b[%i, %j] : !ttc.buf<4x16xi32>
        %w = arith.constant 16 : i32
        %a = arith.muli %i, %w : i32
        %s = arith.addi %a, %j : i32
        %q = tt.addptr %out, %s : !tt.ptr<i32>, i32
        tt.store %q, %x : !tt.ptr<i32>
        ttc.end
      }
      tt.return
    }"""
    out = np.zeros(64, np.int32)
    compile_text(text)(out, 5)
    np.testing.assert_array_equal(out.reshape(4, 16), np.add.outer(np.arange(4), np.arange(16)) + 10)


def test_tables_and_scalar_reads() -> None:
    text = """tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
      %t = ttc.table dense<[5, 6, 7, 8]> : tensor<4xi32> into !ttc.buf<4xi32>
      %x = ttc.read %t[%n] : !ttc.buf<4xi32>
      tt.store %out, %x : !tt.ptr<i32>
      tt.return
    }"""
    out = np.zeros(1, np.int32)
    compile_text(text)(out, 2)
    assert out[0] == 7


def test_buffers_with_separate_lives_share_memory() -> None:
    def nest(buffer: str, op: str) -> str:
        return f"ttc.nest [1024] {{\n^bb0(%i: i32):\n{op.replace('$', buffer)}\nttc.end\n}}\n"

    write = "ttc.write %i, $[%i] : !ttc.buf<1024xi32>"
    read = (
        "%v = ttc.read $[%i] : !ttc.buf<1024xi32>\n%p = tt.addptr %out, %i : !tt.ptr<i32>, i32\n"
        "tt.store %p, %v : !tt.ptr<i32>"
    )
    allocs = "".join(f"%b{k} = ttc.alloc : !ttc.buf<1024xi32>\n" for k in range(3))
    body = allocs + "".join(nest(f"%b{k}", write) + nest(f"%b{k}", read) for k in range(3))
    kernel = compile_text(f"tt.func public @k(%out: !tt.ptr<i32>) {{\n{body}tt.return\n}}")
    assert kernel.arena_bytes == 64 + 4096
    out = np.zeros(1024, np.int32)
    kernel(out)
    np.testing.assert_array_equal(out, np.arange(1024))


def test_code_does_not_grow_with_the_tile() -> None:
    texts = [
        compile_text(copy_kernel("f32", size, INDICES["strided"][0], MASKS["prefix"][0])).text for size in (1024, 16384)
    ]
    assert len(texts[1]) < len(texts[0]) * 1.05


def test_equal_programs_give_equal_text() -> None:
    text = copy_kernel("f32", 64, INDICES["scattered"][0], MASKS["window"][0])
    assert compile_text(text).text == compile_text(text).text


def test_buffers_of_one_nest_do_not_share_memory() -> None:
    """The reversed copy reads elements of the old buffer after it has written others of the new one."""
    text = """tt.func public @k(%out: !tt.ptr<i32>) {
      %last = arith.constant 63 : i32
      %a = ttc.alloc : !ttc.buf<64xi32>
      %b = ttc.alloc : !ttc.buf<64xi32>
      ttc.nest [64] {
      ^bb0(%i: i32):
        ttc.write %i, %a[%i] : !ttc.buf<64xi32>
        ttc.end
      }
      ttc.nest [64] {
      ^bb0(%i: i32):
        %r = arith.subi %last, %i : i32
        %v = ttc.read %a[%r] : !ttc.buf<64xi32>
        ttc.write %v, %b[%i] : !ttc.buf<64xi32>
        ttc.end
      }
      ttc.nest [64] {
      ^bb0(%i: i32):
        %v = ttc.read %b[%i] : !ttc.buf<64xi32>
        %p = tt.addptr %out, %i : !tt.ptr<i32>, i32
        tt.store %p, %v : !tt.ptr<i32>
        ttc.end
      }
      tt.return
    }"""
    out = np.zeros(64, np.int32)
    compile_text(text)(out)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])


def test_line_tables() -> None:
    """Instructions carry the line of their op, in nests too."""
    text = """tt.func public @k(%out: !tt.ptr<i32>) {
      ttc.nest [64] {
      ^bb0(%i: i32):
        %v = arith.muli %i, %i : i32 loc("k.py":7:3)
        %p = tt.addptr %out, %i : !tt.ptr<i32>, i32 loc("k.py":8:3)
        tt.store %p, %v : !tt.ptr<i32> loc("k.py":8:3)
        ttc.end loc("k.py":8:3)
      } loc("k.py":7:3)
      tt.return loc("k.py":9:1)
    } loc("k.py":5:1)"""
    kernel = compile_text(text, lines=True)
    assert 'DIFile(filename: "k.py"' in kernel.text and "DILocation(line: 7, column: 3" in kernel.text
    out = np.zeros(64, np.int32)
    kernel(out)
    np.testing.assert_array_equal(out, np.arange(64) ** 2)


FETCHES = HostTarget.detect().stream_ahead > 0


@tilework.jit
def running_sums(x, out, step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)
    tl.store(out + row * COLUMNS + column, tl.cumsum(tl.load(x + row * step + column), 0))


@pytest.mark.parametrize("rows, columns, are_fetched", [(64, 128, True), (64, 2048, FETCHES), (2, 128, False)])
def test_rows_of_a_tile_are_fetched_before_they_are_read(rows: int, columns: int, are_fetched: bool) -> None:
    x = np.random.default_rng(0).integers(0, 9, (rows, columns + 37)).astype(np.float32)
    out = np.zeros((rows, columns), np.float32)
    kernel = running_sums[(1,)](x, out, columns + 37, rows, columns)
    assert ("llvm.prefetch" in kernel.asm["llir"]) == are_fetched
    np.testing.assert_array_equal(out, x[:, :columns].cumsum(0))
