"""Atomics: every operation and type, masked, and between threads."""

import threading

import numpy as np
import pytest

from tests.targets.cpu_run import NUMPY, compile_text
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate

INTEGER_KINDS = "and or xor add max min umax umin exch".split()


def rmw_text(kind: str, type: str, sem: str = "acq_rel", scope: str = "gpu") -> str:
    """old[i] = rmw(mem[i % 5], value[i]) where i < n."""
    return f"""tt.func public @k(%mem: !tt.ptr<{type}>, %value: !tt.ptr<{type}>, %old: !tt.ptr<{type}>, %n: i32) {{
      %c5 = arith.constant 5 : i32
      ttc.nest [32] {{
      ^bb0(%i: i32):
        %at = arith.remsi %i, %c5 : i32
        %m = arith.cmpi slt, %i, %n : i32
        %p = tt.addptr %mem, %at : !tt.ptr<{type}>, i32
        %q = tt.addptr %value, %i : !tt.ptr<{type}>, i32
        %v = tt.load %q : !tt.ptr<{type}>
        %o = tt.atomic_rmw {kind}, {sem}, {scope}, %p, %v, %m : (!tt.ptr<{type}>, {type}, i1) -> {type}
        %r = tt.addptr %old, %i : !tt.ptr<{type}>, i32
        tt.store %r, %o : !tt.ptr<{type}>
        ttc.end
      }}
      tt.return
    }}"""


def tile_text(kind: str, type: str) -> str:
    t, p = f"tensor<32x{type}>", f"tensor<32x!tt.ptr<{type}>>"
    return f"""tt.func public @k(%mem: !tt.ptr<{type}>, %value: !tt.ptr<{type}>, %old: !tt.ptr<{type}>, %n: i32) {{
      %c5 = arith.constant dense<5> : tensor<32xi32>
      %i = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
      %at = arith.remsi %i, %c5 : tensor<32xi32>
      %ns = tt.splat %n : i32 -> tensor<32xi32>
      %m = arith.cmpi slt, %i, %ns : tensor<32xi32>
      %ps = tt.splat %mem : !tt.ptr<{type}> -> {p}
      %p = tt.addptr %ps, %at : {p}, tensor<32xi32>
      %qs = tt.splat %value : !tt.ptr<{type}> -> {p}
      %q = tt.addptr %qs, %i : {p}, tensor<32xi32>
      %v = tt.load %q : {p}
      %o = tt.atomic_rmw {kind}, acq_rel, gpu, %p, %v, %m : ({p}, {t}, tensor<32xi1>) -> {t}
      %rs = tt.splat %old : !tt.ptr<{type}> -> {p}
      %r = tt.addptr %rs, %i : {p}, tensor<32xi32>
      tt.store %r, %o : {p}
      tt.return
    }}"""


CASES = [(kind, type) for kind in INTEGER_KINDS for type in ("i32", "i64")]
CASES += [("add", "i8"), ("max", "i16"), ("umin", "i8")]
CASES += [(kind, type) for kind in ("fadd", "exch") for type in ("f16", "bf16", "f32", "f64")]
CASES += [("max", "f32"), ("min", "f32"), ("max", "f16")]


@pytest.mark.parametrize(("kind", "type"), CASES)
def test_rmw(kind: str, type: str) -> None:
    """Elements that share an address see each other's results, in order."""
    rng = np.random.default_rng(0)
    memory, value = rng.integers(-9, 9, 5).astype(NUMPY[type]), rng.integers(-9, 9, 32).astype(NUMPY[type])
    results = []
    for run in (
        compile_text(rmw_text(kind, type)),
        lambda *args: evaluate(parse_module(tile_text(kind, type)), "k", list(args)),
    ):
        changed, old = memory.copy(), np.zeros(32, NUMPY[type])
        run(changed, value, old, 27)
        results.append((changed, old))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
def test_orderings_and_scopes(sem: str, scope: str) -> None:
    for kind, type in (("add", "i32"), ("fadd", "f32")):
        memory, old = np.zeros(5, NUMPY[type]), np.zeros(32, NUMPY[type])
        compile_text(rmw_text(kind, type, sem, scope))(memory, np.ones(32, NUMPY[type]), old, 32)
        np.testing.assert_array_equal(memory, [7, 7, 6, 6, 6])


@pytest.mark.parametrize("type", ["i32", "i64", "f32", "i16"])
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_cas(type: str, sem: str) -> None:
    """Bits are compared, so NaN is found and -0.0 is not 0.0."""
    text = f"""tt.func public @k(%mem: !tt.ptr<{type}>, %cmp: {type}, %value: {type}, %old: !tt.ptr<{type}>) {{
      %o = tt.atomic_cas {sem}, gpu, %mem, %cmp, %value : (!tt.ptr<{type}>, {type}, {type}) -> {type}
      tt.store %old, %o : !tt.ptr<{type}>
      tt.return
    }}"""
    kernel = compile_text(text)
    cases = [(3, 3, 7, 7), (3, 4, 7, 3)]
    if type == "f32":
        cases += [(np.nan, np.nan, 1, 1), (0.0, -0.0, 1, 0)]
    for before, compare, value, after in cases:
        memory, old = np.array([before]).astype(NUMPY[type]), np.zeros(1, NUMPY[type])
        kernel(memory, compare, value, old)
        np.testing.assert_array_equal(memory, [after])
        np.testing.assert_array_equal(old, [before])


@pytest.mark.parametrize(
    ("kind", "type"), [("add", "i32"), ("fadd", "f32"), ("fadd", "bf16"), ("fadd", "f64"), ("max", "i64")]
)
def test_threads_do_not_lose_updates(kind: str, type: str) -> None:
    programs, threads = 50, 4
    kernel = compile_text(rmw_text(kind, type, "relaxed"))
    memory = np.zeros(5, NUMPY[type])
    value = (
        np.arange(32).astype(NUMPY[type])
        if kind == "max"
        else np.full(32, 2.0**-6 if type == "bf16" else 1).astype(NUMPY[type])
    )

    def work() -> None:
        kernel(memory, value, np.zeros(32, NUMPY[type]), 30, grid=(programs,))

    running = [threading.Thread(target=work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if kind == "max":
        np.testing.assert_array_equal(memory, [25, 26, 27, 28, 29])
    elif type == "bf16":  # sums stop growing when a step is below half a unit
        assert (memory.astype(np.float32) >= 4.0).all()
    else:
        np.testing.assert_array_equal(memory, np.full(5, 6 * programs * threads).astype(NUMPY[type]))


def test_a_spin_lock_protects_plain_memory() -> None:
    text = """tt.func public @k(%lock: !tt.ptr<i32>, %count: !tt.ptr<i32>) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      scf.while : () -> () {
        %old = tt.atomic_cas acquire, gpu, %lock, %zero, %one : (!tt.ptr<i32>, i32, i32) -> i32
        %busy = arith.cmpi ne, %old, %zero : i32
        scf.condition(%busy)
      } do {
        scf.yield
      }
      %c = tt.load %count : !tt.ptr<i32>
      %d = arith.addi %c, %one : i32
      tt.store %count, %d : !tt.ptr<i32>
      %true = arith.constant true
      %r = tt.atomic_rmw exch, release, gpu, %lock, %zero, %true : (!tt.ptr<i32>, i32, i1) -> i32
      tt.return
    }"""
    kernel = compile_text(text)
    lock, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    running = [threading.Thread(target=lambda: kernel(lock, count, grid=(500,))) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert count[0] == 1500
