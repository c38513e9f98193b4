"""Blocks that stay for several programs: which kernels get them, and that every program still runs, once."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.compiler import ASTSource
from tilework.target import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor

LARGE: dict[str, Any] = {"BM": 128, "BN": 256, "BK": 64}
STAYS = "%nsmid"
FP8 = ml_dtypes.float8_e4m3fn


@tilework.jit
def product(
    a, b, c, K, turns, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    KIND: tl.constexpr = "",  # pyright: ignore[reportArgumentType]
):  # fmt: skip
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    if KIND == "made of a tile":
        row += (tl.arange(0, 1) + K).reshape([]) - K
    if KIND == "assembly":
        mine = tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
        row = (mine * BM + row) // 2
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K if KIND != "triangle" else row + BM, BK, warp_specialize=KIND == "asked"):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    if KIND == "atomic":
        tl.atomic_add(turns, 1)
    if KIND == "pointers":
        tl.store(c + (row + tl.arange(0, BM)[:, None]) * BN + tl.arange(0, BN), acc.to(tl.float16))
    else:
        c.store([row, column], acc.to(tl.float16))


@tilework.jit
def flattened(
    a, b, c, K, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    SPECIALIZE: tl.constexpr = False,  # pyright: ignore[reportArgumentType]
):  # fmt: skip
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=SPECIALIZE):
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([tile * BM, k]), b.load([k, 0]), acc)
        c.store([tile * BM, 0], acc.to(tl.float16))


def compiled(
    kernel: tilework.JITFunction,
    fifth: str,
    element: str = "fp16",
    a: str | None = None,
    c: str | None = None,
    stages: int = 3,
    warps: int = 8,
    **constants: object,
) -> dict[str, str]:
    BM, BN, BK = (constants[name] for name in ("BM", "BN", "BK"))
    factors = [f"tensordesc<{element}[{shape}]>" for shape in (f"{BM},{BK}", f"{BK},{BN}")]
    types = [a or factors[0], factors[1], c or f"tensordesc<fp16[{BM},{BN}]>", "i32", fifth]
    signature = dict(zip(kernel.arg_names, types, strict=False))
    aligned = {(index,): [["tt.divisibility", 16]] for index, type in enumerate(types) if type == "*fp16"}
    options = {"num_warps": warps, "num_stages": stages}
    source = ASTSource(kernel, signature, constants, aligned)
    return tilework.compile(source, GPUTarget("cuda", 90, 32), options).asm


def ttgir(kernel: tilework.JITFunction, fifth: str, **rest: Any) -> str:
    return compiled(kernel, fifth, **rest)["ttgir"]


@pytest.mark.parametrize(("kind", "element"), [("", "fp16"), ("made of a tile", "fp16"), ("", "fp8e4nv")])
def test_a_loop_of_products_over_tiles_of_descriptors(kind: str, element: str) -> None:
    """Also of tiles that warps turn."""
    text = ttgir(product, "*i32", element=element, **LARGE, KIND=kind)
    assert text.count(STAYS) == 2, "in both partitions"
    assert text.count("tt.get_num_programs x") == 2


def test_a_loop_has_no_more_stages_than_keep_its_products_busy() -> None:
    """An iteration takes 512 cycles, memory lets wait for 700: two tiles come, one is read, one was."""
    text = ttgir(product, "*i32", stages=6, **{**LARGE, "BK": 32})
    assert "memdesc<4x128x32xf16" in text and "memdesc<6x" not in text


@tilework.jit
def batched(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EACH: tl.constexpr):
    start = a + tl.program_id(0).to(tl.int64) * BM * K if EACH else a
    rows = tl.make_tensor_descriptor(start, [BM, K], [K, 1], [BM, BK])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(rows.load([0, k]), b.load([k, tl.program_id(1) * BN]), acc)
    c.store([tl.program_id(0) * BM, tl.program_id(1) * BN], acc.to(tl.float16))


@pytest.mark.parametrize("each", [False, True])
def test_blocks_do_not_stay_where_partitions_would_be_lost(each: bool) -> None:
    """A descriptor that is made for each program would be made in a loop."""
    text = ttgir(batched, "i32", **LARGE, EACH=each, a="*fp16")
    assert "ttg.warp_specialize" in text
    assert (STAYS in text) is not each


@pytest.mark.parametrize(
    "constants",
    [
        pytest.param({**LARGE, "KIND": "triangle"}, id="programs of different length"),
        pytest.param({**LARGE, "KIND": "atomic"}, id="programs that may wait for each other"),
        pytest.param({**LARGE, "KIND": "assembly"}, id="assembly that asks for the number of its block"),
        pytest.param({**LARGE, "BM": 64, "BN": 64}, id="several blocks on a multiprocessor"),
        pytest.param(
            {**LARGE, "BM": 64, "element": "fp8e4nv", "KIND": "asked", "warps": 4},
            id="one warp group that turns a factor",
        ),
    ],
)
def test_others_end_with_their_program(constants: dict[str, Any]) -> None:
    assert STAYS not in ttgir(product, "*i32", **constants)


def test_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_PERSISTENT_PROGRAMS", "0")
    assert STAYS not in ttgir(product, "*i32", **LARGE)


@tilework.jit(noinline=True)
def called(
    a, b, c, K, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALIZE: tl.constexpr
):  # fmt: skip
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALIZE):
        acc = tl.dot(a.load([tl.program_id(0) * BM, k]), b.load([k, 0]), acc)
    c.store([tl.program_id(0) * BM, 0], acc.to(tl.float16))


@tilework.jit
def calling(a, b, c, K, tiles, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALIZE: tl.constexpr):
    called(a, b, c, K, tiles, BM, BN, BK, SPECIALIZE)


@pytest.mark.parametrize("requested", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_a_function_that_a_kernel_calls_is_run_by_all_warps_for_one_program(requested: bool) -> None:
    text = ttgir(calling, "i32", **LARGE, SPECIALIZE=requested)
    assert "tt.call" in text and "ttng.warp_group_dot" in text
    assert "ttg.warp_specialize(" not in text and STAYS not in text


@pytest.mark.parametrize("requested", [False, True])
def test_loops_that_run_in_partitions_are_not_flattened(requested: bool) -> None:
    """One loop with a question in each of its iterations took a fifth longer than two."""
    text = ttgir(flattened, "i32", **LARGE, SPECIALIZE=requested)
    assert "ttg.warp_specialize" in text
    assert text.count("scf.for") == 4, "two loops in each of two partitions"
    assert "scf.if" not in text


@pytest.mark.parametrize("kind, c, store", [("pointers", "*fp16", "st.global.v4"), ("", None, "[16, 64]")])
def test_one_warp_group_multiplies_while_another_stores(kind: str, c: str | None, store: str) -> None:
    """Warps store the rows that they have: no barrier of all of them is in the loop over programs."""
    asm = compiled(product, "*i32", **LARGE, KIND=kind, c=c)
    assert STAYS in asm["ttgir"] and store in asm["llir"] + asm["ptx"]
    assert not waits_for_all(asm)


def waits_for_all(asm: dict[str, str]) -> bool:
    return "bar.sync" in asm["ptx"].split("setmaxnreg.inc")[1].split("ret;")[0]


@pytest.mark.parametrize("warps", [4, 8])
def test_warps_whose_rows_are_apart_wait_for_each_other(warps: int) -> None:
    """Of 128 rows the first of four warps has rows 0 to 15 and 64 to 79."""
    asm = compiled(flattened, "i32", **{**LARGE, "BN": 128}, SPECIALIZE=True, warps=warps)
    assert "ttg.warp_specialize" in asm["ttgir"] and waits_for_all(asm) is (warps == 4)


@pytest.mark.parametrize(
    "multiprocessors, kind, element",
    [(1, "", FP8), (2, "pointers", np.float16), (2**31 - 2, "", np.float16)],
)
def test_every_program_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multiprocessors: int, kind: str, element: Any
) -> None:
    """Also where the number behind the last one does not fit into 32 bits, as in grids of nearly 2**31 programs."""
    from tilework.oracles.emulator import translate

    made = translate.special_registers

    def with_more(*given: object) -> dict[str, np.ndarray]:
        found = made(*given)  # pyright: ignore[reportArgumentType]
        found["%nsmid"] = np.array(multiprocessors, np.uint32)
        return found

    monkeypatch.setattr(translate, "special_registers", with_more)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(element) for shape in ((3 * 128, 64), (64, 256)))
    c = np.full((3 * 128, 256), np.nan, np.float16)
    maps = [
        TensorDescriptor.from_tensor(x, list(block)) for x, block in ((a, (128, 64)), (b, (64, 256)), (c, (128, 256)))
    ]
    rest = {**LARGE, "KIND": kind, "num_warps": 8, "num_stages": 3}
    with emulator("sm_90", str(tmp_path)):
        given = [*maps[:2], c if kind else maps[2], 64, np.zeros(1, np.int32)]
        kernel = tilework.jit(product.fn)[(3,)](*given, **rest)
    assert STAYS in kernel.asm["ttgir"]
    assert np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))
