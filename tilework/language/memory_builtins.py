"""Builtins that read and write memory: pointers, block pointers, tensor descriptors, atomics."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from tilework.language.block_builtins import _none_or
from tilework.language.compile_time import SUPPLIED, _unwrap_if_constexpr, _unwrap_shape, base_value, constexpr, tuple
from tilework.language.dtypes import dtype
from tilework.language.values import Offsets, Sizes, Value, tensor, tensor_descriptor

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _keyword_only_behind(count: int) -> Callable[[_Function], _Function]:
    """Mark a builtin whose parameters behind the first `count` are keyword-only in Triton 3.8."""

    def mark(fn: _Function) -> _Function:
        vars(fn)["_named_behind"] = count
        return fn

    return mark


@_keyword_only_behind(3)
def load(
    pointer: tensor,
    mask: Value | None = None,
    other: Value | None = None,
    boundary_check: Sizes | None = (),
    padding_option: str | constexpr = "",
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
    volatile: bool | constexpr = False,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Read memory through a pointer, a block of pointers, or a block pointer.

    Where `mask` is false, nothing is read and the result is `other`, or undefined if `other` is not given. A block
    pointer takes `boundary_check` (the axes to check) and `padding_option` ("zero" or "nan") instead; without padding,
    elements outside the array are undefined. The sanitizer warns where an undefined element is used
    (docs/sanitizer.md).

    `cache_modifier` ("", ".ca", ".cg", ".cv"), `eviction_policy` ("", "evict_first", "evict_last") and `volatile`
    control the caches of GPUs. They do not affect results, and the CPU ignores them.

    Example:
        @tilework.jit
        def copy(x, out, n):
            i = tl.arange(0, 8)
            tl.store(out + i, tl.load(x + i, mask=i < n, other=-1.0))

        x, out = np.arange(5, dtype=np.float32), np.zeros(8, np.float32)
        copy[(1,)](x, out, 5)
        assert out.tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    """
    return _semantic.load(
        pointer,
        _none_or(mask),
        _none_or(other),
        _axes(boundary_check),
        _unwrap_if_constexpr(padding_option),
        _unwrap_if_constexpr(cache_modifier),
        _unwrap_if_constexpr(eviction_policy),
        _unwrap_if_constexpr(volatile),
    )


@_keyword_only_behind(3)
def store(
    pointer: tensor,
    value: Value,
    mask: Value | None = None,
    boundary_check: Sizes | None = (),
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Write to memory where `mask` is true: ``tl.store(ptr + offsets, x, mask=offsets < n)``.

    The value is converted to the element type of the pointer and broadcast to its shape. A block pointer takes
    `boundary_check`, the axes along which elements outside the array are dropped. If two elements of one store go to
    the same address, they race, and one of them remains. `cache_modifier` and `eviction_policy` are hints for GPUs.

    Example:
        @tilework.jit
        def every_second(out, n):
            i = tl.arange(0, 8)
            tl.store(out + 2 * i, i, mask=2 * i < n)

        out = np.full(6, -1)
        every_second[(1,)](out, 6)
        assert out.tolist() == [0, -1, 1, -1, 2, -1]
    """
    return _semantic.store(
        pointer,
        value,
        _none_or(mask),
        _axes(boundary_check),
        _unwrap_if_constexpr(cache_modifier),
        _unwrap_if_constexpr(eviction_policy),
    )


def make_block_ptr(
    base: tensor,
    shape: Offsets,
    strides: Offsets,
    offsets: Offsets,
    block_shape: Sizes,
    order: Sizes,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """A pointer to a block of an array, for `load`, `store` and `advance`.

    `shape` and `strides` describe the whole array (in elements), `offsets` says where the block begins, and
    `block_shape` gives its sizes. `order` lists the axes, starting with the one that is contiguous in memory: ``(1,
    0)`` for row-major arrays. New code should use a descriptor (`make_tensor_descriptor`), which also uses the copy
    engine (TMA) of NVIDIA GPUs from Hopper on.

    Example:
        @tilework.jit
        def corner(x, out, M, N):
            block = tl.make_block_ptr(
                x, shape=(M, N), strides=(N, 1), offsets=(2, 2), block_shape=(2, 4), order=(1, 0)
            )
            value = tl.load(block, boundary_check=(0, 1), padding_option="zero")
            tl.store(out + tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :], value)

        x, out = np.arange(20, dtype=np.float32).reshape(4, 5), np.zeros((2, 4), np.float32)
        corner[(1,)](x, out, 4, 5)
        assert out.tolist() == [[12, 13, 14, 0], [17, 18, 19, 0]]
    """
    return _semantic.make_block_ptr(
        base, _items(shape), _items(strides), _items(offsets), _unwrap_shape(block_shape), _unwrap_shape(order)
    )


def advance(base: tensor, offsets: Offsets, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Return the block pointer moved by `offsets`; the original is unchanged: ``p = tl.advance(p, (0, BLOCK_K))``.

    Example:
        @tilework.jit
        def row_sum(x, out, N):
            block = tl.make_block_ptr(x, (N,), (1,), offsets=(0,), block_shape=(4,), order=(0,))
            total = tl.zeros((4,), tl.float32)
            for _ in range(0, N, 4):
                total += tl.load(block, boundary_check=(0,), padding_option="zero")
                block = tl.advance(block, (4,))
            tl.store(out, tl.sum(total))

        x, out = np.arange(10, dtype=np.float32), np.zeros(1, np.float32)
        row_sum[(1,)](x, out, 10)
        assert out[0] == x.sum()
    """
    return _semantic.advance(base, _items(offsets))


