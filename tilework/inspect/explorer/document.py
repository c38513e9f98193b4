"""The data of a page: the compilations of some kernels, and the tables that they share.

    document = build([request])
    write(document, Path("kernel.html"))         a page; Path("kernel.json"): only the data
    read(Path("kernel.html")) == document
    [stage["name"] for stage in document["kernels"][0]["stages"]]       ['ttir', 'ttgir', 'llir', 'ptx', 'sass']

Layouts are stored as the bases of linear layouts, by types without aliases, because passes name aliases in order of
appearance (`spelled_out`). Tiles whose sizes are no powers of two are padded first: `seen` lists the original sizes of
a padded one.

`kernel.explore()` writes a page about compiled kernels, from a program or a notebook.

    add[grid](x, y, out, n, BLOCK=1024)
    add.explore()                                      # every version of `add` that was compiled
    add.explore(x, y, out, n, BLOCK=1024, grid=(4,))   # launched with these arguments, with counters by line
    add.explore(target="cuda:90", output="add.html", open=False)

    with watching() as seen:                           # the kernels that a program compiles and launches
        softmax[grid](out, x, n, BLOCK=1024)
    build(seen.requests())

Each compiled kernel counts once, with copies of the arguments of its first launch, for the emulator.
"""

import json
import re
import tempfile
import webbrowser
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xdsl.utils.exceptions import ParseError

from tilework import knobs
from tilework.errors import LIBRARY, TritonError
from tilework.inspect.compilation import (  # limits_of, resources_of, small_source
    Compilation,
    Request,
    compiled,
    request_for,
    requests_of,
    target_of,
    warm_up,
)
from tilework.inspect.findings import counted, listed
from tilework.inspect.page import data_of, page
from tilework.inspect.replay import Launch, count
from tilework.inspect.source_lines import Located, Tables, closing, is_library, located, parts_of
from tilework.ir.encodings import encoding_attr, encoding_of, shared_of
from tilework.ir.locations import source_positions
from tilework.ir.parser import IRParser
from tilework.ir.types import Shape, bit_width, shape_of
from tilework.layouts.banks import access_table
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear
from tilework.process.events import LISTENERS
from tilework.runtime.tuning.heuristics import jit_function
from tilework.targets.base import IR_STAGES, GPUTarget
from tilework.targets.nvidia.cubin import SLOW
from tilework.targets.observe import PassRun, Recording
from tilework.transforms.tt.pad_tiles import padded_shape
from tilework.version import __version__

FORMAT, VERSION = "tilework-explorer", 2


class NotExplored(TritonError):
    """There is nothing to show, or a file is no page; shown without a traceback."""


def build(requests: Sequence[Request], measures: bool = False) -> dict[str, Any]:
    """The data of a page with these kernels; `measures` the limits of this machine if they are unknown and needed."""
    tables = Tables()
    kernels = [collect(request, tables, measures) for request in requests]
    files = files_of(tables)
    return {
        "format": FORMAT,
        "version": VERSION,
        "tilework": __version__,
        "kernels": kernels,
        "files": files,
        **tables.data(),
    }


def files_of(tables: Tables) -> list[dict[str, Any]]:
    """The files of all locations, with the functions around them."""
    used: dict[int, set[int]] = {}
    for lines in tables.locations:
        for file, line in lines:
            used.setdefault(file, set()).add(line)
    names = list(tables.files)
    labels = short_names(names)
    return [
        {
            "path": path,
            "label": labels[index],
            "library": is_library(path),
            "parts": [
                {"name": part.name, "first": part.first, "lines": [tables.strings[line] for line in part.lines]}
                for part in parts_of(path, used.get(index, ()))
            ],
        }
        for index, path in enumerate(names)
    ]


def short_names(paths: Sequence[str]) -> list[str]:
    """The shortest suffixes of paths that are all different."""
    for depth in range(1, 1 + max((len(Path(path).parts) for path in paths), default=0)):
        labels = ["/".join(Path(path).parts[-depth:]) for path in paths]
        if len(set(labels)) == len(set(paths)):
            return labels
    return list(paths)


