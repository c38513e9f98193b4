"""TTGIR to LLVM text for AMD GPUs: the interface of `targets/gpu/device.py`, as LLVM instructions and intrinsics.

LLVM implements the memory orders, scopes and waits of these GPUs, so loads, stores, atomics and fences are plain LLVM.
The rest are intrinsics; LLVM aborts on one that the architecture lacks, so each is guarded by its feature.

`printer` lowers `tl.device_print`: the HIP runtime provides a buffer, and prints its contents after the kernel.

    !llvm.printf.fmts = !{!3}
    !3 = !{!"1:2:4:8:x[%u] is %f\\5Cn"}      the id of the format, the count and the bytes of its values, C's format

The address of the buffer is a hidden argument of a kernel whose metadata have such formats (LLVM puts them there); no
device library is involved. The buffer starts with two 32-bit words, the bytes in use and the total size; a record is
the id of its format and the values. A record that does not fit is dropped.

Fast f32 functions of one or two instructions; the others are our own (`targets/llvm/math`):

    math.exp2 : f32         v_exp_f32                        1 ulp, denormals are 0
    math.exp : f32          exp2 of x * log2(e), LLVM's      keeps denormals
    math.rsqrt : f32        v_rsq_f32                        1 ulp

Scheduling ops: wave priorities, barriers for LLVM's scheduler, barriers of some waves.

    rocdl.s.setprio 1               call void @llvm.amdgcn.s.setprio(i16 1)
    rocdl.sched.barrier 0           call void @llvm.amdgcn.sched.barrier(i32 0)
    amdg.instruction_sched_hint     call void @llvm.amdgcn.iglp.opt(i32 2)
    amdg.cond_barrier %p            br i1 %p, label %wait, label %after       wait: call void @llvm.amdgcn.s.barrier()
"""

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir import amdg, tt
from tilework.ir.enums import CacheModifier, MemSemantic, MemSyncScope, RMWOp
from tilework.ir.types import int_property
from tilework.layouts.linear import LinearLayout
from tilework.target import Target
from tilework.targets.amd.arch import LDS_COPIES, AmdFeature
from tilework.targets.amd.lower import AMD, buffer_access, lowers
from tilework.targets.amd.lower.buffer_access import GLOBAL, BufferAddress
from tilework.targets.gpu import codegen, foreign
from tilework.targets.gpu.device import Access, Atomic, Emission, Function, Gpu, Warps
from tilework.targets.gpu.lowering import SHARED_SPACE, Lowering, Registers
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import escaped
from tilework.targets.llvm.rules import CHANGES, load_rules, text_of
from tilework.targets.llvm.types import (
    Type,
    f16,
    f32,
    f64,
    i1,
    i16,
    i32,
    i64,
    integer,
    pointer,
    ptr,
    struct,
    vector,
    void,
)
from tilework.targets.llvm.values import Value, constant

if TYPE_CHECKING:
    from tilework.targets.amd.lower.transposed_read import TransposedRead

FORMATS = "llvm.printf.fmts"
BUFFER_OFFSET = 72  # in the hidden arguments of code object version 5
FORM = re.compile(r"%%|%p|%\d*ll")
HEADER = 8
ID_BYTES = 4


