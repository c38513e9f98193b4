"""Builtins that take a function: `reduce`, `associative_scan` and `map_elementwise`.

The function is a jit function on scalars. The semantic object opens a region, hands its scalar arguments to a Python
callback, and the callback asks the code generator (`_generator`) to compile the call:

    @jit
    def add(a, b):
        return a + b

    tl.reduce(x, 0, add)        # the region contains one call of `add`
"""

from collections.abc import Callable, Sequence
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, tuple
from tilework.language.shapes import _wrap_axis
from tilework.language.values import tensor


def reduce(
    input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, _semantic: Any = None, _generator: Any = None
) -> Any:
    """Combine all elements along an axis (of the whole block, if `axis` is None) with an associative function.

        smallest = tl.reduce(x, 0, minimum_of_two)
        value, index = tl.reduce((x, i), 0, larger_with_index)    # several blocks at once: fn(x1, i1, x2, i2)

    `combine_fn` is a jit function of two scalars (of twice as many scalars as there are blocks). In which order elements are combined
    differs between targets, so sums of floats may differ in their last bits. `keep_dims` leaves axes of size 1 in place of those that
    were reduced.

    Example:
        @tilework.jit
        def longer(a, b):
            return tl.where(tl.abs(a) > tl.abs(b), a, b)

        x = np.array([[1, -7, 3, 4], [2, 2, 9, -8]])
        assert call(tl.reduce, x, 1, longer).tolist() == [-7, 9]
    """
    inputs = [input] if isinstance(input, tensor) else list(input)
    rank = len(inputs[0].shape)
    axis, keep_dims = _constant("reduce", "axis", axis), _constant("reduce", "keep_dims", keep_dims)
    if axis is not None:
        axis = _wrap_axis(axis, rank)
    results = _semantic.reduce(inputs, axis, _region_of(combine_fn, _generator))
    if keep_dims:
        restored = [axis] if axis is not None else [0] * rank
        for position in restored:
            results = [_semantic.expand_dims(result, position) for result in results]
    return results[0] if isinstance(input, tensor) else tuple(results)


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: Any = False, _semantic: Any = None, _generator: Any = None
) -> Any:
    """Combine each element with all before it along an axis (with all after it, if `reverse`).

    `combine_fn` is an associative jit function, as in `reduce`; a tuple of blocks is scanned together.

    Example:
        @tilework.jit
        def larger(a, b):
            return tl.maximum(a, b)

        x = np.array([3, 1, 4, 1])
        assert call(tl.associative_scan, x, 0, larger).tolist() == [3, 3, 4, 4]
        assert call(tl.associative_scan, x, 0, larger, reverse=True).tolist() == [4, 4, 4, 1]
    """
    inputs = [input] if isinstance(input, tensor) else list(input)
    axis = _wrap_axis(_constant("associative_scan", "axis", axis), len(inputs[0].shape))
    region = _region_of(combine_fn, _generator)
    results = _semantic.scan(inputs, axis, region, _constant("associative_scan", "reverse", reverse))
    return results[0] if isinstance(input, tensor) else tuple(results)


def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1, _semantic: Any = None, _generator: Any = None) -> Any:
    """Call a jit function on each element; branches in it are taken per element.

        tl.map_elementwise(compare, x, y)         # compare(x[i], y[i]) for every i

    In a kernel an `if` on a block is an error; here the function sees scalars. With ``pack=p`` the function gets `p` elements of each
    argument at once and returns `p` values per result.

    Example:
        @tilework.jit
        def steps(n):  # of the Collatz sequence
            count = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                count += 1
            return count

        @tilework.jit
        def all_steps(x):
            return tl.map_elementwise(steps, x)

        assert call(all_steps, np.array([1, 2, 3, 6], np.int32)).tolist() == [0, 1, 7, 8]
    """
    results = _semantic.map_elementwise(args, _unwrap_if_constexpr(pack), _region_of(scalar_fn, _generator))
    return results[0] if len(results) == 1 else tuple(results)


def _region_of(fn: Any, _generator: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """The body of a region: the results of `fn` on the scalars of its entry block."""
    function = _unwrap_if_constexpr(fn)

    def build(scalars: Sequence[Any]) -> list[Any]:
        result = _generator.call_JitFunction(function, scalars, kwargs={})
        return list(result.values) if isinstance(result, tuple) else [result]

    return build


def _constant(function: str, parameter: str, value: Any) -> Any:
    """`value` as Python sees it; the shape of a result cannot depend on a value of the running kernel."""
    value = _unwrap_if_constexpr(value)
    if isinstance(value, tensor):
        raise ValueError(
            f"{function}: `{parameter}` must be constexpr, but is {value.type} at run time"
            "\nhelp: declare the parameter `NAME: tl.constexpr`, or compute it from constexprs"
        )
    return value
