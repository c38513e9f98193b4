"""TTGIR to LLVM text, for NVIDIA GPUs: what they can do, and the rules of ops that only they have.

The rules of NVIDIA's own ops, in front of the neutral ones.
"""

from tilework.targets.gpu.lowering import NEUTRAL
from tilework.targets.llvm.rules import Rules

NVIDIA = Rules(NEUTRAL)
lowers = NVIDIA.lowers
