"""Operators: the op for every type, and its value against NumPy."""

import operator
from typing import Any

import numpy as np
import pytest

from tests.frontend.semantic.arith_kernel import NUMPY, Kernel
from tests.rows import row
from tilework.language import core as tl
from tilework.language.dtypes import (
    block_type,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
    pointer_type,
    uint8,
    uint32,
    uint64,
)

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["fp16", "bf16", "fp32", "fp64"]
PTR = pointer_type(float32)


def samples(name: str) -> np.ndarray:
    """Sixteen values of a type: small ones, and the ends of its range for integers."""
    kind = NUMPY[name]
    if name == "int1":
        return np.array([0, 1] * 8, dtype=kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        low = [0, 0, 0] if kind.kind == "u" else [-1, -7, info.min]
        return np.array([*low, 1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, info.max], dtype=kind)
    return np.array([-3.5, -1, -0.25, 0.5, 1, 1.5, 2, 2.75, 3, 5, 7, 8, 9.5, 10, 12, 100], dtype=np.float32).astype(
        kind
    )


def build(method: str, *operands: Any, **options: Any) -> Kernel:
    """One operation whose block operands are arguments (given as dtypes), the others as they are."""
    types = [block_type(x, [16]) for x in operands if isinstance(x, dtype)]
    k = Kernel(*types, **options)
    blocks = iter(k.args)
    args = [next(blocks) if isinstance(x, dtype) else x for x in operands]
    return k.returns(getattr(k.semantic, method)(*args))


ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


@pytest.mark.parametrize("method", ARITHMETIC)
@row("name", INTS + FLOATS)
def test_arithmetic(method: str, name: str) -> None:
    k = build(method, dtype(name), dtype(name))
    assert k.ops == [f"arith.{method}{'i' if name in INTS else 'f'}"]
    x, y = samples(name), samples(name)[::-1].copy()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(k.run(x, y), ARITHMETIC[method](x, y))


@pytest.mark.parametrize("left", [*INTS, "int1", *FLOATS])
@row("right", [*INTS, "int1", *FLOATS])
def test_mixed_types_are_computed_in_the_promoted_type(left: str, right: str) -> None:
    k = build("add", dtype(left), dtype(right))
    common = NUMPY[k.results[0].dtype.name]
    x, y = samples(left), samples(right)
    with np.errstate(over="ignore"):
        expected = x ^ y if common == np.bool_ else numpy_cast(x, common) + numpy_cast(y, common)
    np.testing.assert_array_equal(k.run(x, y), expected)


def numpy_cast(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """NumPy's cast; between integers and 16-bit floats through the wider float, which is exact for `samples`."""
    return (
        x.astype(np.float64).astype(np.float32).astype(to) if to.itemsize == 2 and to.kind not in "iu" else x.astype(to)
    )


def test_bool_arithmetic_stays_bool() -> None:
    assert build("add", int1, int1).results[0].dtype == int1
    assert build("mul", int1, True).results[0].dtype == int1
    assert build("add", int1, 1).results[0].dtype == int32


@pytest.mark.parametrize(
    ("left", "right", "ops"),
    [
        ("int32", "int32", ["arith.sitofp", "arith.sitofp", "arith.divf"]),
        ("uint8", "uint8", ["arith.uitofp", "arith.uitofp", "arith.divf"]),
        ("fp32", "fp32", ["arith.divf"]),
        ("fp16", "fp16", ["arith.extf", "arith.extf", "arith.divf"]),
        ("fp16", "int32", ["arith.extf", "arith.sitofp", "arith.divf"]),
        ("bf16", "bf16", ["arith.extf", "arith.extf", "arith.divf"]),
        ("int32", "fp64", ["arith.sitofp", "arith.divf"]),
    ],
)
def test_true_division(left: str, right: str, ops: list[str]) -> None:
    k = build("truediv", dtype(left), dtype(right))
    assert k.ops == ops
    assert k.results[0].dtype == (float64 if "fp64" in (left, right) else float32)


@pytest.mark.parametrize("name", INTS)
def test_integer_division_truncates(name: str) -> None:
    sign = "u" if name.startswith("u") else "s"
    x, y = samples(name), np.array([1, 2, 3, 4, 5, 6, 7, 3] * 2, dtype=NUMPY[name])
    quotient, remainder = build("floordiv", dtype(name), dtype(name)), build("mod", dtype(name), dtype(name))
    assert (quotient.ops, remainder.ops) == ([f"arith.div{sign}i"], [f"arith.rem{sign}i"])
    exact = [abs(int(a)) // int(b) * (1 if a >= 0 else -1) for a, b in zip(x, y)]
    np.testing.assert_array_equal(quotient.run(x, y), np.array(exact, dtype=NUMPY[name]))
    np.testing.assert_array_equal(remainder.run(x, y), np.fmod(x, y))


@pytest.mark.parametrize("name", FLOATS)
def test_float_remainder_has_the_sign_of_the_dividend(name: str) -> None:
    k = build("mod", dtype(name), 2.5)
    assert k.ops[-1] == "arith.remf"
    wide = np.float64 if name == "fp64" else np.float32
    np.testing.assert_array_equal(k.run(samples(name)), np.fmod(samples(name).astype(wide), wide(2.5)))


def test_division_errors() -> None:
    with pytest.raises(TypeError, match=r"Cannot use // with int32 and uint32 because they have different signedness"):
        build("floordiv", int32, uint32)
    with pytest.raises(TypeError, match=r"Cannot use % with int32 and int1 because they have different signedness"):
        build("mod", int32, int1)
    with pytest.raises(TypeError, match="unexpected type fp32"):
        build("floordiv", float32, float32)
    with pytest.raises(TypeError, match="unexpected type fp32"):
        build("floordiv", int32, 1.5)


@pytest.mark.parametrize(
    ("method", "op", "compute"),
    [("and_", "andi", operator.and_), ("or_", "ori", operator.or_), ("xor_", "xori", operator.xor)],
)
@row("name", [*INTS, "int1"])
def test_bits(method: str, op: str, compute: Any, name: str) -> None:
    k = build(method, dtype(name), dtype(name))
    assert k.ops == [f"arith.{op}"]
    x, y = samples(name), samples(name)[::-1].copy()
    np.testing.assert_array_equal(k.run(x, y), compute(x, y))


@pytest.mark.parametrize("operands", [(float32, float32), (int32, 1.5), (1.5, int32), (float16, int32), (float32, 1)])
@row("method", ["and_", "or_", "xor_", "shl", "shr", "lshr", "ashr"])
def test_bits_of_floats(method: str, operands: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError, match="invalid operands of type"):
        build(method, *operands)


def test_bool_and_number() -> None:
    assert build("and_", int1, True).ops == ["arith.andi"]
    assert build("and_", int1, 1).ops == ["arith.extui", "arith.andi"]


@pytest.mark.parametrize("name", INTS)
def test_shifts(name: str) -> None:
    left, right = build("shl", dtype(name), 3), build("shr", dtype(name), 3)
    assert left.ops == ["arith.shli"]
    assert right.ops == ["arith.shrui" if name.startswith("u") else "arith.shrsi"]
    np.testing.assert_array_equal(left.run(samples(name)), samples(name) << 3)
    np.testing.assert_array_equal(right.run(samples(name)), samples(name) >> 3)


def test_the_left_operand_decides_the_kind_of_right_shift() -> None:
    k = build("shr", int8, uint32)
    assert k.ops == ["arith.extsi", "arith.shrsi"] and k.results[0].dtype == uint32
    assert build("shr", uint32, int32).ops == ["arith.shrui"]
    assert build("shr", 3, uint32).ops == ["arith.shrui"]
    assert build("shr", -3, int32).ops == ["arith.shrsi"]


def test_a_shift_by_the_width_warns() -> None:
    with pytest.warns(UserWarning, match="shifting int32 by 40"):
        build("shl", int32, 40)


@pytest.mark.parametrize("name", [*INTS, "int1", *FLOATS])
def test_unary_minus(name: str) -> None:
    k = build("minus", dtype(name))
    assert k.ops == ["arith.subf" if name in FLOATS else "arith.subi"]
    x = samples(name)
    np.testing.assert_array_equal(k.run(x), x if name == "int1" else np.zeros_like(x) - x)


@pytest.mark.parametrize("name", [*INTS, "int1"])
def test_invert(name: str) -> None:
    np.testing.assert_array_equal(build("invert", dtype(name)).run(samples(name)), ~samples(name))


def test_unary_errors() -> None:
    with pytest.raises(ValueError, match="unary minus"):
        build("minus", PTR)
    with pytest.raises(ValueError, match="unary invert"):
        build("invert", float32)
    with pytest.raises(ValueError, match="unary invert"):
        build("invert", PTR)
    with pytest.raises(TypeError, match="unary plus"):
        build("plus", int32)


def test_logic_takes_bools_only() -> None:
    assert build("logical_and", int1, int1).ops == ["arith.andi"]
    assert build("logical_or", int1, int1).ops == ["arith.ori"]
    assert build("not_", int1).ops == ["arith.xori"]
    for method, operands in (("logical_and", (int32, int1)), ("logical_or", (int1, int32)), ("not_", (int32,))):
        with pytest.raises(ValueError, match="Cannot bitcast data-type of size 32 to data-type of size 1"):
            build(method, *operands)


@pytest.mark.parametrize(
    ("offset", "ops"),
    [
        (int32, ["tt.addptr"]),
        (int8, ["tt.addptr"]),
        (int64, ["tt.addptr"]),
        (uint64, ["tt.addptr"]),
        (uint32, ["arith.extui", "tt.addptr"]),
        (uint8, ["arith.extui", "tt.addptr"]),
        (int1, ["arith.extui", "tt.addptr"]),
    ],
)
def test_pointer_offsets(offset: dtype, ops: list[str]) -> None:
    k = Kernel(PTR, offset)
    p, i = k.args
    total, reverse = k.semantic.add(p, i), k.semantic.add(i, p)
    k.returns(total, reverse)
    assert total.type == reverse.type == PTR
    assert k.ops == ops + ops


def test_pointer_minus_offset() -> None:
    k = Kernel(PTR, uint32, int32)
    p, u, i = k.args
    k.returns(k.semantic.cast(k.semantic.sub(p, u), int64), k.semantic.cast(k.semantic.sub(p, i), int64))
    assert k.ops == [
        *("arith.extui", "arith.subi", "tt.addptr", "tt.ptr_to_int"),
        *("arith.subi", "tt.addptr", "tt.ptr_to_int"),
    ]
    assert k.run(4096, 2, 1) == 4096 - 8


def test_pointer_and_number() -> None:
    k = Kernel(PTR, block_type(PTR, [16]))
    p, block = k.args
    near, far, back = k.semantic.add(4, p), k.semantic.add(p, 2**40), k.semantic.sub(block, 4)
    k.returns(near, far, back)
    assert k.ops == ["tt.addptr"] * 3
    assert [str(op.operands[1].type) for op in k.all_ops] == ["i32", "i64", "tensor<16xi32>"]


def test_a_block_of_offsets_makes_a_block_of_pointers() -> None:
    k = Kernel(pointer_type(float16), block_type(int32, [16]))
    pointer, offsets = k.args
    assert str(k.semantic.add(pointer, offsets).type) == "<['16'], pointer<fp16>>"


@pytest.mark.parametrize(
    ("method", "operands"),
    [
        ("add", (PTR, float32)),
        ("add", (PTR, 1.5)),
        ("sub", (PTR, PTR)),
        ("sub", (int32, PTR)),
        ("mul", (PTR, 2)),
        ("mul", (PTR, int32)),
        ("truediv", (PTR, int32)),
        ("and_", (PTR, int32)),
    ],
)
def test_pointer_errors(method: str, operands: tuple[Any, Any]) -> None:
    with pytest.raises(TypeError, match="invalid operands of type"):
        build(method, *operands)


def test_two_pointers_cannot_be_added() -> None:
    with pytest.raises(TypeError, match="cannot add pointers"):
        build("add", PTR, PTR)


def test_a_block_pointer_is_advanced_not_added() -> None:
    k = Kernel(pointer_type(block_type(float32, [4, 4])))
    with pytest.raises(TypeError, match=r"tl\.advance"):
        k.semantic.add(k.args[0], 1)


def test_weak_numbers() -> None:
    assert build("mul", float16, 1.5).results[0].dtype == float16
    assert build("mul", 1.5, int32).results[0].dtype == float32
    assert build("add", uint8, tl.constexpr(200)).results[0].dtype == uint8
    assert build("add", uint8, 200).ops == ["arith.addi"]
    with pytest.raises(ValueError, match="out of range"):
        build("add", uint8, 300)
    with pytest.raises(ValueError, match="negative scalar"):
        build("add", uint8, -1)
    with pytest.raises(ValueError, match="out of range"):
        build("truediv", uint8, 300)
    with pytest.raises(TypeError, match="invalid operands of type int32 and str"):
        build("add", int32, "text")
    with pytest.raises(TypeError, match="invalid operands of type NoneType and int32"):
        build("add", None, int32)


def test_two_numbers_become_strong() -> None:
    assert build("add", 1, 2).results[0].dtype == int32
    assert build("add", 1, 0.5).results[0].dtype == float32


def test_constants_are_exact() -> None:
    x = np.full(16, 3.0)
    np.testing.assert_array_equal(build("mul", float64, 0.1).run(x), x * 0.1)
    assert build("add", float16, 100000).run(np.zeros(16, np.float16))[0] == np.inf
    assert np.signbit(build("mul", float32, -0.0).run(np.ones(16, np.float32))).all()


def test_constants_of_both_signs_of_zero_are_kept_apart() -> None:
    k = Kernel(block_type(float32, [16]))
    first = k.semantic.mul(k.args[0], 0.0)
    k.returns(k.semantic.add(k.semantic.mul(k.args[0], -0.0), k.semantic.mul(first, -0.0)))
    assert np.signbit(k.run(np.ones(16, np.float32))).all()


@pytest.mark.parametrize("name", ["fp8e5", "fp8e4nv", "fp8e4b15"])
def test_fp8_is_computed_in_fp16(name: str) -> None:
    k = build("add", dtype(name), dtype(name))
    assert k.results[0].dtype.name == name
    assert "arith.addf" in k.ops
    assert build("truediv", dtype(name), 2.0).results[0].dtype.name == name
    if name in NUMPY:
        x = np.array([0.5, 1, 1.5, 2] * 4, np.float32).astype(NUMPY[name])
        np.testing.assert_array_equal(k.run(x, x), x + x)


@pytest.mark.parametrize("method", ["add", "sub", "mul", "minus"])
def test_overflow_is_checked_in_debug_builds(method: str) -> None:
    operands = (int32,) if method == "minus" else (int32, 1)
    k = build(method, *operands, debug=True)
    name = "sub" if method == "minus" else method
    assert k.ops[-2:] == ["tt.assert", f"arith.{name}i"]
    message = next(op for op in k.all_ops if op.name == "tt.assert").properties["message"]
    assert message.data == f"int32 overflow detected for operation {name}"  # pyright: ignore


def test_overflow_checks_can_be_left_out() -> None:
    assert build("add", int32, 1).ops == ["arith.addi"]
    assert build("add", int32, 1, False, debug=True).ops == ["arith.addi"]
    assert build("add", int32, 1, debug=True, sanitize_overflow=False).ops == ["arith.addi"]
    assert build("add", int64, 1, debug=True).ops == ["arith.addi"]
    assert build("add", float32, 1, debug=True).ops == ["arith.addf"]


def test_overflow_check_uses_the_sign_of_the_type() -> None:
    k = build("mul", uint32, uint32, debug=True)
    assert k.ops[:3] == ["arith.extui", "arith.extui", "arith.muli"]
