"""`ttg.fp4_to_fp`: each byte is two 4-bit floats, sign, two bits of exponent and one of mantissa.

    0b1_01_1  ->  -1.5            f16: 1_00001_1000000000 times 2**14

Moved into the same places of a wider float, the bits are the number times a power of two, subnormal ones included. Two numbers
go through at once, as the halves of a word: the lower four bits of a byte first.
"""

from xdsl.ir import Operation

from tilework.ir import ttg
from tilework.ir.encodings import layout_of
from tilework.ir.types import element_type
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of
from tilework.targets.gpu.views import Places, moved
from tilework.targets.gpu.words import unpack_word
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, bf16, f16, i32, vector
from tilework.targets.llvm.values import Value, constant

# how far the exponent and mantissa move, and the factor between the exponents' biases
PLACES: dict[Type, tuple[int, float]] = {f16: (9, 2.0**14), bf16: (6, 2.0**126)}


@lowers(ttg.Fp4ToFpOp)
def lower_fp4_to_fp(low: Lowering, op: Operation) -> Registers:
    source, result = op.operands[0], op.results[0].type
    axis = number_of(op, "axis")

    def packed(place: Places) -> Places:
        return (*place[:axis], place[axis] // 2, *place[axis + 1 :])

    wanted = register_type(element_type(result))
    found = moved(layout_of(source.type), layout_of(result), packed)
    pairs = {number: unpacked(low, low[source][number], wanted) for number in dict.fromkeys(found)}
    return tuple(pairs[number][register & 1] for register, number in enumerate(found))


def unpacked(low: Lowering, byte: Value, type: Type) -> list[Value]:
    """The two numbers of a byte."""
    b = low.builder
    shift, factor = PLACES[type]
    both = b.zext(byte, i32)
    halves = b.or_(b.and_(both, 0xF), b.shl(b.and_(both, 0xF0), 12))
    bits = b.or_(b.shl(b.and_(halves, 0x00080008), 12), b.shl(b.and_(halves, 0x00070007), shift))
    scaled = b.fmul(b.bitcast(bits, vector(type, 2)), constant(vector(type, 2), factor))
    return unpack_word(low, b.bitcast(scaled, i32), type)
