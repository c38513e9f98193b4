"""The verifier: each op satisfies its own rules, and each operand is defined before it is used.

    if (problem := first_problem(module)) is not None:
        op, message = problem

The rules of the comparisons and casts of `arith`, between the types of one op, are here too. Verification costs about
as much as compiling: it is for tests and on request.

`layout_problem`: the encoding of a tensor is a distributed one, has the tensor's rank, and is for as many lanes, warps
and blocks as the module's attributes have (`ir/module_facts.py`); that of memory is for as many blocks:

    Layout has 8 warps per CTA, but the context requires 4 warps per CTA.

`flow_problem`: the values that control flow passes have the types of their destination. The op satisfies its own rules
already: the counts of its operands, regions and blocks are right.

    %r = scf.if %c -> (i32) { scf.yield %x : f32 } else { ... }        yields (f32), but gives (i32)
    cf.br ^bb1(%x : f32)                                               passes (f32) to a block of (i32)
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import prod

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from tilework.ir import arith, cf, scf
from tilework.ir.arith import CMPF_PREDICATES, CMPI_PREDICATES, is_int_or_index
from tilework.ir.constraints import names
from tilework.ir.encodings import EncodingAttr, encoding_of
from tilework.ir.module_facts import find_num_warps, num_ctas, threads_per_warp
from tilework.ir.tt.function_ops import CallOp
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import bit_width, element_type, i1, is_float, is_integer, shape_of, with_element
from tilework.layouts.encodings import Distributed, Shared
from tilework.layouts.to_linear import machine_of

UNCHECKED = ("arith.", "math.", "scf.", "cf.")


def layout_problem(op: Operation) -> str | None:
    """The first operand or result of `op` whose encoding does not fit; arithmetic takes any that its operands have."""
    if op.name.startswith(UNCHECKED):
        return None
    machine = None
    for position, type in encoded_values(op):
        if machine is None:
            machine = (find_num_warps(op), threads_per_warp(op), num_ctas(op))
        if (problem := encoding_problem(type, *machine)) is not None:
            return f"{position} ({type}) has an invalid layout: {problem}"
    return None


def encoded_values(op: Operation) -> Iterator[tuple[str, Attribute]]:
    """The types of tensors and memory of `op` that have an encoding, each with its position in words: ``Operand 0``."""
    for role, values in (("Operand", op.operands), ("Result", op.results)):
        for index, value in enumerate(values):
            if isinstance(value.type, TensorType | MemDescType) and isinstance(value.type.encoding, EncodingAttr):
                yield f"{role} {index}", value.type


@cache
def encoding_problem(type: Attribute, warps: int | None, threads: int, ctas: int) -> str | None:
    """Return the problem with the encoding of `type`, or None; the number of warps is not checked where it is None, nor
    that of blocks."""
    encoding = encoding_of(type)
    if isinstance(type, MemDescType) and isinstance(encoding, Shared):
        return None if warps is None else memory_problem(type, encoding, ctas)
    assert encoding is not None
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


def memory_problem(type: MemDescType, encoding: Shared, ctas: int) -> str | None:
    """The layout of memory is for all blocks of the cluster, and each of them has an element."""
    bases = encoding.cga_bases
    if (own := 1 << len(bases)) != ctas:
        return f"Layout has {own} CTAs per CGA, but the context requires {ctas} CTAs per CGA."
    least = 1 << sum(map(any, bases))
    if (count := prod(type.alloc_dims[len(type.alloc_dims) - encoding.rank :])) < least:
        return f"Layout has tensor size at least {least}, but the memdesc type has {count} elements."
    return None


def types_of(values: Iterable[SSAValue]) -> list[Attribute]:
    return [value.type for value in values]


def end_problem(region: Region, end: type[Operation], first: int, wanted: list[Attribute]) -> str | None:
    """The region ends with an `end` whose operands from `first` on have the `wanted` types."""
    for last in (block.last_op for block in region.blocks):
        if last is None or not (last.successors or type(last) is end):
            return f"has a region that ends with {last.name if last else 'nothing'}, not with {end.name}"
        if type(last) is end and (found := types_of(last.operands[first:])) != wanted:
            return f"has a region that passes on {names(found)}, not {names(wanted)}"
    return None


def if_problem(op: Operation) -> str | None:
    results = types_of(op.results)
    then, other = op.regions
    if results and not other.blocks:
        return f"must have an else block if defining values: {names(results)}"
    return end_problem(then, scf.YieldOp, 0, results) or end_problem(other, scf.YieldOp, 0, results)


def for_problem(op: Operation) -> str | None:
    arguments, carried = types_of(op.regions[0].blocks[0].args), types_of(op.operands[3:])
    if not arguments or any(bound.type != arguments[0] for bound in op.operands[:3]):
        return "needs an induction variable of the same type as the bounds and the step"
    if arguments[1:] != carried:
        return f"carries {names(carried)} into a block of {names(arguments[1:])}"
    if carried != (results := types_of(op.results)):
        return f"carries {names(carried)}, but gives {names(results)}"
    return end_problem(op.regions[0], scf.YieldOp, 0, carried)


def while_problem(op: Operation) -> str | None:
    before, after = op.regions
    carried, passed = types_of(op.operands), types_of(op.results)
    for region, wanted in ((before, carried), (after, passed)):
        if (problem := edge_problem(region.blocks[0], wanted)) is not None:
            return problem
    return end_problem(before, scf.ConditionOp, 1, passed) or end_problem(after, scf.YieldOp, 0, carried)


def edge_problem(block: Block, found: list[Attribute]) -> str | None:
    if found != (wanted := types_of(block.args)):
        return f"passes {names(found)} to a block of {names(wanted)}"
    return None


def conditional_branch_problem(op: Operation) -> str | None:
    assert isinstance(op, cf.ConditionalBranchOp)
    then, other = types_of(op.then_arguments), types_of(op.else_arguments)
    return edge_problem(op.then_block, then) or edge_problem(op.else_block, other)


FLOWS: dict[type[Operation], Callable[[Operation], str | None]] = {
    cf.BranchOp: lambda op: edge_problem(op.successors[0], types_of(op.operands)),
    cf.ConditionalBranchOp: conditional_branch_problem,
    scf.ExecuteRegionOp: lambda op: end_problem(op.regions[0], scf.YieldOp, 0, types_of(op.results)),
    scf.ForOp: for_problem,
    scf.IfOp: if_problem,
    scf.WhileOp: while_problem,
}


def flow_problem(op: Operation) -> str | None:
    """Return the problem with the values that `op` passes on, or None."""
    rule = FLOWS.get(type(op))
    return None if rule is None else rule(op)


# What xDSL puts before the reason: "operand 'ptr' at position 0 does not verify:", then a line end.
PLACE = re.compile(r"^(\w+ '\w+') at position \d+ does not verify:\s+")
Kind = Callable[[Attribute], bool]
COMPARISONS: dict[type[Operation], tuple[Kind, int]] = {  # what is compared, and how many predicates there are
    arith.CmpiOp: (is_int_or_index, len(CMPI_PREDICATES)),
    arith.CmpfOp: (is_float, len(CMPF_PREDICATES)),
}
CASTS: dict[type[Operation], tuple[Kind, Kind, int]] = {  # from, to, and the sign of the change of width
    arith.ExtSIOp: (is_integer, is_integer, 1),
    arith.ExtUIOp: (is_integer, is_integer, 1),
    arith.TruncIOp: (is_integer, is_integer, -1),
    arith.SIToFPOp: (is_integer, is_float, 0),
    arith.UIToFPOp: (is_integer, is_float, 0),
    arith.FPToSIOp: (is_float, is_integer, 0),
    arith.FPToUIOp: (is_float, is_integer, 0),
    arith.IndexCastOp: (is_int_or_index, is_int_or_index, 0),
}
LOCAL = ("arith.", "math.", "tt.", "ttg.", "ttng.")
SOUND: dict[tuple[int, ...], list[object]] = {}  # the parts of ops without problems, by the identities of these parts
MOST_SOUND = 50_000


def verify(module: Operation) -> None:
    """Raise a `VerifyException` that names the first op that is not well formed."""
    if (problem := first_problem(module)) is not None:
        op, message = problem
        raise VerifyException(f"'{op.name}' op {message}")


def first_problem(root: Operation) -> tuple[Operation, str] | None:
    """The first op under `root` that is not well formed, and what is wrong with it."""
    positions = {op: index for index, op in enumerate(root.walk())}
    for op in positions:
        message = op_problem(op) or layout_problem(op) or use_problem(op, positions) or user_problem(op, positions)
        if message is not None:
            return op, message
    return None


def op_problem(op: Operation) -> str | None:
    """Return the problem with `op` alone, or None; most ops of a module equal one that was checked before a pass."""
    if op.regions or not is_local(type(op)):
        return problem_of(op)
    seen: list[object] = [type(op), len(op.operands), *(value.type for value in (*op.operands, *op.results))]
    for group in (op.properties, op.attributes):
        seen += (*group, *group.values())
    key = tuple(map(id, seen))
    if key in SOUND:
        return None
    if (problem := problem_of(op)) is None:
        if len(SOUND) >= MOST_SOUND:
            SOUND.clear()
        SOUND[key] = seen
    return problem


@cache
def is_local(kind: type[Operation]) -> bool:
    """Return True if ops of a kind look at nothing but their own types and attributes."""
    if getattr(kind, "SEES_MODULE", False):
        return False
    return kind.name.startswith(LOCAL) and kind is not CallOp and not kind.has_trait(IsTerminator)


def problem_of(op: Operation) -> str | None:
    if (comparison := COMPARISONS.get(type(op))) is not None:
        return comparison_problem(op, *comparison)
    if (cast := CASTS.get(type(op))) is not None:
        return cast_problem(op, *cast)
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        message = PLACE.sub(r"\1 ", str(error).strip())
        return f"property {message}" if message.startswith("must be") else message
    return flow_problem(op)


def arity_problem(op: Operation, operands: int) -> str | None:
    if len(op.operands) != operands or len(op.results) != 1 or op.regions or op.successors:
        return f"has {operands} operand{'s' if operands > 1 else ''} and one result, nothing else"
    return None


def comparison_problem(op: Operation, is_kind: Kind, predicates: int) -> str | None:
    if (problem := arity_problem(op, 2)) is not None:
        return problem
    predicate = op.properties.get("predicate")
    if not isinstance(predicate, IntegerAttr) or not 0 <= predicate.value.data < predicates:
        return f"needs a predicate from 0 to {predicates - 1}, not {predicate}"
    lhs, rhs = (operand.type for operand in op.operands)
    if lhs != rhs:
        return f"compares {lhs} with {rhs}"
    if not is_kind(element_type(lhs)):
        return f"cannot compare {lhs}"
    if op.results[0].type != with_element(lhs, i1):
        return f"compares {lhs}, so its result is {with_element(lhs, i1)}, not {op.results[0].type}"
    return None


def cast_problem(op: Operation, is_source: Kind, is_target: Kind, growth: int) -> str | None:
    if (problem := arity_problem(op, 1)) is not None:
        return problem
    source, target = op.operands[0].type, op.results[0].type
    if shape_of(source) != shape_of(target):
        return f"casts {source} to {target}: the shapes differ"
    if not (is_source(element_type(source)) and is_target(element_type(target))):
        return f"cannot cast {source} to {target}"
    if growth and (bit_width(target) - bit_width(source)) * growth <= 0:
        return f"casts {source} to {target}, which is not {'wider' if growth > 0 else 'narrower'}"
    return None


def use_problem(op: Operation, positions: dict[Operation, int]) -> str | None:
    """Return an operand that is not visible at `op`."""
    for index, operand in enumerate(op.operands):
        if not is_visible(operand, op, positions):
            return f"operand #{index} does not dominate this use"
    return None


def user_problem(op: Operation, positions: dict[Operation, int]) -> str | None:
    """A value of `op` with a user that is not in the module.

    Such a user is an op that a pass made and did not insert, or took out without dropping its operands: it is invisible
    in the text and keeps `op` alive.
    """
    inner = (argument for region in op.regions for block in region.blocks for argument in block.args)
    for value in (*(op.results if op.parent is not None else ()), *inner):
        for use in value.uses:
            if use.operation not in positions:
                return f"has a value used by '{use.operation.name}', which is not in the module"
    return None


def is_visible(value: SSAValue, user: Operation, positions: dict[Operation, int]) -> bool:
    """Return True if `value` comes from a block around `user`, above it; other blocks of the same region are
    trusted."""
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    inner: Operation | None = user
    while inner is not None and (block := inner.parent) is not None:
        if block is home:
            return isinstance(owner, Block) or positions.get(owner, len(positions)) < positions[inner]
        if home is not None and block.parent is home.parent:
            return True
        inner = block.parent_op()
    return False
