"""Launching: `kernel[grid](*args, **options)`.

    bind ─▶ specialise ─▶ look up in memory ─▶ (compile) ─▶ check globals ─▶ launch

Everything up to the look-up is one generated function (`binder`) and two dictionary accesses; the rest happens once per
specialisation. `JITFunction` here is the language's function object plus this machinery.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import OptionError
from tilework.language.function import SOURCES
from tilework.language.function import JITFunction as LanguageFunction
from tilework.language.grid import BoundLaunch, GridArguments, grid_extent
from tilework.process.events import BUNDLES, notify
from tilework.process.forks import KeyLocks
from tilework.runtime.compile.compiled import CompiledKernel, launch_kernel
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars, changes_stages, get_cache_key, stages_key
from tilework.runtime.launch.python.dynamo_rules import UNTRACED, add_rules, untraced
from tilework.runtime.launch.python.kernel_interface import KernelInterface
from tilework.runtime.launch.python.specialization import (
    FUNCTIONS,
    JitFunctionInfo,
    Path,
    Specialization,
    check_globals,
    collect_globals,
    globals_of_constants,
    named,
    target_data,
    unless_same,
    unwrapped,
)
from tilework.runtime.launch.python.specialize import make_binder, specialize, specialize_small
from tilework.runtime.workers import async_compile

if TYPE_CHECKING:
    from tilework.runtime.launch.python.specialize import Binder, Spec
    from tilework.target import GPUTarget
    from tilework.targets.base import Backend
    from tilework.targets.options import CompileOptions

Kernels = dict[str, CompiledKernel | async_compile.FutureKernel]  # by the key of their specialisation
BindGrid = Callable[[object], Callable[..., Any]]  # a grid to the function that launches over it
DeviceCache = tuple[Kernels, dict[object, str], "GPUTarget", "Backend", "Binder"]  # see `JITFunction.create_binder`

RESERVED = ("device", "device_type", "stream")
COMPILING = KeyLocks()
CREATING = KeyLocks()


class DeviceCaches(defaultdict[object, DeviceCache]):
    """The compiled kernels of a function by device (`DriverConfig.cache_key`). A key always means the same driver.
    The name of a kind of device, ``"cpu"``, means the current one of that kind.

    Threads that read a new key at the same time get one cache: kernels compiled into another would be compiled again.
    """

    def __missing__(self, key: object) -> DeviceCache:
        if isinstance(key, str):
            return self[driver.key_of_kind(key)]
        with CREATING.held((id(self), key)), driver.using(driver.of_key(key)):
            return self[key] if key in self else super().__missing__(key)


class JITFunction(KernelInterface, LanguageFunction):
    """A kernel that can be launched: what `jit` makes of a function.

    `fn` is the Python function, `src` its source text, and `arg_names` its parameters. `cache_key` changes whenever
    something changes that the compiled code depends on. ``kernel[grid](...)`` launches a kernel; other jit functions
    call it like any function.

    Example:
        @tilework.jit
        def kernel(x, N: tl.constexpr):
            pass

        assert isinstance(kernel, tilework.JITFunction) and kernel.arg_names == ["x", "N"]
    """

    cache_hook: Callable[..., object] | None = None
    compiled_hook: Callable[..., object] | None = None
    _bind_grid: BindGrid | None = None

    def __init__(
        self,
        fn: Callable[..., object],
        version: object = None,
        do_not_specialize: Iterable[str | int] | None = None,
        do_not_specialize_on_alignment: Iterable[str | int] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., object] | None = None,
    ) -> None:
        settings = (version, do_not_specialize, do_not_specialize_on_alignment, debug, noinline, repr, launch_metadata)
        LanguageFunction.__init__(self, fn, *settings)
        self.device_caches: dict[Any, DeviceCache] = DeviceCaches(self.create_binder)
        self._globals: Any = None
        self._argument_globals: dict[str, Any] = {}
        self._compiled_as: dict[
            int, tuple[int, str | None]
        ] = {}  # revision of sources, and `portable_key` if it was known
        self.sanitize: bool | str | None = None
        self.reproducible: bool | None = None
        FUNCTIONS[named(self)].add(self)
        add_rules()

    @untraced
    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """Return a function of the kernel's arguments, `kernel[grid]`, that launches one program for each point of the
        grid.

        `grid` is a tuple of one to three sizes, or a function that computes one from the arguments (by name, constants
        included). Keywords that are not parameters of the kernel are options, such as `num_warps`, `num_stages`,
        `debug` and `sanitize`. A keyword that names both an option and a parameter sets both. The launch returns the
        compiled kernel.

        Example:
            @tilework.jit
            def kernel(out, n, BLOCK: tl.constexpr):
                i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                tl.store(out + i, i, mask=i < n)

            out = np.zeros(10, np.int32)
            kernel[lambda meta: (tilework.cdiv(meta["n"], meta["BLOCK"]),)](out, 10, BLOCK=4, num_warps=4)
            assert out.tolist() == list(range(10))
        """
        if UNTRACED and "torch._dynamo" in sys.modules and add_rules():
            return self[grid]  # a call that the rules are for
        bind = self._bind_grid or first_binder(self) or native_binder(self)
        return bind(grid) if bind is not None else self.in_python(grid)

    def bind(self, *args: object, grid: object, **kwargs: object) -> Callable[..., Any]:
        """Prepare a launch with these arguments, which is then called with only those that change: `launch(x=x2)`; see
        `language/grid.py`.

        The kernel is compiled immediately, and mistakes in the arguments are reported immediately. Calling the prepared
        launch does the same as `kernel[grid]` and costs less.

        Example:
            @tilework.jit
            def add(x, out, amount):
                tl.store(out, tl.load(x) + amount)

            x, out = np.array([40]), np.zeros(1, np.int64)
            launch = add.bind(x, out, 2, grid=(1,))
            launch()
            assert out[0] == 42
            launch(amount=3)  # the other arguments are kept
            assert out[0] == 43
        """
        bound = BoundLaunch(self, self.arg_names, args, grid, kwargs)
        self.run(*args, grid=grid, warmup=True, **kwargs)
        return native_bound(self, bound)

    def __setstate__(self, state: dict[str, Any]) -> None:
        LanguageFunction.__setstate__(self, state)
        self.device_caches = DeviceCaches(self.create_binder)
        self._globals, self._argument_globals, self._compiled_as = None, {}, {}

    def create_binder(self) -> DeviceCache:
        """(kernels by key, keys by specialisation, target, backend, binder) of the current device."""
        from tilework.targets.base import find_backend  # lazily: importing tilework loads no target

        target = driver.active.get_current_target()
        driver.check_requested()
        if knobs.runtime.explain:
            from tilework.runtime.recording.recorder import install  # lazily: few programs need it

            install()
        if knobs.runtime.record or knobs.runtime.bundle:
            from tilework.runtime.bundle.serving import begin  # lazily: few programs need it

            begin()
        backend = find_backend(target)
        return (
            {},
            {},
            target,
            backend,
            make_binder(
                self, specialize_small if backend.specializes_small_arrays else specialize, backend.option_names()
            ),
        )

    @property
    def cache(self) -> dict[object, Kernels]:
        """Kernels by device and key, as Triton 3.0 had them."""
        return {device: entry[0] for device, entry in self.device_caches.items()}

    @untraced
    def run(self, *args: object, grid: object, warmup: bool = False, **kwargs: object) -> Any:
        """Launch over `grid`, or only compile, and return the compiled kernel. ``kernel[grid](...)`` and `warmup` call
        it.

        Example:
            @tilework.jit
            def kernel(out):
                tl.store(out, 7)

            out = np.zeros(1, np.int32)
            kernel.run(out, grid=(1,))
            assert out[0] == 7
        """
        active = driver.active
        if driver._host is not None and (elsewhere := driver.elsewhere(self, args, kwargs)) is not None:
            with elsewhere:
                return self.run(*args, grid=grid, warmup=warmup, **kwargs)
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        device = active.get_current_device()
        cache_key = device if active is not driver._host else driver.cache_key(active)
        kernels, keys, target, backend, bind = self.device_caches[cache_key]
        try:
            values, specs, kinds, options = bind(*args, **kwargs)
        except (TypeError, OverflowError) as error:
            from tilework.runtime.launch.python.specialize import wrong_call  # lazily: only mistakes need it

            raise wrong_call(self, error, args, kwargs) from None
        switches = self.switches()
        marker = (specs, kinds, tuple(options.items()) if options else (), *switches)
        try:
            key = keys.get(marker)
        except TypeError:  # a constant that cannot be hashed
            key, marker = None, None
        kernel = kernels.get(key) if key is not None else None
        if kernel is None:
            self.forget_old_source(kernels, keys)
            specialization = Specialization.of(
                self, values, specs, self.full_options(options, backend), stages=switches[0]
            )
            key = specialization.key
            if marker is not None:
                keys[marker] = key
            kernel = kernels.get(key)
            if kernel is None:
                notify("new", fn=self, values=values)
                kernel = self.compile_for(specialization, target, backend, kernels, warmup)
                if kernel is None:
                    return None
                if not warmup:
                    notify("ready", fn=self, values=values, grid=grid, kernel=kernel, options=options)
            else:
                from tilework.process.metrics import count  # lazily: a program that imports tilework may launch nothing

                count("cache_hits", kernel=self._fn_name, cache="memory")
        if self._globals:
            check_globals(self._globals)
        if self._argument_globals and key in self._argument_globals:
            check_globals(self._argument_globals[key])
        if warmup:
            return async_compile.settled(kernel)
        if callable(grid):
            grid = grid(GridArguments(zip(self.arg_names, values, strict=True), self.__name__))
        extent = grid_extent(grid)
        if isinstance(kernel, async_compile.FutureKernel):
            kernel = kernel.result()
        if 0 not in extent:
            try:
                active.check_arguments(values)
            except ValueError:
                driver.refuse_mix(self, args, kwargs)
                raise
            kernel = launch_kernel(kernel, extent, active.get_current_stream(device), values, grid)
        return kernel

    def forget_old_source(self, kernels: Kernels, keys: dict[object, str]) -> None:
        """Drop all kernels if they were compiled from an earlier source of the function, or of one that it calls."""
        now = SOURCES["revision"], self._portable or None
        known = self._compiled_as.get(id(kernels), now)
        if now[0] != known[0] or (now != known and known[1] is not None):
            now = now[0], self.portable_key  # which takes long: what a bundle has never needs it
            if now[1] != known[1]:
                kernels.clear()
                keys.clear()
        self._compiled_as[id(kernels)] = now

    def switches(self) -> tuple[object, ...]:
        """The hash of the user's stages, and the settings that change the code of every specialisation."""
        mode = knobs.compilation.instrumentation_mode
        runtime, revision = knobs.runtime, SOURCES["revision"]
        checks = self.sanitize, runtime.sanitize, runtime.sanitize_overflow
        stages = None if runtime.add_stages_inspection_hook is None else stages_key()
        return (
            stages and stages[1],
            self.debug,
            runtime.debug,
            mode,
            *checks,
            self.reproducible,
            runtime.reproducible,
            knobs.language.triton_version,
            revision,
        )

    def _pack_args(
        self,
        backend: "Backend",
        kwargs: dict[str, Any],
        bound_args: dict[str, Any],
        specialization: "Sequence[Spec]",
        options: object,
    ) -> "tuple[CompileOptions, Mapping[str, object], Mapping[Path, object], Mapping[Path, object]]":
        """(options, signature, constants, attributes) of a launch from what its binder gave, as Triton's tools expect
        them.
        """
        found = Specialization.of(self, list(bound_args.values()), specialization, dict(kwargs))
        return backend.parse_options(kwargs), found.signature, found.constants, found.attrs

    def full_options(self, options: dict[str, Any], backend: "Backend") -> dict[str, Any]:
        """The launch's options with debug settings and what the backend adds; names that launches may not use are
        refused.
        """
        for name in RESERVED:
            assert name not in options, f"{name} option is deprecated; current {name} will be used"
        found = {**backend.launch_defaults(), **options}
        for name, meaning in (("reproducible", bool), ("sanitize", knobs.sanitize_mode)):
            requested, usual = options.get(name, getattr(self, name)), getattr(knobs.runtime, name)
            found.pop(name, None)
            if requested or usual:
                found[name] = meaning(usual if requested is None else requested)
        if not knobs.runtime.sanitize_overflow:
            found.setdefault("sanitize_overflow", False)
        mode, debug = knobs.compilation.instrumentation_mode, options.get("debug", self.debug)
        found["debug"] = bool(debug) or knobs.runtime.debug
        found["instrumentation_mode"] = mode
        return found

    def compile_for(
        self, specialization: Specialization, target: "GPUTarget", backend: "Backend", kernels: Kernels, warmup: bool
    ) -> CompiledKernel | async_compile.FutureKernel | None:
        """Compile one specialisation, now or on the async executor; return None if a hook forbids it.

        If several threads launch a new kernel, one compiles it and the others wait for the result.
        """
        with COMPILING.held((id(kernels), specialization.key)):
            found = kernels.get(specialization.key)
            return found if found is not None else self.compile_new(specialization, target, backend, kernels, warmup)

    def compile_new(
        self, specialization: Specialization, target: "GPUTarget", backend: "Backend", kernels: Kernels, warmup: bool
    ) -> CompiledKernel | async_compile.FutureKernel | None:
        """Compile a specialisation that is not known yet, unless a bundle has it."""
        is_served, hooks = bool(BUNDLES or knobs.runtime.bundle) and not changes_stages(), self.compile_hooks()
        # those of what a bundle has are known to be right
        options: Any = None if is_served and not any(hooks) else self.parsed_options(specialization, backend)
        self._globals = unless_same(self._globals, collect_globals(self))
        if captured := globals_of_constants(map(unwrapped, specialization.constants.values())):
            self._argument_globals[specialization.key] = captured
        if self.call_hook(hooks[0], specialization, options, target, warmup):
            return None

        def finalize(kernel: CompiledKernel) -> None:
            kernels[specialization.key] = kernel
            notify("needed", specialization=specialization, backend=backend)
            self.call_hook(hooks[1], specialization, options, target, warmup)

        if is_served:
            from tilework.runtime.bundle.serving import check_missing, kernel_for  # lazily: few programs are served

            if (served := kernel_for(specialization, target, backend)) is not None:
                finalize(served)
                return served
            options = self.parsed_options(specialization, backend)
            check_missing(specialization, target, backend)
        from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled

        source, environment = specialization.source(), cache_invalidating_env_vars()
        finish = partial(compile, source, target, specialization.options, _env_vars=environment)
        mode = async_compile.active_mode.get()
        if mode is not None:
            keyed = {**environment, "stages": specialization.key} if changes_stages() else environment
            key = get_cache_key(source, backend, options, keyed)
            known = mode.future_kernels.get(key)
            if known is not None and known.locations not in (None, source.locations()):
                from tilework.runtime.compile.locations import own_key  # lazily: few kernels have equal texts

                key = own_key(key, source)
                known = mode.future_kernels.get(key)
            kernels[specialization.key] = future = mode.submit(key, finish, finalize)
            future.locations = source.locations()
            if future is known:  # another function object of the same source has submitted it
                future.then(finalize)
            future.if_failed(partial(remove, kernels, specialization.key, future))
            return future
        kernel = finish()
        finalize(kernel)
        return kernel

    def compile_hooks(self) -> tuple[Callable[..., object] | None, Callable[..., object] | None]:
        """Return the hooks before and after a compilation."""
        runtime = knobs.runtime
        return runtime.jit_cache_hook or self.cache_hook, runtime.jit_post_compile_hook or self.compiled_hook

    def parsed_options(self, specialization: Specialization, backend: "Backend") -> "CompileOptions":
        """Return the options in the form of the backend; a wrong option is an error about the call."""
        try:
            return backend.launch_options(specialization.options)
        except OptionError as error:
            from tilework.runtime.launch.python.specialize import wrong_option  # lazily: only mistakes need it

            raise wrong_option(self, error, list(specialization.options)) from None

    def call_hook(
        self,
        hook: Callable[..., object] | None,
        specialization: Specialization,
        options: "CompileOptions",
        target: "GPUTarget",
        warmup: bool,
    ) -> bool:
        """Call a compile hook for a specialisation; True if the hook skips the compilation."""
        if hook is None:
            return False
        info = JitFunctionInfo(self.__module__, self.__qualname__, self)
        details = specialization.describe(options, target, driver.active.get_current_device(), warmup)
        return bool(
            hook(
                key=specialization.key,
                repr=specialization.text(options),
                fn=info,
                compile=details,
                is_manual_warmup=warmup,
                already_compiled=False,
            )
        )

    def _call_hook(
        self,
        hook: Callable[..., object] | None,
        key: str,
        signature: dict[str, object],
        target: "GPUTarget",
        device: object,
        constants: "dict[Path, object]",
        options: "CompileOptions",
        configs: "Sequence[dict[Path, list[list[object]]]]",
        is_warmup: bool,
    ) -> bool:
        """Call a compile hook for the parts of a specialisation, as Triton's tools do."""
        given = {name: value for name, value in vars(options).items() if value is not None}
        specialization = Specialization(self, signature, constants, dict(configs[0]), given, key)
        return self.call_hook(hook, specialization, options, target, is_warmup)

    def preload(self, specialization_data: str) -> CompiledKernel | async_compile.FutureKernel | None:
        """Compile the specialisation that `specialization_data` (from a compile hook) describes, and keep it for
        launches.

        Example:
            @tilework.jit
            def kernel(out):
                tl.store(out, 7)

            seen = []
            with tilework.knobs.runtime.scope():
                tilework.knobs.runtime.jit_cache_hook = lambda compile, **_: seen.append(compile)
                kernel.warmup(np.zeros(1, np.int32), grid=(1,))
            data = seen[0]["specialization_data"]  # a text, mostly for another process
            assert kernel.preload(data).name == "kernel"
        """
        data = json.loads(specialization_data)
        if data["name"] not in (self._fn_name, self.__name__, self.__qualname__):
            raise RuntimeError(f"Specialization data is for {data['name']} but trying to preload for {self._fn_name}")
        kernels, keys, target, backend, _ = self.device_caches[driver.cache_key(driver.active)]
        if data.get("target", target_data(target)) != target_data(target):
            raise RuntimeError(f"Specialization data is for {data['target']} but trying to preload for {target!r}")
        specialization = Specialization.from_data(self, data)
        self.forget_old_source(kernels, keys)
        found = kernels.get(specialization.key)
        return async_compile.settled(found or self.compile_for(specialization, target, backend, kernels, True))

    def _change_text(self, **attributes: object) -> None:
        super()._change_text(**attributes)
        self.device_caches.clear()

    __call__ = LanguageFunction.__call__
    __hash__ = LanguageFunction.__hash__


