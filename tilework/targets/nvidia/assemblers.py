"""Which ptxas assembles for a GPU. A kernel from the cache asks this, and needs nothing of what runs it (`cubin.py`)."""

from typing import Any

from tilework import knobs

BLACKWELL = 100  # from here on the knob `ptxas_blackwell` names the assembler


def assembler(capability: int) -> Any:
    """The ptxas for a GPU, or None; the emulator executes PTX."""
    if (knobs.runtime.device or "").startswith("emulator"):
        return None
    return knobs.nvidia.find_tool("ptxas_blackwell" if capability >= BLACKWELL else "ptxas")


def required_assembler(capability: int) -> Any:
    """The ptxas for a GPU; a RuntimeError says how to get one."""
    return knobs.nvidia.ptxas_blackwell if capability >= BLACKWELL else knobs.nvidia.ptxas
