"""LLVM types, interned: equal arguments give the same object, also in several threads, so types are compared with `is`.

>>> vector(f32, 4).text, vector(f32, 4) is vector(f32, 4)
('<4 x float>', True)
>>> vector(f32, 4).suffix                  # in the names of overloaded intrinsics: llvm.fma.v4f32
'v4f32'
"""

from collections.abc import Sequence
from functools import cache

from tilework.numerics import formats


class Type:
    """One LLVM type. `scalar` is the element of a vector and the type itself otherwise."""

    __slots__ = ("bits", "count", "element", "fields", "kind", "mask", "scalar", "suffix", "text")

    def __init__(self, kind: str, text: str, suffix: str, bits: int = 0) -> None:
        self.kind, self.text, self.suffix, self.bits = kind, text, suffix, bits
        self.mask = (1 << bits) - 1
        self.scalar: Type = self
        self.element: Type | None = None
        self.count = 1
        self.fields: tuple[Type, ...] = ()

    def __repr__(self) -> str:
        return self.text

    @property
    def is_int(self) -> bool:
        """An integer, or a vector of integers."""
        return self.scalar.kind == "int"

    @property
    def is_float(self) -> bool:
        """A floating-point number, or a vector of them."""
        return self.scalar.kind == "float"

    @property
    def is_pointer(self) -> bool:
        return self.scalar.kind == "ptr"

    @property
    def is_vector(self) -> bool:
        return self.kind == "vector"

    def with_scalar(self, scalar: "Type") -> "Type":
        """The same shape with another element: <4 x float> with i1 is <4 x i1>."""
        return vector(scalar, self.count) if self.kind == "vector" else scalar


_INTERNED: dict[str, Type] = {}  # by text


def interned(made: Type) -> Type:
    """The one type with that text.

    Two threads that miss a cache at the same time both come here, and leave with the same.
    """
    return _INTERNED.setdefault(made.text, made)


@cache
def integer(bits: int) -> Type:
    return interned(Type("int", f"i{bits}", f"i{bits}", bits))


@cache
def pointer(space: int = 0) -> Type:
    return interned(Type("ptr", f"ptr addrspace({space})" if space else "ptr", f"p{space}", 64))


@cache
def vector(element: Type, count: int) -> Type:
    assert element.kind in ("int", "float", "ptr"), f"LLVM has no vector of {element}"
    made = Type("vector", f"<{count} x {element.text}>", f"v{count}{element.suffix}", element.bits * count)
    made.scalar = made.element = element
    made.count = count
    return interned(made)


@cache
def array(element: Type, count: int) -> Type:
    made = Type("array", f"[{count} x {element.text}]", "", element.bits * count)
    made.element, made.count = element, count
    return interned(made)


@cache
def struct(*fields: Type) -> Type:
    """A literal struct; `Module.named_struct` gives one a name, which keeps the text of wide ones short."""
    made = Type("struct", "{ " + ", ".join(field.text for field in fields) + " }", "", sum(f.bits for f in fields))
    made.fields = fields
    return interned(made)


i1, i8, i16, i32, i64, i128 = (integer(bits) for bits in (1, 8, 16, 32, 64, 128))
f16 = Type("float", "half", "f16", 16)
bf16 = Type("float", "bfloat", "bf16", 16)
f32 = Type("float", "float", "f32", 32)
f64 = Type("float", "double", "f64", 64)
ptr = pointer()
void = Type("void", "void", "isVoid")

FORMATS: dict[Type, formats.Format] = {
    type: formats.FORMATS[name] for type, name in {f16: "fp16", bf16: "bf16", f32: "fp32", f64: "fp64"}.items()
}


def result_of(types: Sequence[Type]) -> Type:
    """The return type of a call with results of these types: void, the one, or a struct of all."""
    return struct(*types) if len(types) > 1 else types[0] if types else void
