"""Tensors in shared memory, as compilers before 3.0 wrote them, become the memory descriptors of today.

A tensor with a shared encoding was an ordinary value; ops that wrote it gave a new value for the same memory. Before:

    %b = triton_gpu.alloc_tensor : tensor<3x16x16xf16, #shared>
    %c = triton_gpu.insert_slice_async %p, %b, %i, %k {axis = 0 : i32} : tensor<16x16x!tt.ptr<f16>, #a> -> tensor<3x16x16xf16, #shared>
    triton_gpu.async_wait {num = 0 : i32}
    %s = tensor.extract_slice %c[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<3x16x16xf16, #shared> to tensor<16x16xf16, #shared>
    %x = triton_gpu.convert_layout %s : (tensor<16x16xf16, #shared>) -> tensor<16x16xf16, #dot>

and after, with `M` for `!ttg.memdesc`:

    %b = ttg.local_alloc : () -> M<3x16x16xf16, #shared, #smem, mutable>
    %0 = ttg.memdesc_index %b[%i] : M<3x16x16xf16, #shared, #smem, mutable> -> M<16x16xf16, #shared, #smem, mutable>
    %1 = ttg.async_copy_global_to_local %p, %0 mask %k : tensor<16x16x!tt.ptr<f16>, #a> -> <16x16xf16, #shared, #smem, mutable>
    %2 = ttg.async_commit_group tokens %1
    %3 = ttg.async_wait {num = 0 : i32}
    %s = ttg.memdesc_index %b[%i] : M<3x16x16xf16, #shared, #smem, mutable> -> M<16x16xf16, #shared, #smem, mutable>
    %x = ttg.local_load %s : M<16x16xf16, #shared, #smem, mutable> -> tensor<16x16xf16, #dot>

Groups of copies: at first every `insert_slice_async` was a group, and `async_wait` counted them; later modules close their
groups with `async_commit_group`. A module in which that op is written anywhere keeps its groups; in any other, each copy
gets its own.

Types: memory is `mutable` when its old type, or one that views lead to from there, is that of memory which something
writes or which a function is given. So equal types stay equal, and loops and branches still fit. Only a part of a buffer
has a type that says more than the old one; loops and branches pass it on. The number of buffers that the type of one of
them had in between, ``!ttg.memdesc<64x64xf16, #shared, #smem, mutable, 3x64x64>``, is dropped.

Also here, because they put ops before another one: ``tt.dot {transA = true}`` and `tt.trans` without an order.
Cost: nothing for text in which nothing old is seen (`IRParser.parse_module` decides); else two walks.
"""

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import set_type
from tilework.ir.legacy.shared_tensor_ops import (
    OLD_OPS,
    AllocTensorOp,
    DeallocTensorOp,
    ExtractSliceOp,
    InsertSliceAsyncOp,
    InsertSliceOp,
    MemDescSubviewOp,
)
from tilework.ir.legacy.shared_tensor_rules import (
    TRANSPOSED,
    Fail,
    Translation,
    has_several,
    is_shared_tensor,
    translate_alloc,
    translate_commit,
    translate_convert,
    translate_dealloc,
    translate_dot,
    translate_extract,
    translate_insert,
    translate_insert_async,
    translate_subview,
    translate_trans,
    trimmed,
)
from tilework.ir.tt.dot_ops import DotOp
from tilework.ir.tt.function_ops import CallOp, FuncOp, ReturnOp, function_type
from tilework.ir.tt.shape_ops import TransOp
from tilework.ir.ttg.async_copy_ops import AsyncCommitGroupOp
from tilework.ir.ttg.convert_op import ConvertLayoutOp
from tilework.ir.ttg.memdesc_types import is_memdesc
from tilework.ir.types import string_attr
from tilework.plugins import find

# Text without any of these, and without tensors in shared memory, has nothing to translate.
OLD_WORDS = (
    *("alloc_tensor", "triton_gpu.compute-", "extract_slice", "insert_slice", "memdesc_subview"),
    *("transA", "transB", "tt.memdesc", "tt.trans "),
)


def translate_shared_tensors(module: ModuleOp, fail: Fail) -> None:
    """Rewrite the old forms in `module`; `fail` is told the op that has no form today, and why."""
    work = [op for op in module.walk() if is_old(op)]
    for op in work:
        if type(op) not in RULES and any(is_shared_tensor(value.type) for value in values_of(op)):
            fail(op, f"'{op.name}' of a tensor in shared memory has no form today")
        if type(op) in OLD_OPS:
            check_arity(op, fail)
    commits = any(type(op) is AsyncCommitGroupOp for op in work)
    translation = Translation(fail, written_types(work), commits)
    for op in work:
        for value in given_by(op):
            set_type(value, trimmed(value.type))
        RULES.get(type(op), leave)(translation, op)
    name_target(module)


def check_arity(op: Operation, fail: Fail) -> None:
    """The generic form may have anything."""
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException as error:
        fail(op, f"'{op.name}': {str(error).strip()}")


