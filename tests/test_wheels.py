"""The modules of `tilework-runtime` (`packages/runtime`): serving needs nothing of the compiler's."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SERVING = (
    *(
        "tilework",
        "tilework.language",
        "tilework.errors",
        "tilework.testing",
        "tilework.tools.cli",
        "tilework.tools.cache",
    ),
    *(
        "tilework.runtime.launch.python.jit",
        "tilework.runtime.launch.native.kernel_launch",
        "tilework.runtime.compile.cached",
    ),
    *("tilework.runtime.bundle.bundle_file", "tilework.runtime.tuning.autotuner", "tilework.tools.tensor_descriptor"),
    *("tilework.runtime.devices.host.driver", "tilework.runtime.devices.host.native_launcher"),
    *("tilework.runtime.devices.cuda.driver", "tilework.runtime.devices.cuda.guarded_launch"),
    *("tilework.runtime.devices.cuda.driver", "tilework.runtime.devices.hip_driver"),
    *("tilework.targets.cpu.pipeline", "tilework.targets.nvidia.pipeline", "tilework.targets.amd.pipeline"),
    *("tilework.targets.cpu.run.pool", "tilework.targets.cpu.run.printing", "tilework.targets.llvm.object_loader"),
)


@pytest.fixture(scope="module")
def serving(request: pytest.FixtureRequest) -> object:
    folder = str(ROOT / "packages" / "runtime")
    sys.path.insert(0, folder)
    request.addfinalizer(lambda: sys.path.remove(folder))
    import serving_modules

    return serving_modules


def test_what_serves_is_in_the_wheel_of_the_runtime(serving) -> None:
    found = serving.runtime_modules()
    assert not (missing := set(SERVING) - found.keys()), f"these load the compiler: {sorted(missing)}"
    assert len(found) < len(serving.modules()) / 2
    assert not [
        name for name in found if name.split(".")[1:2] and name.split(".")[1] in ("ir", "frontend", "transforms")
    ]


def test_imports_that_count(serving) -> None:
    text = """
import numpy
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import xdsl.a
try:
    from tilework.targets import base
except ImportError:
    import llvmlite.binding
class C:
    from . import errors
def f():
    import xdsl.b
"""
    path = ROOT / "tilework" / "somewhere.py"

    class Written(type(path)):  # type: ignore[misc]
        def read_text(self) -> str:
            return text

    every = {"tilework.targets.base": path, "tilework.errors": path}
    found = set(serving.loaded_with("tilework.somewhere", Written(path), every))
    assert {"tilework.targets.base", "tilework.errors", "llvmlite", "numpy"} <= found
    assert "xdsl" not in found
