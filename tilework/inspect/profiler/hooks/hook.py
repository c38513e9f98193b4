"""Hooks of sessions: each is active while a session that uses it is.

    class Printer(Hook):
        priority = 5
        def init_handle(self, module, function, name, metadata_group, hash): ...      # a kernel was loaded
        def enter(self, metadata): print(metadata.get()["name"])                      # before a launch
        def exit(self, metadata): ...                                                 # behind it
        def activate(self): ...
        def deactivate(self): ...

    HookManager.register(Printer(), session)

Those with a higher priority come first, and last behind a launch.
"""

from abc import abstractmethod
from collections import defaultdict
from typing import Any, ClassVar

from tilework import knobs


class Hook:
    """See the module docstring."""

    priority: int = 0

    @abstractmethod
    def init_handle(self, module: Any, function: Any, name: str, metadata_group: dict[str, str], hash: str) -> None:
        """A kernel was loaded."""

    @abstractmethod
    def enter(self, metadata: Any) -> None:
        """A launch begins."""

    @abstractmethod
    def exit(self, metadata: Any) -> None:
        """It is over."""

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
    def init_handle(*args: Any) -> None:
        for hook in HookManager.active_hooks:
            hook.init_handle(*args)

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
        for number in list(HookManager.session_hooks) if session is None else [session]:
            HookManager.session_hooks.pop(number, None)
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
        for number in list(HookManager.session_hooks) if session is None else [session]:
            for hook in HookManager.session_hooks.get(number, {}):
                HookManager.session_hooks[number][hook] = is_active
        HookManager.update()

    @staticmethod
    def update() -> None:
        """Which hooks are active follows from the sessions; the chains of launches have an entry while any is."""
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
