"""Sessions, scopes and states: the functions of `tilework.profiler`.

    session = start("step", hook="triton")
    with scope("forward", metrics={"flops": 2 * M * N * K}), state("warm up"):
        matmul[grid](a, b, c)                   # ROOT -> forward -> warm up -> matmul
    deactivate(session)
    ...                                         # not recorded
    activate(session)
    finalize()                                  # writes step.hatchet

Scopes nest, each thread has its own, and they cost nothing while nothing is profiled. There is one state at a time, the
innermost one: the entry right above the kernels, whatever scopes are between.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from functools import wraps
from typing import Any, Self

from tilework import knobs
from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.hooks import (
    COMPUTE_METADATA_SCOPE_NAME,
    Hook,
    HookManager,
    InstrumentationHook,
    LaunchHook,
)
from tilework.inspect.profiler.launches import checked
from tilework.inspect.profiler.mode import BaseMode, PCSampling
from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.sessions import DATA, SESSIONS
from tilework.inspect.profiler.stacks import flags
from tilework.process.triton_version import message
from tilework.runtime.devices.active_driver import driver

DEFAULT_PROFILE_NAME = "proton"
"""The path of the file that a session without a name writes, without the suffix.

Example:
    import tilework.profiler as proton

    assert proton.DEFAULT_PROFILE_NAME == "proton"
"""
BACKENDS = {"cuda": "cupti", "hip": "roctracer", "cpu": "host"}  # by the target's
KNOWN = (*BACKENDS.values(), "instrumentation")
HOOKS: dict[str, Callable[[], Hook]] = {"triton": LaunchHook}
PARTS = "periodic_flushing"  # the mode that writes the file of each phase when it is over


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | BaseMode | None = None,
    hook: str | Hook | None = None,
) -> int | None:
    """Begin a session, and return its id.

    `name` is the path of its file without the suffix. `context` determines a kernel's path in the tree: the scopes
    around its launch ("shadow") or the Python call stack ("python"). `data` is "tree" or "trace". With
    ``hook="triton"``, the `launch_metadata` functions of kernels provide names, flops and bytes; another `Hook` can be
    passed instead. `backend` follows from the device: "cupti", "roctracer" or "host". With ``mode="periodic_flushing"``
    (or ``"periodic_flushing:format=hatchet_msgpack"``), each phase that `data.advance_phase` ends is written to a
    separate file.

    Under the `proton` command, which already has a session, and with TRITON_PROTON_DISABLE=1, it does nothing and
    returns None.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        @tilework.jit
        def kernel(out):
            tl.store(out, 1)

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            kernel[(1,)](np.zeros(1))
            proton.finalize()
            assert '"kernel"' in pathlib.Path(folder, "step.hatchet").read_text()
    """
    if flags.command_line or knobs.proton.disable:
        return None
    return begin(name, context, data, backend, mode, hook)


def begin(name: Any, context: Any, data: Any, backend: Any, mode: Any, hook: Any) -> int:
    """Begin a session as `start` does, also under the `proton` command."""
    chosen = backend or _select_backend()
    if chosen not in KNOWN:
        raise ValueError(f"Unknown profiler: {chosen}")
    _check_env(chosen)
    if hook is not None and not isinstance(hook, Hook) and hook not in HOOKS:
        raise ValueError(message("profiler-hook", hook=repr(hook), name=hook))
    text = _get_mode_str(chosen, mode)
    if chosen == "instrumentation":
        InstrumentationHook(mode).activate()
    file = DEFAULT_PROFILE_NAME if name is None else str(name)
    session = SESSIONS.make(file, context, data, chosen, text, part_format(text))
    flags.profiling_on = True
    SESSIONS.set_active([session], True)
    if hook is not None:
        HookManager.register(hook if isinstance(hook, Hook) else HOOKS[hook](), session.id)
    return session.id


def part_format(mode: str) -> str | None:
    """Return the format of the files of phases, empty for the usual one; None for a mode that writes one at the end."""
    name, _, format = mode.partition(":format=")
    return format if name == PARTS else None


def activate(session: int | None = None) -> None:
    """Resume recording, for one session or all.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            proton.deactivate(session)  # what comes now is not recorded
            proton.activate(session)
            proton.finalize(session)
    """
    switch(session, True)


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Stop recording until `activate`, for one session or all. Recorded data is kept. With `flushing`, wait for kernels
    that are still running on a GPU, so that the data is complete.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            session = proton.start(f"{folder}/step")
            proton.deactivate(session)
            with proton.scope("unseen"):
                pass
            proton.finalize(session)
            assert "unseen" not in pathlib.Path(folder, "step.hatchet").read_text()
    """
    switch(session, False)
    if flushing:
        RECORDER.settle()


