"""The second assembly of a kernel for which ptxas's first answer is poor, and the choice between the two.

    variants = variants_of(ptx, target_of("sm90"), None)
    answer = Answer(registers=74, spilled=0)
    for text, remark in variants.others(answer): ...       # assembled in turn, until one costs less and does not spill
    variants.cost(answer)                                  # cycles of a block (`analysis/cost.py`)

| answer | other variant |
|---|---|
| spills below the registers that a thread may have: ptxas sometimes gives up, at 32 registers | the limit named |
| few warps on a multiprocessor, for its registers | a limit with which another block fits |
| fewer registers than loads fill and ptxas aims at, where more would not cost a block | that limit named |
| the same, or spills | instructions in another order |

All but the first are for kernels without tensor cores and copies, which hide latency with few warps. The other order is
that of the rules (`gpu/codegen.order_by_use`). PTX that is not ours, and kernels whose registers the user limits, are
assembled once.
"""

import re
from collections.abc import Callable, Iterator

from tilework.analysis.cost import OTHERS, assembled_cost, registers_for_another_block, registers_for_blocks
from tilework.light_dataclass import light_dataclass
from tilework.target import Target
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.cubin import Answer

PIPELINED = ("mma.sync", "wgmma", "cp.async")  # instructions of kernels that overlap copies, dots and arithmetic
MOST_REGISTERS = 255  # of a thread
LOAD = re.compile(r"\bld\.global[.\w:]*?(?:\.v([248]))?\.[bsuf](\d+)\s")
ENDS = re.compile(r"\bst\.|\bbar\.|\bbra\b|\bshfl\.|^\$", re.MULTILINE)  # of a run of loads


@light_dataclass
class Variants:
    """The variants of one kernel: its PTX, its size, and the PTX of another order of its instructions."""

    ptx: str
    target: Target
    shared: int
    warps: int
    loaded: int  # registers that a run of loads fills
    reordered: Callable[[], str] | None

    def cost(self, answer: Answer) -> float:
        return assembled_cost(self.target, *answer, self.shared, self.warps, self.loaded)

    def others(self, answer: Answer) -> Iterator[tuple[str, str]]:
        """Yield variants that may cost less than the one with this answer, each with a remark."""
        size = self.shared, self.warps
        if self.cost(answer) <= assembled_cost(self.target, 1, 0, *size):
            return
        most = min(MOST_REGISTERS, self.target.limits.registers // (self.target.warp_size * self.warps) // 8 * 8)
        if answer.spilled and answer.registers < most:
            if self.cost(Answer(answer.registers + 8, 0)) < self.cost(answer):
                yield ptx_text.with_maxnreg(self.ptx, most), f"up to {most} registers instead of spills"
            return
        if any(name in self.ptx for name in PIPELINED):
            return
        if not answer.spilled:
            fewer = registers_for_another_block(self.target, answer.registers, *size)
            aim = registers_for_blocks(self.target, 1, *size)  # ptxas takes so many by itself
            more = min(MOST_REGISTERS, registers_for_blocks(self.target, answer.registers, *size))
            if fewer is not None:
                yield ptx_text.with_maxnreg(self.ptx, fewer), f"at most {fewer} registers, for another block"
            elif answer.registers < self.loaded + OTHERS <= more and more > aim:
                yield ptx_text.with_maxnreg(self.ptx, more), f"up to {more} registers, for all loads at once"
        if self.reordered is not None and (text := self.reordered()) != self.ptx:
            yield text, "instructions in another order"


def variants_of(ptx: str, target: Target, reordered: Callable[[], str] | None) -> Variants | None:
    """Return the variants of the only kernel of `ptx`; None if it is assembled once."""
    facts, kernels = ptx_text.metadata(ptx), list(ptx_text.entries(ptx).values())
    if not facts or len(kernels) != 1 or target.rates is None:
        return None
    directives = kernels[0]
    if "reqntid" not in directives or "maxnreg" in directives or "minnctapersm" in directives:
        return None
    warps = directives["reqntid"][0] // target.warp_size
    return Variants(ptx, target, facts.get("shared", 0), warps, loaded_registers(ptx), reordered)


def loaded_registers(ptx: str) -> int:
    """Return the most registers that loads fill without a store, a branch or an exchange between them."""
    return max(
        sum(-(-int(count or 1) * int(bits) // 32) for count, bits in LOAD.findall(run)) for run in ENDS.split(ptx)
    )
