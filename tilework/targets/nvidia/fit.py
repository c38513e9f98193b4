"""Reject kernels that do not fit a GPU at TTGIR, before LLVM and ptxas, which take most of the compile time.

    check_fit(module, options, target, properties)        # DoesNotFit: shared memory, threads or registers

The register count is a lower bound: the accumulators that a loop carries are all live at its end, and those that do not
fit are spilled in every iteration.
"""

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilework.analysis.allocation import allocations
from tilework.errors import DoesNotFit
from tilework.ir.encodings import distributed_of, layout_of
from tilework.ir.functions import ops_in_order
from tilework.ir.scf import ForOp
from tilework.ir.tt import DotOp
from tilework.ir.ttg import WarpSpecializeOp
from tilework.ir.types import bit_width, element_type, is_float
from tilework.layouts.encodings import NvidiaMma
from tilework.target import Feature, Target
from tilework.targets.options import CompileOptions
from tilework.transforms.ttg.allocate_resources import extra_warps

MOST_THREADS = 1024
MOST_REGISTERS = 255  # of a thread, 32 bits each


def check_fit(module: ModuleOp, options: CompileOptions, target: Target, properties: Mapping[str, int]) -> None:
    """Raise DoesNotFit for a kernel that a GPU with these `properties` cannot run, or only with spills."""
    special = partitions(module)
    threads = (options.num_warps + extra_warps(special)) * target.warp_size
    share = properties.get("max_num_regs", 1 << 16) // threads if not special else MOST_REGISTERS  # groups trade theirs
    registers = min(options.maxnreg or MOST_REGISTERS, share, MOST_REGISTERS)
    shared = max(shared_bytes(module, target), options.min_shared_mem or 0)
    carried = max((accumulators(op) for op in ops_in_order(*module.regions) if isinstance(op, ForOp)), default=0)
    for needed, limit, name in (
        (threads, MOST_THREADS, "threads"),
        (shared, properties.get("max_shared_mem", shared), "shared memory"),
        (carried, registers, "registers"),
    ):
        if needed > limit:
            raise DoesNotFit(needed, limit, name)


def shared_bytes(module: ModuleOp, target: Target) -> int:
    return max((found.size for found in allocations(module, target)), default=0)


def partitions(module: ModuleOp) -> list[WarpSpecializeOp]:
    return [op for op in ops_in_order(*module.regions) if isinstance(op, WarpSpecializeOp)]


def may_have_partitions(module: ModuleOp, target: Target) -> bool:
    """Return True if loops of a kernel may be warp specialized: the target has WGMMA and the kernel a dot."""
    return Feature.WGMMA in target.features and any(type(op) is DotOp for op in ops_in_order(*module.regions))


def partitions_fit(module: ModuleOp, target: Target) -> bool:
    """Return True if TTGIR has no partitions, or their buffers fit: partitions need at the same time what a loop run by
    all warps needs one after the other.
    """
    return not partitions(module) or shared_bytes(module, target) <= target.limits.shared_bytes


def accumulators(loop: ForOp) -> int:
    """Return the registers per thread of the accumulators that a loop carries."""
    return sum(registers_of(arg.type) for arg in loop.body.block.args[1:])


def registers_of(type: Attribute) -> int:
    """Return the registers of an MMA accumulator; 0 for other values, which may be rematerialised."""
    if not isinstance(distributed_of(type), NvidiaMma) or not is_float(element_type(type)):
        return 0
    return layout_of(type).in_size("register") * bit_width(element_type(type)) // 32
