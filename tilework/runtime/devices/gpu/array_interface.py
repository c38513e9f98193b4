"""Arrays of other libraries that describe themselves in ``__cuda_array_interface__``, and the work on them that is not
done yet.

    {"data": (139637976727552, False), "typestr": "<f4", "shape": (64,), "version": 3, "stream": 94532}

Since version 3 of that protocol `stream` says where its owner works on the memory: 1 is the default stream, 2 that of
the thread, None (or no such item) that there is nothing to wait for. What is launched waits on the GPU, not the host.
"""

from collections.abc import Mapping
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.gpu.own_interface import Event

LEGACY = 1  # the default stream, which drivers also call 0


def interface_address(interface: Mapping[str, Any], stream: int) -> int:
    """The address of an array; what is put into `stream` from now on waits for its owner."""
    owner = interface.get("stream")
    if owner == 0:
        raise ValueError(
            "the item `stream` of __cuda_array_interface__ is 0, which its protocol does not allow: 1 is the default stream, 2"
            " that of the thread, and None says that there is nothing to wait for"
        )
    if owner is not None and (owner := 0 if owner == LEGACY else owner) != stream:
        wait_behind(owner, stream)
    return interface["data"][0]


def wait_behind(owner: int, stream: int) -> None:
    """Let what is put into `stream` wait for what is in the stream of an owner now."""
    gpus = driver.active.gpus  # pyright: ignore[reportAttributeAccessIssue]  # of GPUs, where such memory is
    event, library = Event(gpus), gpus.library()
    if library.code("record_event", event.handle, owner):
        library.forget_error()
        library.wait_for_stream(owner)  # of another GPU, whose streams record no event of this one
    else:
        library.wait_in_stream(stream, event.handle, 0)
