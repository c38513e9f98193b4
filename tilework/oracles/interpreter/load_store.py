"""Loads, stores and atomics through pointers and blocks of pointers.

Programs run one after another, so an atomic is a load, an operation and a store; elements of a block that hit the same
address are applied one by one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype, int8, pointer_type
from tilework.oracles.interpreter.descriptors import Descriptors
from tilework.oracles.interpreter.formats import UNSIGNED, Array, bits_of, storage
from tilework.oracles.interpreter.tensors import plain, shaped, tensor

LOAD_CACHE = ("", ".ca", ".cg", ".cv")
STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")
EVICTION = ("", "evict_first", "evict_last")
PADDING = ("", "zero", "nan")
SEMANTICS = ("", "acquire", "release", "acq_rel", "relaxed")
SCOPES = ("", "gpu", "cta", "sys")

Update = Callable[[Array, Array], Any]
UPDATES: dict[str, Update] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
    "max": np.maximum,
    "min": np.minimum,
}
BITWISE = ("and", "or", "xor", "xchg")


def check_option(name: str | None, known: Sequence[str], what: str) -> None:
    """Refuse a text that is not one of the `known` ones."""
    if (name or "") not in known:
        raise ValueError(f"{what} {name} not supported: use one of {', '.join(map(repr, known))}")


def is_block_pointer(type: dtype) -> bool:
    """A pointer made by `make_block_ptr`."""
    return isinstance(type, pointer_type) and type.element_ty.is_block()


class Access(Descriptors):
    """`load`, `store` and the atomics."""

    def load(
        self,
        ptr: tl.tensor,
        mask: Any,
        other: Any,
        boundary_check: Sequence[int],
        padding_option: str,
        cache_modifier: str,
        eviction_policy: str,
        volatile: bool,
    ) -> tl.tensor:
        check_option(cache_modifier, LOAD_CACHE, "Cache modifier")
        check_option(eviction_policy, EVICTION, "Eviction policy")
        check_option(padding_option, PADDING, "Padding option")
        if isinstance(ptr, tl.tensor) and is_block_pointer(ptr.type):
            if plain(mask) is not None or plain(other) is not None:
                raise ValueError("`mask` and `other` arguments cannot be specified for loading block pointers")
            return self.load_block(ptr, boundary_check, padding_option)
        check_pointer(ptr, "tl.load")
        if boundary_check or padding_option:
            raise ValueError(
                "`padding_option` or `boundary_check` argument is not supported for loading a tensor of pointers or"
                " loading a scalar; use mask and other"
            )
        return self.load_pointers(ptr, self.optional(mask), None if plain(other) is None else other)

    def load_pointers(self, ptr: tl.tensor, mask: tl.tensor | None, other: Any) -> tl.tensor:
        if mask is None and other is not None:
            raise ValueError("`other` cannot be provided without `mask`")
        element = pointee(ptr)
        if not ptr.type.is_block():
            refuse_block(mask, "Mask")
            refuse_block(other, "Other")
        if mask is None:
            return tensor(self.memory.load(ptr.handle, None, storage(element)), element)
        check_mask(mask)
        if other is None:
            ptr, mask = self.broadcast(ptr, mask)
            return tensor(self.memory.load(ptr.handle, mask.handle, storage(element)), element)
        # a bool in memory is a byte, and so is what stands for it
        filler = self.cast(self.as_element(other, int8 if element.is_bool() else element), element)
        ptr, mask, filler = self.broadcast_all((ptr, mask, filler))
        loaded = self.memory.load(ptr.handle, mask.handle, storage(element))
        return tensor(np.where(mask.handle, loaded, filler.handle).astype(storage(element), copy=False), element)

    def store(
        self,
        ptr: tl.tensor,
        value: Any,
        mask: Any,
        boundary_check: Sequence[int],
        cache_modifier: str,
        eviction_policy: str,
    ) -> tl.tensor:
        check_option(cache_modifier, STORE_CACHE, "Cache modifier")
        check_option(eviction_policy, EVICTION, "Eviction policy")
        if isinstance(ptr, tl.tensor) and ptr.type.scalar.is_const():
            raise ValueError("Cannot store to a constant pointer")
        if isinstance(ptr, tl.tensor) and is_block_pointer(ptr.type):
            if plain(mask) is not None:
                raise ValueError("`mask` argument cannot be specified for storing block pointers")
            return self.store_block(ptr, value, boundary_check)
        check_pointer(ptr, "tl.store")
        if boundary_check:
            raise ValueError(
                "`boundary_check` argument is not supported for storing a tensor of pointers or storing a scalar; use"
                " mask"
            )
        element = pointee(ptr)
        values, condition = self.fitted(ptr, value, self.optional(mask), int8 if element.is_bool() else element)
        self.store_pointers(ptr, values, condition)
        return self.nothing()

    def store_pointers(self, ptr: tl.tensor, value: tl.tensor, mask: tl.tensor | None) -> None:
        """Write elements that have the shape of the pointers, in the type of memory."""
        self.memory.store(ptr.handle, value.handle, None if mask is None else mask.handle)

    def fitted(
        self, ptr: tl.tensor, value: Any, mask: tl.tensor | None, element: dtype
    ) -> tuple[tl.tensor, tl.tensor | None]:
        """A value and a mask in the shape of the pointers, the value as `element`."""
        if mask is not None:
            check_mask(mask)
        if not ptr.type.is_block():
            refuse_block(value, "Value")
            refuse_block(mask, "Mask")
        shape = ptr.handle.shape
        converted = self.as_element(value, element)
        for operand, what in ((converted, "value"), (mask, "mask")):
            if operand is not None and not broadcasts(operand.handle.shape, shape):
                raise ValueError(
                    f"Expected pointer argument to have shape {list(operand.handle.shape)} but got {list(shape)}: the "
                    f"{what} does not broadcast to the pointers"
                )
        return self.stretch(converted, shape), None if mask is None else self.stretch(mask, shape)

    # -- atomics -----------------------------------------------------------------------------------------------

    def atomic_rmw(
        self, kind: str, ptr: tl.tensor, val: Any, mask: Any, sem: str | None, scope: str | None
    ) -> tl.tensor:
        """The value before the operation, per element; where the mask is false, 0 and no effect."""
        element = self.atomic_element(ptr, f"tl.atomic_{kind}", sem, scope)
        bits = element.primitive_bitwidth
        supported = element.name in ("fp16", "bf16") if kind == "add" and bits == 16 else bits >= 32
        if not supported or element.is_ptr():
            raise ValueError(f"atomic_{kind} does not support {element}: use a 32- or 64-bit type")
        values, condition = self.fitted(ptr, val, self.optional(mask), element)
        update, operand = update_of(kind, element, values.handle)
        old = self.updated(ptr.handle, operand, None if condition is None else condition.handle, update)
        return tensor(old.view(storage(element)), element)

    def updated(self, addresses: Array, values: Array, mask: Array | None, update: Update) -> Array:
        """Apply `update` element by element in order; the old values."""
        flat = np.asanyarray(addresses).reshape(-1)
        values = np.broadcast_to(values, np.shape(addresses)).reshape(-1)
        active = np.ones(flat.shape, np.bool_) if mask is None else np.asarray(mask).reshape(-1)
        if np.unique(np.asarray(flat)[active]).size == np.count_nonzero(active):
            old = self.memory.load(flat, active, values.dtype)
            self.memory.store(flat, np.asarray(update(old, values)).astype(values.dtype, copy=False), active)
            return old.reshape(np.shape(addresses))
        old = np.zeros(flat.shape, values.dtype)
        for lane in np.flatnonzero(active):
            here = flat[lane : lane + 1]
            old[lane : lane + 1] = self.memory.load(here, None, values.dtype)
            changed = np.asarray(update(old[lane : lane + 1], values[lane : lane + 1]))
            self.memory.store(here, changed.astype(values.dtype, copy=False), None)
        return old.reshape(np.shape(addresses))

    def atomic_cas(self, ptr: tl.tensor, cmp: Any, val: Any, sem: str | None, scope: str | None) -> tl.tensor:
        """Write `val` where memory holds exactly the bits of `cmp`; nothing is cast or broadcast."""
        element = self.atomic_element(ptr, "tl.atomic_cas", sem, scope)
        if element.primitive_bitwidth not in (16, 32, 64) or element.is_ptr():
            raise ValueError(f"atomic_cas only supports elements with width {{16, 32, 64}}, got {element}")
        expected, desired = (self.cas_operand(value, ptr, element) for value in (cmp, val))
        old = np.zeros(ptr.handle.shape, UNSIGNED[storage(element).itemsize]).reshape(-1)
        addresses = np.asanyarray(ptr.handle).reshape(-1)
        for lane in range(addresses.size):
            here = addresses[lane : lane + 1]
            found = self.memory.load(here, None, old.dtype)
            old[lane : lane + 1] = found
            if found[0] == expected.reshape(-1)[lane]:
                self.memory.store(here, desired.reshape(-1)[lane : lane + 1], None)
        return tensor(old.reshape(ptr.handle.shape).view(storage(element)), element)

    def cas_operand(self, value: Any, ptr: tl.tensor, element: dtype) -> Array:
        shape = ptr.handle.shape
        if not isinstance(value, tl.tensor):
            return bits_of(np.broadcast_to(self.as_element(value, element).handle, shape))
        same = value.dtype == element or (
            value.dtype.is_int() and element.is_int() and value.dtype.int_bitwidth == element.int_bitwidth
        )
        if not same or value.handle.shape != shape:
            raise ValueError(
                f"atomic_cas takes cmp and val of the type in memory, {shaped(element, shape)}, but got {value.type}; "
                "cast or broadcast it first"
            )
        return bits_of(value.handle)

    def atomic_element(self, ptr: Any, function: str, sem: str | None, scope: str | None) -> dtype:
        """The type an atomic works on."""
        check_pointer(ptr, function)
        if is_block_pointer(ptr.type):
            raise ValueError(f"`{function}` does not work on block pointers: use a pointer or a block of pointers")
        if ptr.dtype.is_const():
            raise ValueError(f"Cannot store to a constant pointer: `{function}` writes through it")
        check_option(sem, SEMANTICS, "Memory semantic")
        check_option(scope, SCOPES, "Memory semantic scope")
        return pointee(ptr)


def update_of(kind: str, element: dtype, values: Array) -> tuple[Update, Array]:
    """The function of an atomic, and its operands in the type it works on."""
    if kind in ("max", "min") and element.is_floating():
        return float_extremum(kind), bits_of(values)
    if kind in BITWISE:
        return UPDATES[kind], bits_of(values)
    return UPDATES[kind], np.asarray(values)


def float_extremum(kind: str) -> Update:
    """Maximum or minimum by bit patterns: the sign bit of the operand picks a signed or the opposite unsigned one."""
    forward, backward = (np.maximum, np.minimum) if kind == "max" else (np.minimum, np.maximum)

    def update(old: Array, new: Array) -> Array:
        signed = np.dtype(f"int{8 * old.dtype.itemsize}")
        positive = forward(old.view(signed), new.view(signed)).view(old.dtype)
        return np.where(new.view(signed) < 0, backward(old, new), positive)

    return update


def pointee(ptr: tl.tensor) -> Any:
    """The type a pointer, or each of a block of pointers, points to."""
    return ptr.dtype.element_ty  # pyright: ignore[reportAttributeAccessIssue]


def broadcasts(have: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether one shape can be repeated to another."""
    return len(have) <= len(wanted) and all(a in (b, 1) for a, b in zip(reversed(have), reversed(wanted), strict=False))


def check_pointer(ptr: object, function: str) -> None:
    if not isinstance(ptr, tl.tensor) or not ptr.type.scalar.is_ptr():
        kind = ptr.type if isinstance(ptr, tl.tensor) else ptr
        raise ValueError(f"Unsupported ptr type {kind} in `{function}`: expected a pointer or a block of pointers")


def check_mask(mask: tl.tensor) -> None:
    if not mask.dtype.is_bool():
        raise ValueError(f"Mask must have boolean scalar type, got {mask.dtype}; compare it with 0")


def refuse_block(value: object, name: str) -> None:
    if isinstance(value, tl.tensor) and value.type.is_block():
        raise ValueError(
            f"{name} argument cannot be block type if pointer argument is not a block: it has shape "
            f"{list(value.handle.shape)}"
        )
