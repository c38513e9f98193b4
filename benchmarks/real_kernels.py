"""Kernels of libraries at the sizes of language models: recorded without a GPU, timed under both compilers.

    python -m benchmarks.real_kernels record --out FOLDER [--library NAME] [--only WORD]
    python -m benchmarks.real_kernels run CORPUS [--library NAME] [--only WORD] [--json FILE] [--shard 0/2]
    python -m benchmarks.real_kernels run CORPUS --compile-only [--compiler tilework]

`record` needs torch, Triton and the libraries (`benchmarks.real_programs`), and writes FOLDER and FOLDER.zip
(`benchmarks.corpus`); what it records takes the place of what FOLDER has of the same programs. `run` needs torch,
Triton, tilework and a GPU, and none of the libraries: all launches are first compiled by several processes into a fresh
cache, then one process runs each launch under both compilers, compares what they write and replays CUDA graphs of
launches in turns. A launch that crashes or hangs costs that launch only.
`--compile-only` needs no GPU.
"""

import argparse
import contextlib
import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.corpus import Launch, geometric_mean
from benchmarks.real_kernels_process import FAR, SLOW

COMPILERS = ("triton", "tilework")
COMPILE_SECONDS, MEASURE_SECONDS = 60.0, 20.0
GOOD = 0.97
L2_BYTES = 50 << 20


# Recording ------------------------------------------------------------------------------------------------------------


def record(given: argparse.Namespace) -> None:
    """Record each library in a process of its own, because libraries change torch."""
    if not given.library:
        from benchmarks.real_programs import PROGRAMS

        for library in PROGRAMS:
            command = [sys.executable, "-m", "benchmarks.real_kernels", "record", "--out", given.out]
            words = (f"--only={word}" for word in given.only)
            subprocess.run([*command, "--library", library, *words], check=False)
        return
    from benchmarks import record_launches

    if given.library == "inductor":  # it has its own description of the GPU
        record_launches.pretend_driver()
    else:
        record_launches.pretend_cuda()
    from benchmarks.real_programs import PROGRAMS

    writer = corpus.Writer(given.out)
    record_launches.record(given.library, PROGRAMS[given.library], writer, given.only)
    if Path(given.out, "launches.json").exists():
        add_others(writer, corpus.read(given.out), list(PROGRAMS))
    writer.finish()
    counts = {name: len(found) for name, found in corpus.by_library(writer.launches.values()).items()}
    print(f"{sum(counts.values())} launches: {counts}")


def add_others(writer: corpus.Writer, known: Iterable[Launch], libraries: list[str]) -> None:
    """Add known launches of programs that the writer has none of, and order all of them by library and program."""
    recorded = set(map(program_of, writer.launches.values()))
    for launch in known:
        if program_of(launch) not in recorded:
            writer.add(launch)
    places = {name: place for place, name in enumerate(libraries)}

    def place(launch: Launch) -> tuple[int, tuple[str, str]]:
        return places.get(launch.library, len(places)), program_of(launch)

    writer.launches = dict(sorted(writer.launches.items(), key=lambda item: place(item[1])))


def program_of(launch: Launch) -> tuple[str, str]:
    """Return the library and the program that a launch was recorded from."""
    return launch.library, launch.name.partition(":")[0]


# Worker processes -----------------------------------------------------------------------------------------------------


