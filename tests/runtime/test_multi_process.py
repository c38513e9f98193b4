"""Kernels in the processes that programs start: pools, data loaders, ranks; what docs/multi-process.md promises."""

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tests.runtime.cuda_fixture import cuda as cuda
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.targets.nvidia import libcuda

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
ROOT = Path(__file__).parent.parent.parent
RENDEZVOUS = ("--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0")  # any free port
METHODS = ("fork", "spawn", "forkserver")

KERNELS = """
import sys
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def scale(x, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

CONFIGS = [tilework.Config({"B": 32}), tilework.Config({"B": 64})]

@tilework.autotune(CONFIGS, key=[], do_bench=lambda call, quantiles: [1.0])
@tilework.jit
def tuned(x, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

def scaled(size, kernel=scale):
    x = np.ones(size, np.float32)
    block = {} if kernel is tuned else {"B": 64}
    kernel[lambda meta: (tilework.cdiv(size, meta["B"]),)](x, size, 3.0, **block)
    return bool((x == 3).all())

def scaled_with(pair):
    return scaled(*pair)
"""
POOLS = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from kernels import *

@tilework.jit
def in_main(x, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

if __name__ == "__main__":
    context = get_context(sys.argv[1])
    if sys.argv[2] == "before":      # the pool of threads has started, and is gone in forked processes
        assert scaled(1_000_000)
    with context.Pool(2) as pool:
        assert all(pool.map(scaled, [1000, 1_000_000, 3000]))
        assert all(pool.map(scaled_with, [(1000, scale), (1000, in_main), (1000, tuned)]))
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert all(pool.map(scaled, [1000, 1_000_000, 3000]))
    assert scaled(1_000_000)
    print("done")
"""
LOADERS = """
import torch
from kernels import *

class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.kernel = scale

    def __len__(self):
        return 6

    def __getitem__(self, index):
        row = torch.full((100,), float(index))
        self.kernel[(2,)](row, 100, 3.0, B=64)
        return row

if __name__ == "__main__":
    assert scaled(1000)
    loader = torch.utils.data.DataLoader(Rows(), num_workers=2, multiprocessing_context=sys.argv[1])
    assert [batch[0, 0].item() for batch in loader] == [0, 3, 6, 9, 12, 15]
    print("done")
"""
RANKS = """
import os
import torch
import torch.distributed as dist
from tilework import metrics
from kernels import *

def rank(number=0, count=0, file=""):
    if count:
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=number, world_size=count)
    else:
        dist.init_process_group("gloo")
    row = torch.full((100,), float(dist.get_rank()))
    scale[(2,)](row, 100, 3.0, B=64)
    dist.all_reduce(row)
    compiles = torch.tensor([metrics.total("compiles")])
    dist.all_reduce(compiles)
    if dist.get_rank() == 0:
        print("sum", row[0].item(), "compiles", compiles.item())
    dist.destroy_process_group()

if __name__ == "__main__":
    if len(sys.argv) > 1:
        torch.multiprocessing.spawn(rank, (3, sys.argv[1]), nprocs=3)
    else:
        rank()
"""


def run(folder: Path, cache: Path, program: str, *arguments: str, start: tuple[str, ...] = ()) -> str:
    """Run a program that imports `kernels`, and return its output."""
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "program.py").write_text(program)
    environment: Mapping[str, str] = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "TRITON_CACHE_DIR": str(cache),
    }
    done = run_python(*start, str(folder / "program.py"), *arguments, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "method, launched", [("fork", "before"), ("fork", "later"), ("spawn", "before"), ("forkserver", "before")]
)
def test_pools(method: str, launched: str, tmp_path: Path, warm_cache: Path) -> None:
    assert run(tmp_path, warm_cache, POOLS, method, launched) == "done\n"


@pytest.mark.parametrize("method", METHODS)
def test_data_loaders(method: str, tmp_path: Path, warm_cache: Path) -> None:
    pytest.importorskip("torch")
    assert run(tmp_path, warm_cache, LOADERS, method) == "done\n"


@pytest.mark.parametrize("starter", ["torchrun", "torch.multiprocessing"])
def test_ranks_compile_once(starter: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    if starter == "torchrun":
        start = ("-m", "torch.distributed.run", "--nproc-per-node=3", *RENDEZVOUS)
        printed = run(tmp_path, tmp_path / "cache", RANKS, start=start)
    else:
        printed = run(tmp_path, tmp_path / "cache", RANKS, str(tmp_path / "store"))
    assert "sum 9.0 compiles 1\n" in printed


@tilework.jit
def multiply(x, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@pytest.mark.usefixtures("fresh_cache")
def test_forks_while_kernels_run() -> None:
    """A forked child has neither the threads that run the grid nor those that launch."""

    def multiplied(size: int) -> bool:
        multiply[(tilework.cdiv(size, 256),)](x := np.ones(size, np.float32), size, 2.0, B=256)
        return bool((x == 2).all())

    assert multiplied(1_000_000)
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            multiplied(1_000_000)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(10):
        if (process := os.fork()) == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            os._exit(0 if multiplied(500_000) else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    over.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 10 and multiplied(1_000_000)


def test_a_gpu_after_a_fork_says_what_to_do(cuda: EmulatedCuda, tmp_path: Path) -> None:
    """NVIDIA's driver returns one error code for all calls of a forked child."""
    library = libcuda.library()
    with pytest.raises(libcuda.CudaError) as in_parent:
        library.check(3, " (cuCtxGetCurrent)")
    if (process := os.fork()) == 0:
        try:
            library.check(3, " (cuCtxGetCurrent)")
        except libcuda.CudaError as error:
            (tmp_path / "message").write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    assert "fork" not in str(in_parent.value)
    assert "This process was forked from one that had used the GPU" in (tmp_path / "message").read_text()
