"""Launch on the host without machine code: the evaluator executes the kernel's optimised TTIR."""

from collections.abc import Sequence
from typing import Any

from tilework.language.function import JITCallable
from tilework.runtime.memory import as_array


class EvaluatorLauncher:
    """Runs one compiled kernel; made once per kernel, called once per launch."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.name = metadata.name
        self.signature = list(source.signature.values()) if hasattr(source, "signature") else None

    def __call__(
        self,
        grid: Sequence[int],
        stream: int,
        function: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        args: Sequence[Any],
    ) -> None:
        """Run every program of the grid, in order."""
        from tilework.evaluator import evaluate

        if enter_hook is not None:
            enter_hook(launch_metadata)
        values: list[Any] = []
        for type, arg in zip(self.signature or ["?"] * len(args), args, strict=True):
            runtime_values(type, arg, values)
        evaluate(function, self.name, values, grid, foreign=True)
        if exit_hook is not None:
            exit_hook(launch_metadata)


def runtime_values(type: Any, arg: Any, values: list[Any]) -> None:
    """The leaves of an argument that exist at run time, as the evaluator takes them."""
    if type == "constexpr" or isinstance(arg, JITCallable):
        return
    if isinstance(type, tuple):
        for inner, item in zip(type, arg, strict=True):
            runtime_values(inner, item, values)
    elif isinstance(type, str) and type.startswith("tensordesc"):
        padding = getattr(arg, "padding", "zero")
        host = (as_array(arg.base), tuple(arg.shape), tuple(arg.strides))
        values.append((*host, "nan") if padding == "nan" else host)
    elif (isinstance(type, str) and type.startswith("*")) or hasattr(arg, "data_ptr"):
        values.append(as_array(arg))
    else:
        values.append(arg)
