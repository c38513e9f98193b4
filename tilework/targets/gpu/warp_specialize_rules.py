"""`ttg.warp_specialize`: worker warps, beyond those of the kernel, wait at its start until a partition is ready.

    kernel:   if warp >= 4: goto workers            workers:  barrier 1                ; all warps of the block
              code before the op                              if warp < 8:  partition 0
              store captured values                           else:         partition 1
              barrier 1                                       ret
              default region

This is the form for one op that runs once. Where there are several ops, or the op is in a loop, the kernel also stores
the index of the op that it has reached; workers run that op's partition, join the kernel at the barrier and wait for
the next one:

        state = 0; barrier                     workers:  barrier; switch state: 0: partition, barrier, goto workers
        default region; barrier                                                 1: ...
        state = 2; barrier; ret                                                 2: ret

Captured values that a worker can compute (parameters, buffers, a little arithmetic on them) are not stored: each
partition recomputes them. If others are stored, another barrier follows their loads. Barrier 0 belongs to the default
region and barrier 2 + i to partition i. Where the op has register counts for its regions, warps change to them after
the barrier, and back before the next one.
"""

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any

from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.functions import ops_in_order
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import array_values, is_tensor
from tilework.targets.gpu.device import Warps
from tilework.targets.gpu.lowering import Lowering, Shared, lowers
from tilework.targets.llvm.types import Type, i8
from tilework.targets.llvm.values import Value, constant

MEETING = 1  # the barrier of all warps
FIRST_OWN = 2  # the barrier of partition 0
MOST_PARTITIONS = 14
GROUP = 4  # warps that change their register count together
CLUSTER_BARRIER = frozenset({ttng.ClusterArriveOp, ttng.ClusterWaitOp})
MOST_REPEATED = 16  # ops that a partition recomputes rather than loading a captured value


