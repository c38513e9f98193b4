"""A compiler and a driver in a package of their own are found through its entry points, and a launch goes to them."""

import os
from pathlib import Path

import tilework
from tests.python_programs import run_python

ENTRY_POINTS = """[tilework.backends]
toy = toy.target:ToyBackend

[tilework.drivers]
toy = toy.target:ToyDriver

[tilework.targets]
toy = toy.target:describe
"""
TARGET = """
from tilework.runtime.devices.driver import Driver
from tilework.runtime.devices.launcher import Launcher
from tilework.target import GPUTarget, Target
from tilework.targets.base import Backend
from tilework.targets.options import CompileOptions

def describe(arch):
    return Target("toy", arch)

class ToyBackend(Backend):
    binary_ext = "toy"

    def parse_options(self, settings):
        return CompileOptions.of(settings, backend_name="toy")

    def stages(self, options):
        return {"ttir": lambda module: module, "toy": lambda module: b"a toy binary"}

    def hash(self):
        return "toy-1"

class ToyLauncher(Launcher):
    def start(self, grid, stream, function, args, scratch):
        print(*grid, function, args[1])

class ToyDriver(Driver):
    launcher_cls = ToyLauncher

    def __init__(self):
        self.utils = self

    @classmethod
    def is_active(cls):
        return True

    def get_current_target(self):
        return GPUTarget("toy", "one", 1)

    def get_device_properties(self, device):
        return {"max_shared_mem": 1}

    def load_binary(self, name, binary, shared, device):
        return binary, f"{name} of {binary.decode()}", 1, 0, 1024
"""
PROGRAM = """
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def double(x, n):
    tl.store(x, n)

kernel = double[(3, 2)](np.zeros(1), 7)
print(kernel.asm["toy"], "sass" in kernel.asm, tilework.runtime.driver.active.get_device_interface().__name__)
"""
# Triton's interface: stages take the metadata too, and write into it what the launcher must know
TRITON_STYLE = """
from triton.backends.compiler import BaseBackend
from tilework.targets.options import CompileOptions

class ToyBackend(BaseBackend):
    binary_ext = "toy"

    @staticmethod
    def supports_target(target):
        return target.backend == "toy"

    def parse_options(self, opts):
        return CompileOptions.of(opts, backend_name="toy")

    def add_stages(self, stages, options, language=None):
        stages["ttir"] = lambda module, metadata: module
        stages["toy"] = self.make_toy

    def make_toy(self, module, metadata):
        metadata["name"] = "renamed_" + module.get_entry_func_name()
        return b"a binary"

    def load_dialects(self, ctx):
        pass

    def get_module_map(self):
        return {}

    def hash(self):
        return "toy-2"
"""


def launched(folder: Path, *options: str) -> list[str]:
    (folder / "toy-1.0.dist-info").mkdir()
    (folder / "toy-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "toy-1.0.dist-info" / "METADATA").write_text("Name: toy\nVersion: 1.0\n")
    (folder / "program.py").write_text(PROGRAM)
    root = Path(tilework.__file__).parent.parent
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TILEWORK_DEVICE"},
        "PYTHONPATH": os.pathsep.join((str(folder), str(root))),
        "TRITON_CACHE_DIR": str(folder / "cache"),
    }
    done = run_python(*options, str(folder / "program.py"), cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_package_brings_a_target(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "target.py").write_text(TARGET)
    assert launched(tmp_path) == ["3 2 1 double of a toy binary 7", "b'a toy binary' False HostClock"]


def test_a_backend_with_the_interface_of_triton(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    text = TARGET.replace("class ToyBackend", "class Unused") + TRITON_STYLE
    (tmp_path / "toy" / "target.py").write_text(text)
    found = launched(tmp_path, "-m", "tilework.as_triton")
    assert found == ["3 2 1 renamed_double of a binary 7", "b'a binary' False HostClock"]
