"""Generated kernels under the sanitizer: those without a mistake stay silent and compute the same, a generated mistake
is reported.

python -m tests.fuzz.sanitizer --kernels 200            progress, then the failures
python -m tests.fuzz.sanitizer --seed 17                one kernel: its source, and what is wrong with it
python -m tests.fuzz.sanitizer --gpu --kernels 50       as PTX in the emulator

A kernel has generated statements and one *suspect*: a lane that divides, shifts, gathers, counts, adds or loads with
the parameter `wrong`. Its result goes through statements that keep it in its lane, and is then used. One value of
`wrong` is a mistake, another is not; and where the lane is guarded (not stored, or replaced) both are right. Every
fourth kernel is a whole one without a suspect.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from tests.fuzz.comparison import annotated, arguments, difference
from tests.fuzz.kernels import CPU, ELEMENTS, Kernel, generate_kernel
from tests.fuzz.rules import INT32
from tests.fuzz.run import load
from tests.fuzz.statements import Statements
from tilework import knobs
from tilework.errors import SanitizerError, SanitizerWarning
from tilework.knobs import cuda_tools
from tilework.runtime.devices.launcher import NullAllocator

MARK = "# the suspect"


@dataclass(frozen=True)
class Suspect:
    """An expression in which `wrong` may be bad; LANE is true in its lane, SIZE are the lanes."""

    text: str
    bad: int | None  # None: the number of lanes
    good: int
    says: str


SUSPECTS = {
    "division": Suspect("tl.arange(0, SIZE) // tl.where(LANE, wrong, 3)", 0, -7, "division by zero"),
    "remainder": Suspect("tl.arange(0, SIZE) % tl.where(LANE, wrong, 3)", 0, -1, "division by zero"),
    "lowest": Suspect("tl.full([SIZE], -2147483648, tl.int32) // tl.where(LANE, wrong, 3)", -1, 1, "operation div"),
    "shift": Suspect("tl.arange(0, SIZE) << tl.where(LANE, wrong, 3)", 32, 31, "shifted by 32 bits or more"),
    "sum": Suspect("tl.full([SIZE], 2147483647, tl.int32) + tl.where(LANE, wrong, -5)", 1, 0, "operation add"),
    "product": Suspect("tl.full([SIZE], 65536, tl.int32) * tl.where(LANE, wrong, 5)", 32768, 32767, "operation mul"),
    "gather": Suspect("tl.gather(tl.arange(0, SIZE), tl.where(LANE, wrong, 0), 0)", None, 0, "index of a tl.gather"),
    "before": Suspect("tl.gather(tl.arange(0, SIZE), tl.where(LANE, wrong, 0), 0)", -1, 0, "index of a tl.gather"),
    "load": Suspect("tl.load(POINTER + tl.where(LANE, wrong, 7))", ELEMENTS, ELEMENTS - 1, "reads element"),
    "mask": Suspect(
        "tl.load(POINTER + tl.arange(0, SIZE), mask=(wrong > 0) | (LANE == 0))", 0, 1, "masks elements off"
    ),
    "histogram": Suspect("tl.histogram(tl.where(LANE, wrong, 0), SIZE)", None, 0, "outside of its"),
}
AT_ONCE = ("load", "histogram")  # a mistake wherever its result goes
NUMBERS = ("sum", "product")  # generated statements may overflow too: there are none beside these
STEPS = (
    "{r} = {r} + 0",
    (
        "{r} = tl.reshape(tl.trans(tl.reshape({r}, [2, {half}])), [{size}])\n"
        "{r} = tl.reshape(tl.trans(tl.reshape({r}, [{half}, 2])), [{size}])"
    ),
    "for _k in range((n & 1) + 1):\n    {r} = {r} - 0",
    "if m > 3:\n    {r} = {r} + 0\nelse:\n    {r} = {r} - 0",
    "{r} = tl.where(n == n, {r}, 0)",
    "{r} = tl.sum(tl.where((tl.arange(0, 2) == 0)[:, None], {r}[None, :], 0), 0)",
    "_k = 0\nwhile _k < 2:\n    {r} = {r} + 0\n    _k += 1",
    "{r} = tl.join({r}, {r})\n{r} = tl.sum(tl.where((tl.arange(0, 2) == 0)[None, :], {r}, 0), 1)",
)


@dataclass(frozen=True)
class Generated:
    """A kernel, its suspect, whether a guard makes it right, and where it stands."""

    kernel: Kernel
    suspect: Suspect
    size: int
    is_guarded: bool
    is_number: bool

    @property
    def bad(self) -> int:
        return self.size if self.suspect.bad is None else self.suspect.bad


def draw(seed: int, capability: int = CPU) -> Generated:
    writer = Statements(seed, capability)
    writer.is_checked = True
    random = writer.random
    kind = random.choice(sorted(SUSPECTS))
    suspect, size = SUSPECTS[kind], 1 << random.randrange(3, 8)
    writer.prologue()
    writer.signature["wrong"] = INT32.code
    if kind not in NUMBERS:
        for _ in range(random.randint(0, 3)):
            writer.statement(1)
    lane, result = f"(tl.arange(0, {size}) == {random.randrange(size)})", writer.fresh("r")
    pointer = writer.pointer(INT32, "in")
    text = suspect.text.replace("SIZE", str(size)).replace("LANE", lane).replace("POINTER", pointer)
    writer.line(f"{result} = {text}  {MARK}")
    steps = random.sample(STEPS, random.randint(0, 3)) if kind != "histogram" else []
    for step in steps:
        for line in step.format(r=result, size=size, half=size // 2).split("\n"):
            writer.line(line)
    is_guarded = kind not in AT_ONCE and random.random() < 0.5
    target = writer.pointer(INT32, "io")
    mask = ""
    if is_guarded and random.random() < 0.5:
        writer.line(f"{result} = tl.where({lane}, 0, {result})")
    elif is_guarded:
        mask = f", mask=({lane} == 0)"
    uses = [f"tl.store({target} + tl.arange(0, {size}), {result}{mask})"]
    if not mask and kind not in NUMBERS:
        uses.append(f"tl.store({target}, tl.max({result}, 0))")
        uses.append(f"tl.store({target} + tl.arange(0, {size}), 1, mask={result} > 5)")
        uses.append(f"tl.store({target} + ({result} & 15), 1)")
        uses.append(f"if tl.max({result}, 0) > 5:\n    tl.store({target}, 1)")
        uses.append(f"tl.atomic_add({target} + tl.arange(0, {size}), {result})")
    for line in random.choice(uses).split("\n"):
        writer.line(line)
    return Generated(writer.finish(), suspect, size, is_guarded, kind in NUMBERS)


def launch(function: Any, generated: Generated, wrong: int, gpu: bool, **settings: Any) -> dict[str, Any]:
    """The arrays after a launch."""
    values = arguments(generated.kernel, generated.kernel.seed)
    if "wrong" in values:
        values["wrong"] = wrong
    if not gpu:
        function[generated.kernel.grid](**values, **settings)
        return values
    from tilework.runtime.devices.cuda.device import DeviceArray

    placed = {name: DeviceArray.of(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}
    function[generated.kernel.grid](**placed, **settings)
    return {name: value.numpy() if isinstance(value, DeviceArray) else value for name, value in placed.items()}


def check(generated: Generated, folder: Path, gpu: bool = False) -> str | None:
    """Describe the error of the sanitizer, or return None."""
    function = load(annotated(generated.kernel), folder)
    source = generated.kernel.source.splitlines()
    line = 1 + next(number for number, text in enumerate(source) if MARK in text)
    settings = {"sanitize": "strict", "sanitize_overflow": generated.is_number, "enable_fp_fusion": False}
    for wrong in (generated.suspect.good, generated.bad):
        is_mistake = wrong == generated.bad and not generated.is_guarded
        try:
            checked = launch(function, generated, wrong, gpu, **settings)
        except SanitizerError as error:
            if not is_mistake:
                return f"a report without a mistake (wrong = {wrong}): {error}"
            if generated.suspect.says not in str(error) or f":{line}:" not in str(error).splitlines()[0]:
                return f"expected {generated.suspect.says!r} in line {line}: {error}"
            continue
        if is_mistake:
            return f"no report (wrong = {wrong})"
        if wrong == generated.suspect.good and not gpu:
            plain = launch(function, generated, wrong, gpu, sanitize=False, enable_fp_fusion=False)
            for name in generated.kernel.inputs:
                if plain[name].tobytes() != checked[name].tobytes():
                    return f"{name} is another one under the sanitizer"
    return None


def check_clean(kernel: Kernel, folder: Path, gpu: bool = False) -> str | None:
    """A whole generated kernel has no mistake, and computes the same with checks as without."""
    function, generated = load(annotated(kernel), folder), Generated(kernel, SUSPECTS["sum"], 0, True, False)
    settings = {"sanitize_overflow": False, "enable_fp_fusion": False}
    plain, checked = (launch(function, generated, 0, gpu, sanitize=mode, **settings) for mode in (False, "strict"))
    for name, dtype in kernel.inputs.items():
        same = plain[name].tobytes() == checked[name].tobytes()
        if not same and (problem := difference(checked[name], plain[name], dtype, strictness=5)):
            return f"{name} is another one under the sanitizer: {problem.replace('NumPy', 'plain')}"
    return None


@contextmanager
def target(gpu: bool) -> Iterator[None]:
    """The CPU with one thread, so that programs that meet in memory do so in order, or the emulated GPU."""
    with knobs.runtime.scope(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", SanitizerWarning)
        knobs.runtime.num_threads = 1
        if not gpu:
            yield
            return
        from tests.device.check_cuda_kernels import allocate
        from tests.runtime.emulated_cuda import emulated_cuda

        tilework.set_allocator(allocate)  # for descriptors that unchecked kernels make
        tools, cuda_tools.find_tool = cuda_tools.find_tool, lambda *args: None  # no ptxas: the driver gets PTX
        try:
            with emulated_cuda():
                yield
        finally:
            cuda_tools.find_tool = tools
            tilework.set_allocator(NullAllocator())


def problem_of(seed: int, folder: Path, gpu: bool = False) -> str | None:
    """`check` of one seed; other errors are problems too."""
    with target(gpu):
        try:
            if seed % 4 == 3:
                return check_clean(generate_kernel(seed, 90 if gpu else CPU, checked=True), folder, gpu)
            return check(draw(seed, 90 if gpu else CPU), folder, gpu)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--gpu", action="store_true")
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name, knobs.cache.scope():
        knobs.cache.dir = name
        if args.seed is not None:
            source = draw(args.seed, 90 if args.gpu else CPU).kernel.source
            print(source[source.index("@jit\ndef kernel") :])
            print(problem_of(args.seed, Path(name), args.gpu) or "as expected")
            return 0
        start, failed = time.perf_counter(), []
        for count, seed in enumerate(range(args.first, args.first + args.kernels), 1):
            if (problem := problem_of(seed, Path(name), args.gpu)) is not None:
                failed.append(seed)
                print(f"seed {seed}: {problem}"[:600], flush=True)
            if count % 25 == 0 or count == args.kernels:
                print(
                    f"{count}/{args.kernels}, {len(failed)} failures, {time.perf_counter() - start:.0f} s", flush=True
                )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