def make_tensor_descriptor(
    base: tensor,
    shape: Offsets,
    strides: Offsets,
    block_shape: Sizes,
    padding_option: str | constexpr = "zero",
    _semantic: "Semantic" = SUPPLIED,
) -> tensor_descriptor:
    """Describe an array in memory whose blocks will be loaded or stored; the last stride is 1.

    `shape` and `strides` are those of the array. Strides are in elements; in bytes, all but the last are multiples of
    16, at least 0 and below 2^40. The address `base` is a multiple of 16 bytes, too. `block_shape` holds the sizes of
    the blocks, known at compile time. Elements outside the array read as 0 (`padding_option` "zero") or NaN ("nan"),
    and are not written. The result is a `tensor_descriptor`. If the copy engine would use values that break these
    rules, constants are rejected during compilation, and other values end the kernel with a driver error. A block of an
    array with an empty shape ends it in the same way.

    NVIDIA GPUs from Hopper on copy such blocks with their copy engine (TMA); for this, the host must provide a function
    that allocates memory (`tilework.set_allocator`). Elsewhere, ordinary loads and stores are used. The host can also
    create the descriptor and pass it: `tilework.tools.tensor_descriptor.TensorDescriptor`.

    Example:
        @tilework.jit
        def add_one(x, M, N):
            blocks = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[2, 4])
            corner = [tl.program_id(0) * 2, 0]
            blocks.store(corner, blocks.load(corner) + 1)

        x = np.zeros((3, 4), np.float32)
        add_one[(2,)](x, 3, 4)  # the last row of the second block is outside of x
        assert (x == 1).all()
    """
    block, padding = _unwrap_shape(block_shape), _unwrap_if_constexpr(padding_option)
    return _semantic.make_tensor_descriptor(base, _items(shape), _items(strides), block, padding)


