"""Loads, stores, atomic accesses, buffers, waits, fences, and the indices of a thread.

Atomic accesses of several threads to one address happen one after the other.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.oracles.emulator.llvm.ir import (
    Assembly,
    Float,
    Instruction,
    Int,
    Pointer,
    Struct,
    Type,
    align_of,
    dtype_of,
    leaves,
    size_of,
)
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Scalar,
    Translator,
    Unsupported,
    Value,
    bits,
    flatten,
    from_bytes,
    intrinsic,
    literal,
    nothing,
    quiet_nan,
    rule,
    signed,
    to_bytes,
    unflatten,
)
from tilework.oracles.emulator.memory import Array, by_window, conflict_free_rounds
from tilework.oracles.emulator.syntax import Trapped

if TYPE_CHECKING:
    from tilework.oracles.emulator.llvm.workgroup import Workgroup

LDS, PRIVATE = 3, 5
WINDOWS = {"shared": LDS, "local": PRIVATE, "arena": 1}  # spaces of flat addresses
MASKED = 0x80000000  # the offset that says that a lane is off
RELEASES = {"release", "acq_rel", "seq_cst"}


# bytes of any space


def fetch(
    group: "Workgroup", space: int, addresses: Array, size: int, align: int, threads: Array, ins: Instruction,
    atomic: bool = False, counts: bool = True,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Return rows of bytes, and the reasons why they are undefined (None: defined)."""
    if space == 0:
        return fetch_flat(group, addresses, size, align, threads, ins, atomic)
    if group.counters is not None:
        group.counters.accessed(ins, space, addresses, size, threads)
    if space == LDS:
        return group.lds.read(addresses, size, threads, align, ins, atomic)
    if space == PRIVATE:
        return group.private.read_bytes(addresses, size, align, threads), None
    rows = group.arena.read_bytes(addresses, size, align, threads)
    if counts:
        group.count_access(threads)
    return rows, None


def send(
    group: "Workgroup", space: int, addresses: Array, rows: Array, align: int, threads: Array, ins: Instruction,
    undefined: Array | None = None, atomic: bool = False, counts: bool = True,
) -> None:  # fmt: skip
    if space == 0:
        for name, base, which in by_window(addresses):
            missing = None if undefined is None else undefined[which]
            send(
                group, WINDOWS[name], addresses[which] - base, rows[which], align, threads[which], ins, missing, atomic
            )
        return
    if group.counters is not None and (not atomic or ins.opcode == "store"):  # an update has been counted as it read
        group.counters.accessed(ins, space, addresses, rows.shape[1], threads)
    if space == LDS:
        group.lds.write(addresses, rows, threads, align, ins, undefined, atomic)
    elif space == PRIVATE:
        group.private.write_bytes(addresses, rows, align, threads)
    else:
        group.arena.write_bytes(addresses, rows, align, threads)
        if counts:
            group.count_access(threads)


def fetch_flat(
    group: "Workgroup", addresses: Array, size: int, align: int, threads: Array, ins: Instruction, atomic: bool
) -> Any:
    rows, missing = np.empty((len(addresses), size), np.uint8), None
    for name, base, which in by_window(addresses):
        rows[which], undefined = fetch(
            group, WINDOWS[name], addresses[which] - base, size, align, threads[which], ins, atomic
        )
        if undefined is not None:
            missing = np.zeros(rows.shape, np.uint8) if missing is None else missing
            missing[which] = undefined
    return rows, missing


# values


def loaded(group: "Workgroup", kind: Type, rows: Array, missing: Array | None, threads: Array) -> Value:
    """Return the value of these threads from bytes as in memory; other threads have zeros."""
    if len(threads) < group.threads:
        full = np.zeros((group.threads, rows.shape[1]), np.uint8)
        full[threads] = rows
        rows = full
        if missing is not None:
            full = np.zeros(rows.shape, np.uint8)
            full[threads] = missing
            missing = full
    found = []
    for offset, leaf in leaves(kind):
        end = offset + size_of(leaf)
        undefined = None if missing is None else missing[:, offset:end].max(axis=1)
        found.append(
            from_bytes(leaf, rows[:, offset:end], undefined if undefined is not None and undefined.any() else None)
        )
    return unflatten(kind, found)


