"""Ways from one layout to another: which one is chosen, and that shared memory does what its plan promises."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.layouts.strategies import distributed, powers, shapes
from tests.layouts.test_linear import A, D
from tilework.layouts.conversion import conversion, needs_shared, scratch_bytes, shared_plan, shuffle_permutation
from tilework.layouts.encodings import Blocked, Distributed, DotOperand, NvidiaMma, Slice
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear

ROWS = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
MMA = NvidiaMma(3, 0, (4, 1), (16, 64, 16))
Pair = tuple[LinearLayout, LinearLayout, int]


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Two layouts of one tensor on as many warps, and the bits of an element."""
    rank, warps = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    shape = draw(shapes(rank, 1, 5))
    src, dst = (draw(distributed(rank, warps, cga=False)) for _ in range(2))
    return to_linear(src, shape), to_linear(dst, shape), draw(powers(3, 6))


# Which way


def test_a_worked_pair_is_one_exchange() -> None:
    assert shuffle_permutation(A, D) == (1, 2, 0)
    a, d = (LinearLayout([*layout.bases, ("block", [])], layout.outs) for layout in (A, D))
    way = conversion(a, d)
    assert (way.kind, way.exchanges, set(way.comp.in_names)) == ("shuffle", 1, {"register", "lane"})


def kind(src: Distributed, dst: Distributed, shape: tuple[int, ...]) -> str:
    return conversion(to_linear(src, shape), to_linear(dst, shape)).kind


@pytest.mark.parametrize(
    ("src", "dst", "shape", "wanted"),
    [
        (ROWS, ROWS, (64, 64), "none"),
        (Slice(1, ROWS), Slice(1, Blocked((1, 8), (4, 8), (4, 1), (1, 0))), (16,), "none"),
        (Blocked((1, 2), (1, 32), (4, 1), (1, 0)), Blocked((2, 1), (1, 32), (4, 1), (0, 1)), (8, 32), "shared"),
        (Blocked((2, 2), (1, 32), (4, 1), (1, 0)), Blocked((2, 2), (1, 32), (4, 1), (0, 1)), (8, 64), "register"),
        (MMA, DotOperand(0, MMA, 2), (64, 64), "none"),
        (MMA, DotOperand(0, MMA, 4), (64, 64), "shuffle"),
        (Blocked((1, 4), (1, 32), (1, 1), (1, 0)), Blocked((1, 1), (1, 32), (1, 1), (1, 0)), (4, 128), "warp"),
        (ROWS, MMA, (64, 64), "shared"),
        (
            Blocked((1, 1), (1, 32), (4, 1), (1, 0), ((1, 0),)),
            Blocked((1, 1), (1, 32), (4, 1), (1, 0), ((0, 1),)),
            (64, 64),
            "cluster",
        ),
    ],
)
def test_kinds(src: Distributed, dst: Distributed, shape: tuple[int, ...], wanted: str) -> None:
    assert kind(src, dst, shape) == wanted


def test_an_accumulator_is_an_operand_already() -> None:
    """Why attention needs no conversion between its two dots in half precision."""
    assert conversion(to_linear(MMA, (64, 64)), to_linear(DotOperand(0, MMA, 2), (64, 64))).kind == "none"
    assert scratch_bytes(to_linear(MMA, (64, 64)), to_linear(DotOperand(0, MMA, 2), (64, 64)), 16) == 0


def test_copies_in_warps_forbid_to_wait_for_the_warp_only() -> None:
    """The warp that reads a copy may not be the one that wrote it."""
    two = [
        Blocked((1, 4), (1, 32), (1, 4), (1, 0)),
        Blocked((1, 1), (1, 32), (1, 4), (1, 0)),
    ]
    src, dst = (to_linear(encoding, (4, 128)) for encoding in two)
    assert src.free_variable_masks["warp"]
    assert conversion(src, dst).kind == "shared"


@given(pairs())
def test_the_conversion_finds_every_element(pair: Pair) -> None:
    src, dst, _ = pair
    assert dst.invert_and_compose(src).compose(src) == dst
    assert src.invert_and_compose(dst).compose(dst) == src


@given(pairs())
def test_there_and_back_is_the_same_trouble(pair: Pair) -> None:
    """Nothing and registers only are symmetric, and no conversion is one from a layout to itself."""
    src, dst, _ = pair
    assert conversion(src, src).kind == "none"
    if conversion(src, dst).kind == "none":
        assert dst == src
    assert (conversion(src, dst).kind == "cluster") is False


@given(pairs())
def test_a_shuffle_moves_no_warp(pair: Pair) -> None:
    src, dst, _ = pair
    way = conversion(src, dst)
    if way.kind == "shuffle":
        assert "warp" not in way.comp.by_in
        assert way.exchanges < 2
    assert needs_shared(src, dst) == (way.kind in ("warp", "shared"))


