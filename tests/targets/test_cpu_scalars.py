"""Every scalar op, on vectors and on single scalars, against the evaluator."""

import numpy as np
import pytest

from tests.targets.cpu_run import NUMPY, compile_text
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate

SIZE = 64


def both(op: str, inputs: list[str], output: str, arrays: list[np.ndarray], *, lanes: bool = True, **options) -> tuple:
    """(what the CPU computes, what the evaluator does) for one op: `$T0` in its text is the type of operand 0."""
    params = ", ".join([f"%p{k}: !tt.ptr<{t}>" for k, t in enumerate(inputs)] + [f"%out: !tt.ptr<{output}>"])

    def body(spell, index: str, prefix: str) -> str:
        lines = []
        for k, t in enumerate(inputs):
            lines.append(f"{spell.splat(f'%p{k}', f'!tt.ptr<{t}>', f'%s{k}')}")
            lines.append(
                f"%q{k} = tt.addptr {spell.name(f'%s{k}', f'%p{k}')}, {index} : {spell.type(f'!tt.ptr<{t}>')}, {spell.type('i32')}"
            )
            lines.append(f"%x{k} = tt.load %q{k} : {spell.type(f'!tt.ptr<{t}>')}")
        text = op
        for k, t in enumerate([*inputs, output]):
            text = text.replace(f"$T{k}", spell.type(t)).replace(f"$S{k}", t)
        lines.append(f"%y = {text.replace('$B', spell.type('i1'))}")
        lines.append(spell.splat("%out", f"!tt.ptr<{output}>", "%so"))
        lines.append(
            f"%qo = tt.addptr {spell.name('%so', '%out')}, {index} : {spell.type(f'!tt.ptr<{output}>')}, {spell.type('i32')}"
        )
        lines.append(f"tt.store %qo, %y : {spell.type(f'!tt.ptr<{output}>')}")
        return "\n".join(lines)

    count = len(arrays[0])
    tiles = f"tt.func public @k({params}) {{\n%i = tt.make_range {{start = 0 : i32, end = {count} : i32}} : tensor<{count}xi32>\n"
    tiles += body(Tiles(count), "%i", "") + "\ntt.return\n}"
    shape = f"[{count}]" if lanes else f"[{count}, 1]"
    args = "%i: i32" if lanes else "%i: i32, %j: i32"
    nest = (
        f"ttc.nest {shape} {{\n^bb0({args}):\n{body(Scalars(), '%i', '')}\nttc.end\n}}"
        if lanes
        else scalar_loop(count, body)
    )
    native = f"tt.func public @k({params}) {{\n{nest}\ntt.return\n}}"
    results = []
    for run in (
        lambda o: compile_text(native, **options)(*arrays, o),
        lambda o: evaluate(parse_module(tiles), "k", [*arrays, o]),
    ):
        out = np.zeros(count, NUMPY[output])
        run(out)
        results.append(out)
    return tuple(results)


def scalar_loop(count: int, body) -> str:
    return (
        f"%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%count = arith.constant {count} : i32\n"
        f"scf.for %i = %zero to %count step %one : i32 {{\n{body(Scalars(), '%i', '')}\n}}"
    )


class Tiles:
    def __init__(self, count: int) -> None:
        self.count = count

    def type(self, element: str) -> str:
        return f"tensor<{self.count}x{element}>"

    def splat(self, value: str, type: str, name: str) -> str:
        return f"{name} = tt.splat {value} : {type} -> {self.type(type)}"

    def name(self, splat: str, plain: str) -> str:
        return splat


class Scalars:
    def type(self, element: str) -> str:
        return element

    def splat(self, value: str, type: str, name: str) -> str:
        return ""

    def name(self, splat: str, plain: str) -> str:
        return plain


