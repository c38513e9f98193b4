"""The laws of the algebra, and its worked examples."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layouts.strategies import indices, invertible_layouts, linear_layouts, surjective_layouts
from tilework.layouts.linear import LayoutError, LinearLayout

A = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)]}, {"dim0": 4, "dim1": 4})
B = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (0, 0), (1, 0)], "warp": [(2, 0)]}, {"dim0": 4, "dim1": 4})
D = LinearLayout({"register": [(1, 0)], "lane": [(0, 1), (0, 2)], "warp": [(2, 0)]}, {"dim0": 4, "dim1": 4})


def xor(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a[name] ^ b[name] for name in a}


def bases(**columns: list[tuple[int, ...]]) -> dict[str, tuple[tuple[int, ...], ...]]:
    return {name: tuple(vectors) for name, vectors in columns.items()}


# Worked examples


def test_the_index_in_another_layout() -> None:
    assert dict(A.invert_and_compose(D).bases) == bases(
        register=[(0, 1, 0)], lane=[(0, 2, 0), (1, 0, 0)], warp=[(0, 0, 1)]
    )
    assert dict(D.invert_and_compose(A).bases) == bases(
        register=[(0, 2, 0)], lane=[(1, 0, 0), (0, 1, 0)], warp=[(0, 0, 1)]
    )


def test_inverses() -> None:
    assert dict(A.invert().bases) == bases(dim0=[(0, 2, 0), (0, 0, 1)], dim1=[(1, 0, 0), (0, 1, 0)])
    assert dict(B.pseudoinvert().bases) == bases(dim0=[(0, 4, 0), (0, 0, 1)], dim1=[(1, 0, 0), (0, 1, 0)])
    with pytest.raises(LayoutError, match="one location for every coordinate"):
        B.invert()


def test_copies_go_to_the_smallest_index() -> None:
    assert dict(B.invert_and_compose(A).bases) == bases(
        register=[(1, 0, 0)], lane=[(0, 1, 0), (0, 0, 0), (0, 2, 0)], warp=[(0, 0, 1)]
    )
    assert B.free_variable_masks == {"register": 0, "lane": 0b010, "warp": 0}


def test_products() -> None:
    product = LinearLayout.identity(4, "register", "dim1") * LinearLayout.identity(8, "lane", "dim1")
    assert dict(product.bases) == bases(register=[(1,), (2,)], lane=[(4,), (8,), (16,)])
    assert product.out_size("dim1") == 32
    both = LinearLayout.identity(2, "register", "dim0") * LinearLayout.identity(4, "register", "dim1")
    assert dict(both.bases) == bases(register=[(1, 0), (0, 1), (0, 2)])
    copies = LinearLayout.zeros(4, "lane", "dim1") * LinearLayout.identity(2, "lane", "dim1")
    assert dict(copies.bases) == bases(lane=[(0,), (0,), (1,)])
    assert copies.outs == (("dim1", 2),)


def test_the_offsets_of_a_swizzle() -> None:
    rows = LinearLayout({"register": [(0, 1), (0, 4)], "lane": [(0, 2), (1, 0), (2, 0)]}, {"dim0": 4, "dim1": 8})
    swizzled = LinearLayout({"offset": [(0, 1), (0, 2), (0, 4), (1, 2), (2, 4)]}, {"dim0": 4, "dim1": 8})
    offsets = rows.invert_and_compose(swizzled)
    assert dict(offsets.bases) == bases(register=[(1,), (4,)], lane=[(2,), (10,), (20,)])
    assert offsets.num_consecutive_in_out == 2


def test_orders_that_conflict_cannot_be_multiplied() -> None:
    ab = LinearLayout({"lane": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2})
    with pytest.raises(LayoutError, match="order their dimensions differently"):
        _ = ab * ab.transpose_outs(("dim1", "dim0"))


def test_bad_bases() -> None:
    with pytest.raises(LayoutError, match="does not fit dim0 of size 4"):
        LinearLayout({"lane": [(4,)]}, {"dim0": 4})
    with pytest.raises(LayoutError, match="one integer for each"):
        LinearLayout({"lane": [(1, 0)]}, {"dim0": 4})
    with pytest.raises(LayoutError, match="3 is not a power of two"):
        LinearLayout({"lane": [(1,)]}, {"dim0": 3})
    with pytest.raises(LayoutError, match="does not contain every element"):
        A.invert_and_compose(LinearLayout({"offset": [(0, 1)]}, {"dim0": 4, "dim1": 4}))
    with pytest.raises(LayoutError, match="no \\['word'\\]"):
        A.apply(word=1)


# Laws


@given(linear_layouts(), st.data())
def test_a_layout_is_linear(layout: LinearLayout, data: st.DataObject) -> None:
    a, b = data.draw(indices(layout)), data.draw(indices(layout))
    assert layout.apply(xor(a, b)) == xor(layout.apply(a), layout.apply(b))


@given(linear_layouts())
def test_images_are_applications(layout: LinearLayout) -> None:
    registers, lanes = layout.in_size("register"), layout.in_size("lane")
    wanted = [layout.apply(register=i, lane=j) for j in range(lanes) for i in range(registers)]
    assert [dict(zip(layout.out_names, layout.vector(image), strict=True)) for image in layout.images()] == wanted


@given(linear_layouts())
def test_the_rank_counts_what_is_reached(layout: LinearLayout) -> None:
    reached = set(layout.images())
    assert len(reached) == 1 << layout.rank
    assert layout.is_surjective == (len(reached) == 1 << layout.total_out_bits)
    assert layout.is_injective == (len(reached) == 1 << layout.total_in_bits)


@given(st.data())
def test_composition_is_associative(data: st.DataObject) -> None:
    first = data.draw(linear_layouts(("register",), ("x", "y")))
    second = data.draw(surjective_layouts((("u", 4), ("v", 4)), ("x", "y")))
    third = data.draw(linear_layouts(("u", "v"), ("dim0",)))
    for name in ("x", "y"):
        first = first.resize_out(name, min(first.out_size(name), second.in_size(name)))
    for name in ("u", "v"):
        third = third.replace_in(name, (*third.by_in[name], 0, 0)[:2])
    assert first.compose(second).compose(third) == first.compose(second.compose(third))
    index = data.draw(indices(first))
    assert first.compose(second).apply(index) == second.apply(first.apply(index))


@given(invertible_layouts())
def test_inversion(layout: LinearLayout) -> None:
    assert layout.is_invertible
    inverse = layout.invert()
    assert layout.compose(inverse).is_trivial_over(layout.in_names)
    assert inverse.compose(layout).is_trivial_over(layout.out_names)
    assert inverse.invert() == layout


@given(surjective_layouts((("dim0", 4), ("dim1", 8)), ("register", "lane")))
def test_a_pseudoinverse_finds_an_index_of_each_coordinate(layout: LinearLayout) -> None:
    assert layout.pseudoinvert().compose(layout).is_trivial_over(layout.out_names)


@given(linear_layouts(("register", "lane")), st.data())
def test_invert_and_compose_solves_the_equation(mine: LinearLayout, data: st.DataObject) -> None:
    other = data.draw(surjective_layouts(mine.outs, ("lane", "warp")))
    assert mine.invert_and_compose(other).compose(other) == mine


@given(linear_layouts(("register", "lane")))
def test_an_in_with_the_same_bases_goes_to_itself(layout: LinearLayout) -> None:
    assert layout.invert_and_compose(layout).is_trivial_over(layout.in_names)


@given(linear_layouts(), linear_layouts())
def test_division_undoes_the_product(tile: LinearLayout, rest: LinearLayout) -> None:
    product = tile * rest
    assert product.divide_left(tile) == rest


@given(linear_layouts(), linear_layouts())
def test_a_quotient_is_right_or_none(whole: LinearLayout, tile: LinearLayout) -> None:
    left = whole.divide_left(tile)
    assert left is None or tile * left == whole


@given(linear_layouts(), linear_layouts(), linear_layouts())
def test_the_product_is_associative(a: LinearLayout, b: LinearLayout, c: LinearLayout) -> None:
    assert (a * b) * c == a * (b * c)


@given(linear_layouts())
def test_the_product_has_a_unit(layout: LinearLayout) -> None:
    unit = LinearLayout({}, {})
    assert unit * layout == layout == layout * unit


@given(linear_layouts())
def test_reordering_and_reshaping_go_back(layout: LinearLayout) -> None:
    assert layout.transpose_outs(("dim1", "dim0")).transpose_outs(("dim0", "dim1")) == layout
    assert layout.flatten_outs().reshape_outs(layout.outs) == layout
    first, second = layout.sublayout(["register"], layout.out_names), layout.sublayout(["lane"], layout.out_names)
    assert LinearLayout.packed(first.columns + second.columns, first.outs) == layout


@given(linear_layouts())
def test_free_variables_change_nothing_new(layout: LinearLayout) -> None:
    """Without its free bits a layout reaches as much, and nothing twice."""
    kept = layout
    for name, mask in layout.free_variable_masks.items():
        kept = kept.replace_in(name, [c for bit, c in enumerate(layout.by_in[name]) if not mask >> bit & 1])
    assert kept.is_injective
    assert set(kept.images()) == set(layout.images())


@given(linear_layouts())
def test_consecutive_runs_are_the_longest(layout: LinearLayout) -> None:
    """Brute force: aligned runs of V registers are V neighbours along dim0, wherever the rest of the index is."""
    size, lanes = layout.in_size("register"), layout.in_size("lane")

    def holds(run: int) -> bool:
        if run > layout.out_size("dim0"):
            return False
        for lane in range(lanes):
            for start in range(0, size, run):
                first = layout.apply(register=start, lane=lane)
                for step in range(run):
                    there = layout.apply(register=start + step, lane=lane)
                    if there != first | {"dim0": first["dim0"] + step} or first["dim0"] % run:
                        return False
        return True

    assert layout.num_consecutive_in_out == max(run for run in (1, 2, 4, 8, 16) if run <= size and holds(run))


@given(linear_layouts())
def test_layouts_are_values(layout: LinearLayout) -> None:
    again = LinearLayout(dict(layout.bases), dict(layout.outs))
    assert again == layout
    assert hash(again) == hash(layout)
    assert eval(repr(layout)) == layout


@given(linear_layouts(ins=("a", "b"), outs=("b", "c")), st.sets(st.sampled_from("abcd")))
def test_trivial_over_is_the_identity_there_and_nowhere_else(layout: LinearLayout, names: set[str]) -> None:
    def is_identity(name: str) -> bool:
        if name not in layout.in_names or name not in layout.out_names or layout.in_size(name) != layout.out_size(name):
            return False
        points = ({"a": a, "b": b} for a in range(layout.in_size("a")) for b in range(layout.in_size("b")))
        return all(layout.apply(point)[name] == point[name] for point in points)

    assert layout.is_trivial_over(names) == all(is_identity(name) for name in names)


@given(linear_layouts(), linear_layouts())
def test_dividing_by_more_than_there_is_gives_none(whole: LinearLayout, rest: LinearLayout) -> None:
    tile = whole * rest
    larger = any(tile.in_size(name) > whole.in_size(name) for name in tile.in_names)
    if larger or any(tile.out_size(name) > whole.out_size(name) for name in tile.out_names):
        assert whole.divide_left(tile) is None
