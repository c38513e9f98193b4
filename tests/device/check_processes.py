"""Kernels of several processes on a machine with one GPU: what docs/multi-process.md says of GPUs and of nccl.

python -m tests.device.check_processes
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.device.table import check, expect, run
from tests.installed_example import ROOT

KERNEL = """
import os, sys
import torch
import torch.distributed as dist
import tilework
import tilework.language as tl
from tilework import metrics

@tilework.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

def scaled(x, factor=2.0):
    scale[(tilework.cdiv(x.numel(), 256),)](x, x.numel(), factor, BLOCK=256)
    return x

def pool_worker(number):
    return scaled(torch.ones(1000, device="cuda")).sum().item()
"""
NCCL = """
from kernels import *

if __name__ == "__main__":
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(20):
        scaled(x)
        dist.all_reduce(x)
        scaled(x, 0.5)
    assert (x == 1).all()
    dist.barrier()
    dist.destroy_process_group()
    print("right")
"""
RANKS = """
from kernels import *

if __name__ == "__main__":
    dist.init_process_group("gloo")
    dist.barrier()
    x = scaled(torch.full((1000,), dist.get_rank() + 1.0, device="cuda")).cpu()
    dist.all_reduce(x)
    size = dist.get_world_size()
    assert (x == size * (size + 1)).all()
    compiled = torch.tensor(metrics.total("compiles"))
    dist.all_reduce(compiled)
    if dist.get_rank() == 0:
        print(int(compiled), "compilation of", size, "ranks")
    dist.destroy_process_group()
"""
FORKED = """
import multiprocessing
from kernels import *

def launch(pipe):
    try:
        pipe.send(f"right {pool_worker(0)}")
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")

if __name__ == "__main__":
    scaled(torch.ones(1000, device="cuda"))
    torch.cuda.synchronize()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=launch, args=(theirs,))
    child.start()
    print(ours.recv().splitlines()[0])
    child.join()
    assert pool_worker(0) == 2000
"""
POOLS = """
import multiprocessing
from kernels import *

if __name__ == "__main__":
    scaled(torch.ones(1000, device="cuda"))
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            assert pool.map(pool_worker, range(6)) == [2000.0] * 6, method
    print("right")
"""
LOADER = """
from kernels import *

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return scaled(torch.full((64,), float(index)))  # on the CPU

if __name__ == "__main__":
    scaled(torch.ones(1000, device="cuda"))
    for method in ("fork", "spawn", "forkserver"):
        loader = torch.utils.data.DataLoader(Rows(), 4, num_workers=2, multiprocessing_context=method)
        found = torch.cat([batch for batch in loader])
        assert (found == 2 * torch.arange(8.0)[:, None]).all(), method
    print("right")
"""


def program(text: str, *command: str) -> str:
    """The output of a program that starts with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernels.py").write_text(KERNEL)
        script = Path(folder, "script.py")
        script.write_text(text)
        done = subprocess.run(
            [sys.executable, *command, str(script)], capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
            env={**os.environ, "TRITON_CACHE_DIR": str(Path(folder, "cache")),
                 "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        )  # fmt: skip
    expect(done.returncode, 0) if done.returncode == 0 else expect(done.stderr[-1500:], "")
    return done.stdout.strip()


def torchrun(ranks: int) -> tuple[str, ...]:
    """The command that starts so many ranks on this machine."""
    return ("-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--rdzv-backend=c10d",
            "--rdzv-endpoint=localhost:0")  # fmt: skip


@check
def nccl_on_one_gpu() -> str:
    expect(program(NCCL, *torchrun(1)), "right")
    return "kernels between all_reduce calls on one stream"


@check
def ranks_that_share_a_gpu() -> str:
    said = program(RANKS, *torchrun(8))
    expect(said, "1 compilation of 8 ranks")
    return said


@check
def a_fork_after_the_gpu_was_used() -> str:
    said = program(FORKED)
    expect("fork" in said and "Error" in said, True)
    return said[:120]


@check
def pools_beside_a_process_that_uses_the_gpu() -> str:
    expect(program(POOLS), "right")
    return "spawn, forkserver"


@check
def loaders_with_kernels_on_the_cpu() -> str:
    expect(program(LOADER), "right")
    return "fork, spawn, forkserver"


if __name__ == "__main__":
    sys.exit(min(run(sys.argv[1:], "processes"), 1))
