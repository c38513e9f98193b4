"""`constexpr_function` sees of values that are known at run time only: their types."""

from pathlib import Path

import pytest

from tests.frontend.rows import Refused, check, kernel
from tests.language.both_ways import check_both, interpreted

OF_TYPES = """
@tilework.constexpr_function
def size(x): return x.shape[0]

@tilework.constexpr_function
def is_float(x): return x.dtype.is_floating()

@tilework.constexpr_function
def paired(x, y): return x, y

@tilework.constexpr_function
def doubled(x): return x * 2

@tilework.constexpr_function
def sign(x): return 1 if x else 2
"""
AT_COMPILE_TIME = {
    "the shape": ("i = tl.arange(0, size(tl.arange(0, 4)))\ntl.store(out + i, i + size(i))", [4, 5, 6, 7, -1]),
    "the dtype": ("if is_float(x) and not is_float(n):\n    tl.store(out, 5)\nelse:\n    tl.store(n, n)", [5]),
    "in a tuple": ("t = paired(n, 4)\ntl.static_assert(paired(n, 4)[1] == 4)\ntl.store(out, t[0] + t[1])", [7]),
}  # fmt: skip


@pytest.mark.parametrize("row", AT_COMPILE_TIME)
def test_constexpr_functions_see_types(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *AT_COMPILE_TIME[row], header=OF_TYPES)


@pytest.mark.parametrize("call", ["doubled(n)", "sign(n)", "doubled(tl.arange(0, 4))"])
def test_constexpr_functions_compute_with_constants_only(tmp_path: Path, call: str) -> None:
    words = f"`{call.partition('(')[0]}` runs at compile time, but one argument is known only at run time: int32"
    check(tmp_path, f"y = {call}", Refused(TypeError, words), OF_TYPES)
    with pytest.raises(Exception, match=words):
        interpreted(kernel(tmp_path, f"y = {call}", OF_TYPES))
