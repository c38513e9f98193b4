"""Generated kernels through the GPU pipeline: ``python -m tests.pipeline.gpu_generated FIRST COUNT``, or one seed to
see its kernel.

Every pass must leave a well-formed module that computes the same; shared memory is allocated and gets its barriers.
"""

import random
import sys
import tempfile
import traceback
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tests.fuzz.kernels import generate_kernel
from tests.fuzz.run import capability, compile_generated
from tests.pipeline.gpu import Config
from tests.pipeline.stages import check_stage
from tilework.errors import CompilationError
from tilework.inspect.check_each import check_each
from tilework.ir.verify import verify
from tilework.target import Target
from tilework.transforms.passes import Pass
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

MAX_STEPS = 100_000


class Sound(Pass):
    """A pass that must leave well-formed TTGIR."""

    inner: Pass
    name = "sound"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)

    def run(self, module: ModuleOp) -> None:
        self.inner.run(module)
        verify(module)
        check_stage(module, "ttgir")


def problem_of(seed: int) -> str | None:
    """Describe the failure of generated kernel `seed`."""
    rng = random.Random(seed)
    config = Config("generated", capability(seed), rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 3, 4, 5)))
    kernel = generate_kernel(seed, config.arch)
    with tempfile.TemporaryDirectory() as folder:
        try:
            module = compile_generated(kernel, Path(folder))
        except CompilationError:
            return None  # not a program for this target
        run_pipeline(module, ttir_pipeline(Target.parse(f"cuda:{config.arch}")))
        passes = [Sound(one) for item in (*config.passes, *config.memory_passes) for one in parse_pipeline(item)]
        try:
            report = check_each(module, passes, seed, programs=1, attempts=4, max_steps=MAX_STEPS)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"{config}: {type(error).__name__}: {str(error)[:300]} ({where.filename}:{where.lineno})"
    return None if report.ok else f"{config}: {report.mismatch}"


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:]]
    if len(numbers) == 1:
        source = generate_kernel(numbers[0], capability(numbers[0])).source
        print(source[source.index("@jit\ndef kernel") :])
    first, count = (numbers + [1])[:2]
    failures = 0
    for seed in range(first, first + count):
        if (problem := problem_of(seed)) is not None:
            failures += 1
            print(f"{seed}: {problem}", flush=True)
    print(f"{count} kernels, {failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
