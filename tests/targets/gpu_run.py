"""A kernel compiled to PTX and run in the emulator, beside what the evaluator says about its TTIR.

problem = check(Config("softmax", 90))              None, or what differs
.venv/bin/python -m tests.targets.gpu_run softmax add --arch 80 --warps 8
"""

import argparse
import sys
import time
from functools import cache
from typing import Any

import numpy as np

from tests.pipeline.gpu import CASES, Config, Outcome, contents, difference, run, ttgir, ttir, wanted
from tilework.errors import PassError
from tilework.ir.printer import print_module
from tilework.oracles.emulator.device import Device
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx

CPU = {80: "sm_80", 86: "sm_86", 89: "sm_89", 90: "sm_90a"}
VERSION = 88


def llvm_text(config: Config, lines: bool = True) -> str:
    return emit_module(ttgir(config), config.arch, lines=lines)


@cache
def ptx_of(config: Config) -> str:
    return to_ptx(llvm_text(config), PtxSettings(CPU[config.arch], VERSION))


def run_ptx(config: Config, text: str, checks: bool = True) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Return the arrays after the kernel has run."""
    case = CASES[config.name]
    arrays = case.arguments(np.random.default_rng(11))
    names = [name for name in case.kernel.arg_names if name in case.signature]
    device = Device(check=checks, together=True)
    memory = [(array, device.upload(array)) for array in case.memory(arrays)]
    known = {id(array): address for array, address in memory}
    moved = {array.ctypes.data: address for array, address in memory}
    uploaded = [
        (array, device.upload(with_addresses(array, moved)))
        for value in arrays.values()
        for array in flat(value)
        if id(array) not in known
    ]
    known |= {id(array): address for array, address in uploaded}
    function = device.load(text).function(case.kernel.__name__)
    facts = ptx_text.metadata(text)
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * int(np.prod(case.grid))))
    args = [known.get(id(arrays[name]), arrays[name]) for name in names]
    device.launch(function, case.grid, 32 * config.warps, [*args, scratch, 0], facts.get("shared", 0))
    device.synchronize()
    for array, address in (*uploaded, *memory):
        array[...] = device.download(address, array)
    return list(contents(arrays))


def with_addresses(array: np.ndarray[Any, Any], moved: dict[int, int]) -> np.ndarray[Any, Any]:
    """The array; if it holds addresses of arrays, with those that they have on the device."""
    if array.dtype not in (np.int64, np.uint64) or not set(array.ravel().tolist()) & set(moved):
        return array
    return np.array([moved.get(value, value) for value in array.ravel().tolist()], array.dtype).reshape(array.shape)


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    values = value if isinstance(value, list) else [value]
    return [array for array in values if isinstance(array, np.ndarray)]


@cache
def wanted_on_device(name: str, arch: int) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Return the results of the TTIR with operands truncated to tf32, as tensor cores read them."""
    exact = wanted(name, arch)
    if "tf32" not in (text := print_module(ttir(name, arch))) or "xf32> * tensor<" not in text:
        return exact
    return run(CASES[name], ttir(name, arch), truncate_tf32=True)


def check(config: Config, checks: bool = True) -> str | None:
    """Describe the failure."""
    try:
        text = ptx_of(config)
    except PassError as error:
        return f"{config}: {error}"
    expected, got = wanted_on_device(config.name, config.arch), run_ptx(config, text, checks)
    if "fp8" in config.name and config.arch >= 90 and is_near(expected, got):
        return None
    found = difference(expected, got)
    return None if found is None else f"{config}: {found}"


def is_near(expected: Outcome, got: Outcome) -> bool:
    """Return True if two outcomes are as near as Hopper's sums of 8-bit floats, which keep 14 bits."""
    pairs = zip(expected, got, strict=True)
    return all(np.allclose(old.astype("f8"), new.astype("f8"), rtol=2e-3, atol=2e-2) for (_, old), (_, new) in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("--stages", type=int, default=3)
    parser.add_argument("--emit", choices=("llir", "ptx", "ttgir"), help="print this instead of running")
    parser.add_argument("--no-checks", action="store_true")
    given = parser.parse_args()
    for name in given.names or sorted(CASES):
        config = Config(name, given.arch, given.warps, given.stages)
        if given.emit:
            print({"llir": llvm_text, "ptx": ptx_of, "ttgir": ttgir}[given.emit](config))
            continue
        start = time.perf_counter()
        try:
            problem = check(config, not given.no_checks)
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:1500]}"
        print(f"{name:30} {'ok' if problem is None else problem}  ({time.perf_counter() - start:.1f} s)")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