def stored(group: "Workgroup", kind: Type, value: Value, threads: Array) -> tuple[Array, Array | None]:
    """Return the bytes of these threads as in memory, and the reasons why they are undefined. The type has no
    padding."""
    rows, undefined = to_bytes(kind, value)
    rows = np.broadcast_to(rows, (group.threads, rows.shape[1]))[threads]
    if undefined is None:
        return rows, None
    columns = []
    for (_, why), (_, leaf) in zip(flatten(value), leaves(kind), strict=True):
        why = np.zeros(1, np.uint8) if why is None else why
        columns.append(np.repeat(np.broadcast_to(why, group.threads)[threads][:, None], size_of(leaf), axis=1))
    return rows, np.concatenate(columns, axis=1)


def addresses_of(t: Translator, value: Scalar, threads: Array, mask: Mask, ins: Instruction) -> Array:
    t.require(value, mask, ins, "an address")
    return np.broadcast_to(value[0], t.group.threads)[threads].astype(np.uint64)


def has_holes(kind: Type) -> bool:
    return isinstance(kind, Struct) and sum(size_of(leaf) for _, leaf in leaves(kind)) < size_of(kind)


@rule("load")
def load(ins: Instruction, t: Translator) -> Compute:
    pointer, group = ins.operands[0][0], t.group
    assert isinstance(pointer, Pointer)
    size, align = size_of(ins.type), ins.extra["align"] or align_of(ins.type)

    def computed(mask: Mask, address: Scalar) -> Value:
        threads = group.indices(mask)
        addresses = addresses_of(t, address, threads, mask, ins)
        rows, missing = fetch(group, pointer.space, addresses, size, align, threads, ins, ins.extra["atomic"])
        return loaded(group, ins.type, rows, missing, threads)

    return computed


@rule("store")
def store(ins: Instruction, t: Translator) -> Compute:
    kind, pointer, group = ins.operands[0][0], ins.operands[1][0], t.group
    assert isinstance(pointer, Pointer)
    align = ins.extra["align"] or align_of(kind)
    parts = leaves(kind) if has_holes(kind) else None

    def done(mask: Mask, value: Value, address: Scalar) -> None:
        threads = group.indices(mask)
        addresses = addresses_of(t, address, threads, mask, ins)
        if pointer.space not in (LDS, PRIVATE):
            t.require(value, mask, ins, "what is stored")
        if parts is None:
            rows, missing = stored(group, kind, value, threads)
            send(group, pointer.space, addresses, rows, align, threads, ins, missing, ins.extra["atomic"])
            return
        for (offset, leaf), part in zip(parts, flatten(value), strict=True):
            rows, missing = stored(group, leaf, part, threads)
            send(group, pointer.space, addresses + np.uint64(offset), rows, 1, threads, ins, missing)

    return done


@rule("alloca")
def allocate(ins: Instruction, t: Translator) -> Compute:
    if ins.extra["count"] is None:
        raise Unsupported(ins, "of a size that is not a number")
    address = t.group.stack_address(size_of(ins.extra["element"]) * ins.extra["count"], ins.extra["align"])
    data = np.array([address], dtype_of(ins.type))
    return lambda mask, *_: (data, None)


# buffers: a resource is [base, bytes that exist]


@intrinsic("amdgcn.make.buffer.rsrc")
def make_resource(ins: Instruction, t: Translator) -> Compute:
    if literal(ins, 1):
        raise Unsupported(ins, "a stride")
    checks = literal(ins, 3) >> 28 & 3
    if (checks == 3) != (
        int(t.group.arch[3:-2]) >= 10
    ):  # how RDNA's GPUs compare offsets in bytes with the size; CDNA's have no such bits
        raise Unsupported(ins, f"bounds that are checked in another way ({checks})")

    return lambda mask, base, _, records, __: [base, (records[0].astype(np.uint64), records[1])]


def buffer_addresses(
    t: Translator, resource: Value, steps: Sequence[Scalar], mask: Mask, ins: Instruction
) -> tuple[Array, Array, Array, Array]:
    """Return (threads, addresses, offsets, bytes that exist) of a buffer access; `steps` are added to the base of the
    resource."""
    group = t.group
    threads = group.indices(mask)
    base, records = resource
    t.require(resource, mask, ins, "a buffer")
    offset = np.zeros(1, np.uint64)
    for step in steps:
        t.require(step, mask, ins, "an address")
        offset = offset + step[0].astype(np.uint64)
    first, offsets, limit = (np.broadcast_to(one, group.threads)[threads] for one in (base[0], offset, records[0]))
    wrong = (offsets >= MASKED) & (offsets != MASKED) & (offsets >= limit)
    if wrong.any():
        at = int(wrong.argmax())
        group.report(
            "bad access", f"the offset {int(offsets[at]) - (1 << 32)} of a buffer is negative", ins, int(threads[at])
        )
    return threads, first + offsets, offsets, limit


