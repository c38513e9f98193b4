"""Compile a kernel, or an IR file, for a target.

    >>> source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> kernel = compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8})
    >>> print(kernel.asm["ttir"])

`lower` gives the text of chosen stages and leaves caches alone; `compile` keeps everything in the disk cache. The frontend
and the IR are imported where a compilation first needs them: a kernel that is found in the cache needs neither.
"""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import CompilationError, CompileTimeAssertionFailure, StageError, UnsupportedLanguageConstruct
from tilework.frontend.options import FrontendOptions, any_dot_size, cuda_min_dot_size
from tilework.language.constant_text import constant_text
from tilework.language.function import JITFunction
from tilework.runtime.cache import managers as cache
from tilework.runtime.cache.managers import get_cache_key
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.compiled import CompiledKernel, LazyDict, by_stage
from tilework.runtime.launch.specialize import python_number
from tilework.targets.base import Backend, GPUTarget, find_backend
from tilework.targets.options import CompileOptions, capability_of

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "IRSource",
    "LazyDict",
    "UnsupportedLanguageConstruct",
    "compile",
    "get_cache_key",
    "lower",
    "make_backend",
]

IR_STAGES = ("ttir", "ttcir", "ttgir")  # their products are modules
TEXT_STAGES = ("llir", "ptx")  # these are text as it is; all others are bytes
VIEWS = {"sass": "cubin"}  # texts that show the product of a stage


class ASTSource:
    """A kernel with the types of its arguments; parameters that are not in `signature` must be constants.

    `constexprs` maps names or index paths to values, `attrs` index paths to [[attribute, value]]. Triton 3.0's forms are
    accepted too: `constants=` for `constexprs=` and with it types by parameter number, and types in one text
    (``"*fp32,*fp32,i32"``, for the parameters that are no constants).
    """

    ext = "ttir"

    def __init__(
        self,
        fn: JITFunction,
        signature: Mapping[Any, Any] | str,
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[tuple[int, ...], Sequence[Sequence[Any]]] | None = None,
        *,
        constants: Mapping[Any, Any] | None = None,
    ) -> None:
        if isinstance(signature, str):
            signature = named_types(fn, signature, constexprs or constants or {})
        elif constants is not None:
            signature = {fn.arg_names[key] if isinstance(key, int) else key: type for key, type in signature.items()}
        for key in signature:
            if not isinstance(key, str):
                raise TypeError("Signature keys must be string")
        self.fn = fn
        self.name = fn.__name__
        order = {name: index for index, name in enumerate(fn.arg_names)}
        self.signature = dict(sorted(signature.items(), key=lambda item: order.get(item[0], len(order))))
        given = constexprs if constexprs is not None else constants or {}
        self.constants = {
            (order.get(key, key),)
            if isinstance(key, str)
            else key
            if isinstance(key, tuple)
            else (key,): python_number(value)
            for key, value in given.items()
        }
        self.attrs = dict(attrs or {})

    @property
    def constexprs(self) -> dict[Any, Any]:
        """The constants by index path."""
        return self.constants

    def hash(self) -> str:
        """SHA-256 of the function, the types, the constants and the facts."""
        constants = [(path, constant_text(value)) for path, value in sorted(self.constants.items(), key=str)]
        text = f"{self.fn.cache_key}-{self.attrs}-{sorted(self.signature.items(), key=str)}-{constants}"
        return hashlib.sha256(text.encode()).hexdigest()

    def product(self, options: FrontendOptions) -> Any:
        """What the first stage starts from: the module before any pass."""
        return self.module(options)

    def make_ir(self, target: GPUTarget, options: Any, codegen_fns: Any, module_map: Any, context: Any) -> Any:
        """The module before any pass, as `context` shows modules; what the target implies is asked of its backend."""
        return context.adopt(self.module(frontend_options(target, options)))

    def parse_options(self) -> dict[str, Any]:
        """Compile options that the source itself implies."""
        return {}

    def module(self, options: FrontendOptions) -> Any:
        """The module before any pass."""
        from tilework.frontend.generator import compile_to_ttir

        constants = {path: value for path, value in self.constants.items() if isinstance(path[0], int)}
        return compile_to_ttir(self.fn, self.signature, constants, self.attrs, options)


