"""User code: inline assembly (`tt.elementwise_inline_asm`), library functions (`tt.extern_elementwise`) and scalar
functions (`tt.map_elementwise`).

    tt.elementwise_inline_asm "shl.b32 $0, $1, 3;" {constraints = "=r,r", packed_element = 4} %x : tensor<64xi8> -> ...

One piece of assembly processes `packed_element` registers of a thread. Elements below 32 bits are packed into 32-bit
registers: four i8, or two f16, in one `r`. The constraint code determines the type of an operand
(`Gpu.assembly_types`): narrower values are extended, wider results truncated. Invalid constraints are refused here,
because LLVM would abort the process.

Functions of libdevice are our own code (`targets/llvm/math`), or the GPU's instruction if there is one. Any other
symbol is called, and linked from the libraries that the options name, if the GPU's compiler supports that.

`tt.map_elementwise` applies a scalar function to each element, or of `pack` adjacent elements at a time.

    pack = 2:   f(a0, a1, b0, b1) -> (r0, r1)      # adjacent a0, a1 of the first operand, b0, b1 of the second

Elements are adjacent in row-major order. Mostly they are registers of one thread; where several lanes of a warp hold
them, the lanes exchange them, all compute, and each keeps its own result.
"""

import re
from collections.abc import Sequence
from math import prod

from xdsl.ir import Attribute, Operation

from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.types import element_type, int_property, shape_of
from tilework.targets.gpu.axes import Bit, bits_at, call, lane_is, mask_of, moving_bits, subsets
from tilework.targets.gpu.global_access import copied_registers
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, register_count
from tilework.targets.gpu.packing import REGISTER_BITS, from_memory, held_type, pack_registers, to_memory
from tilework.targets.llvm.rules import SCALARS, result_type, text_of
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, integer, vector
from tilework.targets.llvm.values import Value, constant

OPERAND = re.compile(r"\$\$|\$\{?(\d+)")


# Inline assembly


@lowers(tt.ElementwiseInlineAsmOp)
def lower_inline_asm(low: Lowering, op: Operation) -> list[Registers]:
    """Emit the assembly for each group of `packed_element` registers, without registers that hold duplicates."""
    some = op.operands[0].type if op.operands else op.results[0].type
    copies, count = copied_registers(some), register_count(some)
    kept = [register for register in range(count) if not register & copies]
    pack = int_property(op, "packed_element", 1)
    found: list[dict[int, Value]] = [{} for _ in op.results]
    for first in range(0, len(kept), pack):
        group = kept[first : first + pack]
        for values, made in zip(found, run(low, op, group, pack), strict=True):
            values.update(zip(group, made, strict=False))
    return [tuple(values[register & ~copies] for register in range(count)) for values in found]


def run(low: Lowering, op: Operation, group: Sequence[int], pack: int) -> list[list[Value]]:
    """Emit the assembly for some registers of each operand, and return the registers of each result."""
    outs = [
        packed_type(element_type(result.type), pack)
        for result in op.results
        for _ in range(packed_count(result.type, pack))
    ]
    inputs: list[Value] = []
    for operand in op.operands:
        element = element_type(operand.type)
        values = [to_memory(low, element, low[operand][register]) for register in group]
        values += [constant(held_type(element), 0)] * (pack - len(group))
        inputs += packed(low, values)
    codes, listed = constraints(low, op, len(outs), len(inputs))
    passed_as = low.gpu.assembly_type
    types = [passed_as(code, type) for code, type in zip(codes, outs, strict=False)]
    given = [
        fit(low, value, passed_as(code, value.type)) for code, value in zip(codes[len(outs) :], inputs, strict=True)
    ]
    check_operands(low, op, len(outs) + len(inputs))
    is_pure, text = bool(int_property(op, "pure")), text_of(op, "asm_string")
    effects = [] if is_pure else ["~{memory}"]
    made = low.builder.assembly(text, ",".join([*listed, *effects]), types, given, sideeffect=not is_pure)
    back = [fit(low, value, type) for value, type in zip(made, outs, strict=True)]
    found: list[list[Value]] = []
    for result in op.results:
        element, count = element_type(result.type), packed_count(result.type, pack)
        values = unpacked(low, back[:count], held_type(element), pack)
        found.append([from_memory(low, element, value) for value in values])
        back = back[count:]
    return found


