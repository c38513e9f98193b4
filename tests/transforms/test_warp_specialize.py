"""Warp specialisation: the same values as the whole loop, for generated kernels; what stays whole, and why."""

import re

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.targets.gpu_descriptors import Block, generated
from tests.targets.gpu_descriptors import run as run_ptx
from tests.transforms.warp_specialized_kernels import (
    HOPPER,
    KERNELS,
    Case,
    attention,
    block,
    compiled,
    host,
    partitions,
    run,
    ttgir,
)
from tilework.compiler import ASTSource, lower
from tilework.ir.printer import print_module
from tilework.oracles.evaluator import evaluate
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline
from tilework.transforms.remarks import listening

TILES = [(128, 64, 32), (64, 128, 32), (64, 256, 16), (128, 32, 64)]
CASES = [Case("descriptors", (128, 64, 32), 4, 3, (136, 64, 160)), Case("tiles", (128, 64, 32), 4, 3, (136, 128, 96))]


def draw(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    bm, bn, bk = TILES[rng.integers(len(TILES))]
    kernel = list(KERNELS)[rng.integers(len(KERNELS))]
    k = int(rng.choice([0, 16, bk, bk * 3 - 16, bk * 6]))
    m, n = bm * int(rng.integers(1, 3)), bn + int(rng.choice([-16, 0, 16]))
    return Case(
        kernel,
        (bm, bn, bk),
        int(rng.choice([4, 8])),
        int(rng.integers(1, 6)),
        (m, n, max(k, 16) if "blocks" in kernel else k),
    )


@pytest.mark.parametrize("case", [*CASES, *map(draw, range(5))], ids=str)
def test_values(case: Case) -> None:
    module = compiled(case)
    is_one = case.tile[:2] == (64, 128) or (case.tile[0], case.warps) == (128, 8)
    assert partitions(module) == (1 if is_one else 2)
    run(case, module)


@pytest.mark.parametrize(
    ("rows", "warps", "columns", "loops"), [(128, 4, 96, 1), (64, 8, 32, 1), (128, 4, 160, 2), (64, 4, 32, 2)]
)
def test_attention(rows: int, warps: int, columns: int, loops: int) -> None:
    types = {"q": block((rows, 32)), "k": block((32, 32)), "v": block((32, 32)), "o": block((rows, 32))}
    constants = {"BM": rows, "BN": 32, "D": 32, "STAGES": 2, "LOOPS": loops}
    module = ttgir(attention, {**types, "N": "i32", "scale": "fp32"}, constants, warps, "requested")
    text = print_module(module)
    assert partitions(module) == rows // 64 and text.count("pendings = 1 : i32") == rows // 64 * loops
    assert text.count("local_alloc : () -> !ttg.memdesc<2x32x32xf16") == 2  # both loops use the same memory
    assert text.count("math.exp2") == 2 * loops * (rows // 64)  # the work of the first round is that of all
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((count, 32)).astype(np.float16) for count in (rows + 8, columns, columns))
    out = np.zeros_like(q)
    evaluate(module, None, [*map(host, (q, k, v, out)), columns, 0.18], (2,), fences=True)
    scores = q.astype(np.float32) @ k.astype(np.float32).T * np.float32(0.18)
    p = np.exp2(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, p @ v.astype(np.float32) / p.sum(1, keepdims=True), atol=1e-3)


@tw.jit
def persistent_attention(
    q,
    k,
    v,
    o,
    HEADS,
    N,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    FLAT: tl.constexpr,
):
    blocks = tl.cdiv(N, BM)
    for tile in tl.range(tl.program_id(0), blocks * HEADS, 2, flatten=FLAT, warp_specialize=True):
        begin, om = tile // blocks * N, tile // blocks * N + tile % blocks * BM
        x = q.load([om, 0])
        top = tl.full((BM,), -float("inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        for n in tl.range(0, N, BN):
            scores = tl.dot(x, k.load([begin + n, 0]).T) * scale
            higher = tl.maximum(top, tl.max(scores, 1))
            p, alpha = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
            total = total * alpha + tl.sum(p, 1)
            acc = tl.dot(p.to(tl.float16), v.load([begin + n, 0]), acc * alpha[:, None])
            top = higher
        o.store([om, 0], (acc / total[:, None]).to(tl.float16))


def persistent_types(rows: int) -> dict[str, str]:
    return dict.fromkeys("qo", block((rows, 32))) | dict.fromkeys("kv", block((32, 32)))


@pytest.mark.parametrize(("rows", "warps", "flat"), [(128, 4, False), (128, 8, True), (64, 4, True)])
def test_persistent_attention(rows: int, warps: int, flat: bool) -> None:
    """Tiles of several heads in one specialised loop; the loop over columns is inside of it."""
    constants = {"BM": rows, "BN": 32, "D": 32, "FLAT": flat}
    types = {**persistent_types(rows), "HEADS": "i32", "N": "i32", "scale": "fp32"}
    module = ttgir(persistent_attention, types, constants, warps, "requested")
    assert partitions(module) > 0
    heads, n = 3, 2 * rows
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((heads * n, 32)).astype(np.float16) for _ in range(3))
    out = np.zeros_like(q)
    evaluate(module, None, [*map(host, (q, k, v, out)), heads, n, 0.18], (2,), fences=True)
    for head in range(heads):
        part = slice(head * n, (head + 1) * n)
        scores = q[part].astype(np.float32) @ k[part].astype(np.float32).T * np.float32(0.18)
        p = np.exp2(scores - scores.max(1, keepdims=True))
        np.testing.assert_allclose(out[part], p @ v[part].astype(np.float32) / p.sum(1, keepdims=True), atol=1e-3)


@pytest.mark.parametrize("mode", ["consan", "consan,iisan"])
def test_checks_of_triton_leave_loops_specialised(mode: str) -> None:
    constants = {"BM": 128, "BN": 32, "D": 32, "FLAT": False}
    types = {**persistent_types(128), "HEADS": "i32", "N": "i32", "scale": "fp32"}
    source = ASTSource(persistent_attention, {**types, **dict.fromkeys(constants, "constexpr")}, constants)
    found = lower(source, GPUTarget("cuda", 90, 32), ["ttgir"], instrumentation_mode=mode)
    assert "ttg.warp_specialize" in found["ttgir"]


@tw.jit
def also_hands_on(q, k, v, o, other, N, AFTER: tl.constexpr):
    """What the second product adds to, or its result, is carried once more."""
    acc, kept = tl.zeros((64, 32), tl.float32), tl.full((64, 32), 3.0, tl.float32)
    for n in tl.range(0, N, 32, warp_specialize=True, num_stages=2):
        p = tl.clamp(tl.dot(q.load([0, 0]), k.load([n, 0]).T), -1, 1)
        kept = acc
        acc = tl.dot(p.to(tl.float16), v.load([n, 0]), acc)
        if AFTER:
            kept = acc
    o.store([0, 0], acc.to(tl.float16))
    other.store([0, 0], kept.to(tl.float16))


@pytest.mark.parametrize("after", [False, True])
def test_sums_that_a_loop_also_hands_on(after: bool) -> None:
    types = {name: block((64 if name in "qo" else 32, 32)) for name in "qkvo"} | {"other": block((64, 32)), "N": "i32"}
    module = ttgir(also_hands_on, types, {"AFTER": after}, 4, "requested")
    assert partitions(module) == 1
    q, k, v = (generated((rows, 32), np.float16) for rows in (64, 96, 96))
    out, other = np.zeros((64, 32), np.float16), np.zeros((64, 32), np.float16)
    evaluate(module, None, [*map(host, (q, k, v, out, other)), 96], (1,), fences=True)
    p, v = np.clip(q.astype("f4") @ k.astype("f4").T, -1, 1), v.astype("f4")
    np.testing.assert_array_equal(out, p @ v)
    np.testing.assert_array_equal(other, out if after else p[:, :64] @ v[:64])


def test_values_in_ptx() -> None:
    m, n, k = 128, 64, 96
    a, b = generated((m, k), np.float16), generated((n, k), np.float16)
    c = np.zeros((m, n), np.float16)
    args = {"a": Block(a, (128, 32)), "b": Block(b, (32, 32)), "c": Block(c, (128, 32)), "M": m, "N": n, "K": k}
    constants = {"BM": 128, "BN": 32, "BK": 32, "STAGES": 2, "FLAT": False}
    text = run_ptx(KERNELS["tiles"], args, constants, warps=4, aligned="MNK")
    assert "setmaxnreg.inc.sync.aligned.u32 \t232" in text
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_attention_in_ptx() -> None:
    """Registers that a product in the background still reads are not filled again before its wait."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-1, 2, (rows, 16)).astype(np.float16) for rows in (64, 96, 96))
    out = np.zeros_like(q)
    blocks = {
        name: Block(array, (len(q) if len(array) == 64 else 32, 16))
        for name, array in zip("qkvo", (q, k, v, out), strict=True)
    }
    run_ptx(attention, {**blocks, "N": 96, "scale": 1}, {"BM": 64, "BN": 32, "D": 16, "STAGES": 2, "LOOPS": 1})
    p = np.exp2(q.astype(np.float32) @ k.astype(np.float32).T)
    np.testing.assert_allclose(out, p @ v.astype(np.float32) / p.sum(1, keepdims=True), atol=2e-3)


def test_threads_of_a_producer_copy_in_ptx() -> None:
    """What they copied is there when all have arrived, each behind its own copies."""
    a, b, c = generated((64, 64), np.float16), generated((32, 64), np.float16), np.zeros((64, 32), np.float16)
    constants = {"BM": 64, "BN": 32, "BK": 32, "STAGES": 2}
    text = run_ptx(KERNELS["pointers"], {"a": a, "b": b, "c": c, "M": 64, "N": 32, "K": 64}, constants, aligned="MNK")
    copies, rest = text.partition("cp.async.mbarrier.arrive.noinc")[::2]
    assert "cp.async.cg" in copies and "cp.async.cg" not in rest and "setmaxnreg.dec" in copies
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_a_result_is_stored_while_the_next_tile_is_computed() -> None:
    text = print_module(compiled(CASES[1]))
    (consumer,) = text.split("partition1")[1:]
    steps = re.findall(r"warp_group_dot |local_store|async_tma_copy_local_to_global|async_tma_store_wait", consumer)
    assert steps[-5:] == [  # the wait for a store is in front of the next one, behind its products
        "warp_group_dot ",
        "async_tma_store_wait",
        "local_store",
        "async_tma_copy_local_to_global",
        "async_tma_store_wait",
    ]
    assert "scf.yield" in consumer.rpartition("async_tma_copy_local_to_global")[2].partition("async_tma_store_wait")[0]


@pytest.mark.parametrize(("depth", "keys", "turns"), [(32, 32, 1), (64, 128, 0), (128, 32, 0)])
def test_groups_take_turns_where_tensor_cores_are_not_the_limit(depth: int, keys: int, turns: int) -> None:
    types = {name: block((keys if name in "kv" else 128, depth)) for name in "qkvo"}
    constants = {"BM": 128, "BN": keys, "D": depth, "STAGES": 2, "LOOPS": 1}
    module = ttgir(attention, {**types, "N": "i32", "scale": "fp32"}, constants, 8, "requested")
    text = print_module(module)
    assert [text.count(f"ttng.pingpong_{name}") for name in ("wait", "signal")] == [turns, turns]
    with listening() as remarks:
        run_pipeline(module, parse_pipeline("tritongpu-limit-remarks"))
    reported = [note for found in remarks for note in found.notes if "warp specialized" in note]
    assert [note.endswith("start their dots in ping-pong order") for note in reported] == [turns > 0]


@tw.jit
def looks_at_all(q, k, v, o, flags, N, WHAT: tl.constexpr):
    acc = tl.zeros((128, 32), tl.float32)
    for n in tl.range(0, N, 32, warp_specialize=True, num_stages=2):
        s = tl.dot(q.load([0, 0]), k.load([n, 0]).T)
        if WHAT == "all rows":
            s -= tl.max(tl.max(s, 1), 0)
        elif WHAT == "one byte":
            s += tl.gather(tl.load(flags + n + tl.arange(0, 1)), (tl.max(s, 1) * 0).to(tl.int32), 0)[:, None]
        acc = tl.dot(tl.math.exp2(s).to(tl.float16), v.load([n, 0]), acc)
    o.store([0, 0], acc.to(tl.float16))


@pytest.mark.parametrize("what", ["own rows", "all rows", "one byte"])
def test_groups_do_not_meet_while_one_has_the_turn(what: str) -> None:
    """The other one would wait for the turn, and not come; one byte of scratch memory is enough for that."""
    types = {name: block((32 if name in "kv" else 128, 32)) for name in "qkvo"} | {"flags": "*i8", "N": "i32"}
    text = print_module(ttgir(looks_at_all, types, {"WHAT": what}, 8, "requested"))
    assert "ttg.warp_specialize" in text and ("ttng.pingpong_wait" in text) == (what == "own rows")


@tw.jit
def several_tiles(q, k, v, o, N, TILES: tl.constexpr):
    for tile in tl.range(TILES):
        acc = tl.zeros((128, 16), tl.float32)
        x = q.load([tile * 128, 0])
        for n in tl.range(0, N, 32, warp_specialize=True, num_stages=2):
            acc = tl.dot(tl.math.exp2(tl.dot(x, k.load([n, 0]).T)).to(tl.float16), v.load([n, 0]), acc)
        o.store([tile * 128, 0], acc.to(tl.float16))


def test_two_groups_that_take_turns_in_ptx() -> None:
    """Three for each tile: the next one starts in the other phase."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-1, 2, (rows, 16)).astype(np.float16) / 4 for rows in (256, 96, 96))
    arrays = zip("qkvo", (q, k, v, out := np.zeros_like(q)), strict=True)
    given = {name: Block(array, (128 if name in "qo" else 32, 16)) for name, array in arrays}
    text = run_ptx(several_tiles, {**given, "N": 96}, {"TILES": 2}, warps=8)
    assert len(re.findall(r"mbarrier.init\S+ \[%r\d+\], 4;", text)) == 2
    p = np.exp2(q.astype(np.float32) @ k.astype(np.float32).T)
    np.testing.assert_allclose(out, p @ v.astype(np.float32), atol=4e-3)


def test_a_product_is_given_back_behind_the_next_one() -> None:
    lines = [line.strip() for line in print_module(compiled(CASES[0])).splitlines()]
    start = next(index for index, line in enumerate(lines) if line.startswith("partition1"))
    first = next(index for index in range(start, len(lines)) if "isAsync = true" in lines[index])
    assert "{pendings = 1 : i32}" in lines[first + 1]
    release = next(line for line in lines[first:] if line.startswith("ttng.arrive_barrier"))
    assert ", 4, %" in release  # not in the first iteration
    assert not any("tt.warp_specialize" in line for line in lines)


@tw.jit
def stays_whole(a, b, c, M, N, K, n, BM: tl.constexpr, WHY: tl.constexpr):
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, 32])
    db = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[64, 32])
    acc = tl.zeros((BM, 64), dtype=tl.float32)
    at = 0
    for k in tl.range(0, n, warp_specialize=True):
        if WHY == "made":
            db = tl.make_tensor_descriptor(b + k * K, shape=[N, K], strides=[K, 1], block_shape=[64, 32])
        y = db.load([0, at])
        acc = tl.dot(da.load([0, k * 32]), y.T, acc)
        at += 32
        if WHY == "computed":
            at = tl.max(tl.max(acc, 1), 0).to(tl.int32)
        if WHY == "barrier":
            tl.debug_barrier()
        if WHY == "assembly":
            tl.inline_asm_elementwise("bar.sync 0; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
        if WHY == "stored":
            tl.store(a + k, 1.0)
    rows = tl.arange(0, BM)
    tl.store(c + rows[:, None] * 64 + tl.arange(0, 64)[None, :], acc.to(tl.float16))


@pytest.mark.parametrize(
    ("why", "warps", "reason"),
    [
        ("made", 4, "a descriptor for it is created in a loop, or selected"),
        ("computed", 4, "its loads depend on its dots or stores"),
        ("barrier", 4, "ttg.barrier needs all warps"),
        ("assembly", 4, "its assembly reads thread ids or has barriers"),
        ("stored", 4, "the kernel also stores to the memory that it loads from"),
        ("", 2, "it has no warp-group dot"),
        ("", 16, "it needs 4 or 8 warps, not 16"),
    ],
)
def test_a_loop_that_stays_whole_is_reported_why(why: str, warps: int, reason: str) -> None:
    types = {**dict.fromkeys("abc", "*fp16"), **dict.fromkeys("MNKn", "i32")}
    with listening() as remarks:
        module = ttgir(stays_whole, types, {"BM": 64, "WHY": why}, warps, "requested")
    assert "warp_specialize" not in print_module(module)
    reported = [found.text for found in remarks if found.severity == "warning"]
    assert reported == [f"the loop is not warp specialized: {reason}; all warps run the whole of it"]


def test_it_can_be_switched_off_and_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening() as remarks:
        assert partitions(compiled(CASES[0], when="never")) == 0
    assert any("it is switched off" in found.text for found in remarks)
    for name, when in {"0": "never", "1": "requested", "auto": "pays", "": "pays"}.items():
        monkeypatch.setenv("TILEWORK_WARP_SPECIALIZE", name)
        assert f"nvgpu-warp-specialization{{num-stages=3 when={when}}}" in ttgir_pipeline(HOPPER)
    monkeypatch.setenv("TILEWORK_WARP_SPECIALIZE", "all")
    with pytest.raises(ValueError, match="is 0, 1, auto, not 'all'"):
        ttgir_pipeline(HOPPER)


def test_a_nest_is_flattened_where_it_is_not_partitioned() -> None:
    """Partitions keep the two loops: one consumer stores a tile while the producer loads the next."""
    for when, is_flattened in (("requested", False), ("never", True)):
        texts = [
            print_module(compiled(Case(name, (128, 64, 32), 4, 3, (136, 128, 96)), when))
            for name in ("tiles", "flat tiles")
        ]
        assert (texts[0].count("scf.for") != texts[1].count("scf.for")) == is_flattened


@tw.jit
def counts_too(a, b, c, counts, K):
    acc = tl.zeros((128, 64), dtype=tl.float32)
    for k in tl.range(0, K, 32, warp_specialize=True):
        acc = tl.dot(a.load([0, k]), b.load([0, k]).T, acc)
        tl.atomic_add(counts, 1)
    tl.store(counts + 1, tl.load(counts + 1) + 1)
    c.store([0, 0], acc.to(c.dtype))


def test_one_of_two_consumers_does_what_is_not_cut() -> None:
    types = {"a": block((128, 32)), "b": block((64, 32)), "c": block((128, 64)), "counts": "*i32", "K": "i32"}
    module = ttgir(counts_too, types, {}, 4, "requested")
    assert partitions(module) == 2
    a, b, c = generated((128, 96), np.float16), generated((64, 96), np.float16), np.zeros((128, 64), np.float16)
    counts = np.zeros(2, np.int32)
    evaluate(module, None, [*map(host, (a, b, c)), counts, 96], (1,), fences=True)
    assert counts.tolist() == [3, 1]
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@tw.jit
def stores_by(a, b, c, to, K, BY: tl.constexpr):
    rm, rn = tl.arange(0, 128), tl.arange(0, 256)
    acc = tl.zeros((128, 256), dtype=tl.float32)
    for k in tl.range(0, K, 64, warp_specialize=True, num_stages=4):
        acc = tl.dot(a.load([0, k]), b.load([0, k]).T, acc)
    if BY == "store":
        c.store([0, 0], acc.to(tl.float16))
    elif BY == "reduce":
        c.atomic_add([0, 0], acc.to(tl.float16))
    else:
        tl.store(to + rm[:, None] * 256 + rn[None, :], acc.to(tl.float16))


@pytest.mark.parametrize(("by", "stages"), [("store", 3), ("reduce", 3), ("pointers", 4)])
def test_buffers_leave_room_for_the_tile_that_is_stored(by: str, stages: int) -> None:
    """A descriptor takes a whole tile from shared memory; a store by pointers exchanges rows there in two halves."""
    types = {"a": block((128, 64)), "b": block((256, 64)), "c": block((128, 256)), "to": "*fp16", "K": "i32"}
    text = print_module(ttgir(stores_by, types, {"BY": by}, 8, "requested"))
    assert f"!ttg.memdesc<{stages}x128x64xf16" in text and text.count("num_warps(") == 1


@tw.jit
def does_not_ask(a, b, c, pa, pb, K, BM: tl.constexpr, BN: tl.constexpr, BY: tl.constexpr, WORK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in tl.static_range(2):  # loops that use the same shared memory
        for k in range(0, K, 64):
            if BY == "descriptors":
                x, y = a.load([0, k]), b.load([0, k])
            else:
                x, y = tl.load(pa + rm[:, None] * K + k + rk), tl.load(pb + rn[:, None] * K + k + rk)
            if WORK:
                acc += tl.exp2(tl.dot(x, y.T))
            else:
                acc = tl.dot(x, y.T, acc)
    c.store([0, 0], acc.to(c.dtype))


@tw.jit
def needs_more(a, b, c, K, TURNS: tl.constexpr):
    rm, rn = tl.arange(0, 128)[:, None], tl.arange(0, 256)[None, :]
    for turn in tl.range(TURNS):
        acc = tl.zeros((128, 256), dtype=tl.float32)
        for k in tl.range(0, K, 64, warp_specialize=True):
            acc = tl.dot(a.load([turn * 128, k]), b.load([0, k]).T, acc)
        tl.store(c + (turn * 128 + rm) * 256 + rn, tl.gather(acc, (rm + 1 + 0 * rn) % 128, 0))


@pytest.mark.parametrize("turns", [1, 4])
def test_a_loop_that_only_fits_whole_stays_whole(turns: int) -> None:
    """Beside its buffers, which the kernel asks for, a consumer would need 128 KB for what comes after the loop, if it
    runs again."""
    types = {"a": block((128, 64)), "b": block((256, 64)), "c": "*fp32", "K": "i32", "TURNS": "constexpr"}
    source = ASTSource(needs_more, types, {"TURNS": turns}, {(2,): [["tt.divisibility", 16]]})
    with listening() as remarks:
        text = lower(source, GPUTarget("cuda", 90, 32), ["ttgir"], num_warps=8, num_stages=4)["ttgir"]
    assert ("ttg.warp_specialize" in text) == (turns == 1)
    assert any("its partitions do not fit" in found.text for found in remarks) == (turns > 1)


@tw.jit
def transposed(a, b, c, K):
    acc = tl.zeros((128, 64), dtype=tl.float32)
    for k in tl.range(0, K, 32, warp_specialize=True):
        acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc)
    c.store([0, 0], acc)


@tw.jit
def carried(a, b, c, K):
    rm, rn, rk = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 32)
    pa, pb = a + rm[:, None] * K + rk[None, :], b + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((128, 64), dtype=tl.float32)
    for _ in tl.range(0, K, 32, warp_specialize=True):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += 32
        pb += 32
    tl.store(c + rm[:, None] * 64 + rn[None, :], acc)


