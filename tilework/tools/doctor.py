"""Report which parts of tilework work on this machine and what to install for the others, one line each.

    tilework doctor              everything; exit code 0, or 1 if something that is here does not work
    tilework doctor --json       the same for programs

A device counts as working only if a small kernel has been compiled and run on it, in a separate process, with the
correct result. `ok`: it works; `--`: it is missing and not needed; `!!`: it does not work, or it is missing and needed.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilework import knobs
from tilework.errors import did_you_mean
from tilework.knobs.cuda_tools import NvidiaTool
from tilework.runtime.compile.compiler_presence import INSTALL, PARTS, missing_parts
from tilework.tools.cache import size_text
from tilework.version import __version__

OK, ABSENT, BROKEN = "ok", "--", "!!"
LIMIT = 120  # seconds for the kernel of one device
NEEDED = ("numpy",)
COMPILER = ("xdsl", "llvmlite", "ml_dtypes")
OPTIONAL = {
    "torch": "tensors and torch.compile: see pytorch.org",
    "rich": "bars of progress on terminals: pip install 'tilework[progress]'",
    "matplotlib": "pictures of perf_report: pip install matplotlib",
    "pandas": "perf_report(return_df=True): pip install pandas",
    "ray": "tuning on a cluster: pip install 'tilework[ray]'",
    "redis": "a cache that machines share: pip install 'tilework[redis]'",
    "s3fs": "such a cache in S3: pip install 'tilework[s3]'",
    "cryptography": "signatures with Ed25519: pip install 'tilework[signing]'",
}
CPU_FEATURES = (
    "avx2",
    "avx512f",
    "avx512bf16",
    "avx512vnni",
    "amx-tile",
    "neon",
    "sve",
    "sve2",
    "bf16",
    "i8mm",
    "dotprod",
)
OURS = ("TRITON_", "TILEWORK_")
PROGRAM = """
import sys
import numpy as np
import tilework
import tilework.language as tl
from tilework.runtime.devices.active_driver import driver

@tilework.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

x = np.arange(1000, dtype=np.float32)
active = driver.active
if active.get_current_target().backend == "cpu" or "emulator" in (sys.argv[1:] or [""])[0]:
    given, out, back = x, np.zeros_like(x), lambda array: array
else:
    given, out = (active.array_cls.of(array) for array in (x, np.zeros_like(x)))
    back = lambda array: array.numpy()
