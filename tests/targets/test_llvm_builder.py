"""Every method of the builder: parsed and verified by LLVM, then executed."""

import numpy as np
import pytest

from tests.targets.llvm_run import evaluate, load, new_module, opaque, run
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import check
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import (
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    integer,
    pointer,
    ptr,
    struct,
    vector,
    void,
)
from tilework.targets.llvm.values import Value, constant

V4 = vector(i32, 4)
F4 = vector(f32, 4)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def unknown(b: Builder, value: int, type=i32) -> Value:
    return opaque(b, constant(type, value))


@pytest.mark.parametrize(
    ("op", "expected"),
    [("add", 10), ("sub", 4), ("mul", 21), ("udiv", 2), ("sdiv", 2), ("urem", 1), ("srem", 1)]
    + [("and", 3), ("or", 7), ("xor", 4), ("shl", 56), ("lshr", 0), ("ashr", 0)],
)
def test_integer_instructions(op: str, expected: int) -> None:
    assert evaluate(i32, lambda b: b.binary(op, unknown(b, 7), unknown(b, 3)))[0] == expected


@pytest.mark.parametrize(("op", "expected"), [("fadd", 9.5), ("fsub", 5.5), ("fmul", 15.0), ("fdiv", 3.75)])
def test_float_instructions(op: str, expected: float) -> None:
    body = lambda b: b.binary(op, opaque(b, constant(f64, 7.5)), opaque(b, constant(f64, 2.0)))  # noqa: E731
    assert evaluate(f64, body)[0] == expected


def test_flags_are_printed() -> None:
    module = Module()
    function = module.function("f", f32, [(i32, "x"), (f32, "y")])
    b = Builder(function)
    x, y = function.args
    b.add(x, x, "nsw")
    with b.fast_math("contract", "nnan"):
        z = b.fmul(y, y)
        b.fma(y, z, y)
    b.ret(z)
    text = module.text()
    assert "add nsw i32 %x, %x" in text and "fmul contract nnan float" in text
    assert "call contract nnan float @llvm.fma.f32" in text
    check(text)


def test_negation_and_unary_intrinsics() -> None:
    assert evaluate(i32, lambda b: b.neg(unknown(b, 5)))[0] == -5
    assert evaluate(i32, lambda b: b.not_(unknown(b, 5)))[0] == -6
    assert evaluate(f32, lambda b: b.fneg(opaque(b, constant(f32, 2.5))))[0] == -2.5
    for name, expected in [
        ("fabs", 2.5),
        ("floor", -3.0),
        ("ceil", -2.0),
        ("trunc_float", -2.0),
        ("rint", -2.0),
        ("round_half_away", -3.0),
    ]:
        assert evaluate(f32, lambda b, name=name: getattr(b, name)(opaque(b, constant(f32, -2.5))))[0] == expected
    assert evaluate(f64, lambda b: b.sqrt(opaque(b, constant(f64, 9.0))))[0] == 3.0
    for name, expected in [
        ("ctpop", 3),
        ("ctlz", 27),
        ("cttz", 1),
        ("abs", 26),
        ("bitreverse", 0x58000000),
    ]:
        assert evaluate(i32, lambda b, name=name: getattr(b, name)(unknown(b, 26)))[0] == expected


