"""Instructions of a whole warp: shuffles, votes, matches, reductions.

A member mask names the lanes that take part. All of them must be here; a lane that is named and is not is an error,
since on a GPU the result would be undefined or the warp would hang.
"""

from collections.abc import Callable

import numpy as np

from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.rules.floating import Format
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Pair, Sink, pair
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator, Unsupported, rule

LANES = np.arange(WARP, dtype=np.int64)
LANE_BITS = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)).astype(np.uint32)


def everyone(t: Translator, mask: Mask) -> Array:
    """Return the mask as (warps, 32)."""
    return (t.block.exists if mask is True else mask).reshape(-1, WARP)


def members(t: Translator, operand: object, ins: Instruction) -> Callable[[Array], Array]:
    """Check a member mask against the active lanes; return the lanes it names, (warps, 32)."""
    value = t.read(operand, np.uint32)  # type: ignore[arg-type]
    whole = value.ndim == 0 and int(value) == 0xFFFF_FFFF

    def check(here: Array) -> Array:
        if whole and here.all():
            return here
        named = np.broadcast_to(value, (t.threads,)).reshape(-1, WARP)
        some = np.asarray(here.any(axis=1))
        first = named[np.arange(len(named)), here.argmax(axis=1)]
        if (named != first[:, None])[here].any():
            raise EmulatorError(f"{ins.name}: the lanes of a warp give different member masks")
        wanted = (first[:, None] >> np.arange(WARP, dtype=np.uint32) & np.uint32(1)).astype(bool) & some[:, None]
        gone = t.machine.finished.reshape(-1, WARP) if t.machine is not None else np.zeros_like(here)
        if np.count_nonzero(absent := wanted & ~here & ~gone):
            warp, lane = np.argwhere(absent)[0]
            raise EmulatorError(f"{ins.name}: the member mask of warp {warp} names lane {lane}, which is not here")
        if np.count_nonzero(stranger := here & ~wanted):
            warp, lane = np.argwhere(stranger)[0]
            raise EmulatorError(f"{ins.name}: lane {lane} of warp {warp} is here and not in its member mask")
        return wanted & here

    return check


@rule("shfl", collective=True)
def shfl(ins: Instruction, t: Translator) -> Op:
    """Return the value of another lane; the second result is True if that lane is in the segment."""
    mode = next((modifier for modifier in ins.modifiers if modifier in ("up", "down", "bfly", "idx")), None)
    if mode is None or ins.modifiers[-1] != "b32":
        raise Unsupported(ins)
    target, valid = pair(ins.operands[0])
    out, inside_out = t.write(target, np.uint32), t.write(valid, bool)
    a, b, c = (t.read(operand, np.uint32) for operand in ins.operands[1:4])
    check = members(t, ins.operands[4], ins) if len(ins.operands) > 4 else None

    def op(mask: Mask) -> None:
        here = everyone(t, mask)
        if check is not None:
            check(here)
        values = np.broadcast_to(a, (t.threads,)).reshape(here.shape)
        inside, lane = constant or partners(b, c)
        if constant is not None:
            np.copyto(out, values.take(lane, axis=1).reshape(-1), where=mask)
        else:
            np.copyto(out, np.take_along_axis(values, lane, axis=1).reshape(-1), where=mask)
        np.copyto(inside_out, np.broadcast_to(inside, here.shape).reshape(-1), where=mask)

    def partners(b: Array, c: Array) -> tuple[Array, Array]:
        """Return whether the source lane is in the segment, and its index (the lane's own if it is not)."""
        offset, bounds = (np.broadcast_to(x, (t.threads,)).reshape(-1, WARP) for x in (b, c))
        segment = (bounds >> np.uint32(8) & np.uint32(31)).astype(np.int64)
        clamp = (bounds & np.uint32(31)).astype(np.int64)
        step = (offset & np.uint32(31)).astype(np.int64)
        last = (LANES & segment) | (clamp & ~segment)
        ways = {
            "up": LANES - step,
            "down": LANES + step,
            "bfly": LANES ^ step,
            "idx": LANES & segment | step & ~segment,
        }
        lane = ways[mode]
        inside = lane >= last if mode == "up" else lane <= last
        return inside, np.where(inside, lane, LANES) & 31

    constant = None
    if b.ndim == 0 == c.ndim:
        inside_all, lane_all = partners(b, c)
        constant = inside_all[0], lane_all[0]
    return op


def ballots(chosen: Array) -> Array:
    """Return a 32-bit mask per warp with a bit for each chosen lane."""
    return (chosen * LANE_BITS).sum(axis=1, dtype=np.uint64).astype(np.uint32)


