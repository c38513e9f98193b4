"""Names that programs written for Triton use, under `as_triton`: what they are, and what they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    """Run a program that says `import triton`; what it printed."""
    folder = tmp_path_factory.mktemp("names")

    def runner(script: str, **environment: str) -> str:
        (folder / "program.py").write_text(script)
        settings = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRITON_CACHE_DIR": str(folder / "cache"),
            "TRITON_INTERPRET": "0",
        }
        command = [sys.executable, "-m", "tilework.as_triton", "program.py"]
        done = subprocess.run(
            command, cwd=folder, env=settings | environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return runner


BACKENDS = """
import triton
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase

assert list(triton.backends.backends)[:2] == ["nvidia", "cpu"]
for backend in triton.backends.backends.values():
    assert issubclass(backend.compiler, BaseBackend) and issubclass(backend.driver, DriverBase)
driver = triton.runtime.driver
cpu = triton.backends.backends["cpu"]
assert isinstance(driver.active, cpu.driver) and cpu.driver.is_active()
driver.set_active(cpu.driver())
target = driver.active.get_current_target()
assert cpu.compiler.supports_target(target) and driver.active.map_python_to_cpp_type("i32") == "int32_t"
for target in (target, GPUTarget("cuda", 90, 32)):
    backend = triton.compiler.compiler.make_backend(target)
    options = backend.parse_options({})
    assert isinstance(backend, BaseBackend) and options.__dict__["num_warps"] == 4
    assert "min_dot_size" in backend.get_codegen_implementation(options) and backend.get_module_map() is not None
    stages = {}
    backend.add_stages(stages, options)
    print(*stages)
"""


def test_backends_by_name(run) -> None:
    assert run(BACKENDS, TILEWORK_DEVICE="native") == "ttir ttcir llir obj\nttir ttgir llir ptx cubin\n"


LATE = """
import triton, sys
assert triton.compiler.errors.CompilationError and triton._C.libtriton.native_specialize_impl
assert not hasattr(triton.compiler.compiler, "AttrsDescriptor") and not hasattr(triton.backends.compiler, "AttrsDescriptor")
import triton.compiler
triton.compiler.errors, triton.compiler.code_generator
key = "ab" * 32
assert triton.runtime.cache._base32(key) in triton.runtime.cache.FileCacheManager(key).cache_dir
import triton.language as tl
assert tl.extra.cpu.libdevice.exp is tl.extra.libdevice.exp
from triton.language.extra.cpu.libdevice import exp
assert "backends" in dir(triton.backends) and "jit" in dir(triton) and "autotune" in dir(triton)
"""


@pytest.mark.parametrize("first", ["", "import tilework.compiler, tilework.runtime.cache, tilework.backends\n"])
def test_names_without_their_own_import(run, first: str) -> None:
    """Attributes are there after `import triton` alone, whatever was imported before."""
    run(first + LATE)


PRUNING = """
import numpy as np, triton, triton.language as tl
from triton.runtime.autotuner import Autotuner

class Mine(Autotuner):
    def prune_configs(self, kwargs):
        seen.append((sorted(self.nargs), sorted(kwargs)))
        return super().prune_configs(kwargs)

    def _bench(self, *args, config, **meta):
        seen.append((len(args), config.kwargs["BLOCK"], self.nargs["n"]))
        return super()._bench(*args, config=config, **meta)

@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)

seen = []
prune = {"early_config_prune": lambda configs, named, **kwargs: configs[: named["n"] // 50]}
configs = [triton.Config({"BLOCK": size}) for size in (16, 32, 64)]
tuner = Mine(fill, fill.arg_names, configs, ["n"], None, None, prune_configs_by=prune, do_bench=lambda call, quantiles: call() or [1.0] * 3)
x = np.zeros(100, np.float32)
tuner[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
assert x.all() and tuner.nargs is None
assert seen == [(["n", "x"], ["grid", "warmup"] if "warmup" in seen[0][1] else ["grid"]), (2, 16, 100), (2, 32, 100)], seen
"""


def test_an_autotuner_of_ones_own(run) -> None:
    """Inductor's pruning: `prune_configs(kwargs)` finds the positional arguments in `nargs`."""
    run(PRUNING)


def test_small_functions() -> None:
    from collections import namedtuple

    from tilework import language as tl
    from tilework.triton import _utils

    Pair = namedtuple("Pair", "a b")
    values = [1, ("s", 2, Pair("q", [3, "t"])), [], "u", tl.tuple([4])]
    paths = _utils.find_paths_if(values, lambda path, value: isinstance(value, str))
    assert paths == [(1, 0), (1, 2, 0), (1, 2, 1, 1), (3,)]
    assert [_utils.get_iterable_path(values, path) for path in paths] == ["s", "q", "t", "u"]
    _utils.set_iterable_path(values, (4, 0), 5)
    assert values[4][0] == 5 and _utils.get_iterable_path(values, ()) is values
    with pytest.raises(AssertionError):
        _utils.set_iterable_path(values, (1, 0), 5)
    bits = ("i1", 1), ("int32", 32), ("half", 16), ("float8_e5m2", 8), ("void", 0), ("u64", 64), ("bool", 1)
    assert all(_utils.get_primitive_bitwidth(name) == width for name, width in bits) and len(_utils.BITWIDTH_DICT) == 48
    assert _utils.is_namedtuple(Pair) and not _utils.is_namedtuple(Pair(1, 2)) and not _utils.is_namedtuple(tuple)
    assert [n for n in range(-4, 9) if _utils.is_power_of_two(n)] == [0, 1, 2, 4, 8]
