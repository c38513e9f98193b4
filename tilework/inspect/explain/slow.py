"""Why is this slow: what the compiler knows, and what the emulator counted, in the order of what it may cost.

    why_slow([Case("add", module, GPUTarget("cuda", 90, 32), {"num_warps": 4}, grid=(64,))])

For a GPU these are the remarks of the passes at the user's lines, registers and spills from ptxas, how many blocks
share a multiprocessor and what keeps more from it, the limit by the cost model (docs/cost-model.md), and of a launch
that was repeated in the emulator bank conflicts and accesses that are not coalesced. For the CPU: what is not done with
vectors, and whether the grid keeps the cores busy. The weight of a finding is about how many times longer the code
takes because of it; it is an order, no measurement.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import LIBRARY, CompilationError, Span, StageError, TritonError, span_at
from tilework.inspect.compilation import (
    Compilation,
    ModuleSource,
    Request,
    compiled,
    frozen,
    requests_of,
)
from tilework.inspect.findings import Finding, Section, counted, listed, ordered
from tilework.ir.locations import source_positions
from tilework.runtime.devices.strided_arguments import HELP as HELP_STRIDED
from tilework.runtime.devices.strided_arguments import strided_arguments
from tilework.runtime.recording.key_parts import KeyParts, parts_of, stored_parts
from tilework.target import Feature, GPUTarget, Target
from tilework.targets.base import find_backend
from tilework.targets.cpu.run.interface import FORK_SYMBOL
from tilework.targets.cpu.run.pool import thread_count
from tilework.transforms.remarks import Remark

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One specialisation of a kernel on one target: its module before any pass (it is used up), and how it was
    launched."""

    kernel: str
    module: Any
    target: GPUTarget
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None
    counted: Mapping[str, Any] = field(default_factory=dict)  # by line, from the emulator
    text: str = ""  # which specialisation it is
    bytes: int = 0  # of all its arrays

    def finding(
        self, title: str, weight: float, *, how: str = "", facts: Mapping[str, Any] | None = None, **more: Any
    ) -> Finding:
        """A finding about code that may take `weight` times as long; `how` is added to the target in the title."""
        severity = "slow" if weight > 1 else "note"
        known = {"target": str(self.target), **(facts or {})}
        return Finding(
            self.kernel, f"{title} ({self.target}{how})", severity=severity, weight=weight, facts=known, **more
        )


def why_slow(cases: Sequence[Case], failures: Sequence[Finding] = ()) -> Section:
    """The section for some specialisations, most important findings first."""
    found = [finding for case in cases for finding in of_case(case)]
    names = listed([f"{case.text or case.kernel} on {case.target}" for case in cases], 4)
    return Section("slow", names or "nothing that can be looked at", (*ordered(found), *failures))


def of_case(case: Case) -> list[Finding]:
    """Return all findings about one specialisation."""
    try:
        made = compiled_case(case)
    except (TritonError, ValueError) as error:
        return [refused(case.kernel, case.target, error)]
    found = [remark_finding(case, remark) for remark in made.remarks]
    found = [finding for finding in found if finding is not None]
    if case.target.backend == "cpu":
        found += grid_findings(case, made)
    else:
        measured = list(counted_findings(case))
        lines = {finding.span and finding.span.line for finding in measured if "not coalesced" in finding.title}
        remarked = [one for one in found if "is not coalesced" in one.title and one.span is not None]
        found = [one for one in found if not (one in remarked and one.span is not None and one.span.line in lines)]
        found += [*measured, *resource_findings(case, made)]
    if found := [finding for finding in found if finding.weight > 0]:
        return found
    is_host = case.target.backend == "cpu"
    where = "vectors all through, and enough programs" if is_host else "coalesced accesses, no spills"
    return [Finding(case.kernel, f"nothing that would make it slow was found on {case.target}: {where}")]


def refused(name: str, target: Any, error: BaseException | str) -> Finding:
    first = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    return Finding(name, f"{name} cannot be compiled for {target}: {first}", severity="warning")


def compiled_case(case: Case) -> Compilation:
    """The compilation of a case as far as the tools on this machine go, without the object file of the host."""
    missing = () if knobs.nvidia.find_tool("ptxas") is not None else ("cubin",)
    request = Request(ModuleSource(case.kernel, case.module), case.target, case.settings)
    made = compiled(request, with_texts=False, with_views=False, without=("obj", *missing))
    if made.notes:
        raise StageError(next(iter(made.notes.values())))
    return made


# ---- remarks at the user's lines


@dataclass(frozen=True)
class Rule:
    """The cost of remarks that match `pattern`, and advice, which may depend on what the target can do."""

    pattern: str
    weight: Callable[[re.Match[str]], float]
    help: str | Callable[[Target], str] = ""

    def help_for(self, target: GPUTarget) -> str:
        return self.help if isinstance(self.help, str) else self.help(Target.parse(str(target)))


