"""TTGIR to LLVM text for AMD GPUs: the table of AMD's rules, which take precedence over the neutral ones."""

from tilework.targets.gpu.lowering import NEUTRAL
from tilework.targets.llvm.rules import Rules

AMD = Rules(NEUTRAL)
lowers = AMD.lowers
