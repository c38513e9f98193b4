"""Whether a module promises the same bits everywhere (`@tilework.jit(reproducible=True)`): one attribute of it, absent in all others.

    module attributes {tilework.reproducible} { ... }

Passes, lowerings and the evaluator ask `is_reproducible` of any op inside; the frontend and the interpreter have the option itself.
"""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

REPRODUCIBLE = "tilework.reproducible"


def mark_reproducible(module: Operation) -> None:
    module.attributes[REPRODUCIBLE] = UnitAttr()


def is_reproducible(op: Operation) -> bool:
    """Whether the module around `op` (or `op` itself) must compute the same bits on every target."""
    around = op
    while (outer := around.parent_op()) is not None:
        around = outer
    return REPRODUCIBLE in around.attributes