class Worker:
    """A process that answers requests; it is started again after a crash or a hang."""

    def __init__(self, path: str, environment: dict[str, str]) -> None:
        self.path, self.environment = path, environment
        self.process: subprocess.Popen[str] | None = None
        self.replies: queue.Queue[str] = queue.Queue()

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "benchmarks.real_kernels_process", self.path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=self.environment, cwd=Path(__file__).parent.parent)  # fmt: skip
        replies: queue.Queue[str] = queue.Queue()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                replies.put(line)
            replies.put("")

        threading.Thread(target=read, daemon=True).start()
        self.process, self.replies = process, replies
        return process

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer to a request, or an error."""
        process = self.process if self.process is not None and self.process.poll() is None else self.start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self.replies.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            return {"error": f"no answer in {seconds:.0f} s"}
        except OSError as error:
            self.stop()
            return {"error": str(error)}
        if not line:
            self.stop()
            return {"error": "the process died"}
        found = json.loads(line)
        if "error" in found:
            self.stop()  # its GPU context may be lost
        return found

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def ask_all(path: str, requests: list[dict[str, Any]], workers: int, seconds: float,
            shown: Callable[[int, dict[str, Any]], None], most: float = math.inf) -> list[dict[str, Any]]:  # fmt: skip
    """Return the answers of several processes, in the order of the requests: empty ones after `most` seconds."""
    end = time.perf_counter() + most
    left = queue.SimpleQueue[int]()
    for index in range(len(requests)):
        left.put(index)
    found: list[dict[str, Any]] = [{}] * len(requests)

    def work() -> None:
        worker = Worker(path, dict(os.environ))
        with contextlib.suppress(queue.Empty):
            while time.perf_counter() < end:
                index = left.get_nowait()
                found[index] = worker.ask(requests[index], seconds)
                shown(index, found[index])
        worker.stop()

    threads = [threading.Thread(target=work) for _ in range(min(workers, len(requests)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# Running --------------------------------------------------------------------------------------------------------------


def chosen(launches: list[Launch], given: argparse.Namespace) -> list[int]:
    """Return the indices of the launches that the command line names."""
    found = [
        index
        for index, launch in enumerate(launches)
        if (not given.library or launch.library in given.library.split(","))
        and (not given.only or any(word in launch.name for word in given.only))
    ]
    if given.shard:
        number, count = map(int, given.shard.split("/"))
        found = found[number::count]
    return found


def run(given: argparse.Namespace) -> None:
    launches = corpus.read(given.corpus)
    indices = chosen(launches, given)
    path = str(Path(given.corpus).absolute())
    with tempfile.TemporaryDirectory(prefix="corpus-cache") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        begin = time.perf_counter()
        action = "static" if given.compile_only else "compile"
        requests = [{"index": index, "action": action, "compilers": given.compiler} for index in indices]
        compiled = ask_all(path, requests, given.workers, COMPILE_SECONDS, lambda index, found: None)
        names = [launches[index].name for index in indices]
        print(f"compiled {len(indices)} launches in {time.perf_counter() - begin:.0f} s")
        print_compilations(names, compiled)
        if given.compile_only:
            return
        begin = time.perf_counter()
        pairs = [(index, one) for index, one in zip(indices, compiled, strict=True) if is_compiled(one)]
        indices, compiled = [index for index, _ in pairs], [one for _, one in pairs]
        requests = [{"index": index, "action": "measure", "folder": given.cubins} for index in indices]

        print(f"{'':78}{'Triton':>9}{'tilework':>9}{'ratio':>7}")

        def show(at: int, found: dict[str, Any]) -> None:
            print(row(launches[indices[at]], found), flush=True)

        measured = ask_all(path, requests, 1, MEASURE_SECONDS, show, given.seconds)
        count = sum(map(bool, measured))
        print(f"measured {count} of {len(indices)} launches in {time.perf_counter() - begin:.0f} s")
    rows = [
        {"library": launches[index].library, "name": launches[index].name, "compiled": one, **result}
        for index, one, result in zip(indices, compiled, measured, strict=True)
        if result
    ]
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1))
    report(rows)


def is_compiled(found: dict[str, Any]) -> bool:
    """Return True if both compilers compiled a launch."""
    return all("seconds" in found.get(name, {}) for name in COMPILERS)


def print_compilations(names: list[str], compiled: list[dict[str, Any]]) -> None:
    """Print what failed to compile, and the sum of the seconds of what both compiled."""
    for name, found in zip(names, compiled, strict=True):
        for compiler, one in found.items():
            message = one if compiler == "error" else one.get("error") if isinstance(one, dict) else None
            if message:
                shown = str(message).replace("\n", " ")[-220:]
                print(f"  {compiler} failed: {name}: {shown}")
    both = [one for one in compiled if is_compiled(one)]
    if both:
        sums = {name: sum(one[name]["seconds"] for one in both) for name in COMPILERS}
        ratio = sums["tilework"] / sums["triton"]
        print(f"seconds to compile {len(both)}: Triton {sums['triton']:.1f}, tilework {sums['tilework']:.1f}"
              f" ({ratio:.2f}x)")  # fmt: skip


def row(launch: Launch, found: dict[str, Any]) -> str:
    """Return the line of one launch."""
    name = f"{launch.library} {launch.name}"[:78]
    if "ratio" not in found:
        errors = [f"{key}: {value.get('error')}" for key, value in found.items() if isinstance(value, dict)]
        message = " ".join([str(found.get("error", "")), *errors]).replace("\n", " ")
        return f"{name:78}  failed {message[-160:]}"
    notes = [f"results differ by {found['distance']:.1e} in {found['worst']}"] if found["distance"] > FAR else []
    if is_sensitive(found):
        notes.append(f"Triton's own by {found['sensitivity']:.1e} where last bits of inputs are others")
    notes += ["in L2"] if found["bytes"] < L2_BYTES else []
    times = f"{found['triton']['us']:9.2f}{found['tilework']['us']:9.2f}{found['ratio']:7.2f}"
    return f"{name:78}{times}  {', '.join(notes)}"


def is_sensitive(found: dict[str, Any]) -> bool:
    """Return True if the results depend on the last bits of inputs, or on the order of programs."""
    return found.get("sensitivity", 0.0) > FAR


def report(rows: list[dict[str, Any]]) -> None:
    """Print the means by library, and the resources of everything that is slower than Triton's."""
    timed = [one for one in rows if "ratio" in one]
    print(f"\n{'library':24}{'launches':>9}{'mean':>8}{f'>= {GOOD}':>9}{'worst':>8}")
    libraries = dict.fromkeys(one["library"] for one in timed)
    for library in (*libraries, "all"):
        ratios = [one["ratio"] for one in timed if library in ("all", one["library"])]
        if ratios:
            share = sum(ratio >= GOOD for ratio in ratios) / len(ratios)
            print(f"{library:24}{len(ratios):9}{geometric_mean(ratios):8.3f}{share:9.1%}{min(ratios):8.2f}")
    far = [one for one in timed if one["distance"] > FAR]
    sensitive = sum(map(is_sensitive, far))
    print(f"{len(rows) - len(timed)} launches failed, results of {len(far)} differ by more than {FAR}, Triton's own of"
          f" {sensitive} of them where last bits of inputs are others")  # fmt: skip
    slow = sorted((one for one in timed if one["ratio"] < SLOW), key=lambda one: one["ratio"])
    print(f"\n{len(slow)} below {SLOW}x: Triton/tilework")
    for one in slow:
        print(f"{one['ratio']:5.2f}  {one['triton']['us']:.2f}/{one['tilework']['us']:.2f} us  {one['library']}"
              f" {one['name']}")  # fmt: skip
        print("       " + ", ".join(differences(one["triton"], one["tilework"])))


