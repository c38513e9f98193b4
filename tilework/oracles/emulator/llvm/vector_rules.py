"""Rules for whole values: vector elements, fields, selects, addresses; and for exchanges between the lanes of a wave.

DPP, permutations and votes read other lanes. A value from an inactive lane is undefined; its use is reported.
"""

from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.oracles.emulator.llvm.ir import Float, Instruction, Int, Sequence, Struct, dtype_of, fields_of, size_of
from tilework.oracles.emulator.llvm.translate_ir import (
    INACTIVE,
    Compute,
    Mask,
    Rule,
    Scalar,
    Translator,
    Unsupported,
    Value,
    any_of,
    applied,
    either,
    element,
    elementwise,
    fixed,
    integer,
    intrinsic,
    literal,
    merge,
    quiet_nan,
    rule,
    signed,
    undefined_of,
)
from tilework.oracles.emulator.memory import Array


@rule("extractelement")
def extract(ins: Instruction, t: Translator) -> Compute:
    index = fixed(ins, 1)
    if index is not None:
        return lambda mask, parts, _: parts[index]

    def computed(mask: Mask, parts: list[Scalar], at: Scalar) -> Scalar:
        found = parts[0]
        for index, part in enumerate(parts):
            found = merge(at[0] == index, part, found)
        return found[0], either(found[1], at[1])

    return computed


@rule("insertelement")
def insert(ins: Instruction, t: Translator) -> Compute:
    index = fixed(ins, 2)
    if index is not None:
        return lambda mask, parts, part, _: [*parts[:index], part, *parts[index + 1 :]]
    return lambda mask, parts, new, at: [merge(at[0] == index, new, part) for index, part in enumerate(parts)]


@rule("shufflevector")
def shuffle(ins: Instruction, t: Translator) -> Compute:
    missing = undefined_of(element(ins.type))

    def computed(mask: Mask, a: list[Scalar], b: list[Scalar]) -> Value:
        parts = a + b
        return [missing if index < 0 else parts[index] for index in ins.extra["indices"]]

    return computed