class IRSource:
    """An IR file; its extension says which stage it is the product of. Nothing else is needed to read it."""

    def __init__(self, path: str | Path, context: Any = None, backend: Any = None) -> None:
        self.path = Path(path)
        self.ext = self.path.suffix.lstrip(".")
        if self.ext not in (*IR_STAGES, *TEXT_STAGES):
            raise ValueError(f"{self.path.name}: a source is a .{' or .'.join((*IR_STAGES, *TEXT_STAGES))} file")
        self.text = self.path.read_text()
        self.name = self.path.stem

    def hash(self) -> str:
        """SHA-256 of the text, and of the path if the products name it."""
        where = str(self.path) if knobs.compilation.use_ir_loc else ""
        return hashlib.sha256((self.text + where).encode()).hexdigest()

    def product(self, options: FrontendOptions) -> Any:
        """The product of the stage that the file names."""
        return self.module(options) if self.ext in IR_STAGES else self.text

    def make_ir(self, target: GPUTarget, options: Any, codegen_fns: Any, module_map: Any, context: Any) -> Any:
        """The product of the stage that the file names, a module as `context` shows modules."""
        product = self.product(frontend_options(target, options))
        return context.adopt(product) if self.ext in IR_STAGES else product

    def parse_options(self) -> dict[str, Any]:
        """Compile options that the text implies: TTGIR says for how many warps it is."""
        found = re.search(r'"ttg\.num-warps" = (\d+) : i32', self.text)
        return {} if found is None else {"num_warps": int(found[1])}

    def module(self, options: FrontendOptions) -> Any:
        """The module as it stands in the file; ops without a location, and all with USE_IR_LOC, are located there."""
        from tilework.ir.snapshot import parse_with_places

        return parse_with_places(self.text, str(self.path), only_missing=knobs.compilation.use_ir_loc is None)


def named_types(fn: JITFunction, text: str, constants: Mapping[Any, Any]) -> dict[str, str]:
    """``"*fp32,i32"`` by the names of the parameters that are no constants."""
    fixed = {
        key if isinstance(key, str) else fn.arg_names[key[0] if isinstance(key, tuple) else key] for key in constants
    }
    names = [name for name in fn.arg_names if name not in fixed]
    types = [type.strip() for type in text.split(",")]
    if len(types) != len(names):
        raise TypeError(
            f"{fn.__name__} has {len(names)} parameters that are no constants and is given {len(types)} types: {text}"
        )
    return {**dict(zip(names, types, strict=True)), **dict.fromkeys(sorted(fixed), "constexpr")}


def make_backend(target: GPUTarget) -> Backend:
    """The backend of a target."""
    return find_backend(target)


def frontend_options(target: GPUTarget, options: CompileOptions | Mapping[str, Any]) -> FrontendOptions:
    """What the frontend must know: the compile options it shares, the target, and the knobs."""
    if not isinstance(options, CompileOptions):
        options = find_backend(target).parse_options(options)
    shared = {option.name for option in fields(FrontendOptions)} & {option.name for option in fields(CompileOptions)}
    settings = {name: getattr(options, name) for name in shared}
    target_number = target.arch if isinstance(target.arch, int) else None
    settings |= {
        "arch": capability_of(options.arch) if target.backend == "cuda" and options.arch else target_number,
        "min_dot_size": cuda_min_dot_size if target.backend == "cuda" else any_dot_size,
        "allow_non_constexpr_globals": knobs.compilation.allow_non_constexpr_globals,
        "front_end_debugging": knobs.compilation.front_end_debugging,
        "f32_default": knobs.language.fp32_default,
    }
    return FrontendOptions(**settings)


def lower(
    source: ASTSource | IRSource, target: GPUTarget, stages: Sequence[str] = ("ttir",), **settings: Any
) -> dict[str, Any]:
    """The product of each asked-for stage, text or bytes: `lower(source, target, ["ttir"], num_warps=8)["ttir"]`."""
    backend = find_backend(target)
    options = backend.parse_options(settings)
    available = backend.stages(options)
    offered = [*available, *(view for view, stage in VIEWS.items() if stage in available)]
    for name in stages:
        if name not in offered:
            raise ValueError(f"target {target} has no stage {name!r}; it has {', '.join(offered)}")
    wanted = {VIEWS.get(name, name) for name in stages}
    remaining = remaining_stages(source, backend, options)
    if past := [name for name in stages if VIEWS.get(name, name) not in remaining]:
        raise ValueError(f"{source.name}.{source.ext} is past the stage {past[0]!r}")
    product = source.product(frontend_options(target, options))
    products: dict[str, Any] = {}
    for name, stage in remaining.items():
        product = stage(product)
        if name in wanted:
            data = stage_data(product)
            products[name] = data if name not in (*IR_STAGES, *TEXT_STAGES) else data.decode()
        if len(products) == len(wanted):
            break
    return {name: products[name] if name in products else disassembled(products[VIEWS[name]]) for name in stages}


