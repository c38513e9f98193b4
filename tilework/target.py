"""The target that code is compiled for, as a frozen value; `GPUTarget` is its name.

    >>> target = Target.parse("cuda:90")
    >>> target.warp_size, Feature.WGMMA in target.features, target.limits.threads
    (32, True, 1024)

The vendor's part of `targets/` describes its architectures by a function from a name to a `Target`, listed in the group
`tilework.targets` (`process/plugins.py`). Passes and rules read facts from the value, never the name of an
architecture.
"""

from dataclasses import replace
from enum import StrEnum
from functools import cache
from operator import index
from typing import Any, NamedTuple

from tilework.errors import TritonError, did_you_mean
from tilework.light_dataclass import light_dataclass
from tilework.process.plugins import find, plugins

GROUP = "tilework.targets"
LAUNCH_SIZES = ("num_warps", "num_ctas", "num_stages")
DotSize = tuple[int, int, int]


@light_dataclass
class GPUTarget:
    """A target, as users and drivers name it: ``GPUTarget("cuda", 90, 32)``.

    Example:
        from tilework.compiler import GPUTarget

        assert GPUTarget.parse("cuda:90") == GPUTarget("cuda", 90, 32)
        assert str(GPUTarget("hip", "gfx942", 64)) == "hip:gfx942"
    """

    backend: str
    arch: int | str
    warp_size: int

    @classmethod
    def parse(cls, text: str) -> "GPUTarget":
        """``cuda:90`` or ``cuda:90:32`` -> GPUTarget("cuda", 90, 32); ``cpu`` -> GPUTarget("cpu", "host", 1)."""
        name, _, warp_size = text.rpartition(":")
        if ":" not in name or not warp_size.isdecimal():
            return described(text).name
        found = described(name)
        return cls(found.backend, found.arch, int(warp_size))

    def __str__(self) -> str:
        return self.backend if self.arch == "host" else f"{self.backend}:{self.arch}"


def launch_size(name: str, size: Any) -> int:
    """Return the value of the launch option `name` (num_warps, num_ctas or num_stages) as an int, on every device."""
    try:
        number = index(size)
    except TypeError:
        raise TypeError(f"{name} must be an int, got {size!r}") from None
    if name == "num_warps" and (number <= 0 or number & (number - 1)):
        raise AssertionError(f"num_warps must be a power of 2, got {number}")
    if name == "num_ctas" and number < 1:
        raise ValueError(f"num_ctas must be at least 1, got {number}")
    return number


class Feature(StrEnum):
    """Capabilities that some targets have; a vendor's own passes and rules may use other names, as plain strings."""

    ASYNC_COPY = "async_copy"  # from global to shared memory, past the registers
    ASYNC_PROXY = "async_proxy"  # units that see shared memory in their own order: fences make them see stores
    BF16_ARITHMETIC = "bf16_arithmetic"
    BF16_ATOMICS = "bf16_atomics"
    BF16_FROM_INTEGER = "bf16_from_integer"
    CACHE_POLICY = "cache_policy"  # accesses that say how long L2 should keep what they touch
    CLUSTERS = "clusters"  # blocks that run together and see each other's shared memory
    CONVERT_PAIRS = "convert_pairs"  # two f32 to f16 or bf16 in one register
    DIRECT_ATOMICS = "direct_atomics"  # go to global memory one by one, not through a table in shared memory
    FP8_CONVERT = "fp8_convert"
    MATRIX_LOAD = "matrix_load"  # a warp loads 8x8 matrices from shared memory: ldmatrix
    MATRIX_STORE = "matrix_store"  # stmatrix
    MBARRIER = "mbarrier"  # barriers in shared memory
    MBARRIER_BYTES = "mbarrier_bytes"  # that count the bytes of copies
    MIN_MAGNITUDE = "min_magnitude"  # the smaller of two magnitudes, with both signs
    MMA = "mma"  # a warp multiplies matrices
    MMA_F64 = "mma_f64"
    MMA_F64_ROWS = "mma_f64_rows"  # 16 rows at a time
    MMA_FP8 = "mma_fp8"
    MMA_FP8_FAST = "mma_fp8_fast"  # and faster than with f16
    TMA = "tma"  # copies of boxes that descriptors describe
    VECTOR_ATOMICS = "vector_atomics"  # 16 bytes of floats at once
    WARP_REDUCTION = "warp_reduction"  # of an integer of all lanes, in one instruction
    WGMMA = "wgmma"  # four warps multiply matrices in shared memory


class UnknownTarget(TritonError, ValueError):
    """A target that nothing describes."""


class Limits(NamedTuple):
    """The most that one thread, one block or one access may have."""

    vector_bits: int = 128  # of one access of one thread
    threads: int = 1  # of a block
    registers: int = 0  # of a block, with 32 bits
    shared_bytes: int = 0  # of a block


