"""Tensors in shared memory, as compilers before 3.0 wrote them, become memory descriptors.

A tensor with a shared encoding was an ordinary value; ops that wrote it returned a new value for the same memory.
Before:

    %b = triton_gpu.alloc_tensor : tensor<3x16x16xf16, #shared>
    %c = triton_gpu.insert_slice_async %p, %b, %i, %k {axis = 0 : i32}
             : tensor<16x16x!tt.ptr<f16>, #a> -> tensor<3x16x16xf16, #shared>
    triton_gpu.async_wait {num = 0 : i32}
    %s = tensor.extract_slice %c[%i, 0, 0] [1, 16, 16] [1, 1, 1]
             : tensor<3x16x16xf16, #shared> to tensor<16x16xf16, #shared>
    %x = triton_gpu.convert_layout %s : (tensor<16x16xf16, #shared>) -> tensor<16x16xf16, #dot>

and after, with `M` for `!ttg.memdesc`:

    %b = ttg.local_alloc : () -> M<3x16x16xf16, #shared, #smem, mutable>
    %0 = ttg.memdesc_index %b[%i] : M<3x16x16xf16, #shared, #smem, mutable> -> M<16x16xf16, #shared, #smem, mutable>
    %1 = ttg.async_copy_global_to_local %p, %0 mask %k
             : tensor<16x16x!tt.ptr<f16>, #a> -> <16x16xf16, #shared, #smem, mutable>
    %2 = ttg.async_commit_group tokens %1
    %3 = ttg.async_wait {num = 0 : i32}
    %s = ttg.memdesc_index %b[%i] : M<3x16x16xf16, #shared, #smem, mutable> -> M<16x16xf16, #shared, #smem, mutable>
    %x = ttg.local_load %s : M<16x16xf16, #shared, #smem, mutable> -> tensor<16x16xf16, #dot>

The rules, by op:

    triton_gpu.alloc_tensor              ttg.local_alloc
    triton_gpu.dealloc_tensor            ttg.local_dealloc
    triton_gpu.insert_slice_async        ttg.memdesc_index, ttg.async_copy_global_to_local, ttg.async_commit_group
    tensor.insert_slice                  ttg.memdesc_index, ttg.local_store
    tensor.extract_slice                 ttg.memdesc_index of the first dimension, ttg.memdesc_subslice of the others
    triton_gpu.memdesc_subview           the same
    triton_gpu.convert_layout            ttg.local_alloc with a value, ttg.local_load, or nothing
    tt.trans                             ttg.memdesc_trans
    tt.dot                               ttng.warp_group_dot into version 3 of mma, else ttg.local_load before it

A rule takes the `Translation` and an op whose operands have their types of today, and replaces it. An op without a form
today is reported with `Translation.fail`, at the op.

Groups of copies: at first every `insert_slice_async` was a group, and `async_wait` counted them; later modules close
their groups with `async_commit_group`. A module in which that op is written anywhere keeps its groups; in any other,
each copy gets its own.

Types: memory is `mutable` when its old type, or one that views lead to from there, is that of memory which an op writes
or which a function takes as an argument. Equal types are translated alike, so loops and branches still fit. Only a
part of a buffer has a type that says more than the old one; loops and branches pass it on. The number of buffers that
the type of one of them had in between, ``!ttg.memdesc<64x64xf16, #shared, #smem, mutable, 3x64x64>``, is dropped.

Also here, because they insert ops before another one: ``tt.dot {transA = true}`` and `tt.trans` without an order.
Cost: nothing for text without old ops (`IRParser.parse_module` decides); else two walks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import NoReturn

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilework.ir import arith, cf, scf
from tilework.ir.attr_text import is_true
from tilework.ir.create import create_op, set_type
from tilework.ir.encodings import CLASSES, encoding_attr, encoding_of
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.legacy.ops import (
    OLD_OPS,
    AllocTensorOp,
    DeallocTensorOp,
    ExtractSliceOp,
    InsertSliceAsyncOp,
    InsertSliceOp,
    MemDescSubviewOp,
)
from tilework.ir.rewrite import constant, insert_before, put, replace_op
from tilework.ir.tt.function_ops import CallOp, FuncOp, ReturnOp, function_type
from tilework.ir.tt.reduce_ops import DotOp
from tilework.ir.tt.shape_ops import TransOp
from tilework.ir.ttg.memory_types import MemDescType, is_memdesc, memdesc_type, retyped
from tilework.ir.ttg.shared_memory_ops import (
    AsyncCommitGroupOp,
    AsyncCopyGlobalToLocalOp,
    LocalAllocOp,
    LocalDeallocOp,
    LocalLoadOp,
    LocalStoreOp,
    MemDescIndexOp,
    MemDescSubsliceOp,
    MemDescTransOp,
)
from tilework.ir.ttg.tensor_ops import ConvertLayoutOp
from tilework.ir.ttng import WarpGroupDotOp
from tilework.ir.types import (
    PointerType,
    Shape,
    array_values,
    bit_width,
    element_type,
    i32,
    i32_array,
    is_tensor,
    shape_of,
    string_attr,
    tensor_type,
)
from tilework.layouts.encodings import Blocked, DotOperand, NvidiaMma, Shared
from tilework.layouts.linear import LayoutError
from tilework.light_dataclass import light_dataclass
from tilework.process.plugins import find

Fail = Callable[[Operation, str], NoReturn]
SHARED_ATTRIBUTES = frozenset(attribute for kind, attribute in CLASSES.items() if issubclass(kind, Shared))
TRANSPOSED = ("transA", "transB")


def is_shared_tensor(type: Attribute) -> bool:
    """``tensor<16x16xf16, #shared>``."""
    return type.__class__ is TensorType and type.encoding.__class__ in SHARED_ATTRIBUTES  # pyright: ignore


