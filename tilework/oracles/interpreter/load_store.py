"""Loads, stores and atomics through pointers and blocks of pointers.

Programs run one after another, so an atomic is a load, an operation and a store; elements of a block that hit the same
address are applied one by one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.language.typing.access import pointee
from tilework.language.typing.carrier import AccessOptions
from tilework.numerics.nans import canonical
from tilework.numerics.rounding import Array, bits_of
from tilework.oracles.interpreter.descriptors import Descriptors
from tilework.oracles.interpreter.formats import storage
from tilework.oracles.interpreter.tensors import tensor

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


class Access(Descriptors):
    """What `load`, `store` and the atomics do to memory."""

    def read(
        self, ptr: tl.tensor, mask: tl.tensor | None, other: tl.tensor | None, options: AccessOptions
    ) -> tl.tensor:
        element = pointee(ptr)
        loaded = self.memory.load(ptr.handle, None if mask is None else mask.handle, storage(element))
        if mask is None or other is None:
            return tensor(loaded, element)
        return tensor(np.where(mask.handle, loaded, other.handle).astype(storage(element), copy=False), element)

    def store_pointers(
        self, ptr: tl.tensor, value: tl.tensor, mask: tl.tensor | None, options: AccessOptions = AccessOptions()
    ) -> None:
        """Write elements that have the shape of the pointers, in the type of memory."""
        self.memory.store(ptr.handle, value.handle, None if mask is None else mask.handle)

    def update(
        self,
        kind: str,
        ptr: tl.tensor,
        value: tl.tensor,
        mask: tl.tensor | None,
        sem: str,
        scope: str,
        ordered: bool = False,
    ) -> tl.tensor:
        """The value before the operation, per element; where the mask is false, 0 and no effect."""
        element = value.dtype
        handle = canonical(value.handle) if self.options.reproducible else value.handle
        update, operand = update_of(kind, element, handle)
        old = self.updated(ptr.handle, operand, None if mask is None else mask.handle, update)
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

    def compare_and_swap(
        self, ptr: tl.tensor, expected: tl.tensor, desired: tl.tensor, sem: str, scope: str
    ) -> tl.tensor:
        """Writes where memory holds exactly the bits of `expected`."""
        handles = [expected.handle, desired.handle]
        wanted, new = (
            bits_of(canonical(handle) if self.options.reproducible else handle).reshape(-1) for handle in handles
        )
        element, addresses = pointee(ptr), np.asanyarray(ptr.handle).reshape(-1)
        old = np.zeros(addresses.shape, wanted.dtype)
        for lane in range(addresses.size):
            here = addresses[lane : lane + 1]
            found = self.memory.load(here, None, old.dtype)
            old[lane : lane + 1] = found
            if found[0] == wanted[lane]:
                self.memory.store(here, new[lane : lane + 1], None)
        return tensor(old.reshape(ptr.handle.shape).view(storage(element)), element)


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
