"""Run a program, tune every kernel that it launches, and keep the results, so that later runs need no tuning.

    tilework tune train.py --epochs 1                    here, with worker processes
    tilework tune --triton train.py                      a program that says `import triton`
    tilework tune --workers ray://head:10001 train.py    on the GPUs of a Ray cluster (pip install tilework[ray])
    tilework tune --merge /caches/host1 /caches/host2    take over what other machines have measured
    tilework tune --export tuned.py                      functions from the sizes of a launch to a configuration

On a cluster, the program runs once per GPU (unless `--parts` is given), and each run measures its part of the
configurations of every kernel. The folder of the program is sent to the cluster; everything else that it imports must
be installed there, including the same version of tilework. Results apply to the kind of GPU, the kernel's source and
the versions of the tools; a changed kernel is tuned again.
"""

import argparse
import ast
import json
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import UsageError, message_of
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.key import file_stem, triton_key
from tilework.runtime.tuning.results import CACHED, SAVED, TIMING, decode_timing, has_failed, order
from tilework.runtime.tuning.tree import TITLE, Family, source
from tilework.tools.program import Program
from tilework.tools.program import add_arguments as add_program

FAILURE = 2
KINDS = (TIMING, CACHED, SAVED)  # files of timings
ATTEMPTS = 3  # at a part
TAIL = 4000  # characters of what a failed program printed

PATIENCE = 120.0  # seconds to wait for a machine when the cluster has none
CHECK_SECONDS = 5.0
NO_MACHINE = "no machine of the cluster can measure"
KILLED = (-signal.SIGTERM, -signal.SIGKILL)  # exit codes of programs on a machine that shuts down

PR_SET_PDEATHSIG = 1
END_WITH_PARENT = f"""import ctypes, os, sys
ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {int(signal.SIGKILL)})
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])"""

Files = dict[str, str]  # texts by their paths below the cache folder
Result = tuple[int, str, Files]  # of a part: exit code, the end of what the program printed, timings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework tune`."""
    add = parser.add_argument
    add("--workers", default=None, metavar="ADDRESS", help="the Ray cluster: ray://HOST:PORT, auto or local")
    add(
        "--parts",
        type=int,
        default=None,
        metavar="N",
        help="with --workers: the number of runs that share the measurements",
    )
    add("--merge", nargs="+", default=(), metavar="DIR", help="first take over the timings of other cache folders")
    add(
        "--export",
        default=None,
        metavar="FILE",
        help="write all results as Python: a function from shape to configuration",
    )
    add_program(parser, modules=False, is_optional=True)


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    if args.program is None and args.workers:
        raise UsageError("--workers needs a program to tune")
    if args.program is None and not args.merge and args.export is None:
        raise UsageError("name a program to tune, --merge or --export")
    program = None if args.program is None else Program.of(args)
    if args.export is not None:
        check_export(Path(args.export))
    store = EntryStore(knobs.cache.dir)
    before = saved(store)
    code = merge(store, args.merge) if args.merge else 0
    if program is not None:
        code = tune_on_cluster(args, store) if args.workers else run_program(program, {"TILEWORK_SAVE_TUNING": "1"})
    if program is not None or args.merge:
        print(report(store, before))
    if args.export is not None:
        print(export(store, Path(args.export)))
    return code


def run_program(program: Program, variables: Mapping[str, str], prefix: Sequence[str] = (), **settings: Any) -> int:
    """Run a program, with more variables; its exit code."""
    environment = {**knobs.environment_without(()), **variables}
    return subprocess.run([*prefix, *program.command()], env=environment, check=False, **settings).returncode


def ending_with_parent() -> list[str]:
    """Return the beginning of a command line; on Linux the kernel kills the program behind it when this process dies.

    Otherwise the program of a killed Ray worker would continue, and disturb the next one on its GPU.
    """
    return [sys.executable, "-ISc", END_WITH_PARENT, str(os.getpid())] if sys.platform == "linux" else []