def constant_offset(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.properties["value"]
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


def has_several(type: Attribute) -> bool:
    """``!ttg.memdesc<64x64xf16, #shared, #smem, 3x64x64>``: one of several buffers used to say how many there are."""
    return isinstance(type, MemDescType) and len(type.alloc_dims) > len(type.dims)


def trimmed(type: Attribute) -> Attribute:
    """`type` without the number of buffers."""
    if not isinstance(type, MemDescType) or not has_several(type):
        return type
    alloc = type.alloc_dims[len(type.alloc_dims) - len(type.dims) :]
    return memdesc_type(type.dims, type.element_type, type.encoding, type.is_mutable, alloc, type.memory_space)


@light_dataclass(frozen=False)
class Translation:
    """The facts about the module that the rules share."""

    fail: Fail
    written: set[Attribute]
    commits: bool  # the module closes its groups of copies itself
    started: dict[Block | None, list[SSAValue]] = field(default_factory=dict)  # copies that no group has closed

    def memory_type(self, op: Operation, old: Attribute) -> MemDescType:
        """The memory descriptor that the shared tensor `old` is today."""
        if not isinstance(old, TensorType) or not is_shared_tensor(old):
            self.fail(op, f"'{op.name}' needs a tensor with a shared encoding, not {old}")
        try:
            return memdesc_type(shape_of(old), old.element_type, old.encoding, old in self.written)
        except VerifyException as error:
            self.fail(op, f"'{op.name}' of {old}: {error}")

    def retype(self, op: Operation, value: SSAValue) -> None:
        """Give `value` the type that whole buffers have."""
        if is_shared_tensor(value.type):
            set_type(value, self.memory_type(op, value.type))

    def pass_on(self, op: Operation, source: SSAValue, target: SSAValue) -> None:
        """`target` gets the value of `source`, and so its type; one that is translated already must have it."""
        if is_shared_tensor(target.type):
            set_type(target, source.type)
        elif source.type != target.type:
            self.fail(op, f"'{op.name}' passes {source.type} to where {target.type} goes")

    def memory(self, op: Operation, value: SSAValue) -> MemDescType:
        """The type of `value`, which is memory."""
        if not isinstance(value.type, MemDescType):
            self.fail(op, f"'{op.name}' needs memory that is defined above it, not {value.type}")
        return value.type

    def lay_out(self, op: Operation, view: SSAValue, old: Attribute) -> None:
        """Give `view` the encoding of `old`, as it is written."""
        type = self.memory(op, view)
        try:
            set_type(view, retyped(type, type.dims, encoding_of(old), keep_alloc=True))
        except VerifyException as error:
            self.fail(op, f"'{op.name}' of {old}: {error}")

    def as_i32(self, op: Operation, index: int | SSAValue) -> SSAValue:
        """Return an index as an i32, the type of all indices today."""
        if isinstance(index, SSAValue):
            if index.type == i32:
                return index
            if isinstance(index.owner, arith.IndexCastOp) and index.owner.operands[0].type == i32:
                return index.owner.operands[0]
            if not isinstance(index.type, IndexType):
                self.fail(op, f"'{op.name}' has an index of type {index.type}, not i32 or index")
        known = index if isinstance(index, int) else constant_offset(index)
        if known is not None:
            new = constant(known, i32, op.location)
        else:
            assert isinstance(index, SSAValue)
            new = create_op(arith.IndexCastOp, (index,), (i32,), op.location)
        insert_before(op, new)
        return new.results[0]

    def replace(self, op: Operation, *new: Operation, result: SSAValue | None = None) -> None:
        """`new` replaces `op`, and its last result, which takes the name, for that of `op`; or an older `result`."""
        if not op.results:
            replace_op(op, *new, results=())
            return
        if result is None:
            result = new[-1].results[0]
            result._name = op.results[0]._name  # pyright: ignore[reportPrivateUsage]
        replace_op(op, *new, results=(result,))


# Memory


def translate_alloc(t: Translation, op: Operation) -> None:
    """``ttg.local_alloc``."""
    t.replace(op, LocalAllocOp.make(None, t.memory_type(op, op.results[0].type), op.location))


def translate_dealloc(t: Translation, op: Operation) -> None:
    """``ttg.local_dealloc``."""
    t.memory(op, op.operands[0])
    t.replace(op, LocalDeallocOp.make(op.operands[0], op.location))


def integer(op: Operation, name: str, default: int) -> int:
    """The integer that `op` has under `name`."""
    value = given(op, name)
    return value.value.data if isinstance(value, IntegerAttr) else default


def given(op: Operation, name: str) -> Attribute | None:
    """Return the attribute `name` of `op`; the generic form has it among the properties."""
    return op.properties.get(name, op.attributes.get(name))


def translate_insert_async(t: Translation, op: Operation) -> None:
    """``ttg.memdesc_index``, ``ttg.async_copy_global_to_local`` and perhaps ``ttg.async_commit_group``."""
    pointers, buffer, index, *more = op.operands
    if (axis := integer(op, "axis", 0)) != 0:
        t.fail(op, f"'{op.name}' has axis = {axis}: only the first dimension counts buffers")
    if not isinstance(element_type(pointers.type), PointerType):
        t.fail(op, f"'{op.name}' reads from pointers, not from {pointers.type}")
    view = index_op(t, op, buffer, t.as_i32(op, index))
    if shape_of(view.results[0].type) != shape_of(pointers.type):
        t.fail(op, f"'{op.name}' of {pointers.type} does not fill {view.results[0].type}")
    if len(more) > 2:
        t.fail(op, f"'{op.name}' has {len(more)} operands after the index: a mask and another value are known")
    mask, other = (*more, None, None)[:2]
    try:
        modes = CacheModifier(integer(op, "cache", 1)), EvictionPolicy(integer(op, "evict", 1))
    except ValueError as error:
        t.fail(op, f"'{op.name}' has a cache or evict that does not exist: {error}")
    volatile = is_true(given(op, "isVolatile"))
    copy = AsyncCopyGlobalToLocalOp.make(
        pointers, view.results[0], mask, other, op.location, cache=modes[0], evict=modes[1], is_volatile=volatile
    )
    new: list[Operation] = [view, copy]
    if t.commits:
        t.started.setdefault(op.parent, []).append(copy.results[0])
    else:
        new.append(AsyncCommitGroupOp.make((copy.results[0],), op.location))
    t.replace(op, *new, result=buffer)


def translate_commit(t: Translation, op: Operation) -> None:
    """The copies of its block since the last one are its tokens."""
    if not op.operands:
        op.operands = t.started.pop(op.parent, [])


def index_op(t: Translation, op: Operation, buffer: SSAValue, index: SSAValue) -> MemDescIndexOp:
    """One of several buffers."""
    source = t.memory(op, buffer)
    if source.alloc_dims != source.dims:
        t.fail(op, f"'{op.name}' needs whole buffers, not a part of them: {source}")
    try:
        return MemDescIndexOp.make(buffer, index, op.location)
    except VerifyException as error:
        t.fail(op, f"'{op.name}' of one of several buffers, {source}: {error}")


# Parts of memory


def view_ops(
    t: Translation,
    op: Operation,
    buffer: SSAValue,
    offsets: Sequence[int | SSAValue],
    sizes: Sequence[int],
    shape: Shape,
) -> list[Operation]:
    """The ops that give the part of `buffer` at `offsets`, which has `shape`; none if that is all of it."""
    source = t.memory(op, buffer)
    new: list[Operation] = []
    if len(shape) == len(source.dims) - 1 and sizes[0] == 1:
        if isinstance(offsets[0], int) and offsets[0] >= source.dims[0]:
            t.fail(op, f"'{op.name}' takes buffer {offsets[0]} of {source.dims[0]}: they count from 0")
        new.append(index_op(t, op, buffer, t.as_i32(op, offsets[0])))
        buffer, offsets, sizes = new[0].results[0], offsets[1:], sizes[1:]
    if tuple(sizes) != shape:
        t.fail(op, f"'{op.name}' takes {list(sizes)} elements for a tensor of {list(shape)}: only the first of the "
                   "dimensions may be left out")  # fmt: skip
    fixed = [offset if isinstance(offset, int) else constant_offset(offset) for offset in offsets]
    if None in fixed:
        t.fail(op, f"'{op.name}' is of a part of a buffer at an unknown offset: today such offsets are constants")
    if shape != shape_of(buffer.type) or any(fixed):
        try:
            new.append(MemDescSubsliceOp.make(buffer, [offset or 0 for offset in fixed], shape, op.location))
            new[-1].verify(verify_nested_ops=False)
        except VerifyException as error:
            t.fail(op, f"'{op.name}': {error}")
    return new


def slice_of(
    t: Translation, op: Operation, buffer: SSAValue, dynamic: Sequence[SSAValue]
) -> tuple[list[int | SSAValue], list[int]]:
    """The offsets and the sizes of the part of `buffer` that `op` means."""
    rank = len(t.memory(op, buffer).dims)
    lists: list[list[int]] = []
    for name in ("static_offsets", "static_sizes", "static_strides"):
        array = given(op, name)
        if not isinstance(array, DenseArrayBase) or len(integers := array_values(array)) != rank:
            t.fail(op, f"'{op.name}' needs {rank} offsets, sizes and strides, one for each dimension of its buffer")
        lists.append(list(integers))
    offsets, sizes, strides = lists
    if any(stride != 1 for stride in strides):
        t.fail(op, f"'{op.name}' has strides {strides}: only parts without holes can be taken")
    if sum(offset < 0 for offset in offsets) != len(dynamic) or min(sizes, default=0) < 0:
        t.fail(op, f"'{op.name}' has sizes that are not constants, or not one value for each unknown offset")
    values = iter(dynamic)
    return [next(values) if offset < 0 else offset for offset in offsets], sizes


def translate_extract(t: Translation, op: Operation) -> None:
    """``ttg.memdesc_index`` of the first dimension, ``ttg.memdesc_subslice`` of the others."""
    buffer, *dynamic = op.operands
    old = op.results[0].type
    t.memory_type(op, old)
    new = view_ops(t, op, buffer, *slice_of(t, op, buffer, dynamic), shape_of(old))
    if new:
        t.lay_out(op, new[-1].results[0], old)
    t.replace(op, *new, result=None if new else buffer)


def translate_subview(t: Translation, op: Operation) -> None:
    """Translate a subview as an extraction with the sizes of its result."""
    buffer, *offsets = op.operands
    source, result = t.memory(op, buffer), t.memory(op, op.results[0])
    sizes = (*(1,) * (len(source.dims) - len(result.dims)), *result.dims)
    if len(offsets) != len(source.dims):
        t.fail(op, f"'{op.name}' needs {len(source.dims)} offsets, one for each dimension of {source}")
    new = view_ops(t, op, buffer, offsets, sizes, result.dims)
    if new:
        t.lay_out(op, new[-1].results[0], result)
    t.replace(op, *new, result=None if new else buffer)


def translate_insert(t: Translation, op: Operation) -> None:
    """A view as for an extraction, and ``ttg.local_store``."""
    tensor, buffer, *dynamic = op.operands
    if not is_tensor(tensor.type):
        t.fail(op, f"'{op.name}' writes a tensor of registers, not {tensor.type}")
    new = view_ops(t, op, buffer, *slice_of(t, op, buffer, dynamic), shape_of(tensor.type))
    target = new[-1].results[0] if new else buffer
    t.replace(op, *new, LocalStoreOp.make(tensor, target, op.location), result=buffer)


# Tensors to memory and back


def translate_convert(t: Translation, op: Operation) -> None:
    """``ttg.local_alloc`` with a value, ``ttg.local_load``, or nothing."""
    source, old = op.operands[0], op.results[0].type
    if not is_shared_tensor(old):
        t.memory(op, source)
        t.replace(op, LocalLoadOp.make(source, old, op.location))
    elif not is_memdesc(source.type):
        t.replace(op, LocalAllocOp.make(source, t.memory_type(op, old), op.location))
    elif encoding_of(source.type) == encoding_of(old):
        t.replace(op, result=source)
    else:
        t.fail(op, f"'{op.name}' from one shared encoding to another: load it into registers first")


def translate_trans(t: Translation, op: Operation) -> None:
    """``ttg.memdesc_trans`` of memory; the order, where it is missing, swaps all dimensions."""
    source, old = op.operands[0], op.results[0].type
    order = op.properties.setdefault("order", i32_array(*reversed(range(len(shape_of(old))))))
    if is_memdesc(source.type):
        new = transposing(t, op, source, array_values(order))
        t.lay_out(op, new.results[0], old)
        t.replace(op, new)


def transposing(t: Translation, op: Operation, value: SSAValue, order: Shape) -> Operation:
    """The op that permutes the dimensions of `value`, which is memory or a tensor."""
    make = MemDescTransOp.make if is_memdesc(value.type) else TransOp.make
    try:
        return make(value, order, op.location)
    except (LayoutError, VerifyException) as error:
        t.fail(op, f"'{op.name}' cannot transpose {value.type}: {error}")


def translate_dot(t: Translation, op: Operation) -> None:
    """Operands are transposed by ops of their own; memory is read by ``ttng.warp_group_dot``, or loaded before."""
    a, b, c = op.operands
    parent = encoding_of(c.type)
    flags = [is_true(op.attributes.pop(name, None)) for name in TRANSPOSED]
    width = operand_width(parent, (a, b))
    factors = [transposed(t, op, value) if flag else value for value, flag in zip((a, b), flags, strict=True)]
    is_group = isinstance(parent, NvidiaMma) and parent.is_hopper and is_memdesc(factors[1].type)
    for index, value in enumerate(factors):
        if not is_group if is_memdesc(value.type) else flags[index] and parent is not None:
            factors[index] = as_dot_operand(t, op, value, index, width)
    if is_group:
        properties = {name: op.properties[name] for name in ("inputPrecision", "maxNumImpreciseAcc")}
        t.replace(op, create_op(WarpGroupDotOp, (*factors, c), (c.type,), op.location, properties, op.attributes))
    else:
        op.operands = (*factors, c)


def operand_width(parent: object, factors: Sequence[SSAValue]) -> int:
    """`kWidth` of both operands: that of one in registers, or what fits 32 bits; none without tensor cores."""
    for factor in factors:
        if isinstance(encoding := encoding_of(factor.type), DotOperand):
            return encoding.k_width
    return max(32 // bit_width(factors[0].type), 1) if isinstance(parent, NvidiaMma) else 0


def transposed(t: Translation, op: Operation, value: SSAValue) -> SSAValue:
    """`value` with its last two dimensions exchanged, before `op`."""
    rank = len(shape_of(value.type))
    if rank < 2:
        t.fail(op, f"'{op.name}' cannot transpose {value.type}: it is no matrix")
    return put(op, transposing(t, op, value, (*range(rank - 2), rank - 1, rank - 2)))


def as_dot_operand(t: Translation, op: Operation, value: SSAValue, index: int, width: int) -> SSAValue:
    """`value` in registers as operand `index` of `op`, before it."""
    parent = encoding_of(op.results[0].type)
    if not isinstance(parent, NvidiaMma | Blocked):
        t.fail(op, f"'{op.name}' needs a result in a blocked or mma encoding, not {op.results[0].type}")
    try:
        encoding = DotOperand(index, parent, width)
    except LayoutError as error:
        t.fail(op, f"'{op.name}': {error}")
    element = value.type.element_type  # pyright: ignore[reportAttributeAccessIssue]
    type = tensor_type(shape_of(value.type), element, encoding_attr(encoding))
    make = LocalLoadOp.make if is_memdesc(value.type) else ConvertLayoutOp.make
    return put(op, make(value, type, op.location))


# Text without any of these, and without tensors in shared memory, has nothing to translate.
OLD_SPELLINGS = (
    *("alloc_tensor", "triton_gpu.compute-", "extract_slice", "insert_slice", "memdesc_subview"),
    *("transA", "transB", "tt.memdesc", "tt.trans "),
)


def translate_shared_tensors(module: ModuleOp, fail: Fail) -> None:
    """Rewrite the old forms in `module`; `fail` is called with the op that has no form today, and the reason."""
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
    """Return True for an op that has to be translated, or whose types change."""
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
    """Translate a loop; carried values keep their types."""
    for source, argument, result in zip(op.operands[3:], op.regions[0].blocks[0].args[1:], op.results, strict=False):
        t.pass_on(op, source, argument)
        t.pass_on(op, source, result)


def translate_while(t: Translation, op: Operation) -> None:
    """Translate the initial values of a loop; its results are translated at its `scf.condition`."""
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
    """An attribute that is called as an option of a vendor's passes (`plugins.py`) becomes ``ttg.target =
    "cuda:80"``."""
    for name, value in tuple(module.attributes.items()):
        spelling = find("tilework.target_options", name.removeprefix("ttg."))
        if spelling is not None and isinstance(value, IntegerAttr):
            del module.attributes[name]
            module.attributes.setdefault("ttg.target", string_attr(spelling.load()(str(value.value.data))))
