"""Arithmetic that host code needs to size blocks and grids; kernels may use it on compile-time values."""

from tilework.language.function import constexpr_function


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """The quotient, rounded up: ``cdiv(10, 4) == 3``, the number of programs for 10 elements in blocks of 4.

    Example:
        assert tilework.cdiv(10, 4) == 3
    """
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not less than `n`: ``next_power_of_2(781) == 1024``, a block that holds a row of 781.

    Example:
        assert [tilework.next_power_of_2(n) for n in (1, 3, 64, 781)] == [1, 4, 64, 1024]
    """
    n -= 1
    for shift in (1, 2, 4, 8, 16, 32):  # sets all bits below the highest one; torch.compile keeps it symbolic
        n |= n >> shift
    return n + 1
