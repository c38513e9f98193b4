"""Memory, calls and atomics: part of `Builder`.

    p = b.gep(b.gep(base, 4), 8)             # one getelementptr, 12 bytes from base
    x = b.load(vector(f32, 4), p, align=4)
    b.store(x, q, align=4)
    b.atomic_rmw("add", p, one, ordering="monotonic", scope="agent")

Loads, stores, calls and atomics are never shared or removed. A masked access with a constant mask of ones is a
plain one.
"""

# pyright: reportGeneralTypeIssues=false
# A mixin annotates `self` with the class that it is mixed into.

from collections.abc import Iterator, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from tilework.targets.llvm.types import Type, bf16, i1, i8, i32, i64, pointer, result_of, struct, vector, void
from tilework.targets.llvm.values import Value, constant

if TYPE_CHECKING:
    from tilework.targets.llvm.builder import Builder


class Memory:
    """Methods that touch memory or call."""

    def gep(self: "Builder", base: Value, index: Any, element: Type = i8, inbounds: bool = False) -> Value:
        """`base` plus `index` elements; constant offsets of the same element type are collected."""
        if index.__class__ is int:
            index = constant(i64, index)
        known = index.constant
        if known.__class__ is int and element is i8:
            offset = known if known < 1 << (index.type.bits - 1) else known - (1 << index.type.bits)
            if (before := self.offsets.get(base.text)) is not None:
                base, offset = before[0], before[1] + offset
            if offset == 0:
                return base
            made = self.address(base, constant(i64, offset), element, inbounds)
            self.offsets[made.text] = (base, offset)
            return made
        if known.__class__ is int and known == 0 and base.type.is_vector == index.type.is_vector:
            return base
        made = self.address(base, index, element, inbounds)
        if element is i8 and index.type is i64:
            self.terms[made.text] = (base, index)
        return made

    def address(self: "Builder", base: Value, index: Value, element: Type, inbounds: bool) -> Value:
        result = base.type
        if index.type.is_vector and not result.is_vector:
            result = vector(result, index.type.count)
        flag = "inbounds " if inbounds else ""
        return self.pure(f"getelementptr {flag}{element.text}, {base.typed}, {index.typed}", result)

    def alloca(self: "Builder", type: Type, count: int = 1, align: int = 0) -> Value:
        """Stack memory, placed in the entry block so that a loop does not grow the stack."""
        entry, values = self.function.entry, self.function.values
        made = Value(pointer(), f"%v{len(values)}")
        values.append(made)
        amount = f", i32 {count}" if count != 1 else ""
        ending = f", align {align}" if align else ""
        entry.lines.insert(0, f"  {made.text} = alloca {type.text}{amount}{ending}")
        return made

    def load(
        self: "Builder",
        type: Type,
        address: Value,
        *,
        align: int = 0,
        volatile: bool = False,
        ordering: str = "",
        scope: str = "",
    ) -> Value:
        """Read a `type`; an `ordering` (monotonic, acquire ...) makes it atomic and needs `align`.

        Nine bf16 are read as eight and one: LLVM aborts on the ninth where a CPU has vectors of bf16 but no scalars."""
        if type.is_vector and type.scalar is bf16 and type.count % 8 == 1 and type.count > 1 and not volatile:
            most, rest = type.count - 1, (type.count - 1) * 2
            start = self.load(vector(bf16, most), address, align=align)
            last = self.load(bf16, self.gep(address, rest), align=align and gcd(align, rest))
            return self.insert(self.widened(start, type.count), last, most)
        opening, ending = access_text("load", align, volatile, ordering, scope)
        notes = self.module.load_notes.get(address.type, "")
        return self.effect(f"{opening}{type.text}, {address.typed}{ending}{notes}", type)

    def store(self: "Builder", value: Value, address: Value, *, align: int = 0, ordering: str = "") -> None:
        """Write a scalar, or a vector in parts whose sizes are powers of two: LLVM aborts on stores of some others."""
        for first, part in enumerated_parts(self, value):
            lane_bytes = part.type.scalar.bits // 8
            opening, ending = access_text("store", align and gcd(align, first * lane_bytes), False, ordering, "")
            self.line(f"{opening}{part.typed}, {self.gep(address, first * lane_bytes).typed}{ending}")

    def stream(self: "Builder", value: Value, address: Value, align: int) -> None:
        """Store what will not be read soon: past the caches, where the machine can."""
        node = self.module.node("!{i32 1}")
        self.line(f"store {value.typed}, {address.typed}, align {align}, !nontemporal {node}")

    # Masked accesses

    def masked_load(self: "Builder", type: Type, address: Value, mask: Value, other: Value, align: int = 1) -> Value:
        """Lanes whose mask is set are read; the others are `other` and their memory is not touched."""
        if mask.constant.__class__ is int:
            return self.load(type, address, align=align) if mask.constant else other
        symbol = f"llvm.masked.load.{type.suffix}.{address.type.suffix}"
        text = f"call {type.text} @{symbol}({pointer_text(address, align)}, {mask.typed}, {other.typed})"
        self.module.declare(symbol, type, [address.type, mask.type, type])
        return self.effect(text, type)

    def masked_store(self: "Builder", value: Value, address: Value, mask: Value, align: int = 1) -> None:
        if mask.constant.__class__ is int:
            if mask.constant:
                self.store(value, address, align=align)
            return
        symbol = f"llvm.masked.store.{value.type.suffix}.{address.type.suffix}"
        self.module.declare(symbol, void, [value.type, address.type, mask.type])
        self.line(f"call void @{symbol}({value.typed}, {pointer_text(address, align)}, {mask.typed})")

    def copy(self: "Builder", target: Value, source: Value, size: Any) -> None:
        """memcpy: the two ranges do not overlap."""
        self.range_intrinsic("memcpy", target, source, size)

    def fill(self: "Builder", target: Value, byte: Any, size: Any) -> None:
        """memset."""
        self.range_intrinsic("memset", target, byte if byte.__class__ is Value else constant(i8, byte), size)

    def range_intrinsic(self: "Builder", name: str, target: Value, second: Value, size: Any) -> None:
        size = size if size.__class__ is Value else constant(i64, size)
        middle = "" if name == "memset" else f".{second.type.suffix}"
        symbol = f"llvm.{name}.{target.type.suffix}{middle}.{size.type.suffix}"
        self.call(symbol, void, [target, second, size, constant(i1, 0)])

    def prefetch(self: "Builder", address: Value, write: bool = False) -> None:
        # locality 3: keep in all caches; cache type 1: data
        settings = [constant(i32, setting) for setting in (int(write), 3, 1)]
        self.call(f"llvm.prefetch.{address.type.suffix}", void, [address, *settings])

    # Atomics

    def atomic_rmw(
        self: "Builder",
        op: str,
        address: Value,
        value: Value,
        *,
        ordering: str = "monotonic",
        scope: str = "",
        align: int = 0,
    ) -> Value:
        """Put `old op value` at `address`, give `old`: xchg add sub and or xor max min umax umin fadd fmax fmin."""
        ending = f", align {align}" if align else ""
        return self.effect(
            f"atomicrmw {op} {address.typed}, {value.typed} {sync_scope(scope)}{ordering}{ending}", value.type
        )

    def compare_exchange(
        self: "Builder",
        address: Value,
        expected: Value,
        value: Value,
        *,
        ordering: str = "monotonic",
        failure: str = "monotonic",
        scope: str = "",
        weak: bool = False,
        align: int = 0,
    ) -> tuple[Value, Value]:
        """(what was there, whether `value` was stored because it equalled `expected`)."""
        ending = f", align {align}" if align else ""
        both = self.effect(
            f"cmpxchg {'weak ' if weak else ''}{address.typed}, {expected.typed}, {value.typed} "
            f"{sync_scope(scope)}{ordering} {failure}{ending}",
            struct(value.type, i1),
        )
        return self.extract_value(both, 0), self.extract_value(both, 1)

    def fence(self: "Builder", ordering: str, scope: str = "") -> None:
        self.line(f"fence {sync_scope(scope)}{ordering}")

    # Calls

    def call_text(self: "Builder", result: Type, callee: str, args: Sequence[Value], attributes: str = "") -> str:
        listed = ", ".join([arg.typed for arg in args])
        group = f" {self.module.attribute_group(attributes)}" if attributes else ""
        return f"call {result.text} {callee}({listed}){group}"

    def call(
        self: "Builder",
        callee: str | Value,
        result: Type,
        args: Sequence[Value],
        *,
        attributes: str = "",
        is_pure: bool = False,
        notes: str = "",
    ) -> Value:
        """Call a function by name (declared if it is new) or by address; a void call gives a value that must not be
        used. `notes` is metadata.
        """
        if isinstance(callee, str):
            self.module.declare(callee, result, [arg.type for arg in args])
            target = f"@{callee}"
        else:
            target = callee.text
        text = self.call_text(result, target, args, attributes) + notes
        if is_pure:
            return self.pure(text, result)
        if result is void:
            self.line(text)
            return Value(void, "")
        return self.effect(text, result)

    def assembly(
        self: "Builder",
        text: str,
        constraints: str,
        outputs: Sequence[Type],
        args: Sequence[Value],
        *,
        sideeffect: bool = False,
        shared: bool = True,
        attributes: str = "nounwind",
    ) -> list[Value]:
        """The outputs of inline assembly. Equal pieces are one where they are `shared` and have no side effect."""
        escaped = text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
        result = self.module.wide_struct(outputs) if len(outputs) > 4 else result_of(outputs)
        callee = f'asm {"sideeffect " if sideeffect else ""}"{escaped}", "{constraints}"'
        line = self.call_text(result, callee, args, attributes)
        if result is void:
            self.line(line)
            return []
        return self.fields(self.pure(line, result) if shared and not sideeffect else self.effect(line, result))

    def trap(self: "Builder") -> None:
        self.call("llvm.trap", void, [])


def enumerated_parts(b: "Builder", value: Value) -> Iterator[tuple[int, Value]]:
    """(first lane, part) of a vector in parts of as many lanes as a power of two, the largest first; anything else is
    one part.
    """
    first, count = 0, value.type.count if value.type.is_vector else 1
    while first < count:
        size = 1 << (count - first).bit_length() - 1
        yield first, value if size == count else b.some_lanes(value, range(first, first + size))
        first += size


def access_text(verb: str, align: int, volatile: bool, ordering: str, scope: str) -> tuple[str, str]:
    """The text before the operands of a load or store, and the text after them."""
    opening = f"{verb} {'atomic ' if ordering else ''}{'volatile ' if volatile else ''}"
    atomic = f" {sync_scope(scope)}{ordering}" if ordering else ""
    return opening, f"{atomic}, align {align}" if align else atomic


def sync_scope(scope: str) -> str:
    """``syncscope("agent") `` for a scope that is not the whole system."""
    return f'syncscope("{scope}") ' if scope else ""


def pointer_text(address: Value, align: int) -> str:
    """A pointer argument of a masked intrinsic; LLVM 22 takes the alignment from its attribute."""
    return f"{address.type.text} align {align} {address.text}"
