"""The text of a kernel after every pass, on its way to TTGIR for any GPU: printed, parsed, verified and printed again.

python -m tests.pipeline.round_trips --jobs 2                      all samples on all targets
python -m tests.pipeline.round_trips 'matmul*' --target hip:gfx942 samples whose names begin so, on one target

Samples are the kernels of `tests/pipeline`, two of the sizes that AMD's ping-pong schedule wants, and the TTIR that
Triton printed of its reference kernels. The text has all locations, so it must come back to the letter.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from unittest.mock import patch

from xdsl.dialects.builtin import ModuleOp

from benchmarks.ttgir_decisions import KERNELS as REFERENCE_SHAPES
from tests.pipeline.gpu import CASES
from tilework.errors import CompilationError, DoesNotFit
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.amd import pipeline as amd_pipeline
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import pipeline as nvidia_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

TARGETS = ("cuda:80", "cuda:90", "hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201")
REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
FILES = {
    f"reference_{path.stem}": path for folder in ("sm_90", "amd") for path in sorted(REFERENCE.glob(f"{folder}/*.ttir"))
}
PINGPONG = {f"pingpong_{m}x256x64": {"BM": m, "BN": 256, "BK": 64} for m in (128, 256)}
NAMES = (*CASES, *PINGPONG, *FILES)
SHAPES = ((4, 3), (8, 2))  # warps and stages


@dataclass(frozen=True)
class Sample:
    """A kernel, and what it is compiled for; `switches` are environment variables."""

    name: str
    target: str
    warps: int = 4
    stages: int = 3
    switches: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.target} warps={self.warps} stages={self.stages} {' '.join(self.switches)}".strip()


def samples() -> Iterator[Sample]:
    """All of them; AMD's also with copies to LDS that need no registers."""
    for name in NAMES:
        known = REFERENCE_SHAPES.get(name.removeprefix("reference_")) if name in FILES else None
        for number, target in enumerate(TARGETS):
            warps, stages = (8, 2) if name in PINGPONG else known or SHAPES[(NAMES.index(name) + number) % 2]
            sample = Sample(name, target, warps, stages)
            yield sample
            if target.startswith("hip"):
                yield replace(sample, switches=("TRITON_HIP_USE_ASYNC_COPY=1",))


def covering() -> Iterator[Sample]:
    """Every other kernel once, on all targets in turn, and those that take turns on the target that has a schedule for
    it."""
    found = list(samples())
    for number, name in enumerate(NAMES[::2]):
        own = [sample for sample in found if sample.name == name]
        yield own[number * 5 % len(own)]
    yield from (sample for sample in found if sample.name in PINGPONG and sample.target == "hip:gfx942")


def frontend_module(name: str, target: str) -> ModuleOp:
    """The module before any pass."""
    if (path := FILES.get(name)) is not None:
        return parse_module(path.read_text())
    case = CASES.get(name) or CASES["matmul_fp16_128x128x64"]
    constants = {**case.constexprs, **PINGPONG.get(name, {})}
    return compile_to_ttir(
        case.kernel, case.types, constants, case.attrs, frontend_options(GPUTarget.parse(target), {})
    )


def passes(sample: Sample) -> list[str]:
    target = Target.parse(sample.target)
    if target.backend == "hip":
        own = amd_pipeline.ttgir_pipeline(target, sample.warps, sample.stages)
        return [*ttir_pipeline(target), *own, *amd_pipeline.LLIR_PASSES, "test-print-membar"]
    own = nvidia_pipeline.ttgir_pipeline(target, sample.warps, sample.stages)
    memory = f"allocate-shared-memory-nv{{compute-capability={target.arch}}}"
    return [*ttir_pipeline(target), *own, memory, "test-print-membar"]


def problem_of(sample: Sample) -> str | None:
    """The first pass whose text cannot be read, and why; a kernel that a target has no types or no memory for is
    none."""
    with patch.dict(os.environ, dict(switch.split("=") for switch in sample.switches)):
        try:
            module = frontend_module(sample.name, sample.target)
        except CompilationError as error:
            return None if is_unsupported(error) else f"{sample}: {error}"
        before = "the frontend"
        try:
            seen = round_trip(module)
            for item in (one for text in passes(sample) for one in parse_pipeline(text)):
                before = f"{item.name}"
                run_pipeline(module, [item])
                seen = round_trip(module, seen)
        except DoesNotFit:
            return None
        except Exception as error:
            return None if is_unsupported(error) else f"{sample}: {before}: {type(error).__name__}: {error}"
    return None


def is_unsupported(error: BaseException) -> bool:
    """Return True if the target lacks the element type."""
    while error.__cause__ is not None:
        error = error.__cause__
    return "not supported" in str(error)


def round_trip(module: ModuleOp, seen: str = "") -> str:
    """The text of `module`; raise where it is not read as the same one. `seen` was checked before."""
    text = located_text(module)
    if text != seen:
        verify(module)
        again = parse_module(text)
        verify(again)
        for one, other in zip(text.splitlines(), located_text(again).splitlines(), strict=True):
            assert one == other, f"is printed as another line:\n{one}\n{other}"
    return text


def located_text(module: ModuleOp) -> str:
    """With locations; values are numbered, because those that are read keep the names that they have in a text."""
    return print_module(module, debuginfo=True, nameloc_prefix=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"])
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    chosen = [
        sample
        for sample in samples()
        if args.target in (None, sample.target) and any(fnmatchcase(sample.name, name) for name in args.names)
    ]
    random.Random(0).shuffle(chosen)
    failures, start = 0, time.perf_counter()
    with ProcessPoolExecutor(args.jobs) as pool:
        for count, future in enumerate(as_completed([pool.submit(problem_of, sample) for sample in chosen]), 1):
            if (problem := future.result()) is not None:
                failures += 1
                print(problem, flush=True)
            if count % 20 == 0:
                print(f"{count}/{len(chosen)}, {failures} failures, {time.perf_counter() - start:.0f} s", flush=True)
    print(f"{len(chosen)} samples, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
