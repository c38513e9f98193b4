"""Everything that is known of one compilation: texts, times, passes, remarks, resources, what limits the code.

    made = compiled(Request(ASTSource(kernel, signature, constants), GPUTarget.parse("cuda:90"), {"num_warps": 8}))
    made.texts["ptx"], made.times["ptx"]        the outputs that are text, and the seconds of each stage
    made.seen.runs[0].steps                     every pass with its time and the module behind it
    made.remarks                                remarks of the passes, each once
    made.resources                              {"registers": 40, "spill_stores": 0, ...} as ptxas reports them
    made.limits                                 occupancy, and for each innermost loop the cycles of every resource

The kernel is compiled once more for it, under a recording (`targets/observe.py`); nothing is taken from a cache or
stored there.
"""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tilework.analysis.cost import Cost, concurrent_cost, loop_cost, occupancy
from tilework.errors import CompilationError, StageError, TritonError
from tilework.inspect.replay import Launch
from tilework.ir import tt
from tilework.ir.functions import functions, has_body, is_private
from tilework.ir.locations import source_positions
from tilework.ir.module_facts import find_num_warps, find_target, partition_warps
from tilework.ir.parser import parse_module
from tilework.language import core as tl
from tilework.language.standard import sum as reduced
from tilework.process.forks import cached_property
from tilework.runtime.compile.sources import ASTSource, IRSource, frontend_options
from tilework.runtime.compile.stages import kernel_symbol, remaining_stages, shown_by, stage_data
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.launch.python.specialization import Specialization
from tilework.targets.base import IR_STAGES, TEXT_STAGES, Backend, GPUTarget, find_backend
from tilework.targets.observe import Recording, recording
from tilework.targets.options import CompileOptions
from tilework.transforms.remarks import Remark, listening
from tilework.transforms.ttg.performance_remarks import limited_codes, peak


@dataclass(frozen=True)
class ModuleSource:
    """A TTIR module before any pass as a source; compiling consumes it."""

    name: str
    module: Any
    ext: str = "ttir"

    def stage_input(self, options: Any) -> Any:
        return self.module


@dataclass(frozen=True)
class Request:
    """A source to compile, its target and options; `launch` if a launch of it is known."""

    source: ASTSource | IRSource | ModuleSource
    target: GPUTarget
    settings: Mapping[str, Any] = field(default_factory=dict)
    launch: Launch | None = None

    @classmethod
    def of_call(cls, fn: Any, values: Any, specs: Any, options: Mapping[str, Any], **more: Any) -> "Request":
        """Return the request of a call on the active device, whose arguments are bound."""
        _, _, target, backend, _ = fn.device_caches[driver.cache_key(driver.active)]
        found = Specialization.of(fn, values, specs, {**fn.full_options(options, backend), **more})
        return cls(found.source(), target, found.options)

    @property
    def backend(self) -> Backend:
        return find_backend(self.target)

    @property
    def options(self) -> CompileOptions:
        return self.backend.parse_options(dict(self.settings))

    def module(self) -> Any:
        """Return the module before any pass, as the frontend builds it for the target."""
        source: Any = self.source
        return source.module(frontend_options(self.target, self.options))


@dataclass
class Compilation:
    """The outputs of the stages that ran, their times, and what was recorded on the way."""

    backend: Backend
    options: CompileOptions
    seen: Recording
    texts: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # bytes of outputs that are not text
    times: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # by stage, the reason that there is none
    heard: list[Remark] = field(default_factory=list)

    @property
    def remarks(self) -> list[Remark]:
        """The remarks of all passes, each once."""
        return list(dict.fromkeys((*self.seen.remarks, *self.heard)))

    @cached_property
    def resources(self) -> dict[str, int]:
        """Registers of a thread and bytes that it spills, as far as they are known."""
        found = resources_of(self.seen.assembler)
        if self.facts.get("n_regs") is not None:
            found.setdefault("registers", self.facts["n_regs"])
        return found

    @cached_property
    def limits(self) -> dict[str, Any]:
        """Occupancy and the cost of each innermost loop; {} where a target has no measured rates."""
        if "ttgir" not in self.texts or "llir" not in self.texts:
            return {}
        return limits_of(self.texts["ttgir"], self.resources.get("registers"), self.facts.get("shared"))


WARM: set[str] = set()


def warm_up(request: Request) -> None:
    """Compile a small kernel first: the first compilation for a target imports the compiler, which would distort the
    times."""
    if request.target.backend not in WARM:
        compiled(Request(small_source(), request.target), with_texts=False, with_views=False)
        WARM.add(request.target.backend)


