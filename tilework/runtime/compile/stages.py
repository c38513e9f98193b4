"""The stages of a compilation: those that are left for a source, the output of each, and the files that replace or show
it.

>>> lower(source, GPUTarget("cuda", 90, 32), ["ttir", "ptx"], num_warps=8)["ptx"]
"""

import json
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import StageError, did_you_mean
from tilework.language.dependencies import deeply
from tilework.process import triton_version
from tilework.runtime.compile.compiled import Timer, microseconds
from tilework.runtime.compile.sources import ASTSource, IRSource, frontend_options
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.key import changes_stages, source_parts
from tilework.runtime.progress import LongStep
from tilework.targets.base import IR_STAGES, TEXT_STAGES, Backend, GPUTarget, find_backend
from tilework.targets.llvm.apart import open_ahead
from tilework.targets.options import CompileOptions
from tilework.version import __version__

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    Output = ModuleOp | str | bytes  # the output of a stage

CALLS_PER_REGION = 3  # a region counts as so many levels of a syntax tree
# limits of the device, if a compilation is to fail as soon as a stage shows that the device cannot run the kernel
device_limits: ContextVar[Mapping[str, int] | None] = ContextVar("device_limits", default=None)


def lower(
    source: ASTSource | IRSource,
    target: GPUTarget,
    stages: Sequence[str] = ("ttir",),
    *,
    _missing: dict[str, StageError] | None = None,
    **settings: object,
) -> dict[str, Any]:
    """Return the output of each stage in `stages`, as text or bytes, without using a cache.

    Example:
        from tilework.compiler import ASTSource, GPUTarget, lower

        @tilework.jit
        def kernel(out):
            tl.store(out, tl.program_id(0))

        source = ASTSource(kernel, {"out": "*i32"})
        stages = lower(source, GPUTarget("cuda", 90, 32), ["ttir", "ptx"], num_warps=8)
        assert "tt.get_program_id x" in stages["ttir"] and "%ctaid.x" in stages["ptx"]
    """
    backend = find_backend(target)
    options = backend.parse_options({**source.parse_options(), **settings})
    available = backend.stages(options)
    shown = {view: stage for view, (stage, _) in backend.views.items() if stage in available}
    for name in stages:
        if name not in available and name not in shown:
            known = [*available, *shown]
            guess = did_you_mean(name, known)
            raise ValueError(
                f"target {target} has no stage {name!r}{guess}{' It' if guess else '; it'} has {', '.join(known)}"
            )
    wanted = {shown.get(name, name) for name in stages}
    remaining = remaining_stages(source, backend, options)
    if past := [name for name in stages if shown.get(name, name) not in remaining]:
        raise ValueError(f"{source.name}.{source.ext} is past the stage {past[0]!r}")
    output = source.stage_input(frontend_options(target, options))
    outputs: dict[str, Any] = {}
    failure: StageError | None = None
    for name, stage in remaining.items():
        try:
            output = nested(output, stage)
        except StageError as error:
            if _missing is None:
                raise
            failure = error
            break
        if name in wanted:
            data = nested(output, stage_data)
            outputs[name] = data if name not in (*IR_STAGES, *TEXT_STAGES) else data.decode()
        if len(outputs) == len(wanted):
            break
    for name in stages:
        try:
            if name not in outputs and failure is not None and shown.get(name, name) not in outputs:
                raise failure
            outputs[name] = outputs[name] if name in outputs else shown_by(backend, name, outputs, options)
        except StageError as error:
            if _missing is None:
                raise
            _missing[name] = error
    return {name: outputs[name] for name in stages if name in outputs}


def estimated(
    source: ASTSource,
    target: GPUTarget,
    settings: Mapping[str, object],
    arguments: Mapping[str, int],
    grid: tuple[int, ...],
    memory: int,
) -> float | None:
    """Return the milliseconds that the cost model estimates for a launch; None where there is no model.

    `arguments` are its integer arguments by name, and `memory` is the size of its arrays in bytes. DoesNotFit is raised
    if the limits of the device are known and it cannot run the kernel.
    """
    from tilework.analysis.launch_cost import launch_cost  # lazily: few programs estimate

    backend = find_backend(target)
    options = backend.parse_options({**source.parse_options(), **settings})
    output: Any = source.module(frontend_options(target, options))
    for name, stage in remaining_stages(source, backend, options).items():
        output = nested(output, stage)
        if name == "ttgir":
            break
    if (limits := device_limits.get()) is not None:
        backend.check_fit("ttgir", output, options, limits)
    found = launch_cost(output, by_index(source, arguments), grid, memory)
    return None if found is None else found.estimate


