"""Arithmetic, comparisons, select, and the intrinsics that compute: part of `Builder`.

b.add(x, 0)               # x
b.fma(x, y, 1.0)          # call float @llvm.fma.f32(float %x, float %y, float 0x3FF0000000000000)
b.icmp("slt", 3, x)       # icmp sgt i32 %x, 3: a constant is always on the right

Conversions between types: part of `Builder`.

    b.zext(b.zext(x, i32), i64)     # one zext from the type of x
    b.trunc(b.zext(x8, i32), i8)    # x8

`cast` picks the instruction for two integer or two float types. Out-of-range floats: `fptosi` is poison as in LLVM,
`fptosi_sat` saturates and makes NaN 0, as the language wants.
"""

# pyright: reportGeneralTypeIssues=false
# A mixin annotates `self` with the class that it is mixed into.

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tilework.targets.llvm import folding
from tilework.targets.llvm.folding import lanewise
from tilework.targets.llvm.types import Type, f32, i1, integer, vector
from tilework.targets.llvm.values import Value, constant, float_bits, float_from_bits, signed

if TYPE_CHECKING:
    from tilework.targets.llvm.builder import Builder


def cast_op(method: Callable[..., Value], op: str) -> Callable[["Builder", Value, Type], Value]:
    """The method that builds the conversion `op` by way of another."""
    return lambda self, a, type: method(self, op, a, type)


class Casts:
    """Methods that convert."""

    def convert(self: "Builder", op: str, a: Value, type: Type, flags: str = "") -> Value:
        """A conversion instruction, shared but not folded."""
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
        if (parts := self.exact.get(a.text)) is not None:
            base = self.extend(op, parts[0], type)
            made = self.add(base, parts[1])
            self.exact[made.text] = (base, parts[1])
        else:
            made = self.convert(op, a, type)
        self.extensions[made.text] = (op, a)
        if (factor := self.factors.get(a.text)) is not None:
            self.factors[made.text] = factor
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
            op, source = inner
            width, wanted = source.type.scalar.bits, type.scalar.bits
            if width == wanted:
                return source
            return self.trunc(source, type) if width > wanted else self.extend(op, source, type)
        made = self.convert("trunc", a, type)
        if (factor := self.factors.get(a.text, 0) & type.scalar.mask) != 0:
            self.factors[made.text] = factor
        return made

    def bit(self: "Builder", a: Value) -> Value:
        """The 0 or 1 that was extended to the integer `a`; extending it again gives `a`."""
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
                integer = signed(a.type, x) if op == "sitofp" else x
                return float(integer) if abs(integer) <= 1 << 53 else None  # larger ones could round twice

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
                value = float_from_bits(new, pattern) if new.kind == "float" else pattern
                return value if value == value else None

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


PROPAGATING_NAN = {"minnum": "minimum", "maxnum": "maximum"}  # of intrinsics that ignore a NaN: those that propagate it
COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "fadd", "fmul"})


def instruction(op: str) -> Callable[..., Value]:
    """The method that builds the instruction `op`: of integers with `flags` (nsw, nuw, exact, disjoint), of floats with
    the builder's fast-math flags.
    """
    commutative, is_float, is_sum, is_product = op in COMMUTATIVE, op[0] == "f", op in ("add", "sub"), op == "mul"

    def method(self: "Builder", a: Any, b: Any, flags: str = "") -> Value:
        if a.__class__ is not Value or b.__class__ is not Value:
            a, b = self.pair(a, b)
        type, first, second = a.type, a.text, b.text
        assert type is b.type, f"{op} of {a.typed} and {b.typed}"
        if a.constant is None and b.constant is None:
            if commutative and first > second:
                first, second = second, first
            if first == second and (folded := folding.same_operands(op, a)) is not None:
                return folded
            if is_sum and self.exact and op == "add" and (apart := self.add_apart(a, b, flags)) is not None:
                return apart
        else:
            if a.constant is not None:
                if b.constant is not None:
                    if (folded := folding.fold_binary(op, a, b)) is not None:
                        return folded
                elif commutative:
                    a, b = b, a
            if (folded := folding.identity(op, a, b)) is not None:
                return folded
            known: Any = b.constant
            if known.__class__ is int:
                if is_sum:
                    return self.add_constant(a, *((b, flags) if op == "add" else (constant(type, -known), "")))
                if (bounds := self.ranges.get(a.text)) is not None:
                    return self.within(op, a, bounds, b, flags)
            first, second = a.text, b.text
        flags_text = self.flags if is_float else f"{flags} " if flags else ""
        made = self.pure(f"{op} {flags_text}{type.text} {first}, {second}", type)
        times: Any = b.constant
        if is_product and times.__class__ is int:
            self.factors[made.text] = times & -times
        return made

    method.__name__, method.__doc__ = op, f"LLVM's `{op}`."
    return method


