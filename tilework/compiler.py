"""Compile a kernel, or an IR file, for a target.

    >>> source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> kernel = compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8})
    >>> print(kernel.asm["ttir"])

`lower` gives the text of chosen stages and leaves caches alone; `compile` keeps everything in the disk cache. The frontend
and the IR are imported where a compilation first needs them: a kernel that is found in the cache needs neither.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.backends.base import Backend, GPUTarget, find_backend
from tilework.backends.options import CompileOptions, capability_of
from tilework.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.frontend.options import FrontendOptions, any_dot_size, cuda_min_dot_size
from tilework.language.function import JITCallable, JITFunction
from tilework.runtime import cache
from tilework.runtime.cache import get_cache_key
from tilework.runtime.compiled import CompiledKernel, LazyDict
from tilework.runtime.driver import driver

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


@dataclass(frozen=True)
class AttrsDescriptor:
    """Facts about arguments as Triton 3.0 wrote them: the numbers of those that are multiples of 16, and of those that are 1."""

    divisible_by_16: Sequence[int] = ()
    equal_to_1: Sequence[int] = ()


class ASTSource:
    """A kernel with the types of its arguments; parameters that are not in `signature` must be constants.

    `constexprs` maps names or index paths to values, `attrs` index paths to [[attribute, value]]. Triton 3.0's forms are
    accepted too: `constants=` for `constexprs=` and with it types by parameter number, types in one text
    (``"*fp32,*fp32,i32"``, for the parameters that are no constants), and facts as an `AttrsDescriptor`.
    """

    ext = "ttir"

    def __init__(
        self,
        fn: JITFunction,
        signature: Mapping[Any, Any] | str,
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[tuple[int, ...], Sequence[Sequence[Any]]] | AttrsDescriptor | None = None,
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
        ones: Sequence[int] = ()
        if isinstance(attrs, AttrsDescriptor):
            ones = attrs.equal_to_1
            attrs = {(index,): [["tt.divisibility", 16]] for index in attrs.divisible_by_16}
        self.fn = fn
        self.name = fn.__name__
        order = {name: index for index, name in enumerate(fn.arg_names)}
        self.signature = dict(sorted(signature.items(), key=lambda item: order.get(item[0], len(order))))
        given = constexprs if constexprs is not None else constants or {}
        self.constants = {
            (order.get(key, key),) if isinstance(key, str) else key if isinstance(key, tuple) else (key,): value
            for key, value in given.items()
        }
        self.attrs = dict(attrs or {})
        for index in ones:  # such an argument is a constant
            self.constants[(index,)] = 1
            self.signature[fn.arg_names[index]] = "constexpr"

    @property
    def constexprs(self) -> dict[Any, Any]:
        """The constants by index path."""
        return self.constants

    def hash(self) -> str:
        """SHA-256 of the function, the types, the constants and the facts."""
        constants = [(path, stable_text(value)) for path, value in sorted(self.constants.items(), key=str)]
        text = f"{self.fn.cache_key}-{self.attrs}-{sorted(self.signature.items(), key=str)}-{constants}"
        return hashlib.sha256(text.encode()).hexdigest()

    def product(self, options: FrontendOptions) -> Any:
        """What the first stage starts from: the module before any pass."""
        return self.module(options)

    def module(self, options: FrontendOptions) -> Any:
        """The module before any pass."""
        from tilework.frontend.generator import compile_to_ttir

        constants = {path: value for path, value in self.constants.items() if isinstance(path[0], int)}
        return compile_to_ttir(self.fn, self.signature, constants, self.attrs, options)


class IRSource:
    """An IR file; its extension says which stage it is the product of."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.ext = self.path.suffix.lstrip(".")
        if self.ext not in (*IR_STAGES, *TEXT_STAGES):
            raise ValueError(f"{self.path.name}: a source is a .{' or .'.join((*IR_STAGES, *TEXT_STAGES))} file")
        self.text = self.path.read_text()
        self.name = self.path.stem

    def hash(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def product(self, options: FrontendOptions) -> Any:
        """The product of the stage that the file names."""
        return read_product(self.ext, self.text.encode(), str(self.path))

    def module(self, options: FrontendOptions) -> Any:
        """The module as it stands in the file."""
        from tilework.ir.parser import parse_module

        return parse_module(self.text, str(self.path))


def named_types(fn: JITFunction, text: str, constants: Mapping[Any, Any]) -> dict[str, str]:
    """``"*fp32,i32"`` by the names of the parameters that are no constants."""
    fixed = {key if isinstance(key, str) else fn.arg_names[key[0] if isinstance(key, tuple) else key] for key in constants}
    names = [name for name in fn.arg_names if name not in fixed]
    types = [type.strip() for type in text.split(",")]
    if len(types) != len(names):
        raise TypeError(f"{fn.__name__} has {len(names)} parameters that are no constants and is given {len(types)} types: {text}")
    return {**dict(zip(names, types, strict=True)), **dict.fromkeys(sorted(fixed), "constexpr")}


def stable_text(value: Any) -> str:
    """A constant as text that is the same in every process; functions by their hash."""
    if isinstance(value, JITCallable):
        return value.cache_key
    return repr(value)


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
    for name in stages:
        if name not in available:
            raise ValueError(f"target {target} has no stage {name!r}; it has {', '.join(available)}")
    product = source.product(frontend_options(target, options))
    products: dict[str, Any] = {}
    for name, stage in remaining_stages(source, available, target).items():
        product = stage(product)
        if name in stages:
            data = stage_data(product)
            products[name] = data if name not in (*IR_STAGES, *TEXT_STAGES) else data.decode()
        if len(products) == len(set(stages)):
            break
    if missing := [name for name in stages if name not in products]:
        raise ValueError(f"{source.name}.{source.ext} is past the stage {missing[0]!r}")
    return products


def remaining_stages(source: ASTSource | IRSource, stages: Mapping[str, Any], target: GPUTarget) -> dict[str, Any]:
    """The stages that are left for a source. A file's own stage is done, except the first: TTIR may be unoptimised."""
    names = list(stages)
    if source.ext not in stages:
        raise ValueError(f"target {target} has no stage {source.ext!r}; it has {', '.join(names)}")
    first = names.index(source.ext)
    passed = {names[first]: lambda product: product} if first else {names[0]: stages[names[0]]}
    return {**passed, **{name: stages[name] for name in names[first + 1 :]}}


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
) -> CompiledKernel:
    """Compile for `target` (default: the current device), or take the result from the disk cache."""
    start = time.perf_counter()
    source = IRSource(src) if isinstance(src, str | Path) else src
    chosen: GPUTarget = target or driver.active.get_current_target()
    backend = find_backend(chosen)
    parsed = backend.parse_options(dict(options or {}))
    if knobs.compilation.enable_asan:
        raise ValueError(f"TRITON_ENABLE_ASAN: the address sanitizer is for AMD GPUs only, and the target is {chosen}")
    environment = knobs.cache_invalidating_env_vars()
    key = cache.get_cache_key(source, backend, parsed, environment)
    name = cache.file_stem(source.name)
    files = None if knobs.compilation.always_compile else cache.load_entry(key, name)
    timer = Timer(microseconds(start))
    hit = files is not None
    if files is None:
        files = build(source, chosen, backend, parsed, environment, key, timer)
    if hit:
        paths = cache.entry_paths(key, files)
    else:
        start = time.perf_counter()
        paths = cache.store_entry(key, name, files)
        timer.store_results = microseconds(start)
    kernel = CompiledKernel(source, by_stage(files), paths, key)
    if (listener := knobs.compilation.listener) is not None:
        listener(src=source, metadata=kernel.metadata._asdict(), metadata_group=paths, times=timer.times(), cache_hit=hit)
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
    environment: Mapping[str, str],
    key: str,
    timer: Timer,
) -> dict[str, bytes]:
    """Run the stages; the files of the cache entry."""
    start = time.perf_counter()
    stages = remaining_stages(source, backend.stages(options), target)
    if (inspect := knobs.runtime.add_stages_inspection_hook) is not None:
        inspect(backend, stages, options, 0, target.arch)
    product = source.product(frontend_options(target, options))
    name = cache.file_stem(source.name)
    files = {f"{name}.source": stage_data(product)}
    facts: dict[str, Any] = {"name": source.name if isinstance(product, str) else kernel_symbol(product)}
    binary = backend.binary_ext if backend.binary_ext in stages else list(stages)[-1]
    timer.ir_initialization += microseconds(start)
    overrides = Overrides(source, name, options)
    for stage, run in stages.items():
        start = time.perf_counter()
        product = overrides.replace(stage, run(product))
        if stage == knobs.compilation.use_ir_loc and stage in IR_STAGES:
            product = located_in_file(product, stage, name, key)
        data = stage_data(product)
        if isinstance(product, str) and (read_facts := getattr(backend, "metadata", None)) is not None:
            facts |= read_facts(stage, product)
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


