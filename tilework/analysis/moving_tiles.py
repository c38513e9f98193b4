"""Tiles of addresses that never come back to where they were: `for i in range(n): p = x + i * 64 + tl.arange(0, 64)`.

    scf.for ... iter_args(%o = %range) {             %range = tt.make_range {start = 0, end = 64}
      %p = tt.addptr %splat, %o                      elements of one iteration lie in a window of 64
      %next = arith.addi %o, %c64                    which moves on by 64: the windows of two iterations have nothing in common
      scf.yield %next

What an iteration stores there is nothing that a later one loads there, so those loads may start before the store.
"""

from xdsl.dialects import scf
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.index_forms import IndexForms, place
from tilework.ir import tt
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import constant_value
from tilework.ir.types import shape_of

FAR = 1 << 24  # a step that is larger may come around after some iterations: offsets have 32 bits


def moves_on(pointers: SSAValue, loop: Operation) -> bool:
    """Whether no element of `pointers` is one of an earlier iteration of `loop`."""
    step = constant_value(loop.operands[2]) if type(loop) is scf.ForOp else None
    forms = IndexForms()
    if not isinstance(step, int) or (form := forms.of(pointers)) is None:
        return False
    places = {(place(dim),): size for dim, size in enumerate(shape_of(pointers.type))}
    width = 1 + sum(abs(form.pop(monomial, 0)) * (size - 1) for monomial, size in places.items())
    (counter,) = forms.atom(body_of(loop).args[0])
    rate = step * form.pop(counter, 0)
    is_fixed = all(number >= 0 and forms.is_outside(number, loop) for monomial in form for number in monomial)
    return is_fixed and width <= abs(rate) < FAR


def same_address(one: SSAValue, other: SSAValue) -> bool:
    """Whether both are one value, or computed from the same ones in the same way."""
    if one is other:
        return True
    if not (isinstance(one, OpResult) and isinstance(other, OpResult)):
        return False
    return type(one.op) is type(other.op) is tt.AddPtrOp and list(one.op.operands) == list(other.op.operands)