def unary_op(name: str, *more: Value) -> Callable[["Builder", Value], Value]:
    """The method that builds an intrinsic of one operand, and of constants behind it."""
    return lambda self, a: self.unary(name, a, *more)


def extremum_op(name: str) -> Callable[["Builder", Any, Any], Value]:
    return lambda self, a, b: self.extremum(name, a, b)


class Arithmetic:
    """Methods that build pure instructions."""

    def add_constant(self: "Builder", a: Value, b: Value, flags: str) -> Value:
        """a + b, collecting the constant with one that `a` already ends in."""
        if (sum := self.sums.get(a.text)) is not None:
            base, offset = sum
            return self.add(base, constant(a.type, offset + b.constant))
        made = self.pure(f"add {flags}{' ' if flags else ''}{a.type.text} {a.text}, {b.text}", a.type)
        self.sums[made.text] = (a, b.constant)
        if (bounds := self.ranges.get(a.text)) is not None:
            self.bound(made, *(end + signed(a.type, b.constant) for end in bounds))
        return made

    def add_apart(self: "Builder", a: Value, b: Value, flags: str) -> Value | None:
        """a + b with the constant of an exact sum behind: 1024 * x + (y + 512), with y + 512 < 1024, is an exact sum of
        1024 * x + y and 512. None if the sum may carry into the bits of a factor.
        """
        for factor, other in ((a, b), (b, a)):
            if (bounds := self.ranges.get(other.text)) is None or bounds[1] >= self.factors.get(factor.text, 0):
                continue
            if (parts := self.exact.get(other.text)) is not None:
                first = self.add(factor, parts[0])
                made = self.add(first, parts[1])
                self.exact[made.text] = (first, parts[1])
            else:
                low, high = sorted((a.text, b.text))
                made = self.pure(f"add {flags}{' ' if flags else ''}{a.type.text} {low}, {high}", a.type)
            self.aligned[made.text] = (factor, other)
            return made
        return None

    def within(self: "Builder", op: str, a: Value, bounds: tuple[int, int], b: Value, flags: str) -> Value:
        """`a op b` with a constant, where `a` is within bounds: often simpler than it looks.

        >>> b.bound(x, 32, 39)
        >>> b.urem(x, 16), b.udiv(x, 16), b.and_(x, 63)      # add i32 %x, -32; 2; x itself
        """
        found = folding.range_of(op, *bounds, b)
        if found is not None:
            least, greatest = found
            if least == greatest:
                return constant(a.type, least)
            if folding.is_moved(op, *bounds, b):
                return self.add(a, constant(a.type, least - bounds[0]))
        made = self.pure(f"{op} {flags}{' ' if flags else ''}{a.type.text} {a.text}, {b.text}", a.type)
        if found is not None:
            self.bound(made, *found)
        if op == "mul":
            self.factors[made.text] = b.constant & -b.constant
        return made

    def bound(self: "Builder", value: Value, least: int, greatest: int) -> None:
        """Remember the range of an integer, for comparisons with constants."""
        if value.constant is None and least >= 0 and greatest < 1 << (value.type.bits - 1):
            self.ranges[value.text] = least, greatest

    add = instruction("add")
    sub = instruction("sub")
    mul = instruction("mul")
    udiv = instruction("udiv")
    sdiv = instruction("sdiv")
    urem = instruction("urem")
    srem = instruction("srem")
    and_ = instruction("and")
    or_ = instruction("or")
    xor = instruction("xor")
    shl = instruction("shl")
    lshr = instruction("lshr")
    ashr = instruction("ashr")
    fadd = instruction("fadd")
    fsub = instruction("fsub")
    fmul = instruction("fmul")
    fdiv = instruction("fdiv")

    def binary(self: "Builder", op: str, a: Any, b: Any, flags: str = "") -> Value:
        """A two-operand instruction by its LLVM name."""
        method = getattr(self, {"and": "and_", "or": "or_"}.get(op, op))
        return method(a, b, flags) if flags else method(a, b)

    def neg(self: "Builder", a: Value) -> Value:
        return self.sub(constant(a.type, 0), a)

    def not_(self: "Builder", a: Value) -> Value:
        return self.xor(a, constant(a.type, -1))

    def fneg(self: "Builder", a: Value) -> Value:
        if a.constant is not None and (folded := folding.fold_unary("fneg", a)) is not None:
            return folded
        return self.pure(f"fneg {self.flags}{a.type.text} {a.text}", a.type)

    def icmp(self: "Builder", predicate: str, a: Any, b: Any) -> Value:
        """Compare integers or pointers: eq ne ult ule ugt uge slt sle sgt sge."""
        a, b = self.pair(a, b)
        result = a.type.with_scalar(i1)
        if a.constant is not None:
            if b.constant is not None and not a.type.is_pointer:
                if (folded := folding.fold_compare(predicate, a, b)) is not None:
                    return folded
            a, b, predicate = b, a, folding.SWAPPED[predicate]
        elif b.constant is None:
            if a.text == b.text:
                return constant(result, predicate in folding.TRUE_IF_EQUAL)
            if a.text > b.text:
                a, b, predicate = b, a, folding.SWAPPED[predicate]
        if b.constant is not None:
            _, source = self.source(a) or ("", a)  # ranges are non-negative: either extension keeps them
            if (bounds := self.ranges.get(source.text)) is not None:
                if (known := folding.compare_range(predicate, *bounds, b)) is not None:
                    return constant(result, known)
        return self.pure(f"icmp {predicate} {a.type.text} {a.text}, {b.text}", result)

    def fcmp(self: "Builder", predicate: str, a: Any, b: Any) -> Value:
        """Compare floats: oeq one olt ole ogt oge ord, and the unordered ones with u (une, ult ...)."""
        a, b = self.pair(a, b)
        if a.constant is not None and b.constant is not None:
            if (folded := folding.fold_compare(predicate, a, b)) is not None:
                return folded
        elif a.constant is not None or (b.constant is None and a.text > b.text):
            a, b, predicate = b, a, folding.SWAPPED[predicate]
        return self.pure(f"fcmp {self.flags}{predicate} {a.type.text} {a.text}, {b.text}", a.type.with_scalar(i1))

    def select(self: "Builder", condition: Value, a: Any, b: Any) -> Value:
        """`a` where the condition holds, else `b`; the condition is i1, or one i1 per lane."""
        a, b = self.pair(a, b)
        known = condition.constant
        if known.__class__ is int:
            return a if known else b
        if a.text == b.text:
            return a
        if a.type is i1 and a.constant == 1 and b.constant == 0:
            return condition
        flags = self.flags if a.type.is_float else ""
        return self.pure(f"select {flags}{condition.typed}, {a.type.text} {a.text}, {b.type.text} {b.text}", a.type)

    def select_all(self: "Builder", condition: Value, ones: Iterable[Value], others: Iterable[Value]) -> list[Value]:
        """`select` of each pair of values."""
        return [self.select(condition, one, other) for one, other in zip(ones, others, strict=True)]

    # Intrinsics

    def intrinsic(self: "Builder", name: str, result: Type, *args: Value, overload: str | None = None) -> Value:
        """A pure intrinsic, ``llvm.<name>.<overload>``; the overload is that of the result unless given."""
        suffix = result.suffix if overload is None else overload
        symbol = f"llvm.{name}.{suffix}" if suffix else f"llvm.{name}"
        if symbol not in self.module.declared:
            self.module.declare(symbol, result, [arg.type for arg in args])
        flags = self.flags if self.flags and result.is_float else ""
        listed = ", ".join([f"{arg.type.text} {arg.text}" for arg in args])
        return self.pure(f"call {flags}{result.text} @{symbol}({listed})", result)

    def unary(self: "Builder", name: str, a: Value, *more: Value) -> Value:
        """An intrinsic of one operand and constants: fabs floor ceil trunc rint roundeven round sqrt ctpop
        bitreverse.
        """
        if a.constant is not None and (folded := folding.fold_unary(name, a)) is not None:
            return folded
        return self.intrinsic(name, a.type, a, *more)

    fabs = unary_op("fabs")
    sqrt = unary_op("sqrt")
    floor = unary_op("floor")
    ceil = unary_op("ceil")
    trunc_float = unary_op("trunc")
    rint = unary_op("roundeven")
    round_half_away = unary_op("round")
    ctpop = unary_op("ctpop")
    bitreverse = unary_op("bitreverse")
    ctlz = unary_op("ctlz", constant(i1, 0))  # the width for 0
    cttz = unary_op("cttz", constant(i1, 0))
    abs = unary_op("abs", constant(i1, 0))  # of a signed integer; the smallest one does not change

    def extremum(self: "Builder", name: str, a: Any, b: Any) -> Value:
        """umin umax smin smax (integers); minnum maxnum minimum maximum copysign (floats)."""
        a, b = self.pair(a, b)
        if a.constant is not None and b.constant is not None:
            if (folded := folding.fold_binary(name, a, b)) is not None:
                return folded
        elif name != "copysign" and (a.constant is not None or (b.constant is None and a.text > b.text)):
            a, b = b, a
        if self.module.exact and name in PROPAGATING_NAN:
            return self.extremum_num(PROPAGATING_NAN[name], a, b)
        if (folded := folding.identity(name, a, b)) is not None:
            return folded
        if a.text == b.text and (folded := folding.same_operands(name, a)) is not None:
            return folded
        return self.intrinsic(name, a.type, a, b)

    def in_order(self: "Builder", sign: str, a: Value, b: Value) -> tuple[Value, Value]:
        """(smaller, larger) of two integers, signed (s) or not (u): in 64 bits one comparison decides for both."""
        if a.type.scalar.bits < 64:
            return self.extremum(f"{sign}min", a, b), self.extremum(f"{sign}max", a, b)
        is_smaller = self.icmp(f"{sign}lt", a, b)
        return self.select(is_smaller, a, b), self.select(is_smaller, b, a)

    def opaque(self: "Builder", a: Value) -> Value:
        """Return the same integers behind a fence that emits no instruction, if they fill machine vectors: the code
        generator would search nested minima and maxima again and again for known bits.
        """
        if not a.type.is_vector or a.type.bits % 128:
            return a
        floats = vector(f32, a.type.bits // 32)
        return self.bitcast(self.intrinsic("arithmetic.fence", floats, self.bitcast(a, floats)), a.type)

    def extremum_num(self: "Builder", name: str, a: Value, b: Value) -> Value:
        """The extreme of two floats, ignoring a NaN: LLVM's own intrinsics leave open which zero is the
        larger.
        """
        beside = self.select(self.fcmp("uno", b, b), a, self.extremum(name, a, b))
        return self.select(self.fcmp("uno", a, a), b, beside)

    umin = extremum_op("umin")
    umax = extremum_op("umax")
    smin = extremum_op("smin")
    smax = extremum_op("smax")
    minnum = extremum_op("minnum")  # a NaN operand is ignored
    maxnum = extremum_op("maxnum")
    minimum = extremum_op("minimum")  # NaN if one operand is
    maximum = extremum_op("maximum")
    copysign = extremum_op("copysign")

    def fma(self: "Builder", a: Any, b: Any, c: Any) -> Value:
        """a * b + c with one rounding."""
        if a.__class__ is not Value or b.__class__ is not Value or c.__class__ is not Value:
            type = (a if a.__class__ is Value else b if b.__class__ is Value else c).type
            a = a if a.__class__ is Value else constant(type, a)
            b = b if b.__class__ is Value else constant(type, b)
            c = c if c.__class__ is Value else constant(type, c)
        if a.constant is not None:
            if b.constant is not None and c.constant is not None:
                if (folded := folding.fold_fma(a, b, c)) is not None:
                    return folded
            a, b = b, a
        elif b.constant is None and a.text > b.text:
            a, b = b, a
        if b.constant == 1.0:
            return self.fadd(a, c)
        type = a.type
        symbol, text = f"llvm.fma.{type.suffix}", type.text
        if symbol not in self.module.declared:
            self.module.declare(symbol, type, [type] * 3)
        return self.pure(f"call {self.flags}{text} @{symbol}({text} {a.text}, {text} {b.text}, {text} {c.text})", type)

    def funnel_left(self: "Builder", high: Value, low: Value, amount: Any) -> Value:
        """The upper half of ``high:low`` shifted left."""
        amount = amount if amount.__class__ is Value else constant(high.type, amount)
        return self.intrinsic("fshl", high.type, high, low, amount)

    def mul_high(self: "Builder", a: Value, b: Value, is_signed: bool) -> Value:
        """The upper half of the double-width product."""
        bits = a.type.scalar.bits
        wide = a.type.with_scalar(integer(2 * bits))
        extend = self.sext if is_signed else self.zext
        product = self.mul(extend(a, wide), extend(b, wide))
        return self.trunc(self.lshr(product, bits), a.type)