def by_index(source: ASTSource, arguments: Mapping[str, int]) -> dict[int, int]:
    """Return arguments by their index in the compiled kernel, up to the first that it takes as several parameters."""
    passed = [(name, kind) for name, kind in source.signature.items() if kind != "constexpr"]
    plain = takewhile(lambda one: isinstance(one[1], str) and not one[1].startswith("tensordesc"), passed)
    return {index: arguments[name] for index, (name, _) in enumerate(plain) if name in arguments}


def shown_by(backend: Backend, view: str, outputs: Mapping[str, object], options: CompileOptions) -> str:
    """Return a text that shows the output of a stage."""
    stage, show = backend.views[view]
    return show(outputs[stage], {**asdict(options), "target": backend.target})


def remaining_stages(source: ASTSource | IRSource, backend: Backend, options: CompileOptions) -> dict[str, Any]:
    """Return the stages that a source still needs. The stage of an IR file only reads the file; the first stage runs,
    because TTIR may be unoptimised."""
    stages = backend.separate_stages(options) if changes_stages() else backend.stages(options)
    names = list(stages)
    if source.ext not in stages:
        raise ValueError(f"target {backend.target} has no stage {source.ext!r}; it has {', '.join(names)}")
    first = names.index(source.ext)
    own = stages[names[0]] if first == 0 else entry_of(backend, options, source.ext)
    return {source.ext: own, **{name: stages[name] for name in names[first + 1 :]}}


def entry_of(backend: Backend, options: CompileOptions, stage: str) -> Any:
    """Return the backend's function that reads a file of the user's as the output of a stage."""
    return backend.entering(options).get(stage, lambda output: output)


def nested(output: "Output", run: Callable[[Any], object]) -> Any:
    """Return ``run(output)``, which recurses through nested regions: a chain of `elif` nests as deeply."""
    levels, level = 0, [] if isinstance(output, str | bytes) else [output]
    while level:
        inside = (block for op in level for region in op.regions for block in region.blocks)
        levels, level = levels + 1, [op for block in inside for op in block.ops if op.regions]
    return deeply(CALLS_PER_REGION * levels, lambda: run(output))


def stage_data(output: "Output") -> bytes:
    """Return the content of a stage's file; modules have line tables unless the user disabled them."""
    if isinstance(output, bytes):
        return output
    if isinstance(output, str):
        return output.encode()
    from tilework.ir.printer import print_module  # lazily: the compiler loads when something is compiled

    return print_module(output, debuginfo=not knobs.compilation.disable_line_info).encode()


def read_output(stage: str, data: bytes, path: str) -> "Output":
    """The inverse of `stage_data`."""
    if stage in IR_STAGES:
        from tilework.ir.parser import parse_module  # lazily: the compiler loads when something is compiled

        return parse_module(data.decode(), path)
    return data.decode() if stage in TEXT_STAGES else data


