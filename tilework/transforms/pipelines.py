"""The pass pipelines of the stages that all targets share, as lists of names for `run_pipeline`."""

LEGACY_TTIR_PIPELINE: list[str] = [  # Triton 3.0, for walk-through documents
    "inline",
    "triton-rewrite-tensor-pointer",
    "triton-combine",
    "canonicalize",
    "triton-reorder-broadcast",
    "cse",
    "triton-licm",
    "symbol-dce",
]


def ttir_pipeline(capability: int | None, finds_races: bool = False) -> list[str]:
    """The passes over TTIR for a GPU of compute `capability` (90 for sm_90), or None for a target without TMA.

    Who looks for races must see which loads the user has made volatile.

    >>> ttir_pipeline(90)[:3]
    ['inline', 'tt-spin-loads', 'triton-rewrite-tensor-pointer']
    """
    has_descriptors = capability is not None and capability // 10 >= 9
    return [
        "inline",
        *([] if finds_races else ["tt-spin-loads"]),
        "triton-rewrite-tensor-pointer",
        "triton-remake-carried-descriptors" if has_descriptors else "triton-rewrite-tensor-descriptor-to-pointer",
        "canonicalize",
        "triton-combine",
        "triton-reorder-broadcast",
        "cse",
        "symbol-dce",
        "triton-loop-unroll",
    ]


def checking_pipeline(sanitize: bool | str) -> list[str]:
    """What the sanitizer adds to optimised TTIR for a GPU; descriptors and block pointers have become pointers before."""
    strict = str(sanitize == "strict").lower()
    return [f"triton-check-undefined{{strict={strict}}}", "triton-check-bounds", "canonicalize", "cse"]


def ttc_pipeline(sanitize: bool | str = False) -> list[str]:
    """From optimised TTIR to loop nests over buffers, for the CPU; with checks of every access, if asked for."""
    strict = str(sanitize == "strict").lower()
    return [
        *([f"triton-check-undefined{{strict={strict}}}"] if sanitize else []),
        "triton-licm",
        "ttc-uniform-increments",
        "ttc-check-steps",
        "convert-triton-to-tile-loops",
        "canonicalize",
        "cse",
        *(["ttc-sanitize"] if sanitize else []),
    ]