def remove(kernels: Kernels, key: str, kernel: object) -> None:
    """Remove a kernel that could not be compiled."""
    if kernels.get(key) is kernel:
        del kernels[key]


LAUNCHED: list[bool] = []  # not empty after the first launch of a process


def first_binder(fn: KernelInterface) -> BindGrid | None:
    """The function that makes `fn[grid]` for the first launch of a process that a bundle serves: the result comes
    sooner through Python, and the second launch loads the native launcher.
    """
    if LAUNCHED or not (BUNDLES or knobs.runtime.bundle):
        return None
    LAUNCHED.append(True)
    return fn.by_python


def native_bound(kernel: KernelInterface, bound: BoundLaunch) -> Callable[..., Any]:
    """Return a bound launch in machine code, where that is possible."""
    kernel[bound.grid]  # may be a launch through Python, while the launcher is being compiled
    bind = getattr(kernel[bound.grid], "__self__", None)
    if type(bind) is not tuple:
        return bound
    from tilework.runtime.launch.native.machine import make_bound  # lazily: only native launches need it

    return make_bound(bind[0], bound)


def native_binder(fn: JITFunction) -> BindGrid | None:
    """The function that makes `fn[grid]` in machine code, or None."""
    from tilework.runtime.launch.native.kernel_launch import binder_of  # lazily: only launches on the host need it

    return binder_of(fn) if type(fn) is JITFunction else None