def samples(type: str, seed: int, count: int = SIZE) -> np.ndarray:
    """Ordinary numbers and every special one."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(NUMPY[type])
    if type == "i1":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        drawn = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        drawn[: count // 2] = rng.integers(-9, 10, count // 2)
        special = [0, 1, -1, info.min, info.max, 2, info.min, 0]
        drawn[rng.permutation(count)[: len(special)]] = special
        return drawn
    with np.errstate(all="ignore"):
        drawn = (rng.standard_normal(count) * 2.0 ** rng.integers(-12, 13, count)).astype(dtype)
        special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-7, 448.0, 1e30, -1e30, 6e-8]).astype(dtype)
    drawn[rng.permutation(count)[: len(special)]] = special
    return drawn


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Equal bits, except that all NaN are equal and the sign of a zero may differ only with its bits."""
    if ours.dtype.kind in "ib":
        np.testing.assert_array_equal(ours, theirs)
        return
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    np.testing.assert_array_equal(a, b)
    zero = (a == 0) & ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a)[~zero & ~np.isnan(a)], np.signbit(b)[~zero & ~np.isnan(b)])


INTEGERS = ["i1", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALL_FLOATS = ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"]
INTEGER_OPS = "addi subi muli divsi divui remsi remui floordivsi ceildivsi andi ori xori shli shrui shrsi minsi maxsi minui maxui".split()


@pytest.mark.parametrize(("type", "lanes"), [*((type, True) for type in INTEGERS[1:]), ("i32", False)])
@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_ops(name: str, type: str, lanes: bool) -> None:
    """Wrap-around, C division with defined results, shifts by any amount."""
    pair = [samples(type, 1), samples(type, 2)]
    if name == "ceildivsi":
        pair[1][pair[1] == 0] = 3
    assert_same(*both(f"arith.{name} %x0, %x1 : $T0", [type, type], type, pair, lanes=lanes))


@pytest.mark.parametrize("name", ["addi", "muli", "andi", "ori", "xori", "maxsi", "minui"])
def test_integer_ops_on_booleans(name: str) -> None:
    pair = [samples("i1", 1), samples("i1", 2)]
    assert_same(*both(f"arith.{name} %x0, %x1 : $T0", ["i1", "i1"], "i1", pair))


@pytest.mark.parametrize("type", ["i8", "i32", "i64"])
@pytest.mark.parametrize("predicate", "eq ne slt sle sgt sge ult ule ugt uge".split())
def test_integer_comparisons(predicate: str, type: str) -> None:
    pair = [samples(type, 1), samples(type, 2)]
    assert_same(*both(f"arith.cmpi {predicate}, %x0, %x1 : $T0", [type, type], "i1", pair))


@pytest.mark.parametrize("type", ["f16", "f32", "f64", "bf16", "f8E5M2"])
@pytest.mark.parametrize("predicate", "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split())
def test_float_comparisons(predicate: str, type: str) -> None:
    pair = [samples(type, 1), samples(type, 2)]
    assert_same(*both(f"arith.cmpf {predicate}, %x0, %x1 : $T0", [type, type], "i1", pair))


@pytest.mark.parametrize("name", "addf subf mulf divf maximumf minimumf maxnumf minnumf".split())
@pytest.mark.parametrize(
    ("type", "lanes"), [*((t, True) for t in FLOATS + SMALL_FLOATS), ("f32", False), ("bf16", False)]
)
def test_float_ops(name: str, type: str, lanes: bool) -> None:
    """One rounding per operation, in every format."""
    pair = [samples(type, 1), samples(type, 2)]
    assert_same(*both(f"arith.{name} %x0, %x1 : $T0", [type, type], type, pair, lanes=lanes))


@pytest.mark.parametrize("type", FLOATS)
def test_fma_rounds_once(type: str) -> None:
    triple = [samples(type, seed) for seed in (1, 2, 3)]
    assert_same(*both("math.fma %x0, %x1, %x2 : $T0", [type] * 3, type, triple))


@pytest.mark.parametrize("type", FLOATS + SMALL_FLOATS)
def test_negation_and_magnitude(type: str) -> None:
    assert_same(*both("arith.negf %x0 : $T0", [type], type, [samples(type, 1)]))
    assert_same(*both("math.absf %x0 : $T0", [type], type, [samples(type, 1)]))


@pytest.mark.parametrize("mode", ["none", "all"])
@pytest.mark.parametrize("type", ["f16", "f32"])
def test_clampf(mode: str, type: str) -> None:
    low, high = np.minimum(samples(type, 2), samples(type, 3)), np.maximum(samples(type, 2), samples(type, 3))
    low, high = np.nan_to_num(low), np.nan_to_num(high)
    op = f"tt.clampf %x0, %x1, %x2, propagateNan = {mode} : $T0"
    assert_same(*both(op, [type] * 3, type, [samples(type, 1), low, high]))


@pytest.mark.parametrize("type", ["i16", "i32", "i64"])
def test_mulhiui(type: str) -> None:
    pair = [samples(type, 1), samples(type, 2)]
    assert_same(*both("tt.mulhiui %x0, %x1 : $T0", [type, type], type, pair))


@pytest.mark.parametrize("type", ["i8", "i32", "f32", "bf16", "f8E4M3FN"])
def test_select(type: str) -> None:
    arrays = [samples("i1", 1), samples(type, 2), samples(type, 3)]
    assert_same(*both("arith.select %x0, %x1, %x2 : $T0, $T1", ["i1", type, type], type, arrays))


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", FLOATS + SMALL_FLOATS[:2])
def test_integers_become_floats(source: str, target: str) -> None:
    for op in ("sitofp", "uitofp"):
        assert_same(*both(f"arith.{op} %x0 : $T0 to $T1", [source], target, [samples(source, 1)]))


@pytest.mark.parametrize("source", FLOATS + SMALL_FLOATS[:2])
@pytest.mark.parametrize("target", INTEGERS[1:])
def test_floats_become_integers(source: str, target: str) -> None:
    """Saturating; NaN is 0."""
    for op in ("fptosi", "fptoui"):
        assert_same(*both(f"arith.{op} %x0 : $T0 to $T1", [source], target, [samples(source, 1)]))


@pytest.mark.parametrize("source", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("target", FLOATS + SMALL_FLOATS)
def test_fp_to_fp(source: str, target: str) -> None:
    """Nearest even and towards zero; 8-bit formats saturate."""
    if NUMPY[source] is NUMPY[target]:
        return
    arrays = [samples(source, 1, 256)]
    if np.dtype(NUMPY[source]).itemsize > np.dtype(NUMPY[target]).itemsize:
        for rounding in ("rtne", "rtz"):
            assert_same(*both(f"tt.fp_to_fp %x0, rounding = {rounding} : $T0 -> $T1", [source], target, arrays))
        assert_same(*both("arith.truncf %x0 : $T0 to $T1", [source], target, arrays))
    elif np.dtype(NUMPY[source]).itemsize < np.dtype(NUMPY[target]).itemsize:
        assert_same(*both("arith.extf %x0 : $T0 to $T1", [source], target, arrays))


@pytest.mark.parametrize("source", SMALL_FLOATS)
def test_every_8_bit_float_widens_exactly(source: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(NUMPY[source])
    for target in ("f16", "bf16", "f32", "f64"):
        assert_same(*both("tt.fp_to_fp %x0 : $T0 -> $T1", [source], target, [every]))


@pytest.mark.parametrize("target", SMALL_FLOATS)
def test_every_f16_narrows(target: str) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    assert_same(*both("tt.fp_to_fp %x0, rounding = rtne : $T0 -> $T1", ["f16"], target, [every]))
    assert_same(*both("arith.truncf %x0 : $T0 to $T1", ["f16"], target, [every]))


def test_double_to_half_rounds_once() -> None:
    """1 + 2^-11 + 2^-40 is above the tie, which a detour through f32 would not see."""
    value = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11, 1 + 2**-11 - 2**-40, 65519.999, 65520.0] * 8)
    assert_same(*both("arith.truncf %x0 : $T0 to $T1", ["f64"], "f16", [value]))


@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        ("extsi", "i8", "i32"),
        ("extui", "i8", "i64"),
        ("trunci", "i64", "i16"),
        ("trunci", "i32", "i1"),
        ("extui", "i1", "i32"),
    ],
)
def test_integer_widths(op: str, source: str, target: str) -> None:
    assert_same(*both(f"arith.{op} %x0 : $T0 to $T1", [source], target, [samples(source, 1)]))


