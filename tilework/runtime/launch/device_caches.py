"""The kernels that were compiled for each device."""

from collections import defaultdict
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key_locks import KeyLocks

ASKED_FIRST = KeyLocks()


class DeviceCaches(defaultdict[Any, Any]):
    """What a kernel has compiled, by device (`DriverConfig.cache_key`). A key is of one driver, whoever asks for it, and when.
    The name of a kind of device, ``"cpu"``, means the current one of that kind.

    Threads that ask for a new key at the same time get one cache: what was compiled into another would be compiled again.
    """

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self[driver.key_of_kind(key)]
        with ASKED_FIRST.held((id(self), key)), driver.using(driver.of_key(key)):
            return self[key] if key in self else super().__missing__(key)
