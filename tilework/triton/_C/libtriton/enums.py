"""The enumerations of Triton's native module: its names, with the values that the IR stores."""

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Any

from tilework.ir import enums
from tilework.language.elementwise_builtins import PropagateNan as PROPAGATE_NAN


class Named(IntEnum):
    """An integer that is written by its name."""

    __str__ = Enum.__str__


def named(name: str, source: type[IntEnum], names: Mapping[str, str] | None = None, prefix: str = "") -> Any:
    """The members of one of our enumerations under Triton's names."""
    members = {(names or {}).get(member.name, prefix + member.name): member.value for member in source}
    return Named(name, members, module="triton._C.libtriton.ir")  # pyright: ignore[reportCallIssue, reportArgumentType]


ATOMIC_OP = named("ATOMIC_OP", enums.RMWOp, {"EXCH": "XCHG"})
CACHE_MODIFIER = named("CACHE_MODIFIER", enums.CacheModifier)
DESCRIPTOR_REDUCE_KIND = named("DESCRIPTOR_REDUCE_KIND", enums.DescriptorReduceKind)
EVICTION_POLICY = named("EVICTION_POLICY", enums.EvictionPolicy, {"NORMAL": "NORMAL"}, "EVICT_")
INPUT_PRECISION = named(
    "INPUT_PRECISION", enums.InputPrecision, {"TF32X3": "TF32x3", "BF16X3": "BF16x3", "BF16X6": "BF16x6"}
)
MEM_SEMANTIC = named("MEM_SEMANTIC", enums.MemSemantic, {"ACQ_REL": "ACQUIRE_RELEASE"})
MEM_SYNC_SCOPE = named("MEM_SYNC_SCOPE", enums.MemSyncScope, {"SYS": "SYSTEM"})
PADDING_OPTION = named("PADDING_OPTION", enums.PaddingOption, prefix="PAD_")
ROUNDING_MODE = named("ROUNDING_MODE", enums.RoundingMode)
ScaleDotElemTypeTY = named("ScaleDotElemTypeTY", enums.ScaleDotElemType)

# members that are names of the module too; of two with one name, Triton's module has the one listed last
EXPORTED = (
    INPUT_PRECISION,
    ScaleDotElemTypeTY,
    EVICTION_POLICY,
    PADDING_OPTION,
    MEM_SEMANTIC,
    MEM_SYNC_SCOPE,
    CACHE_MODIFIER,
)
MEMBERS = {name: member for kind in EXPORTED for name, member in kind.__members__.items()}
ENUMERATIONS = {
    "ATOMIC_OP": ATOMIC_OP,
    "DESCRIPTOR_REDUCE_KIND": DESCRIPTOR_REDUCE_KIND,
    "PROPAGATE_NAN": PROPAGATE_NAN,
    "ROUNDING_MODE": ROUNDING_MODE,
    **{kind.__name__: kind for kind in EXPORTED},
}
