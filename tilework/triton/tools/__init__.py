"""What only Triton's tools have."""

from tilework.triton.tools import disasm
from tilework.triton.tools.linear_layout import LinearLayout

__all__ = ["LinearLayout", "disasm"]
