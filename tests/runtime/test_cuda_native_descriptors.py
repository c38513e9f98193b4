"""Native launches with tensor descriptors: their maps follow whatever is changed, as on the Python path."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.runtime.test_cuda_native_launch import Counted, as_python_does, copied
from tests.runtime.test_cuda_native_launch import cuda as cuda
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.tools.tensor_descriptor import TensorDescriptor

Pair = namedtuple("Pair", "first second")


def test_maps_of_descriptors_follow_what_they_describe(cuda: EmulatedCuda) -> None:
    k = Counted(copied, BLOCK=32)
    base, out = DeviceArray.of(np.arange(4096, dtype="f4").reshape(64, 64)), DeviceArray((64, 64), "f4")

    def described(holder: DeviceArray, rows: int = 64, columns: int = 64, **more: Any) -> Any:
        return TensorDescriptor(holder, [rows, columns], [64, 1], [8, 32], **more)

    source, target = described(base), described(out)
    k(source, target, 8)
    for rows, columns in ((64, 64), (64, 32), (9, 64), (64, 64)):
        as_python_does(cuda, k, described(base, rows, columns), target, 24, slow=0)
        source.shape[:] = [rows, columns]  # the same object, changed
        as_python_does(cuda, k, source, target, 40, slow=0)
    for _ in range(40):  # more than are kept
        as_python_does(cuda, k, described(DeviceArray((64, 64), "f4")), target, 56, slow=0)
    source.base = out
    as_python_does(cuda, k, source, target, 56, slow=0)
    as_python_does(cuda, k, described(base, padding="nan"), target, 56)
    as_python_does(cuda, k, described(base), described(DeviceArray.of(np.zeros((64, 64), "f4"))), 56, slow=0)
    wide = TensorDescriptor(DeviceArray((64, 128), "f4"), [64, 64], [128, 1], [8, 32])
    as_python_does(cuda, k, wide, target, 56, slow=0)
    higher = [TensorDescriptor(holder, [64, 64], [64, 1], [16, 32]) for holder in (base, out)]
    as_python_does(cuda, k, *higher, 16, slow=1)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a size": lambda desc: desc.shape.__setitem__(0, 9),
    "a stride": lambda desc: desc.strides.__setitem__(0, 128),
    "a size, by number": lambda desc: [desc.shape.pop(), desc.shape.append(int("32"))],
    "all sizes": lambda desc: desc.shape.__setitem__(slice(None), [32, 32]),
    "the list of sizes": lambda desc: setattr(desc, "shape", [8, 64]),
    "a tuple of sizes": lambda desc: setattr(desc, "shape", (8, 64)),
    "the base": lambda desc: setattr(desc, "base", DeviceArray((64, 64), "f4")),
    "the base in its dictionary": lambda desc: vars(desc).update(base=DeviceArray((64, 64), "f4")),
    "the base, by deleting": lambda desc: [delattr(desc, "base"), setattr(desc, "base", DeviceArray((64, 64), "f4"))],
    "the block": lambda desc: desc.block_shape.__setitem__(0, 16),
    "the padding": lambda desc: setattr(desc, "padding", "nan"),
    "the rounding": lambda desc: setattr(desc, "round_f32_to_tf32", True),
    "the rounding, as another type": lambda desc: setattr(desc, "round_f32_to_tf32", 1),
    "another class of sizes": lambda desc: setattr(desc, "shape", Pair(16, 64)),
    "what it is": lambda desc: vars(desc).update(vars(TensorDescriptor(DeviceArray((9, 64), "f4"), [9, 64], [64, 1],
                                                                       [8, 32]))),
}  # fmt: skip


@pytest.mark.parametrize("parts", [list, tuple])
def test_a_changed_descriptor_is_seen(cuda: EmulatedCuda, parts: type) -> None:
    """Each change of a descriptor that is known: whatever the Python path would do, and nothing stale."""
    k, out = Counted(copied, BLOCK=32), DeviceArray((64, 64), "f4")
    target = TensorDescriptor(out, parts([64, 64]), parts([64, 1]), parts([8, 32]))
    for change in CHANGES.values():
        base = DeviceArray((64, 128), "f4")
        source = TensorDescriptor(base, parts([64, 64]), parts([64, 1]), parts([8, 32]))
        k(source, target, 8)
        as_python_does(cuda, k, source, target, 8, slow=0)
        try:
            change(source)
        except (AttributeError, TypeError):  # a tuple
            assert parts is tuple
        both = []
        for call in (k, lambda *args: k.kernel.run(*args, grid=(1,), **k.options)):
            try:
                call(source, target, 8)
                both.append(cuda.launches.pop())
            except Exception as error:  # noqa: BLE001 - both are compared
                both.append((type(error), str(error)))
        assert both[0] == both[1]
    numbers: Any = TensorDescriptor(DeviceArray((4096, 64), "f4"), [4096, 64], [64, 1], [8, 32])
    for size in range(1000, 1100):  # ints that are freed, and made again where others were
        numbers.shape[0] = int(str(size))
        as_python_does(cuda, k, numbers, target, 8, slow=0)