@rule("extractvalue")
def extract_field(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: reduce(getitem, ins.extra["indices"], value)


@rule("insertvalue")
def insert_field(ins: Instruction, t: Translator) -> Compute:
    def replaced(value: Value, part: Value, indices: list[int]) -> Value:
        if not indices:
            return part
        found = list(value)
        found[indices[0]] = replaced(found[indices[0]], part, indices[1:])
        return found

    return lambda mask, value, part: replaced(value, part, ins.extra["indices"])


@rule("select")
def select(ins: Instruction, t: Translator) -> Compute:
    def chosen(condition: Any, yes: Value, no: Value) -> Value:
        if isinstance(yes, list):
            return [chosen(condition, one, other) for one, other in zip(yes, no, strict=True)]
        data, undefined = merge(condition[0], yes, no)
        return data, either(undefined, condition[1])

    if isinstance(ins.operands[0][0], Sequence):  # for each element
        return lambda mask, *values: list(map(chosen, *values))
    return lambda mask, *values: chosen(*values)


def defined(value: Value) -> Value:
    return [defined(part) for part in value] if isinstance(value, list) else (value[0], None)


@rule("freeze")
def freeze(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: defined(value)


@rule("getelementptr")
def address(ins: Instruction, t: Translator) -> Compute:
    """The base, plus for each index a step of the size of the indexed type; fields of structures have fixed offsets."""
    pointer = dtype_of(element(ins.type))
    kind: Any = ins.extra["element"]
    constant, steps = 0, list[tuple[int, int]]()  # (bits of the index, bytes of a step)
    used = [0]  # operands
    for position, (index_type, _) in enumerate(ins.operands[1:], 1):
        if position > 1 and isinstance(kind, Struct):
            index = fixed(ins, position)
            assert index is not None
            offset, kind = fields_of(kind)[index]
            constant += offset
            continue
        if position > 1:
            kind = kind.element
        index = fixed(ins, position)
        if index is not None:
            constant += index * size_of(kind)
        else:
            used.append(position)
            steps.append((integer(ins, index_type).bits, size_of(kind)))
    start = np.array([constant % (1 << 8 * pointer.itemsize)], pointer)

    def moved(base: Array, *indices: Array) -> Array:
        found = base + start if constant else base
        for index, (width, size) in zip(indices, steps, strict=True):
            found = found + signed(index, width).astype(pointer) * pointer.type(size)
        return found

    if not isinstance(ins.type, Sequence):
        return lambda mask, *values: applied(moved, [values[index] for index in used])
    count = ins.type.count

    def many(mask: Mask, *values: Value) -> Value:
        rows = [values[index] if isinstance(values[index], list) else [values[index]] * count for index in used]
        return [applied(moved, row) for row in zip(*rows, strict=True)]

    return many


REDUCTIONS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "umax": np.maximum, "umin": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "fadd": np.add, "fmul": np.multiply,
}  # fmt: skip


@intrinsic(*(f"vector.reduce.{name}" for name in (*REDUCTIONS, "smax", "smin")))
def reduction(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[3]
    width = ins.type.bits if isinstance(ins.type, Int) else 0

    def combined(a: Array, b: Array) -> Array:
        if name in ("smax", "smin"):
            function: Any = np.maximum if name == "smax" else np.minimum
            return function(signed(a, width), signed(b, width)).view(a.dtype)
        return REDUCTIONS[name](a, b)

    def computed(mask: Mask, *values: Value) -> Scalar:
        parts = [*values[:-1], *values[-1]]
        found = reduce(combined, (data for data, _ in parts))
        if isinstance(ins.type, Float):
            dtype = dtype_of(ins.type)
            found = Arithmetic.of(dtype).propagate(found, [data for data, _ in parts], quiet_nan(dtype))
        return found, any_of(parts)

    return computed


@intrinsic("is.constant")
def unknown(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: (np.zeros(1, bool), None)


ROW, BANK = 16, 4
ROW_SHL, ROW_SHR, ROW_ROR = 0x100, 0x110, 0x120
WAVE_SHIFTS = {0x130: 1, 0x138: -1}  # by one lane in the whole wave; 0x134 and 0x13C rotate
MIRROR, HALF_MIRROR, BROADCAST_15, BROADCAST_31 = 0x140, 0x141, 0x142, 0x143
ROW_SHARE, ROW_XMASK = 0x150, 0x160


def dpp_sources(control: int, wave: int) -> Array:
    """Return the lane that each lane reads from; -1: none."""
    lane = np.arange(wave)
    row, inside = lane // ROW * ROW, lane % ROW
    if control < ROW_SHL:
        return lane // 4 * 4 + (control >> 2 * (lane % 4) & 3)
    count = control & 15
    if ROW_SHL < control < ROW_SHL + ROW:
        return np.where(inside + count < ROW, lane + count, -1)
    if ROW_SHR < control < ROW_SHR + ROW:
        return np.where(inside >= count, lane - count, -1)
    if ROW_ROR < control < ROW_ROR + ROW:
        return row + (inside - count) % ROW
    if control in WAVE_SHIFTS:
        moved = lane + WAVE_SHIFTS[control]
        return np.where((moved >= 0) & (moved < wave), moved, -1)
    if control == MIRROR:
        return row + ROW - 1 - inside
    if control == HALF_MIRROR:
        return lane // 8 * 8 + 7 - lane % 8
    if control == BROADCAST_15:
        return np.where(row > 0, row - 1, -1)
    if control == BROADCAST_31:
        return np.where(lane >= 32, 31, -1)
    if ROW_SHARE <= control < ROW_SHARE + ROW:
        return row + count
    if ROW_XMASK <= control < ROW_XMASK + ROW:
        return row + (inside ^ count)
    raise ValueError(f"DPP control {control:#x}")


def taken(t: Translator, value: Scalar, sources: Array, mask: Mask) -> Scalar:
    """Return the elements of other lanes of the same wave; `sources` is [wave or 1, lane]."""
    group = t.group
    count = group.threads // group.wave
    at = np.broadcast_to(sources, (count, group.wave))
    data = np.take_along_axis(t.waves(value[0]), at, 1).reshape(-1)
    undefined = None
    if value[1] is not None:
        undefined = np.take_along_axis(t.waves(value[1]), at, 1).reshape(-1)
    active = group.active(mask)
    if not active.all():
        asleep = ~np.take_along_axis(active.reshape(-1, group.wave), at, 1).reshape(-1) & active
        if asleep.any():
            undefined = either(undefined, asleep.astype(np.uint8) * np.uint8(INACTIVE))
    return data, undefined


@intrinsic("amdgcn.update.dpp", "amdgcn.mov.dpp", collective=True)
def dpp(ins: Instruction, t: Translator) -> Compute:
    shift = "update" in ins.callee  # its first operand is the value of lanes that read nothing
    control, rows, banks, bounded = (literal(ins, index) for index in range(1 + shift, 5 + shift))
    lane = np.arange(t.group.wave)
    try:
        sources = dpp_sources(control, t.group.wave)
    except ValueError as error:
        raise Unsupported(ins, str(error)) from error
    enabled = (rows >> lane // ROW & 1).astype(bool) & (banks >> lane % ROW // BANK & 1).astype(bool)
    repeat = t.group.threads // t.group.wave
    reads = np.tile(enabled & (sources >= 0), repeat)
    zero = np.tile(enabled & (sources < 0) & bool(bounded), repeat)
    source_lanes = np.maximum(sources, 0)[None]

    def computed(mask: Mask, *values: Scalar) -> Scalar:
        found = taken(t, values[shift], source_lanes, mask)
        none = np.zeros(1, found[0].dtype), None
        return merge(reads, found, merge(zero, none, values[0] if shift else none))

    return computed


def permutation(source_lanes: Callable[[Translator, list[Array]], Array], first: int, indices: tuple[int, ...]) -> Rule:
    """Return a rule that reads operand `first` from the lanes that `source_lanes` computes from other operands, as
    [wave or 1, lane]."""

    def made(ins: Instruction, t: Translator) -> Compute:
        def computed(mask: Mask, *values: Scalar) -> Scalar:
            which = [values[index] for index in indices]
            found = taken(t, values[first], source_lanes(t, [data for data, _ in which]), mask)
            return found[0], any_of([found, *which])

        return computed

    return made


def by_address(t: Translator, operands: list[Array]) -> Array:
    return t.waves(operands[0] // 4 % t.group.wave).astype(np.int64)


def by_nibbles(other_row: bool) -> Callable[[Translator, list[Array]], Array]:
    """permlane16: each lane of a row reads from the lane given by its nibble of two 32-bit operands."""

    def source_lanes(t: Translator, operands: list[Array]) -> Array:
        low, high = (t.waves(one).astype(np.int64) for one in operands)
        lane = np.arange(t.group.wave)
        inside = lane % ROW
        nibble = np.where(inside < 8, low >> 4 * (inside % 8), high >> 4 * (inside % 8)) & 15
        return (lane // ROW * ROW ^ (ROW if other_row else 0)) + nibble

    return source_lanes


intrinsic("amdgcn.ds.bpermute", collective=True)(permutation(by_address, 1, (0,)))
intrinsic("amdgcn.permlane16", collective=True)(permutation(by_nibbles(False), 1, (2, 3)))
intrinsic("amdgcn.permlanex16", collective=True)(permutation(by_nibbles(True), 1, (2, 3)))
intrinsic("amdgcn.permlane64", collective=True)(
    permutation(lambda t, _: np.arange(t.group.wave)[None] ^ t.group.wave // 2, 0, ())
)


@intrinsic("amdgcn.ds.permute", collective=True)
def push(ins: Instruction, t: Translator) -> Compute:
    """Send the value of each lane to another lane. The last of several senders wins; a lane without a sender gets 0."""
    group = t.group

    def computed(mask: Mask, *values: Scalar) -> Scalar:
        (address, p), (data, q) = map(t.everywhere, values)
        threads = group.indices(mask)
        to = threads // group.wave * group.wave + (address[threads] // 4 % group.wave).astype(np.int64)
        found = np.zeros(group.threads, data.dtype)
        found[to] = data[threads]
        missing = either(p, q)
        undefined = None
        if missing is not None:
            undefined = np.zeros(group.threads, np.uint8)
            undefined[to] = missing[threads]
        return found, undefined

    return computed


@intrinsic("amdgcn.ds.swizzle", collective=True)
def swizzle(ins: Instruction, t: Translator) -> Compute:
    pattern = literal(ins, 1) & 0xFFFF
    lane = np.arange(t.group.wave)
    if pattern >> 15 == 0:  # within 32 lanes: and, or, xor
        inside = ((lane & pattern & 31) | pattern >> 5 & 31) ^ pattern >> 10 & 31
        source_lanes = lane // 32 * 32 + inside
    elif pattern >> 8 == 0x80:
        source_lanes = lane // 4 * 4 + (pattern >> 2 * (lane % 4) & 3)
    else:
        raise Unsupported(ins, f"pattern {pattern:#x}")
    return lambda mask, value, _: taken(t, value, source_lanes[None], mask)


@intrinsic("amdgcn.readlane", collective=True)
def read_lane(ins: Instruction, t: Translator) -> Compute:
    def computed(mask: Mask, value: Scalar, lane: Scalar) -> Scalar:
        t.require(lane, mask, ins, "the index of a lane")
        return taken(t, value, t.waves(lane[0]).astype(np.int64) % t.group.wave, mask)

    return computed


@intrinsic("amdgcn.readfirstlane", collective=True)
def read_first(ins: Instruction, t: Translator) -> Compute:
    def computed(mask: Mask, value: Scalar) -> Scalar:
        first = t.group.active(mask).reshape(-1, t.group.wave).argmax(axis=1)
        return taken(t, value, first[:, None], mask)

    return computed


@intrinsic("amdgcn.ballot", collective=True)
def ballot(ins: Instruction, t: Translator) -> Compute:
    group, dtype = t.group, dtype_of(ins.type)

    def computed(mask: Mask, value: Scalar) -> Scalar:
        t.require(value, mask, ins, "a vote")
        votes = t.waves(value[0]) & group.active(mask).reshape(-1, group.wave)
        masks = np.left_shift(votes.astype(np.uint64), np.arange(group.wave, dtype=np.uint64)).sum(
            axis=1, dtype=np.uint64
        )
        return np.repeat(masks, group.wave).astype(dtype), None

    return computed


@intrinsic("amdgcn.mbcnt.lo", "amdgcn.mbcnt.hi")
def count_below(ins: Instruction, t: Translator) -> Compute:
    """Count the bits of a lane mask below this lane; the high half is that of lanes 32 to 63."""
    lane = np.arange(t.group.threads) % t.group.wave - (32 if ins.callee.endswith("hi") else 0)
    below = (np.uint64(1) << np.clip(lane, 0, 32).astype(np.uint64)) - np.uint64(1)

    def counted(half: Array, more: Array) -> Array:
        return np.bitwise_count(half.astype(np.uint64) & below).astype(np.uint32) + more

    return elementwise(ins, counted)


@intrinsic("amdgcn.permlane16.swap", "amdgcn.permlane32.swap", collective=True)
def swap_rows(ins: Instruction, t: Translator) -> Compute:
    """Swap odd rows of the first operand with even rows of the second."""
    row = 32 if "permlane32" in ins.callee else 16
    lane = np.arange(t.group.threads) % t.group.wave
    odd = lane // row % 2 == 1
    other = (np.arange(t.group.wave) ^ row)[None]

    def computed(mask: Mask, first: Scalar, second: Scalar, *_: Scalar) -> Value:
        return [merge(odd, taken(t, second, other, mask), first), merge(~odd, taken(t, first, other, mask), second)]

    return computed
