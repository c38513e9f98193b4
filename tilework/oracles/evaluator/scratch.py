"""Ops that exchange elements through shared memory of their own, once allocation has given them an address.

They write over what was there, so a buffer that is still needed and was given the same bytes is destroyed, as it would be
on the machine. All of them have barriers inside, except conversions that stay within a warp.
"""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.conversion import conversion, scratch_bytes
from tilework.oracles.evaluator.floats import memory_bytes
from tilework.oracles.evaluator.shared_memory import assigned_offset
from tilework.oracles.evaluator.table import Rule

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

OWN_MEMORY = (ttg.LocalAllocOp, tt.CallOp, tt.FuncOp)  # their offsets are those of buffers


def uses_scratch(op: Operation) -> bool:
    """Whether `op` was given bytes to work in."""
    return assigned_offset(op) is not None and not isinstance(op, OWN_MEMORY)


def with_scratch(rule: Rule) -> Callable[..., Any]:
    """`rule` for an op that writes to its scratch memory."""

    def run(machine: "Machine", op: Operation, *operands: Any) -> Any:
        offset = assigned_offset(op)
        assert offset is not None
        machine.shared.scratch(offset, scratch_size(op), not is_within_warps(op))
        return rule(machine, op, *operands)

    return run


def scratch_size(op: Operation) -> int:
    """The bytes that `op` uses at least."""
    if type(op) is ttg.ConvertLayoutOp:
        return scratch_bytes(
            layout_of(op.operands[0].type), layout_of(op.results[0].type), bit_width(op.operands[0].type)
        )
    if type(op) is tt.ReduceOp:
        return reduce_size(op)
    return sum(memory_bytes(value.type) for value in (*op.operands[:1], *op.results[:1]) if shape_of(value.type))


def reduce_size(op: Operation) -> int:
    """One partial result for each warp along the axis."""
    attribute = op.properties["axis"]
    assert isinstance(attribute, IntegerAttr)
    source, axis = op.operands[0].type, attribute.value.data
    warps = dict(layout_of(source).bases)["warp"]
    count = 1 << sum(vector[axis] != 0 for vector in warps)
    shape = [count if dim == axis else size for dim, size in enumerate(shape_of(source))]
    blocks = 1 << sum(any(vector) for vector in dict(layout_of(source).bases)["block"])
    return 0 if count == 1 else prod(shape) // blocks * sum(memory_bytes(operand.type) for operand in op.operands)


def is_within_warps(op: Operation) -> bool:
    """Whether no warp reads what another one wrote."""
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    return conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind == "warp"
