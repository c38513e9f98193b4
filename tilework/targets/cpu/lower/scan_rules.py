"""`ttc.scan`: in the order that is fastest (`scan.py`), or in the one that is promised (`scan_tree.py`); threads share large ones."""

from xdsl.ir import Operation

from tilework.ir import ttc
from tilework.ir.reproducible import follows_tree
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.scan import Scan
from tilework.targets.cpu.lower.scan_tree import TreeScan
from tilework.targets.cpu.run.fork import FORK_WORK, share_op
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import constant


@lowers(ttc.ScanOp)
def lower_scan(low: Lowering, op: Operation) -> None:
    made = TreeScan if follows_tree(op) else Scan
    scan = made(low, op)
    size, step = scan.parts()
    if scan.lanes > 1 and size >= 2 * step and size % step == 0 and scan.cost() >= FORK_WORK:
        share_op(low, op, size, step, lambda first, last: made(low, op).emit(first, last))
    else:
        scan.emit(constant(i64, 0), constant(i64, size))