def test_two_operand_intrinsics() -> None:
    for name, expected in [("umin", 3), ("umax", -4), ("smin", -4), ("smax", 3)]:
        assert evaluate(i32, lambda b, name=name: getattr(b, name)(unknown(b, -4), unknown(b, 3)))[0] == expected
    nan, two = constant(f32, float("nan")), constant(f32, 2.0)
    assert evaluate(f32, lambda b: b.minnum(opaque(b, nan), opaque(b, two)))[0] == 2.0
    assert evaluate(f32, lambda b: b.maxnum(opaque(b, two), opaque(b, nan)))[0] == 2.0
    assert np.isnan(evaluate(f32, lambda b: b.minimum(opaque(b, nan), opaque(b, two)))[0])
    assert np.isnan(evaluate(f32, lambda b: b.maximum(opaque(b, two), opaque(b, nan)))[0])
    assert evaluate(f32, lambda b: b.copysign(opaque(b, two), opaque(b, constant(f32, -0.0))))[0] == -2.0
    assert evaluate(
        f64, lambda b: b.fma(opaque(b, constant(f64, 1 + 2**-30)), opaque(b, constant(f64, 1 - 2**-30)), -1.0)
    )[0] == -(2.0**-60)
    assert evaluate(i32, lambda b: b.funnel_left(unknown(b, 1), unknown(b, -(2**31)), 1))[0] == 3
    assert evaluate(i32, lambda b: b.mul_high(unknown(b, -(2**31)), unknown(b, 4), True))[0] == -2
    assert evaluate(i32, lambda b: b.mul_high(unknown(b, -(2**31)), unknown(b, 4), False))[0] == 2


def test_comparisons_and_select() -> None:
    assert evaluate(i1, lambda b: b.icmp("ult", unknown(b, 3), unknown(b, -1)))[0] == 1
    assert evaluate(i1, lambda b: b.icmp("slt", unknown(b, 3), unknown(b, -1)))[0] == 0
    assert evaluate(i1, lambda b: b.fcmp("uno", opaque(b, constant(f32, float("nan"))), 1.0))[0] == 1
    assert evaluate(i32, lambda b: b.select(b.icmp("sgt", unknown(b, 3), 2), unknown(b, 10), 20))[0] == 10
    lanes = evaluate(
        V4,
        lambda b: b.select(b.icmp("slt", opaque(b, constant(V4, (0, 1, 2, 3))), 2), constant(V4, 7), constant(V4, 9)),
    )
    assert list(lanes) == [7, 7, 9, 9]


def test_casts() -> None:
    assert evaluate(i64, lambda b: b.sext(unknown(b, -5), i64))[0] == -5
    assert evaluate(i64, lambda b: b.zext(unknown(b, -5), i64))[0] == 2**32 - 5
    assert evaluate(i8, lambda b: b.trunc(unknown(b, 0x1FF), i8))[0] == -1
    assert evaluate(i16, lambda b: b.cast(unknown(b, -7), i16))[0] == -7
    assert evaluate(f64, lambda b: b.fpext(opaque(b, constant(f32, 0.1)), f64))[0] == float(np.float32(0.1))
    assert evaluate(f16, lambda b: b.fptrunc(opaque(b, constant(f32, 0.1)), f16))[0] == np.float16(np.float32(0.1))
    assert evaluate(f32, lambda b: b.sitofp(unknown(b, -3), f32))[0] == -3.0
    assert evaluate(f32, lambda b: b.uitofp(unknown(b, -1), f32))[0] == 2.0**32
    assert evaluate(i32, lambda b: b.fptosi(opaque(b, constant(f32, -3.9)), i32))[0] == -3
    assert evaluate(i32, lambda b: b.fptosi_sat(opaque(b, constant(f32, 1e20)), i32))[0] == 2**31 - 1
    assert evaluate(i32, lambda b: b.fptoui_sat(opaque(b, constant(f32, -5.0)), i32))[0] == 0
    assert evaluate(i32, lambda b: b.bitcast(opaque(b, constant(f32, 1.0)), i32))[0] == 0x3F800000
    data = ints(1, 2, 3, 4)

    def through_integer(b: Builder, p: Value) -> None:
        address = b.inttoptr(b.add(b.ptrtoint(p, i64), 8), ptr)
        b.store(constant(i32, 99), address, align=4)

    run([data], through_integer)
    assert list(data) == [1, 2, 99, 4]


def test_address_spaces_print() -> None:
    module = Module()
    function = module.function("f", void, [(pointer(3), "s")])
    b = Builder(function)
    generic = b.addrspacecast(function.args[0], ptr)
    b.store(constant(i32, 1), generic)
    b.ret()
    assert "addrspacecast ptr addrspace(3) %s to ptr" in module.text()
    check(module.text())


