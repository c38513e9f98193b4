"""Try several configurations of a kernel, and keep the fastest for each kind of input.

    @tilework.autotune(configs=[Config({"BLOCK": 64}), Config({"BLOCK": 256}, num_warps=8)], key=["n"])
    @tilework.jit
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    add[lambda meta: (cdiv(n, meta["BLOCK"]),)](x, y, out, n)       # the first call with this n measures

The tuning key is the values of the parameters in `key` and the dtypes of all arguments. For a new key:

    prune ─▶ compile here and, when that is faster, in other processes ─▶ measure each ─▶ remember the best

A candidate that runs out of resources, fails a compile-time assertion, is refused by LLVM or the assembler or takes
more memory than there is to compile is skipped; it is named in `failures` and in the summary
(TRITON_PRINT_AUTOTUNING=1). Every other error is raised. A candidate that cannot fit on the device is
skipped before code is generated for it, and one that clearly cannot win is not measured to the end (`benchmark.py`).
Candidates run on the real arguments: those that a kernel changes go into `reset_to_zero` or `restore_value`. An
interrupted tuning continues at the next call.
"""

import copy
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import AutotunerError as AutotunerError
from tilework.errors import CompileTimeAssertionFailure, NotRecorded, OutOfResources, PTXASError
from tilework.language.grid import BoundLaunch
from tilework.process.events import BUNDLES, LISTENERS, notify
from tilework.process.metrics import count
from tilework.process.triton_version import follows
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.dynamo_rules import untraced
from tilework.runtime.launch.python.jit import JITFunction, first_binder, native_bound
from tilework.runtime.launch.python.kernel_interface import KernelInterface as KernelInterface
from tilework.runtime.launch.python.wrappers import TensorWrapper
from tilework.runtime.progress import Progress
from tilework.runtime.tuning.benchmark import do_bench as default_do_bench
from tilework.runtime.tuning.benchmark import do_bench_cudagraph, given_up, settles, time_to_beat
from tilework.runtime.tuning.config import (
    Config,
    Pruned,
    Tuning,
    argument_key,
    device_part,
    is_reproducible,
    like_first,
    prune,
)
from tilework.runtime.tuning.heuristics import Heuristics as Heuristics
from tilework.runtime.tuning.heuristics import Wrapper, jit_function, launch_inside, parameters_of
from tilework.runtime.tuning.heuristics import heuristics as heuristics
from tilework.runtime.tuning.results import FAILED, PASSING, TuningResults, has_failed, order, part_of, plain, summary
from tilework.runtime.tuning.space import Space as Space
from tilework.runtime.tuning.space import named_parameters
from tilework.runtime.workers.async_compile import CompilerDied, active_mode

if TYPE_CHECKING:
    from tilework.runtime.launch.native.kernel_launch import Tuned
    from tilework.runtime.tuning.precompile import Launch, Precompilation
    from tilework.runtime.tuning.search import Search
    from tilework.runtime.tuning.searching import Searching

QUANTILES = (0.5, 0.2, 0.8)
WARMUP_MS, REP_MS = 25, 100
SKIPPED = (OutOfResources, CompileTimeAssertionFailure, PTXASError, *PASSING)
MOST_WAIT = 30.0  # seconds for another process to measure something
LAUNCH = Tuning()
CONTROL = ("grid", "warmup")  # keyword arguments of `run` that are not for the kernel