def saved(store: EntryStore) -> dict[Path, tuple[int, int]]:
    """The files with saved results, with inode and modification time to detect replaced ones."""
    stats = {path: path.stat() for path in Path(store.root).glob(f"*/*.{SAVED}.json")}
    return {path: (found.st_ino, found.st_mtime_ns) for path, found in stats.items()}


def report(store: EntryStore, before: Mapping[Path, tuple[int, int]]) -> str:
    """One line per kernel and tuning key whose results are new."""
    lines = sorted(line_of(path) for path, found in saved(store).items() if before.get(path) != found)
    return "\n".join(lines or ["nothing new was tuned"])


def line_of(path: Path) -> str:
    """``matmul (1024, 'fp16'): 0.041 ms with {'BLOCK': 128, ...}, of 12 configurations``"""
    data = json.loads(path.read_text(encoding="utf-8"))
    timings = {text: decode_timing(value) for text, value in data["timings"].items()}
    best = min(timings, key=lambda text: order(timings[text]))
    failed = sum(map(has_failed, timings.values()))
    rest = f", {failed} of which cannot run" if failed else ""
    took = f"{order(timings[best])[0]:.4g} ms"
    return f"{data['kernel']} {data['key']}: {took} with {best}, of {len(timings)} configurations{rest}"


# ---- on a cluster


def tune_on_cluster(args: argparse.Namespace, store: EntryStore) -> int:
    """Measure in parts on the machines of a cluster, and save the whole here."""
    try:
        import ray  # an optional dependency, for clusters
    except ImportError:
        raise UsageError("--workers needs Ray: pip install 'tilework[ray]'") from None
    script = Path(args.program).resolve()
    settings = {"runtime_env": {"working_dir": str(script.parent)}, "log_to_driver": False, "logging_level": "ERROR"}
    codes, parts, why = dict[int, int](), 0, NO_MACHINE
    try:
        with ray.init(address=args.workers, **settings):
            needed, machines = share_of(ray.nodes())
            parts = args.parts or machines
            resources = {"num_gpus": needed.get("GPU", 0), "num_cpus": needed["CPU"], "scheduling_strategy": "SPREAD"}
            task = ray.remote(measure_part).options(**resources, max_retries=0)
            given = (script.name, args.arguments, args.triton, triton_key())
            submit = lambda part: task.remote(*given, f"{part}/{parts}")
            for part, (code, text, files) in finished(ray, submit, lambda: has_room(ray.nodes(), needed), parts):
                save(store, files)  # at once, because the connection may break before the next part
                codes[part] = code
                if code:
                    print(f"tilework tune: part {part} of {parts} ended with {code}:\n{text}", file=sys.stderr)
    except ConnectionError as error:
        if not parts:
            raise UsageError(f"no Ray cluster at {args.workers}: {error}") from None
        why = f"the connection to {args.workers} is lost: {first_line(error)}"
    lost = [str(part) for part in range(parts) if part not in codes]
    if lost:
        print(f"tilework tune: error: no result of part {', '.join(lost)} of {parts}: {why}", file=sys.stderr)
    return max([*codes.values(), int(bool(lost))], key=abs)


