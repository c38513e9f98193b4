"""Do the encodings of an op fit the machine that the module is for?

A tensor's encoding is a distributed one, has the tensor's rank, and is made for as many lanes, warps and blocks as the
module's attributes say (`ir/module_facts.py`):

    Layout has 8 warps per CTA, but the context requires 4 warps per CTA.
"""

from collections.abc import Iterator
from functools import cache

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from tilework.ir.encodings import EncodingAttr
from tilework.ir.module_facts import find_num_warps, num_ctas, threads_per_warp
from tilework.ir.types import shape_of
from tilework.layouts.encodings import Distributed
from tilework.layouts.queries import machine_of

UNCHECKED = ("arith.", "math.", "scf.", "cf.")


def layout_problem(op: Operation) -> str | None:
    """The first operand or result of `op` whose encoding does not fit; arithmetic takes any that its operands have."""
    if op.name.startswith(UNCHECKED):
        return None
    machine = None
    for place, type in encoded_values(op):
        if machine is None:
            machine = (find_num_warps(op), threads_per_warp(op), num_ctas(op))
        if (problem := encoding_problem(type, *machine)) is not None:
            return f"{place} ({type}) has an invalid layout: {problem}"
    return None


def encoded_values(op: Operation) -> Iterator[tuple[str, TensorType[Attribute]]]:
    """The tensors of `op` that have an encoding, with words for where they are."""
    for word, values in (("Operand", op.operands), ("Result", op.results)):
        for index, value in enumerate(values):
            if isinstance(value.type, TensorType) and isinstance(value.type.encoding, EncodingAttr):
                yield f"{word} {index}", value.type


@cache
def encoding_problem(type: TensorType[Attribute], warps: int | None, threads: int, ctas: int) -> str | None:
    """What is wrong with the encoding of `type`; the number of warps is not checked where it is None."""
    attribute = type.encoding
    assert isinstance(attribute, EncodingAttr)
    encoding = attribute.data
    if not isinstance(encoding, Distributed):
        return "Non-distributed layout is not allowed in tensor type."
    if encoding.rank != (rank := len(shape_of(type))):
        return f"Layout has rank {encoding.rank}, but the tensor it's attached to has rank {rank}."
    if warps is None:
        return None
    own_warps, own_threads, own_ctas = machine_of(encoding)
    if own_threads != threads:
        return f"Layout has {own_threads} threads per warp, but the module specifies {threads} threads per warp."
    if own_warps != warps:
        return f"Layout has {own_warps} warps per CTA, but the context requires {warps} warps per CTA."
    if own_ctas != ctas:
        return f"Layout has {own_ctas} CTAs per CGA, but the context requires {ctas} CTAs per CGA."
    return None