def remaining_stages(source: ASTSource | IRSource, backend: Backend, options: CompileOptions) -> dict[str, Any]:
    """The stages that are left for a source. A file's own stage is done, except the first: TTIR may be unoptimised."""
    stages = backend.stages(options)
    names = list(stages)
    if source.ext not in stages:
        raise ValueError(f"target {backend.target} has no stage {source.ext!r}; it has {', '.join(names)}")
    first = names.index(source.ext)
    own = stages[names[0]] if first == 0 else entry_of(backend, options, source.ext)
    return {source.ext: own, **{name: stages[name] for name in names[first + 1 :]}}


def entry_of(backend: Backend, options: CompileOptions, stage: str) -> Any:
    """What a backend does with a file that the user brings as the product of a stage."""
    entering = getattr(backend, "entering", None)
    return (entering(options) if entering is not None else {}).get(stage, lambda product: product)


def disassembled(cubin: bytes) -> str:
    """The instructions in a cubin, as text."""
    from tilework.targets.nvidia.sass import disassemble

    return disassemble(cubin)


def stage_data(product: Any) -> bytes:
    """What the file of a stage holds; modules with line tables unless the user turned them off."""
    if isinstance(product, bytes):
        return product
    if isinstance(product, str):
        return product.encode()
    from tilework.ir.printer import print_module

    return print_module(product, debuginfo=not knobs.compilation.disable_line_info).encode()


def read_product(stage: str, data: bytes, path: str) -> Any:
    """The inverse of `stage_data`."""
    if stage in IR_STAGES:
        from tilework.ir.parser import parse_module

        return parse_module(data.decode(), path)
    return data.decode() if stage in TEXT_STAGES else data


def compile(
    src: ASTSource | IRSource | str | Path,
    target: GPUTarget | None = None,
    options: Mapping[str, Any] | None = None,
    _env_vars: Mapping[str, str] | None = None,
) -> CompiledKernel:
    """Compile for `target` (default: the current device), or take the result from the disk cache.

    `_env_vars` are the settings that the key contains, if they were taken earlier than now.
    """
    start = time.perf_counter()
    source = IRSource(src) if isinstance(src, str | Path) else src
    chosen: GPUTarget = target or driver.active.get_current_target()
    backend = find_backend(chosen)
    parsed = backend.parse_options(dict(options or {}))
    if knobs.compilation.enable_asan:
        raise ValueError(f"TRITON_ENABLE_ASAN: the address sanitizer is for AMD GPUs only, and the target is {chosen}")
    environment = knobs.cache_invalidating_env_vars() if _env_vars is None else _env_vars
    key = cache.get_cache_key(source, backend, parsed, environment)
    name = cache.file_stem(source.name)
    files = None if knobs.compilation.always_compile else cache.load_entry(key, name)
    timer = Timer(microseconds(start))
    hit = files is not None
    if files is None:
        given = {name for name, value in (options or {}).items() if value is not None}
        files = build(source, chosen, backend, parsed, given, environment, key, timer)
    if hit:
        paths = cache.entry_paths(key, files)
    else:
        start = time.perf_counter()
        paths = cache.store_entry(key, name, files)
        timer.store_results = microseconds(start)
    kernel = CompiledKernel(source, paths, key, by_stage(files))
    if (listener := knobs.compilation.listener) is not None:
        listener(
            src=source, metadata=kernel.metadata._asdict(), metadata_group=paths, times=timer.times(), cache_hit=hit
        )
    return kernel