def packed_count(type: Attribute, pack: int) -> int:
    """Return the number of registers that `pack` elements take."""
    bits = held_type(element_type(type)).bits
    return -(-pack * bits // REGISTER_BITS) if bits < REGISTER_BITS else pack


def packed_type(element: Attribute, pack: int) -> Type:
    """Return the type of a register operand: a single narrow element keeps its own type."""
    held = held_type(element)
    return held if held.bits >= REGISTER_BITS or pack == 1 else integer(REGISTER_BITS)


def packed(low: Lowering, values: Sequence[Value]) -> list[Value]:
    """Pack elements into registers, the first in the lowest bits; missing ones are 0."""
    if values[0].type.bits >= REGISTER_BITS or len(values) == 1:
        return list(values)
    return pack_registers(low, values)


def unpacked(low: Lowering, given: Sequence[Value], held: Type, pack: int) -> list[Value]:
    """Return the elements of packed registers."""
    b = low.builder
    if held.bits >= REGISTER_BITS or pack == 1:
        return list(given)
    return [lane for packed in given for lane in b.lanes(b.bitcast(packed, vector(held, REGISTER_BITS // held.bits)))][
        :pack
    ]


def constraints(low: Lowering, op: Operation, outputs: int, inputs: int) -> tuple[list[str], list[str]]:
    """Return the constraint codes of outputs and inputs, and all constraints: those, then the clobbers."""
    whole = text_of(op, "constraints")
    listed = sorted((part.strip() for part in whole.split(",") if part.strip()), key=lambda part: part.startswith("~"))
    found = [part for part in listed if not part.startswith("~")]
    if len(found) != outputs + inputs or not all(
        part.startswith("=") == (at < outputs) for at, part in enumerate(found)
    ):
        raise complain(low, op, f"the constraints {whole!r} should name {outputs} outputs, then {inputs} inputs")
    codes = [part.lstrip("=&") for part in found]
    codes = [codes[int(code)] if code.isdigit() and int(code) < outputs else code for code in codes]
    known = low.gpu.assembly_types
    if unknown := [code for code in codes if code not in known]:
        raise complain(low, op, f"the constraint {unknown[0]!r} is none of {', '.join(known)}")
    return codes, listed


def check_operands(low: Lowering, op: Operation, count: int) -> None:
    """Refuse assembly that names an operand that it does not have."""
    for found in OPERAND.finditer(text_of(op, "asm_string")):
        if found[1] is not None and int(found[1]) >= count:
            raise complain(low, op, f"the assembly names operand ${found[1]}, and has only {count}")


def complain(low: Lowering, op: Operation, what: str) -> PassError:
    """Return the error for invalid inline assembly."""
    return low.refuse(op, f"inline assembly ({what})")


def fit(low: Lowering, value: Value, wanted: Type) -> Value:
    """Return the same bits in another type, zero-extended or truncated."""
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


# Library functions


@lowers(tt.ExternElementwiseOp, elementwise=True, overrides=True, differs=True)
def lower_extern(low: Lowering, op: Operation, *args: Value) -> Value:
    name = text_of(op, "symbol")
    if (made := low.gpu.functions.get(name)) is not None:
        return made(low, *args)
    from tilework.numerics.libdevice_table import SYMBOLS  # few kernels have such an op

    if name in SYMBOLS:
        return SCALARS[type(op)](low, op, *args)
    if not low.gpu.links_libraries:
        raise low.refuse(op, f"the function '{name}' (extern_elementwise)")
    is_pure, wanted = bool(int_property(op, "pure")), register_type(result_type(op))
    attributes = "nounwind willreturn memory(none)" if is_pure else "nounwind"
    return low.builder.call(name, wanted, list(args), attributes=attributes, is_pure=is_pure)


@lowers(tt.MapElementwiseOp)
def lower_map_elementwise(low: Lowering, op: Operation) -> list[Registers]:
    pack = int_property(op, "pack")
    neighbours = neighbour_bits(low, op, pack)
    registers, lanes = mask_of(bits_at(neighbours, "register")), bits_at(neighbours, "lane")
    layout = layout_of(op.operands[0].type)
    kept = mask_of(bit for bit, column in enumerate(layout.by_in["register"]) if column)
    sources: list[Registers] = [low[operand] for operand in op.operands]
    made: list[dict[int, Value]] = [{} for _ in op.results]
    for first in subsets([bit for bit in range(kept.bit_length()) if (kept & ~registers) >> bit & 1]):
        groups = [neighbours_of(low, source, first, neighbours) for source in sources]
        returned = call(low, op.regions[0], [value for group in groups for value in group])
        for result, found in enumerate(made):
            keep_own(low, found, first, neighbours, returned[result * pack : (result + 1) * pack], lanes)
    return [tuple(found[register & kept] for register in range(layout.in_size("register"))) for found in made]


def neighbour_bits(low: Lowering, op: Operation, pack: int) -> list[Bit]:
    """Return the bits that distinguish `pack` adjacent elements, the lowest first."""
    type = op.operands[0].type
    bits = moving_bits(low, op, layout_of(type))
    shape = shape_of(type)
    row_major = [bit for dim in reversed(range(len(shape))) for bit in bits if bit.dim == dim]
    count = pack.bit_length() - 1
    if pack > prod(shape) or any(bit.level not in ("register", "lane") for bit in row_major[:count]):
        raise low.refuse(op, f"tl.map_elementwise with pack={pack}, of elements that no warp has")
    return row_major[:count]


def neighbours_of(low: Lowering, source: Registers, first: int, neighbours: list[Bit]) -> list[Value]:
    """Return the adjacent elements that start in register `first` of the lowest lane that holds one."""
    b = low.builder
    columns = {(register, 0): source[first | register] for register in subsets(bits_at(neighbours, "register"))}
    for bit in bits_at(neighbours, "lane"):
        upper = lane_is(low, 1 << bit, 1 << bit)
        for (register, lane), value in list(columns.items()):
            other = low.shuffle_xor(value, 1 << bit)
            columns[register, lane] = b.select(upper, other, value)
            columns[register, lane | 1 << bit] = b.select(upper, value, other)
    return [columns[register_and_lane(index, neighbours)] for index in range(1 << len(neighbours))]


def register_and_lane(index: int, neighbours: list[Bit]) -> tuple[int, int]:
    """Return the register and lane of the adjacent element `index`."""
    levels = {"register": 0, "lane": 0}
    for position, bit in enumerate(neighbours):
        levels[bit.level] |= (index >> position & 1) << bit.index
    return levels["register"], levels["lane"]


def keep_own(
    low: Lowering, found: dict[int, Value], first: int, neighbours: list[Bit], values: list[Value], lanes: list[int]
) -> None:
    """Add the results that belong to this lane to `found`."""
    b = low.builder
    for index, value in enumerate(values):
        register, lane = register_and_lane(index, neighbours)
        register |= first
        if register not in found:
            found[register] = value
        else:
            found[register] = b.select(lane_is(low, mask_of(lanes), lane), value, found[register])
