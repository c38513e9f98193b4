"""The pass pipelines of the stages that all targets share, as lists of names for `run_pipeline`."""

from collections.abc import Sequence

from tilework.target import Feature, Target

COPIED_DESCRIPTORS = ["tt-odd-descriptors-to-pointers", "triton-remake-carried-descriptors"]


def ttir_pipeline(
    target: Target, finds_races: bool = False, checks: Sequence[str] = (), reproducible: bool = False
) -> list[str]:
    """The passes over TTIR; descriptors are kept on targets with TMA, and become pointers elsewhere.

    The race detector must see which loads the user has made volatile, so that spin loads are not marked for it
    (`finds_races`). `checks` are the passes of the sanitizer. Tiles of GPUs are padded last, so that all passes see the
    sizes of the user.

    >>> ttir_pipeline(Target.parse("cuda:90"))[:3]
    ['inline', 'tt-spin-loads', 'triton-count-exits']
    """
    has_descriptors = Feature.TMA in target.features
    is_ordered = target.warp_size == 1 or reproducible  # accesses of a program, also through arguments that overlap
    return [
        "inline",
        *([] if finds_races else ["tt-spin-loads"]),
        f"triton-count-exits{'{may-alias=true}' if is_ordered else ''}",
        *(["triton-lift-skipped-loads"] if target.warp_size > 1 else []),
        "triton-rewrite-tensor-pointer",
        *(COPIED_DESCRIPTORS if has_descriptors else ["triton-rewrite-tensor-descriptor-to-pointer"]),
        "canonicalize",
        "triton-combine",
        "triton-reorder-broadcast",
        "cse",
        "symbol-dce",
        "triton-loop-unroll",
        *(["tt-visible-nans"] if reproducible else []),
        *(["tt-memory-in-order"] if reproducible and target.warp_size > 1 else []),
        *checks,
        *(["pad-tiles"] if target.warp_size > 1 else []),
    ]


def checking_pipeline(sanitize: bool | str) -> list[str]:
    """The passes that the sanitizer adds to optimised TTIR for a GPU; descriptors and block pointers are pointers
    by then."""
    strict = str(sanitize == "strict").lower()
    return [f"triton-check-undefined{{strict={strict}}}", "triton-check-bounds", "canonicalize", "cse"]


def ttc_pipeline(sanitize: bool | str = False, may_alias: bool = False) -> list[str]:
    """The passes from optimised TTIR to loop nests over buffers, for the CPU; with checks of accesses if `sanitize`.

    `may_alias`: arguments may be the same or overlapping memory.
    """
    strict = str(sanitize == "strict").lower()
    return [
        *([f"triton-check-undefined{{strict={strict}}}"] if sanitize else []),
        "triton-licm",
        "ttc-uniform-increments",
        "ttc-check-steps",
        f"convert-triton-to-tile-loops{'{may-alias=true}' if may_alias else ''}",
        "canonicalize",
        "cse",
        *(["ttc-sanitize"] if sanitize else []),
    ]