def compiled(
    request: Request, *, with_texts: bool = True, with_views: bool = True, without: Collection[str] = ()
) -> Compilation:
    """Run the stages until one fails or is in `without`; the error of a stage becomes a note, one of the frontend is
    raised.

    `with_texts` keeps the module behind every pass; `with_views` adds what the backend makes for reading, such as SASS.
    """
    source: Any = request.source
    backend, options = request.backend, request.options
    with recording(with_texts) as seen, listening() as heard:
        made = Compilation(backend, options, seen, heard=heard)
        start = time.perf_counter()
        output = source.stage_input(frontend_options(request.target, options))
        made.times["frontend"] = time.perf_counter() - start
        made.facts["name"] = source.name if isinstance(output, str) else kernel_symbol(output)
        outputs: dict[str, Any] = {}
        for name, stage in remaining_stages(source, backend, options).items():
            if name in without:
                break
            start, overhead = time.perf_counter(), seen.overhead
            try:
                output = stage(output)
                made.times[name] = time.perf_counter() - start - (seen.overhead - overhead)
                data = stage_data(output)
                made.facts |= backend.kernel_facts(name, output, made.facts["name"], options, request.settings)
            except CompilationError:
                raise
            except (TritonError, RuntimeError, ValueError) as error:
                made.notes[name] = str(error)
                break
            if name in (*IR_STAGES, *TEXT_STAGES):
                outputs[name] = made.texts[name] = data.decode()
            else:
                outputs[name], made.sizes[name] = data, len(data)
        for view, (stage, _) in backend.views.items() if with_views else ():
            try:
                if stage in outputs:
                    made.texts[view] = shown_by(backend, view, outputs, options)
            except StageError as error:
                made.notes[view] = str(error)
    return made


USED = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def resources_of(log: str) -> dict[str, int]:
    """Registers and spills that ptxas reports for the kernel, which comes last in its log."""
    found: dict[str, int] = {}
    if used := USED.findall(log):
        found["registers"] = int(used[-1])
    if spills := SPILLS.findall(log):
        stack, stores, loads = map(int, spills[-1])
        found |= {"stack": stack, "spill_stores": stores, "spill_loads": loads}
    return found


def limits_of(ttgir: str, registers: int | None, shared: int | None) -> dict[str, Any]:
    """Return the occupancy, and the cost of each innermost loop (or of a kernel without loops), from finished TTGIR."""
    module = parse_module(ttgir)
    kernel = next(op for op in functions(module) if type(op) is tt.FuncOp and has_body(op) and not is_private(op))
    rates = find_target(kernel).rates
    held = occupancy(kernel, registers, shared)
    if rates is None or held is None:
        return {}
    warps = (find_num_warps(kernel) or 1) + partition_warps(kernel)
    codes = []
    for group in limited_codes(kernel):
        costs = [loop_cost(code) for code in group]
        cost = concurrent_cost([one for one in costs if one is not None])
        if cost.bound:
            codes.append({**described(cost, held.blocks), "peak": peak(cost, rates).removeprefix(", ")})
            codes[-1]["location"] = source_positions(group[0].location)[:1]
            codes[-1]["what"] = "kernel" if type(group[0]) is tt.FuncOp else "loop"
    return {
        "blocks": held.blocks,
        "by": held.limit,
        "warps": held.blocks * warps,
        "most_warps": rates.warps,
        "codes": codes,
    }


def described(cost: Cost, blocks: int) -> dict[str, Any]:
    return {
        "limit": cost.limit,
        "bound": cost.bound,
        "estimate": cost.estimate(blocks),
        "cycles": dict(cost.cycles),
    }


@jit
def small(x_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.full((BLOCK, BLOCK), 0, tl.float32)
    for step in range(0, n, BLOCK):
        x = tl.load(x_ptr + rows[:, None] * n + columns[None, :] + step, mask=columns[None, :] + step < n, other=0.0)
        total = tl.dot(x, x, total)
    tl.store(out_ptr + rows, reduced(total, axis=1))


def small_source() -> ASTSource:
    types = {"x_ptr": "*fp16", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return ASTSource(small, types, {"BLOCK": 32})


OWN = frozenset({"arch", "backend_name", "warp_size", "extern_libs", "auto_tma", "ptx_version", "ptx_options"})


def settings_for(options: Mapping[str, Any], compiled: GPUTarget, target: GPUTarget) -> dict[str, Any]:
    """The options that differ from a target's defaults, as far as another target has them, too."""
    usual = find_backend(compiled).parse_options({})
    chosen = {one.name: frozen(options[one.name]) for one in fields(usual) if one.name in options}
    known = {one.name for one in fields(find_backend(target).parse_options({}))}
    return {
        name: value
        for name, value in chosen.items()
        if value != getattr(usual, name) and name in known and (compiled == target or name not in OWN)
    }


def requests_of(compiled: Any, targets: Sequence[GPUTarget]) -> list[Request]:
    """The requests that compile a kernel again: for its own target, or for others."""
    compiled = compiled.result() if hasattr(compiled, "result") else compiled  # it may be compiling in another thread
    metadata = compiled.metadata._asdict()
    return [request_for(compiled.src, metadata, target, None) for target in targets or [target_of(metadata)]]


def target_of(metadata: Mapping[str, Any]) -> GPUTarget:
    target = metadata["target"]
    return GPUTarget(**target) if isinstance(target, Mapping) else target


def request_for(source: Any, metadata: Mapping[str, Any], target: GPUTarget, launch: Launch | None) -> Request:
    """The request for one target, with the options that differ from the defaults of the kernel's own target."""
    compiled = target_of(metadata)
    settings = settings_for(metadata.get("requested_options") or metadata, compiled, target)
    if target != compiled:
        settings = {**find_backend(target).launch_defaults(), **settings}
    return Request(source, target, settings, launch)


def frozen(value: Any) -> Any:
    """Undo JSON's lists: tuples all the way down."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value
