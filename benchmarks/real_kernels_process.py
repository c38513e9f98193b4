"""One worker process of `benchmarks.real_kernels run`: compiles or times launches of a corpus under both compilers.

It reads requests, one line of JSON each, and answers each with one line: ``{"index": 3, "action": "measure"}``. Both
compilers are imported beside each other, so that a launch is timed in turns in one process.
"""

import contextlib
import importlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.corpus import Launch

COMPILERS = ("triton", "tilework")
REPLAY = 200.0  # microseconds that a replay should take at least
BUDGET = 60e3  # microseconds of all replays of a launch
MOST_LAUNCHES = 160  # in a graph
MOST_BYTES = 40 << 30
SLOW = 0.98
FAR = 0.02  # the relative distance of results from which on they are reported
EVERY = 61  # how many elements of an input have one whose last bit `with_other_bits` changes
DEVICE = "cuda"
TINY = """import triton
import triton.language as tl


@triton.jit
def tiny(out):
    tl.store(out, tl.sum(tl.arange(0, 128), 0))
"""


def compile_static(launch: Launch, compiler: str) -> Any:
    """Compile for an H200 without a GPU."""
    made = importlib.import_module(f"{compiler}.compiler")
    where = "tilework.targets.base" if compiler == "tilework" else "triton.backends.compiler"
    target = importlib.import_module(where).GPUTarget("cuda", 90, 32)
    kernel = launch.load(compiler)
    return made.compile(made.ASTSource(kernel, *launch.specialization(kernel)), target=target,
                        options=dict(launch.options))  # fmt: skip


def compile_for_launch(launch: Launch, compiler: str) -> Any:
    """Compile as the launch will, into the cache on disk; the tensors have one element."""
    import torch

    kernel = launch.load(compiler)
    tensors = [Small(storage.dtype) for storage in launch.storages]
    values = launch.values(kernel, tensors)
    with torch.cuda.device(0):
        return kernel.warmup(grid=tuple(launch.grid), **{**values, **launch.options})


class Small:
    """Stands for a storage: its views have one element, at an address with the right alignment."""

    def __init__(self, dtype: str) -> None:
        import torch

        self.flat = torch.zeros(64, dtype=getattr(torch, corpus.TORCH_NAMES[dtype]), device="cuda")

    def view(self, dtype: Any) -> "Small":
        made = object.__new__(Small)
        made.flat = self.flat.view(dtype)
        return made

    def as_strided(self, shape: list[int], strides: list[int], offset: int) -> Any:
        ones = [1] * len(shape)
        return self.flat.as_strided(ones, ones, offset % 16)


def warm_up(is_static: bool) -> None:
    """Load the compilers, so that the first compilation takes as long as others."""
    arguments = {"out": corpus.Tensor(0, "i32", [1], [1])}
    launch = TinyLaunch(
        "", "", "tiny", "tiny", [corpus.Parameter("out")], arguments, [corpus.Storage("i32", 1, [])], [1]
    )
    for compiler in COMPILERS:
        with contextlib.suppress(Exception):  # of a compiler that is not here: the launches report it
            compile_static(launch, compiler) if is_static else compile_for_launch(launch, compiler)


class TinyLaunch(Launch):
    """A launch of a kernel that is in no corpus."""

    def source(self) -> str:
        return TINY


def compile_both(launch: Launch, is_static: bool, only: list[str]) -> dict[str, Any]:
    """Return the seconds of each compiler, or its error."""
    found: dict[str, Any] = {}
    for compiler in only:
        start = time.perf_counter()
        try:
            made = compile_static(launch, compiler) if is_static else compile_for_launch(launch, compiler)
            found[compiler] = {"seconds": time.perf_counter() - start, "bytes": len(made.asm["cubin"])}
        except Exception as error:  # of a compiler: reported
            found[compiler] = {"error": f"{type(error).__name__}: {str(error)[-300:]}"}
    return found


# On the GPU -----------------------------------------------------------------------------------------------------------


