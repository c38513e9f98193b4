"""A function with an argument of each kind, for tests of single ops: `in_function("%0 = tt.splat %x : ...")`."""

from xdsl.ir import Attribute

from tilework.ir import tt
from tilework.ir.types import f8E4M3FN, f16, f32, i1, i8, i32, i64, pointer_type, tensor_type

TYPES: dict[str, Attribute] = {
    "b": i1,
    "n": i32,
    "l": i64,
    "x": f32,
    "p": pointer_type(f32),
    "pi": pointer_type(i32),
    "ph": pointer_type(f16),
    "t": tensor_type((64,), f32),
    "ti": tensor_type((64,), i32),
    "tb": tensor_type((64,), i1),
    "tp": tensor_type((64,), pointer_type(f32)),
    "one": tensor_type((1,), f32),
    "pair": tensor_type((32, 2), f32),
    "row": tensor_type((1, 64), f32),
    "m": tensor_type((16, 16), f32),
    "ma": tensor_type((16, 32), f16),
    "mb": tensor_type((32, 16), f16),
    "q": tensor_type((16, 64), i8),
    "w": tensor_type((128, 16), f8E4M3FN),
    "s": tensor_type((16, 4), i8),
    "bp": pointer_type(tensor_type((64, 32), f32)),
    "d": tt.TensorDescType(tensor_type((1, 32), f32)),
    "rows": tensor_type((64, 32), f32),
    "row32": tensor_type((1, 32), f32),
}


def in_function(body: str) -> str:
    arguments = ", ".join(f"%{name}: {type}" for name, type in TYPES.items())
    return f"tt.func @k({arguments}) {{\n  {body}\n  tt.return\n}}\n"