def is_old(op: Operation) -> bool:
    """An op that has to be translated, or to be told the types of today."""
    kind = type(op)
    if kind in OLD_OPS or kind is FuncOp or kind is AsyncCommitGroupOp:
        return True
    if kind is TransOp or kind is DotOp:
        flagged = "order" not in op.properties if kind is TransOp else any(name in op.attributes for name in TRANSPOSED)
        if flagged or any(is_memdesc(operand.type) for operand in op.operands):
            return True
    return any(is_shared_tensor(value.type) or has_several(value.type) for value in values_of(op))


def values_of(op: Operation) -> Iterator[SSAValue]:
    """Its operands, its results, and the arguments of its blocks."""
    yield from op.operands
    yield from given_by(op)


def given_by(op: Operation) -> Iterator[SSAValue]:
    """Its results, and the arguments of its blocks."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def written_types(work: Sequence[Operation]) -> set[Attribute]:
    """The old types whose memory is mutable."""
    views: set[frozenset[Attribute]] = set()
    written: set[Attribute] = set()
    for op in work:
        if type(op) in (ExtractSliceOp, TransOp):
            views.add(frozenset((op.operands[0].type, op.results[0].type)))
        elif type(op) in (AllocTensorOp, InsertSliceAsyncOp, InsertSliceOp):
            written.add(op.results[0].type)
        elif type(op) is FuncOp:
            written.update(value.type for value in values_of(op) if is_shared_tensor(value.type))
    for _ in views:  # the longest way from one type to another passes each view once
        for pair in views:
            if pair & written:
                written |= pair
    return written


# Control flow


def translate_function(t: Translation, op: Operation) -> None:
    """The arguments of all its blocks, and its type."""
    assert isinstance(op, FuncOp)
    for value in values_of(op):
        t.retype(op, value)
    signature = op.function_type
    if any(is_shared_tensor(type) or has_several(type) for type in (*signature.inputs, *signature.outputs)):
        today = [[t.memory_type(op, type) if is_shared_tensor(type) else trimmed(type) for type in types]
                 for types in (signature.inputs, signature.outputs)]  # fmt: skip
        op.properties["function_type"] = function_type(tuple(today[0]), tuple(today[1]))


def translate_call(t: Translation, op: Operation) -> None:
    """Its results."""
    for value in op.results:
        t.retype(op, value)


def translate_for(t: Translation, op: Operation) -> None:
    """What is carried keeps its type."""
    for source, argument, result in zip(op.operands[3:], op.regions[0].blocks[0].args[1:], op.results, strict=False):
        t.pass_on(op, source, argument)
        t.pass_on(op, source, result)


def translate_while(t: Translation, op: Operation) -> None:
    """As a loop; what leaves it is known at its `scf.condition`."""
    for source, argument in zip(op.operands, op.regions[0].blocks[0].args, strict=False):
        t.pass_on(op, source, argument)


def translate_condition(t: Translation, op: Operation) -> None:
    """The arguments of the body and the results of the loop."""
    loop = op.parent_op()
    assert loop is not None
    for source, argument, result in zip(op.operands[1:], loop.regions[1].blocks[0].args, loop.results, strict=False):
        t.pass_on(op, source, argument)
        t.pass_on(op, source, result)


def translate_yield(t: Translation, op: Operation) -> None:
    """The results of the op around it, or the values of the next iteration."""
    parent = op.parent_op()
    targets = () if parent is None else parent.operands if isinstance(parent, scf.WhileOp) else parent.results
    for source, target in zip(op.operands, targets, strict=False):
        t.pass_on(op, source, target)


def translate_branch(t: Translation, op: Operation) -> None:
    """The arguments of blocks have their types since `translate_function`."""
    targets = [argument for block in op.successors for argument in block.args]
    for source, target in zip(op.operands[len(op.operands) - len(targets) :], targets, strict=False):
        t.pass_on(op, source, target)


def leave(t: Translation, op: Operation) -> None:
    """Its types are those of other ops."""


RULES: dict[type[Operation], Callable[[Translation, Operation], None]] = {
    AllocTensorOp: translate_alloc,
    AsyncCommitGroupOp: translate_commit,
    CallOp: translate_call,
    cf.BranchOp: translate_branch,
    cf.ConditionalBranchOp: translate_branch,
    ConvertLayoutOp: translate_convert,
    DeallocTensorOp: translate_dealloc,
    DotOp: translate_dot,
    ExtractSliceOp: translate_extract,
    FuncOp: translate_function,
    InsertSliceAsyncOp: translate_insert_async,
    InsertSliceOp: translate_insert,
    MemDescSubviewOp: translate_subview,
    ReturnOp: leave,
    scf.ConditionOp: translate_condition,
    scf.ForOp: translate_for,
    scf.IfOp: leave,
    scf.WhileOp: translate_while,
    scf.YieldOp: translate_yield,
    TransOp: translate_trans,
}


def name_target(module: ModuleOp) -> None:
    """An attribute that is called as an option of a vendor's passes (`plugins.py`) becomes ``ttg.target = "cuda:80"``."""
    for name, value in tuple(module.attributes.items()):
        spelling = find("tilework.target_options", name.removeprefix("ttg."))
        if spelling is not None and isinstance(value, IntegerAttr):
            del module.attributes[name]
            module.attributes.setdefault("ttg.target", string_attr(spelling.load()(str(value.value.data))))
