"""libdevice: names, signatures and types."""

import inspect
from typing import Any

import pytest

import tilework.language as tl
from tilework.language.extra import libdevice as neutral
from tilework.language.extra.cuda import libdevice
from tilework.language.extra.cuda.libdevice import TABLE

I32, U32, I64, U64, F32, F64, BOOL = tl.int32, tl.uint32, tl.int64, tl.uint64, tl.float32, tl.float64, tl.int1


@pytest.mark.parametrize(
    ("name", "arguments", "symbol", "result"),
    [
        ("erf", (F32,), "__nv_erff", F32),
        ("erf", (F64,), "__nv_erf", F64),
        ("cyl_bessel_i0", (F32,), "__nv_cyl_bessel_i0f", F32),
        ("atan2", (F64, F64), "__nv_atan2", F64),
        ("norm4d", (F32, F32, F32, F32), "__nv_norm4df", F32),
        ("abs", (I64,), "__nv_llabs", I64),
        ("abs", (F32,), "__nv_fabsf", F32),
        ("clz", (I64,), "__nv_clzll", I32),
        ("mulhi", (U64, U64), "__nv_umul64hi", U64),
        ("sad", (I32, I32, U32), "__nv_sad", I32),
        ("div_rz", (F32, F32), "__nv_fdiv_rz", F32),
        ("rcp_ru", (F64,), "__nv_drcp_ru", F64),
        ("sqrt_rn", (F32,), "__nv_fsqrt_rn", F32),
        ("fma_rd", (F32, F32, F32), "__nv_fmaf_rd", F32),
        ("fast_sinf", (F32,), "__nv_fast_sinf", F32),
        ("saturatef", (F32,), "__nv_saturatef", F32),
        ("fast_dividef", (F32, F32), "__nv_fast_fdividef", F32),
        ("pow", (F32, I32), "__nv_powif", F32),
        ("pow", (F64, F64), "__nv_pow", F64),
        ("jn", (I32, F32), "__nv_jnf", F32),
        ("isnan", (F64,), "__nv_isnand", BOOL),
        ("isfinited", (F64,), "__nv_isfinited", BOOL),
        ("double2uint_rd", (F64,), "__nv_double2uint_rd", I32),
        ("float2ull_rz", (F32,), "__nv_float2ull_rz", I64),
        ("ull2double_ru", (U64,), "__nv_ull2double_ru", F64),
        ("hiloint2double", (I32, I32), "__nv_hiloint2double", F64),
        ("float_as_uint", (F32,), "__nv_float_as_uint", I32),
    ],
)
def test_symbols(name: str, arguments: tuple[Any, ...], symbol: str, result: Any) -> None:
    assert TABLE[name][arguments] == (symbol, result)


def test_functions_have_names_signatures_and_docs() -> None:
    assert libdevice.erf is libdevice.erf and libdevice.erf.__name__ == "erf"
    text = str(libdevice.erf.__doc__)
    assert "__nv_erff" in text and "fp64" in text
    assert list(inspect.signature(libdevice.fma).parameters) == ["arg0", "arg1", "arg2", "_semantic"]
    assert set(TABLE) <= set(dir(libdevice)) and set(dir(neutral)) == {*TABLE, "fast_tanhf"}
    for name in TABLE:
        assert tl.core.is_builtin(getattr(libdevice, name)) and tl.core.is_builtin(getattr(neutral, name))
    with pytest.raises(AttributeError, match="nothing"):
        _ = libdevice.nothing


def test_a_call_hands_the_table_to_extern_elementwise() -> None:
    calls: list[Any] = []

    class Semantic:
        def extern_elementwise(self, *args: Any) -> str:
            calls.append(args)
            return "result"

    x = tl.tensor("x", tl.float32)
    assert libdevice.atan2(x, 1.0, _semantic=Semantic()) == "result"
    assert calls == [("", "", [x, 1.0], TABLE["atan2"], True)]


def test_neutral_functions_carry_the_name_of_the_real_one() -> None:
    assert neutral.j0._libdevice_name == "j0" == neutral.j0.__name__
    with pytest.raises(ValueError, match="j0"):
        neutral.j0(tl.tensor("x", tl.float32), _semantic=object())
