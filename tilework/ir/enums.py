"""The enumerations of `tt` ops, with the integers the IR stores and the keywords the text shows.

An enum property is an `i32`: ``evict = 2 : i32`` in an attribute dictionary is ``evictionPolicy = evict_first`` where
the op's format names it.

    >>> EvictionPolicy.FIRST.keyword, EvictionPolicy.FIRST.value
    ('evict_first', 2)
"""

from enum import IntEnum


class Keyword(IntEnum):
    """An integer with a spelling in the text, by default its name in lower case."""

    __hash__ = int.__hash__  # Enum's own hashes the name: slow in keys of cached properties

    @property
    def keyword(self) -> str:
        return self.name.lower()

    @classmethod
    def keywords(cls) -> tuple[str, ...]:
        """Every spelling, in the order of the members."""
        return tuple(member.keyword for member in cls)


class SchedHint(Keyword):
    """The kind of a loop, for LLVM's scheduler for AMD GPUs."""

    NONE = 0
    ATTENTION = 2


class AddrSpace(Keyword):
    """The memory that a barrier makes visible: bits, written ``local|global_read``."""

    NONE = 0
    LOCAL = 1
    GLOBAL_READ = 2
    GLOBAL_WRITE = 4
    TENSOR_READ = 8
    TENSOR_WRITE = 16
    ALL = 31


class CacheModifier(Keyword):
    """The cache levels that a load or store uses."""

    NONE = 1
    CA = 2
    CG = 3
    WB = 4
    CS = 5
    WT = 6
    CV = 7


class EvictionPolicy(Keyword):
    """The eviction priority of a cache line; spelled ``evict_normal``, ``evict_first``, ``evict_last``."""

    NORMAL = 1
    FIRST = 2
    LAST = 3

    @property
    def keyword(self) -> str:
        return f"evict_{self.name.lower()}"


class PaddingOption(Keyword):
    """The value of elements outside the tensor."""

    ZERO = 1
    NAN = 2


class MemSemantic(Keyword):
    """The ordering of an atomic."""

    RELAXED = 1
    ACQUIRE = 2
    RELEASE = 3
    ACQ_REL = 4


class MemSyncScope(Keyword):
    """The threads that see an atomic's ordering."""

    GPU = 1
    CTA = 2
    SYS = 3


class RMWOp(Keyword):
    """The operation of an atomic."""

    AND = 1
    OR = 2
    XOR = 3
    ADD = 4
    FADD = 5
    MAX = 6
    MIN = 7
    UMAX = 8
    UMIN = 9
    EXCH = 10


class DescriptorReduceKind(Keyword):
    """The operation of a reduction through a tensor descriptor."""

    ADD = 1
    MIN = 2
    MAX = 3
    INC = 4
    DEC = 5
    AND = 6
    OR = 7
    XOR = 8


class ProgramDim(Keyword):
    """An axis of the launch grid."""

    X = 0
    Y = 1
    Z = 2


class RoundingMode(Keyword):
    """The rounding of a float that narrows: towards zero, or to nearest even."""

    RTZ = 0
    RTNE = 1


class PropagateNan(Keyword):
    """The treatment of NaN operands: ALL makes the result NaN."""

    NONE = 0
    ALL = 65535


class InputPrecision(Keyword):
    """The precision in which a dot reads f32 operands."""

    TF32 = 0
    TF32X3 = 1
    IEEE = 2
    BF16X3 = 3
    BF16X6 = 4


class ScaleDotElemType(Keyword):
    """The element format of an operand of a scaled dot."""

    E4M3 = 0
    E5M2 = 1
    E2M3 = 2
    E3M2 = 3
    E2M1 = 4
    BF16 = 5
    FP16 = 6