kernel = doubled[(4,)](given, out, 1000, BLOCK=256)
assert (back(out) == 2 * x).all(), "the result is wrong"
print(kernel.metadata.target)
"""


@dataclass(frozen=True)
class Line:
    """The result of one check."""

    name: str
    state: str
    text: str

    def __str__(self) -> str:
        return f"{self.state} {self.name:<16} {self.text}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="do not run kernels")


def run(args: argparse.Namespace) -> int:
    """Run all checks, and return 1 if something is broken."""
    lines: list[Line] = []
    for look in LOOKS:
        for line in look(args):
            lines.append(line)
            if not args.json:
                print(line, flush=True)
    broken = [line.name for line in lines if line.state == BROKEN]
    if args.json:
        print(
            json.dumps({"version": __version__, "ok": not broken, "lines": [asdict(line) for line in lines]}, indent=1)
        )
    else:
        print(f"\n{'everything that is here works' if not broken else 'to fix: ' + ', '.join(broken)}")
    return int(bool(broken))


def python(args: argparse.Namespace) -> Iterable[Line]:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    yield Line("tilework", OK, f"{__version__} in {folder}")
    yield Line("python", OK, f"{platform.python_version()} ({sys.executable}), {platform.platform()}")
    for name in NEEDED if is_runtime_only() else (*NEEDED, *COMPILER):
        yield needed_package(name)
    if is_runtime_only():
        yield Line("compiler", ABSENT, f"not installed: kernels come from bundles; {INSTALL}")


def is_runtime_only() -> bool:
    """Return True if tilework was installed without its compiler."""
    return PARTS[0] in missing_parts()


def needed_package(name: str) -> Line:
    try:
        importlib.import_module(name)
        return Line(name, OK, version(name))
    except Exception as error:
        return Line(name, BROKEN, f"{type(error).__name__}: {error}; pip install --force-reinstall {name} may mend it")


def optional_packages(args: argparse.Namespace) -> Iterable[Line]:
    for name, purpose in OPTIONAL.items():
        try:
            yield Line(name, OK, version(name))
        except PackageNotFoundError:
            yield Line(name, ABSENT, f"not installed; {purpose}")


def processor(args: argparse.Namespace) -> Iterable[Line]:
    if is_runtime_only():
        return  # only the compiler knows its features
    from tilework.targets.cpu.target import HostTarget  # lazily: needs llvmlite, which may be what is missing

    host = HostTarget.detect()
    features = [name for name in CPU_FEATURES if name in host.features]
    wanted = knobs.runtime.num_threads
    threads = f"{wanted} threads (TILEWORK_NUM_THREADS)" if wanted else f"{host.cores} threads"
    yield Line("cpu", OK, f"{host.cpu} ({host.arch}), {threads}; {', '.join(features) or 'no vector features'}")


def device_lines(args: argparse.Namespace) -> Iterable[Line]:
    """The host, the GPUs, and the emulated GPU."""
    yield tried("cpu kernels", "native", args)
    for driver in gpu_drivers():
        name = f"{driver.kind} kernels"
        if driver.is_active():
            yield tried(name, driver.kind, args)
        else:
            yield Line(name, ABSENT, f"no GPU: {driver.gpus.found.why_unusable()}")
    yield tried("emulator", "emulator", args)
    if knobs.runtime.device is not None:
        yield requested_device()


def requested_device() -> Line:
    """Check the device that TILEWORK_DEVICE selects."""
    from tilework.runtime.devices.active_driver import default_driver  # lazily: needs what may be missing

    try:
        target = default_driver().get_current_target()
    except Exception as error:
        return Line("TILEWORK_DEVICE", BROKEN, " ".join(str(error).split()))
    return Line("TILEWORK_DEVICE", OK, f"{knobs.runtime.device}: kernels are compiled for {target}")


def gpu_drivers() -> list[Any]:
    from tilework.runtime.devices.active_driver import registered_drivers  # lazily: needs what may be missing

    return [driver for driver in registered_drivers() if hasattr(driver, "gpus")]


def tried(name: str, device: str, args: argparse.Namespace) -> Line:
    """Run a kernel on a device, in a process of its own, which a crashing driver cannot take down with it."""
    if args.quick:
        return Line(name, OK, "not tried (--quick)")
    if is_runtime_only():
        return Line(name, ABSENT, "not tried: nothing can be compiled")
    with tempfile.TemporaryDirectory(prefix="tilework-doctor-") as folder:
        file = os.path.join(folder, "doctor_kernel.py")
        with open(file, "w") as program:
            program.write(PROGRAM)
        variables = {
            "TILEWORK_DEVICE": device,
            "TRITON_CACHE_DIR": folder,
            "TILEWORK_NATIVE_LAUNCH": "0",  # it would be compiled for later launches, and there are none
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        environment = {**knobs.environment_without(("TRITON_INTERPRET",)), **variables}
        try:
            done = subprocess.run(
                [sys.executable, file, device],
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Line(name, BROKEN, f"a small kernel did not end within {LIMIT} seconds")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
        return Line(name, BROKEN, f"a small kernel failed: {last}")
    return Line(name, OK, f"a kernel for {done.stdout.strip()} was compiled, run and compared")


def gpu_names() -> str:
    """The GPUs as the driver's own program names them: ``NVIDIA H200, driver 570.86``; "" without it."""
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "; ".join(done.stdout.split("\n")[:-1]).replace(", ", ", driver ") if done.returncode == 0 else ""


