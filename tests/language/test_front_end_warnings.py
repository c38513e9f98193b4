"""Warnings of the frontend: their words, their lines and their categories in 3.6.0 and 3.7.1."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.compiler
from tests.frontend.rows import arguments, kernel
from tilework import knobs

WARNINGS = {
    "make_block_ptr": ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))",
                       "tl.make_block_ptr is deprecated. Use TensorDescriptor or tl.make_tensor_descriptor instead."),
    "max": ("max(tl.arange(0, 4), n)",
            "builtin max on non-scalar tensor values is deprecated, use tl.maximum instead"),
    "min": ("min(tl.arange(0, 4), n)",
            "builtin min on non-scalar tensor values is deprecated, use tl.minimum instead"),
    "propagate_nan": ("max(x, 1.0, propagate_nan=tl.PropagateNan.ALL)",
                      "passing propagate_nan to builtin max is deprecated, use tl.maximum instead"),
}  # fmt: skip


ALWAYS = {
    "where": ("tl.where(n, n, 0)", "tl.where with a non-boolean condition is deprecated and will error out in a"),
    "view": ("tl.view(tl.arange(0, 4), 2, 2)", "view is deprecated, please use reshape with can_reorder being true."),
    "shift": ("n << 32", "shifting int32 by 32 gives an undefined value: it has 32 bits"),
    "and": ("(tl.arange(0, 4) > n) and (tl.arange(0, 4) > n)",
            "logical operators `and` and `or` are deprecated for non-scalar tensors; please use `&` or `|` instead"),
    "condition": ("1 if tl.full((1,), 1, tl.int32) > n else 2",
                  "If conditional called with multidimensional Tensor instead of scalar"),
}  # fmt: skip


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("row", ALWAYS)
def test_warning_of_all_versions_at_the_users_line(tmp_path: Path, row: str, interpret: bool) -> None:
    body, words = ALWAYS[row]
    fn = kernel(tmp_path, f"tl.store(out, 1)\ny = {body}")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tilework.jit(fn.fn, interpret=interpret)[(1,)](np.zeros(8, np.int32), *arguments(), C=4)
    (found,) = [one for one in seen if words in str(one.message)]
    assert (found.filename, found.lineno) == (fn.fn.__code__.co_filename, fn.fn.__code__.co_firstlineno + 3)
    assert found.category is UserWarning


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
@pytest.mark.parametrize("row", WARNINGS)
def test_warning_at_the_users_line(tmp_path: Path, row: str, version: str, interpret: bool) -> None:
    body, words = WARNINGS[row]
    fn = kernel(tmp_path, f"tl.store(out, 1)\ny = {body}\ny = {body}")
    out, line = np.zeros(8, np.int32), fn.fn.__code__.co_firstlineno + 3
    with knobs.language.scope() as language, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        language.triton_version = version
        tilework.jit(fn.fn, interpret=interpret)[(1,)](out, *arguments(), C=4)
    found = [one for one in seen if one.filename == fn.fn.__code__.co_filename]
    if version == "3.6.0" and row == "make_block_ptr":
        assert not found
        return
    assert [str(one.message) for one in found] == [words] * 2
    assert [one.lineno for one in found] == [line, line + 1]
    assert {one.category for one in found} == {DeprecationWarning if version == "3.6.0" else UserWarning}


def test_a_warning_is_shown_once_for_all_specialisations(tmp_path: Path) -> None:
    body, words = WARNINGS["make_block_ptr"]
    fn = tilework.jit(kernel(tmp_path, f"tl.store(out, 1)\ny = {body}").fn)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for constant in (4, 8, 16):
            fn[(1,)](np.zeros(8, np.int32), *arguments(), C=constant)
    assert [str(one.message) for one in seen if one.filename == fn.fn.__code__.co_filename] == [words]
