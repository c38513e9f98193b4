"""Element types, composite types and signature strings, by their tables."""

from typing import NamedTuple

import pytest

import tilework.language as tl
from tilework.language.parameters import canonicalize_dtype, canonicalize_ptr_dtype, type_canonicalisation_dict

INTS = {  # name: (bits, signed, code)
    "int1": (1, False, "u1"),
    "int8": (8, True, "i8"),
    "int16": (16, True, "i16"),
    "int32": (32, True, "i32"),
    "int64": (64, True, "i64"),
    "uint8": (8, False, "u8"),
    "uint16": (16, False, "u16"),
    "uint32": (32, False, "u32"),
    "uint64": (64, False, "u64"),
}
FLOATS = {  # name in tl: (short name, bits, mantissa, bias)
    "float8e5": ("fp8e5", 8, 2, 15),
    "float8e4nv": ("fp8e4nv", 8, 3, 7),
    "float8e5b16": ("fp8e5b16", 8, 2, 16),
    "float8e4b8": ("fp8e4b8", 8, 3, 8),
    "float8e4b15": ("fp8e4b15", 8, 3, 15),
    "float16": ("fp16", 16, 10, 15),
    "bfloat16": ("bf16", 16, 7, 127),
    "float32": ("fp32", 32, 23, 127),
    "float64": ("fp64", 64, 52, 1023),
}


@pytest.mark.parametrize(("name", "facts"), INTS.items())
def test_integer_types(name: str, facts: tuple[int, bool, str]) -> None:
    bits, signed, code = facts
    t = getattr(tl, name)
    assert (t.name, str(t), t.primitive_bitwidth, t.int_bitwidth) == (name, name, bits, bits)
    assert t.itemsize == bits // 8
    assert t.mangle() == code and t.cache_key_part == name
    assert t.int_signedness is (tl.dtype.SIGNEDNESS.SIGNED if signed else tl.dtype.SIGNEDNESS.UNSIGNED)
    assert t.is_int() and t.is_int_signed() == signed and t.is_int_unsigned() != signed
    assert not t.is_floating() and t.is_bool() == (bits == 1)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    assert (t.get_int_min_value(), t.get_int_max_value()) == (low, high)
    assert getattr(t, f"is_{name}")()
    assert not hasattr(t, "fp_mantissa_width")
    assert tl.str_to_ty(code) == t


@pytest.mark.parametrize(("name", "facts"), FLOATS.items())
def test_float_types(name: str, facts: tuple[str, int, int, int]) -> None:
    short, bits, mantissa, bias = facts
    t = getattr(tl, name)
    assert (str(t), t.primitive_bitwidth, t.fp_mantissa_width, t.exponent_bias) == (short, bits, mantissa, bias)
    assert t.is_floating() and not t.is_int()
    assert t.is_standard_floating() == (bits > 8) and t.is_fp8() == (bits == 8)
    assert getattr(t, f"is_{short}")()
    assert t.mangle() == short and tl.str_to_ty(short) == t
    assert not hasattr(t, "int_bitwidth") and not hasattr(t, "int_signedness")


@pytest.mark.parametrize("name", [*INTS, *FLOATS, "void"])
def test_repr_is_the_name_users_write(name: str) -> None:
    assert repr(getattr(tl, name)) == f"triton.language.{name}"


def test_every_name_in_the_class_lists_is_a_dtype() -> None:
    names = tl.dtype.SINT_TYPES + tl.dtype.UINT_TYPES + tl.dtype.FP_TYPES + tl.dtype.OTHER_TYPES
    assert [tl.dtype(name).name for name in names] == names
    assert tl.dtype.STANDARD_FP_TYPES == ["fp16", "bf16", "fp32", "fp64"]
    assert tl.dtype.is_dtype("fp16") and not tl.dtype.is_dtype("float16")
    with pytest.raises(AssertionError, match="float16"):
        tl.dtype("float16")
    assert tl.dtype(tl.constexpr("fp16")) == tl.float16


def test_equality_is_by_name_and_unwraps_constants() -> None:
    assert tl.dtype("fp32") == tl.float32 and hash(tl.dtype("fp32")) == hash(tl.float32)
    assert tl.float32 == tl.constexpr(tl.float32) and tl.float32 != tl.constexpr(tl.float16)
    assert tl.float32 != tl.float64 and tl.float32 != "fp32" and tl.float32 is not None
    assert {tl.float32: 1}[tl.dtype("fp32")] == 1
    with pytest.raises(TypeError):
        sorted([tl.float32, tl.float16])


def test_kinds_are_ordered() -> None:
    kinds = [t.kind() for t in (tl.int1, tl.uint8, tl.float16)]
    assert [kind.value for kind in kinds] == [0, 1, 2]
    assert kinds[0] < kinds[1] < kinds[2] and kinds[1] <= kinds[1]


def test_scalar_and_element_type() -> None:
    block = tl.block_type(tl.int8, [2, 4])
    assert tl.int8.scalar is tl.int8 and block.scalar is tl.int8
    assert tl.int8.with_element_ty(tl.float32) == tl.float32
    assert block.with_element_ty(tl.float32) == tl.block_type(tl.float32, [2, 4])


