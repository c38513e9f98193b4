"""Hooks of sessions: each is active while a session that uses it is.

    class Printer(Hook):
        priority = 5
        def init_handle(self, module, function, name, metadata_group, hash): ...      # a kernel was loaded
        def enter(self, metadata): print(metadata.get()["name"])                      # before a launch
        def exit(self, metadata): ...                                                 # after it
        def activate(self): ...
        def deactivate(self): ...

    HookManager.register(Printer(), session)

Hooks with a higher priority are entered first and exited last. `LaunchHook` reads names, flops and bytes from the
kernel's author:

    def metadata(grid, kernel, args):
        return {"name": f"add [n={args['n']}]", "bytes": 12 * args["n"], "flops32": args["n"]}

Every number, sequence of numbers or tensor of it is a metric. A tensor on a device is copied there, and read when the
profile is; while a graph is captured, it is left out. It is called before each launch; the kernels that it launches
itself are filed under a node of their own, which viewers leave out. `InstrumentationHook` refuses
``backend="instrumentation"``: tilework compiles no clocks into kernels.
"""

import re
from abc import abstractmethod
from collections import defaultdict
from typing import Any, ClassVar

from tilework import knobs
from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.launches import launch_metric
from tilework.inspect.profiler.mode import InstrumentationMode, interpret_mode
from tilework.inspect.profiler.recorder import RECORDER, Operation
from tilework.inspect.profiler.stacks import flags
from tilework.process.triton_version import follows


class Hook:
    """See the module docstring."""

    priority: int = 0

    @abstractmethod
    def init_handle(self, module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
        """Called after a kernel is loaded."""

    @abstractmethod
    def enter(self, metadata: Any) -> None:
        """A launch begins."""

    @abstractmethod
    def exit(self, metadata: Any) -> None:
        """Called after a launch."""

    @abstractmethod
    def activate(self) -> None:
        """A session that uses it becomes active, and none was."""

    @abstractmethod
    def deactivate(self) -> None:
        """The last active session that uses it ends, or is no longer active."""


class HookManager:
    """The hooks of all sessions."""

    active_hooks: ClassVar[list[Hook]] = []
    session_hooks: ClassVar[dict[int, dict[Hook, bool]]] = defaultdict(dict)

    @staticmethod
    def init_handle(module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
        for hook in HookManager.active_hooks:
            hook.init_handle(module, function, name, metadata_group, hash)

    @staticmethod
    def enter(metadata: Any) -> None:
        for hook in HookManager.active_hooks:
            hook.enter(metadata)

    @staticmethod
    def exit(metadata: Any) -> None:
        for hook in reversed(HookManager.active_hooks):
            hook.exit(metadata)

    @staticmethod
    def register(hook: Hook, session: int) -> None:
        """A session uses a hook, which is active from now on."""
        HookManager.session_hooks[session][hook] = True
        HookManager.update()

    @staticmethod
    def unregister(session: int | None = None) -> None:
        """A session, or all, use hooks no longer."""
        for one in list(HookManager.session_hooks) if session is None else [session]:
            HookManager.session_hooks.pop(one, None)
        HookManager.update()

    @staticmethod
    def activate(session: int | None = None) -> None:
        """A session, or all, are active."""
        HookManager.switch(session, True)

    @staticmethod
    def deactivate(session: int | None = None) -> None:
        """A session, or all, are not active."""
        HookManager.switch(session, False)

    @staticmethod
    def switch(session: int | None, is_active: bool) -> None:
        for one in list(HookManager.session_hooks) if session is None else [session]:
            for hook in HookManager.session_hooks.get(one, {}):
                HookManager.session_hooks[one][hook] = is_active
        HookManager.update()

    @staticmethod
    def update() -> None:
        """Activate the hooks of active sessions; the launch hooks of the runtime have an entry while there are any."""
        wanted = {hook: None for hooks in HookManager.session_hooks.values() for hook, on in hooks.items() if on}
        before = HookManager.active_hooks
        HookManager.active_hooks = sorted(wanted, key=lambda hook: -hook.priority)
        for hook in before:
            if hook not in wanted:
                hook.deactivate()
        for hook in HookManager.active_hooks:
            if hook not in before:
                hook.activate()
        change = "add" if HookManager.active_hooks else "remove"
        chains = (
            (knobs.runtime.kernel_load_end_hook, HookManager.init_handle),
            (knobs.runtime.launch_enter_hook, HookManager.enter),
            (knobs.runtime.launch_exit_hook, HookManager.exit),
        )
        for chain, function in chains:
            getattr(chain, change)(function)


WHY_NOT = (
    'backend="instrumentation" puts clocks into kernels, which tilework does not compile. TILEWORK_DEVICE=emulator'
    " counts what each"
    " line does (kernel.counters), TILEWORK_PERFORMANCE_REMARKS=1 says what limits a loop; the other backends time"
    " whole kernels"
)


class InstrumentationHook(Hook):
    """The hook of instrumentation modes, which rejects activation."""

    priority = 0

    def __init__(self, mode_obj: str | InstrumentationMode | None) -> None:
        self.mode: InstrumentationMode = interpret_mode(mode_obj)

    def activate(self) -> None:
        raise NotImplementedError(WHY_NOT)

    def deactivate(self) -> None:
        flags.instrumentation_on = False


COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"


NO_METRICS = ("name", "function", "stream")  # of what launch_metadata returns


class LaunchHook(Hook):
    """The hook of `launch_metadata`, a singleton."""

    priority = 100
    flops_width: ClassVar[list[int]] = [8, 16, 32, 64]
    metrics: ClassVar[list[str]] = [*(f"flops{width}" for width in flops_width), "bytes", "flops"]  # with derived units
    _instance: ClassVar["LaunchHook | None"] = None

    def __new__(cls) -> "LaunchHook":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self) -> None:
        if not hasattr(self, "include"):  # there is one, and each call of the class initializes it
            self.configure()

    def configure(self, *, include: str | None = None, exclude: str | None = None) -> None:
        """Evaluate the metadata of kernels whose names `include` matches, and `exclude` does not, from now on."""
        self.include = None if include is None else re.compile(include)
        self.exclude = None if exclude is None else re.compile(exclude)

    def applies(self, name: str) -> bool:
        """Return True if the patterns select a kernel."""
        is_included = self.include is None or self.include.search(name) is not None
        return is_included and (self.exclude is None or self.exclude.search(name) is None)

    def enter(self, metadata: Any) -> None:
        """Evaluate the author's metadata, and keep it for the launch."""
        RECORDER.thread.operation = None
        if not metadata.extras or not self.applies(str(metadata.data["name"])):  # no launch_metadata, or not wanted
            return
        before = stacks.LOCAL.stack.state
        stacks.set_state(COMPUTE_METADATA_SCOPE_NAME)
        try:
            found = metadata.get()
            names = [name for name in found if name not in NO_METRICS] if follows("launch-metrics") else self.metrics
            values = {name: launch_metric(found[name]) for name in names if name in found}
        finally:
            stacks.set_state(before)
        metrics = {name: value for name, value in values.items() if value is not None}
        RECORDER.thread.operation = Operation(str(found["name"]), metrics)

    def exit(self, metadata: Any) -> None:
        """The recorder has what it needs."""
        RECORDER.thread.operation = None