CONTIGUOUS = (
    "let neighbouring elements of the tile be neighbours in memory: the dimension with stride 1 last, and strides as"
    " arguments, which are constants where they are 1"
)


def dot_operands(target: Target) -> str:
    """Return which operands the tensor cores of a target multiply; nothing where none are used."""
    if Feature.MMA not in target.features:
        return ""
    float8 = "fp8, " if Feature.MMA_FP8 in target.features else ""
    return (
        f"give the dot operands of f16, bf16, {float8}int8 or (input_precision='tf32') f32, and at least 16 x 16 x 16"
    )


RULES = (
    Rule(
        r"a warp \w+ (\d+) contiguous bytes, a memory sector has (\d+)",
        lambda m: min(8.0, int(m[2]) / max(int(m[1]), 1)),
        CONTIGUOUS,
    ),
    Rule(r"this dot does not use tensor cores, whose order", lambda m: 10.0, "only without `reproducible` it may"),
    Rule(r"this dot does not use tensor cores: \S+ has none", lambda m: 0.5),
    Rule(r"this dot does not use tensor cores|acceleration not applied", lambda m: 10.0, dot_operands),
    Rule(
        r"vectorization fails",
        lambda m: 2.0,
        "say what is known: tl.multiple_of, tl.max_contiguous; align pointers and sizes to 16, and let masks end at"
        " multiples of the vector",
    ),
    Rule(
        r"is narrow: a thread \w+ (\d+) bytes at a time",
        lambda m: 4 / max(int(m[1]), 1),
        "align pointers and strides to 16 bytes, and compare masks with sizes that are multiples of 16",
    ),
    Rule(
        r"the loop is not pipelined: num_stages is 1",
        lambda m: 1.6,
        "num_stages=3 has the next loads wait in shared memory",
    ),
    Rule(
        r"the (?:loop|load) is not pipelined",
        lambda m: 1.5,
        "loads that feed a dot and whose addresses do not depend on other loads of the iteration are pipelined;"
        " tl.range(..., num_stages=N) pipelines all",
    ),
    Rule(
        r"goes through shared memory in every iteration",
        lambda m: 1.3,
        "move the conversion out of the loop: what is computed from a dot and then reduced or broadcast keeps its"
        " layout",
    ),
    Rule(r"is transposed", lambda m: 1.2, "store that operand with K contiguous"),
    Rule(r"this (?:load|store) is done one element at a time", lambda m: 4.0, CONTIGUOUS),
    Rule(
        r"this (?:is computed|reduction takes) one element",
        lambda m: 3.0,
        "take it out of the tile's other work: what is in the same nest has no vectors either",
    ),
    Rule(
        r"vectors have (\d+) elements here, and a register of \d+ bits holds (\d+)",
        lambda m: min(int(m[2]) / int(m[1]), 4.0) * 0.45,
        "make that dimension of the tile longer",
    ),
    Rule(r"the limit of this (?:loop|kernel) is", lambda m: 1.0),
)
SHARE = re.compile(r"(\d+)% of the limit")
LIMITS = {
    "DRAM": "it moves as few bytes as it can only if each is loaded once: fuse kernels, use narrower types",
    "L2": "larger tiles load each operand fewer times",
    "shared memory": "larger tiles in N, or operands from registers, read shared memory fewer times",
    "tensor cores": "this is the good limit: only a narrower type is faster",
    "MUFU": "fewer exponentials and divisions: tl.exp2 of scaled values, one reciprocal instead of divisions",
    "issue slots": "less arithmetic for each element, 16-bit types, more elements for each thread",
}


def remark_finding(case: Case, remark: Remark) -> Finding | None:
    """A remark as a finding; those that no rule knows are kept, with little weight."""
    rule, match = next(
        ((rule, match) for rule in RULES if (match := re.search(rule.pattern, remark.text)) is not None), (None, None)
    )
    weight = rule.weight(match) if rule is not None and match is not None else 0.5
    help = rule.help_for(case.target) if rule is not None else ""
    if (limit := re.search(r"the limit of this \w+ is ([\w ]+):", remark.text)) is not None:
        share = SHARE.search(" ".join(remark.notes))
        weight = max(1.0, 100 / max(int(share[1]), 1)) if share is not None else 1.0
        help = LIMITS.get(limit[1], "")
    spans = user_spans(remark)
    span, callers = spans[0] if spans else None, tuple(spans[1:])
    shown = {"span": span, "callers": callers, "notes": remark.notes}
    return case.finding(remark.text, weight, help=help, facts={"op": remark.op}, **shown)