def test_pointers_that_a_loop_of_eight_warps_carries() -> None:
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"}
    assert partitions(ttgir(carried, types, {}, 8, "requested")) == 1


def test_a_factor_that_lies_across_in_ptx() -> None:
    """The producer needs no layouts of what it does not do; a consumer fills registers that no product reads any
    more."""
    a, b, c = generated((128, 96), np.float32), generated((96, 64), np.float32), np.zeros((128, 64), np.float32)
    args = {"a": Block(a, (128, 32)), "b": Block(b, (32, 64)), "c": Block(c, (128, 64)), "K": 96}
    assert "setmaxnreg" in run_ptx(transposed, args, {}, warps=8, aligned="K")
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize(
    ("by", "work", "rows", "when", "reported"),
    [
        ("descriptors", False, 128, "pays", ""),
        ("descriptors", False, 128, "requested", None),
        ("descriptors", False, 64, "pays", "3 blocks on a multiprocessor overlap"),
        ("pointers", False, 128, "pays", "threads would copy as much as before"),
        ("pointers", True, 128, "pays", ""),
        ("pointers", True, 64, "pays", "blocks on a multiprocessor overlap"),
    ],
)
def test_loops_that_do_not_ask(by: str, work: bool, rows: int, when: str, reported: str | None) -> None:
    columns = 2 * rows
    types = {"a": block((rows, 64)), "b": block((columns, 64)), "c": block((rows, columns)), "K": "i32"}
    types |= {"pa": "*fp16", "pb": "*fp16"}
    constants = {"BM": rows, "BN": columns, "BY": by, "WORK": work}
    with listening() as remarks:
        count = partitions(ttgir(does_not_ask, types, constants, 8, when))
    texts = [found.text for found in remarks if "would not pay" in found.text]
    assert (count, len(texts)) == (int(reported == ""), int(bool(reported)))
    assert all(reported in text for text in texts if reported)


