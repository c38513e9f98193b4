"""Code that the user brings: PTX in `tt.elementwise_inline_asm`, functions of libraries in `tt.extern_elementwise`.

    tt.elementwise_inline_asm "shl.b32 $0, $0, 3;" {constraints = "=r,r", packed_element = 4} %x : tensor<64xi8> -> ...

One piece of assembly handles `packed_element` registers of a thread. Elements below 32 bits are packed into words: four i8,
or two f16, in one `r`. A letter says how a word is passed (`r` i32, `h` i16, `l` i64, `f` float, `d` double): narrower values
are extended, wider results cut. What does not fit is refused here, because LLVM would end the process.

A function of libdevice is our own code (`backends/llvm/math`), with the processor's instruction where it is one; any other
symbol is called, and linked from the libraries that the options name.
"""

import math
import re
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.types import element_type
from tilework.targets.gpu.arithmetic import fast_exp, fast_exp2, fast_rsqrt, nvvm
from tilework.targets.gpu.assembly import ptx, result_struct
from tilework.targets.gpu.global_access import copied_registers, number_of
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, register_count
from tilework.targets.gpu.shared_access import from_memory, held_type, to_memory
from tilework.targets.gpu.words import pack_words
from tilework.targets.llvm.math.table import LIBDEVICE
from tilework.targets.llvm.rules import SCALARS, result_type
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, f32, f64, i1, i16, i32, i64, integer, vector, void
from tilework.targets.llvm.values import Value, constant

WORD = 32
LETTERS: dict[str, Type] = {"r": i32, "h": i16, "c": i16, "l": i64, "f": f32, "d": f64, "b": i1}
OPERAND = re.compile(r"\$\$|\$\{?(\d+)")


# Inline assembly


def text_of(op: Operation, name: str) -> str:
    found = op.properties[name]
    assert isinstance(found, StringAttr)
    return found.data


def is_pure(op: Operation) -> bool:
    found = op.properties["pure"]
    return isinstance(found, IntegerAttr) and bool(found.value.data)


@lowers(tt.ElementwiseInlineAsmOp)
def lower_inline_asm(low: Lowering, op: Operation) -> list[Registers]:
    """Registers in groups of `packed_element`, those that hold copies left out."""
    some = op.operands[0].type if op.operands else op.results[0].type
    copies, count = copied_registers(some), register_count(some)
    kept = [register for register in range(count) if not register & copies]
    pack = number_of(op, "packed_element", 1)
    found: list[dict[int, Value]] = [{} for _ in op.results]
    for first in range(0, len(kept), pack):
        group = kept[first : first + pack]
        for values, made in zip(found, run(low, op, group, pack), strict=True):
            values.update(zip(group, made, strict=False))
    return [tuple(values[register & ~copies] for register in range(count)) for values in found]


def run(low: Lowering, op: Operation, group: Sequence[int], pack: int) -> list[list[Value]]:
    """One piece of assembly on some registers of each operand; what it leaves in as many of each result."""
    outs = [
        word_type(element_type(result.type), pack) for result in op.results for _ in range(words(result.type, pack))
    ]
    inputs: list[Value] = []
    for operand in op.operands:
        element = element_type(operand.type)
        values = [to_memory(low, element, low[operand][register]) for register in group]
        values += [constant(held_type(element), 0)] * (pack - len(group))
        inputs += packed(low, values)
    letters, rest = constraints(low, op, len(outs), len(inputs))
    types = [passed_as(letter, type) for letter, type in zip(letters, outs, strict=False)]
    given = [
        fit(low, value, passed_as(letter, value.type))
        for letter, value in zip(letters[len(outs) :], inputs, strict=True)
    ]
    check_operands(low, op, len(outs) + len(inputs))
    effects = rest if is_pure(op) else [*rest, "~{memory}"]
    made = assemble(low, op, types, given, effects)
    back = [fit(low, value, type) for value, type in zip(made, outs, strict=True)]
    found: list[list[Value]] = []
    for result in op.results:
        element, count = element_type(result.type), words(result.type, pack)
        values = unpacked(low, back[:count], held_type(element), pack)
        found.append([from_memory(low, element, value) for value in values])
        back = back[count:]
    return found


