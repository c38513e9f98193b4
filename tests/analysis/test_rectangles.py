"""Loads that become copies through descriptors: the same results wherever the launch proves it, and nothing else is
rewritten.

Generated kernels load two tiles by pointers and multiply them; the pass must keep what they compute in the evaluator,
for sizes with tails, padded rows, and memory around the arrays that holds NaN: whoever reads what the mask forbids, or
leaves out what it allows, is found.
"""

import json
import random
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr

import tilework
import tilework.language as tl
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.module_facts import RECTANGLES
from tilework.ir.verify import verify
from tilework.oracles.evaluator import evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.devices.cuda.guarded_launch import LaunchPrecondition
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

PASSES = "tt-rectangles-to-descriptors,canonicalize,cse"


@tilework.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, first, batch,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WRAP: tl.constexpr, MASK: tl.constexpr, STEP: tl.constexpr,
    TURN: tl.constexpr, EVEN: tl.constexpr, BATCH: tl.constexpr,
    BRANCH: tl.constexpr = False,  # pyright: ignore[reportArgumentType]
):  # fmt: skip
    pid_m, pid_n = tl.program_id(0) % tl.cdiv(M, BM), tl.program_id(0) // tl.cdiv(M, BM)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    am = rm % M if WRAP else rm
    bn = rn % N if WRAP else rn
    if BATCH:
        a_ptr += tl.program_id(1).to(tl.int64) * batch
        c_ptr += tl.program_id(1) * M * N
    a_ptrs = a_ptr + first + am[:, None] * stride_a + rk[None, :]
    if TURN:
        b_ptrs = b_ptr + bn[None, :] * stride_b + rk[:, None]
    else:
        b_ptrs = b_ptr + rk[:, None] * stride_b + bn[None, :]
    acc, turns = tl.zeros((BM, BN), tl.float32), 0
    for k in range(0, tl.cdiv(K, BK) if STEP == 1 else K, STEP):
        left = K - (k * BK if STEP == 1 else k)
        inside_a = rk[None, :] < left
        inside_b = rk[:, None] < left
        if MASK == 2:
            inside_a &= (am < M)[:, None]
            inside_b &= (bn < N)[None, :]
        if MASK == 3:
            inside_a &= (am[:, None] >= 0) & (am[:, None] < M)
            inside_b &= (bn <= N - 1)[None, :]
        if EVEN:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=inside_a, other=0.0)
            b = tl.load(b_ptrs, mask=inside_b, other=0.0)
        acc = tl.dot(a, b, acc)
        if BRANCH:
            if left > BK:
                turns += 1
            acc += turns
        a_ptrs += BK
        b_ptrs += BK if TURN else BK * stride_b
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)


def compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], odd: tuple[str, ...] | None = None) -> Any:
    """TTIR; with `odd` all other arguments are multiples of 16."""
    even = [name for name in types if odd is not None and name not in odd]
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in even}
    module = compile_to_ttir(
        kernel, {**types, **dict.fromkeys(constants, "constexpr")}, constants, attrs,
        frontend_options(GPUTarget("cuda", 90, 32), {})
    )  # fmt: skip
    run_pipeline(module, ttir_pipeline(Target.parse("cuda:90")))
    return module


def rewritten(module: Any, passes: str = PASSES) -> dict[str, Any] | None:
    """Run the pass; return the facts that the launcher gets."""
    run_pipeline(module, parse_pipeline(passes))
    rectangles = module.attributes.get(RECTANGLES)
    return json.loads(rectangles.data) if isinstance(rectangles, StringAttr) else None


def hidden(rectangles: dict[str, Any], args: list[Any], grid: tuple[int, ...]) -> list[Any] | None:
    """The host descriptors of the hidden arguments; None if the launch does not justify them."""
    precondition = LaunchPrecondition(rectangles)
    numbers = [arg.ctypes.data if isinstance(arg, np.ndarray) else arg for arg in args]
    x, y, z = (*grid, 1, 1)[:3]
    return precondition.arrays(tuple(numbers[number] for number in precondition.args), (x, y, z))


def padded(rows: int, columns: int, stride: int, rng: np.random.Generator, extra: int = 0) -> tuple[Any, Any]:
    """(memory with NaN around an array, the array in it), aligned to 16 bytes."""
    room = np.full(extra + rows * stride + 4096, np.nan, np.float16)
    start = -room.ctypes.data % 16 // 2 + 512
    memory = room[start:]
    array = np.lib.stride_tricks.as_strided(memory[extra:], (rows, columns), (2 * stride, 2))
    array[...] = rng.integers(-4, 5, (rows, columns))
    return memory, array


