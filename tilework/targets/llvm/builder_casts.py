"""Conversions between types: part of `Builder`.

    b.zext(b.zext(x, i32), i64)     # one zext from the type of x
    b.trunc(b.zext(x8, i32), i8)    # x8

`cast` picks the instruction for two integer or two float types. Out-of-range floats: `fptosi` is poison as in LLVM,
`fptosi_sat` saturates and makes NaN 0, as the language wants.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilework.targets.llvm.folding import lanewise
from tilework.targets.llvm.types import Type, i1
from tilework.targets.llvm.values import Value, float_bits, float_from_bits, signed

if TYPE_CHECKING:
    from tilework.targets.llvm.builder import Builder


def cast_op(method: Callable[..., Value], op: str) -> Callable[["Builder", Value, Type], Value]:
    """The method that builds the conversion `op` by way of another."""
    return lambda self, a, type: method(self, op, a, type)


class Casts:
    """Methods that convert."""

    def convert(self: "Builder", op: str, a: Value, type: Type, flags: str = "") -> Value:
        """A conversion instruction as it stands, shared but not folded."""
        if a.type is type:
            return a
        return self.pure(f"{op} {flags}{a.typed} to {type.text}", type)

    def source(self: "Builder", a: Value) -> tuple[str, Value] | None:
        """(instruction, operand) if `a` was made by an integer extension."""
        return self.extensions.get(a.text) if a.constant is None else None

    def extend(self: "Builder", op: str, a: Value, type: Type) -> Value:
        if a.type is type:
            return a
        if a.constant is not None:
            made = lanewise(type, lambda x: x if op == "zext" else signed(a.type, x), a)
            assert made is not None
            return made
        if (inner := self.source(a)) is not None and (inner[0] == op or inner[0] == "zext"):
            op, a = inner  # an extension of zext has a zero sign bit, so either kind is zext again
        made = self.convert(op, a, type)
        self.extensions[made.text] = (op, a)
        if a.type.kind == "int" and (op == "zext" or a.text in self.ranges):
            self.bound(made, *self.ranges.get(a.text, (0, a.type.mask)))
        return made

    def trunc(self: "Builder", a: Value, type: Type) -> Value:
        """The low bits of an integer."""
        if a.type is type:
            return a
        if a.constant is not None:
            made = lanewise(type, lambda x: x, a)
            assert made is not None
            return made
        if (inner := self.source(a)) is not None:
            op, origin = inner
            width, wanted = origin.type.scalar.bits, type.scalar.bits
            if width == wanted:
                return origin
            return self.trunc(origin, type) if width > wanted else self.extend(op, origin, type)
        return self.convert("trunc", a, type)

    def bit(self: "Builder", a: Value) -> Value:
        """What was extended to `a`, a 0 or 1 that came here as an integer; extended to that again, it is `a`."""
        made = a if a.type is i1 else self.icmp("ne", a, 0)
        if made is not a and made.constant is None:
            self.extensions[a.text] = ("zext", made)
            if (text := f"zext {made.typed} to {a.type.text}") not in self.known:
                self.known[text] = a
                self.log.append(text)
        return made

    def cast(self: "Builder", a: Value, type: Type, is_signed: bool = True) -> Value:
        """Between two integer types or two float types: widen, narrow, or nothing."""
        have, want = a.type.scalar.bits, type.scalar.bits
        if a.type.is_float:
            assert have != want or a.type is type, f"{a.type} and {type} have the same width: go through float"
            return self.fpext(a, type) if have < want else self.fptrunc(a, type)
        if have < want:
            return self.extend("sext" if is_signed else "zext", a, type)
        return self.trunc(a, type)

    def change_float(self: "Builder", op: str, a: Value, type: Type) -> Value:
        if a.constant is not None and (folded := lanewise(type, lambda x: x, a)) is not None:
            return folded
        return self.convert(op, a, type)

    def from_integer(self: "Builder", op: str, a: Value, type: Type) -> Value:
        if a.constant is not None:

            def exact(x: int) -> float | None:
                number = signed(a.type, x) if op == "sitofp" else x
                return float(number) if abs(number) <= 1 << 53 else None  # larger ones could round twice

            if (folded := lanewise(type, exact, a)) is not None:
                return folded
        return self.convert(op, a, type)

    def saturated(self: "Builder", op: str, a: Value, type: Type) -> Value:
        return self.intrinsic(f"{op}.sat", type, a, overload=f"{type.suffix}.{a.type.suffix}")

    def bitcast(self: "Builder", a: Value, type: Type) -> Value:
        """The same bits as another type; NaN constants are left to LLVM, which keeps their payload."""
        if a.type is type:
            return a
        if a.constant is not None and a.type.count == type.count:
            old, new = a.type.scalar, type.scalar

            def bits(x: int | float) -> int | float | None:
                if x != x:
                    return None
                pattern = float_bits(old, x) if old.kind == "float" else int(x)
                number = float_from_bits(new, pattern) if new.kind == "float" else pattern
                return number if number == number else None

            if (folded := lanewise(type, bits, a)) is not None:
                return folded
        return self.convert("bitcast", a, type)

    zext = cast_op(extend, "zext")
    sext = cast_op(extend, "sext")
    fpext = cast_op(change_float, "fpext")
    fptrunc = cast_op(change_float, "fptrunc")  # nearest even
    sitofp = cast_op(from_integer, "sitofp")
    uitofp = cast_op(from_integer, "uitofp")
    fptosi = cast_op(convert, "fptosi")
    fptosi_sat = cast_op(saturated, "fptosi")
    fptoui_sat = cast_op(saturated, "fptoui")
    ptrtoint = cast_op(convert, "ptrtoint")
    inttoptr = cast_op(convert, "inttoptr")
    addrspacecast = cast_op(convert, "addrspacecast")
