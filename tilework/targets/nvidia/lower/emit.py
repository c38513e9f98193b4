"""TTGIR to LLVM text for NVIDIA GPUs: the interface of `targets/gpu/device.py`, as NVVM intrinsics and inline PTX.

Atomics are inline PTX, because LLVM's own drop ordering and scope on this target:

    @%p atom.global.gpu.acq_rel.add.f32 %old, [%ptr], %value;

Fast f32 functions, and libdevice functions with an instruction:

    math.exp : f32          ex2.approx.f32 of x * log2(e)
    arith.divf : f32        div.full.f32                     2 ulp; tt.precise_divf is div.rn.f32
    __nv_fadd_ru            add.rp.f32

`CopyOrder` emits the waits and fences between TMA copies and accesses of threads (`analysis/global_order.py`,
`analysis/membar.py`).

`lower_rescale` skips the rescaling of an accumulator, as in attention, where every factor in a warp is 1:

    acc = acc * shrink[:, None]              %any = vote.any (shrink0 != 1 or shrink1 != 1)
    acc = tl.dot(p, v, acc)          ==>     br %any, label %then, label %endif      ; around 32 multiplications or more

Row maxima seldom change after the first blocks of keys, and a multiplication by 1 is exact.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilework.analysis.allocation import Allocations
from tilework.analysis.global_order import GlobalOrder, global_order
from tilework.analysis.membar import proxy_fences
from tilework.ir import arith, ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import CacheModifier, MemSemantic, MemSyncScope, RMWOp
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import MAX_REGISTERS
from tilework.ir.types import i32 as i32_type
from tilework.ir.types import int_attr
from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.linear import LinearLayout
from tilework.target import Feature, Target
from tilework.targets.gpu import codegen
from tilework.targets.gpu.arithmetic import lower_native
from tilework.targets.gpu.device import Access, AccessShape, Atomic, Copy, Emission, Function, Gpu, Hints, Warps
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.packing import pack, unpack
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.rules import load_rules
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i8, i16, i32, i64, integer, void
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import NVIDIA, lowers
from tilework.targets.nvidia.lower.inline_ptx import (
    EVICTIONS,
    MAP_BYTES,
    eviction_policy,
    guarded,
    listed,
    nvvm,
    ptx,
    shared_address,
)
from tilework.transforms.ttg.allocate_resources import allocate_warp_groups
from tilework.transforms.ttg.shorten_partitions import SKIP_ONES

if TYPE_CHECKING:
    from tilework.targets.nvidia.lower.matrix_load import Matrices


def show_stores(b: Builder) -> None:
    """Make this thread's writes to shared memory visible to TMA and tensor cores."""
    ptx(b, "fence.proxy.async.shared::cta;", [], [], effect="write")


class CopyOrder:
    """Emits waits and fences before and after ops."""

    def __init__(self, order: GlobalOrder, fences: set[Operation]) -> None:
        self.order = order
        self.fences = fences  # ops by which TMA writes shared memory that threads have used

    def before(self, low: Lowering, op: Operation) -> None:
        """Wait for the writes of TMA, and make those of threads visible to it."""
        b = low.builder
        if op in self.order.waits:
            ptx(b, "cp.async.bulk.wait_group 0;", [], [], effect="write")
            self.show_to_copies(b)
            if self.order.waits[op]:
                low.barrier(all_memory=True)
        elif type(op) is ttg.BarrierOp and op in self.order.fences:
            self.show_to_copies(b)
        if op in self.fences:
            show_stores(b)

    def after(self, low: Lowering, op: Operation) -> None:
        if op in self.order.fences and type(op) is not ttg.BarrierOp:
            self.show_to_copies(low.builder)
            low.barrier(all_memory=True)

    def concerns(self, op: Operation) -> bool:
        """Return True if all threads run a wait or fence at `op`."""
        return op in self.fences or op in self.order.waits or op in self.order.fences

    def show_to_copies(self, b: Builder) -> None:
        """Make global writes that this thread performed or observed visible to later TMA copies."""
        ptx(b, "fence.proxy.async.global;", [], [], effect="write")


# the type prefix of an atomic, where it is not `u`
TYPE_CODES = dict.fromkeys((RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH), "b") | {RMWOp.MAX: "s", RMWOp.MIN: "s"}


