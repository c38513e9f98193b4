"""Inline PTX: constraints from types, and what LLVM may do with a piece.

    (sum,) = ptx(b, "add.rn.f32 $0, $1, $2;", [f32], [x, y])                               # may be shared, moved, dropped
    words = ptx(b, "ld.global.v2.b32 {$0, $1}, [$2];", [i32, i32], [p], effect="read")      # dropped if unused, stays behind stores
    ptx(b, "st.global.b32 [$0], $1;", [], [p, x], effect="write")

`effect="write"` is for stores, fences and asynchronous copies. Instructions that all lanes of a warp execute together are
`convergent`.
"""

from collections.abc import Sequence

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i16, i32, i64, struct, void
from tilework.targets.llvm.values import Value

LETTERS: dict[Type, str] = {i1: "b", i16: "h", f16: "h", bf16: "h", i32: "r", f32: "f", i64: "l", f64: "d"}


def letter(type: Type) -> str:
    """The constraint of a type."""
    if type.is_pointer:
        return "l"
    return LETTERS[type] if type in LETTERS else {32: "r", 64: "l", 16: "h"}[type.bits]


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
    result = void if not outputs else outputs[0] if len(outputs) == 1 else result_struct(b, outputs)
    words = (["convergent"] if convergent else []) + (["memory(read)"] if effect == "read" else [])
    side = "sideeffect " if effect == "write" else ""
    escaped = text.replace('"', "\\22").replace("\n", "\\0A")
    line = b.call_text(
        result, f'asm {side}"{escaped}", "{",".join(constraints)}"', inputs, " ".join(["nounwind", *words])
    )
    if result is void:
        b.line(line)
        return []
    made = b.effect(line, result) if effect or convergent else b.pure(line, result)
    return [made] if len(outputs) == 1 else [b.extract_value(made, place) for place in range(len(outputs))]


def result_struct(b: Builder, fields: Sequence[Type]) -> Type:
    """A struct of the outputs; wide ones by name, which keeps the text short."""
    if len(fields) <= 4:
        return struct(*fields)
    runs: list[list[object]] = []
    for field in fields:
        if runs and runs[-1][0] is field:
            runs[-1][1] = int(str(runs[-1][1])) + 1
        else:
            runs.append([field, 1])
    return b.module.named_struct("out_" + "_".join(f"{field.suffix}x{count}" for field, count in runs), *fields)  # type: ignore[union-attr]
