"""Compile a kernel, or an IR file, for a target, or load the result from the disk cache."""

import time
from collections.abc import Mapping
from pathlib import Path

from tilework import knobs
from tilework.errors import OutOfResources
from tilework.process.events import notify
from tilework.process.metrics import count
from tilework.process.plugins import refuse_libraries
from tilework.runtime.compile.compiled import CompiledKernel, Timer, by_stage, microseconds, report_fallback
from tilework.runtime.compile.compiler_presence import require_compiler
from tilework.runtime.compile.sources import ASTSource, IRSource
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars, changes_stages, stages_key
from tilework.targets.base import GPUTarget, find_backend


def compile(
    src: ASTSource | IRSource | str | Path,
    target: GPUTarget | str | None = None,
    options: Mapping[str, object] | None = None,
    _env_vars: Mapping[str, str] | None = None,
) -> CompiledKernel:
    """Compile for `target` (``"cuda:90"``; default: the current device), or take the result from the disk cache.

    `src` is an `ASTSource`, an `IRSource` or the path of an IR file; `options` are those of a launch. A kernel can be
    compiled for a GPU that this machine does not have; binaries for NVIDIA GPUs need ptxas. `_env_vars` are the
    settings to include in the key, if they were read before this call.

    Example:
        @tilework.jit
        def kernel(out, n):
            tl.store(out, n)

        source = tilework.compiler.ASTSource(kernel, {"out": "*i32", "n": "i32"})
        compiled = tilework.compile(source, options={"num_warps": 8})
        out = np.zeros(1, np.int32)
        compiled[(1, 1, 1)](out, 7)
        assert out[0] == 7 and compiled.metadata.num_warps == 8
    """
    require_compiler()
    refuse_libraries()
    start = began = time.perf_counter()
    source = IRSource(src) if isinstance(src, str | Path) else src
    named = GPUTarget.parse(target) if isinstance(target, str) else target
    chosen: GPUTarget = named or driver.active.get_current_target()
    backend = find_backend(chosen)
    parsed = backend.parse_options({**source.parse_options(), **(options or {})})
    if knobs.compilation.enable_asan:
        raise ValueError(f"TRITON_ENABLE_ASAN: the address sanitizer is for AMD GPUs only, and the target is {chosen}")
    environment = cache_invalidating_env_vars() if _env_vars is None else _env_vars
    changed, stages = changes_stages(), None if knobs.compilation.override else stages_key()
    keyed = {**environment, "stages": "changed" if stages is None else stages[0]} if changed else environment
    name = cache.file_stem(source.name)
    labels = {"kernel": getattr(getattr(source, "fn", None), "_fn_name", source.name), "target": str(chosen)}
    key = cache.get_cache_key(source, backend, parsed, keyed)
    is_shared = not ((changed and stages is None) or knobs.compilation.always_compile)
    files = cache.load_entry(key, name) if is_shared else None
    if files is not None and not source.is_here(files):
        from tilework.runtime.compile.locations import relocated  # lazily: most files stay where they are

        key, files = relocated(key, name, source, files)
    timer = Timer(microseconds(start))
    hit = files is not None
    if files is None and knobs.runtime.no_jit:
        from tilework.runtime.bundle.missing import refused  # lazily: only mistakes need it

        raise refused(source, chosen, backend, parsed, environment, key)
    paths: Mapping[str, str] | None = None
    if files is None:
        from tilework.runtime.kernel_cache.compile_once import making  # lazily: what the cache has needs no claims

        try:
            with making(key, name, f"compiles {source.name}", is_shared, labels["kernel"]) as claim:
                files = claim.found
                hit = files is not None
                if files is not None and not source.is_here(files):
                    return compile(source, chosen, options, _env_vars)
                if files is None:
                    from tilework.runtime.compile.stages import build  # lazily: what the cache has needs no stages

                    began += claim.waited  # what follows is how long compiling takes
                    given = {name for name, value in (options or {}).items() if value is not None}
                    files = build(source, chosen, backend, parsed, given, environment, key, timer)
                    start = time.perf_counter()
                    paths = cache.store_entry(key, name, files, seconds=start - began)
                    timer.store_results = microseconds(start)
                    claim.is_done = bool(paths)
        except OutOfResources as error:
            if parsed.auto_tma != "pays":
                raise
            report_fallback(error, **labels)
            return compile(source, chosen, {**(options or {}), "auto_tma": False}, _env_vars)
    if paths is None:
        paths = cache.entry_paths(key, files)
    kernel = CompiledKernel(source, paths, key, by_stage(files))
    if hit:
        count("cache_hits", kernel=labels["kernel"], cache=cache.ORIGIN.where)
    else:
        count("compiles", 1, **labels)
        count("compile_seconds", time.perf_counter() - began, **labels)
    if (listener := knobs.compilation.listener) is not None:
        listener(
            src=source, metadata=kernel.metadata._asdict(), metadata_group=paths, times=timer.times(), cache_hit=hit
        )
    if knobs.runtime.explain:
        from tilework.runtime.recording.recorder import install  # lazily: few programs explain

        install()
    facts = {"source": source, "target": chosen, "backend": backend, "options": parsed, "environment": environment}
    notify("compiled", kernel=kernel, hit=hit, seconds=time.perf_counter() - began, **facts)
    return kernel
