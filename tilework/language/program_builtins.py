"""Builtins of the running program: its id, hints to the compiler, prints and assertions, inline assembly, device
libraries."""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilework.language.compile_time import SUPPLIED, _unwrap_if_constexpr, _unwrap_shape, constexpr, tuple
from tilework.language.dtypes import dtype
from tilework.language.values import Sizes, Value, tensor

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


def program_id(axis: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The index of this program along a grid axis (0, 1 or 2), an int32.

    A launch ``kernel[(4, 3)](...)`` runs 12 programs, each with its own pair of ``tl.program_id(0)`` in 0..3 and
    ``tl.program_id(1)`` in 0..2; an axis that the grid does not have counts as one of size 1. Programs run in any
    order: on a CPU, they are spread over its threads; on a GPU, over its multiprocessors.

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


def num_programs(axis: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The size of the grid along an axis (0, 1 or 2), an int32.

    It lets a kernel run on a grid of any size: each program takes every ``num_programs``-th tile (a "persistent"
    kernel).

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


def debug_barrier(_semantic: "Semantic" = SUPPLIED) -> tensor:
    """Make all threads of the program wait for each other, so that each sees what the others have written to memory.

    On a GPU it is a barrier of the block. On the CPU, where one thread runs a program, it orders memory (a fence).
    Operations on blocks need no barrier between them. Data that is stored to memory and then loaded again as other
    elements does.

    Example:
        @tilework.jit
        def rotate(scratch, out):
            i = tl.arange(0, 8)
            tl.store(scratch + i, i)
            tl.debug_barrier()  # other threads have written what is read now
            tl.store(out + i, tl.load(scratch + (i + 1) % 8))

        scratch, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
        rotate[(1,)](scratch, out)
        assert out.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]
    """
    return _semantic.debug_barrier()


def assume(cond: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Promise that `cond` is true: ``tl.assume(stride > 0)``. The optimiser may rely on it; nothing checks it.

    If the promise does not hold, the compiled code is wrong. Signs and ranges of sizes and strides are worth promising:
    divisions of non-negative numbers are cheaper, and the compiler recognises more accesses as contiguous.

    Example:
        @tilework.jit
        def halves(x, out, n):
            tl.assume(n >= 0)
            i = tl.arange(0, 8)
            tl.store(out + i, tl.load(x + i) // 2, mask=i < n)

        x, out = np.arange(8), np.zeros(8, np.int64)
        halves[(1,)](x, out, 6)
        assert out.tolist() == [0, 0, 1, 1, 2, 2, 0, 0]
    """
    return _semantic.assume(_semantic.to_tensor(cond))


def multiple_of(input: tensor, values: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Promise that values are multiples, one factor per axis: ``offsets = tl.multiple_of(offsets, 16)``.

    The promise concerns the first element of each contiguous run: pointers that are multiples of 16 bytes allow vector
    loads. For integer arguments, it is not needed, because each launch checks whether they are multiples of 16; use it
    for values that the kernel computes or loads. It returns the value itself.

    Example:
        @tilework.jit
        def copy(x, starts, out):
            start = tl.load(starts + tl.program_id(0))  # what is in `starts` the compiler cannot see
            i = tl.multiple_of(start, 4) + tl.arange(0, 4)
            tl.store(out + i, tl.load(x + i))

        x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        copy[(2,)](x, np.array([4, 0]), out)
        assert_close(out, x)
    """
    return _semantic.multiple_of(input, _unwrap_shape(values))


def max_contiguous(input: tensor, values: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Promise that each aligned group of `values` elements counts up by one: ``tl.max_contiguous(cols, 64)``.

    Give one size per axis. Together with `multiple_of`, it allows vector accesses where the compiler cannot see that
    the offsets are contiguous, for example after ``% n``. It returns the value itself.

    Example:
        @tilework.jit
        def wrapped(x, out, n):
            i = (8 + tl.arange(0, 4)) % n
            i = tl.max_contiguous(tl.multiple_of(i, 4), 4)  # true for every n that is a multiple of 4
            tl.store(out + tl.arange(0, 4), tl.load(x + i))

        x, out = np.arange(8, dtype=np.float32), np.zeros(4, np.float32)
        wrapped[(1,)](x, out, 8)
        assert_close(out, [0, 1, 2, 3])
    """
    return _semantic.max_contiguous(input, _unwrap_shape(values))


def max_constancy(input: tensor, values: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Promise that each aligned group of `values` elements holds one value: ``tl.max_constancy(rows, 4)``.

    Give one size per axis. A mask that is constant over a group needs one test for the group. It returns the value
    itself.

    Example:
        @tilework.jit
        def pairs(kept, out):
            i = tl.arange(0, 8)
            mask = tl.load(kept + i // 2) != 0
            tl.store(out + i, 1, mask=tl.max_constancy(mask, 2))

        out = np.zeros(8, np.int32)
        pairs[(1,)](np.array([1, 0, 0, 1], np.int32), out)
        assert out.tolist() == [1, 1, 0, 0, 0, 0, 1, 1]
    """
    return _semantic.max_constancy(input, _unwrap_shape(values))


def static_print(
    *values: object,
    sep: str | constexpr | None = " ",
    end: str | constexpr | None = "\n",
    file: Any = None,
    flush: bool | constexpr = False,
    _semantic: "Semantic" = SUPPLIED,
) -> None:
    """Print at compile time: ``tl.static_print(x.shape)``. Tensors print as their type, ``fp32[constexpr[64]]``.

    Takes the same arguments as Python's `print`. It prints when the kernel is compiled, so it prints nothing when the
    kernel comes from the cache.

    Example:
        @tilework.jit
        def kernel(x, BLOCK: tl.constexpr):
            tl.static_print("BLOCK is", BLOCK, "and x is", x.dtype)  # BLOCK is 16 and x is pointer<fp32>

        kernel[(1,)](np.zeros(16, np.float32), BLOCK=16)
    """
    plain = map(_unwrap_if_constexpr, values)
    options = {"sep": sep, "end": end, "file": file, "flush": flush}
    print(*plain, **{name: _unwrap_if_constexpr(value) for name, value in options.items()})


def static_assert(cond: object, msg: str | constexpr = "", _semantic: "Semantic" = SUPPLIED) -> None:
    """Stop compiling unless `cond` holds: ``tl.static_assert(BLOCK % 16 == 0, "BLOCK must be a multiple of 16")``.

    `cond` is known at compile time. For conditions that depend on run-time values, use `device_assert`.

    Example:
        @tilework.jit
        def kernel(out, BLOCK: tl.constexpr):
            tl.static_assert(BLOCK >= 8, "BLOCK is too small")
            tl.store(out + tl.arange(0, BLOCK), 1)

        kernel[(1,)](np.zeros(8), BLOCK=8)
        try:
            kernel[(1,)](np.zeros(8), BLOCK=4)
        except Exception as error:
            assert "BLOCK is too small" in str(error)
        else:
            raise AssertionError("it compiled")
    """
    if not _unwrap_if_constexpr(cond):
        raise AssertionError(_unwrap_if_constexpr(msg))


def device_print(
    prefix: str | constexpr, *args: Value, hex: bool | constexpr = False, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """Print from the running kernel, one line per element: ``tl.device_print("x", x)``. `hex` prints values in
    hexadecimal.

    `prefix` is a constant text that identifies the print. Each line begins with the program's indices and the element's
    index: ``pid (0, 0, 0) idx (3) x: 9``. The interpreter prints a block on one line. On a GPU, the lines appear when
    the device is next synchronised, in no particular order.

    Example:
        @tilework.jit
        def kernel(x):
            value = tl.load(x + tl.arange(0, 2))
            tl.device_print("squares", value * value)  # pid (0, 0, 0) idx (1) squares: 9

        kernel[(1,)](np.array([2, 3], np.int32))
    """
    return _semantic.device_print(_unwrap_if_constexpr(prefix), args, _unwrap_if_constexpr(hex))


def device_assert(
    cond: Value, msg: str | constexpr = "", mask: Value | None = None, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """Stop the kernel if an element of `cond` is false where `mask` is true; only in debug builds.

    A kernel is a debug build with ``debug=True`` (an argument of `jit` or of the launch) or TRITON_DEBUG=1 in the
    environment; in other builds, the assertion costs nothing. On the CPU, the launch raises an error with the message,
    the program and the line; on a GPU, the launch fails. The interpreter always checks.

    Example:
        @tilework.jit
        def kernel(x):
            value = tl.load(x + tl.arange(0, 4))
            tl.device_assert(value >= 0, "x has a negative element")

        kernel[(1,)](np.arange(4), debug=True)
        try:
            kernel[(1,)](np.arange(4) - 1, debug=True)
        except Exception as error:
            assert "x has a negative element" in str(error)
        else:
            raise AssertionError("nothing was raised")
    """
    if isinstance(text := _unwrap_if_constexpr(cond), str):
        raise TypeError(f"device_assert takes a condition, and then a text; got only {text!r}")
    return _semantic.device_assert(cond, _unwrap_if_constexpr(msg), mask)


def expect_zero(x: Value, mask: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Return `x`, whose elements are expected to be 0 where `mask` is true; debug builds check this.

    It marks values that must underflow, such as the exponentials of masked scores. Without ``debug=True`` or
    TRITON_DEBUG=1, it costs nothing and leaves the elements unchanged.

    Example:
        @tilework.jit
        def kernel(x, out):
            i = tl.arange(0, 4)
            tl.store(out + i, tl.expect_zero(tl.exp(tl.load(x + i)), i < 2))

        x, out = np.array([-1e9, -np.inf, 0.0, 0.0], np.float32), np.ones(4, np.float32)
        kernel[(1,)](x, out, debug=True)
        assert out.tolist() == [0, 0, 1, 1]
    """
    return _semantic.expect_zero(x, mask)


def inline_asm_elementwise(
    asm: str | constexpr,
    constraints: str | constexpr,
    args: Iterable[Value],
    dtype: dtype | Sequence[dtype] | tuple | constexpr,
    is_pure: bool | constexpr,
    pack: int | constexpr,
    _semantic: "Semantic" = SUPPLIED,
) -> Any:
    """Run a piece of assembly on every element, or on `pack` elements at once.

        popc = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)

    `asm` is in the language of the target: PTX on NVIDIA GPUs, amdgcn on AMD GPUs. The CPU and the interpreter reject
    it, so a kernel for every target checks `tl.target_info`. `constraints` are LLVM's: outputs first, then inputs.
    Elements narrower than 32 bits are packed into registers. A tuple of dtypes gives a tuple of results. Unless
    `is_pure` is true, the code is neither removed nor repeated.

    Example:
        @tilework.jit
        def count_bits(x, out):
            value = tl.load(x + tl.arange(0, 4))
            if tl.target_info.is_cuda():
                bits = tl.inline_asm_elementwise(
                    "popc.b32 $0, $1;", "=r,r", [value], dtype=tl.int32, is_pure=True, pack=1
                )
            else:
                bits = tl.extra.libdevice.popc(value)
            tl.store(out + tl.arange(0, 4), bits)

        out = np.zeros(4, np.int32)
        count_bits[(1,)](np.array([0, 1, 7, 255], np.int32), out)
        assert out.tolist() == [0, 1, 3, 8]
    """
    plain = _unwrap_if_constexpr(dtype)
    several = isinstance(plain, (tuple, builtins.tuple, list))
    results = _semantic.inline_asm_elementwise(
        _unwrap_if_constexpr(asm),
        _unwrap_if_constexpr(constraints),
        list(args),
        list(plain) if several else [plain],
        _unwrap_if_constexpr(is_pure),
        _unwrap_if_constexpr(pack),
    )
    return tuple(results) if several else results[0]


def extern_elementwise(
    lib_name: str | constexpr,
    lib_path: str | constexpr,
    args: Iterable[Value],
    arg_type_symbol_dict: Mapping[builtins.tuple[dtype, ...], builtins.tuple[str, dtype]] | constexpr,
    is_pure: bool | constexpr,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Call a function of a device library on every element; the dtypes of the arguments choose the symbol.

        symbols = {(tl.float32,): ("__nv_expf", tl.float32), (tl.float64,): ("__nv_exp", tl.float64)}
        y = tl.core.extern_elementwise("", "", [x], symbols, is_pure=True)

    `tl.extra.libdevice` calls it for about two hundred functions whose symbols all targets know: their code is
    generated, and no library is needed. On NVIDIA GPUs, other symbols come from a bitcode library named by the launch
    option `extern_libs`.

    Example:
        @tl.core.extern
        def hypotenuse(x, y, _semantic=None):
            symbols = {(tl.float32, tl.float32): ("__nv_hypotf", tl.float32)}
            return tl.core.extern_elementwise("", "", [x, y], symbols, is_pure=True, _semantic=_semantic)

        x, y = np.array([3.0, 5.0], np.float32), np.array([4.0, 12.0], np.float32)
        assert_close(call(hypotenuse, x, y), [5, 13])
    """
    return _semantic.extern_elementwise(
        _unwrap_if_constexpr(lib_name),
        _unwrap_if_constexpr(lib_path),
        list(args),
        _unwrap_if_constexpr(arg_type_symbol_dict),
        _unwrap_if_constexpr(is_pure),
    )
