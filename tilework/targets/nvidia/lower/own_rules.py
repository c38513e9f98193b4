"""The rules of NVIDIA's own ops, in front of the neutral ones."""

from tilework.targets.gpu.rules import NEUTRAL, Rules

NVIDIA = Rules(NEUTRAL)
lowers = NVIDIA.lowers
