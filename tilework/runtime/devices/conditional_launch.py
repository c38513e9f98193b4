"""Launchers of kernels with launch preconditions: the kernel was compiled for some arguments only."""

import threading
from collections.abc import Mapping
from typing import Any

from tilework.process.events import BUNDLES
from tilework.runtime.devices.launcher import Launcher


def unconditional(metadata: object) -> Mapping[str, Any]:
    """The options that make a kernel right for every launch, if this one is not; else none.

    A launch of a kernel with hidden descriptors must justify them (`cuda/guarded_launch.py`); on the host a kernel may
    have parameters whose memory must not overlap (`host/native_launcher.py`).
    """
    if getattr(metadata, "rectangles", None):
        return {"auto_tma": False}
    return {"may_alias": True} if getattr(metadata, "interface", {}).get("apart") else {}


class ConditionalLauncher(Launcher):
    """A launcher whose kernel is right for some arguments only: others run the kernel that `without` returns.

    class MyLauncher(ConditionalLauncher):
        def start(self, grid, stream, function, args, scratch):
            kernel = self.without()
            kernel.launcher.start(grid, stream, kernel.function, args, scratch)
    """

    def __init__(self, source: Any, metadata: object) -> None:
        super().__init__(source, metadata)
        self.plain: Any = None
        self.lock = threading.Lock()

    def without(self) -> Any:
        """The kernel without preconditions, from the bundle of this one or compiled when a launch first needs it."""
        with self.lock:
            if self.plain is None and BUNDLES:
                from tilework.runtime.bundle.serving import plain_kernel  # lazily: few programs are served

                self.plain = plain_kernel(self.source, self.metadata)
            if self.plain is None:
                from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when it is needed

                options = {**self.metadata.requested_options, **unconditional(self.metadata)}
                self.plain = compile(self.source, self.metadata.target, options)
            self.plain._init_handles()
        return self.plain
