"""Shapes: ranges, broadcasting, views, gathering and counting; and functions over the axes of blocks.

Two values of one operation are brought to one shape: a scalar is copied, missing leading axes are added, and axes of
size 1 are repeated, so (64,) and (32, 1) meet in (32, 64).
"""

from collections.abc import Iterable, Sequence
from functools import cache
from math import prod

from tilework.language.compile_time import constexpr
from tilework.language.dtypes import block_type, count_elements, dtype, odd_size
from tilework.language.typing.carrier import Shape
from tilework.language.values import tensor


@cache
def beyond_triton(shape: Shape) -> str | None:
    """Return the reason why Triton refuses `shape`, or None. Raises an error for a shape that tilework refuses too."""
    count_elements(shape)
    return odd_size(shape)


@cache
def block(element: dtype, shape: Shape) -> dtype:
    """The type of a block of `element`, or `element` itself for shape (); interned, so equal types are one object."""
    return block_type(element, shape) if shape else element


def retype(type: dtype, element: dtype) -> dtype:
    """`type` with another element: a block of the same shape, or `element` itself."""
    return block(element, type.sizes)


def plain_shape(shape: Iterable[object]) -> Shape:
    """The elements of `shape` as Python ints; anything that is no compile-time int is a `TypeError`."""
    sizes: list[int] = []
    for i, size in enumerate(shape):
        plain = size.value if isinstance(size, constexpr) else size
        if not isinstance(plain, int):
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got {plain!r}")
        sizes.append(plain)
    return tuple(sizes)


def shape_of(value: tensor) -> Shape:
    """The shape of a value as a plain tuple: () for a scalar."""
    return value.type.sizes


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from 0: ``normal_axis(-1, 3)`` is 2."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis + rank if axis < 0 else axis


@cache
def common_shape(left: Shape, right: Shape) -> Shape:
    """The shape both broadcast to: ``common_shape((64,), (32, 1))`` is (32, 64)."""
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and a != 1 and b != 1:
            raise incompatible(left, right, i)
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def incompatible(left: Shape, right: Shape, axis: int) -> ValueError:
    """Return the error about two shapes that differ along `axis`."""
    return ValueError(
        f"Cannot make_shape_compatible: incompatible dimensions at index {axis}: {left[axis]} and {right[axis]}; the "
        f"shapes are {list(left)} and {list(right)}"
    )


def check_range(start: object, end: object) -> None:
    """`arange` counts upwards in int32."""
    if type(start) is not int or type(end) is not int:
        raise ValueError(f"arange's arguments must be of type tl.constexpr, got {start!r} and {end!r}")
    if start < 0 or end >= 1 << 31:
        raise ValueError(f"arange must fit in int32 and start at 0 or above, got [{start}, {end})")
    if end <= start:
        raise ValueError(f"arange's end argument must be greater than the start argument: [{start}, {end})")


def check_broadcast_to(have: Shape, wanted: Shape) -> None:
    """A block has the rank already; only axes of size 1 are repeated."""
    if len(have) != len(wanted):
        raise ValueError(f"Cannot broadcast, rank mismatch: {list(have)}, {list(wanted)}")
    for i, (size, target) in enumerate(zip(have, wanted, strict=True)):
        if size != target and size != 1:
            raise ValueError(
                f"Cannot broadcast, the expanded size of the tensor ({target}) must match the existing size "
                f"({size}) at non-singleton dimension {i}: {list(have)}, {list(wanted)}"
            )


def check_reshape(have: Shape, wanted: Shape) -> None:
    """Check that a reshape keeps the number of elements."""
    if prod(wanted) != prod(have):
        raise ValueError(
            f"reshape() cannot change total number of elements in tensor: {list(have)} has {prod(have)}, "
            f"{list(wanted)} has {prod(wanted)}"
        )


def check_order(order: Shape, shape: Shape) -> None:
    """Check that an order has every axis once."""
    if len(order) != len(shape):
        raise ValueError(f"permute dims must have the same length as input shape, got {len(shape)} and {len(order)}")
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {list(order)}")


def check_gather(src: tensor, index: tensor, axis: int) -> int:
    """`axis` counted from 0; source and index differ in size there only."""
    assert index.dtype.is_int(), f"index must be an integer tensor, got {index.type}"
    shape, wanted = shape_of(src), shape_of(index)
    assert shape and len(shape) == len(wanted), (
        f"source and index tensors must have the same rank, got {list(shape)} and {list(wanted)}"
    )
    assert -len(shape) <= axis < len(shape), f"gather axis {axis} must be < source rank ({len(shape)})"
    axis %= len(shape)
    for i, (size, other) in enumerate(zip(shape, wanted, strict=True)):
        assert i == axis or size == other, (
            f"index dim {i} must match the corresponding source dim: it is {other}, not {size}"
        )
    return axis


def common_input_shape(inputs: Sequence[tensor], name: str) -> Shape:
    """The one shape that all inputs of a reduction have."""
    shapes = [shape_of(value) for value in inputs]
    if not shapes or not shapes[0]:
        raise ValueError(f"{name} needs a block, got a scalar" if shapes else f"{name} needs at least one block")
    for shape in shapes:
        if shape != shapes[0]:
            kind = "scan" if name == "scan" else "reduction"
            raise ValueError(
                f"all {kind} inputs must have the same shape, {name} got {list(shapes[0])} and {list(shape)}"
            )
    return shapes[0]


def check_combined(given: Sequence[dtype], elements: Sequence[dtype], name: str) -> None:
    """Check that a combine function returns the element types of its inputs."""
    if list(given) != list(elements):
        raise TypeError(
            f"the combine function of {name} must return the element types of its inputs: expected "
            f"({', '.join(map(str, elements))}), got ({', '.join(map(str, given))}); cast inside the function"
        )


def packed_types(types: Sequence[dtype], pack: int) -> list[dtype]:
    """The element type of each output of a mapped function, from the types of `pack` values per output."""
    if not types or len(types) % pack:
        raise ValueError(f"a function mapped with pack={pack} must return {pack} values per output, got {len(types)}")
    for first in range(0, len(types), pack):
        group = types[first : first + pack]
        if any(type != group[0] for type in group):
            raise TypeError(
                f"the {pack} packed values of one output must have one type, got ({', '.join(map(str, group))})"
            )
    for type in types:
        if type.is_block() or type.is_void():
            raise TypeError(f"a function mapped over elements must return scalars, got {type}")
    return list(types[::pack])
