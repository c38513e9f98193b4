"""Inline PTX: constraints derived from types, and the side effects that LLVM must assume.

    (sum,) = ptx(b, "add.rn.f32 $0, $1, $2;", [f32], [x, y])            # may be merged, moved, dropped
    pair = ptx(b, "ld.global.v2.b32 {$0, $1}, [$2];", [i32, i32], [p], effect="read")      # dropped if unused
    ptx(b, "st.global.b32 [$0], $1;", [], [p, x], effect="write")

`effect="write"` is for stores, fences and asynchronous copies. Instructions that all lanes of a warp execute together
are `convergent`.
"""

from collections.abc import Sequence

from tilework.ir.enums import EvictionPolicy
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i16, i32, i64
from tilework.targets.llvm.values import Value

MAP_BYTES = 128  # of a tensor map
EVICTIONS = {EvictionPolicy.FIRST: "evict_first", EvictionPolicy.LAST: "evict_last"}
CODES: dict[Type, str] = {i1: "b", i16: "h", f16: "h", bf16: "h", i32: "r", f32: "f", i64: "l", f64: "d"}


def code(type: Type) -> str:
    if type.is_pointer:
        return "l"
    return CODES[type] if type in CODES else {32: "r", 64: "l"}[type.bits]


def ptx(
    b: Builder,
    text: str,
    outputs: Sequence[Type],
    inputs: Sequence[Value],
    *,
    effect: str = "",
    convergent: bool = False,
    tied: int = 0,
) -> list[Value]:
    """Emit a piece of PTX and return its outputs; the first `tied` inputs share the registers of the first outputs.

    An instruction reads before it writes, but the first of several must not write what the next ones read.
    """
    early = "&" if text.count(";") > 1 and not tied else ""
    constraints = [f"={early}{code(type)}" for type in outputs]
    constraints += [str(position) if position < tied else code(value.type) for position, value in enumerate(inputs)]
    if effect:
        constraints.append("~{memory}")
    attributes = ["nounwind", *(["convergent"] if convergent else []), *(["memory(read)"] if effect == "read" else [])]
    return b.assembly(
        text, ",".join(constraints), outputs, inputs,
        sideeffect=effect == "write", shared=not effect and not convergent, attributes=" ".join(attributes),
    )  # fmt: skip


def listed(first: int, count: int) -> str:
    """Return a list of operands: ``{$1, $2}``, or ``$1`` for a single one."""
    names = ", ".join([f"${operand}" for operand in range(first, first + count)])
    return f"{{{names}}}" if count > 1 else names


def guarded(text: str, inputs: list[Value], predicate: Value | None, outputs: int = 0) -> tuple[str, list[Value]]:
    """Return a predicated instruction and its inputs."""
    return (text, inputs) if predicate is None else (f"@${outputs + len(inputs)} {text}", [*inputs, predicate])


def shared_address(b: Builder, base: Value, offset: int = 0) -> Value:
    """Return an address in shared memory as an i32, for inline assembly."""
    return b.trunc(b.ptrtoint(b.gep(base, offset), i64), i32)


def nvvm(b: Builder, name: str, result: Type, *args: Value) -> Value:
    """Call a pure NVVM intrinsic: ``nvvm(b, "div.full", f32, x, y)``."""
    return b.intrinsic(f"nvvm.{name}", result, *args, overload="")


def eviction_policy(b: Builder, wish: EvictionPolicy) -> list[Value]:
    """Return the L2 eviction policy, the last operand of an access with ``.L2::cache_hint``; none by default."""
    if (name := EVICTIONS.get(wish)) is None:
        return []
    return ptx(b, f"createpolicy.fractional.L2::{name}.b64 $0, 1.0;", [i64], [])
