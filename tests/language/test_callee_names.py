"""Names of callees in TTIR: all arguments of a call, constants included (3.7.1)."""

from pathlib import Path

import numpy as np
import pytest

import tilework.language as tl
from tests.frontend.rows import arguments, check, kernel
from tests.frontend.run import result, ttir
from tilework import knobs
from tilework.ir import tt

MANGLED = """
@tilework.jit
def f(x): return x

@tilework.jit
def callee(x, n, text, t, f): return x

@tilework.jit
def no_arguments(): return 1

@tl.core._aggregate
class Cell:
    value: tl.tensor
    size: tl.constexpr

    def __init__(self, value, size):
        self.value, self.size = value, size

    @tilework.jit
    def get(self): return self.value

def factory():
    @tilework.jit
    def inner(x): return x
    return inner

INNER = tl.constexpr(factory())

class Pair(NamedTuple):
    left: tl.tensor
    right: tl.constexpr
"""
SYMBOLS = {
    "f(n)": "row0.f__i32",
    "tl.zeros((4, 8), tl.int32)": "tilework.language.standard.zeros__Tc4_c8T_ci32",
    "callee(n, 4, 'ab', (n, 3), f=1.5)": "row0.callee__i32_c4_c_sq_ab_sq__Ti32_c3T_c1.5",
    "tl.max(tl.zeros((512,), tl.float32), axis=0)": "tilework.language.folds.max__fp32S512S_c0_cFalse_cTrue_cFalse",
    "no_arguments()": "row0.no_arguments__",
    "callee(n, None, True, (), -0.0)": "row0.callee__i32_cNone_cTrue_TT_c-0.0",
    "callee(p, [1, 2], tl.pointer_type(tl.int8), (1, (n,)), 2**40)":
        "row0.callee__Pfp32_Tc1_c2T_cPi8_Tc1_Ti32TT_c1099511627776",
    "callee(f, n > 2, tl.float16, \"[a'b]\", 'c.d e')":
        "row0.callee__cJITFunction(row0:f)_u1_cfp16_c\"_a_sq_b_\"_c_sq_c.d e_sq_",
    "f(Pair(n, 3))": "row0.f__Ti32_c3T",
    "Cell(n, 4).get()": "row0.Cell.get__row0.Cell<i32, c4>",
    "f(tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 8]))": "row0.f__TDfp32S4_8S",
    "INNER(n)": "row0.factory.<locals>.inner__i32",
    "f('é')": "row0.f__c_sq__u00e9__sq_",  # ASCII, as assemblers read it
}  # fmt: skip


@pytest.mark.parametrize("call", SYMBOLS)
def test_symbol_of_a_callee(tmp_path: Path, call: str) -> None:
    fn = kernel(tmp_path, call, MANGLED)
    module = ttir(fn, np.zeros(8, np.int32), *arguments(), C=4)
    symbols = [op.sym_name.data for op in module.ops if isinstance(op, tt.FuncOp)]
    assert SYMBOLS[call] in symbols


def test_symbols_of_triton_3_6(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        check(tmp_path, "f(n)", "@row0.f__i32__(", MANGLED)
        wanted = (
            '@"row1.callee__i32_i32__(1,)cconstexpr_4__(2,)cconstexpr_ab__(3, 1)cconstexpr_3__(4,)cconstexpr_1_d_5_"'
        )
        check(tmp_path, "callee(n, 4, 'ab', (n, 3), f=1.5)", wanted, MANGLED)


def test_not_inlined_functions_with_constants_in_their_names_run(tmp_path: Path) -> None:
    """Their symbols reach the assembler."""
    header = "@tilework.jit(noinline=True)\ndef far(x, t, text): return x + t[1]"
    fn = kernel(tmp_path, "tl.store(out, far(n, (n, 2), \"a b'(c)\") + far(n, (n, -2.0), '[d]').to(tl.int32))", header)
    assert result(fn, *arguments(), size=8, C=4)[0] == 6
    out = np.zeros(8, np.int32)
    fn[(1,)](out, *arguments(), C=4)
    assert out[0] == 6


def test_a_class_as_a_constant_is_mangled_by_its_text() -> None:
    assert tl.constexpr(tl.dtype).type.mangle() == f"c{tl.dtype!r}"
