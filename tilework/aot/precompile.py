"""Compile a manifest for some targets into a bundle: `tilework precompile`.

    made = precompile(read_manifest(["app.jsonl"]), [GPUTarget.parse("cuda:90"), GPUTarget("cpu", "native", 1)])
    made.contents, made.failures

Every specialisation is compiled for every target, in separate processes (`in_processes.py`): a kernel that fails, or
that crashes the compiler, is reported as a failure with its name, and all others are compiled. The bundle also contains
machine code of the runtime itself (`own_objects`), because a machine that only serves cannot compile it: the thread
pool, and the native launcher for every layout of tuples that CPython has, for any processor of each kind, 120 KB in
all. They are for Linux and compiled on Linux only; without them, kernels for GPUs are launched by Python.
"""

import hashlib
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilework import knobs
from tilework.aot.find_kernels import Finder
from tilework.aot.in_processes import results
from tilework.aot.trees import fitted_trees, specializations
from tilework.runtime.bundle.bundle_file import PLAIN_SUFFIX, Contents, Entry
from tilework.runtime.bundle.serving import MANIFEST, PLAIN, TREES, TUNINGS, target_facts, target_name
from tilework.runtime.devices.conditional_launch import unconditional
from tilework.runtime.devices.host.own_code import layout_key, own_name
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING
from tilework.runtime.kernel_cache.managers import load_entry, store_entry, triton_key
from tilework.runtime.launch.native.machine import NAME
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.specialization_record import SpecializationRecord, specialization_from
from tilework.targets.base import IR_STAGES, GPUTarget, find_backend

LEFT_OUT = ("key_parts",)  # of the metadata: what only explanations read


@dataclass(frozen=True)
class Job:
    """One specialisation for one target."""

    record: Mapping[str, Any]
    target: GPUTarget
    with_ptx: bool = False

    @property
    def name(self) -> str:
        """The name in messages: ``app:add for cuda:90``."""
        return f"{self.record['kernel']} for {target_name(vars(self.target))}"

    @property
    def is_needed(self) -> bool:
        """Return False for a candidate of the autotuner, which no recorded launch used."""
        return self.record["record"] == "kernel"


@dataclass(frozen=True)
class CompiledJob:
    """The result of one job: files by key, and the parts of the specialisation."""

    key: str
    source: str
    files: dict[str, dict[str, bytes]]
    parts: dict[str, Any]
    notes: list[str]


