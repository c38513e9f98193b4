"""# Attention

`softmax(q @ k.T) @ v` without ever storing the matrix of scores. A program walks over the keys in pieces and keeps a
running maximum, a running sum and a running result for each of its queries (flash attention).

    python 06_attention.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## Softmax in pieces
#
# Softmax needs the maximum and the sum of a whole row of scores. If only a piece of the row has been seen, with
# maximum `m` and sum `s` of `exp(score - m)`, and a new piece comes with a larger maximum `m2`, all that was summed
# so far is too large by `exp(m2 - m)`: multiplying by `exp(m - m2)` repairs it. So the row can be processed in pieces
# of `BN` keys, and the same correction applies to the result `acc`, which is a sum with these weights.
#
# Exponentials to base 2 are cheaper; the factor `log2(e)` goes into the scale of the scores.
#
# With `CAUSAL` a query sees only itself and earlier keys. Keys that none of the program's queries may see are not
# even loaded: the loop ends early. Scores above the diagonal, in the last pieces, become minus infinity.


@tilework.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, n,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * n * D
    rm = first + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(
        q_ptr + head + rm[:, None] * D + rd[None, :], mask=rm[:, None] < n, other=0.0
    )
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(first + BM, n) if CAUSAL else n
    for start in range(0, end, BN):
        rn = start + tl.arange(0, BN)
        here = rn[:, None] < n
        k = tl.load(k_ptr + head + rn[:, None] * D + rd[None, :], mask=here, other=0.0)
        scores = tl.dot(q, k.T) * (scale * 1.4426950408889634)
        visible = (
            (rn[None, :] <= rm[:, None]) & (rn[None, :] < n) if CAUSAL else rn[None, :] < n
        )
        scores = tl.where(visible, scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_highest[:, None])
        correction = tl.exp2(highest - new_highest)
        total = total * correction + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + head + rn[:, None] * D + rd[None, :], mask=here, other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * correction[:, None])
        highest = new_highest
    tl.store(
        out_ptr + head + rm[:, None] * D + rd[None, :],
        acc / total[:, None],
        mask=rm[:, None] < n,
    )


def attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, out: np.ndarray
) -> None:
    heads, n, d = q.shape
    grid = lambda meta: (tilework.cdiv(n, meta["BM"]), heads)
    attention_kernel[grid](q, k, v, out, d**-0.5, n, BM=64, BN=64, D=d, CAUSAL=causal)


# %%
# ## What NumPy does
#
# NumPy computes the whole matrix of scores, `n * n` for each head.


def attention_numpy(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool
) -> np.ndarray:
    scores = q @ k.transpose(0, 2, 1) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf).astype("f4")
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((3, 2, 200, 64), dtype="f4")
out = np.empty_like(q)
for causal in (False, True):
    attention(q, k, v, causal, out)
    expected = attention_numpy(q, k, v, causal)
    assert_close(out, expected, atol=1e-5)
    print(
        f"causal={causal!s:5}: largest difference from NumPy {np.abs(out - expected).max():.1e}"
    )

# %%
# ## Which tiles are computed
#
# Causal attention of 512 tokens in tiles of 64 by 64: in 28 of 64 tiles all weights are 0, and the loop never reaches
# them; 28 are computed in full, and the 8 on the diagonal are partly masked. The table shows how many of a tile's
# scores count, in percent: a row of tiles of queries in each line.

tokens, tile = 512, 64
visible = (
    np.tri(tokens).reshape(tokens // tile, tile, tokens // tile, tile).mean(axis=(1, 3))
)
print(
    f"{(visible == 0).sum()} tiles are left out, {(visible == 1).sum()} are whole, {(visible % 1 > 0).sum()} are masked"
)
for row in visible:
    print("".join(f"{100 * part:5.0f}" for part in row))

# %%
# ## How fast is it?
#
# Two heads of dimension 64. The scores of 1024 tokens take 8 MB for two heads, and NumPy makes four arrays of that
# size. The kernel needs a tile of 16 KB, however many tokens there are.


@perf_report(
    Benchmark(
        x_names=["tokens"],
        x_vals=[128, 256] if QUICK else [128, 256, 512, 1024],
        line_arg="way",
        line_vals=[
            (attention, False),
            (attention, True),
            (attention_numpy, False),
            (attention_numpy, True),
        ],
        line_names=["tilework", "tilework, causal", "NumPy", "NumPy, causal"],
        plot_name="Attention, 2 heads of 64, float32",
        xlabel="tokens",
        ylabel="milliseconds (less is better)",
        x_log=True,
        y_log=True,
        args={},
    )
)
def milliseconds(tokens: int, way: tuple) -> float:
    function, causal = way
    q, k, v = rng.standard_normal((3, 2, tokens, 64), dtype="f4")
    out = (np.empty_like(q),) if function is attention else ()
    call = lambda: function(q, k, v, causal, *out)
    return do_bench(call, warmup=5, rep=30, return_mode="min")


milliseconds.run(print_data=True, save_precision=2)

# %%
# ## On a GPU
#
# The same function with tensors of torch: 16 heads of 64 in float16. torch's own attention is a kernel of the same
# kind, written by hand. Without a GPU this cell only says so.


@perf_report(
    Benchmark(
        x_names=["tokens"],
        x_vals=[512, 1024, 2048, 4096, 8192],
        line_arg="library",
        line_vals=["tilework", "torch"],
        line_names=["tilework, causal", "torch, causal"],
        plot_name="Causal attention on the GPU, 16 heads of 64, float16",
        xlabel="tokens",
        ylabel="milliseconds (less is better)",
        x_log=True,
        y_log=True,
        args={},
    )
)
def gpu_milliseconds(tokens: int, library: str, device: str = "cuda") -> float:
    import torch

    q, k, v = torch.randn((3, 16, tokens, 64), device=device).to(torch.float16)
    out = torch.empty_like(q)
    by_torch = lambda: torch.nn.functional.scaled_dot_product_attention(
        q[None], k[None], v[None], is_causal=True
    )
    attention(q, k, v, True, out)
    torch.testing.assert_close(out, by_torch()[0], atol=0.01, rtol=0.01)
    calls = {"tilework": lambda: attention(q, k, v, True, out), "torch": by_torch}
    return do_bench(calls[library], warmup=10, rep=50, return_mode="median")


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_milliseconds.run(print_data=True, save_precision=3)

# %%
# ## Try it
#
# - Sliding windows: let the loop begin at `tl.maximum(first - WINDOW, 0) // BN * BN`, and add the window's condition
#   to `visible`.
# - float16: pass arrays of it; `tl.dot` sums in float32, and `weights.to(v.dtype)` is there for this.
# - [The cost model](../cost-model.md) explains what limits this loop on a GPU, and why its copies and dots run in
#   different warps there.
#
# Next: [grouped and persistent matmul](07_grouped_persistent_matmul.py).
