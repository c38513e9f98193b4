"""The features of AMD's GPUs, by the name of their architecture: gfx942 is CDNA3 (MI300), gfx1100 RDNA3.

>>> describe("gfx942").warp_size, describe("gfx1100").warp_size
(64, 32)
"""

from enum import StrEnum
from typing import NamedTuple

from tilework.errors import did_you_mean
from tilework.target import Feature, Limits, Target, UnknownTarget


class AmdFeature(StrEnum):
    """A feature that only some of AMD's GPUs have."""

    ARCHITECTED_IDS = "architected_ids"  # workgroup ids are in registers that attributes must not disable
    BUFFER_ATOMICS = "buffer_atomics"
    BUFFER_BF16_ATOMICS = "buffer_bf16_atomics"  # of pairs
    BUFFER_F64_ATOMICS = "buffer_f64_atomics"
    CACHE_SCOPES = "cache_scopes"  # instructions have cache bypass bits
    DOT2 = "dot2"  # two multiply-adds of f16 into f32
    DOT2_BF16 = "dot2_bf16"
    DPP_MOVES = "dpp_moves"  # an instruction reads from another lane of its row
    FP8_FNUZ = "fp8_fnuz"  # instructions for 8-bit floats without infinities and -0
    FP8_OCP = "fp8_ocp"
    PACKED_BF16 = "packed_bf16"  # f32 to bf16 in one instruction
    IN_THREAD_TRANSPOSE = "in_thread_transpose"  # operands are best transposed in registers before LDS
    LDS_COPY_4 = "lds_copy_4"  # copies from global memory to LDS, of so many bytes per lane
    LDS_COPY_16 = "lds_copy_16"
    PINGPONG = "pingpong"  # the waves of a SIMD profit from ping-pong scheduling
    PINGPONG_COPIES = "pingpong_copies"  # they do where copies to LDS are asynchronous
    ROW_SWAP = "row_swap"  # permlanex16
    SWAP_16 = "permlane16.swap"  # swaps rows of 16 lanes between two registers
    SWAP_32 = "permlane32.swap"
    SPLIT_WAITS = "split_waits"  # a wait counter for each kind of memory
    TRANSPOSED_READ = "transposed_read"  # reads of LDS that transpose between 16 lanes
    WAVE_PRELOAD = "wave_preload"  # arguments are preloaded into scalar registers
    XF32 = "xf32"  # mfma of f32 in the precision of tf32


LDS_COPIES = {4: AmdFeature.LDS_COPY_4, 16: AmdFeature.LDS_COPY_16}  # by the bytes of a lane


class Family(NamedTuple):
    """A family of GPUs: wave size, LDS, the versions of its matrix instructions (0 for none), features."""

    generation: str
    wave: int
    lds: int
    mfma: int = 0
    wmma: int = 0
    features: tuple[str, ...] = ()


D, A = Feature, AmdFeature
CDNA = (A.DOT2,)
RDNA = (A.DOT2, A.DPP_MOVES, A.ROW_SWAP)
COMMON = (D.BF16_FROM_INTEGER, D.DIRECT_ATOMICS)
FAMILIES: dict[str, Family] = {
    "gfx908": Family("CDNA1", 64, 64 << 10, mfma=1, features=CDNA),
    "gfx90a": Family("CDNA2", 64, 64 << 10, mfma=2, features=(*CDNA, A.DPP_MOVES, A.WAVE_PRELOAD)),
    "gfx942": Family(
        "CDNA3", 64, 64 << 10, mfma=3,
        features=(
            *CDNA, A.DPP_MOVES, A.WAVE_PRELOAD, A.BUFFER_ATOMICS, A.BUFFER_F64_ATOMICS, A.CACHE_SCOPES,
            A.FP8_FNUZ, A.PINGPONG, A.PINGPONG_COPIES, A.IN_THREAD_TRANSPOSE, A.LDS_COPY_4, A.XF32,
        ),
    ),
    "gfx950": Family(
        "CDNA4", 64, 160 << 10, mfma=4,
        features=(
            *CDNA, A.DPP_MOVES, A.WAVE_PRELOAD, A.BUFFER_ATOMICS, A.BUFFER_BF16_ATOMICS,
            A.BUFFER_F64_ATOMICS, A.CACHE_SCOPES, A.FP8_OCP, A.PACKED_BF16, A.DOT2_BF16, A.LDS_COPY_4,
            A.LDS_COPY_16, A.PINGPONG_COPIES, A.SWAP_16, A.SWAP_32, A.TRANSPOSED_READ,
        ),
    ),
    "gfx101": Family("RDNA1", 32, 64 << 10),
    "gfx103": Family("RDNA2", 32, 64 << 10, features=(A.DOT2,)),
    "gfx110": Family("RDNA3", 32, 64 << 10, wmma=1, features=RDNA),
    "gfx115": Family("RDNA3", 32, 64 << 10, wmma=1, features=RDNA),
    "gfx120": Family(
        "RDNA4", 32, 64 << 10, wmma=2,
        features=(*RDNA, A.FP8_OCP, A.ARCHITECTED_IDS, A.SPLIT_WAITS, A.BUFFER_ATOMICS, A.BUFFER_BF16_ATOMICS),
    ),
    "gfx1250": Family(
        "gfx1250", 32, 320 << 10, wmma=3, features=(A.DPP_MOVES, A.ROW_SWAP, A.ARCHITECTED_IDS, A.SPLIT_WAITS)
    ),
}  # fmt: skip
MEMBERS = {
    "gfx101": range(4), "gfx103": range(7), "gfx110": range(4), "gfx115": range(4), "gfx120": range(2),
}  # fmt: skip
KNOWN = {
    name: family
    for prefix, family in FAMILIES.items()
    for name in ([f"{prefix}{member}" for member in MEMBERS[prefix]] if prefix in MEMBERS else [prefix])
}


def of_option(value: str) -> str:
    """Return the name of the target of a pass option ``arch-generation-name=gfx942``."""
    return f"hip:{value}"


FLOAT8 = ("fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16")


def describe(arch: str) -> Target | None:
    """Return the target ``hip:gfx942``, also for a driver's ``gfx942:sramecc+:xnack-``; None for an empty name."""
    name = arch.partition(":")[0]
    if not name:
        return None
    if (family := KNOWN.get(name)) is None:
        known = ", ".join(KNOWN)
        raise UnknownTarget(f"target 'hip:{name}' is not known{did_you_mean(name, KNOWN) or '.'} Known are {known}")
    return Target(
        "hip",
        name,
        warp_size=family.wave,
        features=frozenset({*family.features, *COMMON, f"mfma{family.mfma}", f"wmma{family.wmma}"}),
        limits=Limits(vector_bits=128, threads=1024, registers=1 << 16, shared_bytes=family.lds),
        label=name,
        float8=() if family.mfma in (1, 2) else FLOAT8,
        slow_float8=("fp8e4b8", "fp8e5b16") if family.mfma == 4 else (),
        least_dot=(1, 1, 1),
        least_byte_dot=(1, 1, 1),
    )
