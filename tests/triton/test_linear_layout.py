"""Triton's class of linear layouts."""

import pytest


def test_linear_layouts_as_tritons_class() -> None:
    from tilework.triton.linear_layout import LinearLayout

    layout = LinearLayout.from_bases(
        [("register", [[0, 1], [0, 2]]), ("lane", [[1, 0]]), ("block", [])], ["dim0", "dim1"]
    )
    assert (
        str(layout)
        == repr(layout)
        == (
            "\n - register=1 -> (0, 1)\n   register=2 -> (0, 2)\n - lane=1 -> (1, 0)\n - block is a size 1 dimension\n"
            "where out dims are: [dim0 (size 2), dim1 (size 4)]"
        )
    )
    assert str(LinearLayout()) == "\n(empty layout)" and LinearLayout().bases == [] and LinearLayout().apply({}) == {}
    assert layout.bases == [("register", [[0, 1], [0, 2]]), ("lane", [[1, 0]]), ("block", [])]
    assert layout.out_dims == [("dim0", 2), ("dim1", 4)] and (layout.num_in_dims, layout.num_out_dims) == (3, 2)
    assert (layout.get_in_dim_names(), layout.get_out_dim_names()) == (["register", "lane", "block"], ["dim0", "dim1"])
    assert layout.is_surjective() and layout.is_injective() and layout.is_invertible()
    assert layout.apply({"register": 3, "lane": 1, "block": 0}) == {"dim0": 1, "dim1": 3}
    assert layout.get_matrix_view() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert layout.invert() == layout.pseudoinvert() and layout.invert().out_dims == [
        ("register", 4),
        ("lane", 2),
        ("block", 1),
    ]
    lanes, warps = (
        LinearLayout.identity_1d(4, "lane", "dim0"),
        LinearLayout.identity_1d(size=2, inDim="warp", outDim="dim0"),
    )
    product = lanes * warps
    lanes *= warps
    assert lanes == product and product != warps and product.bases == [("lane", [[1], [2]]), ("warp", [[4]])]
    assert LinearLayout.strided_1d(4, 2, "r", "d").bases == [("r", [[2], [4]])]
    assert LinearLayout.strided_1d(4, 2, "r", "d").out_dims == [("d", 8)] and LinearLayout.zeros_1d(
        4, "r", "d", 8
    ).out_dims == [("d", 8)]
    assert LinearLayout.identity_1d(4, "r", "d").compose(LinearLayout.strided_1d(4, 2, "d", "e")).bases == [
        ("r", [[2], [4]])
    ]
    assert product.invert_and_compose(product).apply({"lane": 3, "warp": 1}) == {"lane": 3, "warp": 1}
    shared = LinearLayout.from_bases([("offset", [[0, 1], [1, 0]]), ("block", [])], ["dim0", "dim1"])
    assert shared.get_shared_view(
        False
    ) == "[[(0:0),(0:1)]\n[ (1:0),(1:1)]]\n" and "Offset: 3 -> (1,1)" in shared.get_shared_view(True)
    threads = LinearLayout.from_bases(
        [("register", []), ("lane", [[0, 1]]), ("warp", [[1, 0]]), ("block", [])], ["dim0", "dim1"]
    )
    assert threads.get_distributed_view(False) == "[[T0:0, T1:0]\n[ T2:0, T3:0]]\n" and threads.get_distributed_view(
        True
    ).startswith("Warp0:\n")
    wide = LinearLayout.from_bases([("r", [[1], [2]])], ["d"], [8], require_surjective=False)
    assert not wide.is_surjective() and not LinearLayout.from_bases([("r", [[2]])], ["d"]).is_surjective()
    for wrong, message in [
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], None, False), "must be provided"),
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], [2, 2]), "the same length"),
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], [8]), "require_surjective"),
        (lambda: LinearLayout.identity_1d(3, "r", "d"), "power"),
        (lambda: layout.apply({"register": 1}), "all ins"),
        (lambda: wide.invert(), "inverse"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    for wrong in (
        lambda: product == 3,
        lambda: product * 3,  # pyright: ignore[reportOperatorIssue]
        lambda: hash(product),
        lambda: LinearLayout.from_bases({"r": [[1]]}, ["d"]),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(TypeError):
            wrong()
