"""What Triton's native module has for AMD GPUs: the passes of its backend.

pm = ir.pass_manager(module.context)
amd.passes.ttgpuir.add_accelerate_matmul(pm, "gfx942", 16, 1)
"""

from types import SimpleNamespace

from tilework.triton._C.libtriton import passes as table
from tilework.triton._C.libtriton.nvidia import load_dialects

__all__ = ["TARGET_TRIPLE", "load_dialects", "passes"]

TARGET_TRIPLE = "amdgcn-amd-amdhsa"

passes = SimpleNamespace(ttgpuir=table.group(table.AMD_TTGPUIR))
