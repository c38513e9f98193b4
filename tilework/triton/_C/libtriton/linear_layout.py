"""Where Triton's native module has its linear layouts."""

from tilework.triton.tools.linear_layout import LinearLayout

__all__ = ["LinearLayout"]