def words(type: Attribute, pack: int) -> int:
    """The registers that `pack` elements take."""
    bits = held_type(element_type(type)).bits
    return -(-pack * bits // WORD) if bits < WORD else pack


def word_type(element: Attribute, pack: int) -> Type:
    """How a register is typed: a single narrow element is itself."""
    held = held_type(element)
    return held if held.bits >= WORD or pack == 1 else integer(WORD)


def packed(low: Lowering, values: Sequence[Value]) -> list[Value]:
    """Elements in words, the first in the lowest bits; missing ones are 0."""
    if values[0].type.bits >= WORD or len(values) == 1:
        return list(values)
    return pack_words(low, values)


def unpacked(low: Lowering, given: Sequence[Value], held: Type, pack: int) -> list[Value]:
    """The elements in words."""
    b = low.builder
    if held.bits >= WORD or pack == 1:
        return list(given)
    return [lane for word in given for lane in b.lanes(b.bitcast(word, vector(held, WORD // held.bits)))][:pack]


def constraints(low: Lowering, op: Operation, outputs: int, inputs: int) -> tuple[list[str], list[str]]:
    """The letters of outputs and inputs, and what follows them (clobbers)."""
    listed = [part.strip() for part in text_of(op, "constraints").split(",") if part.strip()]
    found = [part for part in listed if not part.startswith("~")]
    if len(found) != outputs + inputs or not all(
        part.startswith("=") == (at < outputs) for at, part in enumerate(found)
    ):
        raise complain(
            low,
            op,
            f"the constraints {text_of(op, 'constraints')!r} should name {outputs} outputs, then {inputs} inputs",
        )
    letters = [part.lstrip("=&") for part in found]
    letters = [letters[int(letter)] if letter.isdigit() and int(letter) < outputs else letter for letter in letters]
    if unknown := [letter for letter in letters if letter not in LETTERS]:
        raise complain(low, op, f"the constraint {unknown[0]!r} is none of {', '.join(LETTERS)}")
    return letters, [part for part in listed if part.startswith("~")]


def check_operands(low: Lowering, op: Operation, count: int) -> None:
    """The assembly names no operand that it does not have."""
    for found in OPERAND.finditer(text_of(op, "asm_string")):
        if found[1] is not None and int(found[1]) >= count:
            raise complain(low, op, f"the assembly names operand ${found[1]}, and has only {count}")


def complain(low: Lowering, op: Operation, what: str) -> PassError:
    """The error about assembly that makes no sense on any target."""
    return low.refuse(op, f"inline assembly ({what})")


def passed_as(letter: str, type: Type) -> Type:
    """The type of an operand of the assembly: that of its letter, or a type of the same width."""
    wanted = LETTERS[letter]
    return type if type.bits == wanted.bits and not type.is_vector else wanted


def fit(low: Lowering, value: Value, wanted: Type) -> Value:
    """The same bits in another type: extended with zeros, or cut."""
    b = low.builder
    if value.type is wanted:
        return value
    whole = b.bitcast(value, integer(value.type.bits))
    target = integer(wanted.bits)
    if value.type.bits < wanted.bits:
        whole = b.zext(whole, target)
    elif value.type.bits > wanted.bits:
        whole = b.trunc(whole, target)
    return b.bitcast(whole, wanted)


def assemble(
    low: Lowering, op: Operation, outputs: Sequence[Type], inputs: Sequence[Value], rest: Sequence[str]
) -> list[Value]:
    """The assembly with the user's constraints."""
    b = low.builder
    result = void if not outputs else outputs[0] if len(outputs) == 1 else result_struct(b, outputs)
    listed = [
        part.strip()
        for part in text_of(op, "constraints").split(",")
        if part.strip() and not part.strip().startswith("~")
    ]
    made = b.assembly(
        text_of(op, "asm_string"),
        ",".join([*listed, *rest]),
        result,
        inputs,
        sideeffect=not is_pure(op),
        attributes="nounwind",
    )
    if len(outputs) <= 1:
        return [made] if outputs else []
    return [b.extract_value(made, place) for place in range(len(outputs))]


# Functions of libraries


ROUNDED = re.compile(r"__nv_(?:(f|d)(add|sub|mul|div|rcp|sqrt)|(fma)(f?))_(r[nzud])")


def rounded(name: str) -> str | None:
    """The instruction that a function with a rounding mode is: ``__nv_fadd_ru`` is ``add.rp.f32``."""
    if (found := ROUNDED.fullmatch(name)) is None:
        return None
    type = "f32" if found[1] == "f" or found[4] else "f64"
    return f"{found[2] or found[3]}.{mode(found[5])}.{type}"


def mode(name: str) -> str:
    """libdevice's rounding up and down are towards plus and minus infinity."""
    return {"ru": "rp", "rd": "rm"}.get(name, name)


def fast_log2(low: Lowering, x: Value) -> Value:
    return nvvm(low, "lg2.approx.ftz.f", f32, x)


def fast_sine(low: Lowering, x: Value, name: str = "sin") -> Value:
    return nvvm(low, f"{name}.approx.ftz.f", f32, x)


def fast_quotient(low: Lowering, x: Value, y: Value) -> Value:
    return nvvm(low, "div.approx.f", f32, x, y)


def power_of_2(low: Lowering, x: Value, y: Value | float) -> Value:
    """2 to the power of a product."""
    return low.builder.unary("exp2", low.builder.fmul(x, y))


APPROXIMATE: dict[str, Callable[..., Value]] = {  # also two whose accurate forms are an instruction
    "__nv_exp2f": fast_exp2,
    "__nv_rsqrtf": fast_rsqrt,
    "__nv_fast_expf": fast_exp,
    "__nv_fast_exp10f": lambda low, x: power_of_2(low, x, math.log2(10)),
    "__nv_fast_log2f": fast_log2,
    "__nv_fast_logf": lambda low, x: low.builder.fmul(fast_log2(low, x), math.log(2)),
    "__nv_fast_log10f": lambda low, x: low.builder.fmul(fast_log2(low, x), math.log10(2)),
    "__nv_fast_powf": lambda low, x, y: power_of_2(low, fast_log2(low, x), y),
    "__nv_fast_sinf": fast_sine,
    "__nv_fast_cosf": lambda low, x: fast_sine(low, x, "cos"),
    "__nv_fast_tanf": lambda low, x: fast_quotient(low, fast_sine(low, x), fast_sine(low, x, "cos")),
    "__nv_fast_tanhf": lambda low, x: ptx(low.builder, "tanh.approx.f32 $0, $1;", [f32], [x])[0],
    "__nv_fast_fdividef": fast_quotient,
}


@lowers(tt.ExternElementwiseOp, elementwise=True)
def lower_extern(low: Lowering, op: Operation, *args: Value) -> Value:
    name = text_of(op, "symbol")
    if name in APPROXIMATE:
        return APPROXIMATE[name](low, *args)
    if (instruction := rounded(name)) is not None:
        listed = ", ".join(f"${place}" for place in range(len(args) + 1))
        return ptx(low.builder, f"{instruction} {listed};", [args[0].type], args)[0]
    if name in LIBDEVICE:
        return SCALARS[type(op)](low, op, *args)
    attributes = "nounwind willreturn memory(none)" if is_pure(op) else "nounwind"
    wanted = register_type(result_type(op))
    return low.builder.call(name, wanted, list(args), attributes=attributes, is_pure=is_pure(op))
