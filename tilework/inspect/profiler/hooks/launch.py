"""Names, flops and bytes of launches, as the kernel's author says: ``@jit(launch_metadata=...)``.

    def metadata(grid, kernel, args):
        return {"name": f"add [n={args['n']}]", "bytes": 12 * args["n"], "flops32": args["n"]}

The function is called before each launch; kernels that it launches itself are filed under a node of their own, which viewers leave out.
"""

from typing import Any, ClassVar

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.hooks.hook import Hook
from tilework.inspect.profiler.recorder import RECORDER, Operation

COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"


class LaunchHook(Hook):
    """There is one."""

    priority = 100
    flops_width: ClassVar[list[int]] = [8, 16, 32, 64]
    metrics: ClassVar[list[str]] = [*(f"flops{width}" for width in flops_width), "bytes", "flops"]
    _instance: ClassVar["LaunchHook | None"] = None

    def __new__(cls) -> "LaunchHook":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def enter(self, metadata: Any) -> None:
        """Ask for what the author says, and keep it for the launch."""
        RECORDER.thread.operation = None
        if not metadata.extras:  # nobody says anything
            return
        before = stacks.LOCAL.stack.state
        stacks.set_state(COMPUTE_METADATA_SCOPE_NAME)
        try:
            found = metadata.get()
        finally:
            stacks.set_state(before)
        numbers = {name: found[name] for name in self.metrics if name in found}
        RECORDER.thread.operation = Operation(str(found["name"]), numbers)

    def exit(self, metadata: Any) -> None:
        """The recorder has what it needs."""
        RECORDER.thread.operation = None
