"""The features of NVIDIA's GPUs, by compute capability: 90 is Hopper.

    >>> describe("90").limits.shared_bytes
    232448

Sources: the PTX ISA ("Target ISA Notes") for instructions, the CUDA programming guide ("Compute Capabilities") for
limits.
"""

import re

from tilework.target import Feature, Limits, Rates, Target

SINCE: dict[int, tuple[Feature, ...]] = {
    75: (Feature.MATRIX_LOAD,),
    80: (
        *(Feature.ASYNC_COPY, Feature.BF16_ARITHMETIC, Feature.CACHE_POLICY, Feature.CONVERT_PAIRS, Feature.MBARRIER),
        *(Feature.MMA, Feature.WARP_REDUCTION),
    ),
    86: (Feature.MIN_MAGNITUDE,),
    89: (Feature.FP8_CONVERT, Feature.MMA_FP8),
    90: (
        *(Feature.ASYNC_PROXY, Feature.BF16_ATOMICS, Feature.BF16_FROM_INTEGER, Feature.CLUSTERS, Feature.MATRIX_STORE),
        *(Feature.MBARRIER_BYTES, Feature.MMA_F64_ROWS, Feature.TMA, Feature.VECTOR_ATOMICS),
    ),
}
ONLY: dict[Feature, range | tuple[int, ...]] = {
    Feature.WGMMA: range(90, 100),
    Feature.MMA_F64: (80, 90),
    Feature.MMA_FP8_FAST: (89, 120),
}
SHARED_BYTES = {  # the maximum of one block, from this capability on
    **{0: 48 << 10, 70: 96 << 10, 75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10},
    **{90: 227 << 10, 120: 99 << 10},
}

# H200: 2048 f16 multiply-adds per cycle are 989 TFLOP/s at 1.83 GHz; a copy reaches 4.3 TB/s. A100: 1.55 TB/s.
# `l2_bytes` is the width of a multiprocessor's port to L2.
RATES = {
    80: Rates(
        multiprocessors=108, gigahertz=1.41, macs={8: 2048, 16: 1024, 32: 512, 64: 64}, warp_macs=1.0, mufu=16,
        issues=4, shared_bytes=128, l2_bytes=64, dram_bytes=1555 / 1.41 / 108, memory_cycles=600, barrier_cycles=40,
        warps=64, blocks=32, shared_memory=164 << 10, reserved_shared=1 << 10,
    ),
    90: Rates(
        multiprocessors=132, gigahertz=1.83, macs={8: 4096, 16: 2048, 32: 1024, 64: 128}, warp_macs=0.5, mufu=16,
        issues=4, shared_bytes=128, l2_bytes=64, dram_bytes=4300 / 1.83 / 132, memory_cycles=700, barrier_cycles=40,
        warps=64, blocks=32, shared_memory=228 << 10, reserved_shared=1 << 10,
    ),
}  # fmt: skip


def describe(arch: str) -> Target | None:
    """Return the target of compute capability `arch`; None if it is not an integer."""
    if not arch.isdecimal():
        return None
    capability = int(arch)
    features = {feature for first, added in SINCE.items() if first <= capability for feature in added}
    features |= {feature for feature, capabilities in ONLY.items() if capability in capabilities}
    return Target(
        "cuda",
        capability,
        warp_size=32,
        features=frozenset(features),
        limits=Limits(
            vector_bits=128,
            threads=1024,
            registers=1 << 16,
            shared_bytes=SHARED_BYTES[max(first for first in SHARED_BYTES if first <= capability)],
        ),
        label=f"compute capability ({capability})",
        float8=("fp8e4b15", "fp8e4nv", "fp8e5") if Feature.FP8_CONVERT in features else ("fp8e4b15", "fp8e5"),
        slow_float8=("fp8e4b15",) if Feature.TMA in features else (),
        least_dot=(1, 1, 16),
        least_byte_dot=(1, 1, 32),
        rates=RATES.get(capability),
    )


def of_option(value: str) -> str:
    """Return the name of the target of a pass option ``compute-capability=90``."""
    return f"cuda:{value}"


def parts_of(arch: str) -> tuple[int, str]:
    """Split an arch: ``"sm90"`` -> 90, ""; ``"sm_90a"`` -> 90, "a"."""
    found = re.fullmatch(r"sm_?(\d+)([af]?)", arch)
    if found is None:
        raise ValueError(f"arch {arch!r}: expected sm and a number, for example sm90")
    return int(found[1]), found[2]


def capability_of(arch: str) -> int:
    return parts_of(arch)[0]


def target_of(arch: str) -> Target:
    """Return the target that the option ``arch="sm90a"`` names."""
    return Target.parse(f"cuda:{capability_of(arch)}")