def fetch_buffer(
    t: Translator, resource: Value, steps: Sequence[Scalar], size: int, width: int, mask: Mask, ins: Instruction
) -> tuple[Array, Array]:
    """Return (threads, rows of bytes); words beyond the end are 0."""
    threads, addresses, offsets, limit = buffer_addresses(t, resource, steps, mask, ins)
    t.group.count_access(threads)  # one instruction, wherever its addresses are
    inside = offsets + np.uint64(size) <= limit
    if inside.all():
        return threads, fetch(t.group, 1, addresses, size, width, threads, ins, counts=False)[0]
    rows = np.zeros((len(threads), size), np.uint8)
    if inside.any():
        rows[inside] = fetch(t.group, 1, addresses[inside], size, width, threads[inside], ins, counts=False)[0]
    for at in range(0, size, width):
        some = ~inside & (offsets + np.uint64(at + width) <= limit)
        if some.any():
            rows[some, at : at + width] = fetch(
                t.group, 1, addresses[some] + np.uint64(at), width, width, threads[some], ins, counts=False
            )[0]
    return threads, rows


def alignment_of(kind: Type) -> int:
    """Return the alignment of a buffer access: that of its elements, at most 4."""
    return min(4, size_of(leaves(kind)[0][1]))


@intrinsic("amdgcn.raw.ptr.buffer.load")
def buffer_load(ins: Instruction, t: Translator) -> Compute:
    def computed(mask: Mask, resource: Value, *steps: Scalar) -> Value:
        threads, rows = fetch_buffer(t, resource, steps[:2], size_of(ins.type), alignment_of(ins.type), mask, ins)
        return loaded(t.group, ins.type, rows, None, threads)

    return computed


@intrinsic("amdgcn.raw.ptr.buffer.store")
def buffer_store(ins: Instruction, t: Translator) -> Compute:
    kind = ins.operands[0][0]
    width = alignment_of(kind)

    def done(mask: Mask, value: Value, resource: Value, *steps: Scalar) -> None:
        threads, addresses, offsets, limit = buffer_addresses(t, resource, steps[:2], mask, ins)
        t.group.count_access(threads)
        inside = offsets + np.uint64(width) <= limit
        if not inside.any():
            return
        rows, missing = stored(t.group, kind, value, threads)
        if missing is not None:
            t.require(value, t.group.mask_of(threads[inside]), ins, "what is stored")
        whole = offsets + np.uint64(rows.shape[1]) <= limit
        if whole.any():
            send(t.group, 1, addresses[whole], rows[whole], width, threads[whole], ins, counts=False)
        for at in range(0, rows.shape[1], width):
            some = ~whole & (offsets + np.uint64(at + width) <= limit)
            if some.any():
                part = rows[some, at : at + width]
                send(t.group, 1, addresses[some] + np.uint64(at), part, width, threads[some], ins, counts=False)

    return done


@intrinsic("amdgcn.ds.read.tr16.b64", "amdgcn.ds.read.tr8.b64", collective=True)
def transposed_read(ins: Instruction, t: Translator) -> Compute:
    """16 lanes read rows of 16 elements, 8 bytes each lane; then lane i has column i."""
    group, width = t.group, 2 if "tr16" in ins.callee else 1
    count = 8 // width  # elements of a lane, and rows

    def transposed(data: Array) -> Array:
        tiles = data.reshape(-1, count, 16, width)
        return np.ascontiguousarray(tiles.swapaxes(1, 2)).reshape(-1, 8)

    def computed(mask: Mask, address: Scalar) -> Value:
        threads = group.indices(mask)
        rows, missing = fetch(group, LDS, addresses_of(t, address, threads, mask, ins), 8, 8, threads, ins)
        if len(threads) % 16:
            raise Unsupported(ins, "in divergent code")
        return loaded(group, ins.type, transposed(rows), None if missing is None else transposed(missing), threads)

    return computed