def test_addresses_collect_constant_offsets() -> None:
    function = Module().function("f", void, [(ptr, "p"), (i64, "i")])
    b = Builder(function)
    p, i = function.args
    assert b.gep(p, 0) is p
    assert b.gep(b.gep(p, 4), 8) is b.gep(p, 12)
    assert b.gep(b.gep(p, 4), -4) is p
    b.gep(p, i, f32, inbounds=True)
    assert "getelementptr inbounds float, ptr %p, i64 %i" in b.block.lines[-1]


def test_the_constant_of_an_exact_sum_is_added_last() -> None:
    """1024 * x + (y + 512) is (1024 * x + y) + 512, also after an extension, for any x; a larger y is left alone."""
    rng = np.random.default_rng(1)
    for bits, fixed in ((9, 512), (3, 8), (10, 1024)):
        x = np.concatenate([rng.integers(-(2**31), 2**31, 64), [-(2**31), 2**31 - 1, 2**21 - 1, -(2**21)]])
        given, y = x.astype(np.int32), rng.integers(0, 1 << bits, x.size).astype(np.int32)
        whole, parts = np.zeros((2, x.size), np.int64)

        def body(b: Builder, *arrays: Value, count: int = x.size, bits: int = bits, fixed: int = fixed) -> None:
            for at in range(count):
                x, y = (b.load(i32, b.gep(array, 4 * at), align=4) for array in arrays[:2])
                own = b.and_(y, (1 << bits) - 1)
                exact = b.add(own, fixed)
                b.exact[exact.text] = (own, fixed)
                b.bound(exact, fixed, fixed + (1 << bits) - 1)
                made = b.add(exact, b.mul(x, 1024))
                assert (made.text in b.exact) is (bits < 10)
                first, more = b.exact.get(made.text, (made, 0))
                b.store(b.sext(made, i64), b.gep(arrays[2], 8 * at), align=8)
                b.store(b.add(b.sext(first, i64), more), b.gep(arrays[3], 8 * at), align=8)

        run([given, y, whole, parts], body)
        np.testing.assert_array_equal(whole, (given * np.int32(1024) + y + np.int32(fixed)).astype(np.int64))
        np.testing.assert_array_equal(parts, whole)


def test_loads_and_stores() -> None:
    data, out = floats(1, 2, 3, 4, 5, 6, 7, 8), np.zeros(8, np.float32)

    def body(b: Builder, p: Value, q: Value) -> None:
        low = b.load(F4, p, align=4)
        high = b.load(F4, b.gep(p, 16), align=4, volatile=True)
        b.store(high, q, align=4)
        b.store(low, b.gep(q, 16), align=4)

    run([data, out], body)
    assert list(out) == [5, 6, 7, 8, 1, 2, 3, 4]


def test_masked_memory() -> None:
    data, out = floats(1, 2, 3, 4), floats(9, 9, 9, 9)

    def body(b: Builder, p: Value, q: Value) -> None:
        mask = b.icmp("slt", opaque(b, constant(V4, (0, 1, 2, 3))), 3)
        value = b.masked_load(F4, p, mask, constant(F4, -1.0), align=4)
        b.masked_store(b.fadd(value, 10.0), q, b.not_(b.icmp("eq", opaque(b, constant(V4, (0, 1, 2, 3))), 1)), align=4)

    run([data, out], body)
    assert list(out) == [11, 9, 13, 9]


def test_constant_masks_become_plain_accesses() -> None:
    function = Module().function("f", void, [(ptr, "p")])
    b = Builder(function)
    (p,) = function.args
    all_lanes, no_lanes = constant(vector(i1, 4), 1), constant(vector(i1, 4), 0)
    value = b.masked_load(F4, p, all_lanes, constant(F4, 0.0), align=4)
    b.masked_store(value, p, no_lanes)
    assert b.block.lines == ["  %v0 = load <4 x float>, ptr %p, align 4"]


