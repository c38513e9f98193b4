"""One new process of `cold_start`: import, launch `add` once, say what each phase took.

    python -m benchmarks.cold_start_process PACKAGE DEVICE plain|phases
    python -m benchmarks.cold_start_process EXAMPLE TARGET first  the first compilation, and later ones of the same size

`PACKAGE` is tilework or triton, `DEVICE` cpu, cuda or a target such as cuda:90, which is compiled for and not launched
on. Phases are taken by wrapping functions of tilework as their modules are imported; what one phase calls of another
counts for that one only, so that a phase is without the imports that it causes.
"""

import builtins
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any

PHASES = ("imports", "cache", "frontend", "passes", "LLVM text", "machine code", "own code", "load", "rest")
WRAPPED = {
    "tilework.runtime.kernel_cache.key": {"triton_key": "cache"},
    "tilework.runtime.kernel_cache.managers": {
        "get_cache_key": "cache",
        "load_entry": "cache",
        "store_entry": "cache",
        "entry_paths": "cache",
    },
    "tilework.frontend.generator": {"compile_to_ttir": "frontend"},
    "tilework.targets.base": {"run_passes": "passes"},
    "tilework.ir.printer": {"print_module": "passes"},
    "tilework.targets.cpu.pipeline": {"llvm_text": "LLVM text", "object_code": "machine code"},
    "tilework.targets.nvidia.lower.emit": {"emit_module": "LLVM text"},
    "tilework.targets.nvidia.pipeline": {"ptx_of": "machine code", "cubin_of": "machine code"},
    "tilework.runtime.launch.native.code.launcher": {"launcher_text": "own code"},
    "tilework.targets.cpu.run.pool_code": {"pool_text": "own code"},
    "tilework.targets.llvm.apart": {"begin": "own code"},
    "tilework.targets.llvm.compile": {"to_object": "machine code", "jit_load": "load"},
    "tilework.targets.cpu.run.interface": {"load": "load"},
    "tilework.runtime.devices.cuda.device": {"load_binary": "load"},
}


TILES = {
    "add": {"BLOCK": 1024},
    "softmax": {"BLOCK": 1024},
    "matmul": {"BM": 64, "BN": 64, "BK": 64},
    "attention": {"BM": 64, "BN": 64, "D": 64},
}


def cpu_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


class Clock:
    """Seconds of CPU time by phase; `enter` and `leave` nest."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self.running = ["rest"]
        self.since = cpu_seconds()

    def enter(self, phase: str) -> None:
        now = cpu_seconds()
        self.spent[self.running[-1]] += now - self.since
        self.running.append("own code" if "own code" in self.running and phase == "machine code" else phase)
        self.since = now

    def leave(self) -> None:
        now = cpu_seconds()
        self.spent[self.running.pop()] += now - self.since
        self.since = now

    def timed(self, call: Callable[..., Any], phase: str) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            self.enter(phase)
            try:
                return call(*args, **kwargs)
            finally:
                self.leave()

        return timed


class WrappingFinder:
    """Wraps what `WRAPPED` names before anybody can have imported it from its module."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name in WRAPPED else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            for function, phase in WRAPPED[name].items():
                if hasattr(module, function):
                    setattr(module, function, self.clock.timed(getattr(module, function), phase))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def watch() -> Clock:
    """Count from now on."""
    clock = Clock()
    sys.meta_path.insert(0, WrappingFinder(clock))
    plain, timed = builtins.__import__, clock.timed(builtins.__import__, "imports")
    builtins.__import__ = lambda name, *args, **named: (plain if name in sys.modules else timed)(name, *args, **named)
    importlib.import_module = clock.timed(importlib.import_module, "imports")
    return clock


def first_launch(jit: Callable[..., Any], tl: Any, compiler: Any, device: str) -> Callable[[], Any]:
    """Return the launch to measure, with arguments that exist already."""

    @jit
    def add(x, y, out, n, BLOCK: tl.constexpr):  # pyright: ignore[reportInvalidTypeForm, reportMissingParameterType]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)

    if ":" in device:
        signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        attrs = {(index,): [["tt.divisibility", 16]] for index in range(3)}
        return lambda: compiler(add, signature, {"BLOCK": 1024}, attrs)
    if device == "cpu":
        import numpy as np  # before the clock starts: who launches on the host has arrays

        x = np.ones(5000, np.float32)
        arguments = (x, x.copy(), np.zeros_like(x))
    else:
        import torch  # likewise

        x = torch.ones(5000, device="cuda")
        arguments = (x, x.clone(), torch.zeros_like(x))
        torch.cuda.synchronize()

    def launch() -> None:
        add[(5,)](*arguments, 5000, BLOCK=1024)
        if device == "cuda":
            torch.cuda.synchronize()  # pyright: ignore[reportPossiblyUnboundVariable]
        assert bool((arguments[2] == 2).all())

    return launch


def first_compile(name: str, device: str) -> None:
    """Say what the first compilation of an example took, and the fastest of three others: of copies of it, into empty
    caches."""
    spec = importlib.util.find_spec(f"examples.{name}")
    assert spec is not None and spec.loader is not None
    importlib.import_module(f"examples.{name}")  # NumPy, and what else examples need
    spent: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/cache"
        for _ in range(4):
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            copy = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(copy)
            case: Any = copy.CASES[0]
            start, cpu = time.perf_counter(), cpu_seconds()
            compiler: Any = importlib.import_module("tilework.compiler")
            kind = importlib.import_module("tilework.target").GPUTarget
            target = kind("cpu", "host", 1) if device == "cpu" else kind("cuda", int(device.partition(":")[2]), 32)
            source = compiler.ASTSource(case.kernel, case.types, {**case.constexprs, **TILES[name]}, case.attrs)
            compiler.compile(source, target)
            spent.append((time.perf_counter() - start, cpu_seconds() - cpu))
    warm = [min(times) for times in zip(*spent[1:], strict=True)]
    print(json.dumps({"first": spent[0], "warm": warm}))


def main() -> None:
    package, device, mode = sys.argv[1:]
    if mode == "first":
        first_compile(package, device)
        return
    if device == "cpu":
        import numpy  # noqa: F401
    elif device == "cuda":
        import torch

        torch.ones(1, device="cuda")
    clock = watch() if mode == "phases" else None
    start, cpu = time.perf_counter(), cpu_seconds()
    jit: Any = importlib.import_module(package).jit
    tl = importlib.import_module(f"{package}.language")
    imported = (time.perf_counter() - start, cpu_seconds() - cpu)

    def compiler(fn: Any, signature: Any, constants: Any, attrs: Any) -> None:
        module = importlib.import_module(f"{package}.compiler")
        if package == "tilework":
            target = importlib.import_module("tilework.target").GPUTarget.parse(device)
        else:
            kind = importlib.import_module("triton.backends.compiler").GPUTarget
            target = kind("cuda", int(device.partition(":")[2]), 32)
        module.compile(module.ASTSource(fn, signature, constants, attrs), target=target)

    launch = first_launch(jit, tl, compiler, device)
    start, cpu = time.perf_counter(), cpu_seconds()
    if clock is not None:
        clock.spent.clear()
        clock.since = cpu
    launch()
    launched = (time.perf_counter() - start, cpu_seconds() - cpu)
    if clock is not None:
        clock.enter("done")
    phases = {} if clock is None else {phase: clock.spent[phase] for phase in PHASES}
    print(json.dumps({"import": imported, "launch": launched, "phases": phases}))


if __name__ == "__main__":
    main()