@dataclass
class Precompiled:
    """The results of all jobs."""

    contents: Contents
    failures: list[tuple[Job, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def precompile(
    records: Sequence[Mapping[str, Any]],
    targets: Sequence[GPUTarget],
    finder: Finder | None = None,
    workers: int = 1,
    with_ptx: bool = False,
    step: Callable[[Job, str | None], None] = lambda job, error: None,
) -> Precompiled:
    """Compile everything; `step` is called with each finished job and its error, if any."""
    jobs = [Job(record, target, with_ptx) for record in specializations(records) for target in targets]
    finder = finder or Finder()
    made: dict[int, CompiledJob] = {}
    failures: dict[int, str] = {}
    refused: set[str] = set()
    work = lambda index: compiled(jobs[index], finder)  # noqa: E731
    for index, result, error in results(work, len(jobs), workers, "the compiler did not survive it (%s)"):
        step(jobs[index], error)
        if error is not None and jobs[index].is_needed:
            failures[index] = error
        elif error is not None:
            refused.add(f"{jobs[index].name}: a configuration for other sizes is left out: {error.splitlines()[-1]}")
        else:
            made[index] = result
    notes = sorted(refused.union(*(result.notes for result in made.values())))
    done = [(jobs[index], made[index]) for index in sorted(made)]
    contents = collected(records, targets, done, with_ptx)
    return Precompiled(contents, [(jobs[index], failures[index]) for index in sorted(failures)], notes)


def found(job: Job, finder: Finder) -> tuple[Specialization, SpecializationRecord]:
    """Return the specialisation of a job, and its record as a launch would write it now. Replaces the environment of
    this process, which must be a separate one, by that of the recording."""
    record = job.record
    base = {name: text for name, text in knobs.environment_without(()).items() if name not in SETTINGS}
    knobs.replace_environment({**base, **record["environment"]})
    fn = finder.kernel(record)
    backend = find_backend(job.target)
    if unknown := [leaf for leaf in (*record["signature"], *names_in(record)) if leaf not in fn.arg_names]:
        raise ValueError(
            f"{fn.__qualname__} has no parameter {', '.join(dict.fromkeys(unknown))}: record the program again"
        )
    specialization = specialization_from(record, fn, backend)
    return specialization, SpecializationRecord(specialization, backend, record["environment"])


def compiled(job: Job, finder: Finder) -> CompiledJob:
    """Compile one specialisation; the process must be a separate one."""
    specialization, recorded = found(job, finder)
    kernel = specialization.compile_for(job.target)
    files = {recorded.key: bundled(kernel, job.with_ptx)}
    if without := unconditional(kernel.metadata):
        plain = recorded.key + PLAIN_SUFFIX
        unguarded = specialization.compile_for(job.target, **{**kernel.metadata.requested_options, **without})
        files[plain] = bundled(unguarded, job.with_ptx)
        files[recorded.key] = with_metadata(files[recorded.key], {PLAIN: plain})
    return CompiledJob(recorded.key, recorded.source, files, recorded.parts(), changes(job.record, recorded))


# of this process, and not of the one that was recorded: how it is used, and what is in the record if it matters
SETTINGS = (
    *(
        "TILEWORK_RECORD",
        "TILEWORK_BUNDLE",
        "TILEWORK_NO_JIT",
        "TILEWORK_DEVICE",
        "TILEWORK_EXPLAIN",
        "TRITON_INTERPRET",
    ),
    *("TRITON_DEBUG", "TRITON_SANITIZE", "TRITON_SANITIZE_OVERFLOW", "TILEWORK_REPRODUCIBLE", *CACHE_INVALIDATING),
)


def names_in(record: Mapping[str, Any]) -> Iterator[str]:
    """The parameters that constants and facts are about."""
    for leaf in (*record["constants"], *record["facts"]):
        yield leaf.partition("[")[0]


def bundled(kernel: Any, with_ptx: bool) -> dict[str, bytes]:
    """The files of a kernel that a bundle has."""
    binary = kernel.metadata.binary_ext
    if binary in IR_STAGES:
        raise ValueError(f"it would be run by the evaluator, from {binary}, which needs the compiler")
    stages = dict.fromkeys((binary, *(("ptx",) if with_ptx and "ptx" in kernel.asm else ())))
    files = {stage: as_bytes(kernel.asm[stage]) for stage in stages}
    metadata = {name: value for name, value in kernel.metadata._asdict().items() if name not in LEFT_OUT}
    metadata["target"] = vars(kernel.metadata.target)
    return with_metadata({**files, "json": json.dumps(metadata, default=str).encode()}, {"extern_libs": []})


def as_bytes(result: Any) -> bytes:
    return result.encode() if isinstance(result, str) else bytes(result)


def with_metadata(files: Mapping[str, bytes], more: Mapping[str, Any]) -> dict[str, bytes]:
    data = {**json.loads(files["json"]), **more}
    if "requested_options" in data:
        data["requested_options"]["extern_libs"] = []
    return {**files, "json": json.dumps(data, sort_keys=True).encode()}


def changes(record: Mapping[str, Any], recorded: SpecializationRecord) -> list[str]:
    """Return notes about changes since the recording; the current source is compiled."""
    if recorded.source == record["source"]:
        return []
    others = recorded.parts()["others"]
    now = {key.removeprefix("global "): text for key, text in others.items() if key.startswith("global ")}
    before = record.get("globals", {})
    values = [
        f"{name} was {before[name]} and is {text}" for name, text in now.items() if before.get(name, text) != text
    ]
    found = f"global {', '.join(values)}" if values else "its text has changed"
    return [f"{record['kernel']} is not what was recorded ({found}): it is compiled as it is now"]


def collected(
    records: Sequence[Mapping[str, Any]],
    targets: Sequence[GPUTarget],
    made: Sequence[tuple[Job, CompiledJob]],
    with_ptx: bool,
) -> Contents:
    """Return the contents of a bundle, in an order that depends only on the contents."""
    names = sorted({(job.record["kernel"], result.source) for job, result in made})
    indices = {name: index for index, name in enumerate(names)}
    entries: dict[tuple[int, str], Entry] = {}
    rows: dict[str, dict[str, Any]] = {}
    for job, result in made:
        index = indices[job.record["kernel"], result.source]
        for key, files in result.files.items():
            slot = targets.index(job.target), key
            entries.setdefault(slot, Entry(slot[0], index, key, files))
        rows.setdefault(result.key, {"key": result.key, "parts": result.parts, "values": job.record.get("values", {})})
    sources = {job.record["kernel"]: result.source for job, result in made}
    kept = ("kernel", "source", "tuning", "device", "reproducible", "config")
    tunings = [
        {**{name: record.get(name, "") for name in kept}, "source": sources.get(record["kernel"], record["source"])}
        for record in records
        if record["record"] == "tuning"
    ]
    trees = [{**tree.to_json(), "source": sources.get(tree.kernel, tree.source)} for tree in fitted_trees(records)]
    blobs = {
        MANIFEST: json.dumps([rows[key] for key in sorted(rows)]).encode(),
        TUNINGS: json.dumps(sorted(tunings, key=json.dumps), sort_keys=True).encode(),
        TREES: json.dumps(trees, sort_keys=True).encode(),
        **own_objects(),
    }
    return Contents(
        [target_facts(target, with_ptx and target.backend == "cuda") for target in targets],
        [{"name": name, "source": source} for name, source in names],
        list(entries.values()),
        blobs,
        {"python": ".".join(platform.python_version_tuple()[:2]), "layout": layout_key()},
    )


MONOTONIC = 1  # the clock of Linux
TUPLE_ITEMS = (24, 32)  # up to Python 3.13, and since: a tuple keeps its hash
PROCESSORS = {"x86_64": ("x86-64", ""), "aarch64": ("generic", "+neon")}  # what all of them have, as LLVM calls it
CACHED_AS = "tilework_own_objects"


def own_objects() -> dict[str, bytes]:
    """The objects by what `OwnObject` looks for; from the cache where it has them."""
    if sys.platform != "linux":
        return {}
    import llvmlite  # lazily: only compiling needs it

    key = hashlib.sha256(f"{CACHED_AS}-{triton_key()}-{llvmlite.__version__}".encode()).hexdigest()
    if (found := load_entry(key, CACHED_AS)) is None:
        made = {name.replace("/", "@"): data for name, data in compiled_objects().items()}
        store_entry(key, CACHED_AS, found := {**made, f"{CACHED_AS}.json": b"{}"})
    return {name.replace("@", "/"): data for name, data in found.items() if "@" in name}


def compiled_objects() -> dict[str, bytes]:
    # lazily: only compiling needs them
    from tilework.runtime.launch.native.code.launcher import launcher_text
    from tilework.targets.cpu.run.pool import POOL_LEVEL
    from tilework.targets.cpu.run.pool_code import pool_text
    from tilework.targets.llvm.compile import LINUX, target_machine, to_object

    made: dict[str, bytes] = {}
    for processor, features in PROCESSORS.items():
        machine = target_machine(LINUX.format(processor), *features)
        texts = {"tilework_pool": (pool_text(processor), POOL_LEVEL)}
        texts |= {f"{NAME}-{MONOTONIC}-{items}": (launcher_text(MONOTONIC, items), 0) for items in TUPLE_ITEMS}
        for name, (text, level) in texts.items():
            made[own_name(name, "linux", processor)] = to_object(text, level, machine)
    return made