def build(
    source: ASTSource | IRSource,
    target: GPUTarget,
    backend: Backend,
    options: CompileOptions,
    given: Collection[str],
    environment: Mapping[str, str],
    key: str,
    timer: Timer,
) -> dict[str, bytes]:
    """Run the stages, and return the files of the cache entry. `given` are the options that the user named."""
    start = time.perf_counter()
    if isinstance(source, ASTSource) and source.fn.fn is None:
        from tilework.runtime.workers.sent_kernel import found_again  # lazily: few kernels come without their function

        source = copy(source)
        source.fn = found_again(source.fn)
    stages = remaining_stages(source, backend, options)
    if "llir" in stages:
        open_ahead()
    facts: dict[str, Any] = {}
    if (inspect := knobs.runtime.add_stages_inspection_hook) is not None:
        stages = backend.inspected(inspect, stages, options, facts)
    output = source.stage_input(frontend_options(target, options))
    name = cache.file_stem(source.name)
    files = {f"{name}.source": nested(output, stage_data)}
    facts["name"] = source.name if isinstance(output, str) else kernel_symbol(output)
    overrides = Overrides(source, name, options, stages, backend)
    binary = backend.binary_after(overrides.last or source.ext, options)
    binary = binary if binary in stages else list(stages)[-1]
    timer.ir_initialization += microseconds(start)
    with LongStep(f"compiling {source.name}", len(stages)) as progress:
        for stage, run in stages.items():
            progress.step(stage)
            start = time.perf_counter()
            file = overrides.output(stage)
            output = nested(output, run) if file is None else entry_of(backend, options, stage)(file)
            if (limits := device_limits.get()) is not None:
                backend.check_fit(stage, output, options, limits)
            is_located = isinstance(source, IRSource) and source.ext == stage  # in the user's own file
            if stage == knobs.compilation.use_ir_loc and stage in IR_STAGES and not is_located:
                output = located_in_file(output, stage, name, key)
            data = nested(output, stage_data)
            facts |= backend.kernel_facts(stage, output, facts["name"], options, given)
            timer.lowering_stages.append((stage, microseconds(start)))
            overrides.dump(stage, data)
            if not knobs.compilation.store_binary_only or stage == binary:
                files[f"{name}.{stage}"] = data
            if stage == binary:
                break
    if knobs.compilation.store_binary_only:
        del files[f"{name}.source"]
    metadata = {
        **asdict(options),
        "hash": key,
        "target": asdict(target),
        "shared": 0,
        "tmem_size": 0,
        "global_scratch_size": 0,
        "global_scratch_align": 1,
        "profile_scratch_size": 0,
        "profile_scratch_align": 1,
        "tensordesc_meta": [],
        "triton_version": triton_version.selected(),
        "tilework_version": __version__,
        "binary_ext": binary,
        **facts,
        **environment,
    }
    if isinstance(source, ASTSource):
        metadata["key_parts"] = source_parts(source, backend)
        metadata["locations"] = source.locations()
    if "rectangles" in facts or facts.get("interface", {}).get(
        "apart"
    ):  # to compile the kernel again the options as given are needed, not as resolved
        metadata["requested_options"] = asdict(options)
    files[f"{name}.json"] = json.dumps(metadata, default=str).encode()
    return files


def located_in_file(module: "ModuleOp", stage: str, name: str, key: str) -> "ModuleOp":
    """Return the module with locations in its own file of the cache, for USE_IR_LOC."""
    from tilework.ir.parser import snapshot_locations  # lazily: the compiler loads when something is compiled

    return snapshot_locations(module, str(Path(knobs.cache.dir, cache.folder_of(key), f"{name}.{stage}")))


def kernel_symbol(module: Any) -> str:
    """Return the name of the public function."""
    return next(
        op.properties["sym_name"].data
        for op in module.ops
        if op.name == "tt.func" and op.properties.get("sym_visibility", None) is not None
        and op.properties["sym_visibility"].data == "public"
    )  # fmt: skip


class Overrides:
    """Stage files that the user reads (`TRITON_KERNEL_DUMP`) or replaces (`TRITON_KERNEL_OVERRIDE`, `ir_override`)."""

    def __init__(
        self,
        source: ASTSource | IRSource,
        name: str,
        options: CompileOptions,
        stages: Mapping[str, object],
        backend: Backend,
    ) -> None:
        self.name, self.backend, self.options = name, backend, options
        self.stages = list(stages)
        wanted = knobs.compilation.dump_ir or knobs.compilation.override
        source_hash = source.hash() if wanted else ""
        self.dumper = cache.get_dump_manager(source_hash) if knobs.compilation.dump_ir else None
        self.files: dict[str, str] = {}
        if knobs.compilation.override:
            manager = cache.get_override_manager(source_hash)
            self.files = {stage: path for stage in stages if (path := manager.get_file(f"{name}.{stage}")) is not None}
        self.announced = set(self.files)
        stage = str(options.ir_override or "").rpartition(".")[2]
        if stage in stages:
            self.files[stage] = str(options.ir_override)
            self.announced.discard(stage)

    @property
    def last(self) -> str | None:
        """The last stage that a file replaces."""
        return next((stage for stage in reversed(self.stages) if stage in self.files), None)

    def output(self, stage: str) -> Any:
        """Return the content of the user's file for this stage; None if there is none."""
        path = self.files.get(stage)
        if path is None:
            return None
        if stage in self.announced:
            print(f"\nOverriding kernel with file {path}")
        return read_output(stage, Path(path).read_bytes(), path)

    def dump(self, stage: str, data: bytes) -> None:
        """Write the output to the dump folder, with the texts that show it if their tools are installed."""
        if self.dumper is None:
            return
        self.dumper.put(data, f"{self.name}.{stage}")
        for view in (view for view, (shown, _) in self.backend.views.items() if shown == stage):
            try:
                text = shown_by(self.backend, view, {stage: data}, self.options)
                self.dumper.put(text.encode(), f"{self.name}.{view}")
            except StageError as error:
                warnings.warn(f"TRITON_KERNEL_DUMP wrote no {view} of {self.name}: {error}", stacklevel=2)
