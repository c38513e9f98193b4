"""Mistakes that generated kernels and odd inputs found in machine code, as small as they became."""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.cpu_run import compile_text

STEPS = """module {
  tt.func public @steps(%out: !tt.ptr<i32>, %start: i32, %end: i32, %step: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %count = scf.for %i = %start to %end step %step iter_args(%n = %c0) -> (i32)  : i32 {
      %more = arith.addi %n, %c1 : i32
      scf.yield %more : i32
    }
    tt.store %out, %count : !tt.ptr<i32>
    tt.return
  }
}
"""


@pytest.mark.parametrize(
    "bounds",
    [(0, 10, 3), (5, 5, 2), (10, 0, 3), (0, 10, 2**31 - 1), (-(2**31), 2**31 - 1, 2**30), (2**31 - 10, 2**31 - 1, 7)],
)
def test_loops_end_where_the_next_index_would_not_fit(bounds: tuple[int, int, int]) -> None:
    out = np.zeros(1, np.int32)
    compile_text(STEPS)(out, *bounds)
    assert out[0] == len(range(*bounds))


REDUCE_IN_BRANCH = """module {
  tt.func public @k(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %flag: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = ttc.alloc : !ttc.buf<i32>
    %1 = ttc.alloc : !ttc.buf<i32>
    %r = scf.if %flag -> (i32) {
      ttc.nest [16] {
      ^bb0(%i: i32):
        %p = tt.addptr %x, %i : !tt.ptr<i32>, i32
        %v = tt.load %p : !tt.ptr<i32>
        ttc.reduce %v, %i into %0, %1[] {
        ^bb0(%a: i32, %j: i32, %b: i32, %k: i32):
          %less = arith.cmpi slt, %a, %b : i32
          %same = arith.cmpi eq, %a, %b : i32
          %first = arith.cmpi slt, %j, %k : i32
          %tie = arith.andi %same, %first : i1
          %keep = arith.ori %less, %tie : i1
          %w = arith.select %keep, %a, %b : i32
          %n = arith.select %keep, %j, %k : i32
          ttc.yield %w, %n : i32, i32
        } : !ttc.buf<i32>, !ttc.buf<i32>
        ttc.end
      }
      %place = ttc.read %1[] : !ttc.buf<i32>
      %next = arith.addi %place, %c1 : i32
      scf.yield %next : i32
    } else {
      scf.yield %c0 : i32
    }
    tt.store %out, %r : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_values_after_a_reduction_in_a_branch_are_known() -> None:
    """The test of commutativity emits ops tentatively; values emitted before and after it must be kept."""
    x, out = np.array([5, 3, 9, 3] * 4, np.int32), np.zeros(1, np.int32)
    compile_text(REDUCE_IN_BRANCH)(x, out, True)
    assert out[0] == 2


@tilework.jit
def exchanged(a, b, out, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tile, p, q = tl.load(a + i), a, b
    for k in range(n):
        tile = tile ^ (tile * 3 + k)
        p, q = q, p + 4
    before = tl.load(p + i)
    tl.store(b + i, tile)
    tl.store(out + i, before - tl.load(p + i))


@pytest.mark.parametrize("rounds", [2, 3])
def test_what_is_behind_a_loop_knows_where_its_pointers_point(rounds: int) -> None:
    a, b, out = np.arange(64, dtype=np.int32), np.arange(64, dtype=np.int32) - 99, np.zeros(16, np.int32)
    was, tile = b.copy(), a[:16].copy()
    for k in range(rounds):
        tile ^= tile * 3 + k
    exchanged[(1,)](a, b, out, rounds, 16)
    index = 4 * (rounds // 2)
    wanted = np.zeros(16) if rounds % 2 == 0 else (was - np.concatenate([tile, was[16:]]))[index : index + 16]
    np.testing.assert_array_equal(out, wanted)
