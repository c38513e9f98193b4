"""Texts of dtypes, for tuning keys."""

from typing import Any

DTYPE_TEXTS: dict[Any, str] = {}  # the text of a NumPy dtype takes longer than the rest of a launch


def dtype_text(dtype: Any) -> str:
    """The text of a dtype, computed once."""
    text = DTYPE_TEXTS[dtype] = str(dtype)
    return text