@tw.jit
def attends_by_pointers(
    q, k, v, o, rows, stride, N, BN: tl.constexpr, D: tl.constexpr, STEP: tl.constexpr, GATHER: tl.constexpr
):
    rm, rn, rd = tl.arange(0, 128), tl.arange(0, BN), tl.arange(0, D)
    step = stride if STEP == 0 else STEP
    x = tl.load(q + rm[:, None] * D + rd[None, :])
    top = tl.full((128,), -float("inf"), tl.float32)
    acc = tl.zeros((128, D), tl.float32)
    for n in range(0, N, BN):
        at = tl.load(rows + n + rn) if GATHER else n + rn
        s = tl.dot(x, tl.load(k + at[None, :] * step + rd[:, None]))
        high = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - high[:, None]).to(tl.float16)
        y = tl.load(v + at[:, None] * step + rd[None, :])
        acc = tl.dot(p, y, acc * tl.exp2(top - high)[:, None])
        top = high
    tl.store(o + rm[:, None] * D + rd[None, :], acc)


@pytest.mark.parametrize(
    ("keys", "step", "gather", "registers"),
    [(128, 128, False, 24), (64, 0, False, 56), (64, 0, True, 72), (128, 0, False, None), (128, 128, True, None)],
)
def test_addresses_of_a_producer_have_registers(keys: int, step: int, gather: bool, registers: int | None) -> None:
    """Those at constant distances share a pointer; consumers get what the others leave, if that is enough."""
    types = dict.fromkeys("qkv", "*fp16") | {"o": "*fp32", "rows": "*i32", "stride": "i32", "N": "i32"}
    constants = {"BN": keys, "D": 128, "STEP": step, "GATHER": gather}
    with listening() as remarks:
        text = print_module(ttgir(attends_by_pointers, types, constants, 8, "pays"))
    found = re.search(r"requestedRegisters = array<i32: (\d+)>", text)
    assert (found and int(found[1])) == registers
    assert any("addresses take" in remark.text for remark in remarks) == (registers is None)


@pytest.mark.parametrize("count", [0, 64, 192])
@pytest.mark.parametrize("gather", [False, True])
def test_a_producer_that_gathers_in_ptx(count: int, gather: bool) -> None:
    rng = np.random.default_rng(count)
    q = rng.integers(-1, 2, (128, 32)).astype(np.float16)
    k, v = (rng.integers(-1, 2, (200, 48)).astype(np.float16) for _ in range(2))
    rows, out = rng.permutation(200).astype(np.int32), np.zeros((128, 32), np.float32)
    args = {"q": q, "k": k, "v": v, "o": out, "rows": rows, "stride": 48, "N": count}
    constants = {"BN": 64, "D": 32, "STEP": 0, "GATHER": gather}
    run_ptx(attends_by_pointers, args, constants, warps=8, aligned=("stride", "N"))
    used = rows[:count] if gather else np.arange(count)
    s = q.astype("f8") @ k[used, :32].astype("f8").T
    p = np.exp2(s - s.max(1, keepdims=True, initial=-1e3))
    np.testing.assert_allclose(out, p @ v[used, :32], rtol=2e-3, atol=2e-3)
