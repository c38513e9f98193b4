"""What only Triton's tools have."""

from tilework.tools import tensor_descriptor
from tilework.triton.tools import disasm
from tilework.triton.tools.linear_layout import LinearLayout

__all__ = ["LinearLayout", "disasm", "tensor_descriptor"]
