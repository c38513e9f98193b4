"""One generated kernel on one device, against the interpreter, and what came of it.

    found = outcome_of(kernel, "cuda:90", folder)
    found.kind, found.why                  "different", "out_i32_0: index 3: 5, interpreter 7"

A kernel whose threads meet in global memory without an order has no single result: it is run again as one program with
barriers between its accesses, and counts as `unordered` if they still meet. A refusal is an error that the compiler
raises on purpose; any other exception is a crash. Neither counts as agreement.
"""

import os
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from tests.fuzz import cpu, gpu
from tests.fuzz.comparison import Unordered, annotated, arguments, interpreted, problem_with
from tests.fuzz.kernels import CPU, Kernel, generate_kernel
from tests.fuzz.run import compile_generated, load, pipelines
from tilework import knobs
from tilework.errors import CompilationError, CompileTimeAssertionFailure, OutOfResources, PassError, TritonError
from tilework.inspect.replay import NATIVE, Launch, run_on
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.transforms.registry import parse_pipeline, run_pipeline

SAME, DIFFERENT, CRASHED, REFUSED, UNORDERED, LOST = "same", "different", "crashed", "refused", "unordered", "lost"
KINDS = (SAME, DIFFERENT, CRASHED, LOST, REFUSED, UNORDERED)
FAILURES = (DIFFERENT, CRASHED, LOST)
INTERNAL = (AssertionError, AttributeError, IndexError, KeyError, RecursionError, UnboundLocalError)
ACCESS = re.compile(r"\b(load|store|atomic_\w+|apart_memory|copied_rows)\(")
GENERATORS: dict[str, dict[str, bool]] = {  # by name: options of `generate_kernel`
    "plain": {},
    "odd": {"odd": True},
    "descriptors": {"about_descriptors": True},
    "odd descriptors": {"about_descriptors": True, "odd": True},
    "python": {"about_python": True},
    "odd python": {"about_python": True, "odd": True},
    "loops": {"about_loops": True},
    "hashes": {"about_hashes": True},
    "strides": {"about_strides": True},
    "edges": {"about_edges": True, "odd": True},
    "tiles": {"about_tiles": True, "odd": True},
    "odd strides": {"about_strides": True, "odd": True},
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one kernel: one of `KINDS`, and the reason."""

    kind: str
    why: str = ""

    @property
    def first_line(self) -> str:
        return self.why.partition("\n")[0]


def native(kernel: Kernel, folder: Path) -> str | None:
    """Machine code of this host: by its own driver, or for every other seed by a launch."""
    if kernel.seed % 2 and not kernel.aliases:  # only a launch knows which arrays overlap
        return cpu.compare(kernel, folder)
    got = arguments(kernel, kernel.seed)
    launch = Launch(
        load(annotated(kernel), folder), tuple(got.values()), (*kernel.grid, 1, 1), {"enable_fp_fusion": False}
    )
    with knobs.runtime.scope():
        knobs.runtime.num_threads = 1  # programs that add to the same address do it in order
        run_on(NATIVE, launch)
    return problem_with(kernel, folder, got, interpreted(kernel, folder))


def evaluated(kernel: Kernel, folder: Path) -> str | None:
    """The module after today's passes or the old ones, by the evaluator."""
    module = compile_generated(kernel, folder)
    names = pipelines(kernel.seed)[kernel.seed % 3 == 0]
    run_pipeline(module, [one for name in names for one in parse_pipeline(name)])
    got = arguments(kernel, kernel.seed)
    evaluate(module, "kernel", list(got.values()), kernel.grid)
    return problem_with(kernel, folder, got, interpreted(kernel, folder))


def emulated(name: str, kernel: Kernel, folder: Path) -> str | None:
    return gpu.compare(kernel, folder, Target.parse(name))


def on_the_gpu(kernel: Kernel, folder: Path) -> str | None:
    """A launch on the GPU of this machine."""
    import tilework
    from tests.device.check_cuda_kernels import allocate
    from tests.device.check_generated import compare

    tilework.set_allocator(allocate)
    return compare(kernel, folder, 1)


EMULATED = ("cuda:80", "cuda:90", "hip:gfx942")
DEVICES: dict[str, Callable[[Kernel, Path], str | None]] = {
    "native": native,
    "evaluator": evaluated,
    **{name: partial(emulated, name) for name in EMULATED},
    "gpu": on_the_gpu,
}


def capability(device: str) -> int:
    """For which GPU a kernel is generated: it decides which fp8 types it has."""
    return CPU if device == "native" else 80 if device in ("cuda:80", "evaluator") else 90


def generated(seed: int, device: str) -> tuple[str, Kernel]:
    """The kernel of a seed for a device, and the name of its generator."""
    random, chosen = Random(seed), os.environ.get("FUZZ_GENERATORS")
    name = random.choice(chosen.split(",") if chosen else sorted(GENERATORS))
    kernel = generate_kernel(seed, capability(device), **GENERATORS[name])
    kernel = replace(kernel, stores=[])  # whose functions no other process can be sent
    is_aliased = bool(os.environ.get("FUZZ_ALIASES")) and device != "gpu" and random.random() < 0.5
    body = kernel.source.partition("def kernel")[2]
    is_anywhere = device == "native" and "desc" not in body  # other arrays are aligned
    distances = (0, 0, 1, 3, 16, 1000) if is_anywhere else (0, 0, 16, 64, 1024)
    return name, replace(kernel, aliases=aliases(kernel, random, distances)) if is_aliased else kernel


def aliases(kernel: Kernel, random: Random, distances: Sequence[int]) -> dict[str, tuple[str, int]]:
    """Pairs of arrays of one type that are the same, or overlap."""
    found: dict[str, tuple[str, int]] = {}
    for dtype in dict.fromkeys(kernel.inputs.values()):
        names = [name for name in kernel.inputs if kernel.inputs[name] is dtype]
        if len(names) > 1:
            one, other = random.sample(names, 2)
            found[one] = other, random.choice(distances)
    return found


def ordered(kernel: Kernel) -> Kernel:
    """The kernel as one program, with barriers around accesses and without atomics whose elements meet."""
    head, mark, body = kernel.source.partition("@jit\ndef kernel")
    lines = []
    for line in body.splitlines():
        if is_access := bool(ACCESS.search(line)) and not line.lstrip().startswith(("while", "elif", "if", "for")):
            line = re.sub(r"(tl\.atomic_\w+\(.*?) // 2\b", r"\1", line)
        barrier = " " * (len(line) - len(line.lstrip())) + "tl.debug_barrier()"
        lines += [barrier, line, barrier] if is_access else [line]
    return replace(kernel, source=head + mark + "\n".join(lines) + "\n", grid=(1,))


def outcome_of(kernel: Kernel, device: str, folder: Path) -> Outcome:
    """Run a kernel on a device and in the interpreter, and compare."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), knobs.cache.scope():
        warnings.simplefilter("ignore")
        knobs.cache.dir = str(folder / "cache")
        for attempt in (kernel, ordered(kernel)):
            try:
                problem = DEVICES[device](attempt, folder)
            except Unordered:
                continue
            except Exception as error:
                return raised(error)
            return Outcome(DIFFERENT, problem) if problem else Outcome(SAME)
    return Outcome(UNORDERED)


def raised(error: Exception) -> Outcome:
    """A refusal, a wrong type in the frontend (which the kernel asserts), or a crash."""
    cause: BaseException = error
    while cause.__cause__ is not None and not isinstance(cause, CompileTimeAssertionFailure):
        cause = cause.__cause__
    reported = [line.strip() for line in str(cause).splitlines() if line.strip(" ^")]
    last = reported[-1] if reported else "no message"
    why = f"{type(cause).__name__}: {last}\n{''.join(traceback.format_exception(error))}"
    if isinstance(cause, CompileTimeAssertionFailure):
        return Outcome(DIFFERENT, why)
    is_meant = isinstance(error, (CompilationError, PassError, OutOfResources)) and not isinstance(cause, INTERNAL)
    return Outcome(REFUSED if is_meant or isinstance(cause, TritonError) else CRASHED, why)