def operation(kind: RMWOp, held: Type, width: int) -> str:
    """``add.noftz.v4.f16x2``."""
    if kind is not RMWOp.FADD:
        return f"{kind.keyword.removeprefix('u')}.{TYPE_CODES.get(kind, 'u')}{held.bits}"
    if held is not f16 and held is not bf16:
        return f"add{f'.v{width}' if width > 1 else ''}.f{held.bits}"
    name, pairs = ("f16" if held is f16 else "bf16"), width // 2
    return f"add.noftz{f'.v{pairs}' if pairs > 1 else ''}.{name}{'x2' if pairs else ''}"


def ordering(at: Atomic) -> str:
    """``acq_rel.gpu``."""
    return f"{at.sem.keyword}.{at.scope.keyword}"


class AtomicInstructions(Gpu):
    """The atomics of `NvidiaGpu`."""

    def atomic_width(self, kind: RMWOp, held: Type, most: int) -> int:
        """Return 2 for f16, or up to 16 bytes of floats where there are vector atomics."""
        if kind is not RMWOp.FADD or held.bits > 32:
            return 1
        if self.has(Feature.VECTOR_ATOMICS):
            return most
        return 1 if held is bf16 else min(most, 32 // held.bits)

    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        return held.bits >= (16 if kind is None or kind is RMWOp.FADD else 32)

    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        held = values[0].type
        if kind is RMWOp.FADD and held is bf16 and not self.has(Feature.BF16_ATOMICS):
            return [add_by_exchange(low, at, values[0])]
        change = operation(kind, held, len(values))
        if at.is_of_tile and not at.is_used and at.sem is MemSemantic.RELAXED and kind is not RMWOp.EXCH:
            return access(
                low, at, f"red.global.{at.scope.keyword}.relaxed.{change}", held, [values], len(values), False
            )
        return access(low, at, f"atom.global.{at.scope.keyword}.{at.sem.keyword}.{change}", held, [values], len(values))

    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        line = f"red.shared.{operation(kind, value.type, 1)} [$0], $1;"
        line, inputs = guarded(line, [shared_address(b, address), value], may)
        ptx(b, line, [], inputs, effect="write")

    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        ptx(b, f"fence.acq_rel.{scope.keyword};", [], [], effect="write")

    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        text = f"atom.global.{ordering(at)}.cas.b{value.type.bits}"
        return access(low, at, text, value.type, [[compared], [value]])

    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        return access(low, at, f"ld.global.{ordering(at)}.b{held.bits}", held, [])


def access(
    low: Emission,
    at: Atomic,
    text: str,
    held: Type,
    given: Sequence[Sequence[Value]],
    width: int = 1,
    gives: bool = True,
) -> list[Value]:
    """Emit one instruction on `width` adjacent elements and return the old values, 0 where masked off."""
    register = integer(min(32, held.bits * width)) if held.bits < 32 else held if held.bits == 32 else integer(64)
    count = held.bits * width // register.bits
    is_kept = gives and (at.is_used or count > 1 or held is bf16)  # ptxas 13.0 crashes on atom.add.bf16 into _
    outputs = count if is_kept else 0
    inputs: list[Value] = [at.address]
    spelled = [*([listed(0, outputs) or "_"] if gives else []), f"[${outputs}]"]
    for group in given:
        packed = pack(low, group, register)
        spelled.append(listed(outputs + len(inputs), len(packed)))
        inputs += packed
    line, inputs = guarded(f"{text} {', '.join(spelled)};", inputs, at.may, outputs)
    if at.may is not None:
        line = "".join(f"mov.b{register.bits} ${output}, 0; " for output in range(outputs)) + line
    old = ptx(low.builder, line, [register] * outputs, inputs, effect="write")
    return unpack(low, old, held, width) if outputs else []


def add_by_exchange(low: Emission, at: Atomic, value: Value) -> Value:
    """Add to a bf16 by a compare-and-swap loop, where there is no instruction."""
    b = low.builder

    def change() -> list[Value]:
        (seen,) = ptx(b, f"ld.relaxed.{at.scope.keyword}.global.b16 $0, [$1];", [i16], [at.address], effect="write")

        def exchange(old: Value) -> tuple[Value, Value]:
            new = b.bitcast(b.fadd(b.bitcast(old, bf16), value), i16)
            line = f"atom.{ordering(at)}.global.cas.b16 $0, [$1], $2, $3;"
            (found,) = ptx(b, line, [i16], [at.address, old, new], effect="write")
            return found, b.icmp("eq", found, old)

        return [b.bitcast(b.until(seen, exchange), bf16)]

    return change()[0] if at.may is None else b.if_else(at.may, change, lambda: [constant(bf16, 0.0)])[0]


def approximate(low: Lowering, name: str, *args: Value) -> Value:
    return nvvm(low.builder, f"{name}.approx.ftz.f" if low.gpu.flushes else f"{name}.approx.f", f32, *args)


def fast_exp2(low: Lowering, x: Value) -> Value:
    return nvvm(low.builder, "ex2.approx.ftz.f32", f32, x) if low.gpu.flushes else low.builder.unary("exp2", x)


def power_of_2(low: Lowering, x: Value, y: Value | float) -> Value:
    """Return ``2 ** (x * y)``."""
    return low.builder.unary("exp2", low.builder.fmul(x, y))


def fast_exp(low: Lowering, x: Value) -> Value:
    return power_of_2(low, x, math.log2(math.e))


def fast_log2(low: Lowering, x: Value, factor: float = 1.0) -> Value:
    found = nvvm(low.builder, "lg2.approx.ftz.f", f32, x)
    return found if factor == 1.0 else low.builder.fmul(found, factor)


def fast_sine(low: Lowering, x: Value, name: str = "sin") -> Value:
    return nvvm(low.builder, f"{name}.approx.ftz.f", f32, x)


def fast_quotient(low: Lowering, x: Value, y: Value) -> Value:
    return nvvm(low.builder, "div.approx.f", f32, x, y)


def instruction(low: Lowering, *args: Value, name: str, result: Type | None = None) -> Value:
    """Emit a function that is one instruction, ``add.rp.f32``; the result has the type of the arguments by default."""
    listed = ", ".join(f"${index}" for index in range(len(args) + 1))
    return ptx(low.builder, f"{name} {listed};", [result or args[0].type], args)[0]


def nvvm_of(b: Builder, *args: Value, name: str) -> Value:
    """Emit an intrinsic of f32."""
    return nvvm(b, name, f32, *args)


FAST: dict[str, Function] = {
    "exp": fast_exp,
    "exp2": fast_exp2,
    "sqrt": lambda low, x: approximate(low, "sqrt", x),
    "rsqrt": lambda low, x: approximate(low, "rsqrt", x),
    "divide": lambda low, x, y: nvvm(low.builder, "div.full", f32, x, y),
}
LIBRARY: dict[str, Function] = {  # the first four are accurate, the others fast
    "__nv_llrintf": partial(instruction, name="cvt.rni.s64.f32", result=i64),
    "__nv_llrint": partial(instruction, name="cvt.rni.s64.f64", result=i64),
    "__nv_exp2f": fast_exp2,
    "__nv_rsqrtf": FAST["rsqrt"],
    "__nv_fast_expf": fast_exp,
    "__nv_fast_exp10f": lambda low, x: power_of_2(low, x, math.log2(10)),
    "__nv_fast_log2f": fast_log2,
    "__nv_fast_logf": lambda low, x: fast_log2(low, x, math.log(2)),
    "__nv_fast_log10f": lambda low, x: fast_log2(low, x, math.log10(2)),
    "__nv_fast_powf": lambda low, x, y: power_of_2(low, fast_log2(low, x), y),
    "__nv_fast_sinf": fast_sine,
    "__nv_fast_cosf": lambda low, x: fast_sine(low, x, "cos"),
    "__nv_fast_tanf": lambda low, x: fast_quotient(low, fast_sine(low, x), fast_sine(low, x, "cos")),
    "__nv_fast_tanhf": partial(instruction, name="tanh.approx.f32"),
    "__nv_fast_fdividef": fast_quotient,
}
APPROXIMATIONS: dict[str, Callable[..., Value]] = {
    "exp2": partial(nvvm_of, name="ex2.approx.ftz.f32"),
    "log2": partial(nvvm_of, name="lg2.approx.ftz.f"),
    "reciprocal": partial(nvvm_of, name="rcp.approx.ftz.f"),
    "rsqrt": partial(nvvm_of, name="rsqrt.approx.ftz.f"),
    "sqrt": partial(nvvm_of, name="sqrt.approx.f"),
    "divide": partial(nvvm_of, name="div.full"),
}
MODES = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}  # rounding modes, libdevice to PTX
for wanted, mode in MODES.items():
    for (prefix, kind), name in product({"f": "f32", "d": "f64"}.items(), ("add", "sub", "mul", "div", "rcp", "sqrt")):
        LIBRARY[f"__nv_{prefix}{name}_{wanted}"] = partial(instruction, name=f"{name}.{mode}.{kind}")
    LIBRARY[f"__nv_fmaf_{wanted}"] = partial(instruction, name=f"fma.{mode}.f32")
    LIBRARY[f"__nv_fma_{wanted}"] = partial(instruction, name=f"fma.{mode}.f64")

