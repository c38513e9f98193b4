"""Every scalar op, on vectors and on single scalars, against the evaluator."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from tests.targets.cpu_run import NUMPY, compile_text
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate

SIZE = 64


@dataclass
class Case:
    """An op and its operands: `$T0` in its text is the type of operand 0, and of the result behind the last operand."""

    op: str
    inputs: list[str]
    output: str
    arrays: list[np.ndarray]

    def parameters(self, number: int) -> list[str]:
        types = [(f"%p{number}_{k}", t) for k, t in enumerate(self.inputs)] + [(f"%out{number}", self.output)]
        return [f"{name}: !tt.ptr<{type}>" for name, type in types]

    def body(self, spell, number: int) -> str:
        lines, text = [], re.sub(r"%x(\d)", rf"%x{number}_\1", self.op)
        for k, t in enumerate(self.inputs):
            lines += position(spell, f"%p{number}_{k}", t, f"%q{number}_{k}")
            lines.append(f"%x{number}_{k} = tt.load %q{number}_{k} : {spell.type(f'!tt.ptr<{t}>')}")
        for k, t in enumerate([*self.inputs, self.output]):
            text = text.replace(f"$T{k}", spell.type(t)).replace(f"$S{k}", t)
        lines.append(f"%y{number} = {text.replace('$B', spell.type('i1'))}")
        lines += position(spell, f"%out{number}", self.output, f"%qo{number}")
        lines.append(f"tt.store %qo{number}, %y{number} : {spell.type(f'!tt.ptr<{self.output}>')}")
        return "\n".join(lines)


def position(spell, pointer: str, type: str, name: str) -> list[str]:
    """`name` is where element %i of an array is."""
    splat = f"%s{pointer[1:]}"
    return [
        spell.splat(pointer, f"!tt.ptr<{type}>", splat),
        f"{name} = tt.addptr {spell.name(splat, pointer)}, %i : {spell.type(f'!tt.ptr<{type}>')}, {spell.type('i32')}",
    ]


def row(cases: Sequence[Case], *, lanes: bool = True, **options) -> Iterator[tuple[Case, np.ndarray, np.ndarray]]:
    """Each case, what the CPU computes for it and what the evaluator does; all of them are one kernel."""
    params = ", ".join(parameter for number, case in enumerate(cases) for parameter in case.parameters(number))
    body = lambda spell: "\n".join(case.body(spell, number) for number, case in enumerate(cases))
    (count,) = {len(case.arrays[0]) for case in cases}
    index = f"%i = tt.make_range {{start = 0 : i32, end = {count} : i32}} : tensor<{count}xi32>"
    tiles = f"tt.func public @k({params}) {{\n{index}\n{body(Tiles(count))}\ntt.return\n}}"
    scalars = body(Scalars())
    nest = f"ttc.nest [{count}] {{\n^bb0(%i: i32):\n{scalars}\nttc.end\n}}" if lanes else scalar_loop(count, scalars)
    native = f"tt.func public @k({params}) {{\n{nest}\ntt.return\n}}"
    results = []
    for run in (compile_text(native, **options), lambda *args: evaluate(parse_module(tiles), "k", list(args))):
        outs = [np.zeros(count, NUMPY[case.output]) for case in cases]
        run(*(array for case, out in zip(cases, outs, strict=True) for array in (*case.arrays, out)))
        results.append(outs)
    return zip(cases, *results, strict=True)


def assert_row(cases: Sequence[Case], **options) -> None:
    for case, ours, theirs in row(cases, **options):
        assert_same(ours, theirs, f"{case.op} of {case.inputs} to {case.output}")


def scalar_loop(count: int, body: str) -> str:
    return (
        f"%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%count = arith.constant {count} : i32\n"
        f"scf.for %i = %zero to %count step %one : i32 {{\n{body}\n}}"
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
        generated = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        generated[: count // 2] = rng.integers(-9, 10, count // 2)
        special = [0, 1, -1, info.min, info.max, 2, info.min, 0]
        generated[rng.permutation(count)[: len(special)]] = special
        return generated
    with np.errstate(all="ignore"):
        generated = (rng.standard_normal(count) * 2.0 ** rng.integers(-12, 13, count)).astype(dtype)
        special = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-7, 448.0, 1e30, -1e30, 6e-8]).astype(dtype)
    generated[rng.permutation(count)[: len(special)]] = special
    return generated


@np.errstate(invalid="ignore")  # signalling NaNs
def assert_same(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    """Equal bits, except that all NaN are equal and the sign of a zero may differ only with its bits."""
    if ours.dtype.kind in "ib":
        np.testing.assert_array_equal(ours, theirs, what)
        return
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    np.testing.assert_array_equal(a, b, what)
    zero = (a == 0) & ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a)[~zero & ~np.isnan(a)], np.signbit(b)[~zero & ~np.isnan(b)], what)


INTEGERS = ["i1", "i8", "i16", "i32", "i64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALL_FLOATS = ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"]
INTEGER_OPS = (
    "addi subi muli divsi divui remsi remui floordivsi ceildivsi andi ori xori shli shrui shrsi minsi maxsi minui maxui"
).split()


@pytest.mark.parametrize(("type", "lanes"), [*((type, True) for type in INTEGERS[1:]), ("i32", False)])
def test_integer_ops(type: str, lanes: bool) -> None:
    """Wrap-around, C division with defined results, shifts by any amount."""
    x, y = samples(type, 1), samples(type, 2)
    divisors = {"ceildivsi": np.where(y == 0, y.dtype.type(3), y)}
    ops = {name: f"arith.{name} %x0, %x1 : $T0" for name in INTEGER_OPS}
    assert_row([Case(op, [type] * 2, type, [x, divisors.get(name, y)]) for name, op in ops.items()], lanes=lanes)


def test_integer_ops_on_booleans() -> None:
    pair = [samples("i1", 1), samples("i1", 2)]
    names = ["addi", "muli", "andi", "ori", "xori", "maxsi", "minui"]
    assert_row([Case(f"arith.{name} %x0, %x1 : $T0", ["i1", "i1"], "i1", pair) for name in names])


@pytest.mark.parametrize("type", ["i8", "i32", "i64"])
def test_integer_comparisons(type: str) -> None:
    pair = [samples(type, 1), samples(type, 2)]
    predicates = "eq ne slt sle sgt sge ult ule ugt uge".split()
    assert_row([Case(f"arith.cmpi {one}, %x0, %x1 : $T0", [type, type], "i1", pair) for one in predicates])


@pytest.mark.parametrize("type", ["f16", "f32", "f64", "bf16", "f8E5M2"])
def test_float_comparisons(type: str) -> None:
    pair = [samples(type, 1), samples(type, 2)]
    predicates = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split()
    assert_row([Case(f"arith.cmpf {one}, %x0, %x1 : $T0", [type, type], "i1", pair) for one in predicates])


@pytest.mark.parametrize(
    ("type", "lanes"), [*((t, True) for t in FLOATS + SMALL_FLOATS), ("f32", False), ("bf16", False)]
)
def test_float_ops(type: str, lanes: bool) -> None:
    """One rounding per operation, in every format."""
    pair = [samples(type, 1), samples(type, 2)]
    names = "addf subf mulf divf maximumf minimumf maxnumf minnumf".split()
    assert_row([Case(f"arith.{name} %x0, %x1 : $T0", [type, type], type, pair) for name in names], lanes=lanes)


def test_fma_rounds_once() -> None:
    assert_row([Case("math.fma %x0, %x1, %x2 : $T0", [t] * 3, t, [samples(t, n) for n in (1, 2, 3)]) for t in FLOATS])


def test_negation_and_magnitude() -> None:
    ops = ("arith.negf %x0 : $T0", "math.absf %x0 : $T0")
    assert_row([Case(op, [type], type, [samples(type, 1)]) for type in FLOATS + SMALL_FLOATS for op in ops])


def test_clampf() -> None:
    cases = []
    for type, mode in product(("f16", "f32"), ("none", "all")):
        low, high = (np.nan_to_num(of(samples(type, 2), samples(type, 3))) for of in (np.minimum, np.maximum))
        op = f"tt.clampf %x0, %x1, %x2, propagateNan = {mode} : $T0"
        cases.append(Case(op, [type] * 3, type, [samples(type, 1), low, high]))
    assert_row(cases)


def test_mulhiui() -> None:
    op, types = "tt.mulhiui %x0, %x1 : $T0", ("i16", "i32", "i64")
    assert_row([Case(op, [type, type], type, [samples(type, 1), samples(type, 2)]) for type in types])


def test_select() -> None:
    op, types = "arith.select %x0, %x1, %x2 : $T0, $T1", ("i8", "i32", "f32", "bf16", "f8E4M3FN")
    arrays = {type: [samples("i1", 1), samples(type, 2), samples(type, 3)] for type in types}
    assert_row([Case(op, ["i1", type, type], type, arrays[type]) for type in types])


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_become_floats(source: str) -> None:
    every = product(("sitofp", "uitofp"), FLOATS + SMALL_FLOATS[:2])
    assert_row([Case(f"arith.{op} %x0 : $T0 to $T1", [source], target, [samples(source, 1)]) for op, target in every])


@pytest.mark.parametrize("source", FLOATS + SMALL_FLOATS[:2])
def test_floats_become_integers(source: str) -> None:
    """Saturating; NaN is 0."""
    every = product(("fptosi", "fptoui"), INTEGERS[1:])
    assert_row([Case(f"arith.{op} %x0 : $T0 to $T1", [source], target, [samples(source, 1)]) for op, target in every])


@pytest.mark.parametrize("source", ["f64", "f32", "f16", "bf16"])
def test_fp_to_fp(source: str) -> None:
    """Nearest even and towards zero; 8-bit formats saturate."""
    cases, arrays = [], [samples(source, 1, 256)]
    for target in FLOATS + SMALL_FLOATS:
        wider = np.dtype(NUMPY[source]).itemsize - np.dtype(NUMPY[target]).itemsize
        narrowing = [f"tt.fp_to_fp %x0, rounding = {mode} : $T0 -> $T1" for mode in ("rtne", "rtz")]
        ops = [*narrowing, "arith.truncf %x0 : $T0 to $T1"] if wider > 0 else ["arith.extf %x0 : $T0 to $T1"]
        cases += [Case(op, [source], target, arrays) for op in ops if wider]
    assert_row(cases)


@pytest.mark.parametrize("source", SMALL_FLOATS)
def test_every_8_bit_float_widens_exactly(source: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(NUMPY[source])
    assert_row([Case("tt.fp_to_fp %x0 : $T0 -> $T1", [source], target, [every]) for target in FLOATS])


@pytest.mark.parametrize("target", SMALL_FLOATS)
def test_every_f16_narrows(target: str) -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    ops = ("tt.fp_to_fp %x0, rounding = rtne : $T0 -> $T1", "arith.truncf %x0 : $T0 to $T1")
    assert_row([Case(op, ["f16"], target, [every]) for op in ops])


def test_double_to_half_rounds_once() -> None:
    """1 + 2^-11 + 2^-40 is above the tie, which a detour through f32 would not see."""
    value = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11, 1 + 2**-11 - 2**-40, 65519.999, 65520.0] * 8)
    assert_row([Case("arith.truncf %x0 : $T0 to $T1", ["f64"], "f16", [value])])


WIDTHS = (
    ("extsi", "i8", "i32"), ("extui", "i8", "i64"), ("trunci", "i64", "i16"), ("trunci", "i32", "i1"),
    ("extui", "i1", "i32")
)  # fmt: skip


def test_integer_widths() -> None:
    assert_row([Case(f"arith.{op} %x0 : $T0 to $T1", [a], b, [samples(a, 1)]) for op, a, b in WIDTHS])


def test_bitcast() -> None:
    pairs = [("f32", "i32"), ("i16", "bf16"), ("f8E5M2", "i8"), ("i64", "f64")]
    for case, ours, theirs in row([Case("tt.bitcast %x0 : $T0 -> $T1", [a], b, [samples(a, 1)]) for a, b in pairs]):
        assert ours.tobytes() == theirs.tobytes(), case


FUNCTIONS = "exp exp2 log log2 sin cos sqrt rsqrt floor ceil erf tanh".split()


@pytest.mark.parametrize("type", FLOATS)
def test_elementary_functions(type: str) -> None:
    """Within 2 units of the last place (1 for the narrow formats)."""
    values = samples(type, 1)
    values = np.where(np.abs(values.astype(np.float64)) > 1e4, values.dtype.type(3.5), values)
    for case, ours, theirs in row([Case(f"math.{name} %x0 : $T0", [type], type, [values]) for name in FUNCTIONS]):
        exact = theirs.astype(np.float64)
        finite = np.isfinite(exact)
        np.testing.assert_array_equal(ours.astype(np.float64)[~finite], exact[~finite], case.op)
        near, exact = np.abs(theirs[finite]), exact[finite]
        unit = np.spacing(near).astype(np.float64) if type != "bf16" else np.abs(exact) * 2.0**-7
        assert (np.abs(ours.astype(np.float64)[finite] - exact) <= 2 * unit).all(), case.op


def test_library_functions() -> None:
    op = 'tt.extern_elementwise %x0 {libname = "", libpath = "", pure = true, symbol = "__nv_NAME"} : ($T0) -> $T1'
    angles = Case(op.replace("NAME", "tanf"), ["f32"], "f32", [np.linspace(-1.5, 1.5, SIZE).astype(np.float32)])
    mixed = Case(op.replace("NAME", "isnanf"), ["f32"], "i32", [samples("f32", 1)])
    (_, tangents, wanted), (_, is_nan, _) = row([angles, mixed])
    np.testing.assert_allclose(tangents, wanted, rtol=3e-7)
    np.testing.assert_array_equal(is_nan != 0, np.isnan(samples("f32", 1)))


def test_bits() -> None:
    ops = (f"math.{name} %x0 : $T0" for name in ("ctlz", "cttz", "ctpop", "absi"))
    assert_row([Case(op, ["i32"], "i32", [samples("i32", 1)]) for op in ops])


def test_products_and_sums_fuse_only_if_requested() -> None:
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
