"""Loads, stores and atomics: through one pointer, a block of pointers, or a block pointer.

The three kinds follow different rules. A block of pointers broadcasts with its mask and padding value; a block pointer
has its bounds inside and takes no mask. A bool in memory is a byte: it is read as ``byte != 0``, and a value stored to
a bool pointer is cast to int8.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tilework.language.dtypes import block_type, dtype, int1, int8, pointer_type
from tilework.language.typing.carrier import AccessOptions, Shape
from tilework.language.typing.indexing import Indexing
from tilework.language.typing.promotion import plain
from tilework.language.typing.shapes import block, plain_shape, shape_of
from tilework.language.values import Value, tensor

LOAD_CACHE = ("", ".ca", ".cg", ".cv")
STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION = ("", "evict_first", "evict_last")
PADDING = ("", "zero", "nan")
SEMANTICS = ("", "acquire", "release", "acq_rel", "relaxed")
SCOPES = ("", "gpu", "cta", "sys")


class Access(Indexing):
    """`load`, `store` and the atomics."""

    def load(
        self,
        ptr: tensor,
        mask: Value | None,
        other: Value | None,
        boundary_check: Sequence[int],
        padding_option: str,
        cache_modifier: str,
        eviction_policy: str,
        volatile: bool,
    ) -> tensor:
        """The value in memory; `other` where `mask` is false."""
        options = access_options(LOAD_CACHE, cache_modifier, eviction_policy, volatile)
        padding = option(PADDING, "Padding option", padding_option)
        if isinstance(ptr, tensor) and is_block_pointer(ptr.type):
            if plain(mask) is not None or plain(other) is not None:
                raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
            return self.load_block(ptr, boundary_check, padding, options)
        check_pointer(ptr, "tl.load")
        if boundary_check or padding:
            raise ValueError(
                "`padding_option` or `boundary_check` argument is not supported for loading a tensor of pointers or "
                "loading a scalar; use mask and other"
            )
        return self.load_pointers(ptr, self.optional_tensor(mask), plain(other), options)

    def load_block(
        self, ptr: tensor, boundary_check: Sequence[int], padding: str, options: AccessOptions = AccessOptions()
    ) -> tensor:
        """The block a block pointer points to."""
        element, shape = block_pointed_to(ptr)
        if padding == "nan" and element.is_int():
            raise ValueError(f"Padding option `nan` is not supported for integer block pointers, here of {element}")
        self.check_dtype(element)
        return self.read_block(ptr, check_boundary(boundary_check, shape), padding, options)

    def load_pointers(
        self, ptr: tensor, mask: tensor | None, other: Value | None, options: AccessOptions = AccessOptions()
    ) -> tensor:
        """Load through pointers; the result is `other`, a number or a tensor, where `mask` is false."""
        if mask is None and other is not None:
            raise ValueError("`other` cannot be provided without `mask`")
        if not ptr.type.is_block():
            refuse_block(mask, "Mask")
            refuse_block(other, "Other")
        if mask is not None:
            check_mask(mask)
            if isinstance(other, tensor):
                ptr, mask, other = self.broadcast_all((ptr, mask, other))
            else:
                ptr, mask = self.broadcast(ptr, mask)
        is_bool = pointee(ptr).is_bool()
        ptr = self._byte_pointers(ptr)
        element = pointee(ptr)
        self.check_dtype(element)
        filler = None if other is None else self.as_element(other, element, shape_of(ptr))
        loaded = self.read(ptr, mask, filler, options)
        return self.cast(loaded, int1) if is_bool else loaded

    def _byte_pointers(self, ptr: tensor) -> tensor:
        """Pointers to bools as pointers to bytes; others as they are."""
        pointer = ptr.dtype
        assert isinstance(pointer, pointer_type), f"expected pointers, got {ptr.type}"
        if not pointer.element_ty.is_bool():
            return ptr
        return self.cast(ptr, pointer_type(int8, pointer.address_space, pointer.const))

    def store(
        self,
        ptr: tensor,
        value: Value,
        mask: Value | None,
        boundary_check: Sequence[int],
        cache_modifier: str,
        eviction_policy: str,
    ) -> tensor:
        """Write `value`, cast to the element type, where `mask` is true."""
        options = access_options(STORE_CACHE, cache_modifier, eviction_policy)
        if isinstance(ptr, tensor) and ptr.dtype.is_const():
            raise ValueError("Cannot store to a constant pointer")
        if isinstance(ptr, tensor) and is_block_pointer(ptr.type):
            if plain(mask) is not None:
                raise ValueError("`mask` argument cannot be specified for storing block pointers")
            return self.store_block(ptr, value, boundary_check, options)
        check_pointer(ptr, "tl.store")
        if boundary_check:
            raise ValueError(
                "`boundary_check` argument is not supported for storing a tensor of pointers or storing a scalar; use "
                "mask"
            )
        shape = shape_of(ptr)
        value, condition = self._fitted(shape, value, self.optional_tensor(mask))
        ptr = self._byte_pointers(ptr)
        self.store_pointers(ptr, self.as_element(value, pointee(ptr), shape), condition, options)
        return self.nothing()

    def store_block(
        self, ptr: tensor, value: Value, boundary_check: Sequence[int], options: AccessOptions = AccessOptions()
    ) -> tensor:
        """Write a block where a block pointer points to."""
        element, shape = block_pointed_to(ptr)
        if not isinstance(value, tensor):
            value = self.as_element(value, element, shape)
        if not value.type.is_block():
            value = self.splat(value, shape)
        assert shape_of(value) == shape, (
            f"Block shape ({list(shape)}) and value shape ({list(shape_of(value))}) mismatch"
        )
        assert value.dtype == element, (
            f"Block element type ({element}) and value element type ({value.dtype}) mismatch: cast the value with "
            f".to({element})"
        )
        self.write_block(ptr, value, check_boundary(boundary_check, shape), options)
        return self.nothing()

    def _fitted(self, shape: Shape, value: Value, mask: tensor | None) -> tuple[Any, tensor | None]:
        """A value and a mask for pointers of `shape`: tensors are broadcast to it, numbers left as they are."""
        if mask is not None:
            check_mask(mask)
        if not shape:
            refuse_block(value, "Value")
            refuse_block(mask, "Mask")
            return value, mask
        if isinstance(value, tensor):
            check_fits(shape_of(value), shape, "value")
            value = self.stretch(value, shape)
        if mask is not None:
            check_fits(shape_of(mask), shape, "mask")
            mask = self.stretch(mask, shape)
        return value, mask

    def atomic_rmw(
        self,
        kind: str,
        ptr: tensor,
        val: Value,
        mask: Value | None,
        sem: str | None,
        scope: str | None,
        ordered: bool = False,
    ) -> tensor:
        """Combine `val` with memory where `mask` is true; `kind` is add, max, min, and, or, xor or xchg."""
        element = check_atomic_pointer(ptr, f"tl.atomic_{kind}")
        bits = element.primitive_bitwidth
        supported = element.name in ("fp16", "bf16") if kind == "add" and bits == 16 else bits >= 32
        if not supported or element.is_ptr():
            raise ValueError(f"atomic_{kind} does not support {element}: use a 32- or 64-bit type")
        if ordered:
            self.beyond_triton(TypeError(f"atomic_{kind}() got an unexpected keyword argument 'ordered'"))
        else:
            self.check_any_order(f"atomic_{kind}", element, kind in ORDER_MATTERS)
        sem, scope = memory_order(sem, scope)
        value, condition = self._fitted(shape_of(ptr), plain(val), self.optional_tensor(mask))
        return self.update(kind, ptr, self.as_element(value, element, shape_of(ptr)), condition, sem, scope, ordered)

    def check_any_order(self, name: str, element: dtype, matters: bool = True) -> None:
        """Refuse an atomic of floats in a reproducible kernel, if its result depends on which program comes first."""
        if matters and element.is_floating() and self.options.reproducible:
            raise ValueError(f"{name} of {element} in a reproducible kernel: {IN_WHICH_ORDER[name]}")

    def atomic_cas(self, ptr: tensor, cmp: Value, val: Value, sem: str | None, scope: str | None) -> tensor:
        """Write `val` where memory holds `cmp`; nothing is cast or broadcast."""
        element = check_atomic_pointer(ptr, "tl.atomic_cas")
        self.check_any_order("atomic_cas", element)
        sem, scope = memory_order(sem, scope)
        if element.primitive_bitwidth not in (16, 32, 64) or element.is_ptr():
            raise ValueError(f"atomic_cas only supports elements with width {{16, 32, 64}}, got {element}")
        shape = shape_of(ptr)
        expected, desired = (
            cas_operand(value, element, shape) if isinstance(value, tensor) else self.as_element(value, element, shape)
            for value in (cmp, val)
        )
        return self.compare_and_swap(ptr, expected, desired, sem, scope)


ORDER_MATTERS = ("add", "xchg")
IN_WHICH_ORDER = {
    "atomic_add": "its sum depends on the order in which programs come, and that on the device"
    "\nhelp: pass ordered=True (programs take"
    " turns), store one partial result per program and add them in a second kernel, or add integers",
    "atomic_xchg": "which program writes last depends on the device"
    "\nhelp: pass ordered=True (programs take turns), or let one program"
    " store it",
    "atomic_cas": "which program comes first depends on the device"
    "\nhelp: compare integers, for example the bits of the float, and let"
    " the result not depend on the order",
}


def option(known: Sequence[str], what: str, name: str | None) -> str:
    """`name`, one of the `known` ones; None means the default."""
    if (name := name or "") not in known:
        raise ValueError(f"{what} {name} not supported: use one of {', '.join(map(repr, known))}")
    return name


def access_options(
    caches: Sequence[str], cache: str | None, evict: str | None, volatile: bool = False
) -> AccessOptions:
    """The names of a load or a store, checked."""
    cache = option(caches, "Cache modifier", cache)
    return AccessOptions(cache, option(EVICTION, "Eviction policy", evict), bool(volatile))


def memory_order(sem: str | None, scope: str | None) -> tuple[str, str]:
    """Return the memory semantic and the scope of an atomic; acq_rel and gpu by default."""
    order = option(SEMANTICS, "Memory semantic", sem), option(SCOPES, "Memory semantic", scope)
    return order[0] or "acq_rel", order[1] or "gpu"


def is_block_pointer(type: dtype) -> bool:
    """A pointer made by `make_block_ptr`."""
    return isinstance(type, pointer_type) and isinstance(type.element_ty, block_type)


def pointee(ptr: tensor) -> dtype:
    """The type a pointer, or each of a block of pointers, points to."""
    return ptr.dtype.element_ty  # pyright: ignore[reportAttributeAccessIssue]


def block_pointed_to(ptr: tensor) -> tuple[dtype, Shape]:
    """The element type and the shape of the block behind a block pointer."""
    target = pointee(ptr)
    assert isinstance(target, block_type), f"expected a block pointer, got {ptr.type}"
    return target.element_ty, target.sizes


def check_boundary(dims: Sequence[int] | int, shape: Shape) -> Shape:
    """The dimensions to check, sorted; each at most once, each a dimension of the block."""
    axes = plain_shape(dims if isinstance(dims, Iterable) else (dims,))
    for axis in axes:
        assert 0 <= axis < len(shape), f"boundary_check {axis} is not a dimension of a block of shape {list(shape)}"
    assert len(set(axes)) == len(axes), f"Duplicate dimension in `boundary_check`: {list(axes)}"
    return tuple(sorted(axes))


def check_pointer(ptr: object, function: str) -> None:
    """Refuse anything that is not a pointer or a block of pointers."""
    if not isinstance(ptr, tensor) or not ptr.dtype.is_ptr():
        kind = ptr.type if isinstance(ptr, tensor) else ptr
        raise ValueError(f"Unsupported ptr type {kind} in `{function}`: expected a pointer or a block of pointers")


def check_mask(mask: tensor) -> None:
    """Raise a ValueError if a mask is not of int1."""
    if not mask.dtype.is_bool():
        raise ValueError(f"Mask must have boolean scalar type, got {mask.dtype}; compare it with 0")


def refuse_block(value: object, name: str) -> None:
    """Raise a ValueError if a block is passed with a scalar pointer."""
    if isinstance(value, tensor) and value.type.is_block():
        raise ValueError(
            f"{name} argument cannot be block type if pointer argument is not a block: it has shape "
            f"{list(shape_of(value))}"
        )


def check_fits(have: Shape, shape: Shape, what: str) -> None:
    """Raise a ValueError if a value or a mask does not broadcast to the pointers, or would widen them."""
    fits = len(have) <= len(shape) and all(a in (b, 1) for a, b in zip(reversed(have), reversed(shape), strict=False))
    if not fits:
        raise ValueError(
            f"Expected pointer argument to have shape {list(have)} but got {list(shape)}: the {what} does not "
            "broadcast to the pointers"
        )


def check_atomic_pointer(ptr: tensor, function: str) -> dtype:
    """The element type an atomic works on."""
    check_pointer(ptr, function)
    if is_block_pointer(ptr.type):
        raise ValueError(f"`{function}` does not work on block pointers: use a pointer or a block of pointers")
    if ptr.dtype.is_const():
        raise ValueError(f"Cannot store to a constant pointer: `{function}` writes through it")
    return pointee(ptr)


def cas_operand(value: tensor, element: dtype, shape: Shape) -> tensor:
    """A tensor that already has the type in memory, up to the sign of integers."""
    have = value.dtype
    same = have == element or (have.is_int() and element.is_int() and have.int_bitwidth == element.int_bitwidth)
    if not same or shape_of(value) != shape:
        raise ValueError(
            f"atomic_cas takes cmp and val of the type in memory, {block(element, shape)}, but got {value.type}; cast "
            "or broadcast it first"
        )
    return value
