"""`tt.load` and `tt.store`: predicated accesses to global memory, as wide as pointers and masks allow.

    @%p ld.global.v4.b32 {%a, %b, %c, %d}, [%ptr];

Registers that are neighbours in memory move together, up to 16 bytes at a time: as many as the layout has side by side, as the
pointers are known to be contiguous and aligned for, and as share one bit of the mask. Where several threads hold the same
element, all load it and one stores it.
"""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.types import PointerType, array_values, element_type, is_tensor, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import order
from tilework.targets.gpu.assembly import ptx
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.shared_access import from_memory, held_type, to_memory
from tilework.targets.gpu.words import pack_words, unpack_word
from tilework.targets.llvm.types import Type, i16, i32, i64, integer, vector
from tilework.targets.llvm.values import Value

WIDEST = 128
CACHE = {1: "", 2: ".ca", 3: ".cg", 4: ".wb", 5: ".cs", 6: ".wt", 7: ".cv"}
EVICT = {1: "", 2: ".L1::evict_first", 3: ".L1::evict_last"}


def number_of(op: Operation, name: str, default: int) -> int:
    found = op.properties.get(name)
    return found.value.data if isinstance(found, IntegerAttr) else default


def segments(op: Operation) -> list[SSAValue | None]:
    """The operands of an op by their segments, each of them at most one."""
    found: list[SSAValue | None] = []
    place = 0
    for count in array_values(op.properties["operandSegmentSizes"]):
        found.append(op.operands[place] if count else None)
        place += count
    return found


def vector_run(layout: LinearLayout, axis: int) -> int:
    """How many registers, from the first on, are neighbours along `axis`."""
    run = 1
    for vector_ in dict(layout.bases)["register"]:
        if vector_[axis] != run or sum(map(bool, vector_)) != 1:
            break
        run *= 2
    return run