def differences(left: dict[str, Any], right: dict[str, Any]) -> Iterable[str]:
    """Return the figures of both compilers, and the classes of instructions that differ most."""
    for name in ("registers", "spills", "shared", "occupancy", "instructions", "loop"):
        if name in left and name in right:
            yield f"{name} {left[name]}/{right[name]}"
    classes = {name: (left.get("classes", {}).get(name, 0), right.get("classes", {}).get(name, 0))
               for name in {**left.get("classes", {}), **right.get("classes", {})}}  # fmt: skip
    most = sorted(classes.items(), key=lambda item: item[1][0] - item[1][1])[:4]
    for name, (one, other) in most:
        if other > one:
            yield f"{name} {one}/{other}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, running = commands.add_parser("record"), commands.add_parser("run")
    recording.add_argument("--out", required=True)
    running.add_argument("corpus")
    running.add_argument("--json", help="write all figures to this file")
    running.add_argument("--shard", help="every n-th launch: 0/4")
    running.add_argument("--seconds", type=float, default=math.inf, help="begin no launch after so many seconds")
    running.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that compile")
    running.add_argument("--cubins", help="keep the binaries of slow kernels in this folder")
    running.add_argument("--compile-only", action="store_true", help="compile for an H200, without a GPU")
    running.add_argument("--compiler", action="append", choices=COMPILERS, help="with --compile-only: only this one")
    for one in (recording, running):
        one.add_argument("--library")
        one.add_argument("--only", action="append", default=[], help="programs or launches with this word in the name")
    given = parser.parse_args()
    (record if given.command == "record" else run)(given)


if __name__ == "__main__":
    main()