def share_of(nodes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], int]:
    """Return the resources that a run needs, and how many runs the machines of a cluster can do at once.

    A run needs a GPU. On a cluster without GPUs it needs all cores of a machine, because two runs on one machine would
    disturb each other's timings.
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = int(sum(resources.get("GPU", 0) for resources in alive))
    if gpus:
        return {"GPU": 1, "CPU": 1}, gpus
    cores = max([1, *(int(resources.get("CPU", 0)) for resources in alive)])
    return {"CPU": cores}, max(1, sum(resources.get("CPU", 0) >= cores for resources in alive))


def has_room(nodes: Sequence[Mapping[str, Any]], needed: Mapping[str, float]) -> bool:
    """Return True if a machine that is alive has the resources for a run, be they in use or not."""
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    return any(all(resources.get(name, 0) >= count for name, count in needed.items()) for resources in alive)


def finished(
    ray: Any, submit: Callable[[int], Any], has_machine: Callable[[], bool], parts: int
) -> Iterator[tuple[int, Result]]:
    """Yield each part and its result as soon as there is one.

    A part whose machine, process or program is killed is measured elsewhere; if that happens to it `ATTEMPTS` times, it
    has failed. When the cluster has had no machine for `PATIENCE` seconds, the remaining parts have no result.
    """
    waiting = {submit(part): (part, 1) for part in range(parts)}
    without_since: float | None = None
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=CHECK_SECONDS)
        if not ready:
            if has_machine():
                without_since = None
            elif without_since is None:
                print(f"tilework tune: {NO_MACHINE}; waiting {PATIENCE:g} s for one", file=sys.stderr)
                without_since = time.monotonic()
            elif time.monotonic() > without_since + PATIENCE:
                return
            continue
        part, attempt = waiting.pop(ready[0])
        try:
            result = ray.get(ready[0])
            text = f"its program was killed by {signal.Signals(-result[0]).name}" if result[0] in KILLED else ""
        except ray.exceptions.RayError as error:
            text = first_line(error)
            result = (1, f"{ATTEMPTS} times without a result: {text}", {})
        if text and attempt < ATTEMPTS:
            print(f"tilework tune: part {part} of {parts} is measured again: {text}", file=sys.stderr)
            waiting[submit(part)] = (part, attempt + 1)
        else:
            yield part, result


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def measure_part(script: str, arguments: Sequence[str], as_triton: bool, package: str, part: str) -> Result:
    """On a machine of the cluster: (exit code, the end of what it printed, timings) of a run that measures one part."""
    if triton_key() != package:
        return 1, f"{socket.gethostname()} has another tilework: install the same on all machines", {}
    with tempfile.TemporaryDirectory() as folder:
        log, cache = Path(folder, "log"), Path(folder, "cache")
        variables = {
            "TILEWORK_TUNING_PART": part,
            "TRITON_CACHE_AUTOTUNING": "1",
            "TRITON_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        program = Program(script, tuple(arguments), as_triton=as_triton)
        with log.open("wb") as output:
            code = run_program(program, variables, ending_with_parent(), stdout=output, stderr=subprocess.STDOUT)
        files = {
            str(path.relative_to(cache)): path.read_text(encoding="utf-8") for path in cache.glob(f"*/*.{TIMING}.json")
        }
        return code, log.read_text(errors="replace")[-TAIL:], files


def save(store: EntryStore, files: Files) -> None:
    """Combine timings with those in the cache, and store them for every later run."""
    whole: dict[str, dict[str, Any]] = {}
    for path, text in files.items():
        data = json.loads(text)
        folder = os.path.dirname(path)
        kept = whole.setdefault(folder, {**data, "timings": {}})
        kept["timings"] = together(kept["timings"], data["timings"])
    for folder, data in whole.items():
        name = f"{file_stem(data['kernel'])}.{SAVED}.json"
        own = Path(store.path(folder), name)
        known = read_timings(own)["timings"] if own.is_file() else {}
        store.put(folder, name, json.dumps({**data, "timings": together(known, data["timings"])}).encode())


# ---- other caches


def merge(store: EntryStore, folders: Sequence[str]) -> int:
    """Take over the timings of other cache folders; 1 if a file of theirs is damaged."""
    files, damaged = dict[str, str](), 0
    for folder in folders:
        if "://" in folder:
            raise UsageError(
                f"--merge takes folders, and {folder} is an address: `tilework cache pull` fetches from there"
            )
        if not os.path.isdir(folder):
            raise UsageError(f"--merge: there is no folder {folder}")
        found = sorted(path for kind in KINDS for path in Path(folder).glob(f"*/*.{kind}.json"))
        if not found:
            raise UsageError(f"--merge: {folder} is not a cache folder with timings of autotuners")
        for path in found:
            try:
                data = read_timings(path)
            except ValueError as error:
                print(f"tilework tune: error: {path}: {error}", file=sys.stderr)
                damaged = 1
                continue
            name = f"{path.parent.name}/{path.name}"
            known = json.loads(files[name])["timings"] if name in files else {}
            files[name] = json.dumps({**data, "timings": together(known, data["timings"])})
    save(store, files)
    return damaged


def read_timings(path: Path) -> dict[str, Any]:
    """The content of a file of timings; a ValueError says what is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        for value in data["timings"].values():
            decode_timing(value)
        if not isinstance(data["kernel"], str):
            raise TypeError(data["kernel"])
        if data.get("package") == triton_key():
            check_facts(data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no file of timings ({type(error).__name__}: {error})") from None
    return data


def check_facts(data: Mapping[str, Any]) -> None:
    """Raise a TypeError if what a file says about its timings is not of the types that this version writes."""
    texts = [data["source"], data["device"], *data["types"]]
    if not all(isinstance(text, str) for text in texts) or not isinstance(data["types"], list):
        raise TypeError(f"its source, device or types are {texts}")
    shape = data["shape"]
    if not isinstance(shape, dict) or not all(type(value) in (int, float) for value in shape.values()):
        raise TypeError(f"its shape is {shape!r}")


def together(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the timings of two files; of two of one configuration the smaller, because noise makes calls slower."""
    found = dict(known)
    for text, value in more.items():
        if text not in found or order(decode_timing(value)) < order(decode_timing(found[text])):
            found[text] = value
    return found


# ---- as Python


def check_export(path: Path) -> None:
    """Refuse a file that cannot be written, or that `--export` has not written: it may be the program."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not path.absolute().parent.is_dir():
            raise UsageError(f"--export: there is no folder {path.parent}") from None
        return
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--export: {message_of(error)}") from None
    if text.strip() and not text.startswith(TITLE):
        raise UsageError(f"--export: {path} is a file that --export has not written: name another one, or delete it")


def export(store: EntryStore, path: Path) -> str:
    """Write the decision trees of all results of this version, and print what was written."""
    families: dict[tuple[str, ...], Family] = {}
    settings: dict[str, dict[str, Any]] = {}
    for file in sorted(path for kind in (SAVED, CACHED) for path in Path(store.root).glob(f"*/*.{kind}.json")):
        try:
            data = read_timings(file)
        except ValueError as error:
            raise UsageError(f"{file}: {error}") from None
        if data.get("package") != triton_key() or not data["shape"]:
            continue
        timings = {text: order(decode_timing(value))[0] for text, value in data["timings"].items()}
        known = {text: literal(text) for text in timings}
        times = {text: timings[text] for text, found in known.items() if found is not None}
        if not any(map(math.isfinite, times.values())):
            continue
        settings |= {text: found for text, found in known.items() if found is not None}
        types = ", ".join(data["types"][:-1] if data["device"] in data["types"][-1:] else data["types"])
        key = (data["kernel"], data["source"], types, data["device"], *data["shape"])
        family = families.setdefault(key, Family(data["kernel"], types, data["device"], []))
        family.measured[:] = [one for one in family.measured if one[0] != data["shape"]] + [(data["shape"], times)]
    if not families:
        raise UsageError(
            f"{store.root} has no results of this version with sizes in `key=`: run a program with `tilework tune`"
        )
    try:
        path.write_text(source([*families.values()], settings, f"{datetime.now():%Y-%m-%d}"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--export: {message_of(error)}") from None
    names = ", ".join(dict.fromkeys(family.kernel for family in families.values()))
    return f"{path}: {names} by {sum(len(family.measured) for family in families.values())} shapes"


def literal(text: str) -> dict[str, Any] | None:
    """Return the settings of a configuration from its text; None if some are not literals."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
