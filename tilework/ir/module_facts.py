"""What a module of TTGIR says about the machine it is for, in its attributes:

    module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90",
                       "ttg.threads-per-warp" = 32 : i32} { ... }

Each question takes any op inside the module. The number of warps may differ in a function that says so, and in the
partitions of a `ttg.warp_specialize`.
"""

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from tilework.errors import PassError
from tilework.ir.ttg.warp_specialize_ops import WarpSpecializeOp, WarpSpecializePartitionsOp
from tilework.ir.types import array_values, i32, int_attr, string_attr

NUM_WARPS = "ttg.num-warps"
NUM_CTAS = "ttg.num-ctas"
THREADS_PER_WARP = "ttg.threads-per-warp"
TARGET = "ttg.target"
SANITIZER_FACTS = "tilework.sanitizer"  # JSON: what the sanitizer's checks are about
DEFAULT_THREADS_PER_WARP = 32


class MissingFact(PassError):
    """A module that does not say what is asked."""

    def __init__(self, name: str) -> None:
        super().__init__(f'the module has no attribute "{name}": it is not TTGIR yet')
        self.name = name


def module_of(op: Operation) -> Operation:
    """The module around `op`, or `op` itself."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def integer(attributes: Mapping[str, Attribute], name: str) -> int | None:
    value = attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None


def num_warps(op: Operation) -> int:
    """The warps that run `op`."""
    if (count := find_num_warps(op)) is None:
        raise MissingFact(NUM_WARPS)
    return count


def find_num_warps(op: Operation) -> int | None:
    """The warps that run `op`, or None where nothing says so."""
    inner, outer = op, op.parent_op()
    if (count := integer(op.attributes, NUM_WARPS)) is not None:
        return count
    while outer is not None:
        if isinstance(outer, WarpSpecializePartitionsOp):
            holder = outer.parent_op()
            region = inner.parent_region()
            if isinstance(holder, WarpSpecializeOp) and region is not None:
                return array_values(holder.properties["partitionNumWarps"])[outer.regions.index(region)]
        if (count := integer(outer.attributes, NUM_WARPS)) is not None:
            return count
        inner, outer = outer, outer.parent_op()
    return None


def threads_per_warp(op: Operation) -> int:
    """The lanes of a warp, 32 unless the module says otherwise."""
    return integer(module_of(op).attributes, THREADS_PER_WARP) or DEFAULT_THREADS_PER_WARP


def num_ctas(op: Operation) -> int:
    """The blocks of a cluster, 1 unless the module says otherwise."""
    return integer(module_of(op).attributes, NUM_CTAS) or 1


def capability(op: Operation) -> int:
    """90 for ``ttg.target = "cuda:90"``."""
    target = module_of(op).attributes.get(TARGET)
    if not isinstance(target, StringAttr):
        raise MissingFact(TARGET)
    kind, _, number = target.data.partition(":")
    if kind != "cuda" or not number.isdigit():
        raise ValueError(f'ttg.target = "{target.data}" is not a CUDA target such as "cuda:90"')
    return int(number)


def machine_attributes(
    warps: int, ctas: int, target: int, threads: int = DEFAULT_THREADS_PER_WARP
) -> dict[str, Attribute]:
    """The attributes of a module for this machine."""
    return {
        NUM_CTAS: int_attr(ctas, i32),
        NUM_WARPS: int_attr(warps, i32),
        TARGET: string_attr(f"cuda:{target}"),
        THREADS_PER_WARP: int_attr(threads, i32),
    }