@intrinsic("amdgcn.raw.ptr.buffer.load.lds", "amdgcn.global.load.lds", "amdgcn.load.to.lds", collective=True)
def copy_to_lds(ins: Instruction, t: Translator) -> Compute:
    """Lane i of a wave copies to the address of the first lane + i * size; the bytes arrive at the wait."""
    group, is_buffer, size = t.group, "buffer" in ins.callee, literal(ins, 2)
    group.counts_accesses = True

    def rows_of(mask: Mask, source: Value, steps: Sequence[Scalar]) -> tuple[Array, Array]:
        if is_buffer:
            return fetch_buffer(t, source, steps[:3], size, 4, mask, ins)
        threads = group.indices(mask)
        more = np.broadcast_to(steps[0][0], group.threads)[threads].astype(np.uint64)
        return threads, fetch(group, 1, addresses_of(t, source, threads, mask, ins) + more, size, 4, threads, ins)[0]

    def done(mask: Mask, source: Value, target: Scalar, _: Scalar, *steps: Scalar) -> None:
        threads, rows = rows_of(mask, source, steps)
        start = addresses_of(t, target, threads, mask, ins)
        for wave in np.unique(threads // group.wave).tolist():
            mine = threads // group.wave == wave
            if (start[mine] != start[mine][0]).any():
                group.report(
                    "divergent copy", "lanes of a wave copy to different addresses in LDS", ins, wave * group.wave
                )
            lanes = threads[mine]
            targets = start[mine][0] + (lanes % group.wave * size).astype(np.uint64)
            arrive = arrival(group, targets, rows[mine], lanes, ins)
            group.lds.start_copy(wave, targets, size, arrive)

    return done


def arrival(group: "Workgroup", addresses: Array, rows: Array, threads: Array, ins: Instruction) -> Callable[[], None]:
    return lambda: group.lds.write(addresses, rows, threads, 4, ins)


# waits and fences


def counters(arch: str, encoded: int) -> tuple[int, int]:
    """Return (vmcnt, lgkmcnt) of the operand of a waitcnt."""
    major = int(arch[3:-2])
    if major >= 11:
        return encoded >> 10 & 63, encoded >> 4 & 63
    return encoded & 15 | (encoded >> 14 & 3) << 4, encoded >> 8 & (63 if major == 10 else 15)


def waiting(group: "Workgroup", copies: int | None, lds: int | None) -> Compute:
    """Wait until at most that many accesses are outstanding; None: no wait for them."""

    def done(mask: Mask, *_: Scalar) -> None:
        waves = np.unique(group.indices(mask) // group.wave)
        if copies is not None:
            group.lds.wait_for_copies(waves, copies)
        if lds == 0:
            group.lds.wait(waves)

    return done


@intrinsic("amdgcn.s.waitcnt")
def wait(ins: Instruction, t: Translator) -> Compute:
    copies, lds = counters(t.group.arch, literal(ins, 0) & 0xFFFF)
    return waiting(t.group, None if copies == 63 else copies, lds)


@intrinsic("amdgcn.s.wait.dscnt", "amdgcn.s.wait.loadcnt", "amdgcn.s.wait.asynccnt", "amdgcn.wait.asyncmark")
def wait_for(ins: Instruction, t: Translator) -> Compute:
    count = literal(ins, 0)
    return waiting(t.group, None, count) if "dscnt" in ins.callee else waiting(t.group, count, None)


@rule("fence")
def fence(ins: Instruction, t: Translator) -> Compute:
    wide = not ins.extra["scope"].startswith(("singlethread", "wavefront"))
    return waiting(t.group, None, 0) if RELEASES.intersection(ins.extra["ordering"]) and wide else nothing


@intrinsic(
    "amdgcn.sched.barrier", "amdgcn.sched.group.barrier", "amdgcn.iglp.opt", "amdgcn.s.setprio", "amdgcn.s.sleep",
    "amdgcn.wave.barrier", "lifetime.start", "lifetime.end", "experimental.noalias.scope.decl", "amdgcn.s.nop",
    "sideeffect", "donothing", "dbg.value", "dbg.declare", "dbg.label", "prefetch", "amdgcn.s.wait.storecnt",
    "amdgcn.s.wait.kmcnt", "amdgcn.s.barrier.signal", "invariant.start", "invariant.end",
)  # fmt: skip
def no_effect(ins: Instruction, t: Translator) -> Compute:
    return nothing


@intrinsic("assume")
def assume(ins: Instruction, t: Translator) -> Compute:
    def done(mask: Mask, condition: Scalar, *_: Value) -> None:
        wrong = t.group.active(mask) & ~t.everywhere(condition)[0]
        if wrong.any():
            t.group.report("broken assumption", "what the compiler may assume is false", ins, int(wrong.argmax()))

    return done


@rule("asm")
def assembly(ins: Instruction, t: Translator) -> Compute:
    """A wait, or assembly without instructions, which returns its operands."""
    code = ins.extra["callee"]
    if not isinstance(code, Assembly):
        raise Unsupported(ins)
    found = {name: int(count) for name, count in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", code.text)}
    if "s_waitcnt" in code.text:
        return waiting(t.group, found.get("vmcnt"), found.get("lgkmcnt"))
    if code.text.strip() and not re.fullmatch(r"(;.*|\s|\\0A)*", code.text):
        raise Unsupported(ins, "assembly")
    return nothing if ins.result is None else lambda mask, value: value


@intrinsic("trap", "debugtrap", "ubsantrap")
def trap(ins: Instruction, t: Translator) -> Compute:
    def done(mask: Mask, *_: Scalar) -> None:
        raise Trapped("a trap")

    return done


# the indices of a thread


@intrinsic(*(f"amdgcn.{what}.id.{axis}" for what in ("workgroup", "workitem", "cluster") for axis in "xyz"))
def identity(ins: Instruction, t: Translator) -> Compute:
    axis, group = "xyz".index(ins.callee[-1]), t.group
    if "workitem" in ins.callee:
        return lambda mask: (group.items[axis], None)
    return lambda mask: (np.array([group.index[axis]], np.uint32), None)


@intrinsic("amdgcn.implicitarg.ptr", "amdgcn.dispatch.ptr", "amdgcn.wavefrontsize", "amdgcn.lds.kernel.id")
def launch_fact(ins: Instruction, t: Translator) -> Compute:
    group, name = t.group, ins.callee.removeprefix("llvm.amdgcn.")
    facts: dict[str, Callable[[], int]] = {
        "implicitarg.ptr": lambda: group.hidden,
        "dispatch.ptr": lambda: group.packet,
        "wavefrontsize": lambda: group.wave,
        "lds.kernel.id": lambda: 0,
    }
    return lambda mask: (np.array([facts[name]()], dtype_of(ins.type)), None)


@intrinsic("amdgcn.s.memtime", "amdgcn.s.memrealtime", "readcyclecounter", "readsteadycounter", "amdgcn.s.getreg")
def clock(ins: Instruction, t: Translator) -> Compute:
    dtype = dtype_of(ins.type) if isinstance(ins.type, Int) else np.uint64
    return lambda mask, *_: (np.array([t.group.executed], dtype), None)


@intrinsic("amdgcn.s.setreg")
def mode(ins: Instruction, t: Translator) -> Compute:
    """Write the mode register: FP16_OVFL (bit 23) makes conversions to 8 bits saturate."""
    register = literal(ins, 0)
    if register >> 6 & 31 != 23 or register & 63 != 1:
        return nothing

    def done(mask: Mask, _: Scalar, value: Scalar) -> None:
        t.group.saturates = bool(value[0][0])

    return done


INTEGERS: dict[str, Any] = {
    "xchg": lambda old, new: new, "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "nand": lambda old, new: ~(old & new), "umax": np.maximum, "umin": np.minimum,
    "uinc_wrap": lambda old, new: np.where(old >= new, 0, old + 1).astype(old.dtype), "udec_wrap": lambda old,
    new: np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype), "usub_sat": lambda old,
    new: np.where(old > new, old - new, 0).astype(old.dtype),
}  # fmt: skip
FLOATS: dict[str, Any] = {
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmaximum": np.maximum,
    "fminimum": np.minimum,
    "xchg": INTEGERS["xchg"],
}
Change = Callable[..., Array]  # of what is there and of the values of each thread
BUFFER_NAMES = {"swap": "xchg", "smax": "max", "smin": "min", "inc": "uinc_wrap", "dec": "udec_wrap"}


def combiner(name: str, kind: Type, ins: Instruction) -> Change:
    """Return the function of an atomic operation on one element."""
    if isinstance(kind, Float):
        operations, default = Arithmetic.of(dtype_of(kind)), quiet_nan(dtype_of(kind))
        change = FLOATS.get(name)
        if name in ("fadd", "fsub"):
            change = lambda old, new: operations.add(old, new if name == "fadd" else -new)  # noqa: E731
        if name == "xchg" or change is None:
            found = change
        else:
            found = lambda old, new: operations.propagate(change(old, new), (old, new), default)  # noqa: E731
    elif name in ("max", "min"):
        width = kind.bits if isinstance(kind, Int) else 64
        choose: Any = np.maximum if name == "max" else np.minimum
        return lambda old, new: choose(signed(old, width), signed(new, width)).view(old.dtype)
    else:
        found = INTEGERS.get(name)
    if found is None:
        raise Unsupported(ins, name)
    return found


def update(
    t: Translator, space: int, addresses: Array, threads: Array, kind: Type, ins: Instruction, change: Change,
    values: Sequence[Value]
) -> Value:  # fmt: skip
    """Each thread replaces the value at its address by `change` of it and of its own `values`; return the old
    values."""
    group, size = t.group, size_of(kind)
    before = np.zeros((len(addresses), size), np.uint8)
    missing = np.zeros((len(addresses), size), np.uint8)
    for some in conflict_free_rounds(addresses):
        rows, undefined = fetch(group, space, addresses[some], size, size, threads[some], ins, True)
        before[some] = rows
        if undefined is not None:
            missing[some] = undefined
        old = [rows[:, at : at + size_of(leaf)].copy().view(dtype_of(leaf))[:, 0] for at, leaf in leaves(kind)]
        own = [[np.broadcast_to(data, group.threads)[threads[some]] for data, _ in flatten(one)] for one in values]
        new = [change(*leaf) for leaf in zip(old, *own, strict=True)]
        columns = [bits(one, leaf)[:, None].view(np.uint8) for one, (_, leaf) in zip(new, leaves(kind), strict=True)]
        send(group, space, addresses[some], np.concatenate(columns, axis=1), size, threads[some], ins, undefined, True)
    return loaded(group, kind, before, missing if missing.any() else None, threads)


def exchanged(there: Array, wanted: Array, value: Array) -> Array:
    return np.where(there == wanted, value, there).astype(there.dtype)


@rule("atomicrmw")
def read_modify_write(ins: Instruction, t: Translator) -> Compute:
    return access(ins, t, ins.type, combiner(ins.extra["operation"], leaves(ins.type)[0][1], ins))


def access(ins: Instruction, t: Translator, kind: Type, change: Change) -> Compute:
    pointer = ins.operands[0][0]
    assert isinstance(pointer, Pointer)

    def computed(mask: Mask, address: Scalar, *values: Value) -> Value:
        threads = t.group.indices(mask)
        addresses = addresses_of(t, address, threads, mask, ins)
        t.require(list(values), mask, ins, "an operand of an atomic access")
        return update(t, pointer.space, addresses, threads, kind, ins, change, values)

    return computed


@rule("cmpxchg")
def compare_exchange(ins: Instruction, t: Translator) -> Compute:
    exchange = access(ins, t, ins.operands[1][0], exchanged)

    def computed(mask: Mask, address: Scalar, expected: Scalar, new: Scalar) -> Value:
        old = exchange(mask, address, expected, new)
        return [old, (old[0] == expected[0], old[1])]

    return computed


@intrinsic("amdgcn.raw.ptr.buffer.atomic")
def buffer_atomic(ins: Instruction, t: Translator) -> Compute:
    kind = ins.operands[0][0]
    name = ins.callee.removeprefix("llvm.amdgcn.raw.ptr.buffer.atomic.").split(".")[0]
    count, change = 2, exchanged
    if name != "cmpswap":
        count, change = 1, combiner(BUFFER_NAMES.get(name, name), leaves(kind)[0][1], ins)

    def computed(mask: Mask, *operands: Value) -> Value:
        values, resource, steps = operands[:count], operands[count], operands[count + 1 : count + 3]
        threads, addresses, offsets, limit = buffer_addresses(t, resource, steps, mask, ins)
        inside = offsets + np.uint64(size_of(kind)) <= limit
        t.require(list(values), t.group.mask_of(threads[inside]), ins, "an operand of an atomic access")
        return update(
            t, 1, addresses[inside], threads[inside], kind, ins, change, values[::-1]
        )  # what is expected is last

    return computed