@dataclass
class Timer:
    """Microseconds of the parts of one compilation."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]] = field(default_factory=list)
    store_results: int = 0

    def times(self) -> knobs.CompileTimes:
        """What the compilation listener receives."""
        return knobs.CompileTimes(self.ir_initialization, self.lowering_stages, self.store_results)


def microseconds(start: float) -> int:
    """Whole microseconds since `start`, at least one."""
    return max(1, int((time.perf_counter() - start) * 1e6))


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
    """Run the stages; the files of the cache entry. `given` are the options that the user named."""
    start = time.perf_counter()
    stages = remaining_stages(source, backend, options)
    facts: dict[str, Any] = {}
    if (inspect := knobs.runtime.add_stages_inspection_hook) is not None:
        offer = getattr(backend, "offer_stages", None)
        if offer is not None:
            stages = offer(inspect, stages, options, facts)
        else:
            inspect(backend, stages, options, 0, target.arch)
    product = source.product(frontend_options(target, options))
    name = cache.file_stem(source.name)
    files = {f"{name}.source": stage_data(product)}
    facts["name"] = source.name if isinstance(product, str) else kernel_symbol(product)
    overrides = Overrides(source, name, options, stages)
    binary = last_stage(backend, stages, overrides.last or source.ext, options)
    timer.ir_initialization += microseconds(start)
    for stage, run in stages.items():
        start = time.perf_counter()
        file = overrides.product(stage)
        product = run(product) if file is None else entry_of(backend, options, stage)(file)
        is_located = isinstance(source, IRSource) and source.ext == stage  # in the user's own file
        if stage == knobs.compilation.use_ir_loc and stage in IR_STAGES and not is_located:
            product = located_in_file(product, stage, name, key)
        data = stage_data(product)
        if isinstance(product, str):
            facts |= text_facts(backend, stage, product, facts["name"], options, given)
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
        "triton_version": version(),
        "binary_ext": binary,
        **facts,
        **environment,
    }
    files[f"{name}.json"] = json.dumps(metadata, default=str).encode()
    return files


def last_stage(backend: Backend, stages: Mapping[str, Any], entered: str, options: CompileOptions) -> str:
    """The stage at which a compilation for a launch ends, of a kernel that the product of the stage `entered` describes."""
    choose = getattr(backend, "binary_after", None)
    binary = choose(entered, options) if choose is not None else backend.binary_ext
    return binary if binary in stages else list(stages)[-1]


def text_facts(
    backend: Backend, stage: str, text: str, name: str, options: CompileOptions, given: Collection[str]
) -> dict[str, Any]:
    """What a backend reads off the text of a stage for the launcher."""
    facts: dict[str, Any] = {}
    if (metadata := getattr(backend, "metadata", None)) is not None:
        facts |= metadata(stage, text)
    if (kernel_facts := getattr(backend, "kernel_facts", None)) is not None:
        facts |= kernel_facts(stage, text, name, options, given)
    return facts


def located_in_file(module: Any, stage: str, name: str, key: str) -> Any:
    """The module with locations in its own file of the cache, for USE_IR_LOC."""
    from tilework.ir.snapshot import snapshot_locations

    return snapshot_locations(module, str(Path(knobs.cache.dir, cache.folder_of(key), f"{name}.{stage}")))


def kernel_symbol(module: Any) -> str:
    """The name of the public function."""
    return next(
        op.properties["sym_name"].data
        for op in module.ops
        if op.name == "tt.func" and op.properties.get("sym_visibility", None) is not None
        and op.properties["sym_visibility"].data == "public"
    )  # fmt: skip


def version() -> str:
    """The version of this package."""
    import tilework

    return tilework.__version__


class Overrides:
    """Stage files that the user reads (`TRITON_KERNEL_DUMP`) or replaces (`TRITON_KERNEL_OVERRIDE`, `ir_override`)."""

    def __init__(self, source: Any, name: str, options: CompileOptions, stages: Mapping[str, Any]) -> None:
        self.name = name
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

    def product(self, stage: str) -> Any:
        """The content of the user's file for this stage; None if there is none."""
        path = self.files.get(stage)
        if path is None:
            return None
        if stage in self.announced:
            print(f"\nOverriding kernel with file {path}")
        return read_product(stage, Path(path).read_bytes(), path)

    def dump(self, stage: str, data: bytes) -> None:
        """Write the product where the user can look at it; a cubin also as text, if a disassembler is here."""
        if self.dumper is None:
            return
        self.dumper.put(data, f"{self.name}.{stage}")
        for view in (view for view, shown in VIEWS.items() if shown == stage):
            try:
                self.dumper.put(disassembled(data).encode(), f"{self.name}.{view}")
            except StageError as error:
                warnings.warn(f"TRITON_KERNEL_DUMP wrote no {view} of {self.name}: {error}", stacklevel=2)