def user_spans(remark: Remark) -> list[Span]:
    """The source lines of a remark, those in the user's files if there are any."""
    spans = [span_at(*position) for position in source_positions(remark.location)]
    return [span for span in spans if not span.file.startswith(LIBRARY)] or spans


# ---- registers, shared memory, occupancy


FEW_WARPS = 8  # on a multiprocessor: waits for memory cannot be hidden behind each other


def resource_findings(case: Case, made: Compilation) -> Iterator[Finding]:
    """Spills, and the resource that limits the blocks of a multiprocessor."""
    used, facts, limits, num_warps = made.resources, made.facts, made.limits, made.options.num_warps
    registers = used.get("registers")
    stores = used.get("spill_stores", 4 * (facts.get("n_spills") or 0))
    own = {"registers": registers, "spilled_bytes": stores, "shared": facts.get("shared")}
    if stores:
        yield case.finding(
            f"registers are spilled: {stores} bytes go to memory and back, a thread has {registers} registers",
            min(6.0, 2.0 + stores / 64),
            help="smaller blocks, more num_warps, or fewer values alive over the loop; a smaller maxnreg makes it"
            " worse",
            facts=own,
        )
    if not limits:
        return
    blocks, limit, warps = limits["blocks"], limits["by"], limits["blocks"] * num_warps
    if blocks == 0:
        title, weight = f"a block does not fit on a multiprocessor, for its {limit}", 100.0
    else:
        occupancy = f"{counted(blocks, 'block')} of {counted(num_warps, 'warp')} on a multiprocessor"
        title, weight = f"{occupancy}, limited by its {limit}", 1.4 if warps < FEW_WARPS else 0.9
    note = f"{registers or 'unknown'} registers per thread, {facts.get('shared', 0)} bytes of shared memory per block"
    own |= {"blocks": blocks, "limit": limit, "warps": warps}
    help = OCCUPANCY.get(limit, "") if weight > 1 else ""
    yield case.finding(title, weight, notes=(note,), help=help, facts=own)


OCCUPANCY = {
    "shared memory": "fewer num_stages, or smaller blocks",
    "registers": "smaller blocks, or more num_warps for the same block",
    "threads": "num_warps as large as it is leaves no room for a second block",
}


# ---- what the emulator counted


def counted_findings(case: Case) -> Iterator[Finding]:
    """Bank conflicts and accesses that are not coalesced, as a launch of the kernel did them."""
    if (why := case.counted.get("why")) is not None:
        yield case.finding(f"the emulator counted nothing: {why.splitlines()[0] if why else 'it ended early'}", 0.3)
    for line in case.counted.get("lines", ()):
        span = span_at(line["file"], line["line"], 0)
        column = len(span.text) - len(span.text.lstrip())
        span = Span(span.file, span.line, column, len(span.text), span.text)
        for text, weight, help in slow_counts(line):
            yield case.finding(text, weight, how=", emulated", span=span, help=help, facts=line)


def slow_counts(line: Mapping[str, Any]) -> Iterator[tuple[str, float, str]]:
    """(what, how many times what would be needed, what to try) of one line."""
    best = line["wavefronts"] - line["conflicts"]
    if line["wavefronts"] >= 2 * max(best, 1) and line["wavefronts"] > 32:
        yield (
            f"{line['conflicts']} of {line['wavefronts']} wavefronts of shared memory are bank conflicts",
            line["wavefronts"] / max(best, 1),
            "another order of the axes of the reduction, transpose or gather; a tile whose rows are no multiple of 128"
            " bytes",
        )
    if line["tile_sectors"] >= 2 * line["least_sectors"] and line["tile_sectors"] > 32:
        yield (
            f"accesses are not coalesced: {line['tile_sectors']} sectors of memory are touched,"
            f" {line['least_sectors']} would hold what threads want",
            line["tile_sectors"] / max(line["least_sectors"], 1),
            CONTIGUOUS,
        )


def strided_findings(fn: Any, values: Sequence[Any]) -> list[Finding]:
    """Arrays of a launch whose strides the kernel does not know: more likely wrong than slow."""
    span = span_at(fn.where.file, fn.def_line, fn.where.indent)
    return [
        Finding(
            fn.__name__,
            one.message,
            span if span.text else None,
            help=HELP_STRIDED,
            weight=0.8,
            facts={"argument": one.name, "shape": one.shape, "strides": one.strides},
        )
        for one in strided_arguments(zip(fn.arg_names, values, strict=False))
    ]


WORTH_SHARING = 1 << 20  # bytes that take about 0.1 ms; waking threads for less gains nothing
CACHE = 1 << 20  # bytes of the second cache of a core, on most machines


