"""Many matrix products of different sizes in one launch: programs walk over the tiles of all of them.

Addresses and sizes come from memory, so nothing about the problems is known at compile time.
"""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def grouped_gemm(
    a_ptrs, b_ptrs, c_ptrs, sizes_ptr, groups,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        m, n, k = [tl.load(sizes_ptr + g * 3 + i) for i in range(3)]
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * tiles_n
        while last <= tile < last + tiles:
            a, b, c = [tl.load(table + g).to(tl.pointer_type(tl.float16)) for table in (a_ptrs, b_ptrs, c_ptrs)]
            rm = ((tile - last) // tiles_n) * BM + tl.arange(0, BM)
            rn = ((tile - last) % tiles_n) * BN + tl.arange(0, BN)
            rk = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for start in range(0, k, BK):
                inner = start + rk
                x = tl.load(
                    a + rm[:, None] * k + inner[None, :], mask=(rm[:, None] < m) & (inner[None, :] < k), other=0.0
                )
                y = tl.load(
                    b + inner[:, None] * n + rn[None, :], mask=(inner[:, None] < k) & (rn[None, :] < n), other=0.0
                )
                acc = tl.dot(x, y, acc)
            tl.store(c + rm[:, None] * n + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < m) & (rn[None, :] < n))
            tile += PROGRAMS
        last += tiles


SIZES = ((40, 24, 32), (16, 64, 48), (33, 17, 20))


def inputs(rng: np.random.Generator) -> Arrays:
    draw = lambda rows, cols: rng.standard_normal((rows, cols)).astype("f2")
    a = [draw(m, k) for m, _, k in SIZES]
    b = [draw(k, n) for _, n, k in SIZES]
    c = [draw(m, n) for m, n, _ in SIZES]
    addresses = lambda arrays: np.array([array.ctypes.data for array in arrays], "i8")
    return {
        "a_ptrs": addresses(a), "b_ptrs": addresses(b), "c_ptrs": addresses(c),
        "sizes_ptr": np.array(SIZES, "i4"), "groups": len(SIZES), "a": a, "b": b, "c": c,
    }  # fmt: skip


def reference(arrays: Arrays) -> Arrays:
    return {
        "c": [(x.astype("f4") @ y.astype("f4")).astype("f2") for x, y in zip(arrays["a"], arrays["b"], strict=True)]
    }


CASES = [
    Case(
        name="grouped_gemm",
        kernel=grouped_gemm,
        signature={"a_ptrs": "*i64", "b_ptrs": "*i64", "c_ptrs": "*i64", "sizes_ptr": "*i32", "groups": "i32"},
        constexprs={"PROGRAMS": 3, "BM": 16, "BN": 16, "BK": 16},
        grid=(3,),
        arguments=inputs,
        expected=reference,
        atol=2e-2,
        memory=lambda arrays: [*arrays["a"], *arrays["b"], *arrays["c"]],
    )
]