@rule("vote", collective=True)
def vote(ins: Instruction, t: Translator) -> Op:
    kind = next((modifier for modifier in ins.modifiers if modifier in ("all", "any", "uni", "ballot")), None)
    if kind is None:
        raise Unsupported(ins)
    wanted = t.predicate(ins.operands[1])
    out = t.write(ins.operands[0], np.uint32 if kind == "ballot" else bool)
    check = members(t, ins.operands[2], ins) if len(ins.operands) > 2 else (lambda here: here)

    def op(mask: Mask) -> None:
        lanes = check(everyone(t, mask))
        votes = np.broadcast_to(wanted(), (t.threads,)).reshape(-1, WARP)
        some, every = (votes & lanes).any(axis=1), (votes | ~lanes).all(axis=1)
        result = {"all": every, "any": some, "uni": every | ~some}.get(kind)
        if result is None:
            result = ballots(votes & lanes)
        np.copyto(out, np.repeat(result, WARP), where=mask)

    return op


@rule("activemask")
def activemask(ins: Instruction, t: Translator) -> Op:
    out = t.write(ins.operands[0], np.uint32)
    return lambda mask: np.copyto(out, np.repeat(ballots(everyone(t, mask)), WARP), where=mask)


@rule("match", collective=True)
def match(ins: Instruction, t: Translator) -> Op:
    """The lanes that have the same value (any), or whether all do (all, with a predicate)."""
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    target, agreed = pair(ins.operands[0])
    out, agreed_out = t.write(target, np.uint32), t.write(agreed, bool)
    value = t.read(ins.operands[1], dtype)
    check = members(t, ins.operands[2], ins)
    wants_all = "all" in ins.modifiers

    def op(mask: Mask) -> None:
        lanes = check(everyone(t, mask))
        values = np.broadcast_to(value, (t.threads,)).reshape(-1, WARP)
        same = (values[:, :, None] == values[:, None, :]) & lanes[:, None, :]
        masks = (same * LANE_BITS).sum(axis=2, dtype=np.uint64).astype(np.uint32)
        full = ballots(lanes)
        if wants_all:
            every = masks == full[:, None]
            masks = np.where(every, full[:, None], np.uint32(0))
            np.copyto(agreed_out, every.reshape(-1), where=mask)
        np.copyto(out, masks.reshape(-1), where=mask)

    return op


@rule("redux", collective=True)
def redux(ins: Instruction, t: Translator) -> Op:
    kind = next((modifier for modifier in ins.modifiers if modifier in ("add", "min", "max", "and", "or", "xor")), None)
    type = ins.modifiers[-1]
    if kind is None or (type == "f32" and kind not in ("min", "max")):
        raise Unsupported(ins)
    dtype = np.dtype(t.type_of(type, ins))
    out, value = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype)
    check = members(t, ins.operands[2], ins)
    floating = dtype.kind == "f"
    least, most = (-np.inf, np.inf) if floating else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    neutral = {"add": 0, "or": 0, "xor": 0, "and": -1, "min": most, "max": least}
    functions = {"add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and}
    functions |= {"min": np.fmin if floating else np.minimum, "max": np.fmax if floating else np.maximum}
    keeps_nan, absolute = "NaN" in ins.modifiers, "abs" in ins.modifiers

    def op(mask: Mask) -> None:
        lanes = check(everyone(t, mask))
        values = np.broadcast_to(value, (t.threads,)).reshape(-1, WARP)
        values = np.abs(values) if absolute else values
        filled = np.where(lanes, values, np.array(neutral[kind]).astype(dtype))
        result = functions[kind].reduce(filled, axis=1).astype(dtype)
        if floating and keeps_nan:
            result = np.where((np.isnan(values) & lanes).any(axis=1), dtype.type(np.nan), result)
        if floating:
            result = Format.of_dtype(dtype).canonical(result)
        np.copyto(out, np.repeat(result, WARP), where=mask)

    return op


@rule("elect", collective=True)
def elect(ins: Instruction, t: Translator) -> Op:
    """Elect the lowest lane of the mask; the first result is its index."""
    target = ins.operands[0]
    target, chosen = (target.first, target.second) if isinstance(target, Pair) else (Sink(), target)
    out, flag = t.write(target, np.uint32), t.write(chosen, bool)
    check = members(t, ins.operands[1], ins)

    def op(mask: Mask) -> None:
        lanes = check(everyone(t, mask))
        leader = lanes.argmax(axis=1)
        np.copyto(out, np.repeat(leader.astype(np.uint32), WARP), where=mask)
        np.copyto(flag, (leader[:, None] == LANES).reshape(-1), where=mask)

    return op
