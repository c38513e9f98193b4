"""Machine code of the runtime in bundles: there for both kinds of processors, loaded without LLVM, and in use."""

import platform
import sys
from pathlib import Path

import pytest

import tilework
import tilework.language as tl
from tests.runtime.without_compiler import run_without_compiler
from tilework.runtime.bundle.own_objects import own_objects
from tilework.targets.llvm.object_loader import Unknown, check_loadable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they are made on Linux")

LAUNCHED = """
import pathlib, types
import numpy as np
import tilework
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.devices.host.own_code import PROVIDERS
from tilework.runtime.launch.native_machine import is_possible, machine
from tilework.targets.cpu.run.pool import POOL

taken = []

def provide(name):
    taken.append(name.rpartition("/")[2])
    return (pathlib.Path("objects") / name).read_bytes()

PROVIDERS.append(provide)
files = {path.name: path.read_bytes() for path in pathlib.Path("kernel").iterdir()}
source = types.SimpleNamespace(signature={"x": "*bf16", "n": "i32", "out": "*fp32"})
kernel = CompiledKernel(source, {}, "key", files)
x, out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
bits = (x.view(np.uint32) >> 16).astype(np.uint16)
for _ in range(3):
    kernel[(64, 1, 1)](bits, 1000, out)
assert (out[:1000] == np.exp((bits.astype(np.uint32) << 16).view(np.float32)[:1000] * 0) + 1).all() and (out[1000:] == 0).all()
assert POOL.launch is not None and "tilework_pool" in taken
assert machine() is not None or not is_possible()
import sys
assert not {"xdsl", "llvmlite", "ml_dtypes", "tilework.targets.llvm.compile"} & set(sys.modules)
"""


@tilework.jit
def kernel(x, n, out):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.exp(value.to(tl.float32) * 0) + 1, mask=i < n)
    if tl.program_id(0) == 0:
        tl.device_print("first", tl.load(x + 1))


def test_they_are_loadable_without_llvm_and_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    objects = own_objects()
    assert len(objects) == 6
    for name, data in objects.items():
        processor = name.partition("/")[0].partition("-")[2]
        check_loadable(data, processor)
        with pytest.raises(Unknown):
            check_loadable(data, {"x86_64": "aarch64", "aarch64": "x86_64"}[processor])
        (tmp_path / "objects" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "objects" / name).write_bytes(data)
    source = tilework.compiler.ASTSource(kernel, {"x": "*bf16", "n": "i32", "out": "*fp32"})
    compiled = tilework.compile(source, tilework.compiler.GPUTarget.parse("cpu"))
    (tmp_path / "kernel").mkdir()
    for path in compiled.metadata_group.values():
        if (extension := Path(path).suffix[1:]) in ("json", "obj"):
            (tmp_path / "kernel" / extension).write_bytes(Path(path).read_bytes())
    check_loadable(compiled.asm["obj"], platform.machine())
    done = run_without_compiler(tmp_path, LAUNCHED)
    assert done.returncode == 0, done.stderr
    assert "first1.000000" in done.stdout.replace(" ", "").replace(":", ""), done.stdout
