"""The bits of NaNs that instructions of NVIDIA's GPUs give: bytes of the result, an instruction on ``d``, ``a``, ``b``,
``c``, operands, result.

f16, bf16 and f32 have one NaN, in which all bits but the sign are set; fp8 too. f64 keeps sign and payload of the last
operand that is NaN, made quiet, and has 0xfff8000000000000 where no operand is. Conversions from bf16 and f64 to f32
keep sign and payload, tf32 loses its last bits. All rows are as an H200 has them (`tests/device/check_nan.py`).
"""

H, B, F, D = 0x7FFF, 0x7FFF, 0x7FFFFFFF, 0xFFF8000000000000  # the NaN of f16, bf16, f32, f64
Row = tuple[int, str, tuple[int, ...], int]

INF, ONE, ZERO = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}, {2: 0x3C00, 4: 0x3F800000, 8: 0x3FF0000000000000}, 0
MINUS = {2: 0x8000, 4: 0x80000000, 8: 0x8000000000000000}
QUIET, LOUD = {2: 0x7E12, 4: 0x7FC01234, 8: 0x7FF8000000001234}, {2: 0x7C12, 4: 0x7F801234, 8: 0x7FF0000000001234}
BF_INF, BF_ONE, BF_QUIET = 0x7F80, 0x3F80, 0x7FC5


def arithmetic(type: str, size: int, nan: int) -> list[Row]:
    """Invalid operations, and NaNs as operands."""
    inf, one, quiet, loud, minus = INF[size], ONE[size], QUIET[size], LOUD[size], MINUS[size]
    if type == "bf16":
        inf, one, quiet, loud = BF_INF, BF_ONE, BF_QUIET, BF_QUIET
    calm = loud | quiet if type == "f64" else nan  # of a signalling NaN
    kept = quiet if type == "f64" else nan
    both = quiet + 1 if type == "f64" else nan
    return [
        (size, f"add.rn.{type} d, a, b;", (inf, inf | minus), nan),
        (size, f"add.rn.{type} d, a, b;", (quiet, one), kept),
        (size, f"add.rn.{type} d, a, b;", (one, loud), calm),
        (size, f"add.rn.{type} d, a, b;", (quiet | minus, quiet + 1), both),
        (size, f"sub.rn.{type} d, a, b;", (inf, inf), nan),
        (size, f"mul.rn.{type} d, a, b;", (inf, ZERO), nan),
        (size, f"mul.rn.{type} d, a, b;", (inf | minus, ZERO), nan),
        (size, f"mul.rn.{type} d, a, b;", (one, quiet), kept),
        (size, f"fma.rn.{type} d, a, b, c;", (inf, ZERO, one), nan),
        (size, f"fma.rn.{type} d, a, b, c;", (inf, one, inf | minus), nan),
        (size, f"fma.rn.{type} d, a, b, c;", (quiet, one, one), kept),
        (size, f"fma.rn.{type} d, a, b, c;", (one, one, quiet), kept),
    ]


ROWS: list[Row] = [
    *arithmetic("f16", 2, H),
    *arithmetic("bf16", 2, B),
    *arithmetic("f32", 4, F),
    *arithmetic("f64", 8, D),
    (4, "div.rn.f32 d, a, b;", (ZERO, ZERO), F),
    (4, "div.full.f32 d, a, b;", (ZERO, ZERO), F),
    (4, "div.full.f32 d, a, b;", (INF[4], INF[4]), F),
    (4, "sqrt.rn.f32 d, a;", (ONE[4] | MINUS[4],), F),
    (4, "sqrt.approx.f32 d, a;", (ONE[4] | MINUS[4],), F),
    (4, "rsqrt.approx.f32 d, a;", (ONE[4] | MINUS[4],), F),
    (4, "rcp.rn.f32 d, a;", (QUIET[4],), F),
    (4, "lg2.approx.f32 d, a;", (ONE[4] | MINUS[4],), F),
    (4, "ex2.approx.f32 d, a;", (QUIET[4],), F),
    (4, "sin.approx.f32 d, a;", (INF[4],), F),
    (4, "tanh.approx.f32 d, a;", (QUIET[4] | MINUS[4],), F),
    (4, "min.f32 d, a, b;", (QUIET[4], LOUD[4]), F),
    (4, "min.f32 d, a, b;", (QUIET[4], ONE[4]), ONE[4]),
    (4, "max.NaN.f32 d, a, b;", (ONE[4], QUIET[4] | MINUS[4]), F),
    (4, "neg.f32 d, a;", (QUIET[4],), F),
    (4, "abs.f32 d, a;", (QUIET[4] | MINUS[4],), F),
    (4, "cvt.f32.f16 d, a;", (QUIET[2],), F),
    (4, "cvt.f32.bf16 d, a;", (BF_QUIET,), BF_QUIET << 16),
    (4, "cvt.rn.f32.f64 d, a;", (QUIET[8] | MINUS[8],), 0xFFC00000),
    (4, "cvt.rni.f32.f32 d, a;", (QUIET[4],), F),
    (4, "cvt.rna.tf32.f32 d, a;", (QUIET[4],), 0x7FC00000),
    (4, "cvt.rn.f16x2.f32 d, a, b;", (QUIET[4], ONE[4]), H << 16 | ONE[2]),
    (4, "cvt.rn.bf16x2.f32 d, a, b;", (QUIET[4] | MINUS[4], ONE[4]), B << 16 | BF_ONE),
    (2, "min.f16 d, a, b;", (QUIET[2], LOUD[2]), H),
    (2, "max.NaN.bf16 d, a, b;", (BF_ONE, BF_QUIET), B),
    (2, "cvt.rn.f16.f32 d, a;", (QUIET[4] | MINUS[4],), H),
    (2, "cvt.rn.bf16.f32 d, a;", (QUIET[4] | MINUS[4],), B),
    (2, "cvt.rn.satfinite.e4m3x2.f32 d, a, b;", (QUIET[4] | MINUS[4], ONE[4]), 0x7F38),
    (2, "cvt.rn.satfinite.e5m2x2.f32 d, a, b;", (QUIET[4], ONE[4]), 0x7F3C),
    (8, "div.rn.f64 d, a, b;", (ZERO, ZERO), D),
    (8, "div.rn.f64 d, a, b;", (QUIET[8], ONE[8]), QUIET[8]),
    (8, "sqrt.rn.f64 d, a;", (ONE[8] | MINUS[8],), D),
    (8, "min.f64 d, a, b;", (QUIET[8], ONE[8]), ONE[8]),
    (8, "neg.f64 d, a;", (QUIET[8],), QUIET[8]),
    (8, "cvt.f64.f32 d, a;", (F,), 0x7FFFFFFFE0000000),
    (8, "cvt.f64.f32 d, a;", (QUIET[4] | MINUS[4],), 0xFFF8024680000000),
    (8, "cvt.rni.f64.f64 d, a;", (QUIET[8],), QUIET[8]),
]


def operand_bytes(text: str) -> int:
    """Of each operand: the type that the instruction names last."""
    return {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[text.split()[0].rpartition(".")[2]]


def name_of(row: Row) -> str:
    _, text, operands, _ = row
    return f"{text.split(' ')[0]} {' '.join(f'{bits:x}' for bits in operands)}"
