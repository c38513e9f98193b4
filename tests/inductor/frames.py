"""Count the frames that Dynamo takes while compiled functions launch kernels: those of the functions, none of the
launcher.

python -m tilework.as_triton -m tests.inductor.frames       launches are part of the graph, or graph breaks
python -m tests.inductor.frames                             without the name `triton` each launch is a graph break
"""

import collections
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import convert_frame

import tilework
import tilework.language as tl

SIZES = (100, 120, 300, 700)


@tilework.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


configurations = [tilework.Config({"BLOCK": 64}), tilework.Config({"BLOCK": 128})]
tuned_kernel = tilework.autotune(configurations, key=[])(double_kernel)
chosen_kernel = tilework.heuristics({"BLOCK": lambda args: tilework.next_power_of_2(args["n"])})(double_kernel)


def cdiv(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    double_kernel[(tilework.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


def next_power_of_2(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=tilework.next_power_of_2(x.numel()))
    return out


def graph_break(x: torch.Tensor, kernel: Any = double_kernel, **constants: int) -> torch.Tensor:
    """The grid function cannot be traced."""
    out = torch.empty_like(x)

    def grid(meta: dict[str, Any]) -> tuple[int]:
        torch._dynamo.graph_break()
        return (tilework.cdiv(x.numel(), meta["BLOCK"]),)

    kernel[grid](x, out, x.numel(), **constants)
    return out


def plain_break(x: torch.Tensor) -> torch.Tensor:
    return graph_break(x, BLOCK=256)


def tuned_break(x: torch.Tensor) -> torch.Tensor:
    return graph_break(x, tuned_kernel)


def chosen_break(x: torch.Tensor) -> torch.Tensor:
    return graph_break(x, chosen_kernel)


def taken(function: Callable[..., Any], **settings: Any) -> collections.Counter[str]:
    """Count by file what Dynamo converts in calls with several sizes whose results are right."""
    found: collections.Counter[str] = collections.Counter()
    convert = convert_frame.ConvertFrameAssert.__call__

    def counted(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        found[frame.f_code.co_filename] += 1
        return convert(self, frame, *args, **kwargs)

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="eager", **settings)
    convert_frame.ConvertFrameAssert.__call__ = counted
    try:
        for size in SIZES:
            x = torch.randn(size)
            torch.testing.assert_close(compiled(x), 2 * x)
    finally:
        convert_frame.ConvertFrameAssert.__call__ = convert
    return found


def main() -> None:
    in_graph = (cdiv, next_power_of_2) if tilework.as_triton.is_active() else ()
    for function in (cdiv, next_power_of_2, plain_break, tuned_break, chosen_break):
        for dynamic in (True, None, False):
            for fullgraph in (False, True) if function in in_graph else (False,):
                found = taken(function, dynamic=dynamic, fullgraph=fullgraph)
                mine = found.pop(__file__)
                print(f"{function.__name__} {dynamic=} {fullgraph=} frames={mine} others={dict(found)}")


if __name__ == "__main__":
    main()
