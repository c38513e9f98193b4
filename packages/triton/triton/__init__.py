"""`import triton` gives tilework: see `tilework/as_triton.py`."""

from tilework.as_triton import replace_stand_in

replace_stand_in(__name__)
