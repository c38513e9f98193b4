"""`kernel.explore()`: a page about what was compiled, from a program or a notebook.

add[grid](x, y, out, n, BLOCK=1024)
add.explore()                                      # every version of `add` that was compiled
add.explore(x, y, out, n, BLOCK=1024, grid=(4,))   # launched with these arguments, with counters by line
add.explore(target="cuda:90", output="add.html", open=False)
"""

import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilework.inspect.explorer.collect import Request
from tilework.inspect.explorer.document import NotExplored, build, file_name, write
from tilework.inspect.explorer.watching import request_for, target_of, watching
from tilework.targets.base import GPUTarget


def explore_kernel(
    kernel: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    grid: Any,
    target: str | None,
    output: str | Path | None,
    open: bool,
) -> Path:
    """Write the page of a kernel, or of something around one, and show it; where it is."""
    targets = targets_of(target)
    if args or kwargs:
        if grid is None:
            raise TypeError("explore(...) launches the kernel with these arguments: it needs a grid, as grid=(4,)")
        with watching() as seen:
            kernel[grid](*args, **kwargs)
        requests = seen.requests(targets)
    else:
        requests = [
            request
            for entry in function_of(kernel).device_caches.values()
            for compiled in entry[0].values()
            for request in requests_of(compiled, targets)
        ]
    if not requests:
        raise NotExplored(
            f"{getattr(kernel, '__name__', 'the kernel')} has not been compiled: launch it first,"
            " or give explore() its arguments and a grid"
        )
    return show(requests, output, open)


def explore_compiled(kernel: Any, target: str | None, output: str | Path | None, open: bool) -> Path:
    """Write the page of one compiled kernel, and show it; where it is."""
    return show(requests_of(kernel, targets_of(target)), output, open)


def requests_of(compiled: Any, targets: Sequence[GPUTarget]) -> list[Request]:
    compiled = compiled.result() if hasattr(compiled, "result") else compiled  # it may be compiling in another thread
    metadata = compiled.metadata._asdict()
    return [request_for(compiled.src, metadata, target, None) for target in targets or [target_of(metadata)]]


def targets_of(text: str | None) -> tuple[GPUTarget, ...]:
    """``cpu,cuda:90``"""
    return tuple(GPUTarget.parse(part.strip()) for part in (text or "").split(",") if part.strip())


def function_of(kernel: Any) -> Any:
    """The kernel inside of autotuners and heuristics."""
    while not hasattr(kernel, "device_caches"):
        kernel = kernel.fn
    return kernel


def show(requests: Sequence[Request], output: str | Path | None, open: bool) -> Path:
    """Write a page, into a folder for temporary files if nobody says where, and open it in a browser."""
    path = Path(output) if output else Path(tempfile.mkdtemp(prefix="tilework-explore-"), file_name(requests))
    write(build(requests), path)
    if open and path.suffix != ".json":
        webbrowser.open(path.resolve().as_uri())
    return path