@pytest.mark.parametrize(("source", "target"), [("f32", "i32"), ("i16", "bf16"), ("f8E5M2", "i8"), ("i64", "f64")])
def test_bitcast(source: str, target: str) -> None:
    ours, theirs = both("tt.bitcast %x0 : $T0 -> $T1", [source], target, [samples(source, 1)])
    assert ours.tobytes() == theirs.tobytes()


FUNCTIONS = "exp exp2 log log2 sin cos sqrt rsqrt floor ceil erf tanh".split()


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions(name: str, type: str) -> None:
    """Within 2 units of the last place (1 for the narrow formats)."""
    values = samples(type, 1)
    values = np.where(np.abs(values.astype(np.float64)) > 1e4, values.dtype.type(3.5), values)
    ours, theirs = both(f"math.{name} %x0 : $T0", [type], type, [values])
    exact = theirs.astype(np.float64)
    unit = np.spacing(np.abs(theirs)).astype(np.float64) if type != "bf16" else np.abs(exact) * 2.0**-7
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(ours.astype(np.float64)[~finite], exact[~finite])
    assert (np.abs(ours.astype(np.float64) - exact)[finite] <= 2 * unit[finite]).all()


def test_library_functions() -> None:
    op = 'tt.extern_elementwise %x0 {libname = "", libpath = "", pure = true, symbol = "__nv_tanf"} : ($T0) -> $T1'
    ours, theirs = both(op, ["f32"], "f32", [np.linspace(-1.5, 1.5, SIZE).astype(np.float32)])
    np.testing.assert_allclose(ours, theirs, rtol=3e-7)
    op = 'tt.extern_elementwise %x0 {libname = "", libpath = "", pure = true, symbol = "__nv_isnanf"} : ($T0) -> $T1'
    ours, _ = both(op, ["f32"], "i32", [samples("f32", 1)])
    np.testing.assert_array_equal(ours != 0, np.isnan(samples("f32", 1)))