def switch(session: int | None, is_active: bool) -> None:
    check_command_line(session, "activated" if is_active else "deactivated")
    chosen = list(SESSIONS.known.values()) if session is None else [SESSIONS.get(session)]
    if not is_active:
        HookManager.deactivate(session)
    SESSIONS.set_active(chosen, is_active)
    if is_active:
        HookManager.activate(session)


def finalize(session: int | None = None, output_format: str | None = "") -> None:
    """Write the file of one session, or of all sessions, and end it. If there is none, do nothing.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step", data="trace")
            proton.finalize()
            assert [file.name for file in pathlib.Path(folder).iterdir()] == ["step.chrome_trace"]
    """
    check_command_line(session, "finalized")
    if flags.command_line:
        return
    end(session, output_format)


def end(session: int | None, output_format: str | None = "") -> None:
    """End sessions as `finalize` does, also under the `proton` command."""
    if not SESSIONS.known:
        return
    chosen = list(SESSIONS.known.values()) if session is None else [SESSIONS.get(session)]
    for found in chosen:
        if output_format and output_format not in found.data.formats:
            raise ValueError(f"Unknown output format: {output_format}")
    for found in chosen:
        HookManager.unregister(found.id)
        SESSIONS.forget(found, output_format)
    if not SESSIONS.known:
        flags.profiling_on = bool(RECORDER.tools)


def check_command_line(session: int | None, done: str) -> None:
    if flags.command_line and session:
        raise ValueError(f"Only one session can be {done} when running from the command line.")


def profile(
    func: Any = None,
    *,
    name: str | None = None,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: str | None = None,
    hook: str | Hook | None = None,
) -> Any:
    """A decorator that begins a session before each call of the function and deactivates it afterwards. `finalize`
    writes it.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:

            @proton.profile(name=f"{folder}/step")
            def step():
                with proton.scope("inside"):
                    return 7

            assert step() == 7
            proton.finalize()
            assert "inside" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def decorate(function: Any) -> Any:
        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            session = start(name, context=context, data=data, backend=backend, mode=mode, hook=hook)
            try:
                return function(*args, **kwargs)
            finally:
                if session is not None:
                    deactivate(session)

        return inside

    return decorate if func is None else decorate(func)


def _select_backend() -> str:
    """The backend that measures on the active device."""
    target = driver.active.get_current_target().backend
    if target not in BACKENDS:
        raise ValueError("No backend is available for the current target.")
    return BACKENDS[target]


def _check_env(backend: str) -> None:
    """Refuse environment variables that renumber devices."""
    for variable in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if backend == "roctracer" else ():
        if knobs.environment_without(()).get(variable):
            raise ValueError(
                f"Proton does not work when the environment variable {variable} is set on AMD GPUs:"
                " please unset it and use `ROCR_VISIBLE_DEVICES` instead"
            )


def _get_mode_str(backend: str, mode: str | BaseMode | None) -> str:
    """The mode as text; one that the backend does not have is refused."""
    text = "" if mode is None else str(mode)
    if backend == "instrumentation" or not text:
        return text
    if (format := part_format(text)) is not None:
        known = sorted({format for kind in DATA.values() for format in kind.formats})
        if format and format not in known:
            raise ValueError(f"Unknown output format: {format}; there are {', '.join(known)}")
        return text
    name, _, interval = text.partition(":interval=")
    if name != "pcsampling":
        raise ValueError(f"Unknown mode: {text}")
    if interval:
        PCSampling(int(interval) if interval.isdigit() else 0)  # refuses what is no interval
    raise NotImplementedError(
        f"mode={text!r} samples the code of warps, which needs CUPTI's sampling: tilework times whole kernels."
        " `tilework explore` and TILEWORK_DEVICE=emulator count what each line does"
    )


Metrics = Mapping[str, Any]  # numbers, sequences of numbers, tensors of at most one dimension


class scope(ContextDecorator):
    """Give a part of the program its own node in the tree, with metrics if they are given: a context manager and a
    decorator.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.scope("forward", metrics={"tokens": 128}):
                pass  # launches here are below "forward"
            proton.finalize()
            assert "tokens" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def __init__(self, name: str, metrics: Metrics | None = None) -> None:
        self.name, self.metrics = name, metrics

    def __enter__(self) -> Self:
        enter_scope(self.name, metrics=self.metrics)
        return self

    def __exit__(self, *exception: Any) -> None:
        exit_scope(self.name)

    def _recreate_cm(self) -> Self:
        """Return a new scope for a call of the decorated function."""
        return type(self)(self.name, self.metrics)