def printer(b: Builder, hidden: Value) -> Callable[[str, Sequence[Value]], None]:
    """Return a function that emits printf; `hidden` is the address of the hidden arguments."""
    buffer = b.load(pointer(1), b.gep(hidden, BUFFER_OFFSET), align=8)

    size = b.load(i32, b.gep(buffer, 4), align=4)

    def show(text: str, values: Sequence[Value]) -> None:
        sizes = [value.type.bits // 8 for value in values]
        *offsets, total = accumulate(sizes, initial=ID_BYTES)

        def fits(taken: Value) -> Value:
            return b.icmp("ule", b.add(taken, HEADER + total), size)

        def take(taken: Value) -> tuple[Value, Value]:
            def exchange() -> Sequence[Value]:
                return b.compare_exchange(buffer, taken, b.add(taken, total), scope="agent", align=4)

            following, is_over = b.if_else(fits(taken), exchange, lambda: [taken, constant(i1, 1)])
            return following, is_over

        offset_in_buffer = b.until(b.load(i32, buffer, align=4, ordering="monotonic", scope="agent"), take)
        with b.if_(fits(offset_in_buffer)):
            record = b.gep(b.gep(buffer, offset_in_buffer), HEADER)
            b.store(constant(i32, format_id(b, text, sizes)), record, align=4)
            for value, offset in zip(values, offsets, strict=True):
                b.store(value, b.gep(record, offset), align=4)

    return show


def format_id(b: Builder, text: str, sizes: Sequence[int]) -> int:
    """Return the id of a format.

    To the runtime a colon ends a field, and ``%li`` is ``%lli``; it does not know ``%p``.
    """
    c_text = FORM.sub(lambda found: {"%p": "%#lx"}.get(found[0], found[0].replace("ll", "l")), text)
    format = ":".join([str(len(sizes)), *map(str, sizes), c_text.replace(":", r"\72").replace("\n", r"\n")])
    formats = b.module.lists.setdefault(FORMATS, {})
    b.module.list_node(FORMATS, format, f'!{{!"{len(formats) + 1}:{escaped(format)}"}}')
    return list(formats).index(format) + 1


def instruction(low: Lowering, name: str, *args: Value) -> Value:
    return low.builder.call(f"llvm.amdgcn.{name}.f32", f32, args, is_pure=True)


def fast_exp(low: Lowering, x: Value) -> Value:
    return low.builder.unary("exp2", low.builder.fmul(x, math.log2(math.e)))


def fast_quotient(low: Lowering, x: Value, y: Value) -> Value:
    return low.builder.fmul(x, instruction(low, "rcp", y))


def intrinsic(b: Builder, x: Value, name: str) -> Value:
    return b.call(f"llvm.amdgcn.{name}.f32", f32, [x], is_pure=True)


APPROXIMATIONS: dict[str, Callable[..., Value]] = {
    "exp2": partial(intrinsic, name="exp2"),
    "log2": partial(intrinsic, name="log"),
    "reciprocal": partial(intrinsic, name="rcp"),
    "rsqrt": partial(intrinsic, name="rsq"),
}
FAST: dict[str, Function] = {
    "exp": fast_exp,
    "exp2": lambda low, x: instruction(low, "exp2", x),
    "sqrt": lambda low, x: instruction(low, "sqrt", x),
    "rsqrt": lambda low, x: instruction(low, "rsq", x),
}
LIBRARY: dict[str, Function] = {
    "__nv_fast_fdividef": fast_quotient,
    "__nv_fast_expf": lambda low, x: instruction(low, "exp2", low.builder.fmul(x, math.log2(math.e))),
}


AXES = "xyz"
REGISTER_BITS = 32
CONSTANT_SPACE = 4
IMPLICIT_ARGUMENTS = pointer(CONSTANT_SPACE)
SCOPES = {MemSyncScope.GPU: "agent", MemSyncScope.CTA: "workgroup", MemSyncScope.SYS: ""}
ORDERS = {
    MemSemantic.RELAXED: "monotonic",
    MemSemantic.ACQUIRE: "acquire",
    MemSemantic.RELEASE: "release",
    MemSemantic.ACQ_REL: "acq_rel",
}
BITWISE = (RMWOp.AND, RMWOp.OR, RMWOp.XOR)  # of integers only
MOST_UNDER_WAY = 63
LDS_WAIT = 0xC07F  # the operand of s_waitcnt that waits for LDS alone
STREAMED = (CacheModifier.CG, CacheModifier.CS)  # read or written once
PAST_CACHES = (CacheModifier.CV, CacheModifier.WT)
QUAD = {1: 0xB1, 2: 0x4E}  # quad permutations, by the bit in which lane ids differ
# shifts within 16 lanes, and the bank masks of each
ROW = {4: ((0x114, 0xA), (0x104, 0x5)), 8: ((0x118, 0xC), (0x108, 0x3))}
EXCHANGES = {16: AmdFeature.SWAP_16, 32: AmdFeature.SWAP_32}  # by the bit in which lane ids differ
SWIZZLE_XOR = 10  # the shift of the xor mask of `ds.swizzle`; its low five bits are an and mask
UNUSED = (
    *("dispatch-ptr", "queue-ptr", "dispatch-id", "hostcall-ptr", "heap-ptr", "default-queue", "completion-action"),
    *("multigrid-sync-arg", "lds-kernel-id", "workitem-id-y", "workitem-id-z", "flat-scratch-init"),
)  # implicit kernel arguments that our kernels do not use


class AmdGpu(Gpu):
    """``hip:gfx942``."""

    rules = AMD
    kernel_convention = "amdgpu_kernel"
    argument_space = 1
    native_floats = frozenset({f16, f32, f64})
    pipelined_ops = (*Gpu.pipelined_ops, "amdg.")
    approximations = APPROXIMATIONS
    fast_functions = FAST
    functions = LIBRARY

    def __init__(self, target: Target, options: Any = None) -> None:
        super().__init__(target)
        self.waves = getattr(options, "waves_per_eu", 0)
        codes = "vsr" if "mfma0" in target.features else "vsra"  # vector or scalar registers, either, accumulators
        self.assembly_types = dict.fromkeys(codes, i32)
        self.parameter_word = "inreg" if AmdFeature.WAVE_PRELOAD in target.features else ""
        self.hints = getattr(options, "schedule_hint", "none").split(",")
        self.user_attributes = getattr(options, "llvm_fn_attrs", ())
        self.flushes_denormals = getattr(options, "allow_flush_denorm", False) and not options.reproducible

    # The kernel

    def kernel_attributes(self, threads: int, blocks: int, registers: int | None) -> Sequence[str]:
        denormals = "preserve-sign" if self.flushes_denormals else "ieee"
        found = [
            f'"target-cpu"="{self.target.arch}"',
            f'"amdgpu-cluster-dims"="{blocks},1,1"',
            f'"amdgpu-flat-work-group-size"="1,{threads}"',
            '"uniform-work-group-size"="true"',
            f'"denormal-fp-math-f32"="{denormals},{denormals}"',
            *(f'"amdgpu-no-{name}"' for name in UNUSED),
        ]
        if self.waves:
            found.append(f'"amdgpu-waves-per-eu"="{self.waves}, {self.waves}"')
        if "memory-bound-attention" in self.hints:
            found.append('"amdgpu-sched-strategy"="iterative-ilp"')
        own = {name for name, _ in self.user_attributes}
        kept = [text for text in found if text.split('"')[1] not in own]
        return [
            *kept,
            *(f'"{name}"' + (f'="{value}"' if value is not None else "") for name, value in self.user_attributes),
        ]

    def thread_id(self, b: Builder) -> Value:
        return self.intrinsic(b, "workitem.id.x", i32)

    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        return self.intrinsic(b, f"workgroup.id.{AXES[axis]}", i32)

    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        """Load the size of the grid from the implicit arguments."""
        counts = self.intrinsic(b, "implicitarg.ptr", IMPLICIT_ARGUMENTS)
        return b.load(i32, b.gep(counts, 4 * axis), align=4)

    def intrinsic(self, b: Builder, name: str, type: Type, *args: Value) -> Value:
        """Call an intrinsic that depends only on its arguments and the thread."""
        return b.call(f"llvm.amdgcn.{name}", type, args, is_pure=True)

    # Synchronisation and exchange

    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        """Emit a barrier; it waits for global memory accesses, and copies to LDS, only with `all_memory`."""
        assert warps.are_all, "all waves of a workgroup take part in a barrier"
        if pointer(SHARED_SPACE) in b.module.load_notes and not all_memory:  # a fence of LDS would wait for copies
            b.call("llvm.amdgcn.s.waitcnt", void, [constant(i32, LDS_WAIT)])
            b.fence("acq_rel", "wavefront")
            b.call("llvm.amdgcn.s.barrier", void, [], attributes="convergent")
            b.fence("acq_rel", "wavefront")
            return
        local = b.module.node('!{!"amdgpu-synchronize-as", !"local"}')
        which = "" if all_memory else f", !mmra {local}"
        b.line(f'fence syncscope("workgroup") release{which}')
        b.call("llvm.amdgcn.s.barrier", void, [], attributes="convergent")
        b.line(f'fence syncscope("workgroup") acquire{which}')

    def warp_barrier(self, b: Builder) -> None:
        """Keep the compiler from reordering; the lanes of a wave run in lockstep."""
        b.fence("acq_rel", "wavefront")
        b.call("llvm.amdgcn.wave.barrier", void, [], attributes="convergent")

    def shuffle(self, b: Builder, value: Value, lane: Value) -> Value:
        return b.call("llvm.amdgcn.ds.bpermute", i32, [b.shl(lane, 2), value], attributes="convergent")

    def uniform(self, b: Builder, value: Value) -> Value:
        return b.call("llvm.amdgcn.readfirstlane.i32", i32, [value], attributes="convergent")

    def shuffle_xor(self, b: Builder, value: Value, mask: int) -> Value:
        """Use a DPP move within a row of 16 lanes, a swap between rows, else `ds.swizzle` or `ds.bpermute`."""
        if self.has(AmdFeature.DPP_MOVES) and mask in QUAD:
            return self.moved(b, value, value, QUAD[mask], 0xF)
        if self.has(AmdFeature.DPP_MOVES) and mask in ROW:
            found = value
            for control, banks in ROW[mask]:
                found = self.moved(b, found, value, control, banks)
            return found
        if mask == 16 and self.has(AmdFeature.ROW_SWAP):
            lanes = [constant(i32, 0x76543210), constant(i32, 0xFEDCBA98), constant(i1, 1), constant(i1, 0)]
            return b.call("llvm.amdgcn.permlanex16.i32", i32, [value, value, *lanes], attributes="convergent")
        if self.exchanges(mask):
            even, odd = self.exchange(b, value, value, mask)
            return b.select(b.icmp("ne", b.and_(self.thread_id(b), mask), 0), even, odd)
        if mask < 32:
            pattern = constant(i32, mask << SWIZZLE_XOR | 0x1F)
            return b.call("llvm.amdgcn.ds.swizzle", i32, [value, pattern], attributes="convergent")
        return super().shuffle_xor(b, value, mask)

    def exchanges(self, mask: int) -> bool:
        return mask in EXCHANGES and self.has(EXCHANGES[mask])

    def exchange(self, b: Builder, first: Value, second: Value, mask: int) -> Sequence[Value]:
        args = [first, second, constant(i1, 0), constant(i1, 0)]
        made = b.call(f"llvm.amdgcn.{EXCHANGES[mask]}", struct(i32, i32), args, attributes="convergent")
        return [b.extract_value(made, index) for index in range(2)]

    def moved(self, b: Builder, old: Value, value: Value, control: int, banks: int) -> Value:
        """Return the value of another lane of the row in the lanes of these banks, and `old` in the others."""
        settings = [constant(i32, control), constant(i32, 0xF), constant(i32, banks), constant(i1, 0)]
        return b.call("llvm.amdgcn.update.dpp.i32", i32, [old, value, *settings], attributes="convergent")

    # Global memory

    def load(self, b: Builder, at: Access, other: Sequence[Value] | None) -> Sequence[Value]:
        if isinstance(at.address, BufferAddress):
            return buffer_access.load(b, self.target, at.address, at, other)
        type, count, size = at.shape

        def read() -> list[Value]:
            held = type if size == type.bits else integer(size)
            whole = vector(held, count) if count > 1 else held
            found = b.effect(f"load {access_text(b, at, whole.text, STREAMED)}", whole)
            return [b.zext(part, type) for part in b.lanes(found)] if held is not type else b.lanes(found)

        def missing() -> list[Value]:
            return list(other) if other else [constant(type, 0)] * count

        return read() if at.predicate is None else b.if_else(at.predicate, read, missing)

    def store(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        if isinstance(at.address, BufferAddress):
            return buffer_access.store(b, self.target, at.address, at, given)

        def write() -> None:
            parts = [b.trunc(part, integer(at.shape.size)) for part in given]
            b.line(f"store {access_text(b, at, b.joined(parts).typed, (CacheModifier.CS,))}")

        where(b, at.predicate, write)

    def store_shared(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        self.store(b, at, given)

    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        def change() -> None:
            b.atomic_rmw(CHANGES[kind], address, value, ordering="monotonic", scope="workgroup")

        where(b, may, change)

    def matrix_form(self, offsets: LinearLayout, bits: int, limit: int) -> "TransposedRead | None":
        if not self.has(AmdFeature.TRANSPOSED_READ):
            return None
        from tilework.targets.amd.lower.transposed_read import transposed_read  # lazily: many kernels have no buffers

        return transposed_read(offsets, bits, limit)

    # Copies to LDS

    def wait_copies(self, b: Builder, pending: int) -> None:
        """Wait until at most `pending` of this wave's accesses to global memory are in flight."""
        if any(map(self.has, LDS_COPIES.values())):
            count = min(pending, MOST_UNDER_WAY)
            b.call("llvm.amdgcn.s.waitcnt", void, [constant(i32, count & 15 | count >> 4 << 14 | 0x3FF0)])

    # Atomics

    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        return held.bits >= (16 if kind in (RMWOp.FADD, None) else 32)  # LLVM expands 16 bits to a loop over 32 bits

    def atomic_width(self, kind: RMWOp, held: Type, most: int) -> int:
        """Return 2 for additions of 16-bit floats, which are done in pairs."""
        return 2 if kind is RMWOp.FADD and held.bits == 16 and most > 1 else 1

    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        b, scope = low.builder, SCOPES[at.scope]
        held, target = values[0].type, at.address
        value = b.joined(values)
        value = b.bitcast(value, integer(held.bits)) if kind in BITWISE else value
        if isinstance(target, BufferAddress) and buffer_access.has_rmw(self.target, kind, value.type):
            found = [buffer_access.rmw(b, target, at, kind, value, scope)]
        else:
            address = global_address(b, target)
            found = self.where(
                b, at, value.type,
                lambda b: b.atomic_rmw(CHANGES[kind], address, value, ordering=ORDERS[at.sem], scope=scope),
            )  # fmt: skip
        return b.lanes(found[0]) if len(values) > 1 else [b.bitcast(found[0], held)]

    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        failure = "acquire" if at.sem in (MemSemantic.ACQUIRE, MemSemantic.ACQ_REL) else "monotonic"
        if isinstance(at.address, BufferAddress):
            return [buffer_access.cas(low.builder, at.address, at, compared, value, SCOPES[at.scope])]

        def exchange(b: Builder) -> Value:
            values = [b.bitcast(x, integer(x.type.bits)) for x in (compared, value)]
            order, scope = ORDERS[at.sem], SCOPES[at.scope]
            found, _ = b.compare_exchange(
                global_address(b, at.address), *values, ordering=order, failure=failure, scope=scope
            )
            return b.bitcast(found, value.type)

        return self.where(low.builder, at, value.type, exchange)

    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        order = "acquire" if at.sem in (MemSemantic.ACQUIRE, MemSemantic.ACQ_REL) else "monotonic"

        def read(b: Builder) -> Value:
            found = b.load(
                integer(held.bits),
                global_address(b, at.address),
                align=held.bits // 8,
                ordering=order,
                scope=SCOPES[at.scope],
            )
            return b.bitcast(found, held)

        return self.where(low.builder, at, held, read)

    def where(self, b: Builder, at: Atomic, type: Type, change: Callable[[Builder], Value]) -> Sequence[Value]:
        """Emit an access where the mask is set, and return the old value, or 0."""
        if at.may is None:
            return [change(b)]
        return b.if_else(at.may, lambda: [change(b)], lambda: [constant(type, 0)])

    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        b.fence("acq_rel", SCOPES[scope])

    # Assembly, bytes and messages

    def assembly_type(self, code: str, type: Type) -> Type:
        """Return the operand type; wide values take several registers."""
        return type if type.bits > REGISTER_BITS and not type.is_vector else super().assembly_type(code, type)

    def choose_bytes(self, b: Builder, low: Value, high: Value, selector: int) -> Value:
        """Permute bytes; each selector of the instruction is a byte."""
        spread = sum((selector >> 4 * index & 7) << 8 * index for index in range(4))
        return self.intrinsic(b, "perm", i32, high, low, constant(i32, spread))

    def printer(self, b: Builder) -> Callable[[str, Sequence[Value]], None]:
        return printer(b, self.intrinsic(b, "implicitarg.ptr", IMPLICIT_ARGUMENTS))

    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        """Print the message in one lane, and trap, which the driver reports."""
        text = f"device assertion failed: '{message}', in {function} at {file}:{line}\n"
        thread = self.thread_id(b)
        first = b.call("llvm.amdgcn.readfirstlane.i32", i32, [thread], attributes="convergent")
        with b.if_(b.icmp("eq", thread, first)):
            self.printer(b)(text.replace("%", "%%"), [])
        b.trap()


def where(b: Builder, predicate: Value | None, do: Callable[[], None]) -> None:
    """Emit code where the predicate holds, or unconditionally without one."""
    with b.if_(predicate if predicate is not None else constant(i1, 1)):
        do()


def access_text(b: Builder, at: Access, what: str, streamed: Sequence[CacheModifier]) -> str:
    """Return the operands of a load or store: ``volatile i32, ptr %p, align 4, !nontemporal !7``."""
    is_volatile = at.hints.is_volatile or at.hints.cache in PAST_CACHES
    once = f", !nontemporal {b.module.node('!{i32 1}')}" if at.hints.cache in streamed else ""
    align = at.shape.size * at.shape.count // 8
    address = global_address(b, at.address)
    return f"{'volatile ' if is_volatile else ''}{what}, {address.typed}, align {align}{once}"


def global_address(b: Builder, address: Value | BufferAddress) -> Value:
    """Return an address in the global address space, where accesses need no test of the aperture."""
    at = address.plain() if isinstance(address, BufferAddress) else address
    return b.addrspacecast(at, GLOBAL) if at.type is ptr else at


READS_CLOCK = ("s_memrealtime $0", "s_sendmsg_rtn_b64 $0, sendmsg(MSG_RTN_GET_REALTIME)")


@lowers(tt.ElementwiseInlineAsmOp, overrides=True)
def lower_clock_asm(low: Lowering, op: Operation) -> list[Registers]:
    """Lower assembly that reads the clock (`tl.extra.hip.memrealtime`) to an intrinsic, without an assembler."""
    first, *others = text_of(op, "asm_string").strip().splitlines()
    if first in READS_CLOCK and all(line.strip().startswith(("s_waitcnt", "s_wait_kmcnt")) for line in others):
        return [(low.builder.call("llvm.readsteadycounter", i64, []),)]
    return foreign.lower_inline_asm(low, op)


def hint(low: Lowering, name: str, *args: Value) -> None:
    low.builder.call(f"llvm.amdgcn.{name}", void, args, attributes="convergent")


@lowers(amdg.SetPrioOp, amdg.SchedBarrierOp)
def lower_setting(low: Lowering, op: Operation) -> None:
    is_priority = type(op) is amdg.SetPrioOp
    setting = constant(i16, int_property(op, "priority")) if is_priority else constant(i32, int_property(op, "mask"))
    hint(low, "s.setprio" if is_priority else "sched.barrier", setting)


@lowers(amdg.SchedGroupBarrierOp)
def lower_group(low: Lowering, op: Operation) -> None:
    numbers = (constant(i32, int_property(op, name)) for name in ("mask", "size", "groupId"))
    hint(low, "sched.group.barrier", *numbers)


@lowers(amdg.WaveBarrierOp)
def lower_wave_barrier(low: Lowering, op: Operation) -> None:
    low.gpu.barrier(low.builder, low.warps)


@lowers(amdg.InstructionSchedHintOp)
def lower_hint(low: Lowering, op: Operation) -> None:
    """Emit a hint; the variants are numbered like LLVM's strategies."""
    if variant := int_property(op, "variant"):
        hint(low, "sched.barrier", constant(i32, 0))
        hint(low, "iglp.opt", constant(i32, variant))


@lowers(amdg.CondBarrierOp)
def lower_cond_barrier(low: Lowering, op: Operation) -> None:
    """Emit a barrier of some waves, which are one barrier behind the others; it orders no memory."""
    (pred,) = low[op.operands[0]]
    with low.builder.if_(pred):
        hint(low, "s.barrier")


@lowers(amdg.WorkitemIdXOp)
def lower_workitem(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.thread_id(low.builder),)


MORE_RULES = {  # modules, and the prefixes of the op names that they lower
    "tilework.targets.amd.lower.buffer_rules": "amdg.buffer_ amdg.async_wait ttg.async_wait",
    "tilework.targets.amd.lower.float_casts": "arith.extf arith.truncf tt.fp_to_fp",
    "tilework.targets.amd.lower.matrix_rules": "tt.dot amdg.in_thread_transpose",
    "tilework.targets.amd.lower.tensor_rules": "amdg.extract_slice amdg.concat",
}


def emit_module(
    module: ModuleOp, target: Target, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """Return the LLVM text of all functions of a TTGIR module."""
    load_rules(MORE_RULES, module)
    return codegen.emit_module(module, AmdGpu(target, options), fuses=fuses, lines=lines)
