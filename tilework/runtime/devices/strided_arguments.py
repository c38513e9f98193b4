"""Arrays with strides that their kernel does not know: a likely mistake; the sanitizer and `tilework explain` note it.

    double[(1,)](x[:, ::2], n, BLOCK=64)     shape (8, 4), strides (8, 2): `double` knows neither 8 nor 2

A kernel gets the address of an array's first element, not its shape or strides, so `x_ptr + i` walks through memory as
it is, gaps included. A kernel that is right for such an array gets a stride as an argument, or has it in a descriptor.
This is a guess: an array is reported if no number among the arguments is one of its strides. Not reported are arrays
without gaps that are all ordered alike, as a kernel for single elements may well have them.
"""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NamedTuple

HELP = (
    "pass its strides, x.strides[0] // x.itemsize in NumPy and x.stride(0) in torch, or a copy without gaps,"
    " np.ascontiguousarray(x) or x.contiguous()"
)


class StridedArgument(NamedTuple):
    """An array, and its strides in elements."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def message(self) -> str:
        return (
            f"argument '{self.name}' is not contiguous: its shape is {self.shape}, its strides are {self.strides}"
            " elements, and no argument is one of them; a kernel that gets no strides reads memory as if it were"
            " contiguous"
        )


def strided_arguments(named: Iterable[tuple[str, Any]]) -> list[StridedArgument]:
    """Return the arrays among the arguments of a launch, by name, whose strides no argument equals."""
    leaves = [leaf for name, value in named for leaf in leaves_of(name, value)]
    arrays = [StridedArgument(name, *layout) for name, value in leaves if (layout := layout_of(value)) is not None]
    if all(is_contiguous(one) for one in arrays):
        return []
    numbers = {int(value) for _, value in leaves if is_number(value)}
    found = [one for one in arrays if not is_contiguous(one) and numbers.isdisjoint(steps_of(one))]
    return [] if all(map(is_dense, arrays)) and len({order_of(one) for one in arrays}) == 1 else found


def leaves_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The numbers and arrays in an argument; a compile-time constant is its value."""
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from leaves_of(f"{name}[{index}]", item)
    else:
        yield name, value


def is_number(value: Any) -> bool:
    return isinstance(value, int) or (hasattr(value, "__index__") and not getattr(value, "shape", ()))


def layout_of(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return shape and strides in elements of an array or tensor; None for anything else, such as a descriptor, which
    has its strides with it."""
    if hasattr(value, "block_shape"):
        return None
    if callable(getattr(value, "stride", None)) and hasattr(value, "element_size"):
        return tuple(map(int, value.shape)), tuple(map(int, value.stride()))
    strides, size = getattr(value, "strides", None), getattr(value, "itemsize", 0)
    if not isinstance(strides, tuple) or not size or not hasattr(value, "shape"):
        return None
    return tuple(map(int, value.shape)), tuple(stride // size for stride in strides)


def steps_of(array: StridedArgument) -> set[int]:
    """Return the strides that decide where elements are, but for 1."""
    return {stride for size, stride in zip(array.shape, array.strides, strict=True) if size > 1 and stride != 1}


def is_contiguous(array: StridedArgument) -> bool:
    """Return True for rows that follow each other without gaps."""
    wanted = [prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]
    axes = zip(array.shape, array.strides, wanted, strict=True)
    return 0 in array.shape or all(size == 1 or stride == step for size, stride, step in axes)


def is_dense(array: StridedArgument) -> bool:
    """Return True if the elements are without gaps in some order of the axes."""
    axes = sorted(zip(array.strides, array.shape, strict=True), reverse=True)
    return is_contiguous(StridedArgument("", tuple(size for _, size in axes), tuple(stride for stride, _ in axes)))


def order_of(array: StridedArgument) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return array.shape, array.strides