@pytest.mark.parametrize("name", ["ctlz", "cttz", "ctpop"])
def test_bit_counts(name: str) -> None:
    assert_same(*both(f"math.{name} %x0 : $T0", ["i32"], "i32", [samples("i32", 1)]))


def test_absi() -> None:
    assert_same(*both("math.absi %x0 : $T0", ["i32"], "i32", [samples("i32", 1)]))


def test_products_and_sums_fuse_only_if_asked() -> None:
    text = """tt.func public @k(%x: f32, %y: f32, %z: f32, %out: !tt.ptr<f32>) {
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %p, %z : f32
      tt.store %out, %s : !tt.ptr<f32>
      tt.return
    }"""
    x = np.float32(1 + 2**-12)
    exact = float(x) * float(x) - 1.0
    out = np.zeros(1, np.float32)
    compile_text(text, fuses=False)(x, x, np.float32(-1), out)
    assert out[0] == np.float32(x * x) - np.float32(1)
    compile_text(text, fuses=True)(x, x, np.float32(-1), out)
    assert out[0] in (np.float32(exact), np.float32(x * x) - np.float32(1))


def test_control_flow() -> None:
    """Collatz steps with while and if, summed in a for, called through a function that is not inlined."""
    text = """
    tt.func private @steps(%n: i32) -> i32 attributes {noinline = true} {
      %one = arith.constant 1 : i32
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %r:2 = scf.while (%m = %n, %k = %zero) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi ne, %m, %one : i32
        scf.condition(%go) %m, %k : i32, i32
      } do {
      ^bb0(%m: i32, %k: i32):
        %low = arith.andi %m, %one : i32
        %odd = arith.cmpi eq, %low, %one : i32
        %next = scf.if %odd -> (i32) {
          %t = arith.muli %m, %three : i32
          %u = arith.addi %t, %one : i32
          scf.yield %u : i32
        } else {
          %h = arith.divsi %m, %two : i32
          scf.yield %h : i32
        }
        %k1 = arith.addi %k, %one : i32
        scf.yield %next, %k1 : i32, i32
      }
      tt.return %r#1 : i32
    }
    tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
      %one = arith.constant 1 : i32
      %zero = arith.constant 0 : i32
      %total = scf.for %i = %one to %n step %one iter_args(%sum = %zero) -> (i32) : i32 {
        %s = tt.call @steps(%i) : (i32) -> i32
        %t = arith.addi %sum, %s : i32
        scf.yield %t : i32
      }
      %pid = tt.get_program_id x : i32
      %np = tt.get_num_programs y : i32
      %q = tt.addptr %out, %pid : !tt.ptr<i32>, i32
      %v = arith.addi %total, %np : i32
      tt.store %q, %v : !tt.ptr<i32>
      tt.return
    }"""

    def steps(n: int) -> int:
        count = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            count += 1
        return count

    out = np.zeros(3, np.int32)
    compile_text(text)(out, 30, grid=(3, 1))
    assert (out == sum(map(steps, range(1, 30))) + 1).all()


