"""From the caller's arguments to the values of a function's parameters, by the types of the signature.

A tensor descriptor is given as (array, shape, strides), optionally followed by "nan" for the padding, and stands for
all parameters it becomes: the descriptor with its sizes and strides (`!tt.tensordesc, i32, i32, i64, i64`), or, after
`triton-rewrite-tensor-descriptor-to-pointer`, a pointer with sizes, strides and the padding flag before those.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, BlockArgument, Operation

from tilework.ir.locations import name_of
from tilework.ir.types import PointerType, TensorDescType, element_type, i1, i32, i64, is_float, is_integer, shape_of
from tilework.numerics.rounding import Array, narrow
from tilework.oracles.evaluator.compound_values import BlockView
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import INT64, fit, storage
from tilework.oracles.evaluator.global_memory import Memory

Host = tuple[Any, ...]


def bind(function: Operation, args: Sequence[Any], memory: Memory) -> list[Any]:
    """One value per parameter of `function`; arrays are registered in `memory`."""
    parameters = list(function.regions[0].blocks[0].args)
    values: list[Any] = []
    for position, arg in enumerate(args):
        if len(values) == len(parameters):
            raise Fault(f"takes {len(parameters)} arguments and was given {len(args)}")
        parameter = parameters[len(values)]
        if isinstance(arg, tuple):
            values += descriptor_values(arg, parameters[len(values) :], memory)
        else:
            values.append(convert(arg, parameter.type, parameter_name(parameter, position), memory))
    if len(values) != len(parameters):
        raise Fault(f"takes {len(parameters)} arguments and was given {len(args)}")
    return values


def parameter_name(parameter: BlockArgument, position: int) -> str:
    """What errors call a parameter: its name in the source, or its number."""
    return name_of(parameter.location) or parameter.name_hint or str(position)


def convert(arg: Any, type: Attribute, name: str, memory: Memory) -> Any:
    """One argument as a value of `type`."""
    shape, element = shape_of(type), element_type(type)
    if isinstance(element, PointerType):
        return pointer(arg, shape, name, memory)
    array = np.asarray(arg)
    if array.shape != shape:
        raise Fault(f"takes {type} as argument '{name}' and was given an array of shape {array.shape}")
    if is_float(element):
        return narrow(array if array.dtype.kind not in "biu" else array.astype(np.float64), storage(element))
    if is_integer(element) or storage(element) == INT64:
        if array.dtype.kind not in "biu":
            raise Fault(f"takes {type} as argument '{name}' and was given {arg!r}")
        return fit(array.astype(np.uint64).view(np.int64) if array.dtype == np.uint64 else array, element)
    raise Fault(f"takes {type} as argument '{name}', which cannot be given from outside")


def pointer(arg: Any, shape: tuple[int, ...], name: str, memory: Memory) -> Array:
    """The address of an array, an address as it is, or the null pointer for None."""
    if shape:
        return np.broadcast_to(np.asarray(arg, dtype=np.int64), shape)
    if isinstance(arg, np.ndarray):
        return np.asarray(memory.register(name, arg), dtype=np.int64)
    if arg is None or isinstance(arg, (int, np.integer)):
        return np.asarray(int(arg or 0), dtype=np.int64)
    raise Fault(f"takes a pointer as argument '{name}' and was given {arg!r}: pass a NumPy array")


def descriptor_values(host: Host, parameters: Sequence[BlockArgument], memory: Memory) -> list[Any]:
    """The values of all parameters that the host descriptor stands for."""
    base, shape, strides, *padding = host
    pads_nan, rank = padding == ["nan"], len(shape)
    first, name = parameters[0].type, parameter_name(parameters[0], 0)
    address = np.asarray(pointer(base, (), name, memory))
    if isinstance(first, TensorDescType) and isinstance(first.block, TensorType):
        block = first.block
        view = BlockView(int(address), tuple(shape), tuple(strides), block.element_type, shape_of(block), (), pads_nan)
        values: list[Any] = [view]
    elif isinstance(first, PointerType) and has_types(parameters[1:], (*[i64] * (2 * rank), i1)):
        values = [address, *typed((*shape, *strides, pads_nan), parameters[1:])]
    else:
        raise Fault(f"takes {first} as argument '{name}' and was given a tensor descriptor")
    rest = parameters[len(values) :]
    if has_types(rest, (*[i32] * rank, *[i64] * rank)):
        values += typed((*shape, *strides), rest)
    return values


def has_types(parameters: Sequence[BlockArgument], types: Sequence[Attribute]) -> bool:
    """Whether `parameters` begin with `types`."""
    return [parameter.type for parameter in parameters[: len(types)]] == list(types)


def typed(numbers: Sequence[int], parameters: Sequence[BlockArgument]) -> list[Array]:
    """`numbers` in the integer types of the first parameters."""
    return [fit(np.asarray(n, dtype=np.int64), p.type) for n, p in zip(numbers, parameters, strict=False)]
