"""NVIDIA GPUs: what the neutral rules ask for, as NVVM's intrinsics and PTX."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilework.analysis.global_order import global_order
from tilework.analysis.membar import proxy_fences
from tilework.ir import ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import CacheModifier
from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.linear import LinearLayout
from tilework.target import Feature, Target
from tilework.targets.gpu.device import Access, Copy, Hints, Warps, Words
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import bf16, f16, f32, f64, i1, i8, i16, i32, i64, void
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import fast_math
from tilework.targets.nvidia.lower.atomic_instructions import AtomicInstructions
from tilework.targets.nvidia.lower.copy_order import CopyOrder, show_stores
from tilework.targets.nvidia.lower.inline_ptx import (
    EVICTIONS,
    eviction_policy,
    guarded,
    listed,
    nvvm,
    ptx,
    shared_word,
)
from tilework.targets.nvidia.lower.own_rules import NVIDIA
from tilework.targets.nvidia.lower.tensormap_rules import MAP_BYTES, describe

if TYPE_CHECKING:
    from tilework.targets.nvidia.lower.matrix_load import Matrices

AXES = "xyz"
ALL_LANES = constant(i32, -1)
BY_VALUE = f'byval([{MAP_BYTES} x i8]) align {MAP_BYTES} "nvvm.grid_constant"'
INFINITY = 0x7F800000  # as f32
MOST_PRINTED = 32  # values of one call
MOST_REGISTERS = 256  # that `setmaxnreg` asks for


def any_lane(b: Builder, condition: Value) -> Value:
    """Whether `condition` holds in a lane of the warp."""
    return b.call("llvm.nvvm.vote.any.sync", i1, [ALL_LANES, condition], attributes="convergent")


def by_threes(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """All values combined; of integers, the assembler makes one instruction of two maxima."""
    while len(values) > 1:
        values = [reduce(combine, values[at : at + 3]) for at in range(0, len(values), 3)]
    return values[0]


def special(b: Builder, name: str) -> Value:
    """A special register, ``tid.x``; it does not change while the kernel runs."""
    return b.call(f"llvm.nvvm.read.ptx.sreg.{name}", i32, [], is_pure=True)


def access_kind(words: Words) -> str:
    """``.v4.b32``."""
    return f"{f'.v{words.count}' if words.count > 1 else ''}.b{words.size}"


def hint_text(hints: Hints, space: str) -> str:
    """``.global.cg`` or ``.global.L1::evict_first``: of L1 an instruction says one of them, and a cache modifier says more."""
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
    carried_bit = i32  # ptxas mistakes predicates that a loop carries and negates for their negations
    fast_functions = fast_math.FAST
    links_libraries = True
    functions = fast_math.LIBRARY
    assembly_types = {"r": i32, "h": i16, "c": i16, "l": i64, "f": f32, "d": f64, "b": i1}  # noqa: RUF012

    def __init__(self, target: Target, options: Any = None) -> None:
        super().__init__(target)
        self.least_blocks = getattr(options, "minctasm", None)
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
        """A tensor map."""
        return BY_VALUE, describe(type, rows)

    def around(self, module: ModuleOp) -> CopyOrder | None:
        order = global_order(module)
        fences = set(proxy_fences(module, self.target)) if self.has(Feature.ASYNC_PROXY) else set()
        return CopyOrder(order, fences) if order.waits or order.fences or fences else None

    def thread_id(self, b: Builder) -> Value:
        return special(b, "tid.x")

    def block_id(self, b: Builder) -> Value:
        return special(b, "cluster.ctarank")

    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        return special(b, f"{'clusterid' if clusters else 'ctaid'}.{AXES[axis]}")

    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        return special(b, f"{'nclusterid' if clusters else 'nctaid'}.{AXES[axis]}")

    # Threads together

    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        if warps.count == 1 and not warps.are_all:
            return self.warp_barrier(b)
        number = [constant(i32, warps.barrier)]
        kind, given = (
            ("all", number) if warps.are_all else ("count", [*number, constant(i32, warps.count * self.warp_size)])
        )
        aligned = "" if warps.are_apart else "aligned."
        b.call(f"llvm.nvvm.barrier.cta.sync.{aligned}{kind}", void, given, attributes="convergent")

    def cluster_barrier(self, b: Builder) -> None:
        for step in ("arrive", "wait"):
            ptx(b, f"barrier.cluster.{step}.aligned;", [], [], effect="write", convergent=True)

    def set_registers(self, b: Builder, count: int, before: int) -> None:
        """The multiple of 8 that is asked for, 256 at most; warps that need more wait for those that need less."""
        count, before = min(count, MOST_REGISTERS), min(before, MOST_REGISTERS)
        if count != before:
            way = "inc" if count > before else "dec"
            name = f"llvm.nvvm.setmaxnreg.{way}.sync.aligned.u32"
            b.call(name, void, [constant(i32, count)], attributes="convergent")

    def warp_barrier(self, b: Builder) -> None:
        b.call("llvm.nvvm.bar.warp.sync", void, [ALL_LANES], attributes="convergent")

    def shuffle(self, b: Builder, word: Value, lane: Value, mode: str = "idx") -> Value:
        args = [ALL_LANES, word, lane, constant(i32, self.warp_size - 1)]
        return b.call(f"llvm.nvvm.shfl.sync.{mode}.i32", i32, args, attributes="convergent")

    def shuffle_xor(self, b: Builder, word: Value, mask: int) -> Value:
        return self.shuffle(b, word, constant(i32, mask), "bfly")

    def reduce_warp(self, b: Builder, name: str, word: Value) -> Value | None:
        if not self.has(Feature.WARP_REDUCTION):
            return None
        return b.call(f"llvm.nvvm.redux.sync.{name}", i32, [word, ALL_LANES], attributes="convergent")

    def maxima(self, b: Builder, rows: Sequence[Sequence[Value]]) -> Sequence[Value] | None:
        """Three at a time as integers: floats that are not negative are ordered like these. Others, which no row with one of
        them gives as its maximum, and NaN are a case apart.
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
        (type, count, _), (hint, policy) = at.words, self.kept_by_l2(b, at.hints)
        last = f", ${count + 1}" if policy else ""
        line = f"ld{hint_text(at.hints, 'global')}{hint}{access_kind(at.words)} {listed(0, count)}, [${count}]{last};"
        inputs = [at.address, *policy]
        if at.predicate is not None:
            line, inputs = guarded(line, inputs, at.predicate, count)
            fallback = [f"${count + len(inputs) + place}" if other else "0" for place in range(count)]
            inputs += other or ()
            before = "".join([f"mov.b{type.bits} ${place}, {text}; " for place, text in enumerate(fallback)])
            line = f"{before}{line}"
        return ptx(b, line, [type] * count, inputs, effect="write" if at.hints.is_volatile else "read")

    def store(self, b: Builder, at: Access, given: Sequence[Value], space: str = "global") -> None:
        hint, policy = self.kept_by_l2(b, at.hints)
        last = f", ${1 + at.words.count}" if policy else ""
        line = f"st{hint_text(at.hints, space)}{hint}{access_kind(at.words)} [$0], {listed(1, at.words.count)}{last};"
        line, inputs = guarded(line, [at.address, *given, *policy], at.predicate)
        ptx(b, line, [], inputs, effect="write")

    def fetch(self, b: Builder, address: Value, predicate: Value) -> None:
        line, inputs = guarded("prefetch.global.L2 [$0];", [address], predicate)
        ptx(b, line, [], inputs, effect="write")

    def kept_by_l2(self, b: Builder, hints: Hints) -> tuple[str, list[Value]]:
        """What an access says of L2, and the operand that it needs for it."""
        says = self.has(Feature.CACHE_POLICY) and not hints.is_volatile and not hints.in_l1
        policy = eviction_policy(b, hints.evict) if says else []
        return ".L2::cache_hint" if policy else "", policy

    def advance(self, b: Builder, pointer: Value, bytes: Value) -> Value:
        return ptx(b, "add.s64 $0, $1, $2;", [pointer.type], [pointer, bytes])[0]

    def hidden_zero(self, b: Builder, loop: Operation) -> Value | None:
        """Beside wgmma, two additions per address are faster than the one IMAD.WIDE that ptxas makes of `base + 2 * number`."""
        if not any(type(op) is ttng.WarpGroupDotOp for op in loop.walk()):
            return None
        text = "{ .reg .b32 %lane; mov.u32 %lane, %laneid; shr.u32 %lane, %lane, 5; cvt.u64.u32 $0, %lane; }"
        return ptx(b, text, [i64], [])[0]

    def store_shared(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Predicated: behind a branch, where threads come together again depends on where LLVM puts the blocks."""
        self.store(b, at._replace(address=shared_word(b, at.address)), given, "shared")

    def matrix_form(self, offsets: LinearLayout, bits: int, limit: int) -> "Matrices | None":
        from tilework.targets.nvidia.lower.matrix_load import matrix_form  # lazily: many kernels have no buffers

        return matrix_form(offsets, bits, limit)

    def async_copy(self, b: Builder, copy: Copy) -> None:
        """``@%first cp.async.cg.shared.global [%s + 4096], [%p], 16, !%mask``: zeros are written where the mask is false.

        L2 is told nothing: with a cache hint ptxas (12.8, 13.0) wrote ``LDGSTS [R7+UR0], desc[UR1]``, which Hopper refuses as illegal.
        """
        mask, inputs, size = copy.mask, [shared_word(b, copy.target), copy.source], ""
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
        """The arguments lie one after the other on the stack, each aligned to its size."""
        place = b.alloca(i8, 8 * MOST_PRINTED, align=8)

        def show(text: str, values: Sequence[Value]) -> None:
            offset = 0
            assert len(values) <= MOST_PRINTED
            for value in values:
                size = value.type.bits // 8
                offset = (offset + size - 1) // size * size
                b.store(value, b.gep(place, offset), align=size)
                offset += size
            b.call("vprintf", i32, [b.module.string(text), place])

        return show

    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        texts = [b.module.string(text) for text in (message, file, function)]
        b.call("__assertfail", void, [texts[0], texts[1], constant(i32, line), texts[2], constant(i64, 1)])
