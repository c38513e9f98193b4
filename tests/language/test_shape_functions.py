"""`cat` in order, `squeeze`, `unsqueeze`, `to_tensor` and the words of `permute` (3.7.1)."""

from pathlib import Path

import numpy as np
import pytest

import tilework.language as tl
from tests.frontend.rows import Refused, arguments, kernel
from tests.frontend.run import text
from tests.language.both_ways import call_both, check_both
from tilework import knobs
from tilework.errors import CompileTimeAssertionFailure
from tilework.testing import call

GRID = "x = tl.reshape(tl.arange(0, 8), (2, 4))\ny = x + 10\n"
UNEQUAL = "Cannot make_shape_compatible: incompatible dimensions at index 1: "
SHAPED = {
    "squeeze": (GRID + "y = tl.squeeze(x[:, None, :], 1)\ntl.static_assert(y.shape == [2, 4])\n"
                "tl.store(out + tl.arange(0, 8), y.ravel())", [*range(8)]),
    "squeeze, negative": (GRID + "y = tl.squeeze(x[:, :, None], -1)\ntl.static_assert(y.shape == [2, 4])\n"
                          "tl.store(out + tl.arange(0, 8), y.ravel())", [*range(8)]),
    "squeeze, more elements": (GRID + "tl.squeeze(x, 0)", Refused(CompileTimeAssertionFailure, "squeeze")),
    "squeeze is no method": (GRID + "x.squeeze(0)", Refused(AttributeError, "squeeze")),
    "unsqueeze": (GRID + "tl.static_assert(tl.unsqueeze(x, 0).shape == [1, 2, 4])\n"
                  "tl.static_assert(tl.unsqueeze(x, 2).shape == [2, 4, 1])\n"
                  "tl.store(out + tl.arange(0, 8), tl.unsqueeze(x, 1).ravel())", [*range(8)]),
    "unsqueeze, negative": (GRID + "tl.static_assert(tl.unsqueeze(x, -1).shape == [2, 1, 4])", []),
    "unsqueeze is no method": (GRID + "x.unsqueeze(0)", Refused(AttributeError, "unsqueeze")),
    "to_tensor": ("y = tl.to_tensor(5)\ntl.static_assert(tl.to_tensor(n) is n)\ntl.static_assert(y.dtype == tl.int32)\n"
                  "tl.static_assert(tl.to_tensor(0.5).dtype == tl.float32)\ntl.store(out, y)", [5]),
    "cat, ranks": (GRID + "tl.cat(x, tl.arange(0, 4))",
                   Refused(AssertionError, "tensors must have the same rank, got 2 and 1")),
    "cat, sizes outside": (GRID + "tl.cat(x, tl.zeros((4, 2), tl.int32))",
                           Refused(AssertionError, "tensor dims must match except in the concat dimension 0, got [2")),
    "cat, sizes along dim": (GRID + "tl.cat(x, tl.zeros((2, 8), tl.int32), dim=1)",
                             Refused(ValueError, UNEQUAL + "4 and 8")),
    "cat, size 1": (GRID + "tl.cat(x, tl.zeros((2, 1), tl.int32), dim=1)",
                    Refused(ValueError, UNEQUAL + "4 and 1")),
    "cat, dim": (GRID + "tl.cat(x, x, dim=2)", Refused(ValueError, "invalid axis 2. Expected -2 <= axis < 2")),
    "cat of scalars": ("tl.cat(n, n)", Refused(ValueError, "invalid axis 0. Expected 0 <= axis < 0")),
    "permute": (GRID + "tl.permute(x, (1, 0, 2))",
                Refused(ValueError, "permute dims must have the same length as input shape, got 2 and 3")),
}  # fmt: skip


@pytest.mark.parametrize("row", SHAPED)
def test_shape(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *SHAPED[row])


def test_unsqueeze_of_triton_3_8(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        check_both(tmp_path, GRID + "tl.static_assert(tl.unsqueeze(x, -1).shape == [2, 4, 1])", [])


@pytest.mark.parametrize("can_reorder", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((4,), 0), ((2, 4), 0), ((2, 4), 1), ((2, 4), -1), ((2, 1, 4), -2),
                                            ((2, 2, 4), 0), ((1, 2, 2), -3)])  # fmt: skip
def test_cat_keeps_the_order(shape: tuple[int, ...], dim: int, can_reorder: bool) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    wanted = np.concatenate([x, -x], dim)
    if not can_reorder:
        for interpret in (False, True):
            np.testing.assert_array_equal(call_both(tl.cat, interpret, x, -x, dim=dim), wanted)
    elif len(shape) == 1:
        assert sorted(call(tl.cat, x, -x, can_reorder=True)) == sorted(wanted)


def test_text_of_cat(tmp_path: Path) -> None:
    fn = kernel(tmp_path, "x = tl.zeros((4, 8), tl.int32)\nc = tl.cat(x, x, dim=1)")
    module = text(fn, np.zeros(8, np.int32), *arguments(), C=4)
    assert " = tt.join %x_0, %x_0 : tensor<4x8xi32> -> tensor<4x8x2xi32>" in module
    assert "{order = array<i32: 0, 2, 1>} : tensor<4x8x2xi32> -> tensor<4x2x8xi32>" in module
    assert ": tensor<4x2x8xi32> -> tensor<4x16xi32>" in module