# Through shared memory


@given(pairs(), st.booleans())
def test_every_element_has_one_offset(pair: Pair, stores_matrices: bool) -> None:
    plan = shared_plan(*pair, True, stores_matrices)
    assert plan.layout.is_invertible
    assert plan.bytes * plan.reps * 8 == (1 << plan.layout.total_out_bits) * pair[2]


@given(pairs(), st.booleans())
def test_a_round_is_a_choice_of_registers_on_both_sides(pair: Pair, stores_matrices: bool) -> None:
    """Only registers move the highest bits of the offset, so each round stores and loads some registers of all."""
    src, dst, bits = pair
    plan = shared_plan(src, dst, bits, True, stores_matrices)
    size = (1 << plan.layout.total_out_bits) // plan.reps
    for side in (src, dst):
        moved = plan.offsets(side)
        for level in ("lane", "warp"):
            assert all(column < size for column in moved.by_in[level])


@given(pairs())
def test_plain_accesses_have_the_promised_conflicts(pair: Pair) -> None:
    """Brute force: how many different words of one bank the lanes of a wavefront ask for, at worst."""
    src, dst, bits = pair
    plan = shared_plan(src, dst, bits, False, False)
    assert (plan.store, plan.load) == ("plain", "plain")
    for side, promised in ((src, plan.write_conflicts), (dst, plan.read_conflicts)):
        moved = plan.offsets(side)
        together = 32 if bits * plan.vector <= 32 else 32 * 32 // (bits * plan.vector)
        requested: dict[int, set[int]] = {}
        for lane in range(min(together, moved.in_size("lane"))):
            word = moved.apply(lane=lane)["offset"] * bits // 32
            requested.setdefault(word % 32, set()).add(word)
        assert max(map(len, requested.values())) - 1 <= promised


@given(pairs())
def test_what_is_written_is_read(pair: Pair) -> None:
    """Store every element at its offset, load: each location of the destination gets its own."""
    src, dst, bits = pair
    plan = shared_plan(src, dst, bits)
    written, wanted = (
        side.flatten_outs("index").sublayout(("register", "lane", "warp"), ("index",)).images() for side in (src, dst)
    )
    memory = dict(zip(plan.offsets(src).images(), written, strict=True))
    assert [memory[offset] for offset in plan.offsets(dst).images()] == wanted


def test_the_blocks_of_a_cluster_each_have_their_part() -> None:
    two = [Blocked((1, 4), (4, 8), (4, 1), (1, 0), ((1, 0),)), Blocked((4, 1), (8, 4), (1, 4), (0, 1), ((1, 0),))]
    src, dst = (to_linear(encoding, (128, 64)) for encoding in two)
    assert conversion(src, dst).kind == "shared"
    assert scratch_bytes(src, dst, 32) * shared_plan(src, dst, 32).reps == 64 * 64 * 4
    one = [to_linear(Blocked(e.size_per_thread, e.threads_per_warp, e.warps_per_cta, e.order), (64, 64)) for e in two]
    assert scratch_bytes(src, dst, 32) == scratch_bytes(one[0], one[1], 32)


def test_a_transpose_has_no_conflicts() -> None:
    for bits, size in product((8, 16, 32, 64), (32, 64, 128)):
        src = to_linear(Blocked((1, 128 // bits), (8, 4), (4, 1), (1, 0)), (size, size))
        dst = to_linear(Blocked((128 // bits, 1), (4, 8), (1, 4), (0, 1)), (size, size))
        plan = shared_plan(src, dst, bits)
        assert (plan.write_conflicts, plan.read_conflicts) == (0, 0)


def test_matrix_instructions_make_full_vectors() -> None:
    """An accumulator has pairs, rows of 16 bytes need eight: `ldmatrix` puts four lanes' pairs into one piece."""
    src = to_linear(NvidiaMma(3, 0, (8, 1), (16, 256, 16)), (128, 256))
    dst = to_linear(Blocked((1, 8), (1, 32), (8, 1), (1, 0)), (128, 256))
    plan = shared_plan(src, dst, 16)
    assert (plan.store, plan.load, plan.vector, plan.reps) == ("plain", "matrix", 8, 2)
    assert (plan.write_conflicts, plan.read_conflicts) == (0, 0)
    assert shared_plan(src, dst, 16, False, False).vector < 8


def test_stores_of_matrices_need_an_instruction() -> None:
    src = to_linear(NvidiaMma(2, 0, (4, 1), (16, 8)), (64, 64))
    dst = to_linear(Blocked((1, 8), (32, 1), (4, 1), (1, 0)), (64, 64))
    assert [shared_plan(src, dst, 16, True, has).store for has in (False, True)] == ["plain", "matrix"]
