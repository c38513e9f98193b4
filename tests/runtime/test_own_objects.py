"""Machine code of the runtime in bundles: there for both kinds of processors, and loaded without LLVM.

`tests/examples/test_service.py` runs it.
"""

import sys

import pytest

from tilework.aot.precompile import own_objects
from tilework.targets.llvm.object_loader import MACHINES, Layout, Object, Unknown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they are made on Linux")


def test_they_are_loadable_without_llvm() -> None:
    objects = own_objects()
    assert len(objects) == 6 and objects == own_objects()
    for name, data in objects.items():
        processor = name.partition("/")[0].partition("-")[2]
        Layout(Object(data, MACHINES[processor]))
        with pytest.raises(Unknown):
            Object(data, MACHINES[{"x86_64": "aarch64", "aarch64": "x86_64"}[processor]])