class cpu_timed_scope(scope):
    """A scope that also records the time it took on the host, as ``cpu_time (ns)``.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.cpu_timed_scope("forward"):
                sum(range(1000))
            proton.finalize()
            assert "cpu_time" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def __init__(self, name: str, metrics: Metrics | None = None) -> None:
        if metrics is not None and "cpu_time" in metrics:
            raise ValueError("The metric name 'cpu_time' is reserved.")
        super().__init__(name, metrics)
        self.start = 0

    def __enter__(self) -> Self:
        super().__enter__()
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: Any) -> None:
        took = time.perf_counter_ns() - self.start
        exit_scope(self.name, metrics={"cpu_time (ns)(exc)": took})


def enter_scope(name: str, *, metrics: Metrics | None = None) -> int | None:
    """Enter a scope, and return the id of this entry, or None while nothing is profiled.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            proton.enter_scope("forward")
            proton.exit_scope("forward")
            proton.finalize()
            assert "forward" in pathlib.Path(folder, "step.hatchet").read_text()
    """
    if not flags.profiling_on:
        return None
    entry = stacks.enter(name)
    if metrics:
        RECORDER.add_metrics(stacks.scope_path(), checked(metrics))
    else:
        RECORDER.touch(stacks.scope_path())
    return entry


def exit_scope(name: str | None = None, *, metrics: Metrics | None = None) -> int | None:
    """Leave the innermost scope, which must be `name` if that is given, and add metrics to it. Return the id of the
    entry, or None while nothing is profiled.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            proton.enter_scope("forward")
            proton.exit_scope("forward", metrics={"tokens": 128})
            proton.finalize()
            assert "tokens" in pathlib.Path(folder, "step.hatchet").read_text()
    """
    if not flags.profiling_on:
        return None
    if metrics:
        RECORDER.add_metrics(stacks.scope_path(), checked(metrics))
    return stacks.leave(name)


class state(ContextDecorator):
    """A label for a part of the program, independent of its scopes: a context manager and a decorator.

    It becomes the parent of the kernels that are launched in it. Only the innermost state applies.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.state("warm up"):
                call(tl.exp, np.zeros(4, np.float32))
            proton.finalize()
            assert "warm up" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.before: str | None = None

    def __enter__(self) -> Self:
        self.before = stacks.LOCAL.stack.state
        enter_state(self.name)
        return self

    def __exit__(self, *exception: Any) -> None:
        if flags.profiling_on:
            stacks.set_state(self.before)

    def _recreate_cm(self) -> Self:
        """Return a new state for a call of the decorated function."""
        return type(self)(self.name)


class metadata_state(state):
    """The state in which metadata of launches is computed; viewers leave out the kernels of this part of the program.

    Example:
        import tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.metadata_state():
                call(tl.exp, np.zeros(4, np.float32))
            proton.finalize()
            tree, _, _, _ = proton.specs.read(f"{folder}/step.hatchet")
            assert not tree.root.children
    """

    def __init__(self) -> None:
        super().__init__(COMPUTE_METADATA_SCOPE_NAME)

    def _recreate_cm(self) -> Self:
        return type(self)()


def enter_state(name: str) -> None:
    """Enter a state, for this thread.

    Example:
        import tilework.profiler as proton

        proton.enter_state("warm up")  # the entry right above its kernels
        proton.exit_state()
    """
    if flags.profiling_on:
        stacks.set_state(name)


def exit_state() -> None:
    """Leave the current state, for this thread.

    Example:
        import tilework.profiler as proton

        proton.enter_state("warm up")
        proton.exit_state()
    """
    if flags.profiling_on:
        stacks.set_state(None)