def grid_findings(case: Case, made: Compilation) -> Iterator[Finding]:
    """The grid against the cores, and the scratch memory of a program against their caches."""
    threads = thread_count()
    is_worth_it = case.bytes >= WORTH_SHARING and FORK_SYMBOL not in made.texts.get("llir", "")
    if case.grid is not None and 0 < prod(case.grid) < threads and is_worth_it:
        programs = prod(case.grid)
        yield Finding(
            kernel=case.kernel,
            title=f"the grid has {counted(programs, 'program')} for {threads} threads, and no loop of it is long enough"
            " to be shared",
            help="smaller blocks, or another axis of the grid: one program is one unit of work, on one core",
            severity="slow",
            weight=min(threads / programs, 4.0),
            facts={"target": "cpu", "grid": case.grid, "threads": threads},
        )
    arena = made.facts.get("interface", {}).get("arena", 0)
    if arena > CACHE:
        yield Finding(
            kernel=case.kernel,
            title=f"the tiles of a program take {arena / 1e6:.1f} MB of scratch memory, more than the caches of a core",
            help="smaller blocks: a tile that is used once needs no memory, one that is used twice does",
            severity="slow",
            weight=1.5,
            facts={"target": "cpu", "arena": arena},
        )


def parts_of_kernel(kernel: Any) -> KeyParts | None:
    """The parts of the cache key of a compiled kernel."""
    metadata = kernel.metadata._asdict()
    if (own := metadata.get("key_parts")) is not None:
        return stored_parts(own, {**metadata, "target": str(kernel.metadata.target)})
    backend = find_backend(kernel.metadata.target)
    known = {one.name: metadata[one.name] for one in fields(backend.parse_options({})) if one.name in metadata}
    return parts_of(kernel.src, kernel.metadata.target, backend, backend.parse_options(known), {})


def cases_of_kernel(kernel: Any, targets: Sequence[GPUTarget] = ()) -> Iterator[Case | Finding]:
    """A compiled kernel on its own target, or on others; a finding for those that it cannot be compiled for."""
    parts = parts_of_kernel(kernel)
    text = parts.text() if parts is not None else kernel.name
    yield from (case_of(request, text) for request in requests_of(kernel, targets))


def case_of(request: Request, text: str = "") -> Case | Finding:
    name, target, settings, launch = request.source.name, request.target, request.settings, request.launch
    grid, size = (launch.grid, launch.bytes) if launch is not None else (None, 0)
    try:
        return Case(name, request.module(), target, settings, grid, text=text, bytes=size)
    except (CompilationError, ValueError) as error:
        return refused(name, target, error)


# ---- from records


def recorded_cases(records: Sequence[Record]) -> tuple[list[Case], list[Finding]]:
    """One specialisation of each kernel: the one that its autotuner chose, or the last that was launched."""
    from tilework.ir.parser import parse_module  # with the compiler

    cases: list[Case] = []
    failures: list[Finding] = []
    rows = [record for record in records if record["event"] == "compiled" and "parts" in record]
    launches = {record["key"]: record for record in records if record["event"] == "launch"}
    for record in launches.values():
        failures += [Finding.from_json(found) for found in record.get("strided", ())]
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        chosen = best_of(own, launches, [record for record in records if record["event"] == "tuned"])
        name = kernel.rpartition(".")[2]
        launch = launches.get(chosen["key"], {})
        modules = (record for record in records if record["event"] == "module" and record["key"] == chosen["key"])
        for made in {record["target"]: record for record in modules}.values():  # several processes may have it
            target = GPUTarget.parse(made["target"])
            if made.get("failure"):
                failures.append(refused(name, target, made["failure"]))
                continue
            module = parse_module(Path(made["path"]).read_text(encoding="utf-8"), made["path"])
            grid = tuple(launch["grid"]) if "grid" in launch else None
            text = KeyParts.from_json(chosen["parts"]).text()
            counts = launch.get("counted", {}).get(made["target"], {})
            settings = {name: frozen(value) for name, value in made["settings"].items()}
            cases.append(Case(name, module, target, settings, grid, counts, text, launch.get("bytes", 0)))
    return cases, list({finding.title: finding for finding in failures}.values())


def best_of(own: Sequence[Record], launches: Mapping[str, Record], tunings: Sequence[Record]) -> Record:
    """Return the specialisation to explain."""
    for tuning in reversed([tuning for tuning in tunings if tuning["kernel"] == own[0]["kernel"]]):
        for row in reversed(own):
            arguments, others = row["parts"]["arguments"], row["parts"]["others"]
            if all(
                text in (arguments.get(name, {}).get("constant"), others.get(f"option {name}"))
                for name, text in tuning["settings"].items()
            ):
                return row
    launched = [row for row in own if row["key"] in launches]
    counted = [row for row in launched if launches[row["key"]].get("counted")]
    return (counted or launched or own)[-1]
