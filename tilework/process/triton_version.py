"""The version of Triton that tilework follows, and the differences that can be switched, as one table.

`TILEWORK_TRITON_VERSION` (the knob `language.triton_version`) selects the version. A difference is a row of
`DIFFERENCES`: the first version that has it, and either what it is in words or, for a message, the text before and
since. Code asks for a row by name::

    if follows("negative-unsqueeze"): ...
    raise ValueError(message("profiler-hook", hook=repr(hook), name=hook))

What does not change the meaning of a program written for an older version has no row: new names are always there, and
text of older IR is always read.
"""

from typing import NamedTuple

from tilework import knobs

VERSIONS = ("3.6.0", "3.7.1", "3.8.0")


class Difference(NamedTuple):
    """One difference between two versions of Triton."""

    since: str  # the first version that behaves as in `after`
    before: str
    after: str


DIFFERENCES: dict[str, Difference] = {
    "callee-names": Difference(
        "3.7.1",
        "the constants of a call follow the types, in a second list: m.f__i32__(1,)cconstexpr_4_",
        "all arguments are joined in order: m.f__i32_c4",
    ),
    "call-errors": Difference(
        "3.7.1",
        "a wrong call of a jit function gives Python's own message: f() missing 1 required positional argument: 'y'",
        "it gives the message of inspect.Signature.bind: missing a required argument: 'y'",
    ),
    "scale-shapes": Difference(
        "3.7.1",
        "lhs_scale must be a tensor of shape [64, 2]. Got ['64', '4']",
        "lhs_scale must be a tensor of shape [..., 64, 2]. Got ['64', '4']",
    ),
    "block-pointers-deprecated": Difference(
        "3.7.1",
        "tl.make_block_ptr gives no warning",
        "it gives a UserWarning",
    ),
    "deprecations-shown": Difference(
        "3.7.1",
        "deprecated uses of Python's max and min are DeprecationWarnings",
        "they are UserWarnings, which Python shows by default",
    ),
    "negative-unsqueeze": Difference(
        "3.8.0",
        "tl.unsqueeze(x, -1) inserts an axis before the last one",
        "it appends an axis after the last one",
    ),
    "block-pointers-removed": Difference("3.8.0", "tl.make_block_ptr makes a block pointer", "it is an error"),
    "cat-in-order": Difference(
        "3.8.0",
        "tl.cat with can_reorder returns the elements of two 1-D blocks in any order",
        "can_reorder is ignored",
    ),
    "single-config": Difference(
        "3.8.0",
        "a configuration that is the only one left by pruning is measured",
        "it is taken without a measurement",
    ),
    "fraction-of-pruned": Difference(
        "3.8.0",
        "a fraction as `top_k` is one of all configurations of autotune",
        "it is one of those that early_config_prune leaves",
    ),
    "schedule-hint": Difference(
        "3.8.0",
        "the option schedule_hint of AMD GPUs is none where a launch does not name it",
        "it is the empty text, which means the same",
    ),
    "fp8-division": Difference(
        "3.8.0",
        "two fp8 values of one type, or one and a number, are divided in fp8: x / 2.0 is fp8",
        "/, // and % of them are computed in fp32, which is also the type of the result",
    ),
    "keyword-only-memory": Difference(
        "3.8.0",
        "tl.load and tl.store accept all parameters by position",
        "the parameters after `mask` and `other` are keyword-only",
    ),
    "histogram-of-32-bits": Difference(
        "3.8.0",
        "tl.histogram counts integers of any width",
        "integers of any width other than 32 bits are an error",
    ),
    "unpacking-length": Difference(
        "3.8.0",
        "a, b = (1, 2, 3) drops the last value, with a warning",
        "it is an error",
    ),
    "comprehension-filters": Difference(
        "3.8.0",
        "Triton ignores `if` in a comprehension; tilework applies it, and says so where programs must run on Triton",
        "it is applied",
    ),
    "tuple-names": Difference("3.7.1", "[:int32,:fp32]", "[int32,fp32]"),
    "return-promotion": Difference(
        "3.7.1",
        "Inconsistent return types: {left} and {right}",
        "Return type mismatch: {left} and {right}. Note all return types were: [{every}]",
    ),
    "aot-files": Difference(
        "3.7.1",
        "the suffix of a kernel compiled ahead of time lists every parameter (0d12c); C++ for HIP",
        "it lists the specialised parameters only (0d2c); C for HIP",
    ),
    "capability-11": Difference("3.7.1", "is_blackwell is for capability 10", "is_blackwell is for 10 and 11"),
    "launch-metrics": Difference(
        "3.7.1",
        "the metrics of a launch are flops, flops8 to flops64 and bytes from its launch_metadata",
        "they are all numbers and tensors in its launch_metadata",
    ),
    "profiler-hook": Difference("3.7.1", "Unknown hook: {name}", "Unsupported hook: {hook}"),
    "link-suffix": Difference("3.7.1", "{suffix} is not a valid kernel suffix", "Has invalid extra suffix: {rest}"),
    "consan-overflow": Difference(
        "3.7.1",
        "instrumentation modes turn on everything that `debug` turns on",
        "they also turn off overflow checks",
    ),
    "pointer-argument": Difference("3.7.1", "Pointer argument (at {position})", "Pointer argument"),
    "ragged-parameters": Difference(
        "3.7.1",
        "the functions of ragged_tma take batch_offset, batch_size",
        "they take slice_off, slice_size",
    ),
    "stages-hook-key": Difference(
        "3.7.1",
        "`add_stages_inspection_hook` is called only with the stages, and its kernels are not cached",
        "it is also called without arguments, and then returns the (key, hash) of its stages",
    ),
}


def selected() -> str:
    """Return the version of Triton whose names, messages and rules hold."""
    version = knobs.language.triton_version
    if version not in VERSIONS:
        raise ValueError(f"TILEWORK_TRITON_VERSION is {', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}, not {version!r}")
    return version


def distribution() -> str:
    """Return the version of the distribution `triton` that tilework is: by PEP 440 it satisfies ``triton==3.7.1``."""
    return f"{selected()}+tilework"


def follows(name: str) -> bool:
    """Return True if the selected version has the difference `name`."""
    return VERSIONS.index(selected()) >= VERSIONS.index(DIFFERENCES[name].since)


def message(name: str, /, **values: object) -> str:
    """Return the selected version's text of the message `name`, with `values` in its fields."""
    row = DIFFERENCES[name]
    return (row.after if follows(name) else row.before).format(**values)