class Autotuner(Wrapper):
    """A kernel with configurations, as returned by `autotune`.

    `cache` maps tuning keys to configurations; the other results belong to the last key.

    Example:
        @tilework.autotune([tilework.Config({"N": 4})], key=[])
        @tilework.jit
        def kernel(out, N: tl.constexpr): ...

        assert isinstance(kernel, tilework.Autotuner) and kernel.configs[0].kwargs == {"N": 4}
    """

    def __init__(
        self,
        fn: KernelInterface,
        arg_names: Sequence[str],
        configs: Sequence[Config] | None,
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., object] | None = None,
        post_hook: Callable[..., object] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., object] | None = None,
        cache_results: bool = False,
        search: "Search | str | None" = None,
        choose: Callable[..., Config] | None = None,
    ) -> None:
        super().__init__(fn, arg_names)
        if isinstance(configs, Space):
            configs.check_names(self.__name__, self.arg_names)
        self.configs = list(configs) if configs else [Config({})]
        if (wrong := next((each for each in self.configs if isinstance(each, Mapping)), None)) is not None:
            raise TypeError(f"autotune takes configurations, not dicts: write Config({wrong!r})")
        self.keys = [key] if isinstance(key, str) and key in arg_names else list(key)
        self.choose = choose
        self.search: Search | None = None
        if search is not None:
            from tilework.runtime.tuning import search as searches  # lazily: few programs search

            self.search = searches.Search.of(search)
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.cache_results = cache_results
        self.best_config: Config | None = None
        self.configs_timings: dict[Config, Any] = {}
        self.failures: dict[Config, Exception] = {}
        self.pruned: Pruned = {}
        self.stopped: dict[Config, str] = {}  # why a configuration was not measured to the end
        self.tunings: dict[tuple[Any, ...], dict[str, Any]] = {}  # all that is known of each, for `explain`
        self.bench_time = 0.0
        self.unfinished: dict[tuple[Any, ...], dict[Config, Any]] = {}  # timings of tunings that have not ended

        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        restore = Restore(self.reset_to_zero, self.restore_value)
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook = pre_hook or restore.before
        self.post_hook = post_hook or restore.after

        pruning = dict(prune_configs_by or {})
        self.perf_model = pruning.get("perf_model")
        self.configs_top_k = pruning.get("top_k", 1.0)
        self.early_config_prune = pruning.get("early_config_prune")

        self.num_warmups = WARMUP_MS if warmup is None else warmup
        self.num_reps = REP_MS if rep is None else rep
        self.use_cuda_graph = use_cuda_graph
        self._deprecated = warmup is not None or rep is not None or use_cuda_graph
        self._do_bench = do_bench
        if self._deprecated:
            warnings.warn(
                "warmup, rep and use_cuda_graph of autotune are deprecated:"
                " pass do_bench, which takes (call, quantiles)",
                DeprecationWarning,
                stacklevel=3,
            )

    @property
    def nargs(self) -> dict[str, Any] | None:
        """The positional arguments by name of the launch that this thread tunes for, None outside of one.

        `prune_configs` and `_bench`, which subclasses replace, find them here.
        """
        return LAUNCH.named

    @nargs.setter
    def nargs(self, named: dict[str, Any] | None) -> None:
        LAUNCH.named = named

    @untraced
    def __getitem__(self, grid: object) -> Callable[..., Any]:
        """`kernel[grid]`; launches like earlier ones run no Python code, see `launch/native/kernel_launch.py`."""
        bind = self.__dict__.get("_bind_grid") or first_binder(self)
        if bind is None and type(self) is Autotuner and type(self.fn) is JITFunction:
            # lazily: only launches on the host need it
            from tilework.runtime.launch.native.kernel_launch import binder_of

            bind = binder_of(self, self.describe)
        return bind(grid) if bind is not None and "run" not in self.__dict__ else super().__getitem__(grid)

    def bind(self, *args: object, grid: object, **kwargs: object) -> Callable[..., Any]:
        """As `KernelInterface.bind`; the first call tunes."""
        return native_bound(self, BoundLaunch(self, self.arg_names, args, grid, kwargs))

    def describe(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> "Tuned | None":
        """Return what the native launcher needs to repeat a launch; None if each launch needs Python."""
        from tilework.runtime.launch.native.kernel_launch import Tuned  # lazily: only launches on the host need it
        from tilework.runtime.launch.native.layout import MISSING

        plain = type(self.fn) is JITFunction and type(self.configs) is list and type(self.keys) is list
        if not plain or not self.configs or "run" in vars(self.fn):
            return None
        watched: list[Any] = [vars(self), "run", MISSING]
        config, exact = self.configs[0], frozenset[str]()
        if len(self.configs) > 1 or self.choose is not None:
            key = self.tuning_key(dict(zip(self.arg_names, args, strict=False)), kwargs)
            config, exact = self.cache.get(key), frozenset(self.keys)
            watched += [self.cache, key, config]
        if type(config) is not Config or config is not self.best_config:
            return None
        if config.pre_hook is not None or type(config.kwargs) is not dict:
            return None
        for holder in (vars(config), config.kwargs):
            for name, value in holder.items():
                watched += [holder, name, value]
        for name in ("best_config", "cache", "configs", "keys", "fn"):
            watched += [vars(self), name, vars(self)[name]]
        contents = (self.configs, tuple(self.configs), self.keys, tuple(self.keys))
        contents += (config.kwargs, (MISSING,) * len(config.kwargs))
        return Tuned(config.all_kwargs(), exact, tuple(watched), contents)

    @untraced
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration for these arguments, after tuning if it is not known yet."""
        if (elsewhere := driver.elsewhere(self, args, kwargs)) is not None:
            with elsewhere:
                return self.run(*args, **kwargs)
        if kwargs.get("warmup"):
            return self.warmup(*args, **{name: value for name, value in kwargs.items() if name != "warmup"})
        named = dict(zip(self.arg_names, args, strict=False))
        if len(self.configs) == 1 and self.choose is None:
            config = self.configs[0]
        else:
            key = self.tuning_key(named, kwargs)
            config = self.cache.get(key)
            if config is None:
                with LAUNCH.of(named):
                    config = self.known_choice(named, kwargs) or self.tune(key, args, named, kwargs)
                    self.cache[key] = config
        settings = self.settings_of(config, named, kwargs)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**named, **kwargs, **settings})
        if LISTENERS:
            notify("chosen", tuner=self, config=config, args=args, kwargs=kwargs)
        return launch_inside(self.fn, args, {**kwargs, **settings})

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile every configuration that pruning leaves, and return the compiled kernels in that order."""
        if (elsewhere := driver.elsewhere(self, args, kwargs)) is not None:
            with elsewhere:
                return self.warmup(*args, **kwargs)
        named = dict(zip(self.arg_names, args, strict=False))
        with LAUNCH.of(named):
            configs = self.prune_configs(kwargs)
        for config in configs:
            self.settings_of(config, named, kwargs)
        if active_mode.get() is not None:  # its kernels are futures
            return [self.fn.warmup(*args, **kwargs, **config.all_kwargs()) for config in configs]
        kernels: list[Any] = []
        with self.precompile(configs, args, kwargs) as compiling:
            for index, config in enumerate(configs):
                if isinstance(error := compiling.ready(index), CompilerDied):
                    raise error
                kernels.append(self.fn.warmup(*args, **kwargs, **config.all_kwargs()))
        return kernels

    def tuning_key(self, named: Mapping[str, object], kwargs: Mapping[str, object]) -> tuple[Any, ...]:
        """The values of the parameters in `key`, and every dtype; the same for positional and keyword arguments."""
        key = (*argument_key(self.keys, self.arg_names, {**named, **kwargs}), *device_part())
        return key if not is_reproducible(self.fn, kwargs) else (*key, "reproducible")

    def key_parts(self, key: tuple[object, ...], given: Mapping[str, object]) -> dict[str, str]:
        """Return the entries of a tuning key by the names that `runtime/recording` uses."""
        return dict(zip([*self.key_names(given), "device"], map(str, key), strict=False))

    def key_names(self, given: Mapping[str, object]) -> list[str]:
        """Return what the entries of a tuning key are, without the device: ``tuning M``, ``dtype x``."""
        values = [f"tuning {name}" for name in self.keys if name in given and name in self.arg_names]
        types = [f"dtype {name}" for name in self.arg_names if getattr(given.get(name), "dtype", None) is not None]
        return [*values, *types]

    def settings_of(self, config: Config, named: Mapping[str, object], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments that a configuration adds to a launch; a launch that sets one itself is an error."""
        settings = config.all_kwargs()
        if not settings.keys().isdisjoint(kwargs) or not settings.keys().isdisjoint(named):
            twice = [name for name in settings if name in named or name in kwargs]
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(twice)}. Make sure that you don't re-define auto-tuned"
                f" symbols: the configuration ({config}) sets them, so the launch of {self.__name__} cannot"
            )
        return settings

    def tune(
        self, key: tuple[object, ...], args: tuple[object, ...], named: dict[str, Any], kwargs: dict[str, Any]
    ) -> Config:
        """Measure the configurations that are left after pruning, and return the fastest."""
        configs = part_of(self.prune_configs(kwargs))
        for config in configs:
            self.settings_of(config, named, kwargs)
        if len(configs) == 1 and follows("single-config"):
            self.configs_timings, self.stopped, self.bench_time = {}, {}, 0.0
            self.pre_hook({**named, **kwargs, **configs[0].all_kwargs()}, reset_only=True)
            return configs[0]
        start = time.perf_counter()
        shape = {name: value for name, value in {**named, **kwargs}.items() if name in self.keys}
        results = self.results_of(key, configs, shape)
        timings, self.stopped = self.unfinished.setdefault(key, {}), {}
        timings |= results.load(configs, self.search is not None)
        known, space = sum(config in timings for config in configs), len(configs)
        searching = self.searching(configs, timings, results, args, kwargs)
        to_measure = space if searching is None else searching.budget
        check_may_tune(self.__name__, key, range(to_measure - known))
        self.failures = {config: error for config, error in self.failures.items() if config in timings}
        is_listed, elsewhere = knobs.autotuning.print, 0
        progress = Progress(f"autotuning {self.__name__}", to_measure, known, delay=0, is_listed=is_listed)
        with progress, refusing_misfits(jit_function(self.fn)):
            missing = [config for config in configs if config not in timings]
            for batch in [missing] if searching is None else searching.batches():
                with self.precompile(batch, args, kwargs) as compiling:
                    self.measure_all(batch, compiling, timings, results, progress, args, kwargs)
                elsewhere += compiling.elsewhere
            if searching is not None:
                searching.measure_best()
        configs = [config for config in configs if config in timings]
        for config in configs if all(has_failed(timings[config]) for config in configs) else ():
            if getattr(self.failures.get(config), "name", None) == "registers":  # it runs, from memory
                timings[config] = self._bench(*args, config=config, **kwargs)
        self.configs_timings = {config: timings[config] for config in configs}
        self.unfinished.pop(key, None)
        best = min(configs, key=lambda config: order(timings[config]))
        self.bench_time = time.perf_counter() - start
        results.finish(self.configs_timings, self.failures)
        labels = {"kernel": f"{self.base_fn.__module__}.{self.base_fn.__qualname__}"}
        count("tunings", 1, **labels)
        count("tuning_seconds", self.bench_time, **labels)
        self.pre_hook({**named, **kwargs, **best.all_kwargs()}, reset_only=True)
        self.tunings[key] = {
            "parts": self.key_parts(key, {**named, **kwargs}),
            "pruned": self.pruned,
            "timings": self.configs_timings,
            "failures": dict(self.failures),
            "stopped": self.stopped,
            "best": best,
            "seconds": self.bench_time,
            "from_disk": known,
            "elsewhere": elsewhere,
            "space": space,
            "estimated": 0 if searching is None else searching.estimated,
        }
        notify("tuned", tuner=self, key=key)
        if (listener := knobs.autotuning.listener) is not None:
            is_known = known == len(configs)
            facts = {"timings": self.configs_timings, "bench_time": self.bench_time, "cache_hit": is_known}
            listener(fn=self.base_fn, key=key, best_config=best, **facts)
        if knobs.autotuning.print:
            print(summary(self, key))
        return best

    def known_choice(self, named: Mapping[str, object], kwargs: Mapping[str, object]) -> Config | None:
        """Return the configuration from `choose` or a bundle; None if there is none, or if measuring is requested."""
        if knobs.runtime.record:
            from tilework.runtime.bundle.serving import begin  # lazily: few programs are recorded

            begin()  # the recorder must be listening when the choice is made, even if no compilation has started it
        if self.choose is not None and self.search is None and not knobs.autotuning.save:
            return self.chosen({**named, **kwargs})
        return served_choice(self, named, kwargs)

    def chosen(self, given: Mapping[str, object]) -> Config | None:
        """Return the configuration that `choose` gives for these arguments; None without `choose`."""
        if self.choose is None:
            return None
        asked = named_parameters(self.choose, f"`choose` of {self.__name__}")
        takes_all = any(one.kind is one.VAR_KEYWORD for one in asked)
        named = {one.name: one for one in asked if one.kind is not one.VAR_KEYWORD}
        missing = [name for name, one in named.items() if name not in given and one.default is one.empty]
        if missing:
            raise AutotunerError(f"`choose` of {self.__name__} asks for {missing[0]}, which is not an argument of it")
        found: object = self.choose(**{name: given[name] for name in given if takes_all or name in named})
        if not isinstance(found, Config):
            raise AutotunerError(f"`choose` of {self.__name__} must return a Config, and returned {found!r}")
        return found

    def searching(
        self,
        configs: Sequence[Config],
        timings: dict[Config, Any],
        results: TuningResults,
        args: tuple[object, ...],
        kwargs: dict[str, Any],
    ) -> "Searching | None":
        """Return a search in the configurations; None if all of them are to be measured."""
        if self.search is None:
            return None
        from tilework.runtime.tuning.searching import Searching  # lazily: few programs search

        first = self.chosen({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return Searching(self, configs, timings, results, args, kwargs, first)

    def measure_all(
        self,
        configs: Sequence[Config],
        compiling: "Precompilation",
        timings: dict[Config, Any],
        results: TuningResults,
        progress: Progress,
        args: tuple[object, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Measure each configuration, or load its timing if another process measures it or has just measured it."""
        later: list[int] = []  # what another process is measuring
        for index in chain(range(len(configs)), later):
            config = configs[index]
            with results.claim(config, MOST_WAIT if index in later else 0) as is_ours:
                if not is_ours and index not in later:
                    later.append(index)
                    continue
                known = results.load_one(config)
                timings[config] = known or self.measure(config, timings, compiling.ready(index), args, kwargs)
                results.store(config, timings[config], self.failures.get(config))
            progress.step()

    def results_of(
        self, key: tuple[object, ...], configs: Sequence[Config], shape: Mapping[str, object] | None = None
    ) -> TuningResults:
        """Return the store of timings; it keeps none if a configuration has a hook, whose effect no key can cover."""
        has_hook = any(config.pre_hook for config in configs)
        if has_hook and knobs.autotuning.save:
            text = f"the timings of {self.__name__} are not kept, because a configuration has a pre_hook"
            warnings.warn(text, stacklevel=4)
        fn = None if has_hook else jit_function(self.fn)
        numbers = {name: value for name, value in (shape or {}).items() if type(value) in (int, float)}
        return TuningResults.of(fn, key, self.cache_results or knobs.autotuning.cache, numbers)

    def check_disk_cache(
        self, tuning_key: tuple[object, ...], configs: Sequence[Config], bench_fn: Callable[[], object]
    ) -> bool:
        """Return True and choose the best if all timings for a key are on disk; else call `bench_fn` and store them."""
        results = self.results_of(tuning_key, configs)
        known = results.load(configs)
        if any(config not in known for config in configs):
            bench_fn()
            results.finish(self.configs_timings, self.failures)
            return False
        self.configs_timings = known
        self.cache[tuning_key] = min(configs, key=lambda config: order(known[config]))
        self.bench_time = 0.0
        return True

    @contextmanager
    def precompile(
        self, configs: Sequence[Config], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> "Iterator[Precompilation]":
        """Compile the configurations before they run; warn about those that crashed the compiler."""
        from tilework.runtime.tuning.precompile import Precompilation  # lazily: known results need no processes

        options = {name: value for name, value in kwargs.items() if name not in CONTROL}
        compiling = Precompilation(self.fn, [self.launch_of(config, args, options) for config in configs])
        try:
            with compiling:
                yield compiling
        finally:
            for index, error in compiling.errors.items():
                if isinstance(error, CompilerDied):
                    how = "crashed" if error.seconds is None else "gave no answer"
                    text = f"autotuning {self.__name__}: the compiler {how} on the configuration ({configs[index]})"
                    warnings.warn(text, stacklevel=6)
            if knobs.autotuning.print and compiling.notes:
                sys.stderr.write("\n".join([*compiling.notes, ""]))

    def launch_of(self, config: Config, args: tuple[object, ...], options: Mapping[str, object]) -> "Launch":
        """Return the arguments of a configuration's launch after its hook, which may change descriptors."""
        settings = {**options, **config.all_kwargs()}
        held = [value for value in (*args, *settings.values()) if hasattr(value, "block_shape")]
        if config.pre_hook is not None and held:
            copies = {id(value): copy.copy(value) for value in held}
            args = tuple(copies.get(id(arg), arg) for arg in args)
            settings = {name: copies.get(id(value), value) for name, value in settings.items()}
            try:
                config.pre_hook({**dict(zip(self.arg_names, args, strict=False)), **settings})
            except Exception:
                return (), {}  # nothing to compile; when it is measured the user sees the error
        return args, settings

    def measure(
        self,
        config: Config,
        timings: Mapping[Config, object],
        error: Exception | None,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Any:
        """Return the time of one configuration, less precisely if it is longer than those in `timings`."""
        if error is not None:
            return self.failed(config, error)
        best = min((order(timing) for timing in timings.values()), default=[math.inf])
        token, settling = time_to_beat.set(best[0] if self._do_bench is None else math.inf), settles.set(True)
        given_up.set(None)
        notify("measuring", tuner=self, begins=True)
        try:
            return self._bench(*args, config=config, **kwargs)
        finally:
            notify("measuring", tuner=self, begins=False)
            time_to_beat.reset(token)
            settles.reset(settling)
            if (reason := given_up.get()) is not None:
                self.stopped[config] = reason

    def _bench(self, *args: Any, config: Config, **meta: Any) -> Any:
        """Return the time of one configuration; infinite if it cannot run."""
        if knobs.autotuning.print:
            print(f"Autotuning kernel {self.__name__} with config {config}")
        settings = {**meta, **config.all_kwargs()}
        everything = {**(self.nargs or {}), **settings}

        def call() -> None:
            if config.pre_hook is not None:
                config.pre_hook(everything)
            self.pre_hook(everything)
            try:
                self.fn.run(*args, **settings)
            except BaseException as error:  # also Ctrl-C: what was changed is put back
                self.post_hook(everything, exception=error)
                raise
            self.post_hook(everything, exception=None)

        try:
            return self.do_bench(call, quantiles=QUANTILES)
        except SKIPPED as error:
            return self.failed(config, error)

    def failed(self, config: Config, error: Exception) -> list[float]:
        """Record why a configuration cannot run, and return its infinite time."""
        self.failures[config] = error.with_traceback(None)
        if knobs.autotuning.print:
            print(f"Autotuning failed with {type(error).__name__}: {error}")
        return list(FAILED)

    def do_bench(self, call: Callable[[], object], quantiles: Sequence[float]) -> Any:
        """Time a call with the user's function, the deprecated settings, or the driver's benchmarker."""
        if self._do_bench is not None:
            return plain(self._do_bench(call, quantiles=quantiles))
        if self.use_cuda_graph:
            return do_bench_cudagraph(call, rep=self.num_reps, quantiles=quantiles)
        if self._deprecated:
            return default_do_bench(call, warmup=self.num_warmups, rep=self.num_reps, quantiles=quantiles)
        return driver.active.get_benchmarker()(call, quantiles=quantiles)

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        """Return the configurations that `prune_configs_by` keeps for `nargs`, the best estimates first."""
        rules = (self.early_config_prune, self.perf_model, self.configs_top_k)
        is_fixed = is_reproducible(self.fn, kwargs)
        configs, others = like_first(self.__name__, self.configs) if is_fixed else (self.configs, {})
        left, self.pruned = prune(configs, self.nargs or {}, kwargs, *rules)
        self.pruned |= others
        return left


def autotune(
    configs: Sequence[Config] | None,
    key: Sequence[str],
    prune_configs_by: Mapping[str, object] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., object] | None = None,
    post_hook: Callable[..., object] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., object] | None = None,
    cache_results: bool = False,
    search: "Search | str | None" = None,
    choose: Callable[..., Config] | None = None,
) -> Callable[[Any], Autotuner]:
    """Decorate a kernel so that its launches measure `configs` and use the fastest.

    `prune_configs_by` may contain `early_config_prune(configs, named_args, **kwargs)`, and `perf_model(**args)` with
    `top_k`. Every measured call is surrounded by `pre_hook(args, reset_only=False)`, which replaces `reset_to_zero` and
    `restore_value`, and `post_hook(args, exception)`. `do_bench(call, quantiles)` replaces the benchmarking function.
    With `cache_results` (or TRITON_CACHE_AUTOTUNING=1), timings are kept in the disk cache.

    `choose(M, N)`, a function of some arguments, returns the configuration, and nothing is measured, unless `search` or
    `tilework tune` requests it: then a search begins with that configuration.

    `configs` is a list or a `Space`. With `search="model"`, or a `Search`, only some are compiled and measured.

    Example:
        @tilework.autotune([tilework.Config({"BLOCK": 32}), tilework.Config({"BLOCK": 128})], key=["n"])
        @tilework.jit
        def fill(out, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, i, mask=i < n)

        out = np.zeros(1000, np.int32)
        fill[lambda meta: (tilework.cdiv(1000, meta["BLOCK"]),)](out, 1000)  # measures both
        assert fill.best_config in fill.configs and out[-1] == 999
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            parameters_of(fn, "autotune"),
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
            search=search,
            choose=choose,
        )

    return decorate


# ---- before a tuning


def served_choice(tuner: Autotuner, named: Mapping[str, object], kwargs: Mapping[str, object]) -> Config | None:
    """Return the configuration that a bundle has for these arguments; None without one, if the launch may be tuned."""
    if not (BUNDLES or knobs.runtime.bundle):
        return None
    from tilework.runtime.bundle.serving import choice_for  # lazily: few programs are served

    return choice_for(tuner, named, kwargs)


def check_may_tune(name: str, key: tuple[object, ...], missing: Sequence[object]) -> None:
    """Refuse to measure under TILEWORK_NO_JIT=1; timings that are on disk may still be used."""
    if missing and knobs.runtime.no_jit:
        count("refusals", kernel=name)
        raise NotRecorded(
            f"TILEWORK_NO_JIT=1 forbids to tune {name} for the key {key}, of which {len(missing)} configurations"
            " have not been measured: tune it before (`tilework tune`), or serve it from a bundle that was recorded"
            " with this key"
        )


@contextmanager
def refusing_misfits(kernel: JITFunction | None) -> Iterator[None]:
    """Raise DoesNotFit in the block if compiling `kernel` shows that it exceeds the active device. For a kernel
    that is not compiled, `kernel` is None."""
    from tilework.runtime.compile.stages import device_limits  # lazily: only compiling needs it

    utils = None if kernel is None else driver.active.utils
    limits = None if utils is None else utils.get_device_properties(driver.active.get_current_device())
    token = device_limits.set(limits)
    try:
        yield
    finally:
        device_limits.reset(token)


# ---- arguments that a kernel changes


class Restore:
    """The default hooks around a measured call: zero some arguments before it, put others back after it."""

    def __init__(self, reset_to_zero: Sequence[str], restore_value: Sequence[str]) -> None:
        self.reset_to_zero = list(reset_to_zero)
        self.restore_value = list(restore_value)
        self.copies: dict[str, Any] = {}

    def before(self, args: Mapping[str, object], reset_only: bool = False) -> None:
        """Zero the arguments of `reset_to_zero`, and copy those of `restore_value` unless `reset_only`; skip None."""
        for array in (memory_of(args[name]) for name in self.reset_to_zero if args[name] is not None):
            array.zero_() if hasattr(array, "zero_") else array.fill(0)
        if not reset_only:
            given = (name for name in self.restore_value if args[name] is not None)
            self.copies = {name: copy_of(memory_of(args[name])) for name in given}

    def after(self, args: Mapping[str, object], exception: BaseException | None = None) -> None:
        """Copy the kept values back, whether the call succeeded or not."""
        for name, saved in self.copies.items():
            overwrite(memory_of(args[name]), saved)
        self.copies = {}


def memory_of(arg: Any) -> Any:
    """Return the array of an argument: the base of a descriptor or a wrapper."""
    return memory_of(arg.base) if hasattr(arg, "block_shape") or isinstance(arg, TensorWrapper) else arg


def copy_of(array: Any) -> Any:
    """Return a copy of an array on the same device."""
    return array.clone() if hasattr(array, "clone") else array.copy()


def overwrite(array: Any, source: Any) -> None:
    if hasattr(array, "copy_"):
        array.copy_(source)
    else:
        array[...] = source