def test_pointers() -> None:
    p = tl.pointer_type(tl.float32)
    k = tl.pointer_type(tl.float32, const=True)
    assert (p.name, k.name, p.element_ty, p.address_space) == ("pointer<fp32>", "const_pointer<fp32>", tl.float32, 1)
    assert p.is_ptr() and not p.is_const() and k.is_const() and not tl.float32.is_ptr()
    assert p == tl.pointer_type(tl.constexpr(tl.float32)) and p != k and p != tl.pointer_type(tl.float32, 3)
    assert k == tl.const_pointer_type(tl.float32)
    assert p.mangle() == "Pfp32" and p.mangle() != k.mangle()
    assert tl.pi32_t == tl.pointer_type(tl.int32)
    assert not p.is_int() and not p.is_floating() and not p.is_block()
    with pytest.raises(TypeError, match="int"):
        tl.pointer_type(3)
    with pytest.raises(ValueError, match="an address space is a number or one of global, shared, not 'local'"):
        tl.pointer_type(tl.float32, "local")
    assert tl.pointer_type(tl.float32, "shared") == tl.pointer_type(tl.float32, 3)


def test_blocks() -> None:
    block = tl.block_type(tl.float32, [4, tl.constexpr(8)])
    assert block.name == str(block) == "<['4', '8'], fp32>"
    assert (block.numel, block.nbytes, list(block.shape)) == (32, 128, [4, 8])
    assert block.get_block_shapes() == block.shape and isinstance(block.shape, tl.tuple)
    assert block.is_block() and not block.is_ptr()
    assert tl.block_type(tl.int32, [4, 8]).mangle() == "i32S4_8S"
    assert block == tl.block_type(tl.float32, (4, 8)) and hash(block) == hash(tl.block_type(tl.float32, (4, 8)))
    assert block != tl.block_type(tl.float32, (8, 4)) and block != tl.block_type(tl.float16, (4, 8))
    assert tl.pointer_type(block).mangle() == "Pfp32S4_8S"


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ([], TypeError, "dimension"),
        ([3, 0], ValueError, "^Shape element 1 must be positive, got 0$"),
        ([4, 2.0], TypeError, "Shape element 1"),
        ([1024, 2048], ValueError, "2097152.*1048576"),
    ],
)
def test_illegal_block_shapes(shape: list[object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tl.block_type(tl.float32, shape)


class Pair(NamedTuple):
    a: object
    b: object


def test_signature_strings() -> None:
    assert tl.str_to_ty("*fp32") == tl.pointer_type(tl.float32)
    assert tl.str_to_ty("*ki8") == tl.pointer_type(tl.int8, const=True)
    assert tl.str_to_ty("**i32") == tl.pointer_type(tl.pointer_type(tl.int32))
    assert tl.str_to_ty("i1") == tl.str_to_ty("B") == tl.str_to_ty("u1") == tl.int1
    assert tl.str_to_ty("constexpr", 7) == tl.constexpr_type(7)
    descriptor = tl.str_to_ty("tensordesc<fp16[64, 32]>")
    assert descriptor.block_type == tl.block_type(tl.float16, [64, 32])
    assert list(descriptor.shape_type) == [tl.int32] * 2 and list(descriptor.strides_type) == [tl.int64] * 2
    assert descriptor.mangle() == "TDfp16S64_32S"
    with pytest.raises(ValueError, match="fp33"):
        tl.str_to_ty("fp33")


def test_tuple_signatures_keep_field_names() -> None:
    plain = tl.str_to_ty(("i32", ("*fp32", "constexpr")), (None, (None, 4)))
    assert plain == tl.tuple_type([tl.int32, tl.tuple_type([tl.pointer_type(tl.float32), tl.constexpr_type(4)])])
    assert tl.str_to_ty(Pair("i32", "fp32")).fields == ["a", "b"]
    assert plain.mangle() == "Ti32_TPfp32_c4TT"


@pytest.mark.parametrize(
    ("alias", "code"),
    {
        **{"bool": "u1", "int1": "u1", "uint1": "u1", "i1": "u1", "u1": "u1", "half": "fp16", "float16": "fp16"},
        **{"bfloat16": "bf16", "float": "fp32", "float32": "fp32", "double": "fp64", "float64": "fp64", "int": "i32"},
        **{"int32": "i32", "int8": "i8", "int16": "i16", "int64": "i64", "uint8": "u8", "uint64": "u64"},
        **{"float8e4nv": "fp8e4nv", "float8_e4m3fn": "fp8e4nv", "float8e5": "fp8e5", "float8_e5m2": "fp8e5"},
        **{"float8e4b8": "fp8e4b8", "float8_e4m3fnuz": "fp8e4b8", "float8e5b16": "fp8e5b16"},
        **{"float8_e5m2fnuz": "fp8e5b16", "float8e4b15": "fp8e4b15", "void": "void", "fp32": "fp32"},
    }.items(),
)
def test_aliases(alias: str, code: str) -> None:
    assert type_canonicalisation_dict[alias] == code
    assert canonicalize_dtype(f"torch.{alias}") == code


def test_canonical_pointer_codes() -> None:
    assert canonicalize_ptr_dtype("torch.float16", False) == "*fp16"
    assert canonicalize_ptr_dtype("torch.float16", True) == "*kfp16"
    with pytest.raises(KeyError):
        canonicalize_dtype("torch.complex64")


def test_get_int_dtype() -> None:
    assert tl.core.get_int_dtype(8, True) == tl.int8 and tl.core.get_int_dtype(64, False) == tl.uint64
    assert tl.core.get_int_dtype(1, True) == tl.int1
    with pytest.raises(ValueError, match="7 bits"):
        tl.core.get_int_dtype(7, True)


def test_function_type_prints_its_parts() -> None:
    assert str(tl.function_type([tl.int32], [tl.float32, tl.pi32_t])) == "fn (fp32, pointer<int32>) -> int32"
