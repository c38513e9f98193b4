"""Everything about one compilation, as data: the texts of all stages with links to the source, passes, layouts, limits, remarks.

    request = Request(ASTSource(kernel, signature, constants), GPUTarget.parse("cuda:90"), {"num_warps": 8})
    entry = collect(request, Tables())
    [stage["name"] for stage in entry["stages"]]         ['ttir', 'ttgir', 'llir', 'ptx', 'sass']

The kernel is compiled once more for it, under a recording (`targets/recording.py`); nothing is taken from a cache or put there.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilework.errors import LIBRARY, CompilationError, StageError, TritonError
from tilework.inspect.explorer.counting import Launch, count
from tilework.inspect.explorer.layout_data import layouts_of, sizes_in
from tilework.inspect.explorer.limits import limits_of, resources_of
from tilework.inspect.explorer.located import Located, located
from tilework.inspect.explorer.small_kernel import small_source
from tilework.inspect.explorer.tables import Tables
from tilework.ir.locations import source_positions
from tilework.runtime.compile.sources import ASTSource, IRSource, frontend_options
from tilework.runtime.compile.stages import kernel_symbol, remaining_stages, shown_by, stage_data
from tilework.targets.base import IR_STAGES, TEXT_STAGES, Backend, GPUTarget, find_backend
from tilework.targets.nvidia.cubin import SLOW
from tilework.targets.options import CompileOptions
from tilework.targets.recording import PassRun, Recording, recording

TITLES = {
    "ttir": "TTIR", "ttgir": "TTGIR", "ttcir": "TTCIR", "llir": "LLVM", "ptx": "PTX", "amdgcn": "AMDGCN", "asm": "assembly", "sass": "SASS",
}  # fmt: skip
SHOWN_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion", "debug", "sanitize", "auto_tma")


@dataclass(frozen=True)
class Request:
    """What to compile: a source, for which target, with which options; `launch` if it is known how it is called."""

    source: ASTSource | IRSource
    target: GPUTarget
    settings: Mapping[str, Any] = field(default_factory=dict)
    launch: Launch | None = None


@dataclass
class Compilation:
    """The products of the stages that could be made, what they cost, and what was said on the way."""

    backend: Backend
    options: CompileOptions
    texts: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # bytes of what is no text
    times: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # by stage, why there is none


def collect(request: Request, tables: Tables) -> dict[str, Any]:
    """The entry of a page for one kernel; CompilationError if its Python does not compile."""
    warm_up(request)
    with recording() as seen:
        made = compiled(request, seen)
    texts = {stage: located(stage, text) for stage, text in made.texts.items()}
    for stage in IR_STAGES:
        tables.learn_callers(texts.get(stage, ()))
    stages = [
        {
            "name": stage,
            "title": TITLES.get(stage, stage),
            "rows": tables.rows(lines if stage in IR_STAGES else tables.with_callers(lines)),
            "ms": milliseconds(made.times.get(stage)),
        }
        for stage, lines in texts.items()
    ]
    runs = [[located("ttir", text) for text in (run.text, *(step.text for step in run.steps))] for run in seen.runs]
    laid_out = [lines for stage, lines in texts.items() if stage in IR_STAGES]
    laid_out += [lines for run in runs for lines in run]
    used = resources_of(seen.assembler)
    shared = made.facts.get("shared")
    is_limited = "ttgir" in made.texts and "llir" in made.texts
    limits = limits_of(made.texts["ttgir"], used.get("registers"), shared) if is_limited else {}
    for code in limits.get("codes", ()):
        code["place"] = tables.place(code["place"])
    counters = count(request.source, request.target, request.settings, request.launch)
    if "lines" in counters:
        counters["lines"] = [[tables.place([(*place, 0)]), numbers] for place, numbers in counters["lines"]]
    return {
        **identity(request, made),
        "stages": stages,
        "notes": made.notes,
        "runs": [run_data(run, lines, tables) for run, lines in zip(seen.runs, runs, strict=True)],
        "layouts": layouts_of([[text for text, _ in lines] for lines in laid_out], sizes_in(before_padding(seen))),
        "times": [[TITLES.get(stage, stage), milliseconds(seconds)] for stage, seconds in made.times.items()],
        "metrics": metrics_of(made, used, limits),
        "limits": limits,
        "remarks": remarks_of(seen, tables),
        "counters": counters,
    }


def before_padding(seen: Recording) -> list[str]:
    """The text in which tiles have the sizes that the user gave them, in lines; none where nothing is padded."""
    for run in seen.runs:
        texts = [run.text, *(step.text for step in run.steps)]
        for text, step in zip(texts, run.steps, strict=False):
            if step.name == "pad-tiles":
                return text.splitlines()
    return []


WARM: set[str] = set()


def warm_up(request: Request) -> None:
    """The first compilation for a target imports the compiler: its times would be those of the imports."""
    if request.target.backend not in WARM:
        compiled(Request(small_source(), request.target), Recording(), shows=False)
        WARM.add(request.target.backend)


def compiled(request: Request, seen: Recording, shows: bool = True) -> Compilation:
    """Run the stages as far as they go; what stops a later one is a note."""
    source, backend = request.source, find_backend(request.target)
    options = backend.parse_options(dict(request.settings))
    made = Compilation(backend, options)
    start = time.perf_counter()
    product = source.product(frontend_options(request.target, options))
    made.times["frontend"] = time.perf_counter() - start
    made.facts["name"] = source.name if isinstance(product, str) else kernel_symbol(product)
    stages = remaining_stages(source, backend, options)
    products: dict[str, Any] = {}
    for name, stage in stages.items():
        start, overhead = time.perf_counter(), seen.overhead
        try:
            product = stage(product)
            made.times[name] = time.perf_counter() - start - (seen.overhead - overhead)
            data = stage_data(product)
            made.facts |= backend.kernel_facts(name, product, made.facts["name"], options, request.settings)
        except CompilationError:
            raise
        except (TritonError, RuntimeError, ValueError) as error:
            made.notes[name] = str(error)
            break
        products[name] = data.decode() if name in (*IR_STAGES, *TEXT_STAGES) else data
        if isinstance(products[name], str):
            made.texts[name] = products[name]
        else:
            made.sizes[name] = len(data)
    for view, (stage, _) in backend.views.items() if shows else ():
        try:
            if stage in products:
                made.texts[view] = shown_by(backend, view, products, options)
        except StageError as error:
            made.notes[view] = str(error)
    return made


def identity(request: Request, made: Compilation) -> dict[str, Any]:
    """Which kernel this is."""
    source = request.source
    signature = {name: str(type) for name, type in getattr(source, "signature", {}).items()}
    names = list(signature)
    constants = {
        names[path[0]] if isinstance(path[0], int) and path[0] < len(names) else str(path): repr(value)
        for path, value in getattr(source, "constants", {}).items()
        if len(path) == 1
    }
    chosen = {name: getattr(made.options, name) for name in SHOWN_OPTIONS}
    return {
        "name": source.name,
        "target": str(request.target),
        "signature": {name: type for name, type in signature.items() if name not in constants},
        "constants": constants,
        "options": {
            name: value if isinstance(value, int | str | None) else str(value) for name, value in chosen.items()
        },
    }


def run_data(run: PassRun, texts: list[list[Located]], tables: Tables) -> dict[str, Any]:
    """Some passes: the text before them, and what each changed."""
    rows = [tables.rows(lines) for lines in texts]
    steps = [
        {"name": step.name, "ms": milliseconds(step.seconds), "edits": tables.edits(before, after)}
        for step, before, after in zip(run.steps, rows, rows[1:], strict=False)
    ]
    return {"tag": run.tag, "rows": rows[0], "steps": steps}


def metrics_of(made: Compilation, used: Mapping[str, int], limits: Mapping[str, Any]) -> list[list[Any]]:
    """[name, value, what it is of or what that means] of what can be compared between kernels."""
    facts, options = made.facts, made.options
    is_gpu = options.backend_name != "cpu"
    found: list[list[Any]] = []
    registers = used.get("registers", facts.get("n_regs"))
    if registers is not None:
        found.append(["registers", registers, "per thread"])
    if "spill_stores" in used:
        found.append(["spills", used["spill_stores"] + used["spill_loads"], "bytes, stored and loaded"])
    elif is_gpu and facts.get("n_spills") is not None:
        found.append(["scratch", 4 * facts["n_spills"], "bytes of a lane's stack"])
    if is_gpu and facts.get("shared") is not None:
        found.append(["shared memory", facts["shared"], "bytes per block"])
    if limits:
        of = f"of {limits['most_warps']} warps; {limits['blocks']} block{'s' * (limits['blocks'] != 1)}, for {limits['by']}"
        found.append(["occupancy", limits["warps"], of])
    for code in limits.get("codes", ())[:1]:
        found.append(
            [
                "limit",
                code["limit"],
                f"{code['bound']:.0f} cycles per {'iteration' if code['what'] == 'loop' else 'program'}",
            ]
        )
        found.append(["estimate", round(code["bound"] / code["estimate"] * 100), "% of the limit, by the cost model"])
    arena = (facts.get("interface") or {}).get("arena")
    if arena is not None:
        found.append(["buffers", arena, "bytes per program"])
    for stage, size in made.sizes.items():
        found.append([stage, size, "bytes"])
    found.append(["compile time", milliseconds(sum(made.times.values())), "ms"])
    return found


def remarks_of(seen: Recording, tables: Tables) -> list[dict[str, Any]]:
    """What passes and the assembler said, each once."""
    found = []
    for remark in dict.fromkeys(seen.remarks):
        positions = source_positions(remark.location)
        own = [place for place in positions if not place[0].startswith(LIBRARY)] or positions
        notes, place = list(remark.notes), tables.place(own[:1])
        found.append({"severity": remark.severity, "text": remark.text, "notes": notes, "place": place})
    found += [{"severity": "remark", "text": text, "notes": [], "place": 0} for text in SLOW.findall(seen.assembler)]
    return found


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)


def texts_of(entry: Mapping[str, Any]) -> Iterator[list[int]]:
    """All texts of an entry that are stored as they are."""
    yield from (stage["rows"] for stage in entry["stages"])
    yield from (run["rows"] for run in entry["runs"])