class Specialised:
    """The `ttg.warp_specialize` ops of one kernel; `registers` is the register count of a thread outside of them."""

    def __init__(self, low: Lowering, function: tt.FuncOp, total: int, registers: int | None) -> None:
        self.low, self.registers = low, registers
        self.ops = [op for op in ops_in_order(*function.regions) if isinstance(op, ttg.WarpSpecializeOp)]
        self.all = Warps(total, 0, MEETING, are_all=False, are_apart=True)
        (first, *others), entry = self.ops, function.regions[0].blocks[0]
        self.runs_once = not others and first.parent is entry
        if low.facts.num_ctas > 1 or any(type(op) in CLUSTER_BARRIER for op in ops_in_order(*function.regions)):
            # a cluster barrier counts all threads of its blocks
            raise low.refuse(first, "a cluster of blocks with partitions of warps")
        self.ends_kernel = self.runs_once and isinstance(first.next_op, tt.ReturnOp)  # no warp waits for workers

    @property
    def state(self) -> Value:
        """Return the address of the index of the op whose partitions the workers run."""
        return self.low.builder.gep(self.low.smem, self.low.allocation.scratch[self.low.allocation.function].offset)

    def meet(self, low: Lowering) -> None:
        low.gpu.barrier(low.builder, self.all)

    def workers(self) -> None:
        """Emit the code of the worker warps; the code of the kernel's own warps follows."""
        low, b = self.low, self.low.builder
        with b.if_(b.icmp("uge", low.warp, low.warps.count)):
            if self.runs_once:
                self.meet(low)
                self.partitions(self.ops[0])
                if not self.ends_kernel:
                    self.meet(low)
                b.ret()
                return
            again = b.function.block("workers")
            b.br(again)
            b.resume(again)
            self.meet(low)
            state = b.load(i8, self.state)
            for index, op in enumerate(self.ops):
                with b.if_(b.icmp("eq", state, index)):
                    self.partitions(op)
                    self.meet(low)
                    b.br(again)
            b.ret()

    def partitions(self, op: ttg.WarpSpecializeOp) -> None:
        """Emit the partitions of an op; partitions in one warp group change their register count together."""
        starts, counts = (array_values(op.properties[name]) for name in ("warpGroupStartIds", "partitionNumWarps"))
        if len(counts) > MOST_PARTITIONS:
            raise self.low.refuse(op, f"more than {MOST_PARTITIONS} partitions")
        registers, groups = self.registers_of(op)[1:], dict[int, list[int]]()
        for index in sorted(range(len(starts)), key=lambda index: starts[index]):
            groups.setdefault(starts[index] // GROUP, []).append(index)
        for members in groups.values():
            first, own = starts[members[0]], registers[members[0]]
            with self.low.builder.if_(self.is_among(first, sum(counts[index] for index in members))):
                self.change_registers(own, self.registers)
                for index in members:
                    with self.low.only_if(self.is_among(starts[index], counts[index]) if len(members) > 1 else None):
                        self.partition(op, index, Warps(counts[index], starts[index], FIRST_OWN + index, False))
                if not self.ends_kernel:
                    self.change_registers(self.registers, own)

    def is_among(self, first: int, count: int) -> Value:
        b, warp = self.low.builder, self.low.warp
        return b.and_(b.icmp("uge", warp, first), b.icmp("ult", warp, first + count))

    def partition(self, op: ttg.WarpSpecializeOp, index: int, warps: Warps) -> None:
        low = self.low.of_warps(warps)
        captured = self.captured(low, op)
        self.meet_if_passed(op)
        low.region(self.only_block(op, op.partitions[index]), captured)
        if self.ends_kernel:
            low.builder.ret()  # falling through would look divergent to the assembler

    def registers_of(self, op: ttg.WarpSpecializeOp) -> Sequence[int | None]:
        """Return the register counts of the default region and of each partition."""
        if self.registers is None or (given := op.properties.get("actualRegisters")) is None:
            return (None,) * (1 + len(op.partitions))
        warps, counts = (self.low.warps.count, *array_values(op.properties["partitionNumWarps"])), array_values(given)
        if sum(map(mul, warps, counts)) > self.registers * self.all.count:  # the warps would deadlock
            raise self.low.refuse(
                op, f"partitions that want {list(counts)} registers, of which there are {self.registers},"
            )
        return counts

    def change_registers(self, count: int | None, before: int | None) -> None:
        if count is not None and before is not None:
            self.low.gpu.set_registers(self.low.builder, count, before)

    def only_block(self, op: Operation, region: Region) -> Block:
        if len(region.blocks) != 1:
            raise self.low.refuse(op, "a region of ttg.warp_specialize with branches")
        return region.block

    def default(self, op: ttg.WarpSpecializeOp) -> list[Any]:
        """Emit the op for the kernel's own warps, and return its results."""
        low, b = self.low, self.low.builder
        with low.only_if(b.icmp("eq", low.thread, 0)):
            for value, address in self.passed(op):
                low.check_passed(op, [low[value]])
                (held,) = low.flat([low[value]])
                b.store(b.zext(held, i8) if held.type.bits == 1 else held, address)
            if not self.runs_once:
                b.store(constant(i8, self.ops.index(op)), self.state)
        self.meet(low)
        own = self.registers_of(op)[0]
        self.change_registers(own, self.registers)  # before the next barrier, or warps deadlock
        self.meet_if_passed(op)
        values = low.region(self.only_block(op, op.default_region), ())
        if not self.ends_kernel:
            self.change_registers(self.registers, own)
            self.meet(low)
        return values

    def end(self) -> None:
        """Notify the workers, where the kernel returns, that there is no more work."""
        if not self.runs_once:
            low, b = self.low, self.low.builder
            with low.only_if(b.icmp("eq", low.thread, 0)):
                b.store(constant(i8, len(self.ops)), self.state)
            self.meet(low)

    # Captured values

    def meet_if_passed(self, op: ttg.WarpSpecializeOp) -> None:
        """Emit a barrier after the loads of captured values, whose memory is free from then on."""
        if any(not self.is_repeated(value) for value in op.operands):
            self.meet(self.low)

    def passed(self, op: ttg.WarpSpecializeOp) -> Iterator[tuple[SSAValue, Value]]:
        """Yield the captured values that must be stored, with their addresses: large ones first, so that all are
        aligned.
        """
        offset, found = 0, [value for value in dict.fromkeys(op.operands) if not self.is_repeated(value)]
        for value in sorted(found, key=lambda value: -passed_type(self.low, op, value).bits):
            yield value, self.low.builder.gep(self.low.scratch_address(op), offset)
            offset += passed_type(self.low, op, value).bits // 8

    def captured(self, low: Lowering, op: ttg.WarpSpecializeOp) -> list[Any]:
        """Return the captured values as a partition gets them."""
        b, addresses = low.builder, dict(self.passed(op))
        found: list[Any] = []
        for value in op.operands:
            if (address := addresses.get(value)) is None:
                repeat(low, value)
                found.append(low[value])
                continue
            made = b.load(passed_type(low, op, value), address)
            (wanted,) = low.types_of(value.type)
            made = made if made.type is wanted else b.icmp("ne", made, 0)
            found.append(Shared(made) if isinstance(value.type, MemDescType) else (made,))
        return found

    def is_repeated(self, value: SSAValue) -> bool:
        """Return True if workers can recompute a value: from parameters, by few ops without side effects."""
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            if (inner := pending.pop()) in seen:
                continue
            seen.add(inner)
            owner = inner.owner
            if not isinstance(owner, Operation):
                if not isinstance(owner.parent_op(), tt.FuncOp) or owner.prev_block is not None:
                    return False
            elif len(seen) > MOST_REPEATED or owner.regions or is_tensor(inner.type) or not is_repeatable(owner):
                return False
            else:
                pending += owner.operands
        return True


def is_repeatable(op: Operation) -> bool:
    """Return True if an op has the same result wherever it runs; an uninitialised buffer is just an address."""
    if isinstance(op, ttg.LocalAllocOp):
        return not op.operands
    return isinstance(op, ttg.GlobalScratchAllocOp) or is_pure(op)


def repeat(low: Lowering, value: SSAValue) -> None:
    """Recompute a value in a worker."""
    if value not in low.values and isinstance(op := value.owner, Operation):
        for operand in op.operands:
            repeat(low, operand)
        low.lower(op)


def passed_type(low: Lowering, op: Operation, value: SSAValue) -> Type:
    """Return the type of a captured value in memory."""
    types = low.types_of(value.type)
    if is_tensor(value.type) or len(types) != 1:
        raise low.refuse(op, f"a captured value of type {value.type}")
    return i8 if types[0].bits == 1 else types[0]


@lowers(ttg.WarpSpecializeOp)
def lower_warp_specialize(low: Lowering, op: Operation) -> list[Any]:
    assert isinstance(op, ttg.WarpSpecializeOp) and low.specialised is not None, op
    return low.specialised.default(op)
