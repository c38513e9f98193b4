"""The state that lowering rules share: the values lowered so far, the LLVM builder and the GPU.

The value of a tensor is the part that one thread holds: a tuple with one LLVM value per register of its layout, in the
order of the linear layout's `register` index, duplicates included. A scalar is a tuple of one, a memory descriptor a
`Shared` (`shared_access.py`), a token an empty tuple.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice
from operator import lt
from typing import Any, Self

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.allocation import Allocation
from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.membar import Barriers
from tilework.analysis.single_warp import FirstWarp
from tilework.ir import arith, tt
from tilework.ir.encodings import layout_of
from tilework.ir.ttg.memory_types import AsyncTokenType, MemDescType
from tilework.ir.types import TensorDescType, element_type, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.light_dataclass import light_dataclass
from tilework.targets.gpu.device import Around, Gpu, Warps
from tilework.targets.gpu.packing import REGISTER_BITS, fills_registers, pack_registers, unpack_register
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.rules import COMMON, OpLowering, Rule, Rules
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, f32, i1, i32, i64, integer, pointer, ptr
from tilework.targets.llvm.values import Value, constant

Registers = tuple[Value, ...]
NEUTRAL = Rules(COMMON)
lowers = NEUTRAL.lowers

# Ops whose results are often equal for adjacent elements.
MAKE_RUNS = frozenset({arith.CmpiOp, arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp, arith.ShRUIOp})
SHARED_SPACE = 3
SMEM = "global_smem"


@light_dataclass
class Shared:
    """Memory of a descriptor: the address of its buffer, and the offset of its first element in the buffer (in
    elements, combined by xor).
    """

    base: Value
    offset: int = 0


@light_dataclass
class Facts:
    """The facts about the module and the options that rules use."""

    num_warps: int
    num_ctas: int = 1
    fuses: bool = True
    longest_first: int | None = None  # the axis whose largest ids start first
    by_groups: bool = False  # warp groups run MMAs, whose addresses must be uniform in each warp


def register_count(type: Attribute) -> int:
    """The number of registers that a thread holds of a value."""
    return layout_of(type).in_size("register") if is_tensor(type) else 1


class Lowering(OpLowering[Any]):
    """The state that a rule works on: the builder of the current function, the values known so far, and the GPU."""

    allocation: Allocation
    axis: AxisFacts

    def __init__(self, module: Module, builder: Builder, facts: Facts, gpu: Gpu, warps: Warps) -> None:
        super().__init__(module, builder, gpu.rules, facts.fuses)
        self.facts, self.gpu, self.device, self.bit = facts, gpu, gpu.name, gpu.carried_bit
        self.packed: dict[tuple[str, ...], Value] = {}  # registers, by the names of their elements (`packing.py`)
        self.held_in: dict[str, tuple[Value, int]] = {}  # the register that holds a small element, and its index there
        self.barriers = Barriers()
        self.around: Around | None = None
        self.smem: Value = constant(pointer(SHARED_SPACE), 0)  # the start of this function's shared memory
        self.scratch: Value = constant(pointer(1), 0)  # the start of the program's global scratch memory
        self.ticket_counter: Value = constant(ptr, 0)  # orders programs (`atomic_rules.py`)
        self.orders_programs = False
        self.shows_locations = False
        self.scratch_offsets: dict[Operation, int] = {}  # in that memory, of allocations and calls
        self.bases: set[str] = set()  # the names of pointers that loops advance (`carried_pointers.py`)
        self.program_ids: dict[Operation, bool] = {}  # functions that ask which program they run (`global_access.py`)
        self.alone = FirstWarp()
        self.is_alone = False  # only the first warp runs the code being emitted
        self.specialised: Any = None  # the code of the worker warps (`warp_specialize_rules.py`)
        self.thread = gpu.thread_id(builder)
        self.lane_mask = gpu.warp_size - 1
        self.lane = builder.and_(self.thread, self.lane_mask)
        several = warps.count > 1 or not warps.are_all
        self.warp = builder.lshr(self.thread, gpu.warp_size.bit_length() - 1) if several else constant(i32, 0)
        self.has_thread_id = not facts.by_groups  # the bits of `thread` are those of `lane`, then those of `warp`
        if several and facts.by_groups:
            self.warp = gpu.uniform(builder, self.warp)
        self.warps = warps
        self.block = gpu.block_id(builder) if facts.num_ctas > 1 else constant(i32, 0)

    def of_warps(self, warps: Warps) -> Self:
        """Return a copy for a partition of warps, in which thread and warp ids start at its first warp."""
        found, b = copy(self), self.builder
        found.warps, found.values, found.packed, found.held_in = warps, dict(self.values), {}, {}
        found.warp = b.sub(self.warp, warps.first) if warps.count > 1 else constant(i32, 0)
        found.thread = b.sub(self.thread, warps.first * self.gpu.warp_size) if warps.count > 1 else self.lane
        return found

    def function(self, name: str, *args: Value) -> Value:
        """An elementary function: by the GPU's own instructions for f32, where it may (`elementary.py`)."""
        from tilework.targets.gpu.elementary import FORMULAS, Lanes  # lazily: most kernels have no such function

        b = self.builder
        if not self.module.approximations or args[0].type is not f32 or (formula := FORMULAS.get(name)) is None:
            return super().function(name, *args)
        with b.fast_math():  # the formulas count on each rounding: the caller's flags stay outside
            return formula(*(Lanes(b, arg) for arg in args)).v

    # Values

    @staticmethod
    def types_of(type: Attribute) -> Sequence[Type]:
        if isinstance(type, AsyncTokenType):
            return ()
        if isinstance(type, MemDescType):
            return (pointer(SHARED_SPACE),)
        if isinstance(type, TensorDescType):
            return (ptr,)
        return (register_type(element_type(type)),) * register_count(type)

    def flat(self, values: Sequence[Any]) -> list[Value]:
        """Return the registers of all values as one list; a buffer contributes its address."""
        found: list[Value] = []
        for value in values:
            found.extend((value.base,) if isinstance(value, Shared) else value)
        return found

    def held(self, types: Sequence[Attribute], flat: Sequence[Value]) -> list[Any]:
        left = iter(flat)
        parts = [(type, tuple(islice(left, len(self.types_of(type))))) for type in types]
        return [Shared(part[0]) if isinstance(type, MemDescType) else part for type, part in parts]

    def like(self, values: Sequence[Any], flat: Sequence[Value]) -> list[Any]:
        left = iter(flat)
        return [
            Shared(next(left), value.offset) if isinstance(value, Shared) else tuple(islice(left, len(value)))
            for value in values
        ]

    def carried(self, values: Sequence[Any]) -> list[Value]:
        """Return the values as they cross basic blocks, with small elements packed into registers: ptxas gives every
        such value a 32-bit register, or spills it (and miscompiles some 16-bit spills).
        """
        packed = [tuple(pack_registers(self, value)) if fills_registers(value) else value for value in values]
        return [self.builder.zext(one, self.bit) if one.type is i1 else one for one in self.flat(packed)]

    def taken(self, values: Sequence[Any], carried: Sequence[Value]) -> list[Any]:
        forms = [
            value[: value[0].type.bits * len(value) // REGISTER_BITS] if fills_registers(value) else value
            for value in values
        ]
        types = [one.type for one in self.flat(forms)]
        flat = [self.builder.bit(one) if type is i1 else one for one, type in zip(carried, types, strict=True)]
        return [
            tuple(element for packed in found for element in unpack_register(self, packed, value[0].type))
            if fills_registers(value)
            else found
            for value, found in zip(values, self.like(forms, flat), strict=True)
        ]

    def check_joined(self, op: Operation, *sides: Sequence[Any]) -> None:
        """Refuse memory whose offset in its buffer depends on the path taken: only addresses are carried."""
        for values in zip(*sides, strict=True):
            if len({value.offset for value in values if isinstance(value, Shared)}) > 1:
                raise self.refuse(op, "memory that is one or another part of a buffer")

    def check_passed(self, op: Operation, values: Sequence[Any]) -> None:
        """Refuse subslices: only the address of a whole buffer can be passed on."""
        if any(isinstance(value, Shared) and value.offset for value in values):
            raise self.refuse(op, "a part of a buffer that is passed on")

    @property
    def ids(self) -> dict[str, Value]:
        """The indices of this thread, by the names that layouts use."""
        return {"lane": self.lane, "warp": self.warp, "block": self.block}

    # Ops and regions

    def emit(self, op: Operation) -> None:
        """Lower one op, with the barriers before and after it."""
        if self.specialised is not None and type(op) is tt.ReturnOp:
            self.specialised.end()
        if op in self.barriers.before:
            self.barrier()
        if self.around is not None:
            self.around.before(self, op)
        super().emit(op)
        if op in self.barriers.after:
            self.barrier()
        if self.around is not None:
            self.around.after(self, op)

    def each(self, rule: Rule, op: Operation) -> Registers:
        sides = [self.values[operand] for operand in op.operands]
        if sides and len(sides[0]) < len(sides[-1]):  # one condition that selects whole tensors
            sides[0] = sides[0] * len(sides[-1])
        if not sides:
            return (rule(self, op),)
        if type(op) in MAKE_RUNS and (equal := self.equal_along(op.results[0], "register")):
            made = {r: rule(self, op, *[side[r] for side in sides]) for r in range(len(sides[0])) if not r & equal}
            return tuple([made[register & ~equal] for register in range(len(sides[0]))])
        return tuple([rule(self, op, *column) for column in zip(*sides, strict=True)])

    def equal_along(self, value: SSAValue, name: str) -> int:
        """Return the mask of the register or lane index bits along which `value` is known to be constant."""
        if not is_tensor(value.type):
            return 0
        runs = [run & -run for run in self.axis.of(value).constancy]
        if max(runs) == 1:
            return 0
        vectors = dict(layout_of(value.type).bases)[name]
        return sum(1 << bit for bit, vector in enumerate(vectors) if all(map(lt, vector, runs)))

    def region(self, block: Block, args: Sequence[Any] | Mapping[SSAValue, Any]) -> list[Any]:
        """Emit the ops of a block with these arguments, and return the operands of its terminator."""
        self.values.update(args if isinstance(args, Mapping) else zip(block.args, args, strict=True))
        last = block.last_op
        assert last is not None, "a region ends in a terminator"
        for op in block.ops:
            if op in self.alone.inside and not self.is_alone:
                if (run := self.alone.runs.get(op)) is not None:
                    self.first_warp_only(run)
            elif op is not last:
                self.lower(op)
        return [self.values[operand] for operand in last.operands]

    def first_warp_only(self, run: Sequence[Operation]) -> None:
        """Emit ops that only the first warp runs (`analysis/single_warp.py`)."""
        if run[0] in self.barriers.before:
            self.barrier()
        alone = copy(self)
        alone.barriers, alone.is_alone = Barriers(), True
        with self.builder.if_(self.builder.icmp("eq", self.warp, 0)):
            for op in run:
                alone.lower(op)

    def combine(self, block: Block, args: Sequence[Value]) -> list[Value]:
        """Emit a combine function of a reduction or scan on scalars, one value for each argument."""
        return [registers[0] for registers in self.region(block, [(arg,) for arg in args])]

    # Synchronisation and exchange

    def barrier(self, all_memory: bool = False) -> None:
        """Emit a barrier of all threads that run this code; it publishes their writes to shared memory, or to
        `all_memory`.

        The blocks of a cluster run one program, so a barrier for global memory spans the cluster.
        """
        assert not self.is_alone, "the first warp alone cannot wait for the others"
        if all_memory and self.facts.num_ctas > 1:
            self.gpu.cluster_barrier(self.builder)
        else:
            self.gpu.barrier(self.builder, self.warps, all_memory)

    def warp_barrier(self) -> None:
        """Emit a barrier of the lanes of each warp."""
        self.gpu.warp_barrier(self.builder)

    def scratch_address(self, op: Operation) -> Value:
        """Return the address of an op's scratch buffer in shared memory."""
        return self.builder.gep(self.smem, self.allocation.scratch[op].offset)

    def shuffle(self, value: Value, lane: Value) -> Value:
        """Return the value that `lane` holds in this register."""
        return self.in_registers(value, lambda packed: self.gpu.shuffle(self.builder, packed, lane))

    def shuffle_xor(self, value: Value, mask: int) -> Value:
        """Return the value that the lane with id ``lane ^ mask`` holds in this register."""
        return self.in_registers(value, lambda packed: self.gpu.shuffle_xor(self.builder, packed, mask))

    def in_registers(self, value: Value, move: Callable[[Value], Value]) -> Value:
        """Apply `move`, which takes an i32, to a value of any type: to one 32-bit register, or to two."""
        b, type = self.builder, value.type
        bits = type.bits
        if bits > 32:
            whole = b.bitcast(b.ptrtoint(value, i64) if type.is_pointer else value, i64)
            halves = [b.trunc(whole, i32), b.trunc(b.lshr(whole, 32), i32)]
            low, high = (b.zext(move(half), i64) for half in halves)
            joined = b.or_(low, b.shl(high, 32))
            return b.inttoptr(joined, type) if type.is_pointer else b.bitcast(joined, type)
        packed = b.zext(b.bitcast(value, integer(bits)), i32) if bits < 32 else b.bitcast(value, i32)
        made = move(packed)
        return b.bitcast(b.trunc(made, integer(bits)) if bits < 32 else made, type)

    def is_first_copy(self, layout: LinearLayout, in_block: bool = False) -> Value | None:
        """Return a condition that holds in the lowest lane, warp and block with these elements; None if there are no
        duplicates.

        With `in_block`, duplicates in other blocks of the cluster do not count: each block writes its own shared
        memory.
        """
        b, found = self.builder, None
        for name, value in self.ids.items():
            if in_block and name == "block":
                continue
            mask = sum(1 << bit for bit, column in enumerate(layout.by_in.get(name, ())) if not column)
            if mask and value.constant is None:
                mine = b.icmp("eq", b.and_(value, mask), 0)
                found = mine if found is None else b.and_(found, mine)
        return found

    @contextmanager
    def only_if(self, condition: Value | None) -> Iterator[None]:
        """Emit the body of the `with` under a condition, or unconditionally if it is None."""
        if condition is None:
            yield
        else:
            with self.builder.if_(condition):
                yield


def layout(value: SSAValue) -> LinearLayout:
    """The linear layout of a tensor or memory descriptor."""
    return layout_of(value.type)
