"""Loop options as attributes of `scf.for` and `scf.while`, and undefined values.

tl.range(0, n, num_stages=4, flatten=True)   ->   {tt.flatten, tt.num_stages = 4 : i32}
"""

from collections.abc import Mapping
from typing import Any

from xdsl.dialects import ub
from xdsl.dialects.builtin import LocationAttr, UnitAttr
from xdsl.ir import Attribute

from tilework.ir.llvm import LICM_DISABLED
from tilework.ir.types import i32, int_attr

NUMBERS = ("num_stages", "loop_unroll_factor")
UNIT = UnitAttr()
COUNTED = "tt.counted"  # of an `scf.while`: a `for` that may be left early
SKIPS = "tt.skips"  # of a loop: it has `continue`
POISON = ub.PoisonAttr()


def loop_attributes(hints: Mapping[str, Any]) -> dict[str, Attribute]:
    """The attributes of a loop, in alphabetical order; a hint that is None or False is absent."""
    found: dict[str, Attribute] = {}
    for name, value in sorted(hints.items()):
        if value is None or value is False:
            continue
        if name == "disable_licm":
            found["llvm.loop_annotation"] = LICM_DISABLED
        else:
            found[f"tt.{name}"] = int_attr(int(value), i32) if name in NUMBERS else UNIT
    return dict(sorted(found.items()))


def poison(type: Attribute, loc: LocationAttr) -> ub.PoisonOp:
    """``ub.poison : type``: no particular value."""
    return ub.PoisonOp.create(result_types=(type,), properties={"value": POISON}, location=loc)