def test_memory_ranges() -> None:
    data, out = ints(1, 2, 3, 4), ints(0, 0, 0, 0)

    def body(b: Builder, p: Value, q: Value) -> None:
        b.prefetch(p)
        b.copy(q, p, 8)
        b.fill(b.gep(q, 12), 255, 4)

    run([data, out], body)
    assert list(out) == [1, 2, 0, -1]


def test_atomics() -> None:
    data, out = ints(5, 7), np.zeros(6, np.int32)

    def body(b: Builder, p: Value, q: Value) -> None:
        results = [b.atomic_rmw("add", p, constant(i32, 3), ordering="acq_rel", align=4)]
        results.append(b.atomic_rmw("max", p, constant(i32, 100)))
        old, success = b.compare_exchange(
            p, constant(i32, 100), constant(i32, 1), ordering="seq_cst", failure="acquire", scope="singlethread"
        )
        results += [old, b.zext(success, i32)]
        old, success = b.compare_exchange(p, constant(i32, 100), constant(i32, 1), weak=False)
        results += [old, b.zext(success, i32)]
        b.fence("release")
        seen = b.load(i32, p, align=4, ordering="acquire", scope="singlethread")
        b.store(seen, b.gep(p, 4), align=4, ordering="release")
        for index, value in enumerate(results):
            b.store(value, b.gep(q, 4 * index), align=4)

    run([data, out], body)
    assert list(out) == [5, 8, 100, 1, 1, 0] and list(data) == [1, 1]


def test_vectors() -> None:
    v = (1, 2, 3, 4)
    assert list(evaluate(V4, lambda b: b.splat(unknown(b, 6), 4))) == [6] * 4
    assert evaluate(i32, lambda b: b.extract(opaque(b, constant(V4, v)), 2))[0] == 3
    assert evaluate(i32, lambda b: b.extract(opaque(b, constant(V4, v)), unknown(b, 1)))[0] == 2
    assert list(evaluate(V4, lambda b: b.insert(opaque(b, constant(V4, v)), unknown(b, 9), 1))) == [1, 9, 3, 4]
    assert list(evaluate(V4, lambda b: b.build_vector([unknown(b, n) for n in v]))) == [1, 2, 3, 4]
    assert list(evaluate(V4, lambda b: b.shuffle(opaque(b, constant(V4, v)), None, [3, 3, 0, 1]))) == [4, 4, 1, 2]
    wide = vector(i32, 8)
    assert list(evaluate(wide, lambda b: b.concat(opaque(b, constant(V4, v)), opaque(b, constant(V4, 0))))) == [
        1,
        2,
        3,
        4,
        0,
        0,
        0,
        0,
    ]
    assert evaluate(i8, lambda b: b.zext(b.mask_bits(b.icmp("sgt", opaque(b, constant(V4, v)), 2)), i8))[0] == 0b1100
    assert evaluate(i1, lambda b: b.any_lane(b.icmp("sgt", opaque(b, constant(V4, v)), 3)))[0] == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", 10), ("mul", 24), ("and", 0), ("or", 7), ("xor", 4), ("smin", 1), ("smax", 4), ("umin", 1), ("umax", 4)],
)
def test_integer_reductions(name: str, expected: int) -> None:
    assert evaluate(i32, lambda b: b.reduce(name, opaque(b, constant(V4, (1, 2, 3, 4)))))[0] == expected


@pytest.mark.parametrize(("name", "expected"), [("fmin", 1), ("fmax", 4), ("fminimum", 1), ("fmaximum", 4)])
def test_float_reductions(name: str, expected: float) -> None:
    assert evaluate(f32, lambda b: b.reduce(name, opaque(b, constant(F4, (1.0, 2.0, 3.0, 4.0)))))[0] == expected


