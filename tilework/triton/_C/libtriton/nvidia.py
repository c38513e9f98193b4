"""What Triton's native module has for NVIDIA GPUs: matrix products by cuBLAS, and the passes of its backend.

workspace = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
cublas.CublasLt(workspace).matmul(a, b, c)             # c = a @ b.T
"""

from types import SimpleNamespace
from typing import Any

from tilework.triton._C.libtriton import cublas
from tilework.triton._C.libtriton import passes as table

__all__ = ["cublas", "has_extern_deps", "load_dialects", "passes"]

passes = SimpleNamespace(
    ttnvgpuir=table.group(table.TTNVGPUIR), ttgpuir=table.group(table.NVIDIA_TTGPUIR), hopper=table.group(table.HOPPER)
)


def load_dialects(context: Any) -> None:
    """Nothing to do: every dialect is there."""


def has_extern_deps(mod: Any) -> bool:
    """Whether an LLVM module calls functions that it does not have."""
    return any(each.is_declaration() and not each.name.startswith("llvm.") for each in mod.get_functions())
