"""The user's own code on GPUs: inline assembly, functions of libdevice and of other libraries."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.targets.gpu_text import elementwise, elementwise_text, launch, ptx_of
from tilework.errors import PassError
from tilework.numerics.libdevice_table import SYMBOLS


def asm(text: str, constraints: str, signature: str, pack: int = 1, pure: bool = True, results: str = "%y") -> str:
    args, types = signature.split(" -> ")
    listed = ", ".join(f"%{name}" for name in "xz"[: args.count("T<")])
    flags = f'constraints = "{constraints}", packed_element = {pack} : i32, pure = {str(pure).lower()}'
    return f'{results} = tt.elementwise_inline_asm "{text}" {{{flags}}} {listed} : {args} -> {types}'


@pytest.mark.parametrize("arch", [80, 90])
def test_one_element(arch: int) -> None:
    x, z = np.arange(64, dtype=np.int32) * 77, np.arange(64, dtype=np.int32)[::-1].copy()
    body = asm("shf.l.wrap.b32 $0, $1, $2, 5;", "=r,r,r", "T<i32>, T<i32> -> T<i32>")
    (y,) = elementwise(body, {"x": x, "z": z}, {"y": np.int32}, arch, 2)
    np.testing.assert_array_equal(y, (z << 5) | (x >> 27))


def test_narrow_elements_alone() -> None:
    x = np.arange(-32, 32).astype(np.float16)
    (y,) = elementwise(asm("neg.f16 $0, $1;", "=h,h", "T<f16> -> T<f16>"), {"x": x}, {"y": np.float16}, 90, 1)
    np.testing.assert_array_equal(y, -x)
    x = np.arange(64, dtype=np.uint8)
    (y,) = elementwise(asm("shl.b32 $0, $1, 3;", "=r,r", "T<i8> -> T<i8>"), {"x": x}, {"y": np.uint8}, 90, 4)
    np.testing.assert_array_equal(y, x << 3)


@pytest.mark.parametrize(("size", "per_thread"), [(256, 8), (128, 4), (64, 2), (32, 1), (32, 8)])
def test_packed(size: int, per_thread: int) -> None:
    """Four bytes in a word, also where a thread has fewer."""
    x = np.arange(size).astype(np.uint8)
    body = asm("and.b32 $0, $1, 0x1F1F1F1F; shl.b32 $0, $0, 3;", "=r,r", "T<i8> -> T<i8>", 4)
    (y,) = elementwise(body, {"x": x}, {"y": np.uint8}, 90, per_thread)
    np.testing.assert_array_equal(y, x << 3)


def test_packed_results_of_different_widths() -> None:
    """One word of bytes, and four of i32."""
    x = (np.arange(256) * 37).astype(np.uint8)
    text = (
        "{ mov.b32 $0, $5; prmt.b32 $1, $5, 0, 0x4440; prmt.b32 $2, $5, 0, 0x4441; prmt.b32 $3, $5, 0, 0x4442; "
        "prmt.b32 $4, $5, 0, 0x4443; }"
    )
    body = asm(text, "=r,=r,=r,=r,=r,r", "T<i8> -> T<i8>, T<i32>", 4, results="%a, %b")
    a, b = elementwise(body, {"x": x}, {"a": np.uint8, "b": np.int32}, 90, 8)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, x)


def test_pairs_of_halves_and_two_results() -> None:
    x, z = np.linspace(-3, 3, 128).astype(np.float16), np.linspace(1, 2, 128).astype(np.float16)
    text = "add.f16x2 $0, $2, $3; mul.f16x2 $1, $2, $3;"
    body = asm(text, "=r,=r,r,r", "T<f16>, T<f16> -> T<f16>, T<f16>", 2, results="%a, %b")
    a, b = elementwise(body, {"x": x, "z": z}, {"a": np.float16, "b": np.float16}, 80, 4)
    np.testing.assert_array_equal(a, x + z)
    np.testing.assert_array_equal(b, x * z)


def test_without_operands() -> None:
    body = """%c = tt.elementwise_inline_asm "mov.u32 $0, 41;" {constraints = "=r", packed_element = 1 : i32, pure = true} -> i32
    %s = tt.splat %c : i32 -> T<i32>
    %y = arith.addi %s, %x : T<i32>"""  # noqa: E501
    (y,) = elementwise(body, {"x": np.ones(32, np.int32)}, {"y": np.int32})
    assert set(y) == {42}


def test_impure_through_pointers() -> None:
    body = """%y = tt.elementwise_inline_asm "ld.global.b32 $0, [$1]; st.global.b32 [$1], 7;" {constraints = "=r,l",
        packed_element = 1 : i32, pure = false} %p_at : T<!tt.ptr<i32>> -> T<i32>"""
    ptx = ptx_of(elementwise_text(body, {}, {"y": "i32"}, 64, 90, 1, 2, {"p": "i32"}), 90)
    y, p = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    launch(ptx, "kernel", [y, p], 2)
    np.testing.assert_array_equal(y, np.arange(64))
    assert set(p) == {7}


def test_unused_impure_assembly_stays() -> None:
    text = "{ .reg .b32 t; mov.b32 t, $1; mov.b32 $0, t; }"
    for pure in (False, True):
        body = asm(text, "=r,r", "T<i32> -> T<i32>", 1, pure)
        assert (".reg .b32 t" in ptx_of(elementwise_text(body, {"x": "i32"}, {}, 32, 90, 1), 90)) is not pure


@pytest.mark.parametrize(("text", "constraints", "said"), [
    ("mov.b32 $0, $1;", "=r", "1 outputs, then 1 inputs"),
    ("mov.b32 $0, $1;", "r,=r", "1 outputs, then 1 inputs"),
    ("mov.b32 $0, $1;", "=x,r", "'x' is none of"),
    ("mov.b32 $0, $7;", "=r,r", r"operand \$7, and has only 2"),
])  # fmt: skip
def test_refused(text: str, constraints: str, said: str) -> None:
    """IR that would abort the process in LLVM is refused."""
    body = asm(text, constraints, "T<i32> -> T<i32>")
    with pytest.raises(PassError, match=said):
        ptx_of(elementwise_text(body, {"x": "i32"}, {"y": "i32"}, 32, 90, 1), 90)


# Libraries


def extern(symbol: str, types: str, names: str = "%x", result: str = "%y", pure: str = "true") -> str:
    return (
        f'{result} = tt.extern_elementwise {names} {{libname = "", libpath = "", pure = {pure}, '
        f'symbol = "{symbol}"}} : {types}'
    )


def test_accurate_and_fast_functions() -> None:
    x = np.linspace(0.1, 3, 64).astype(np.float32)
    wanted = {
        "expf": math.exp, "exp2f": lambda v: 2.0**v, "logf": math.log, "sinf": math.sin, "tanhf": math.tanh,
        "lgammaf": math.lgamma,
        "rsqrtf": lambda v: v**-0.5, "cbrtf": lambda v: v ** (1 / 3), "fast_expf": math.exp, "fast_sinf": math.sin,
        "fast_logf": math.log, "fast_tanhf": math.tanh, "fast_exp10f": lambda v: 10.0**v, "fast_tanf": math.tan,
        "fast_log10f": math.log10, "fast_cosf": math.cos,
    }  # fmt: skip
    body = "\n".join(extern(f"__nv_{name}", "(T<f32>) -> T<f32>", result=f"%{name}") for name in wanted)
    for found, (name, function) in zip(
        elementwise(body, {"x": x}, dict.fromkeys(wanted, np.float32)), wanted.items(), strict=True
    ):
        exact = np.array([function(v) for v in x.tolist()])
        np.testing.assert_allclose(
            found, exact, rtol=5e-4 if name.startswith("fast") else 1e-6, atol=1e-6, err_msg=name
        )


def test_directed_rounding_is_an_instruction() -> None:
    x, z = np.array([1.0, -1.0] * 16, np.float32), np.full(32, 3.0, np.float32)
    body = "\n".join(
        extern(f"__nv_fdiv_{mode}", "(T<f32>, T<f32>) -> T<f32>", "%x, %z", f"%{mode}")
        for mode in ("rn", "rz", "ru", "rd")
    )
    near, zero, up, down = elementwise(body, {"x": x, "z": z}, dict.fromkeys(("rn", "rz", "ru", "rd"), np.float32))
    third = np.float32(1) / np.float32(3)
    below = np.nextafter(third, np.float32(0))
    assert [near[0], zero[0], up[0], down[0]] == [third, below, third, below]
    assert [near[1], zero[1], up[1], down[1]] == [-third, -below, -below, -third]


def test_every_function_survives_llvm() -> None:
    """Those of one argument; a function that LLVM has no code for would end the process."""
    groups: dict[str, list[str]] = {"f32": [], "f64": []}
    for symbol, known in SYMBOLS.items():
        if symbol.startswith("__nv_") and known.arguments in ("f", "d") and known.function in ONE_ARGUMENT:
            groups["f32" if known.arguments == "f" else "f64"].append(symbol)
    for type, symbols in groups.items():
        body = "\n".join(
            extern(symbol, f"(T<{type}>) -> T<{type}>", result=f"%r{at}") for at, symbol in enumerate(symbols)
        )
        outs = {f"r{at}": type for at in range(len(symbols))}
        assert "@__nv_" not in ptx_of(elementwise_text(body, {"x": type}, outs, 32, 90, 1), 90)


ONE_ARGUMENT = frozenset(
    "floor ceil trunc rint round sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi "
    "cospi asin acos "
    "atan sinh cosh tanh asinh acosh atanh erf erfc erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma".split()
)


def test_symbols_of_other_libraries_are_linked(tmp_path: Path) -> None:
    library = tmp_path / "mine.ll"
    library.write_text("define float @thrice(float %x) alwaysinline {\n  %y = fmul float %x, 3.0\n  ret float %y\n}\n")
    x = np.arange(32, dtype=np.float32)
    body = extern("thrice", "(T<f32>) -> T<f32>")
    (y,) = elementwise(body, {"x": x}, {"y": np.float32}, libraries=(("mine", str(library)),))
    np.testing.assert_array_equal(y, 3 * x)
