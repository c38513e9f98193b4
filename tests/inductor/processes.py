"""A model that is compiled in other processes, or found in caches that others have filled.

    python -m tilework.as_triton -m tests.inductor.processes workers fork      torch's compile workers: subprocess,
                                                                               fork, spawn
    python -m tilework.as_triton -m tests.inductor.processes save FILE         compile, and write torch's portable cache
                                                                               to FILE
    python -m tilework.as_triton -m tests.inductor.processes load FILE         start from it
    python -m tilework.as_triton -m tests.inductor.processes warm  start from the caches of an earlier process

A device may follow. Prints how many kernels this process compiled itself.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile

from tilework.runtime.compile import stages


def model(x: torch.Tensor) -> Any:
    return torch.softmax(x.sin() + 1, -1), x.cumsum(-1)


def main(how: str, *more: str) -> None:
    config.cpu_backend = "triton"
    device = "cuda" if "cuda" in more else "cpu"
    config.quiesce_async_compile_pool = False
    compiled: list[str] = []
    build = stages.build
    stages.build = lambda source, *rest: (compiled.append(source.name), build(source, *rest))[1]
    if how == "workers":
        config.compile_threads, config.worker_start_method, config.fx_graph_cache = 2, more[0], False
        AsyncCompile.wait_pool_ready()
        assert AsyncCompile.use_process_pool(), "the pool of workers is not there"
    elif how == "load":
        torch.compiler.load_cache_artifacts(Path(more[0]).read_bytes())
    x = torch.arange(20 * 64.0).reshape(20, 64).to(device) / 100
    torch.testing.assert_close(torch.compile(model)(x), model(x))
    if how == "save":
        found = torch.compiler.save_cache_artifacts()
        assert found is not None, "there is nothing to save"
        Path(more[0]).write_bytes(found[0])
    print("compiled here:", len(compiled))


if __name__ == "__main__":
    main(*sys.argv[1:])