def measure(launch: Launch, folder: str | None) -> dict[str, Any]:
    """Run a launch under both compilers, compare what it writes, and time it in turns."""
    if launch.tensor_bytes() * 2 > MOST_BYTES:
        return {"error": f"{launch.tensor_bytes() >> 30} GiB of tensors"}
    tensors = corpus.materialize(launch, DEVICE)
    copies = [one.clone() for one in tensors]
    found: dict[str, Any] = {"bytes": launch.tensor_bytes()}
    runs: dict[str, Callable[[], Any]] = {}
    compiled: dict[str, Any] = {}
    for compiler, given in zip(COMPILERS, (tensors, copies), strict=True):
        kernel = launch.load(compiler)
        try:
            compiled[compiler] = launcher(launch, kernel, given)()
            synchronize()
        except Exception as error:  # of a compiler, or of the GPU: reported
            found[compiler] = {"error": f"{type(error).__name__}: {str(error)[-300:]}"}
            synchronize()  # raises again if the context is lost, which ends this process
    if len(compiled) < len(COMPILERS):
        return found
    found["distance"], found["worst"] = compare(launch, tensors, copies)
    del copies
    if found["distance"] > FAR:
        found["sensitivity"] = sensitivity(launch, tensors)
    runs = {compiler: launcher(launch, launch.load(compiler), tensors) for compiler in COMPILERS}
    times, found["launches"] = in_turns(runs)
    for compiler in COMPILERS:
        found[compiler] = {"us": times[compiler], **facts(compiled[compiler])}
    found["ratio"] = times["triton"] / times["tilework"]
    if found["ratio"] < SLOW:
        for compiler in COMPILERS:
            found[compiler] |= instructions(compiled[compiler].asm["cubin"])
            if folder:
                path = Path(folder) / f"{launch.module}_{compiler}.cubin"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(compiled[compiler].asm["cubin"])
    return found


def launcher(launch: Launch, kernel: Any, tensors: list[Any]) -> Callable[[], Any]:
    """Return a function that launches a loaded kernel on given storages."""
    values = {**launch.values(kernel, tensors), **launch.options}
    run = kernel[tuple(launch.grid)]
    return lambda: run(**values)


def sensitivity(launch: Launch, tensors: list[Any]) -> float:
    """Return the distance of Triton's results from its own where the last bits of some inputs are others.

    If it is large too, the launch does not tell whether a compiler is right: an iteration diverges on these inputs, or
    programs store to the same elements.
    """
    others = with_other_bits(corpus.materialize(launch, DEVICE))
    launcher(launch, launch.load("triton"), others)()
    synchronize()
    return compare(launch, tensors, others)[0]


def with_other_bits(tensors: list[Any]) -> list[Any]:
    """Change the last bit of a few finite numbers of each tensor, in place."""
    import torch

    widths = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    for one in tensors:
        if one.is_floating_point() and one.dtype.itemsize in widths:
            bits = one.view(widths[one.dtype.itemsize])[::EVERY]
            bits ^= one[::EVERY].isfinite().to(bits.dtype)
    return tensors


def compare(launch: Launch, left: list[Any], right: list[Any]) -> tuple[float, str]:
    """Return the largest relative distance of a storage under two compilers, and which storage that is."""
    worst, where = 0.0, ""
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        found = distance(one, other)
        if found > worst:
            names = [name for name, value in launch.arguments.items() if getattr(value, "storage", None) == index]
            worst, where = found, f"{'/'.join(names)} {launch.storages[index].dtype}"
    return worst, where


def distance(one: Any, other: Any) -> float:
    """Return the distance of two tensors relative to the first one's norm; the share of elements that differ for
    integers, or 1 where infinities and NaNs are not in the same elements."""
    import torch

    if not one.is_floating_point():
        return float((one != other).double().mean())
    worst_not_finite, squares, size = 0.0, 0.0, 0.0
    for a, b in zip(one.split(1 << 26), other.split(1 << 26), strict=True):
        a, b = (
            a.double() if a.dtype == torch.float64 else a.float(),
            b.double() if b.dtype == torch.float64 else b.float(),
        )
        finite = torch.isfinite(a) & torch.isfinite(b)
        same = finite | (a == b) | (torch.isnan(a) & torch.isnan(b))
        worst_not_finite = max(worst_not_finite, float((~same).double().mean()))
        squares += float(torch.where(finite, a - b, 0).square().sum(dtype=torch.float64))
        size += float(torch.where(finite, a, 0).square().sum(dtype=torch.float64))
    relative = math.sqrt(squares / size) if size else float(squares > 0)
    return max(relative, 1.0 if worst_not_finite > 1e-3 else 0.0)


