"""Builtins about the running program: its place in the grid, hints to the compiler, printing and asserting."""

from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, _unwrap_shape


def program_id(axis: Any, _semantic: Any = None) -> Any:
    """The index of this program along a grid axis (0, 1 or 2), an int32.

    A launch ``kernel[(4, 3)](...)`` runs 12 programs, each with its own pair of ``tl.program_id(0)`` in 0..3 and
    ``tl.program_id(1)`` in 0..2; an axis that the grid does not have counts as one of size 1. Programs run in any order, on a
    CPU spread over its threads, on a GPU over its multiprocessors.

    Example:
        @tilework.jit
        def kernel(out, BLOCK: tl.constexpr):
            first = tl.program_id(0) * BLOCK
            tl.store(out + first + tl.arange(0, BLOCK), tl.program_id(0))

        out = np.zeros(8, np.int32)
        kernel[(4,)](out, BLOCK=2)
        assert out.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    """
    return _semantic.program_id(_unwrap_if_constexpr(axis))


def num_programs(axis: Any, _semantic: Any = None) -> Any:
    """The size of the grid along an axis (0, 1 or 2), an int32.

    With it a kernel can run on any grid: each program takes every ``num_programs``-th tile (a "persistent" kernel).

    Example:
        @tilework.jit
        def kernel(out, tiles):
            for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
                tl.store(out + tile, tl.program_id(0))

        out = np.zeros(7, np.int32)
        kernel[(3,)](out, 7)
        assert out.tolist() == [0, 1, 2, 0, 1, 2, 0]
    """
    return _semantic.num_programs(_unwrap_if_constexpr(axis))


def debug_barrier(_semantic: Any = None) -> Any:
    """Make all threads of the program wait for each other and see each other's writes."""
    return _semantic.debug_barrier()


def assume(cond: Any, _semantic: Any = None) -> Any:
    """Promise that `cond` is true: ``tl.assume(stride > 0)``. The optimiser may rely on it."""
    return _semantic.assume(_semantic.to_tensor(cond))


def multiple_of(input: Any, values: Any, _semantic: Any = None) -> Any:
    """Promise that values are multiples, one number per axis: ``offsets = tl.multiple_of(offsets, 16)``."""
    return _semantic.multiple_of(input, _unwrap_shape(values))


def max_contiguous(input: Any, values: Any, _semantic: Any = None) -> Any:
    """Promise that each aligned group of `values` elements counts up by one: ``tl.max_contiguous(cols, 64)``."""
    return _semantic.max_contiguous(input, _unwrap_shape(values))


def max_constancy(input: Any, values: Any, _semantic: Any = None) -> Any:
    """Promise that each aligned group of `values` elements holds one value: ``tl.max_constancy(rows, 4)``."""
    return _semantic.max_constancy(input, _unwrap_shape(values))


def static_print(
    *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False, _semantic: Any = None
) -> None:
    """Print while compiling: ``tl.static_print(x.shape)``. Tensors print as their type, ``fp32[constexpr[64]]``."""
    plain = map(_unwrap_if_constexpr, values)
    sep, end, file, flush = map(_unwrap_if_constexpr, (sep, end, file, flush))
    print(*plain, sep=sep, end=end, file=file, flush=flush)


def static_assert(cond: Any, msg: Any = "", _semantic: Any = None) -> None:
    """Stop compiling unless `cond` holds: ``tl.static_assert(BLOCK % 16 == 0, "BLOCK must be a multiple of 16")``."""
    if not _unwrap_if_constexpr(cond):
        raise AssertionError(_unwrap_if_constexpr(msg))


def device_print(prefix: Any, *args: Any, hex: Any = False, _semantic: Any = None) -> Any:
    """Print from the running kernel, a line per element: ``tl.device_print("x", x)``. `hex` shows the bits."""
    return _semantic.device_print(_unwrap_if_constexpr(prefix), args, _unwrap_if_constexpr(hex))


def device_assert(cond: Any, msg: Any = "", mask: Any = None, _semantic: Any = None) -> Any:
    """Stop the kernel if an element of `cond` is false where `mask` is true; only in debug builds.

    tl.device_assert(index < n, "index out of range", mask=mask)
    """
    return _semantic.device_assert(cond, _unwrap_if_constexpr(msg), mask)
