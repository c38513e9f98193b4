"""Memory that no argument names: pointers that a kernel loads from a table of addresses point somewhere.

A launch cannot know the arrays behind them. Their addresses are looked up in the map of this process, so that a wrong one
is an error and not a crash. Where the system has no such map (it is Linux's /proc/self/maps), they stay errors.
"""

import ctypes
import os

import numpy as np

MAP = "/proc/self/maps"


def mapped_bytes(address: int) -> np.ndarray | None:
    """The mapped, readable memory around `address` as bytes, read-only where the system says so; None: not mapped."""
    if not os.path.exists(MAP):
        return None
    with open(MAP) as lines:
        for line in lines:
            extent, permissions, *_ = line.split(maxsplit=2)
            start, end = (int(part, 16) for part in extent.split("-"))
            if start <= address < end:
                if permissions[0] != "r":
                    return None
                array = np.frombuffer(memoryview((ctypes.c_uint8 * (end - start)).from_address(start)), np.uint8)
                array.flags.writeable = permissions[1] == "w"
                return array
    return None