def test_aggregates() -> None:
    def body(b: Builder) -> Value:
        made = b.build_struct(struct(i32, f32), [unknown(b, 3), opaque(b, constant(f32, 1.0))])
        return b.extract_value(made, 0)

    assert evaluate(i32, body)[0] == 3


def test_named_structs_globals_and_strings() -> None:
    module = new_module()
    point = module.named_struct("point", i32, i32)
    table = module.table("numbers", i32, [10, 20, 30])
    assert module.string("a\n") is module.string("a\n")
    function = module.function("kernel", void, [(ptr, "out")])
    b = Builder(function)
    slot = b.alloca(point, align=8)
    b.store(b.load(i32, b.gep(table, 8)), b.gep(slot, 4))
    b.store(b.load(i32, b.gep(slot, 4)), function.args[0])
    b.store(b.zext(b.load(i8, module.string("a\n")), i32), b.gep(function.args[0], 4))
    b.ret()
    out = ints(0, 0)
    load(module, "kernel", 1)(out.ctypes.data)
    assert list(out) == [30, ord("a")]


def test_calls() -> None:
    module = new_module()
    inner = module.function("twice", i32, [(i32, "x")], linkage="internal", attributes=("nounwind",))
    b = Builder(inner)
    b.ret(b.mul(inner.args[0], 2))
    outer = module.function("kernel", void, [(ptr, "out")])
    b = Builder(outer)
    direct = b.call("twice", i32, [constant(i32, 21)])
    slot = b.alloca(ptr)
    b.store(Value(ptr, f"@{inner.name}"), slot)
    indirect = b.call(b.load(ptr, slot), i32, [direct], attributes="nounwind")
    outlined = b.outline("thrice", i32, [direct], lambda nested, args: nested.mul(args[0], 3))
    assert b.outline("thrice", i32, [direct], lambda nested, args: nested.mul(args[0], 3)) is outlined
    length = b.call("strlen", i64, [module.string("hello")], is_pure=True)
    for index, value in enumerate((direct, indirect, outlined, b.trunc(length, i32))):
        b.store(value, b.gep(outer.args[0], 4 * index), align=4)
    b.ret()
    out = ints(0, 0, 0, 0)
    load(module, "kernel", 1)(out.ctypes.data)
    assert list(out) == [42, 84, 126, 5]


def test_inline_assembly_prints() -> None:
    module = Module()
    function = module.function("f", i32, [(i32, "x")])
    b = Builder(function)
    (value,) = b.assembly('mov "$0", $1;', "=r,r", [i32], [function.args[0]])
    b.assembly("bar;", "~{memory}", [], [], sideeffect=True, attributes="convergent")
    b.ret(value)
    assert 'call i32 asm "mov \\22$0\\22, $1;", "=r,r"(i32 %x)' in module.text()
    assert 'asm sideeffect "bar;"' in module.text()
    check(module.text())


def test_a_trap_parses() -> None:
    module = Module()
    b = Builder(module.function("f", void, []))
    b.trap()
    b.ret()
    check(module.text())


def test_text_is_repeatable_and_types_are_interned() -> None:
    def build() -> str:
        module = Module("same")
        function = module.function("f", f32, [(f32, "x")], attributes=("nounwind",), param_attributes={0: "noundef"})
        b = Builder(function)
        b.ret(b.fma(b.sqrt(function.args[0]), 2.0, 1.0))
        return module.text()

    assert build() == build()
    assert vector(f64, 2) is vector(f64, 2) and integer(32) is i32 and struct(i32, f32) is struct(i32, f32)
    assert vector(pointer(1), 2).suffix == "v2p1"


def test_mistakes_are_refused() -> None:
    function = Module().function("f", void, [(i32, "x"), (i64, "y")])
    b = Builder(function)
    with pytest.raises(AssertionError, match="add of i32 %x and i64 %y"):
        b.add(*function.args)
    b.ret()
    with pytest.raises(AssertionError, match="finished"):
        b.ret()
    with pytest.raises(AssertionError, match="does not end"):
        Builder(function.module.function("g", void, []))
        function.module.text()