def in_turns(runs: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], int]:
    """Return the median microseconds of each function's launches, replayed in turns, and the launches of a graph."""
    first = next(iter(runs.values()))
    once = timed(captured(first, 1), 2)
    count = 1
    if once < REPLAY:
        several = timed(captured(first, 10), 2) / 10
        count = max(1, min(MOST_LAUNCHES, math.ceil(REPLAY / max(several, 0.5))))
        once = several * count
    graphs = {name: captured(run, count) for name, run in runs.items()}
    for graph in graphs.values():
        timed(graph, 1)
    rounds = max(4, min(15, int(BUDGET / (4 * once))))
    times: dict[str, list[Any]] = {name: [] for name in runs}
    for number in range(2 * rounds):
        for name in list(runs) if number % 2 else reversed(runs):
            times[name].append(event_pair(graphs[name]))
    synchronize()
    return {
        name: statistics.median(begin.elapsed_time(end) for begin, end in pairs) * 1e3 / count
        for name, pairs in times.items()
    }, count


def captured(run: Callable[[], Any], count: int) -> Any:
    """Return a CUDA graph of launches (`torch.cuda.graph` would collect garbage first, which takes longest here)."""
    import torch

    graph = torch.cuda.CUDAGraph()
    synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin()
        for _ in range(count):
            run()
        graph.capture_end()
    return graph


def event_pair(graph: Any) -> tuple[Any, Any]:
    """Replay a graph between two events."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    return begin, end


def timed(graph: Any, count: int) -> float:
    """Return the least microseconds of some replays."""
    pairs = [event_pair(graph) for _ in range(count + 1)][1:]
    synchronize()
    return min(begin.elapsed_time(end) for begin, end in pairs) * 1e3


def synchronize() -> None:
    import torch

    torch.cuda.synchronize()


def facts(compiled: Any) -> dict[str, Any]:
    """Return the resources of a compiled kernel, and the warps that a multiprocessor can hold."""
    registers, warps = int(compiled.n_regs), int(compiled.metadata.num_warps)
    shared = int(compiled.metadata.shared)
    return {"registers": registers, "spills": int(compiled.n_spills), "shared": shared, "warps": warps,
            "occupancy": occupancy(registers, shared, warps)}  # fmt: skip


def occupancy(registers: int, shared: int, warps: int) -> int:
    """Return the warps that a multiprocessor of an H200 holds."""
    per_warp = math.ceil(max(registers, 1) * 32 / 256) * 256
    blocks = min(64 // warps, 32, 65536 // (per_warp * warps), 233472 // (shared + 1024))
    return blocks * warps


def instructions(cubin: bytes) -> dict[str, Any]:
    """Return the instructions of a kernel: all, and those of its hottest loop by class."""
    from benchmarks import sass_counts

    try:
        listed = sass_counts.listing(cubin)
    except (SystemExit, OSError, ValueError):  # no nvdisasm here
        return {}
    hottest = listed.hottest()
    return {"instructions": len(listed.code), "loop": len(hottest), "classes": dict(sass_counts.counted(hottest))}


def answer(request: dict[str, Any], launches: list[Launch]) -> dict[str, Any]:
    """Do what a request asks."""
    launch = launches[request["index"]]
    if request["action"] == "measure":
        return measure(launch, request.get("folder"))
    return compile_both(launch, request["action"] == "static", request.get("compilers") or list(COMPILERS))


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what kernels and libraries print is no answer
    launches = corpus.read(sys.argv[1])
    is_first = True
    for line in sys.stdin:
        request = json.loads(line)
        if is_first and request["action"] != "measure":
            warm_up(request["action"] == "static")
        is_first = is_lost = False
        try:
            found = answer(request, launches)
        except Exception as error:  # a lost GPU context: the next process goes on
            found, is_lost = {"error": f"{type(error).__name__}: {str(error)[-300:]}"}, True
        replies.write(json.dumps(found) + "\n")
        replies.flush()
        if is_lost:
            os._exit(1)


if __name__ == "__main__":
    main()
