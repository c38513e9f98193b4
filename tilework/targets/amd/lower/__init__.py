"""TTGIR to LLVM text for AMD GPUs.

The rules of AMD's own ops, in front of the neutral ones.
"""

from tilework.targets.gpu.lowering import NEUTRAL
from tilework.targets.llvm.rules import Rules

AMD = Rules(NEUTRAL)
lowers = AMD.lowers