NO_LIMITS = Limits()


class Rates(NamedTuple):
    """Throughputs of a GPU, for estimates (`analysis/cost.py`): per multiprocessor and cycle, unless it says
    otherwise."""

    multiprocessors: int  # of the GPU
    gigahertz: float  # cycles under load
    macs: dict[int, int]  # multiply-adds of the fastest tensor-core instruction, by bits of an operand
    warp_macs: float  # how much of that the instructions of one warp reach (mma.sync)
    mufu: int  # exponentials, logarithms, reciprocals
    issues: int  # instructions of warps
    shared_bytes: int
    l2_bytes: int
    dram_bytes: float  # the share of one multiprocessor
    memory_cycles: int  # latency of DRAM
    barrier_cycles: int  # that a block stalls at a barrier of all its warps
    warps: int  # that one multiprocessor holds
    blocks: int
    shared_memory: int  # bytes of one multiprocessor
    reserved_shared: int  # bytes of it that each block takes beside its own


@light_dataclass
class Target:
    """The facts about an architecture."""

    backend: str
    arch: int | str
    warp_size: int = 1
    features: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    label: str = ""  # in remarks: "compute capability (90)"
    float8: tuple[str, ...] = ()  # the 8-bit floats that kernels may have
    slow_float8: tuple[str, ...] = ()  # and those of them that dots are warned about
    least_dot: DotSize = (1, 1, 1)
    least_byte_dot: DotSize = (1, 1, 1)  # where both operands have 8 bits
    rates: Rates | None = None  # None: not measured

    def __hash__(self) -> int:
        return hash((self.backend, self.arch))

    def __str__(self) -> str:
        return str(self.name)

    @property
    def name(self) -> GPUTarget:
        """The name that drivers and users give it."""
        return GPUTarget(self.backend, self.arch, self.warp_size)

    @staticmethod
    def parse(text: str) -> "Target":
        """The target that is written ``BACKEND:ARCH``; ``cpu`` is the host."""
        return described(text)

    @staticmethod
    def of(name: "GPUTarget | Target") -> "Target":
        """The facts about a named target, with the warp size of the name; no facts if no plugin describes it."""
        if isinstance(name, Target):
            return name
        if find(GROUP, name.backend) is None:
            return Target(name.backend, name.arch, name.warp_size)
        found = described(str(name))
        return found if found.warp_size == name.warp_size else replace(found, warp_size=name.warp_size)

    def without(self, *features: Feature) -> "Target":
        """The same without some of its features."""
        return replace(self, features=self.features.difference(features))

    @property
    def matrix_access(self) -> tuple[bool, bool]:
        """(warps can load matrices from shared memory, warps can store them)."""
        return Feature.MATRIX_LOAD in self.features, Feature.MATRIX_STORE in self.features

    def min_dot_size(self, left: Any, right: Any) -> DotSize:
        """The smallest (m, n, k) of a dot of operands of these types of the language."""
        are_bytes = left.scalar.primitive_bitwidth == right.scalar.primitive_bitwidth == 8
        return self.least_byte_dot if are_bytes else self.least_dot


@cache
def described(text: str) -> Target:
    """The vendor's description of ``BACKEND:ARCH``."""
    backend, _, arch = text.partition(":")
    plugin = find(GROUP, backend)
    if backend and plugin is None:
        known = sorted({other.name for other in plugins(GROUP)})
        guess = did_you_mean(backend, known) or f"; there are compilers for {', '.join(known)}"
        raise UnknownTarget(f"target {text!r}: there is no compiler for {backend!r}{guess}")
    if plugin is None or (target := plugin.load()(arch)) is None:
        raise UnknownTarget(f"target {text!r}: expected BACKEND:ARCH, for example cuda:90, hip:gfx942 or cpu")
    return target


# Tensor maps: the arrays in memory that a copy engine (TMA) can describe. The hardware takes any bits, and copies from
# and to anywhere if these break the rules.

MAP_ALIGNMENT, LARGEST_MAP_STRIDE = 16, 1 << 40  # bytes


def refused_stride(axis: int, stride: int, itemsize: int) -> str | None:
    """The reason why no tensor map has this stride, in elements; None if one can.

    >>> refused_stride(0, -64, 4)
    'strides must be at least 0 and less than 2^40 bytes, stride 0 is -256 bytes'
    """
    distance = stride * itemsize
    if distance % MAP_ALIGNMENT:
        return f"strides must be {MAP_ALIGNMENT}-byte aligned, stride {axis} is {distance} bytes"
    if not 0 <= distance < LARGEST_MAP_STRIDE:
        return f"strides must be at least 0 and less than 2^40 bytes, stride {axis} is {distance} bytes"
    return None