def by_stage(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files by their extension."""
    return {file.rpartition(".")[2]: data for file, data in files.items() if not file.startswith("__grp__")}


def version() -> str:
    """The version of this package."""
    import tilework

    return tilework.__version__


class Overrides:
    """Stage files that the user reads (`TRITON_KERNEL_DUMP`) or replaces (`TRITON_KERNEL_OVERRIDE`, `ir_override`)."""

    def __init__(self, source: Any, name: str, options: CompileOptions) -> None:
        self.name = name
        self.path = options.ir_override
        wanted = knobs.compilation.dump_ir or knobs.compilation.override
        source_hash = source.hash() if wanted else ""
        self.dumper = cache.get_dump_manager(source_hash) if knobs.compilation.dump_ir else None
        self.overrider = cache.get_override_manager(source_hash) if knobs.compilation.override else None

    def replace(self, stage: str, product: Any) -> Any:
        """The user's file for this stage, if there is one."""
        path = self.path if self.path is not None and str(self.path).endswith(f".{stage}") else None
        if path is None and self.overrider is not None:
            path = self.overrider.get_file(f"{self.name}.{stage}")
            if path is not None:
                print(f"\nOverriding kernel with file {path}")
        if path is None:
            return product
        return read_product(stage, Path(path).read_bytes(), str(path))

    def dump(self, stage: str, data: bytes) -> None:
        """Write the product where the user can look at it."""
        if self.dumper is not None:
            self.dumper.put(data, f"{self.name}.{stage}")