def write(document: dict[str, Any], path: Path) -> None:
    """Save a page, or its data if the name ends with .json."""
    text = json.dumps(document, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if path.suffix == ".json" else page(text, title_of(document["kernels"])), encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """The data of a page, or of a .json file, that was saved."""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text if path.suffix == ".json" else data_of(text))
    except (OSError, ValueError, zlib.error) as error:
        raise NotExplored(f"{path} is no page of `tilework explore`: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NotExplored(f"{path} is no page of `tilework explore`")
    if document["version"] != VERSION:
        raise NotExplored(f"{path} has version {document['version']} of the format; this is version {VERSION}")
    return document


def title_of(kernels: Iterable[dict[str, Any]]) -> str:
    return listed(list(dict.fromkeys(kernel["name"] for kernel in kernels)), 3)


def file_name(requests: Sequence[Request]) -> str:
    """A name for the page of some kernels."""
    return re.sub(r"[^\w.-]+", "_", requests[0].source.name)[:60] + ".html"


TITLES = {
    "ttir": "TTIR", "ttgir": "TTGIR", "ttcir": "TTCIR", "llir": "LLVM", "ptx": "PTX", "amdgcn": "AMDGCN",
    "asm": "assembly", "sass": "SASS",
}  # fmt: skip
SHOWN_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion", "debug", "sanitize", "auto_tma")


def collect(request: Request, tables: Tables, measures: bool = False) -> dict[str, Any]:
    """The entry of a page for one kernel; CompilationError if its Python does not compile."""
    warm_up(request)
    made = compiled(request)
    seen, limits = made.seen, dict(made.limits)
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
    if request.target.backend == "cpu":
        from tilework.inspect import host_counts  # lazily: with the evaluator

        counters = host_counts.host_counts(request, made)
        limits = host_counts.host_limits(request, made, counters, measures)
        metrics = [*host_counts.host_metrics(limits), *metrics_of(made)]
    else:
        counters = count(request.source, request.target, request.settings, request.launch)
        metrics = metrics_of(made)
    if "codes" in limits:
        limits["codes"] = [{**code, "location": tables.locations_id(code["location"])} for code in limits["codes"]]
    if "lines" in counters:
        counters["lines"] = [[tables.locations_id([(*line, 0)]), counts] for line, counts in counters["lines"]]
    return {
        **identity(request, made),
        "stages": stages,
        "notes": made.notes,
        "runs": [run_data(run, lines, tables) for run, lines in zip(seen.runs, runs, strict=True)],
        "layouts": layouts_of([[text for text, _ in lines] for lines in laid_out], sizes_in(before_padding(seen))),
        "times": [[TITLES.get(stage, stage), milliseconds(seconds)] for stage, seconds in made.times.items()],
        "metrics": metrics,
        "limits": limits,
        "remarks": remarks_of(made, tables),
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


def identity(request: Request, made: Compilation) -> dict[str, Any]:
    """The name, target, signature, constants and options of a kernel."""
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


def metrics_of(made: Compilation) -> list[list[Any]]:
    """[name, value, unit or meaning] of everything that can be compared between kernels."""
    facts, options, used, limits = made.facts, made.options, made.resources, made.limits
    is_gpu = options.backend_name != "cpu"
    found: list[list[Any]] = []
    if "registers" in used:
        found.append(["registers", used["registers"], "per thread"])
    if "spill_stores" in used:
        found.append(["spills", used["spill_stores"] + used["spill_loads"], "bytes, stored and loaded"])
    elif is_gpu and facts.get("n_spills") is not None:
        found.append(["scratch", 4 * facts["n_spills"], "bytes of a lane's stack"])
    if is_gpu and facts.get("shared") is not None:
        found.append(["shared memory", facts["shared"], "bytes per block"])
    if limits:
        of = f"of {limits['most_warps']} warps; {counted(limits['blocks'], 'block')}, for {limits['by']}"
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


def remarks_of(made: Compilation, tables: Tables) -> list[dict[str, Any]]:
    """The remarks of passes and of the assembler, each once."""
    found = []
    for remark in made.remarks:
        positions = source_positions(remark.location)
        own = [position for position in positions if not position[0].startswith(LIBRARY)] or positions
        notes, location = list(remark.notes), tables.locations_id(own[:1])
        found.append({"severity": remark.severity, "text": remark.text, "notes": notes, "location": location})
    found += [
        {"severity": "remark", "text": text, "notes": [], "location": 0} for text in SLOW.findall(made.seen.assembler)
    ]
    return found


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)


def texts_of(entry: Mapping[str, Any]) -> Iterator[list[int]]:
    """Yield the texts of an entry that are stored in full, not as edits."""
    yield from (stage["rows"] for stage in entry["stages"])
    yield from (run["rows"] for run in entry["runs"])


TYPE = re.compile(r"(?:!ttg\.memdesc|tensor)<")
ALIAS = re.compile(r"^#(\w+) = (.*)$")
SIZES = re.compile(r"tensor<((?:\d+x)+)")
NAME = re.compile(r"#(\w+)\b(?!\.)")


def aliases_of(lines: Iterable[str]) -> dict[str, str]:
    """Return the layout aliases of a text with their definitions, nested aliases expanded."""
    found: dict[str, str] = {}
    for line in lines:
        if (match := ALIAS.match(line)) is not None:
            found[match[1]] = spelled_out(match[2], found)
    return found


def spelled_out(text: str, aliases: Mapping[str, str]) -> str:
    return NAME.sub(lambda match: aliases.get(match[1], match[0]), text)


def types_in(line: str) -> Iterator[str]:
    """The types with a layout in a line of IR."""
    for match in TYPE.finditer(line):
        end = closing(line, match.end() - 1)
        if end > 0 and "#" in line[match.start() : end]:
            yield line[match.start() : end + 1]


def sizes_in(lines: Iterable[str]) -> list[Shape]:
    """The sizes of all tiles in a text."""
    found = dict.fromkeys(match[1] for line in lines for match in SIZES.finditer(line))
    return [tuple(map(int, sizes.split("x")[:-1])) for sizes in found]


def layouts_of(texts: Iterable[Iterable[str]], sizes: Iterable[Shape] = ()) -> dict[str, dict[str, Any]]:
    """The layouts of all types in some texts, by the type without aliases; `sizes` are those that tiles had before they
    were padded."""
    padded: dict[Shape, list[Shape]] = {}
    for size in sizes:
        padded.setdefault(padded_shape(size), []).append(size)
    found: dict[str, dict[str, Any]] = {}
    for lines in texts:
        lines = list(lines)
        aliases = aliases_of(lines)
        for type in dict.fromkeys(type for line in lines if not line.startswith("#") for type in types_in(line)):
            whole = spelled_out(type, aliases)
            if whole not in found and (data := layout_of(whole)) is not None:
                shape = tuple(data["shape"])
                if (seen := padded.get(shape, [shape])) != [shape]:
                    data["seen"] = [list(size) for size in seen]
                found[whole] = data
    return found


def layout_of(type: str) -> dict[str, Any] | None:
    """Return the data of the picture of a type's layout; None if it has none."""
    try:
        attribute = IRParser(type, "type").parse_attribute()
        encoding = encoding_of(attribute)
        if encoding is None:
            return None
        shape, bits = shape_of(attribute), max(8, bit_width(attribute))
        shape = shape[len(shape) - encoding.rank :]  # the slots of a ring buffer are contiguous
        layout = to_linear(encoding, tuple(shape))
    except (ParseError, LayoutError):
        return None
    is_shared = shared_of(attribute) is not None
    return {
        "encoding": str(encoding_attr(encoding)),
        "shape": [size for _, size in layout.outs],
        "bits": bits,
        "bases": {name: [list(basis) for basis in bases] for name, bases in layout.bases},
        **({"conflicts": access_table(layout, bits)} if is_shared else {}),
    }


def explore_kernel(
    kernel: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    grid: Any,
    target: str | None,
    output: str | Path | None,
    open: bool,
) -> Path:
    """Write the page of a kernel, or of an autotuner or heuristics around one, show it, and return its path."""
    targets = targets_of(target)
    if args or kwargs:
        if grid is None:
            raise TypeError("explore(...) launches the kernel with these arguments: it needs a grid, as grid=(4,)")
        with watching() as seen:
            kernel[grid](*args, **kwargs)
        requests = seen.requests(targets)
    else:
        requests = [
            request
            for entry in getattr(jit_function(kernel), "device_caches", {}).values()
            for compiled in entry[0].values()
            if "metadata" in vars(compiled)  # not one that is still being compiled
            for request in requests_of(compiled, targets)
        ]
    if not requests:
        raise NotExplored(
            f"{getattr(kernel, '__name__', 'the kernel')} has not been compiled: launch it first,"
            " or give explore() its arguments and a grid"
        )
    return show(requests, output, open)


def explore_compiled(kernel: Any, target: str | None, output: str | Path | None, open: bool) -> Path:
    """Write the page of one compiled kernel, show it, and return its path."""
    return show(requests_of(kernel, targets_of(target)), output, open)


def targets_of(text: str | None) -> tuple[GPUTarget, ...]:
    """``cpu,cuda:90``"""
    return tuple(GPUTarget.parse(part.strip()) for part in (text or "").split(",") if part.strip())


def show(requests: Sequence[Request], output: str | Path | None, open: bool) -> Path:
    """Write a page, to a temporary folder if `output` is None, and open it in a browser."""
    path = Path(output) if output else Path(tempfile.mkdtemp(prefix="tilework-explore-"), file_name(requests))
    write(build(requests, measures=True), path)
    if open and path.suffix != ".json":
        webbrowser.open(path.resolve().as_uri())
    return path


@dataclass
class Seen:
    """Kernels by their hash: what they are, how they were first launched, and the moment of the last launch."""

    keeps_arguments: bool = True
    kernels: dict[str, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)
    launches: dict[str, Launch | None] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    moment: int = 0

    def listen(self, what: str, facts: Mapping[str, Any]) -> None:
        """An event of `process/events.py`."""
        if what == "compiled":
            self.add(facts["kernel"])

    def add(self, kernel: Any) -> None:
        self.kernels.setdefault(kernel.hash, (kernel.src, kernel.metadata._asdict()))

    def launched(self, metadata: Any) -> None:
        """Called as `knobs.runtime.launch_enter_hook`."""
        launch = getattr(metadata, "launch", None)
        if launch is None:
            return
        kernel, grid, arguments = launch
        self.moment += 1
        self.last[kernel.hash] = self.moment
        self.add(kernel)
        if kernel.hash not in self.launches and self.keeps_arguments:
            fn = getattr(kernel.src, "fn", None)  # none of a kernel that was compiled from a file of IR
            self.launches[kernel.hash] = Launch.of(fn, arguments, grid).copied()

    def requests(self, targets: tuple[GPUTarget, ...] = (), most: int | None = None) -> list[Request]:
        """Return a request for each kernel, or for each kernel and target; of the `most` kernels that were launched
        last."""
        recent = sorted(self.kernels, key=lambda key: -self.last.get(key, 0))[:most]
        return [
            request_for(source, metadata, target, self.launches.get(key))
            for key, (source, metadata) in self.kernels.items()
            if key in recent
            for target in targets or (target_of(metadata),)
        ]


@contextmanager
def watching(keeps_arguments: bool = True) -> Iterator[Seen]:
    """See the kernels that are compiled and launched inside the `with`."""
    seen = Seen(keeps_arguments)
    LISTENERS.append(seen.listen)
    knobs.runtime.launch_enter_hook.add(seen.launched)
    try:
        yield seen
    finally:
        knobs.runtime.launch_enter_hook.remove(seen.launched)
        LISTENERS.remove(seen.listen)
