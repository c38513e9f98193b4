"""The type of ``left + right`` for two tensors, written down by hand; E is an error."""

SHORT = {
    **{f"i{bits}": f"int{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "e5": "fp8e5", "e4nv": "fp8e4nv"},
}

TENSOR_TENSOR = """
     i1   i8   u8   i16  u16  i32  u32  i64  u64  f16  bf16 f32  f64  e5   e4nv
i1   i1   i8   u8   i16  u16  i32  u32  i64  u64  f16  f32  f32  f64  E    E
i8   i8   i8   u8   i16  u16  i32  u32  i64  u64  f16  f32  f32  f64  E    E
u8   u8   u8   u8   i16  u16  i32  u32  i64  u64  f16  f32  f32  f64  E    E
i16  i16  i16  i16  i16  u16  i32  u32  i64  u64  f16  f32  f32  f64  E    E
u16  u16  u16  u16  u16  u16  i32  u32  i64  u64  f16  f32  f32  f64  E    E
i32  i32  i32  i32  i32  i32  i32  u32  i64  u64  f16  f32  f32  f64  E    E
u32  u32  u32  u32  u32  u32  u32  u32  i64  u64  f16  f32  f32  f64  E    E
i64  i64  i64  i64  i64  i64  i64  i64  i64  u64  f16  f32  f32  f64  E    E
u64  u64  u64  u64  u64  u64  u64  u64  u64  u64  f16  f32  f32  f64  E    E
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f64  f16  f16
bf16 f32  f32  f32  f32  f32  f32  f32  f32  f32  f16  bf16 f32  f64  f32  f32
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  f32  f32
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
e5   E    E    E    E    E    E    E    E    E    f16  f32  f32  f64  e5   f16
e4nv E    E    E    E    E    E    E    E    E    f16  f32  f32  f64  f16  e4nv
"""


def table_entries() -> list[tuple[str, str, str]]:
    header, *rows = TENSOR_TENSOR.strip("\n").splitlines()
    columns = header.split()
    return [(row.split()[0], column, cell) for row in rows for column, cell in zip(columns, row.split()[1:])]


ENTRIES = table_entries()