def load_tensor_descriptor(desc: tensor_descriptor, offsets: Offsets, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The function form of ``desc.load(offsets)``: the block of a `tensor_descriptor` that begins at `offsets`.

    Example:
        @tilework.jit
        def kernel(x, out):
            source = tl.make_tensor_descriptor(x, [4, 4], [4, 1], [2, 4])
            target = tl.make_tensor_descriptor(out, [2, 4], [4, 1], [2, 4])
            tl.store_tensor_descriptor(target, [0, 0], tl.load_tensor_descriptor(source, [2, 0]))

        x, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((2, 4), np.float32)
        kernel[(1,)](x, out)
        assert_close(out, x[2:])
    """
    return desc.load(offsets, _semantic=_semantic)


def store_tensor_descriptor(
    desc: tensor_descriptor, offsets: Offsets, value: Value, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """The function form of ``desc.store(offsets, value)``: write a block through a `tensor_descriptor`.

    Example:
        @tilework.jit
        def kernel(out):
            target = tl.make_tensor_descriptor(out, [4, 4], [4, 1], [2, 4])
            tl.store_tensor_descriptor(target, [2, 0], tl.full((2, 4), 7.0, tl.float32))

        out = np.zeros((4, 4), np.float32)
        kernel[(1,)](out)
        assert out.sum(1).tolist() == [0, 0, 28, 28]
    """
    return desc.store(offsets, value, _semantic=_semantic)


def _experimental_descriptor_load(
    desc_pointer: tensor, offsets: Offsets, shape: Sizes, dtype: dtype | constexpr, _semantic: "Semantic" = SUPPLIED
) -> NoReturn:
    """Removed in Triton 3.1: a pointer to a descriptor says nothing about its shape."""
    raise TypeError(
        "_experimental_descriptor_load was removed: pass a TensorDescriptor to the kernel, or make one with"
        " tl.make_tensor_descriptor, and call desc.load(offsets)"
    )


def _experimental_descriptor_store(
    desc_pointer: tensor, value: Value, offsets: Offsets, _semantic: "Semantic" = SUPPLIED
) -> NoReturn:
    """Removed in Triton 3.1: a pointer to a descriptor says nothing about its shape."""
    raise TypeError(
        "_experimental_descriptor_store was removed: pass a TensorDescriptor to the kernel, or make one with"
        " tl.make_tensor_descriptor, and call desc.store(offsets, value)"
    )


def atomic_cas(
    pointer: tensor,
    cmp: Value,
    val: Value,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Replace memory by `val` where it equals `cmp`, and return the previous values.

    Reading, comparing and writing are one atomic step. `sem` and `scope` are those of `atomic_add`. It is used to
    implement locks: ``while tl.atomic_cas(lock, 0, 1) == 1: pass`` acquires one, and ``tl.atomic_xchg(lock, 0)``
    releases it.

    Example:
        @tilework.jit
        def claim(owner, won):
            program = tl.program_id(0)
            before = tl.atomic_cas(owner, -1, program)  # -1: no owner
            tl.store(won + program, before == -1)

        owner, won = np.array([-1], np.int32), np.zeros(8, np.int32)
        claim[(8,)](owner, won)
        assert won.sum() == 1 and won[owner[0]] == 1
    """
    return _semantic.atomic_cas(pointer, cmp, val, _unwrap_if_constexpr(sem), _unwrap_if_constexpr(scope))


class _Atomic(Protocol):
    def __call__(
        self,
        pointer: tensor,
        val: Value,
        mask: Value | None = None,
        sem: str | constexpr | None = None,
        scope: str | constexpr | None = None,
        ordered: bool | constexpr = False,
        _semantic: "Semantic" = SUPPLIED,
    ) -> tensor: ...


def _atomic(kind: str, doc: str) -> _Atomic:
    def function(
        pointer: tensor,
        val: Value,
        mask: Value | None = None,
        sem: str | constexpr | None = None,
        scope: str | constexpr | None = None,
        ordered: bool | constexpr = False,
        _semantic: "Semantic" = SUPPLIED,
    ) -> tensor:
        order, threads = _unwrap_if_constexpr(sem), _unwrap_if_constexpr(scope)
        is_ordered = bool(_unwrap_if_constexpr(ordered))
        return _semantic.atomic_rmw(kind, pointer, val, _none_or(mask), order, threads, is_ordered)

    function.__name__ = function.__qualname__ = f"atomic_{kind}"
    function.__doc__ = doc
    return function


atomic_add = _atomic(
    "add",
    """Add `val` to memory and return the previous value: ``ticket = tl.atomic_add(counter, 1)``.

    The read and the write are one atomic step. Where `mask` is false, nothing happens and the result is undefined.
    `sem` is the memory ordering: "acq_rel" (default), "acquire", "release" or "relaxed". `scope` is the set of threads
    to which the ordering applies: "gpu" (default), "cta" (this program) or "sys" (also other devices and the host). On
    the CPU, single atomics always acquire and release.

    Sums of floats depend on the order of the programs. With `ordered=True`, the additions have a fixed order: first
    those of program 0, then those of program 1 and so on (x varies fastest), and within a block element by element.
    Reproducible kernels require this for sums of floats.

    Example:
        @tilework.jit
        def total(x, out):
            tl.atomic_add(out, tl.sum(tl.load(x + tl.program_id(0) * 4 + tl.arange(0, 4))))

        out = np.zeros(1, np.int32)
        total[(4,)](np.arange(16, dtype=np.int32), out)
        assert out[0] == sum(range(16))
    """,
)
atomic_max = _atomic(
    "max",
    """Store the larger of memory and `val`, and return the previous value. The other parameters are those of
    `atomic_add`.

    Example:
        @tilework.jit
        def largest(x, out):
            tl.atomic_max(out, tl.load(x + tl.program_id(0)))

        out = np.full(1, -100, np.int32)
        largest[(4,)](np.array([3, -5, 8, 1], np.int32), out)
        assert out[0] == 8
    """,
)
atomic_min = _atomic(
    "min",
    """Store the smaller of memory and `val`, and return the previous value. The other parameters are those of
    `atomic_add`.

    Example:
        @tilework.jit
        def smallest(x, out):
            tl.atomic_min(out, tl.load(x + tl.program_id(0)))

        out = np.full(1, 100, np.int32)
        smallest[(4,)](np.array([3, -5, 8, 1], np.int32), out)
        assert out[0] == -5
    """,
)
atomic_and = _atomic(
    "and",
    """Clear the bits of memory that are 0 in `val`, and return the previous value. The other parameters are those of
    `atomic_add`.

    Example:
        @tilework.jit
        def common_bits(x, out):
            tl.atomic_and(out, tl.load(x + tl.program_id(0)))

        out = np.full(1, -1, np.int32)
        common_bits[(2,)](np.array([0b1100, 0b0110], np.int32), out)
        assert out[0] == 0b0100
    """,
)
atomic_or = _atomic(
    "or",
    """Set the bits of memory that are 1 in `val`, and return the previous value. The other parameters are those of
    `atomic_add`.

    Example:
        @tilework.jit
        def seen(x, out):
            tl.atomic_or(out, 1 << tl.load(x + tl.program_id(0)))

        out = np.zeros(1, np.int32)
        seen[(4,)](np.array([0, 3, 3, 0], np.int32), out)
        assert out[0] == 0b1001
    """,
)
atomic_xor = _atomic(
    "xor",
    """Flip the bits of memory that are 1 in `val`, and return the previous value. The other parameters are those of
    `atomic_add`.

    Example:
        @tilework.jit
        def parity(x, out):
            tl.atomic_xor(out, tl.load(x + tl.program_id(0)))

        out = np.zeros(1, np.int32)
        parity[(3,)](np.array([5, 9, 5], np.int32), out)
        assert out[0] == 9
    """,
)
atomic_xchg = _atomic(
    "xchg",
    """Replace memory by `val` and return the previous value: ``tl.atomic_xchg(lock, 0)`` releases a lock.

    The other parameters are those of `atomic_add`.

    Example:
        @tilework.jit
        def swap(box, out):
            tl.store(out, tl.atomic_xchg(box, 7))

        box, out = np.array([3], np.int32), np.zeros(1, np.int32)
        swap[(1,)](box, out)
        assert box[0] == 7 and out[0] == 3
    """,
)


def _axes(boundary_check: Sizes | None) -> list[Any]:
    """The axes of a `boundary_check`, None meaning no axis."""
    return [] if _unwrap_if_constexpr(boundary_check) is None else _unwrap_shape(boundary_check)


def _items(values: Offsets) -> list[Any]:
    """The elements of a list argument as they are; one value is a list of one."""
    if isinstance(values, base_value) and not isinstance(values, tuple):
        values = _unwrap_if_constexpr(values)
    return list(values) if isinstance(values, Iterable) else [values]
