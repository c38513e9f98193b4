"""Inline PTX: constraints from types, and what LLVM may do with a piece.

    (sum,) = ptx(b, "add.rn.f32 $0, $1, $2;", [f32], [x, y])                               # may be shared, moved, dropped
    words = ptx(b, "ld.global.v2.b32 {$0, $1}, [$2];", [i32, i32], [p], effect="read")      # dropped if unused, stays behind stores
    ptx(b, "st.global.b32 [$0], $1;", [], [p, x], effect="write")

`effect="write"` is for stores, fences and asynchronous copies. Instructions that all lanes of a warp execute together
are `convergent`.
"""

from collections.abc import Sequence

from tilework.ir.enums import EvictionPolicy
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i16, i32, i64
from tilework.targets.llvm.values import Value

EVICTIONS = {EvictionPolicy.FIRST: "evict_first", EvictionPolicy.LAST: "evict_last"}
LETTERS: dict[Type, str] = {i1: "b", i16: "h", f16: "h", bf16: "h", i32: "r", f32: "f", i64: "l", f64: "d"}


def letter(type: Type) -> str:
    if type.is_pointer:
        return "l"
    return LETTERS[type] if type in LETTERS else {32: "r", 64: "l"}[type.bits]


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
    """The values of a piece of PTX; the first `tied` inputs share the registers of the first outputs.

    An instruction reads before it writes, but the first of several must not write what the next ones read.
    """
    early = "&" if text.count(";") > 1 and not tied else ""
    constraints = [f"={early}{letter(type)}" for type in outputs]
    constraints += [str(position) if position < tied else letter(value.type) for position, value in enumerate(inputs)]
    if effect:
        constraints.append("~{memory}")
    words = (["convergent"] if convergent else []) + (["memory(read)"] if effect == "read" else [])
    return b.assembly(
        text, ",".join(constraints), outputs, inputs, sideeffect=effect == "write", shared=not effect and not convergent,
        attributes=" ".join(["nounwind", *words]),
    )  # fmt: skip


def listed(first: int, count: int) -> str:
    """Operands from a number on, as one instruction takes them: ``{$1, $2}``, one alone without braces."""
    names = ", ".join([f"${place}" for place in range(first, first + count)])
    return f"{{{names}}}" if count > 1 else names


def guarded(text: str, inputs: list[Value], predicate: Value | None, outputs: int = 0) -> tuple[str, list[Value]]:
    """An instruction that only threads with a predicate execute, and its inputs."""
    return (text, inputs) if predicate is None else (f"@${outputs + len(inputs)} {text}", [*inputs, predicate])


def shared_word(b: Builder, base: Value, offset: int = 0) -> Value:
    """An address in shared memory as a 32-bit number, as assembly takes it."""
    return b.trunc(b.ptrtoint(b.gep(base, offset), i64), i32)


def nvvm(b: Builder, name: str, result: Type, *args: Value) -> Value:
    """A pure intrinsic of LLVM's for NVIDIA: ``nvvm(b, "div.full", f32, x, y)``."""
    return b.intrinsic(f"nvvm.{name}", result, *args, overload="")


def eviction_policy(b: Builder, wish: EvictionPolicy) -> list[Value]:
    """The L2 eviction policy, as the last operand of an access with ``.L2::cache_hint``; nothing by default."""
    if (name := EVICTIONS.get(wish)) is None:
        return []
    return ptx(b, f"createpolicy.fractional.L2::{name}.b64 $0, 1.0;", [i64], [])
