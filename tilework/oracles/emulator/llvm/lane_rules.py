"""What lanes of a wave get from one another: DPP, permutations, votes.

What comes from a lane that is not active means nothing; it is reported where it is used.
"""

from collections.abc import Callable

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import dtype_of
from tilework.oracles.emulator.llvm.lane_values import INACTIVE, Scalar, either
from tilework.oracles.emulator.llvm.translate_ir import Mask, Op, Rule, Translator, Unsupported, intrinsic

ROW, BANK = 16, 4
ROW_SHL, ROW_SHR, ROW_ROR = 0x100, 0x110, 0x120
WAVE_SHIFTS = {0x130: 1, 0x138: -1}  # by one lane in the whole wave; 0x134 and 0x13C rotate
MIRROR, HALF_MIRROR, BROADCAST_15, BROADCAST_31 = 0x140, 0x141, 0x142, 0x143
ROW_SHARE, ROW_XMASK = 0x150, 0x160


def dpp_sources(control: int, wave: int) -> Array:
    """The lane that each lane reads from; -1 is none."""
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
    """The elements of other lanes of the same wave; `sources` is [wave or 1, lane]."""
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
def dpp(ins: Instruction, t: Translator) -> Op:
    slots, out = t.inputs(ins), t.output(ins)
    shift = "update" in ins.callee
    control, rows, banks, bounded = (t.literal(ins, index) for index in range(1 + shift, 5 + shift))
    lane = np.arange(t.group.wave)
    try:
        sources = dpp_sources(control, t.group.wave)
    except ValueError as error:
        raise Unsupported(ins, str(error)) from error
    enabled = (rows >> lane // ROW & 1).astype(bool) & (banks >> lane % ROW // BANK & 1).astype(bool)
    repeat = t.group.threads // t.group.wave
    reads = np.tile(enabled & (sources >= 0), repeat)
    zero = np.tile(enabled & (sources < 0) & bool(bounded), repeat)
    places = np.maximum(sources, 0)[None]

    def op(mask: Mask) -> None:
        data, undefined = taken(t, t.slots[slots[shift]], places, mask)
        old, missing = t.slots[slots[0]] if shift else (np.zeros(1, data.dtype), None)
        found = np.where(reads, data, np.where(zero, np.zeros(1, data.dtype), old))
        if undefined is not None or missing is not None:
            none = np.zeros(1, np.uint8)
            kept = np.where(zero, none, none if missing is None else missing)
            undefined = np.where(reads, none if undefined is None else undefined, kept)
        t.put(out, (found, undefined), mask)

    return op


def permutation(places: Callable[[Translator, list[Array]], Array], first: int, indices: tuple[int, ...]) -> Rule:
    """A rule: operand `first` is read from lanes that `places` computes from other operands, as [wave or 1, lane]."""

    def made(ins: Instruction, t: Translator) -> Op:
        slots, out = t.inputs(ins), t.output(ins)

        def op(mask: Mask) -> None:
            which = [t.slots[slots[index]] for index in indices]
            data, undefined = taken(t, t.slots[slots[first]], places(t, [one[0] for one in which]), mask)
            for _, missing in which:
                undefined = either(undefined, missing)
            t.put(out, (data, undefined), mask)

        return op

    return made


def by_address(t: Translator, operands: list[Array]) -> Array:
    return t.waves(operands[0] // 4 % t.group.wave).astype(np.int64)


def by_nibbles(other_row: bool) -> Callable[[Translator, list[Array]], Array]:
    """permlane16: each lane of a row reads from the lane of a row that its nibble of two words says."""

    def places(t: Translator, operands: list[Array]) -> Array:
        low, high = (t.waves(one).astype(np.int64) for one in operands)
        lane = np.arange(t.group.wave)
        inside = lane % ROW
        nibble = np.where(inside < 8, low >> 4 * (inside % 8), high >> 4 * (inside % 8)) & 15
        return (lane // ROW * ROW ^ (ROW if other_row else 0)) + nibble

    return places


intrinsic("amdgcn.ds.bpermute", collective=True)(permutation(by_address, 1, (0,)))
intrinsic("amdgcn.permlane16", collective=True)(permutation(by_nibbles(False), 1, (2, 3)))
intrinsic("amdgcn.permlanex16", collective=True)(permutation(by_nibbles(True), 1, (2, 3)))
intrinsic("amdgcn.permlane64", collective=True)(
    permutation(lambda t, _: np.arange(t.group.wave)[None] ^ t.group.wave // 2, 0, ())
)


@intrinsic("amdgcn.ds.permute", collective=True)
def push(ins: Instruction, t: Translator) -> Op:
    """Each lane sends; of several that send to one lane the last one counts, a lane that gets nothing has 0."""
    (a, b), out, group = t.inputs(ins), t.output(ins), t.group

    def op(mask: Mask) -> None:
        (address, p), (data, q) = (t.everywhere(t.slots[slot]) for slot in (a, b))
        threads = group.numbers(mask)
        to = threads // group.wave * group.wave + (address[threads] // 4 % group.wave).astype(np.int64)
        found = np.zeros(group.threads, data.dtype)
        found[to] = data[threads]
        missing = either(p, q)
        undefined = None
        if missing is not None:
            undefined = np.zeros(group.threads, np.uint8)
            undefined[to] = missing[threads]
        t.put(out, (found, undefined), mask)

    return op


@intrinsic("amdgcn.ds.swizzle", collective=True)
def swizzle(ins: Instruction, t: Translator) -> Op:
    (a, _), out, pattern = t.inputs(ins), t.output(ins), t.literal(ins, 1) & 0xFFFF
    lane = np.arange(t.group.wave)
    if pattern >> 15 == 0:  # within 32 lanes: and, or, xor
        inside = ((lane & pattern & 31) | pattern >> 5 & 31) ^ pattern >> 10 & 31
        places = lane // 32 * 32 + inside
    elif pattern >> 8 == 0x80:
        places = lane // 4 * 4 + (pattern >> 2 * (lane % 4) & 3)
    else:
        raise Unsupported(ins, f"pattern {pattern:#x}")
    return lambda mask: t.put(out, taken(t, t.slots[a], places[None], mask), mask)


@intrinsic("amdgcn.readlane", collective=True)
def read_lane(ins: Instruction, t: Translator) -> Op:
    (a, b), out = t.inputs(ins), t.output(ins)

    def op(mask: Mask) -> None:
        t.require(t.slots[b], mask, ins, "the number of a lane")
        lane = t.waves(t.slots[b][0]).astype(np.int64) % t.group.wave
        t.put(out, taken(t, t.slots[a], lane, mask), mask)

    return op


@intrinsic("amdgcn.readfirstlane", collective=True)
def read_first(ins: Instruction, t: Translator) -> Op:
    (a,), out = t.inputs(ins), t.output(ins)

    def op(mask: Mask) -> None:
        first = t.group.active(mask).reshape(-1, t.group.wave).argmax(axis=1)
        t.put(out, taken(t, t.slots[a], np.broadcast_to(first[:, None], (len(first), t.group.wave)), mask), mask)

    return op


@intrinsic("amdgcn.ballot", collective=True)
def ballot(ins: Instruction, t: Translator) -> Op:
    (a,), out, group = t.inputs(ins), t.output(ins), t.group
    dtype = dtype_of(ins.type)

    def op(mask: Mask) -> None:
        t.require(t.slots[a], mask, ins, "a vote")
        votes = t.waves(t.slots[a][0]) & group.active(mask).reshape(-1, group.wave)
        words = np.left_shift(votes.astype(np.uint64), np.arange(group.wave, dtype=np.uint64)).sum(
            axis=1, dtype=np.uint64
        )
        t.put(out, (np.repeat(words, group.wave).astype(dtype), None), mask)

    return op


@intrinsic("amdgcn.mbcnt.lo", "amdgcn.mbcnt.hi")
def count_below(ins: Instruction, t: Translator) -> Op:
    """How many bits of a word are below this lane; the high word is that of lanes 32 to 63."""
    (a, b), out = t.inputs(ins), t.output(ins)
    lane = np.arange(t.group.threads) % t.group.wave - (32 if ins.callee.endswith("hi") else 0)
    below = (np.uint64(1) << np.clip(lane, 0, 32).astype(np.uint64)) - np.uint64(1)

    def op(mask: Mask) -> None:
        (word, p), (more, q) = t.slots[a], t.slots[b]
        bits = np.bitwise_count(word.astype(np.uint64) & below)
        t.put(out, (bits.astype(np.uint32) + more, either(p, q)), mask)

    return op


@intrinsic("amdgcn.permlane16.swap", "amdgcn.permlane32.swap", collective=True)
def swap_rows(ins: Instruction, t: Translator) -> Op:
    """Odd rows of the first operand change places with even rows of the second."""
    slots, out = t.inputs(ins)[:2], t.output(ins)
    row = 32 if "permlane32" in ins.callee else 16
    lane = np.arange(t.group.threads) % t.group.wave
    odd = lane // row % 2 == 1
    other = (np.arange(t.group.wave) ^ row)[None]

    def op(mask: Mask) -> None:
        first, second = (t.slots[slot] for slot in slots)
        from_first, from_second = taken(t, first, other, mask), taken(t, second, other, mask)
        pairs = ((odd, from_second, first), (~odd, from_first, second))
        found = []
        for which, moved, kept in pairs:
            undefined = None
            if moved[1] is not None or kept[1] is not None:
                none = np.zeros(1, np.uint8)
                undefined = np.where(
                    which, none if moved[1] is None else moved[1], none if kept[1] is None else kept[1]
                )
            found.append((np.where(which, moved[0], kept[0]), undefined))
        t.put(out, found, mask)

    return op