MOST_PROGRAMS = (2**31 - 1, 2**16 - 1, 2**16 - 1)  # of a grid along each axis
AXES = "xyz"
ALL_LANES = constant(i32, -1)
BY_VALUE = f'byval([{MAP_BYTES} x i8]) align {MAP_BYTES} "nvvm.grid_constant"'
INFINITY = 0x7F800000  # the bits of f32
MOST_PRINTED = 32  # arguments of one call
MOST_REGISTERS = 256  # the limit of `setmaxnreg`


def any_lane(b: Builder, condition: Value) -> Value:
    """Return True if `condition` holds in any lane of the warp."""
    return b.call("llvm.nvvm.vote.any.sync", i1, [ALL_LANES, condition], attributes="convergent")


def by_threes(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """Combine all values in threes: the assembler has three-operand integer maxima."""
    while len(values) > 1:
        values = [reduce(combine, values[at : at + 3]) for at in range(0, len(values), 3)]
    return values[0]


def special(b: Builder, name: str) -> Value:
    """Read a special register that is constant while the kernel runs: ``tid.x``."""
    return b.call(f"llvm.nvvm.read.ptx.sreg.{name}", i32, [], is_pure=True)


def access_kind(shape: AccessShape) -> str:
    """``.v4.b32``."""
    return f"{f'.v{shape.count}' if shape.count > 1 else ''}.b{shape.size}"


def hint_text(hints: Hints, space: str) -> str:
    """``.global.cg`` or ``.global.L1::evict_first``: not both; a cache modifier takes precedence."""
    if hints.is_volatile:
        return f".volatile.{space}"
    if hints.cache is not CacheModifier.NONE:
        return f".{space}.{hints.cache.keyword}"
    return f".{space}.L1::{EVICTIONS[hints.evict]}" if hints.evict in EVICTIONS else f".{space}"


class NvidiaGpu(AtomicInstructions):
    """``cuda:90``."""

    rules = NVIDIA
    kernel_convention = "ptx_kernel"
    line_tables = "DebugDirectivesOnly"
    shared_alignment = 1024
    map_parameter = BY_VALUE
    copy_bytes = (4, 16)
    carried_bit = i32  # ptxas miscompiles predicates that a loop carries and negates
    pipelined_ops = (*Gpu.pipelined_ops, "ttng.")
    exchange_texts = ("@llvm.nvvm.barrier", "@llvm.nvvm.shfl")
    approximations = APPROXIMATIONS
    fast_functions = FAST
    links_libraries = True
    functions = LIBRARY
    assembly_types = {"r": i32, "h": i16, "c": i16, "l": i64, "f": f32, "d": f64, "b": i1}  # noqa: RUF012

    def __init__(self, target: Target, options: Any = None) -> None:
        super().__init__(target)
        self.least_blocks = getattr(options, "minctasm", None)
        self.least_shared = getattr(options, "min_shared_mem", None) or 0
        self.flushes = getattr(options, "enable_reflect_ftz", True)
        self.stores_matrices = self.has(Feature.MATRIX_STORE)
        self.native_floats = frozenset({f16, f32, f64, *([bf16] if self.has(Feature.BF16_ARITHMETIC) else [])})
        self.magnitude_floats = frozenset({f16, f32} if self.has(Feature.MIN_MAGNITUDE) else ())

    # The kernel

    def kernel_attributes(self, threads: int, blocks: int, registers: int | None) -> Sequence[str]:
        found = [f'"nvvm.reqntid"="{threads}"']
        if registers is not None:
            found.append(f'"nvvm.maxnreg"="{registers}"')
        if blocks > 1:
            found.append(f'"nvvm.cluster_dim"="{blocks},1,1"')
        return found if self.least_blocks is None else [*found, f'"nvvm.minctasm"="{self.least_blocks}"']

    def descriptor_parameter(self, type: Attribute, rows: int | None) -> tuple[str, dict[str, Any]]:
        """Return the attributes and metadata of a tensor map."""
        from tilework.targets.nvidia.lower.tma_rules import describe  # lazily: few kernels have descriptors

        return BY_VALUE, describe(type, rows)

    def around(self, module: ModuleOp, allocated: Allocations) -> CopyOrder | None:
        order = global_order(module)
        fences = set(proxy_fences(module, self.target, allocated)) if self.has(Feature.ASYNC_PROXY) else set()
        return CopyOrder(order, fences) if order.waits or order.fences or fences else None

    def thread_id(self, b: Builder) -> Value:
        return special(b, "tid.x")

    def block_id(self, b: Builder) -> Value:
        return special(b, "cluster.ctarank")

    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        found = special(b, f"{'clusterid' if clusters else 'ctaid'}.{AXES[axis]}")
        b.bound(found, 0, MOST_PROGRAMS[axis] - 1)
        return found

    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        return special(b, f"{'nclusterid' if clusters else 'nctaid'}.{AXES[axis]}")

    # Synchronisation and exchange

    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        if warps.count == 1 and not warps.are_all:
            return self.warp_barrier(b)
        barrier = [constant(i32, warps.barrier)]
        kind, given = (
            ("all", barrier) if warps.are_all else ("count", [*barrier, constant(i32, warps.count * self.warp_size)])
        )
        aligned = "" if warps.are_apart else "aligned."
        b.call(f"llvm.nvvm.barrier.cta.sync.{aligned}{kind}", void, given, attributes="convergent")

    def cluster_barrier(self, b: Builder) -> None:
        for step in ("arrive", "wait"):
            ptx(b, f"barrier.cluster.{step}.aligned;", [], [], effect="write", convergent=True)

    def set_registers(self, b: Builder, count: int, before: int) -> None:
        """Emit `setmaxnreg` for a multiple of 8; warps that need more wait until others have released registers."""
        count, before = min(count, MOST_REGISTERS), min(before, MOST_REGISTERS)
        if count != before:
            way = "inc" if count > before else "dec"
            name = f"llvm.nvvm.setmaxnreg.{way}.sync.aligned.u32"
            b.call(name, void, [constant(i32, count)], attributes="convergent")

    def warp_barrier(self, b: Builder) -> None:
        b.call("llvm.nvvm.bar.warp.sync", void, [ALL_LANES], attributes="convergent")

    def shuffle(self, b: Builder, value: Value, lane: Value, mode: str = "idx") -> Value:
        args = [ALL_LANES, value, lane, constant(i32, self.warp_size - 1)]
        return b.call(f"llvm.nvvm.shfl.sync.{mode}.i32", i32, args, attributes="convergent")

    def shuffle_xor(self, b: Builder, value: Value, mask: int) -> Value:
        return self.shuffle(b, value, constant(i32, mask), "bfly")

    def reduce_warp(self, b: Builder, name: str, value: Value) -> Value | None:
        if not self.has(Feature.WARP_REDUCTION):
            return None
        return b.call(f"llvm.nvvm.redux.sync.{name}", i32, [value, ALL_LANES], attributes="convergent")

    def maxima(self, b: Builder, rows: Sequence[Sequence[Value]]) -> Sequence[Value] | None:
        """Compare three at a time as integers, which order non-negative floats correctly. A row whose maximum is
        negative or NaN takes the float path.
        """
        if not self.has(Feature.WGMMA):
            return None
        larger = partial(b.intrinsic, "smax", i32)
        found = [by_threes(larger, [b.bitcast(value, i32) for value in row]) for row in rows]
        odd = [b.icmp("ugt", value, INFINITY) for value in found]
        return b.if_else(
            any_lane(b, reduce(b.or_, odd)),
            lambda: [by_threes(b.maxnum, row) for row in rows],
            lambda: [b.bitcast(value, f32) for value in found],
        )

    # Memory

    def load(self, b: Builder, at: Access, other: Sequence[Value] | None) -> list[Value]:
        (type, count, _), (hint, policy) = at.shape, self.kept_by_l2(b, at.hints)
        last = f", ${count + 1}" if policy else ""
        line = f"ld{hint_text(at.hints, 'global')}{hint}{access_kind(at.shape)} {listed(0, count)}, [${count}]{last};"
        inputs = [at.address, *policy]
        if at.predicate is not None:
            line, inputs = guarded(line, inputs, at.predicate, count)
            fallback = [f"${count + len(inputs) + index}" if other else "0" for index in range(count)]
            inputs += other or ()
            before = "".join([f"mov.b{type.bits} ${index}, {text}; " for index, text in enumerate(fallback)])
            line = f"{before}{line}"
        return ptx(b, line, [type] * count, inputs, effect="write" if at.hints.is_volatile else "read")

    def store(self, b: Builder, at: Access, given: Sequence[Value], space: str = "global") -> None:
        hint, policy = self.kept_by_l2(b, at.hints)
        last = f", ${1 + at.shape.count}" if policy else ""
        line = f"st{hint_text(at.hints, space)}{hint}{access_kind(at.shape)} [$0], {listed(1, at.shape.count)}{last};"
        line, inputs = guarded(line, [at.address, *given, *policy], at.predicate)
        ptx(b, line, [], inputs, effect="write")

    def fetch(self, b: Builder, address: Value, predicate: Value) -> None:
        line, inputs = guarded("prefetch.global.L2 [$0];", [address], predicate)
        ptx(b, line, [], inputs, effect="write")

    def kept_by_l2(self, b: Builder, hints: Hints) -> tuple[str, list[Value]]:
        """Return the L2 modifier of an access, and the operand that it needs."""
        says = self.has(Feature.CACHE_POLICY) and not hints.is_volatile and not hints.in_l1
        policy = eviction_policy(b, hints.evict) if says else []
        return ".L2::cache_hint" if policy else "", policy

    def advance(self, b: Builder, pointer: Value, bytes: Value) -> Value:
        return ptx(b, "add.s64 $0, $1, $2;", [pointer.type], [pointer, bytes])[0]

    def hidden_zero(self, b: Builder, loop: Operation) -> Value | None:
        """Hide the addresses in loops with wgmma, where two additions per address are faster than the IMAD.WIDE that
        ptxas generates for `base + 2 * offset`.
        """
        if not any(type(op) is ttng.WarpGroupDotOp for op in loop.walk()):
            return None
        text = "{ .reg .b32 %lane; mov.u32 %lane, %laneid; shr.u32 %lane, %lane, 5; cvt.u64.u32 $0, %lane; }"
        return ptx(b, text, [i64], [])[0]

    def store_shared(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Store with a predicate: after a branch, the point of reconvergence would depend on LLVM's block placement."""
        self.store(b, at._replace(address=shared_address(b, at.address)), given, "shared")

    def matrix_form(self, offsets: LinearLayout, bits: int, limit: int) -> "Matrices | None":
        from tilework.targets.nvidia.lower.matrix_load import matrix_form  # lazily: many kernels have no buffers

        return matrix_form(offsets, bits, limit)

    def async_copy(self, b: Builder, copy: Copy) -> None:
        """Emit ``@%first cp.async.cg.shared.global [%s + 4096], [%p], 16, !%mask``, which writes zeros where the mask
        is false.

        There is no L2 cache hint: with one, ptxas (12.8, 13.0) emits ``LDGSTS [R7+UR0], desc[UR1]``, an illegal
        instruction on Hopper.
        """
        mask, inputs, size = copy.mask, [shared_address(b, copy.target), copy.source], ""
        if mask is not None and mask.constant == 0:
            size = ", 0"
        elif mask is not None and mask.constant != 1:
            size = ", !$2"
            inputs.append(mask)
        level = "cg" if copy.bytes == 16 else "ca"
        line = f"cp.async.{level}.shared.global [$0 + {copy.apart}], [$1], {copy.bytes}{size};"
        line, inputs = guarded(line, inputs, copy.predicate)
        ptx(b, line, [], inputs, effect="write")

    def commit_copies(self, b: Builder) -> None:
        ptx(b, "cp.async.commit_group;", [], [], effect="write")

    def wait_copies(self, b: Builder, pending: int) -> None:
        ptx(b, f"cp.async.wait_group \t{pending};", [], [], effect="write")

    def stored_for_matrices(self, b: Builder, type: Attribute) -> None:
        if self.has(Feature.ASYNC_PROXY) and isinstance(encoding_of(type), NvmmaShared):
            show_stores(b)

    # Bytes and messages

    def choose_bytes(self, b: Builder, low: Value, high: Value, selector: int) -> Value:
        return nvvm(b, "prmt", i32, low, high, constant(i32, selector))

    def min_magnitude(self, b: Builder, x: Value, y: Value, keeps_nan: bool) -> Value:
        suffix = "f" if x.type is f32 else "f16"
        return nvvm(b, f"fmin{'.nan' if keeps_nan else ''}.xorsign.abs.{suffix}", x.type, x, y)

    def printer(self, b: Builder) -> Callable[[str, Sequence[Value]], None]:
        """Return a `vprintf` emitter; the arguments are stored on the stack, each aligned to its size."""
        stack = b.alloca(i8, 8 * MOST_PRINTED, align=8)

        def show(text: str, values: Sequence[Value]) -> None:
            offset = 0
            assert len(values) <= MOST_PRINTED
            for value in values:
                size = value.type.bits // 8
                offset = (offset + size - 1) // size * size
                b.store(value, b.gep(stack, offset), align=size)
                offset += size
            b.call("vprintf", i32, [b.module.string(text), stack])

        return show

    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        texts = [b.module.string(text) for text in (message, file, function)]
        b.call("__assertfail", void, [texts[0], texts[1], constant(i32, line), texts[2], constant(i64, 1)])


MANY = 8  # multiplications per distinct factor from which the branch pays


@lowers(arith.MulfOp, overrides=True)
def lower_rescale(low: Lowering, op: Operation) -> Registers:
    factors = distinct(low[op.operands[1]])
    if SKIP_ONES not in op.attributes or len(factors) * MANY > len(low[op.operands[1]]):
        return lower_native(low, op)
    b = low.builder
    differs = reduce(b.or_, [b.fcmp("une", factor, 1.0) for factor in factors])
    return b.if_else(any_lane(b, differs), lambda: lower_native(low, op), lambda: low[op.operands[0]])


def distinct(registers: Registers) -> list[Value]:
    return list({value.text: value for value in registers if value.type is f32}.values())


MORE_RULES = {  # modules, and the prefixes of the op names that they lower
    "tilework.targets.nvidia.lower.casts": "arith.extf arith.truncf tt.fp_to_fp arith.sitofp arith.uitofp arith.fpto",
    "tilework.targets.nvidia.lower.mma": "tt.dot",
    "tilework.targets.nvidia.lower.tma_rules": "ttng.",
    "tilework.targets.nvidia.lower.wgmma_rules": "ttng.warp_group_dot",
}


def emit_module(
    module: ModuleOp, capability: int, *, fuses: bool = True, lines: bool = True, options: Any = None,
    by_use: bool = True,
) -> str:  # fmt: skip
    """Return the LLVM text of all functions of a TTGIR module, after assigning warps to partitions."""
    if (most := getattr(options, "maxnreg", None)) is not None:
        module.attributes[MAX_REGISTERS] = int_attr(most, i32_type)
    if any(isinstance(op, ttg.WarpSpecializeOp) for op in ops_in_order(*module.regions)):
        allocate_warp_groups(module)
    load_rules(MORE_RULES, module)
    gpu = NvidiaGpu(Target.parse(f"cuda:{capability}"), options)
    return codegen.emit_module(module, gpu, fuses=fuses, lines=lines, by_use=by_use)
