"""Which arrays in memory a tensor map can describe.

    refused_stride(0, 64, 4)     # rows that are 256 bytes apart -> None
    refused_stride(0, -64, 4)    # "strides must be at least 0 and less than 2^40 bytes, stride 0 is -256 bytes"

The copy engine of a GPU takes any bits, and copies from and to anywhere if these break the rules.
"""

ALIGNMENT, LARGEST_STRIDE = 16, 1 << 40  # bytes


def refused_stride(axis: int, stride: int, itemsize: int) -> str | None:
    """Why an array of this stride, in elements, cannot be described; None if it can."""
    distance = stride * itemsize
    if distance % ALIGNMENT:
        return f"strides must be {ALIGNMENT}-byte aligned, stride {axis} is {distance} bytes"
    if not 0 <= distance < LARGEST_STRIDE:
        return f"strides must be at least 0 and less than 2^40 bytes, stride {axis} is {distance} bytes"
    return None