def case(seed: int) -> None:
    """One generated kernel and launch."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    bm, bn, bk = (draw.choice((16, 32, 64)) for _ in range(3))
    wrap, even, turn, batched = draw.random() < 0.4, draw.random() < 0.2, draw.random() < 0.4, draw.random() < 0.3
    mask, step = draw.choice((1, 2, 2, 3)), draw.choice((1, 1, bk))
    if even or (not wrap and mask == 1):
        mask, sizes = 1, [block * draw.randint(1, 3) for block in (bm, bn)]
    else:
        sizes = [
            draw.randint(1, 3 * block) if draw.random() < (0.3 if wrap else 0.7) else block * draw.randint(1, 3)
            for block in (bm, bn)
        ]
    m, n = sizes
    k = bk * draw.randint(1, 3) if even else draw.randint(1, 3 * bk)
    pad = draw.choice((0, 8, 8, 8, 3))
    stride_a, stride_b = (-(-size // 8) * 8 + pad for size in (k, k if turn else n))
    first, batches = draw.choice((0, 0, 0, 8, 16, 5)), 2 if batched else 1
    batch = -(-m // 8) * 8 * stride_a
    a_memory, a = padded(m + (batch // stride_a if batched else 0), k, stride_a, rng, first)
    b_memory, b = padded(*((n, k) if turn else (k, n)), stride_b, rng)
    constants = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "WRAP": wrap,
        "MASK": mask,
        "STEP": step,
        "TURN": turn,
        "EVEN": even,
        "BATCH": batched,
        "BRANCH": seed % 3 == 0,
    }
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"} | dict.fromkeys(
        ("M", "N", "K", "stride_a", "stride_b", "first", "batch"), "i32"
    )
    grid = (-(-m // bm) * -(-n // bn), batches)
    module = compiled(product, types, constants)
    outputs = []
    for _ in range(2):
        c = np.full((batches, m, n), np.nan, np.float32)
        args: list[Any] = [a_memory, b_memory, c, m, n, k, stride_a, stride_b, first, batch]
        if outputs:
            rectangles = rewritten(module)
            assert rectangles is not None and len(rectangles["maps"]) == 2, constants
            maps = hidden(rectangles, args, grid)
            legal = stride_a % 8 == 0 and stride_b % 8 == 0 and first % 8 == 0 and (not wrap or m % bm == n % bn == 0)
            assert (maps is not None) == legal, (seed, constants, args[3:])
            if maps is None:
                return
            args += maps
        evaluate(module, None, args, grid)
        outputs.append(c)
    np.testing.assert_array_equal(*outputs)
    wanted = np.stack(
        [
            a[i * (batch // stride_a) :][:m].astype(np.float32) @ (b.T if turn else b).astype(np.float32)
            for i in range(batches)
        ]
    )
    counted = [min(turn + 1, -(-k // bk) - 1) for turn in range(-(-k // bk))] if seed % 3 == 0 else []
    np.testing.assert_array_equal(outputs[0], wanted + sum(counted))


def test_generated_products() -> None:
    """Launches that fit are proved, others are refused, and where they are proved the copies read what the loads
    read."""
    for seed in range(16):
        case(seed)


@tilework.jit
def scaled(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WAY: tl.constexpr):
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    rm = rm % M if WAY == "wrapped" else rm
    acc = tl.zeros((BM, BN), tl.float32)
    first = tl.load(a_ptr + rm[:, None] * K + rk[None, :])
    for k in range(0, K, BK):
        a = first if WAY == "known" else tl.load(a_ptr + rm[:, None] * K + k + rk[None, :])
        b = tl.load(b_ptr + rn[None, :] * K + (k + rk)[:, None])
        acc = tl.dot(a * 2 if WAY == "scaled" else a, b, acc, input_precision=WAY if WAY == "ieee" else None)
    tl.store(c_ptr + rm[:, None] * BN + rn[None, :], tl.dot(first, tl.trans(first)) + acc if WAY == "after" else acc)


PAYING = [
    *[(0, ways, 8) for ways in ({"BM": 32}, {"BK": 32}, {"WAY": "scaled"}, {"type": "fp32", "WAY": "ieee"})],
    *[(2, ways, 8) for ways in ({}, {"WAY": "known", "BN": 256}, {"BK": 128, "type": "fp8e4nv"})],
    *[
        (0, {"odd": ["K"]}, 8),
        (0, {"odd": ["a_ptr"]}, 8),
        (2, {"odd": ["c_ptr", "M", "N"]}, 8),
        (0, {"odd": ["M"], "WAY": "wrapped"}, 8),
    ],
    *[(2, {"WAY": "wrapped"}, 8), (0, {}, 2), (2, {"WAY": "after"}, 4), (2, {"type": "fp32", "WAY": "tf32"}, 4)],
]


def test_all_large_operands_of_a_loop_become_copies_or_none() -> None:
    for count, given, warps in PAYING:
        ways: dict[str, Any] = {"BM": 128, "BN": 128, "BK": 64, "WAY": "", "type": "fp16", **given}
        pointer, odd = f"*{ways.pop('type')}", tuple(ways.pop("odd", ""))
        types = {"a_ptr": pointer, "b_ptr": pointer, "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
        rectangles = rewritten(
            compiled(scaled, types, ways, odd),
            f"tt-rectangles-to-descriptors{{when=pays num-warps={warps}}},canonicalize",
        )
        assert (0 if rectangles is None else len(rectangles["maps"])) == count, (given, warps)


@tilework.jit
def near_miss(a_ptr, b_ptr, c_ptr, index_ptr, K, stride, KIND: tl.constexpr):
    rm, rn, rk = tl.arange(0, 32), tl.arange(0, 32), tl.arange(0, 64)
    rows = tl.load(index_ptr + rm) if KIND == "gathered rows" else rm
    acc = tl.zeros((32, 32), tl.float32)
    tl.assume(K > 0)
    if KIND == "waiting":
        turns = 0
        while (turns < 1000) & (tl.load(index_ptr + turns) == 0):
            turns += 1
    for k in range(0, K, 64):
        a_ptrs = a_ptr + rows[:, None] * stride + k + rk[None, :]
        mask = k + rk[None, :] < K
        if KIND == "a triangle":
            mask = k + rk[None, :] + rm[:, None] < K
        elif KIND == "either bound":
            mask = mask | (rm[:, None] < 8)
        elif KIND == "every other column":
            mask = k + rk[None, :] * 2 < K
        elif KIND == "a scalar":
            mask = mask & (k < 64)
        elif KIND == "no columns":
            mask = k + rk[None, :] < 0
        elif KIND == "two bounds":
            mask = mask & (k + rk[None, :] < stride)
        elif KIND == "unsigned":
            mask = (k + rk[None, :]).to(tl.uint32) < K.to(tl.uint32)
        if KIND == "diagonals":
            a_ptrs = a_ptr + rows[:, None] * rk[None, :] + k
        elif KIND == "two tables":
            a_ptrs += tl.load(index_ptr)
        elif KIND == "strided columns":
            a_ptrs += rk[None, :]
        elif KIND == "shifting rows":
            a_ptrs += rows[:, None] * k
        other = 1.0 if KIND == "ones" else -0.0 if KIND == "negative zeros" else 0.0
        a = tl.load(a_ptrs, mask=mask, other=other, volatile=KIND == "volatile")
        b = tl.load(b_ptr + (k + rk)[:, None] * 32 + rn[None, :], mask=(k + rk)[:, None] < K, other=0.0)
        if KIND == "another use":
            acc += tl.sum(a.to(tl.float32), 1)[:, None]
        elif KIND == "scattered writes":
            tl.store(c_ptr + tl.load(index_ptr + rn), 0.0)
        elif KIND == "atomics":
            tl.atomic_add(index_ptr, 1)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * 32 + rn[None, :], acc)


KINDS = {
    **dict.fromkeys(
        ("a triangle", "either bound", "every other column", "a scalar", "two bounds", "unsigned", "diagonals"), 1
    ),
    **dict.fromkeys(("gathered rows", "two tables", "strided columns", "shifting rows", "ones", "negative zeros"), 1),
    **{
        "another use": 1,
        "volatile": 0,
        "scattered writes": 0,
        "atomics": 0,
        "waiting": 0,
        "no columns": 2,
        "none of these": 2,
    },
}


def test_near_misses_stay_loads() -> None:
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "index_ptr": "*i32", "K": "i32", "stride": "i32"}
    for kind, count in KINDS.items():
        rectangles = rewritten(compiled(near_miss, types, {"KIND": kind}))
        assert (0 if rectangles is None else len(rectangles["maps"])) == count, kind
        if rectangles is not None and count == 2:  # an axis without elements is no axis without a bound
            found = hidden(rectangles, [1 << 20, 2 << 20, 3 << 20, 4 << 20, 128, 128], (1,))
            assert (found is None) == (kind == "no columns")


@tilework.jit
def persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, TILES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    b = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, TILES):
        group = tile // (GROUP * columns)
        size = min(rows - group * GROUP, GROUP)
        pid_m, pid_n = group * GROUP + tile % size, (tile % (GROUP * columns)) // size
        rm, rn, rk = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
        am = tl.max_contiguous(tl.multiple_of(tl.where(rm < M, rm, 0), BM), BM)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            offsets = k * BK + rk
            a = tl.load(a_ptr + am[:, None] * K + offsets[None, :], mask=offsets[None, :] < K, other=0.0)
            acc = tl.dot(a, b.load([k * BK, pid_n * BN]), acc)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_persistent_kernels_and_their_descriptors() -> None:
    """Stores come before loads of the next tile: the launch sees that they are elsewhere. A descriptor made of
    arguments comes from it too."""
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    rng = np.random.default_rng(3)
    for m, n, k, overlap, good in ((256, 96, 72, 0, True), (256, 96, 72, 1, False), (250, 96, 72, 0, False)):
        module = compiled(persistent, types, {"TILES": 4, "BM": 32, "BN": 32, "BK": 32, "GROUP": 8})
        _, a = padded(m, k, k, rng)
        _, b = padded(k, n, n, rng)
        c = np.full((m, n), np.nan, np.float32)
        rectangles = rewritten(module)
        assert rectangles is not None and len(rectangles["maps"]) == 2 and len(rectangles["written"]) == 1
        args: list[Any] = [a, b, c, m, n, k]
        if overlap:
            args[2] = c.reshape(-1)[: c.size // 2].view(np.float32)
            args[0] = args[2].view(np.float16)
        maps = hidden(rectangles, args, (4,))
        assert (maps is not None) == good
        if maps is not None:
            evaluate(module, None, [*args, *maps], (4,))
            np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_what_overflows_is_refused() -> None:
    """The sums of 32 bits that a launch would cut; a grid that is too large, so that a program starts before the
    array."""
    constants = {"BM": 64, "BN": 64, "BK": 64, "STEP": 1, "MASK": 2} | dict.fromkeys(
        ("WRAP", "TURN", "EVEN", "BATCH"), False
    )
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"} | dict.fromkeys(
        ("M", "N", "K", "stride_a", "stride_b", "first", "batch"), "i32"
    )
    rectangles = rewritten(compiled(product, types, constants))
    assert rectangles is not None
    fits = [1 << 20, 2 << 20, 3 << 20, 4096, 4096, 4096, 4096, 4096, 0, 0]
    assert hidden(rectangles, fits, (4096,)) == [
        (1 << 20, (4096, 4096), (4096, 1)),
        (2 << 20, (4096, 4096), (4096, 1)),
    ]
    for changed in (
        {6: 1 << 20},
        {7: 1 << 26},
        {3: (1 << 31) - 1},
        {0: 8},
        {6: 4092},
        {6: 2048},
        {6: -4096},
        {5: 0},
        {8: 1},
    ):
        assert hidden(rectangles, list((dict(enumerate(fits)) | changed).values()), (4096,)) is None, changed


@tilework.jit
def chosen(a_ptr, b_ptr, c_ptr, K, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a_ptrs, b_ptrs, steps = a_ptr + at, b_ptr + at, 0
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(0, K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += SIZE * SIZE
        if k % 2 == 0:
            b_ptrs += SIZE * SIZE
            steps += 1
        acc += steps
    tl.store(c_ptr + at, acc)


def test_what_a_branch_moves_goes_on_where_other_loads_are_copies() -> None:
    size, k = 16, 5
    module = compiled(chosen, {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}, {"SIZE": size})
    rectangles = rewritten(module)
    assert rectangles is not None and len(rectangles["maps"]) == 1
    rng = np.random.default_rng(4)
    (_, a), (_, b), c = (
        padded(k * size, size, size, rng),
        padded(3 * size, size, size, rng),
        np.zeros((size, size), "f4"),
    )
    maps = hidden(rectangles, [a, b, c, k], (1,))
    assert maps is not None
    evaluate(module, None, [a, b, c, k, *maps], (1,))
    wide_a, wide_b = a.reshape(k, size, size).astype("f4"), b.reshape(3, size, size).astype("f4")
    wanted = sum(wide_a[turn] @ wide_b[(turn + 1) // 2] + turn // 2 + 1 for turn in range(k))
    np.testing.assert_array_equal(c, wanted)


@tilework.jit
def far_around(a_ptr, c_ptr, M, STEP: tl.constexpr):
    rows, columns = (tl.program_id(0).to(tl.int64) * STEP + tl.arange(0, 16)) % M, tl.arange(0, 16)
    a = tl.load(a_ptr + rows[:, None] * 16 + columns[None, :])
    tl.store(c_ptr + tl.program_id(0) * 256 + tl.arange(0, 16)[:, None] * 16 + columns[None, :], tl.dot(a, a))


def test_tiles_wrap_around_in_32_bits_or_are_loaded() -> None:
    for step, good in ((16, True), (1 << 30, False)):
        rectangles = rewritten(compiled(far_around, {"a_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32"}, {"STEP": step}))
        assert rectangles is not None and (hidden(rectangles, [1 << 20, 2 << 20, 48], (5,)) is not None) == good


@tilework.jit
def shifted(a_ptr, b_ptr, c_ptr, low, K, STEP: tl.constexpr):
    r = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(low, K, STEP):
        a = tl.load(a_ptr + r[:, None] * 256 + (k + r)[None, :], mask=(k + r)[None, :] < K, other=0.0)
        acc = tl.dot(a, tl.load(b_ptr + (k % 64 + r)[:, None] + r[None, :] * 256), acc)
    tl.store(c_ptr + r[:, None] * 16 + r[None, :], acc)


def test_starts_along_the_contiguous_axis_are_multiples_of_16_bytes() -> None:
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "low": "i32", "K": "i32"}
    for step, low, good in ((16, 0, True), (16, 8, True), (16, 3, False), (12, 0, False), (24, 16, True)):
        rectangles = rewritten(compiled(shifted, types, {"STEP": step}))
        assert rectangles is not None and len(rectangles["maps"]) == 2
        assert (hidden(rectangles, [1 << 20, 2 << 20, 3 << 20, low, 128], (1,)) is not None) == good


@tilework.jit
def by_steps(a_ptr, c_ptr, M, step):
    rows, columns = tl.program_id(0) * step + tl.arange(0, 16), tl.arange(0, 16)
    a = tl.load(a_ptr + rows[:, None] * 16 + columns[None, :], mask=rows[:, None] < M, other=0.0)
    tl.store(c_ptr + tl.program_id(0) * 256 + columns[:, None] * 16 + columns[None, :], tl.dot(a, a))


def test_starts_are_made_of_integers_of_any_width() -> None:
    a, wanted = np.arange(-200, 440, dtype=np.float16).reshape(40, 16) % 5, np.zeros((3, 16, 16), np.float32)
    for number in range(3):
        tile = np.zeros((16, 16), np.float32)
        tile[: len(a[16 * number :])] = a[16 * number :][:16]
        wanted[number] = tile @ tile
    for kind in ("i8", "i16", "i32", "i64"):
        module, c = (
            compiled(by_steps, {"a_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "step": kind}, {}),
            np.zeros_like(wanted),
        )
        rectangles = rewritten(module)
        assert rectangles is not None
        maps = hidden(rectangles, [a, c, 40, 16], (3,))
        assert maps is not None
        verify(module)
        evaluate(module, None, [a, c, 40, 16, *maps], (3,))
        np.testing.assert_array_equal(c, wanted, kind)


@tilework.jit
def strided(a_ptr, c_ptr, M, stride):
    rows, columns = tl.program_id(0) * 16 + tl.arange(0, 16), tl.arange(0, 16)
    a = tl.load(a_ptr + rows[:, None] * stride + columns[None, :], mask=rows[:, None] < M, other=0.0)
    tl.store(c_ptr + tl.program_id(0) * 256 + columns[:, None] * 16 + columns[None, :], tl.dot(a, a))


def test_strides_that_no_tensor_map_has_prove_nothing() -> None:
    rectangles = rewritten(compiled(strided, {"a_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "stride": "i64"}, {}))
    assert rectangles is not None
    for stride, good in ((16, True), (-16, False), (0, False), (20, False), (1 << 39, False)):
        assert (hidden(rectangles, [1 << 50, 2 << 50, 32, stride], (2,)) is not None) == good, stride


@tilework.jit
def in_steps(a_ptr, c_ptr, n, factor):
    r = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, n, factor * 16):
        a = tl.load(a_ptr + r[:, None] * 4096 + (k + r)[None, :])
        acc = tl.dot(a, a, acc)
    tl.store(c_ptr + r[:, None] * 16 + r[None, :], acc)


def test_a_step_that_overflows_is_refused() -> None:
    """The launch finds the last number that a loop counts by it."""
    rectangles = rewritten(compiled(in_steps, {"a_ptr": "*fp16", "c_ptr": "*fp32", "n": "i32", "factor": "i32"}, {}))
    assert rectangles is not None
    for factor, good in ((1, True), ((1 << 28) - 1, False), ((1 << 28) + 1, False), (1 << 26, True)):
        assert (hidden(rectangles, [1 << 20, 2 << 20, 64, factor], (1,)) is not None) == good, factor


@tilework.jit
def of_factors(a_ptr, c_ptr, M, factor):
    r = tl.arange(0, 16)
    a = tl.make_tensor_descriptor(a_ptr, shape=[M * factor // 16, 16], strides=[16, 1], block_shape=[16, 16]).load(
        [0, 0]
    )
    tl.store(c_ptr + r[:, None] * 16 + r[None, :], tl.dot(a, a))


def test_a_descriptor_of_numbers_that_overflow_is_refused() -> None:
    rectangles = rewritten(compiled(of_factors, {"a_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "factor": "i32"}, {}))
    assert rectangles is not None and len(rectangles["maps"]) == 1
    for rows, factor, good in ((16, 32, True), (1 << 16, 1 << 15, False), (1 << 16, (1 << 16) + 1, False)):
        assert (hidden(rectangles, [1 << 20, 2 << 50, rows, factor], (1,)) is not None) == good, (rows, factor)


@tilework.jit
def of_axes(a_ptr, c_ptr, s0, s1, s2, s3, AXES: tl.constexpr):
    r, acc = tl.arange(0, 16), tl.zeros((16, 16), tl.float32)
    for k in range(4):
        first = k * s3
        if AXES > 3:
            first += tl.program_id(0) * s0
        if AXES > 4:
            first += tl.program_id(1) * s1
        if AXES > 5:
            first += tl.program_id(2) * s2
        a = tl.load(a_ptr + first + r[:, None] * 16 + r[None, :])
        acc = tl.dot(a, a, acc)
    tl.store(c_ptr + r[:, None] * 16 + r[None, :], acc)


def test_tensor_maps_have_five_dimensions_at_most() -> None:
    types = {"a_ptr": "*fp16", "c_ptr": "*fp32"} | dict.fromkeys(("s0", "s1", "s2", "s3"), "i32")
    for axes in (3, 4, 5, 6):
        rectangles = rewritten(compiled(of_axes, types, {"AXES": axes}))
        found = [] if rectangles is None else [len(each["axes"]) for each in rectangles["maps"]]
        assert found == ([axes] if axes <= 5 else [])


@tilework.jit
def two_offsets(a_ptr, c_ptr):
    r = tl.arange(0, 16)
    rows = tl.program_id(0) * 16 + r
    a = tl.load(a_ptr + rows[:, None] * 16 + r[None, :])
    b = tl.load(a_ptr + (tl.program_id(0) * 48 + r)[:, None] * 16 + r[None, :])
    tl.store(c_ptr + rows[:, None] * 16 + r[None, :], tl.dot(a, b))


def test_loads_without_a_mask_have_descriptors_of_the_sizes_at_their_offsets() -> None:
    a, c = np.arange(64 * 16, dtype=np.float16).reshape(64, 16) % 7, np.zeros((32, 16), np.float32)
    module = compiled(two_offsets, {"a_ptr": "*fp16", "c_ptr": "*fp32"}, {})
    rectangles = rewritten(module)
    assert rectangles is not None
    maps = hidden(rectangles, [a, c], (2,))
    assert maps is not None and [shape for _, shape, _ in maps] == [(32, 16), (64, 16)]
    evaluate(module, None, [a, c, *maps], (2,))
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(c, np.concatenate([wide[:16] @ wide[:16], wide[16:32] @ wide[48:]]))