def jit(
    fn: Callable[..., object] | None = None,
    *,
    version: object = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., object] | None = None,
    do_not_specialize: Iterable[str | int] | None = None,
    do_not_specialize_on_alignment: Iterable[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    interpret: bool | None = None,
    sanitize: bool | str | None = None,
    reproducible: bool | None = None,
) -> Any:
    """Turn a Python function into a kernel, or into a function that kernels call.

    A kernel is compiled when it is launched, once for each kind of arguments: their dtypes, whether addresses and
    integers are multiples of 16, which integers are 1, and the values of constants. Parameters in `do_not_specialize`
    (names or indices) are not specialised at all; those in `do_not_specialize_on_alignment` are not specialised on
    multiples of 16. `noinline` prevents a function that kernels call from being inlined. `debug` enables
    `tl.device_assert` and overflow checks. `repr` names a specialisation, and `launch_metadata(grid, metadata,
    arguments)` returns what launch hooks and the profiler receive, ``{"name": ..., "flops": ..., "bytes": ...}``.
    `version` is part of the cache key.

    With `sanitize=True`, or TRITON_SANITIZE=1 in the environment, a kernel checks every memory access, its arithmetic,
    and that no undefined value is used; `sanitize="strict"` turns warnings into errors, and `sanitize="race"` looks for
    races between programs: see docs/sanitizer.md. With `interpret=True`, or TRITON_INTERPRET=1 in the environment, it
    runs as plain Python on NumPy instead.

    With `reproducible=True`, or TILEWORK_REPRODUCIBLE=1 in the environment, the results have the same bits on every
    device, with any number of warps, stages and threads: see docs/reproducible.md. This also applies to the functions
    that the kernel calls.

    Example:
        @tilework.jit
        def add_one(p, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(p + i, tl.load(p + i, mask=i < n) + 1, mask=i < n)

        x = np.zeros(100, np.float32)
        add_one[(tilework.cdiv(100, 64),)](x, 100, BLOCK=64)
        assert (x == 1).all()

        checked = tilework.jit(sanitize=True)(add_one)
        try:
            checked[(2,)](x, 101, BLOCK=64)  # x has 100 elements
        except tilework.errors.SanitizerError as error:
            assert "out of bounds" in str(error)
        else:
            raise AssertionError("nothing was found")
    """
    settings = {
        "version": version,
        "repr": repr,
        "launch_metadata": launch_metadata,
        "do_not_specialize": do_not_specialize,
        "do_not_specialize_on_alignment": do_not_specialize_on_alignment,
        "debug": debug,
        "noinline": noinline,
    }

    def decorate(function: Callable[..., object]) -> Any:
        if not callable(function):
            raise TypeError(f"@jit decorates a function, not {type(function).__name__}")
        function = getattr(function, "fn", function) if isinstance(function, LanguageFunction) else function
        if interpret or (interpret is None and knobs.runtime.interpret):
            from tilework.runtime.compile.compiler_presence import require_compiler  # lazily: few programs use it

            require_compiler()
            from tilework.oracles.interpreter import InterpretedFunction  # lazily: a whole executor

            made = InterpretedFunction(function, **{**settings, "debug": bool(debug) or knobs.runtime.debug})
            made.compiled_form = partial(JITFunction, function, **settings)
            made.sanitize = bool(knobs.runtime.sanitize if sanitize is None else sanitize)
            made.reproducible = bool(knobs.runtime.reproducible if reproducible is None else reproducible)
        else:
            made = JITFunction(function, **settings)
            made.sanitize, made.reproducible = sanitize, reproducible
        return made

    return decorate(fn) if fn is not None else decorate
