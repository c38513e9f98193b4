"""Shapes: legal shapes, broadcasting, indexing, each shape function.

A case is named after its row; `rows.py` says what a body and an expectation are.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import Refused, check, kernel
from tests.frontend.run import error, innermost, result
from tilework.errors import CompileTimeAssertionFailure, UnsupportedLanguageConstruct

LEGAL = {
    "shape, a dimension known at run time": ("tl.zeros((4, n), tl.int32)", Refused(TypeError, "Shape element 1")),
    "shape, a float dimension": ("tl.zeros((4.0,), tl.int32)", Refused(TypeError, "Shape element 0")),
    "shape, no power of two": (
        "tl.zeros((12, 4), tl.int32)",
        Refused(ValueError, "Shape element 0 must be a power of 2", whole=True),
    ),
    "shape, second element": (
        "tl.broadcast_to(n, (4, 5))",
        Refused(ValueError, "Shape element 1 must be a power of 2", whole=True),
    ),
    "shape, zero": (
        "tl.zeros((0,), tl.int32)",
        Refused(ValueError, "Shape element 0 must be positive, got 0", whole=True),
    ),
    "shape, most elements": ("tl.static_assert(tl.zeros((1024, 1024), tl.int8).numel == 1048576)", []),
    "shape, too many elements": ("tl.zeros((2048, 1024), tl.int8)", Refused(ValueError, "2097152")),
    "shape, too many elements, the limit": ("tl.zeros((2048, 1024), tl.int8)", Refused(ValueError, "1048576")),
    "shape, too many by broadcasting": (
        "tl.arange(0, 2048)[:, None] + tl.arange(0, 1024)[None, :]",
        Refused(ValueError, "1048576"),
    ),
    "shape, arange": ("tl.arange(0, 12)", Refused(ValueError, "arange's range must be a power of 2", whole=True)),
    "shape, nine dimensions": (
        """
        y = tl.arange(0, 8).reshape(1, 2, 1, 2, 1, 2, 1, 1, 1)
        tl.static_assert(len(y.shape) == 9)
        tl.store(out + tl.arange(0, 4), tl.sum(y, 1).reshape(4))
        """,
        [4, 6, 8, 10],
    ),
    "shape, a tuple": ("tl.static_assert(tl.zeros((2, 4), tl.int8).shape == (2, 4))", []),
    "shape, a list": ("tl.static_assert(tl.zeros([2, C], tl.int8).shape == (2, 4))", []),
    "shape, a constexpr tuple": (
        "S: tl.constexpr = (2, 4)\ntl.static_assert(tl.zeros(S, tl.int8).shape == (2, 4))",
        [],
    ),
    "shape, a shape": (
        "y = tl.zeros((2, 4), tl.int8)\ntl.static_assert(tl.zeros(y.shape, tl.int8).shape == y.shape)",
        [],
    ),
    "shape, separate arguments": (
        """
        y = tl.arange(0, 8)
        tl.static_assert(y.reshape(2, C).shape == (2, 4) and y.reshape((2, C)).shape == [2, 4])
        tl.static_assert(tl.broadcast_to(n, 2, 4).shape == (2, 4) and y.reshape(2, 4).trans(1, 0).shape == (4, 2))
        tl.static_assert(y.reshape(2, 4).permute((1, 0)).shape == (4, 2) and tl.view(y, 2, 4).shape == (2, 4))
        """,
        [],
    ),
}

BROADCAST = {
    "broadcasting, scalar and block": ("tl.store(out + tl.arange(0, 4), n + tl.arange(0, 4))", [3, 4, 5, 6]),
    "broadcasting, ranks": (
        """
        y = tl.arange(0, 4).reshape(2, 2) * 10 + tl.arange(0, 2)
        tl.store(out + tl.arange(0, 4), y.reshape(4))
        """,
        [0, 11, 20, 31],
    ),
    "broadcasting, one": (
        """
        y = tl.arange(0, 2)[:, None] * 10 + tl.arange(0, 4)[None, :]
        tl.store(out + tl.arange(0, 8), y.reshape(8))
        """,
        [0, 1, 2, 3, 10, 11, 12, 13],
    ),
    "broadcasting, sizes differ": ("tl.arange(0, 4) + tl.arange(0, 8)", Refused(ValueError, "index 0: 4 and 8")),
    "broadcasting, inner sizes differ": (
        "tl.zeros((2, 4), tl.int32) + tl.zeros((2, 8), tl.int32)",
        Refused(ValueError, "index 1: 4 and 8"),
    ),
    "broadcasting, scalars": ("y = n + n\ntl.static_assert(y.shape == ())\ntl.store(out, y)", [6]),
    "broadcasting, three operands": (
        """
        y = tl.where(tl.arange(0, 2)[:, None] > 0, tl.arange(0, 4)[None, :], n)
        tl.static_assert(y.shape == (2, 4))
        tl.store(out + tl.arange(0, 8), y.reshape(8))
        """,
        [3, 3, 3, 3, 0, 1, 2, 3],
    ),
    "broadcasting, three operands of a load": (
        """
        y = tl.load(p + tl.arange(0, 2)[:, None, None], tl.arange(0, 2)[:, None] > 0, x)
        tl.static_assert(y.shape == (2, 2, 1))
        tl.store(out + tl.arange(0, 4), y.reshape(4).to(tl.int32))
        """,
        [1, 0, 1, 1],
    ),
}

INDEXING = {
    "indexing, None and colon": ("""
        y = tl.arange(0, 8).reshape(2, 4)
        tl.static_assert(y[:, None, :].shape == (2, 1, 4) and y[None].shape == (1, 2, 4))
        tl.static_assert(y[:, :, None].shape == (2, 4, 1))
        """, []),
    "indexing, slices of None": ("""
        y = tl.arange(0, 8)
        tl.static_assert(y[None:].shape == [8] and y[:None].shape == [8] and y[::None, None].shape == [8, 1])
        """, []),
    "indexing, trailing colons": ("tl.static_assert(tl.arange(0, 8)[:, :, :].shape == [8])", []),
    "indexing, scalars": ("""
        tl.static_assert(n[None].shape == [1] and n[None, None].shape == [1, 1])
        tl.store(out + tl.arange(0, 1), n[None])
        """, [3]),
    "indexing, pointers": ("""
        tl.static_assert(p[None, :].shape == [1] and p[None, :].dtype == p.dtype)
        q = (p + tl.arange(0, 4))[:, None]
        tl.store(out + tl.arange(0, 4)[:, None], tl.load(q).to(tl.int32))
        """, [0, 1, 2, 3]),
    **{
        f"indexing, no index {index}": (f"tl.arange(0, 8)[{index}]", Refused(ValueError, "unsupported tensor index"))
        for index in ("0", "-1", "n", "1:", "0:4", "::2", "...", "tl.arange(0, 8)", "tl.arange(0, 8) > 3", ":, 0")
    },
    "indexing, item assignment": ("y = tl.arange(0, 8)\ny[0] = 1", Refused(UnsupportedLanguageConstruct, "y[0]")),
}  # fmt: skip

FUNCTIONS = {
    "broadcast": ("""
        a, b = tl.broadcast(tl.arange(0, 4)[None, :], tl.arange(0, 2)[:, None])
        tl.static_assert(a.shape == (2, 4) and b.shape == (2, 4))
        tl.store(out + tl.arange(0, 8), (a * 10 + b).reshape(8))
        """, [0, 10, 20, 30, 1, 11, 21, 31]),
    "broadcast_to a scalar": ("tl.store(out + tl.arange(0, 4), tl.broadcast_to(n, [4]))", [3] * 4),
    "broadcast_to a block": ("tl.store(out + tl.arange(0, 8), tl.arange(0, 2)[:, None].broadcast_to(2, 4).reshape(8))",
                                 [0, 0, 0, 0, 1, 1, 1, 1]),
    "broadcast_to ranks": ("tl.arange(0, 4).broadcast_to(2, 4)", Refused(ValueError, "rank mismatch")),
    "broadcast_to sizes": ("tl.arange(0, 4).broadcast_to(8)", Refused(ValueError, "(8)")),
    "expand_dims sequence": (
        "tl.static_assert(tl.expand_dims(tl.arange(0, 4), (0, -1, 2)).shape == (1, 4, 1, 1))", []),
    "expand_dims negatives count from the result": (
        "tl.static_assert(tl.expand_dims(tl.zeros((2, 4), tl.int8), (-1, -3)).shape == (2, 1, 4, 1))", []),
    "expand_dims of a scalar": (
        "tl.static_assert(tl.expand_dims(n, 0).shape == [1] and n.expand_dims((0, 1)).shape == [1, 1])", []),
    "expand_dims of a constexpr": (
        "tl.static_assert(tl.expand_dims(C, 0).shape == [1] and tl.expand_dims(7, -1).dtype == tl.int32)", []),
    "expand_dims axis": ("tl.expand_dims(tl.arange(0, 4), 2)", Refused(ValueError, "invalid axis 2")),
    "expand_dims negative axis": ("tl.expand_dims(tl.arange(0, 4), -3)", Refused(ValueError, "invalid axis -3")),
    "expand_dims duplicates": (
        "tl.expand_dims(tl.arange(0, 4), (0, -3))", Refused(ValueError, "duplicate axes, normalized axes = [0, 0]")),
    "reshape order": (
        "tl.store(out + tl.arange(0, 8), (tl.arange(0, 8).reshape(2, 4) * tl.arange(1, 3)[:, None]).reshape(8))",
        [0, 1, 2, 3, 8, 10, 12, 14]),
    "reshape can_reorder": ("tl.reshape(tl.arange(0, 8), (4, 2), can_reorder=True)", "allow_reorder"),
    "reshape to a scalar": ("y = tl.full((1, 1), n, tl.int32).reshape(())\n"
                                "tl.static_assert(y.shape == ())\ntl.store(out, y)", [3]),
    "reshape of a scalar": ("tl.store(out + tl.arange(0, 1), n.reshape(1))", [3]),
    "reshape -1": ("tl.arange(0, 8).reshape(2, -1)", Refused(ValueError, "Shape element 1 must be positive, got -1")),
    "reshape count": ("tl.arange(0, 8).reshape(2, 2)", Refused(ValueError, "reshape")),
    "ravel": ("tl.store(out + tl.arange(0, 8), tl.ravel(tl.arange(0, 8).reshape(2, 4)))", list(range(8))),
    "ravel can_reorder": ("tl.arange(0, 8).reshape(2, 4).ravel(can_reorder=True)", "allow_reorder"),
    "item": ("tl.store(out, tl.full((1, 1), n, tl.int32).item() + n.item())", [6]),
    "item of several": ("tl.arange(0, 4).item()", Refused(AssertionError, "4")),
    "permute": ("tl.store(out + tl.arange(0, 8), tl.arange(0, 8).reshape(2, 2, 2).permute(2, 0, 1).reshape(8))",
                    np.arange(8).reshape(2, 2, 2).transpose(2, 0, 1).ravel().tolist()),
    "permute length": ("tl.zeros((2, 4), tl.int8).permute(0)", Refused(ValueError, "permut")),
    "permute twice": ("tl.zeros((2, 4), tl.int8).permute(1, 1)", Refused(ValueError, "permut")),
    "permute negative": ("tl.zeros((2, 4), tl.int8).permute(-1, 0)", Refused(ValueError, "permut")),
    "trans": ("tl.static_assert(tl.zeros((2, 4, 8), tl.int8).trans().shape == (2, 8, 4))", []),
    "trans dims": ("tl.static_assert(tl.trans(tl.zeros((2, 4, 8), tl.int8), 2, 0, 1).shape == (8, 2, 4))", []),
    "trans of a row": ("tl.trans(tl.arange(0, 4))", Refused(ValueError, "")),
    "trans of a row with dims": ("tl.store(out + tl.arange(0, 4), tl.trans(tl.arange(0, 4), 0))", [0, 1, 2, 3]),
    "T": ("tl.store(out + tl.arange(0, 4), tl.arange(0, 4).reshape(2, 2).T.reshape(4))", [0, 2, 1, 3]),
    "T of one dimension": ("tl.arange(0, 4).T", Refused(ValueError, "2-D")),
    "T of three dimensions": ("tl.zeros((2, 4, 8), tl.int8).T", Refused(ValueError, "2-D")),
    "cat": ("""
        y = tl.cat(tl.arange(0, 4), tl.arange(4, 8), can_reorder=True)
        tl.static_assert(y.shape == [8])
        tl.store(out, tl.sum(y))
        """, [28]),
    "cat in order": ("tl.store(out + tl.arange(0, 8), tl.cat(tl.arange(0, 4), tl.arange(4, 8)))", list(range(8))),
    "cat of rows": ("""
        y = tl.arange(0, 4).reshape(2, 2)
        tl.store(out + tl.arange(0, 8), tl.cat(y, y + 4, dim=1).reshape(8))
        """, [0, 1, 4, 5, 2, 3, 6, 7]),
    "cat of columns": ("""
        y = tl.arange(0, 4).reshape(2, 2)
        tl.store(out + tl.arange(0, 8), tl.cat(y, y + 4, dim=-2).reshape(8))
        """, list(range(8))),
    "cat of two ranks": (
        "tl.cat(tl.arange(0, 4), tl.zeros((4, 1), tl.int32))", Refused(AssertionError, "same rank, got 1 and 2")),
    "cat of other sizes": (
        "tl.cat(tl.zeros((2, 4), tl.int8), tl.zeros((2, 8), tl.int8))",
        Refused(AssertionError, "must match except in the concat dimension 0")),
    "cat of longer blocks": (
        "tl.cat(tl.zeros((2, 8), tl.int8), tl.zeros((2, 16), tl.int8), dim=1)",
        Refused(ValueError, "Cannot make_shape_compatible: incompatible dimensions at index 1: 8 and 16")),
    "cat of a single element": (
        "tl.cat(tl.zeros((8,), tl.int8), tl.zeros((1,), tl.int8))",
        Refused(ValueError, "dimensions at index 0: 8 and 1")),
    "cat of scalars": ("tl.cat(n, n)", Refused(ValueError, "invalid axis 0. Expected 0 <= axis < 0")),
    "cat of two types": ("tl.cat(tl.arange(0, 4), tl.zeros((4,), tl.float32))", Refused(ValueError, "int32 and fp32")),
    "squeeze": ("""
        y = tl.squeeze(tl.arange(0, 4).reshape(2, 1, 2), 1)
        tl.static_assert(y.shape == (2, 2) and tl.squeeze(tl.zeros((4, 1), tl.int8), -1).shape == (4,))
        tl.store(out + tl.arange(0, 4), y.reshape(4))
        """, [0, 1, 2, 3]),
    "squeeze of several": (
        "tl.squeeze(tl.arange(0, 4), 0)",
        Refused(CompileTimeAssertionFailure, "more than one element")),
    "squeeze out of range": (
        "tl.squeeze(tl.zeros((4, 1), tl.int8), 2)",
        Refused(CompileTimeAssertionFailure, "out of range")),
    "unsqueeze": ("""
        y = tl.unsqueeze(tl.arange(0, 4), 1)
        tl.static_assert(y.shape == (4, 1) and tl.unsqueeze(y, -1).shape == (4, 1, 1))
        tl.store(out + tl.arange(0, 4), tl.unsqueeze(y, 0).reshape(4))
        """, [0, 1, 2, 3]),
    "unsqueeze out of range": (  # Triton 3.7 slices the shape
        "tl.static_assert(tl.unsqueeze(tl.arange(0, 4), 3).shape == (4, 1))", []),
    "to_tensor": (
        "y = tl.to_tensor(5)\ntl.static_assert(y.dtype == tl.int32)\ntl.store(out, y + tl.to_tensor(n))", [8]),
    "join": ("""
        y = tl.join(tl.arange(0, 4), tl.arange(4, 8))
        tl.static_assert(y.shape == (4, 2))
        tl.store(out + tl.arange(0, 8), y.reshape(8))
        """, [0, 4, 1, 5, 2, 6, 3, 7]),
    "join broadcasts": ("tl.store(out + tl.arange(0, 4), tl.join(tl.arange(0, 2), n).reshape(4))", [0, 3, 1, 3]),
    "join of scalars": ("y = tl.join(n, 7)\ntl.static_assert(y.shape == [2])\ntl.store(out + tl.arange(0, 2), y)",
                        [3, 7]),
    "join types": ("tl.join(n, x)", Refused(ValueError, "int32 and fp32")),
    "split": ("""
        a, b = tl.split(tl.arange(0, 8).reshape(2, 2, 2))
        tl.static_assert(a.shape == (2, 2) and b.shape == (2, 2))
        tl.store(out + tl.arange(0, 4), (a * 10 + b).reshape(4))
        """, [1, 23, 45, 67]),
    "split into scalars": ("""
        a, b = tl.arange(4, 6).split()
        tl.static_assert(a.shape == () and b.shape == ())
        tl.store(out, a * 10 + b)
        """, [45]),
    "split another size": ("tl.split(tl.arange(0, 4))", Refused(AssertionError, "last axis of size 2")),
    "split of a scalar": ("tl.split(n)", Refused(AssertionError, "last axis of size 2")),
    "interleave": ("tl.store(out + tl.arange(0, 8), tl.interleave(tl.arange(0, 4), tl.arange(4, 8)))",
                       [0, 4, 1, 5, 2, 6, 3, 7]),
    "interleave of rows": (
        "tl.static_assert(tl.interleave(tl.zeros((2, 4), tl.int8), tl.zeros((2, 4), tl.int8)).shape == (2, 8))", []),
    "interleave of scalars": ("y = tl.interleave(n, n + 1)\ntl.static_assert(y.shape == [2])\n"
                                  "tl.store(out + tl.arange(0, 2), y)", [3, 4]),
    "flip": ("tl.store(out + tl.arange(0, 8), tl.flip(tl.arange(0, 8).reshape(2, 4), 0).reshape(8))",
                 [4, 5, 6, 7, 0, 1, 2, 3]),
    "flip negative": ("tl.store(out + tl.arange(0, 8), tl.arange(0, 8).reshape(2, 4).flip(-2).reshape(8))",
                          [4, 5, 6, 7, 0, 1, 2, 3]),
    "flip default": ("tl.store(out + tl.arange(0, 8), tl.flip(tl.arange(0, 8).reshape(2, 4)).reshape(8))",
                         [3, 2, 1, 0, 7, 6, 5, 4]),
    "gather": ("""
        y = tl.gather(tl.arange(0, 8).reshape(2, 4) * 10, tl.arange(0, 4).reshape(2, 2), 1)
        tl.store(out + tl.arange(0, 4), y.reshape(4))
        """, [0, 10, 60, 70]),
    "gather negative axis": ("""
        y = (tl.arange(0, 8).reshape(4, 2).to(tl.float32)).gather((1 - tl.arange(0, 2))[None, :], -2)
        tl.static_assert(y.dtype == tl.float32 and y.shape == (1, 2))
        tl.store(out + tl.arange(0, 2), y.reshape(2).to(tl.int32))
        """, [2, 1]),
    "gather rank": ("tl.gather(tl.arange(0, 8), tl.zeros((2, 2), tl.int32), 0)", Refused(AssertionError, "rank")),
    "gather sizes": (
        "tl.gather(tl.zeros((2, 4), tl.int8), tl.zeros((4, 4), tl.int32), 1)",
        Refused(AssertionError, "index dim 0 must match the corresponding source dim")),
    "gather axis": ("tl.gather(tl.arange(0, 8), tl.arange(0, 8), 1)", Refused(AssertionError, "axis")),
    "gather index": ("tl.gather(tl.arange(0, 8), tl.zeros((8,), tl.float32), 0)", Refused(AssertionError, "integer")),
    "histogram": ("tl.store(out + tl.arange(0, 4), tl.histogram(tl.arange(0, 8) % 3, 4))", [3, 3, 2, 0]),
    "histogram of one bin": ("y = tl.histogram(tl.zeros((8,), tl.int32), 1)\ntl.store(out + tl.arange(0, 1), y)",
                             [8, -1]),
    "histogram mask": ("""
        y = tl.arange(0, 8).histogram(8, mask=tl.arange(0, 8) < n)
        tl.static_assert(y.dtype == tl.int32)
        tl.store(out + tl.arange(0, 8), y)
        """, [1, 1, 1, 0, 0, 0, 0, 0]),
    "histogram mask type": ("tl.histogram(tl.arange(0, 8), 8, tl.arange(0, 8))", Refused(ValueError, "boolean")),
    "histogram rank": ("tl.histogram(tl.zeros((2, 4), tl.int32), 8)", Refused(AssertionError, "1D")),
    "histogram type": ("tl.histogram(tl.zeros((4,), tl.float32), 8)", Refused(AssertionError, "integer")),
    "histogram bins": ("tl.histogram(tl.arange(0, 8), 6)", Refused(ValueError, "power of 2")),
}  # fmt: skip

ROWS = LEGAL | BROADCAST | INDEXING | FUNCTIONS


@pytest.mark.filterwarnings("ignore:view is deprecated")
@pytest.mark.parametrize("row", ROWS)
def test_row(tmp_path: Path, row: str) -> None:
    check(tmp_path, *ROWS[row])


def test_view_is_deprecated(tmp_path: Path) -> None:
    """`reshape` is its name."""
    fn = kernel(tmp_path, "tl.store(out + tl.arange(0, 8), tl.view(tl.arange(0, 8), 4, 2).view(8))", parameters="out")
    with pytest.warns(UserWarning, match="view is deprecated, please use reshape"):
        assert sorted(result(fn, size=8)) == list(range(8))


@pytest.mark.parametrize("dim", [2, -3])
def test_flip_of_no_dimension(tmp_path: Path, dim: int) -> None:
    """A compile-time assertion."""
    fn = kernel(tmp_path, f"tl.flip(tl.zeros((2, 4), tl.int8), {dim})", parameters="out")
    assert isinstance(innermost(error(fn, np.zeros(1, np.int32))), CompileTimeAssertionFailure)