def test_branches_between_blocks() -> None:
    text = """tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %c = arith.cmpi sgt, %n, %zero : i32
      cf.cond_br %c, ^loop(%n, %zero : i32, i32), ^end(%one : i32)
    ^loop(%m: i32, %acc: i32):
      %a = arith.addi %acc, %m : i32
      %l = arith.subi %m, %one : i32
      %again = arith.cmpi sgt, %l, %zero : i32
      cf.cond_br %again, ^loop(%l, %a : i32, i32), ^end(%a : i32)
    ^end(%v: i32):
      tt.store %out, %v : !tt.ptr<i32>
      tt.return
    }"""
    kernel = compile_text(text)
    for n, expected in ((10, 55), (1, 1), (0, 1), (-3, 1)):
        out = np.zeros(1, np.int32)
        kernel(out, n)
        assert out[0] == expected


def test_program_ids_count_axis_0_first() -> None:
    text = """tt.func public @k(%out: !tt.ptr<i32>) {
      %x = tt.get_program_id x : i32
      %y = tt.get_program_id y : i32
      %z = tt.get_program_id z : i32
      %nx = tt.get_num_programs x : i32
      %ny = tt.get_num_programs y : i32
      %a = arith.muli %z, %ny : i32
      %b = arith.addi %a, %y : i32
      %c = arith.muli %b, %nx : i32
      %d = arith.addi %c, %x : i32
      %p = tt.addptr %out, %d : !tt.ptr<i32>, i32
      %e = arith.constant 1 : i32
      %f = arith.addi %d, %e : i32
      tt.store %p, %f : !tt.ptr<i32>
      tt.return
    }"""
    out = np.zeros(24, np.int32)
    compile_text(text)(out, grid=(2, 3, 4))
    np.testing.assert_array_equal(out, np.arange(1, 25))


@pytest.mark.parametrize("type", FLOATS + SMALL_FLOATS + INTEGERS)
def test_scalar_arguments(type: str) -> None:
    text = f"""tt.func public @k(%x: {type}, %pad: i64, %y: {type}, %out: !tt.ptr<{type}>) {{
      %one = arith.constant 1 : i32
      %p = tt.addptr %out, %one : !tt.ptr<{type}>, i32
      tt.store %out, %x : !tt.ptr<{type}>
      tt.store %p, %y : !tt.ptr<{type}>
      tt.return
    }}"""
    values = np.array([1, 0]).astype(NUMPY[type])
    out = np.zeros(2, NUMPY[type])
    compile_text(text)(values[0], 7, values[1], out)
    np.testing.assert_array_equal(out, values)