def width_of(low: Lowering, pointers: SSAValue, mask: SSAValue | None, bits: int) -> int:
    """How many registers move together."""
    type = pointers.type
    if not is_tensor(type):
        return 1
    encoding = encoding_of(type)
    assert encoding is not None and low.axis is not None
    dims = order(encoding, shape_of(type))
    layout = layout_of(type)
    if not dims:
        return 1
    width = min(vector_run(layout, dims[0]), low.axis.alignment(pointers, dims), max(1, WIDEST // bits))
    if mask is not None:
        width = min(width, low.axis.mask_alignment(mask, dims))
    return width


def words(bits: int, width: int) -> tuple[Type, int]:
    """The registers that an access of `width` elements uses: their type and number."""
    total = bits * width
    if total <= 16:
        return i16, 1
    word = i64 if bits == 64 else i32
    return word, max(1, total // word.bits)


def access_text(word: Type, count: int, bits: int, width: int) -> str:
    """``.v4.b32``."""
    size = word.bits if word is not i16 else bits * width
    return (f".v{count}" if count > 1 else "") + f".b{size}"


def pack(low: Lowering, values: Sequence[Value], word: Type) -> list[Value]:
    """Elements of memory in words, the first in the lowest bits."""
    b = low.builder
    bits = values[0].type.bits
    if bits > word.bits:
        raise AssertionError("an element is wider than a word")
    if bits == word.bits:
        return [b.bitcast(value, word) for value in values]
    each = word.bits // bits
    if len(values) < each:
        (value,) = values
        return [b.zext(b.bitcast(value, integer(bits)), word)]
    if word is i32:
        return pack_words(low, values)
    return [b.bitcast(b.build_vector(list(values)), word)]


def unpack(low: Lowering, loaded: Sequence[Value], held: Type, width: int) -> list[Value]:
    """The elements in words."""
    b = low.builder
    word = loaded[0].type
    if held.bits == word.bits:
        return [b.bitcast(value, held) for value in loaded]
    each = word.bits // held.bits
    if width < each:
        return [b.bitcast(b.trunc(loaded[0], integer(held.bits)), held)]
    if word is i32:
        return [element for value in loaded for element in unpack_word(low, value, held)]
    return b.lanes(b.bitcast(loaded[0], vector(held, each)))


def pointee(type: Attribute) -> Attribute:
    pointer = element_type(type)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def hints_of(op: Operation) -> str:
    """``.cg`` or ``.L1::evict_first``: an instruction has only one, and a cache modifier says more."""
    return CACHE[number_of(op, "cache", 1)] or EVICT[number_of(op, "evict", 1)]


def is_volatile(op: Operation) -> bool:
    found = op.properties.get("isVolatile")
    return isinstance(found, IntegerAttr) and bool(found.value.data)


@lowers(tt.LoadOp)
def lower_load(low: Lowering, op: Operation) -> Registers:
    pointers, mask, other = segments(op)
    assert pointers is not None
    element = pointee(pointers.type)
    held = held_type(element)
    width = width_of(low, pointers, mask, held.bits)
    hints = ".volatile" if is_volatile(op) else hints_of(op)
    addresses: Registers = low[pointers]
    masks: Registers | None = low[mask] if mask is not None else None
    others: Registers | None = low[other] if other is not None else None
    known: dict[tuple[str, ...], Registers] = {}
    made: list[Value] = []
    for first in range(0, len(addresses), width):
        fallback = others[first : first + width] if others is not None else None
        predicate = masks[first] if masks is not None else None
        key = (addresses[first].text, predicate.text if predicate else "", *(value.text for value in fallback or ()))
        if key not in known or is_volatile(op):
            known[key] = load(low, element, addresses[first], width, predicate, fallback, hints)
        made += known[key]
    return tuple(made)


def load(
    low: Lowering, element: Attribute, address: Value, width: int, predicate: Value | None, other: Any, hints: str
) -> Registers:
    """`width` neighbours from memory; where the predicate is false, `other` (or zero)."""
    held = held_type(element)
    word, count = words(held.bits, width)
    outputs = [f"${place}" for place in range(count)]
    target = f"{{{', '.join(outputs)}}}" if count > 1 else outputs[0]
    kind = access_text(word, count, held.bits, width)
    inputs: list[Value] = [address]
    text = f"ld.global{hints}{kind} {target}, [${count}];"
    if predicate is not None and predicate.constant != 1:
        inputs.append(predicate)
        if other is None:
            start = "".join(f"mov.b{word.bits} {output}, 0; " for output in outputs)
        else:
            given = pack(low, [to_memory(low, element, value) for value in other], word)
            inputs += given
            start = "".join(
                f"mov.b{word.bits} {output}, ${count + 2 + place}; " for place, output in enumerate(outputs)
            )
        text = f"{start}@${count + 1} {text}"
    effect = "write" if ".volatile" in hints else "read"
    loaded = ptx(low.builder, text, [word] * count, inputs, effect=effect)
    return tuple(from_memory(low, element, value) for value in unpack(low, loaded, held, width))


@lowers(tt.StoreOp)
def lower_store(low: Lowering, op: Operation) -> None:
    pointers, values, *masked = op.operands
    mask = masked[0] if masked else None
    element = pointee(pointers.type)
    held = held_type(element)
    width = width_of(low, pointers, mask, held.bits)
    hints = hints_of(op)
    addresses, registers = low[pointers], low[values]
    masks = low[mask] if mask is not None else None
    mine = store_predicate(low, pointers.type)
    word, count = words(held.bits, width)
    kind = access_text(word, count, held.bits, width)
    b = low.builder
    copies = copied_registers(pointers.type)
    for first in range(0, len(addresses), width):
        if first & copies:
            continue
        predicate = mine
        if masks is not None:
            predicate = masks[first] if predicate is None else b.and_(predicate, masks[first])
        given = pack(low, [to_memory(low, element, value) for value in registers[first : first + width]], word)
        names = [f"${place + 1}" for place in range(count)]
        source = f"{{{', '.join(names)}}}" if count > 1 else names[0]
        text = f"st.global{hints}{kind} [$0], {source};"
        inputs = [addresses[first], *given]
        if predicate is not None and predicate.constant != 1:
            text = f"@${len(inputs)} {text}"
            inputs.append(predicate)
        ptx(b, text, [], inputs, effect="write")


def copied_registers(type: Attribute) -> int:
    """The bits of a register's number that only tell copies apart."""
    if not is_tensor(type):
        return 0
    return sum(1 << bit for bit, column in enumerate(layout_of(type).by_in["register"]) if not column)


def store_predicate(low: Lowering, type: Attribute) -> Value | None:
    """Whether this thread is the one that writes what it holds; a scalar is written by the first."""
    if is_tensor(type):
        return low.is_first_copy(layout_of(type))
    mine = low.builder.icmp("eq", low.thread, 0)
    return mine if low.block.constant is not None else low.builder.and_(mine, low.builder.icmp("eq", low.block, 0))
