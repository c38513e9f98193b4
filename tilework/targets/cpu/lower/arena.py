"""Where each buffer of a function lies in the arena: buffers whose lives do not overlap share memory.

    %a = ttc.alloc : !ttc.buf<64xf32>     first used by op 3, last by op 5    offset 64
    %b = ttc.alloc : !ttc.buf<64xf32>     first used by op 4, last by op 9    offset 320
    %c = ttc.alloc : !ttc.buf<32xf32>     first used by op 7, last by op 9    offset 64, where %a was

A life is a range of positions in the text. A buffer that is made outside of a loop and used inside lives as long as the
loop. In a function with branches between blocks nothing is shared.
"""

from math import prod
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilework.ir import ttc
from tilework.targets.llvm.scalar_types import element_bytes

ALIGN = 64
LOOPS = (scf.ForOp, scf.WhileOp, ttc.NestOp)  # a nest reads an old buffer after it has written to a new one


class Plan(NamedTuple):
    """Offsets of buffers in bytes, and where the memory after the last one begins."""

    offsets: dict[SSAValue, int]
    end: int


def aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def buffer_bytes(type: ttc.BufferType) -> int:
    return prod(type.shape) * element_bytes(type.element)


def plan(function: Operation, start: int) -> Plan:
    """Place the buffers of a function from `start` on."""
    offsets: dict[SSAValue, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # (first position, last position, offset, end)
    end = start
    for first, last, buffer in lives(function):
        assert isinstance(buffer.type, ttc.BufferType)
        size = aligned(buffer_bytes(buffer.type))
        offset = start
        for _, _, low, high in sorted((p for p in placed if p[0] <= last and first <= p[1]), key=lambda p: p[2]):
            if offset + size <= low:
                break
            offset = max(offset, high)
        offsets[buffer] = offset
        placed.append((first, last, offset, offset + size))
        end = max(end, offset + size)
    return Plan(offsets, end)


def lives(function: Operation) -> list[tuple[int, int, SSAValue]]:
    """(first position, last position, buffer) in the order of the first."""
    position: dict[Operation, int] = {}
    finish: dict[Operation, int] = {}
    buffers: list[SSAValue] = []

    def visit(op: Operation) -> None:
        position[op] = len(position)
        if type(op) is ttc.AllocOp:
            buffers.append(op.results[0])
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    visit(inner)
        finish[op] = len(position) - 1

    visit(function)
    whole = len(function.regions[0].blocks) > 1
    found: list[tuple[int, int, SSAValue]] = []
    for buffer in buffers:
        home = buffer.owner.parent_op() if isinstance(buffer.owner, Operation) else None
        spans = [span(use.operation, home, position, finish) for use in buffer.uses]
        if spans:
            first, last = min(low for low, _ in spans), max(high for _, high in spans)
            found.append((0, len(position), buffer) if whole else (first, last, buffer))
        else:
            found.append((position[buffer.owner], position[buffer.owner], buffer))  # type: ignore[index]
    return sorted(found, key=lambda life: life[0])


def span(
    user: Operation, home: Operation | None, position: dict[Operation, int], finish: dict[Operation, int]
) -> tuple[int, int]:
    """The positions during which a use needs the buffer: its own, or the outermost loop around it within `home`."""
    outermost = user
    parent = user.parent_op()
    while parent is not None and parent is not home:
        if isinstance(parent, LOOPS):
            outermost = parent
        parent = parent.parent_op()
    return position[outermost], finish[outermost]