def nvidia(args: argparse.Namespace) -> Iterable[Line]:
    if names := gpu_names():
        yield Line("nvidia-smi", OK, names)
    tools = {
        "ptxas": "kernels end as PTX, which the driver assembles; pip install nvidia-cuda-nvcc, or a CUDA toolkit",
        "nvdisasm": "no --emit sass; it comes with the CUDA toolkit",
        "cuobjdump": "needed for sass where nvdisasm is not; it comes with the CUDA toolkit",
    }
    for name, purpose in tools.items():
        tool: NvidiaTool | None = knobs.nvidia.find_tool(name)
        yield (
            Line(name, ABSENT, f"not found: {purpose}")
            if tool is None
            else Line(name, OK, f"{tool.version} ({tool.path})")
        )
    path = knobs.nvidia.find_libdevice()
    if path is None:
        yield Line(
            "libdevice",
            ABSENT,
            "not found: needed by kernels that call libdevice; it comes with nvidia-cuda-nvcc (pip)",
        )
    elif not os.path.isfile(path):
        yield Line("libdevice", BROKEN, f"TRITON_LIBDEVICE_PATH names {path}, which is no file")
    else:
        yield Line("libdevice", OK, path)


def amd(args: argparse.Namespace) -> Iterable[Line]:
    if is_runtime_only():
        yield Line("ld.lld", ABSENT, "not needed without the compiler")
        return
    from tilework.targets.amd.code_object import commands  # lazily: needs what may be missing

    found = next(iter(commands("ld.lld")), None)
    own = "not found: tilework uses its own linker; pip install 'tilework[amd]' has one"
    yield Line("ld.lld", ABSENT, own) if found is None else Line("ld.lld", OK, " ".join(found))


def cache(args: argparse.Namespace) -> Iterable[Line]:
    folder = knobs.cache.dir
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        yield Line("cache", BROKEN, f"{folder} cannot be written ({reason}): set TRITON_CACHE_DIR to a folder that can")
        return
    from tilework.runtime.kernel_cache.entry import EntryStore  # lazily: few look at it
    from tilework.runtime.kernel_cache.eviction import entries_of

    entries = entries_of(EntryStore(folder))
    used, bound = sum(entry.bytes for entry in entries), knobs.cache.max_size
    limit = f"of {size_text(bound)}" if bound > 0 else "without a bound"
    yield Line("cache", OK, f"{folder}: {len(entries)} kernels, {size_text(used)} {limit}")


def environment(args: argparse.Namespace) -> Iterable[Line]:
    """Report variables that look like ours and are unknown."""
    from tilework.knobs.meanings import MEANINGS, WITHOUT_KNOB  # lazily: a table for people

    known = {*MEANINGS, *WITHOUT_KNOB}
    for name in sorted(knobs.environment_without(())):
        if name.startswith(OURS) and name not in known:
            guess = did_you_mean(name, known)
            yield Line(name, BROKEN if guess else ABSENT, f"is set, and nothing of tilework reads it{guess}")
    yield from bad_values()


def bad_values() -> Iterable[Line]:
    """Return the variables whose values are not valid."""
    groups = (group for group in vars(knobs).values() if isinstance(group, knobs.base_knobs))
    for group in groups:
        for name, knob in group.knob_descriptors.items():
            try:
                knob.current(group)
            except Exception as error:
                yield Line(knob.key or name, BROKEN, " ".join(str(error).split()))


def guarded(look: Callable[[argparse.Namespace], Iterable[Line]]) -> Callable[[argparse.Namespace], Iterable[Line]]:
    """Run a check; one that raises an exception is reported as broken."""

    def lines(args: argparse.Namespace) -> Iterable[Line]:
        try:
            yield from look(args)
        except Exception as error:
            message = " ".join(str(error).split())
            yield Line(look.__name__.replace("_lines", ""), BROKEN, f"{type(error).__name__}: {message}")

    return lines


LOOKS = [
    guarded(look) for look in (python, processor, device_lines, nvidia, amd, cache, optional_packages, environment)
]
