"""The operations of Liger-Kernel, each with tensors, the call of the library, and the same in plain torch.

    case = CASES["swiglu"](Draw(torch.bfloat16), odd=True)
    case.liger(case.tensors), case.plain(case.tensors in float64)

The plain version follows the definition (papers, torch's own functions); none of it is the library's code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Case:
    tensors: Tensors
    liger: Callable[..., Any]
    plain: Callable[..., Any]


class Draw:
    """Draws the same numbers everywhere: on the CPU, then rounded to the type of the run. Gradients of `weights`
    too."""

    def __init__(self, dtype: torch.dtype, seed: int = 0) -> None:
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape: int, scale: float = 1.0, shift: float = 0.0, dtype: Any = None) -> torch.Tensor:
        x = torch.randn(shape, generator=self.generator) * scale + shift
        return x.to(dtype or self.dtype).requires_grad_()

    def labels(self, count: int, classes: int, ignored: bool = False) -> torch.Tensor:
        y = torch.randint(0, classes, (count,), generator=self.generator)
        if ignored:
            y[::3] = -100
        return y

    def logs(self, *shape: int) -> torch.Tensor:
        """Logarithms of probabilities."""
        return torch.log_softmax(self(*shape).detach().float(), -1).to(self.dtype).requires_grad_()

    def chances(self, *shape: int) -> torch.Tensor:
        return torch.softmax(self(*shape).detach().float(), -1).to(self.dtype).requires_grad_()


def fn() -> Any:
    from liger_kernel.transformers import functional

    return functional


# Norms


def rms(x: Any, w: Any, eps: float = 1e-6, offset: float = 0.0) -> Any:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (w + offset)


def rms_norm(mode: str, offset: float) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        n = 300 if odd else 1024
        return Case(
            {"x": draw(3, 37, n), "w": draw(n, shift=1.0, scale=0.1)},
            lambda x, w: fn().liger_rms_norm(x, w, 1e-6, offset, mode, False),
            lambda x, w: rms(x, w, offset=offset),
        )

    return case


def fused_add_rms_norm(draw: Draw, odd: bool) -> Case:
    n = 300 if odd else 1024
    return Case(
        {"x": draw(3, 37, n), "r": draw(3, 37, n), "w": draw(n, shift=1.0)},
        lambda x, r, w: fn().liger_fused_add_rms_norm(x, r, w, 1e-6, 0.0, "llama", False),
        lambda x, r, w: (rms(x + r, w), x + r),
    )


def modulated_rms_norm(draw: Draw, odd: bool) -> Case:
    n = 300 if odd else 1024
    return Case(
        {"x": draw(3, 37, n), "w": draw(n, shift=1.0), "scale": draw(3, n), "shift": draw(3, n)},
        lambda x, w, scale, shift: fn().liger_modulated_rms_norm(x, w, scale, shift, in_place=False),
        lambda x, w, scale, shift: rms(x, w) * (1 + scale[:, None]) + shift[:, None],
    )


def layer_norm(draw: Draw, odd: bool) -> Case:
    n = 300 if odd else 1024
    return Case(
        {"x": draw(3, 37, n), "w": draw(n, shift=1.0), "b": draw(n)},
        lambda x, w, b: fn().liger_layer_norm(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, (n,), w, b, 1e-6),
    )


def group_norm(draw: Draw, odd: bool) -> Case:
    channels, groups, n = (12, 3, 77) if odd else (32, 4, 256)
    return Case(
        {"x": draw(4, channels, n), "w": draw(channels, shift=1.0), "b": draw(channels)},
        lambda x, w, b: fn().liger_group_norm(x, w, b, channels, groups, 1e-6),
        lambda x, w, b: F.group_norm(x, groups, w, b, 1e-6),
    )


def poly_norm(draw: Draw, odd: bool) -> Case:
    n = 300 if odd else 1024

    def plain(x: Any, w: Any, b: Any) -> Any:
        return sum(w[i] * rms(x ** (3 - i), 1.0) for i in range(3)) + b

    return Case(
        {"x": draw(37, n), "w": draw(3), "b": draw()},
        lambda x, w, b: fn().liger_poly_norm(x, w, b, 1e-6, False),
        plain,
    )


def dyt(draw: Draw, odd: bool) -> Case:
    n = 300 if odd else 1024
    return Case(
        {"x": draw(3, 37, n), "alpha": draw(1), "gamma": draw(n), "beta": draw(n)},
        lambda x, alpha, gamma, beta: fn().liger_dyt(x, alpha, gamma, beta),
        lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
    )


def attn_res(draw: Draw, odd: bool) -> Case:
    blocks, n = (5, 100) if odd else (8, 256)

    def plain(v: Any, query: Any, norm: Any) -> Any:
        weights = torch.softmax((rms(v, norm) * query).sum(-1), 0)
        return (weights[..., None] * v).sum(0)

    return Case(
        {"v": draw(blocks, 2, 13, n), "query": draw(n, scale=0.1), "norm": draw(n, shift=1.0)},
        lambda v, query, norm: fn().liger_attn_res(v, query, norm),
        plain,
    )


# Pointwise


def pair(name: str, plain: Callable[..., Any]) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        n = 313 if odd else 1024
        return Case({"a": draw(3, 37, n), "b": draw(3, 37, n)}, lambda a, b: getattr(fn(), name)(a, b), plain)

    return case


def single(name: str, plain: Callable[..., Any]) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        n = 313 if odd else 1024
        return Case({"x": draw(3, 37, n)}, lambda x: getattr(fn(), name)(x), plain)

    return case


def sparsemax_plain(x: Any) -> Any:
    ordered = x.sort(-1, descending=True).values
    counts = torch.arange(1, x.shape[-1] + 1, device=x.device)
    kept = (1 + counts * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    tau = (ordered.cumsum(-1).gather(-1, kept - 1) - 1) / kept
    return F.relu(x - tau)


def tiled_mlp(draw: Draw, odd: bool) -> Case:
    """The tiled SwiGLU layer with given parameters."""
    n, inner = (60, 90) if odd else (64, 128)

    def liger(x: Any, gate: Any, up: Any, down: Any) -> Any:
        from types import SimpleNamespace

        from liger_kernel.transformers.tiled_mlp import LigerTiledSwiGLUMLP

        layer = LigerTiledSwiGLUMLP(
            SimpleNamespace(hidden_size=n, intermediate_size=inner, hidden_act="silu"), num_shards=3
        )
        for name, weight in (("gate_proj", gate), ("up_proj", up), ("down_proj", down)):
            getattr(layer, name).weight = torch.nn.Parameter(weight.detach())
        return layer(x)

    return Case(
        {
            "x": draw(2, 33, n),
            "gate": draw(inner, n, scale=0.1).detach(),
            "up": draw(inner, n, scale=0.1).detach(),
            "down": draw(n, inner, scale=0.1).detach(),
        },
        liger,
        lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)) @ down.T,
    )


# Rotations


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def angles(draw: Draw, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same cosines and sines in both halves of the last dimension."""
    turn = torch.randn(*shape[:-1], shape[-1] // 2, generator=draw.generator)
    both = torch.cat((turn, turn), -1)
    return both.cos().to(draw.dtype), both.sin().to(draw.dtype)


def rope(draw: Draw, odd: bool) -> Case:
    heads, kv, length, n = (6, 3, 19, 48) if odd else (8, 2, 64, 64)
    cos, sin = angles(draw, 1, length, n)
    return Case(
        {"q": draw(2, heads, length, n), "k": draw(2, kv, length, n), "cos": cos, "sin": sin},
        lambda q, k, cos, sin: fn().liger_rope(q.clone(), k.clone(), cos, sin),
        lambda q, k, cos, sin: (rotated(q, cos[:, None], sin[:, None]), rotated(k, cos[:, None], sin[:, None])),
    )


def partial_rope(draw: Draw, odd: bool) -> Case:
    heads, kv, length, n = (6, 3, 19, 48) if odd else (8, 2, 64, 64)
    transposed = n // 2
    cos, sin = angles(draw, 2, length, transposed)

    def plain(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return tuple(
            torch.cat((rotated(x[..., :transposed], cos[:, None], sin[:, None]), x[..., transposed:]), -1)
            for x in (q, k)
        )

    return Case(
        {"q": draw(2, heads, length, n), "k": draw(2, kv, length, n), "cos": cos, "sin": sin},
        lambda q, k, cos, sin: fn().liger_rope(q.clone(), k.clone(), cos, sin),
        plain,
    )


def qwen2vl_mrope(draw: Draw, odd: bool) -> Case:
    heads, kv, length, n = (6, 3, 19, 32) if odd else (8, 2, 64, 64)
    sections = [n // 8, n // 8, n // 4]
    cos, sin = angles(draw, 3, 2, length, n)

    def chosen(table: Any) -> Any:
        parts = table.split(sections * 2, -1)
        return torch.cat([part[i % 3] for i, part in enumerate(parts)], -1)[:, None]

    return Case(
        {"q": draw(2, heads, length, n), "k": draw(2, kv, length, n), "cos": cos, "sin": sin},
        lambda q, k, cos, sin: fn().liger_qwen2vl_mrope(q.clone(), k.clone(), cos, sin, sections),
        lambda q, k, cos, sin: (rotated(q, chosen(cos), chosen(sin)), rotated(k, chosen(cos), chosen(sin))),
    )


def llama4_rope(draw: Draw, odd: bool) -> Case:
    heads, kv, length, n = (6, 3, 19, 48) if odd else (8, 2, 64, 64)

    def liger(q: Any, k: Any, turn: Any) -> Any:
        from liger_kernel.transformers.llama4_rope import liger_llama4_text_rotary_pos_emb

        table = torch.polar(torch.ones_like(turn, dtype=torch.float32), turn.float())
        return liger_llama4_text_rotary_pos_emb(q.clone(), k.clone(), table)

    def plain(q: Any, k: Any, turn: Any) -> Any:
        cos, sin = turn.cos()[:, None], turn.sin()[:, None]
        made = []
        for x in (q, k):
            real, other = x[..., ::2], x[..., 1::2]
            made.append(torch.stack((real * cos - other * sin, real * sin + other * cos), -1).flatten(-2))
        return tuple(made)

    turn = torch.randn(length, n // 2, generator=draw.generator)
    return Case({"q": draw(2, length, heads, n), "k": draw(2, length, kv, n), "turn": turn}, liger, plain)


# Attention


def neighborhood(dilation: int) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        length, n, size = (37, 32, 5) if odd else (64, 64, 7)

        def plain(q: Any, k: Any, v: Any) -> Any:
            index = torch.arange(length, device=q.device)
            away = index[None, :] - index[:, None]
            near = (away.abs() <= size // 2 * dilation) & (away % dilation == 0)
            scores = (q @ k.transpose(-1, -2) * n**-0.5).masked_fill(~near, float("-inf"))
            return torch.softmax(scores, -1) @ v

        return Case(
            {name: draw(2, 3, length, n) for name in "qkv"},
            lambda q, k, v: fn().liger_fused_neighborhood_attention(q, k, v, size, dilation),
            plain,
        )

    return case


def multi_token_attention(sparse: bool) -> Callable[..., Case]:
    def case(draw: Draw, odd: bool) -> Case:
        length, channels, size = (19, 3, 3) if odd else (64, 4, 5)

        def plain(scores: Any, weight: Any, bias: Any) -> Any:
            later = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
            masked = scores.masked_fill(later, -1e9)
            shares = sparsemax_plain(masked) if sparse else torch.softmax(masked, -1)
            return F.conv2d(shares, weight, bias, padding=size // 2).masked_fill(later, 0.0)

        dtype = torch.float32 if sparse else None
        return Case(
            {
                "scores": draw(2, channels, length, length, dtype=dtype),
                "weight": draw(channels, channels, size, size, scale=0.2, dtype=dtype),
                "bias": draw(channels, dtype=dtype),
            },
            lambda scores, weight, bias: fn().liger_multi_token_attention(
                scores, weight, bias, padding=size // 2, sparse=sparse
            ),
            plain,
        )

    return case


# Streams between layers


def mhc_coefficients(draw: Draw, odd: bool) -> Case:
    streams, n = (4, 50) if odd else (4, 128)
    count = streams * streams + 2 * streams
    turns = 5

    def plain(x: Any, phi: Any, b: Any, pre: Any, post: Any, res: Any) -> Any:
        mix = rms(x.flatten(-2), 1.0) @ phi
        first, second, rest = mix.split((streams, streams, streams * streams), -1)
        grid = rest.unflatten(-1, (streams, streams)) * res + b[2 * streams :].view(streams, streams)
        share = torch.softmax(grid, -1) + 1e-6
        share = share / (share.sum(-2, keepdim=True) + 1e-6)
        for _ in range(turns - 1):
            share = share / (share.sum(-1, keepdim=True) + 1e-6)
            share = share / (share.sum(-2, keepdim=True) + 1e-6)
        before = torch.sigmoid(first * pre + b[:streams])
        after = 2 * torch.sigmoid(second * post + b[streams : 2 * streams])
        return before, after, share

    return Case(
        {
            "x": draw(2, 21, streams, n),
            "phi": draw(streams * n, count, scale=0.05, dtype=torch.float32),
            "b": draw(count, dtype=torch.float32),
            **{name: draw(dtype=torch.float32) for name in ("pre", "post", "res")},
        },
        lambda x, phi, b, pre, post, res: fn().liger_mhc_coeffs(x, phi, b, pre, post, res, allow_fp32=True, tmax=turns),
        plain,
    )


def mhc_streams(draw: Draw, odd: bool) -> Case:
    streams, n = (4, 50) if odd else (4, 128)
    single = torch.float32
    return Case(
        {
            "x": draw(2, 21, streams, n),
            "f": draw(2, 21, n),
            "pre": draw(2, 21, streams, dtype=single),
            "post": draw(2, 21, streams, dtype=single),
            "res": draw(2, 21, streams, streams, dtype=single),
        },
        lambda x, f, pre, post, res: fn().liger_mhc_apply(x, f, pre, post, res, return_x_in=True),
        lambda x, f, pre, post, res: (res @ x + post[..., None] * f[..., None, :], (pre[..., None] * x).sum(-2)),
    )


# Experts and tables


def fused_moe(draw: Draw, odd: bool) -> Case:
    tokens, n, inner, experts, top = (37, 48, 40, 5, 2) if odd else (64, 64, 64, 4, 2)
    chosen = torch.rand(tokens, experts, generator=draw.generator).argsort(-1)[:, :top].to(torch.int32)

    def liger(x: Any, up: Any, down: Any, chosen: Any, weights: Any) -> Any:
        from liger_kernel.ops import LigerFusedMoEFunction

        return LigerFusedMoEFunction.apply(x, up, down, chosen, weights)

    def plain(x: Any, up: Any, down: Any, chosen: Any, weights: Any) -> Any:
        both = torch.einsum("th,tkih->tki", x, up[chosen.long()])
        gate, value = both.chunk(2, -1)
        made = torch.einsum("tki,tkhi->tkh", F.silu(gate) * value, down[chosen.long()])
        return (made * weights[..., None]).sum(1)

    return Case(
        {
            "x": draw(tokens, n),
            "up": draw(experts, 2 * inner, n, scale=0.1),
            "down": draw(experts, n, inner, scale=0.1),
            "chosen": chosen,
            "weights": draw.chances(tokens, top),
        },
        liger,
        plain,
    )


def embedding(draw: Draw, odd: bool) -> Case:
    n = 100 if odd else 128

    def liger(table: Any, rows: Any) -> Any:
        from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

        return LigerEmbeddingFunction.apply(table, rows)

    rows = draw.labels(90, 50).view(3, 30)
    return Case({"table": draw(50, n), "rows": rows}, liger, lambda table, rows: table[rows])


def mm_int8int2(draw: Draw, odd: bool) -> Case:
    """Bytes times numbers of two bits, four of which are a byte: rows of a quarter of K each."""
    rows, columns, k = (33, 40, 2048) if odd else (64, 64, 1024)

    def liger(a: Any, b: Any) -> Any:
        from liger_kernel.ops.experimental.mm_int8int2 import matmul

        return matmul(a, b)

    def plain(a: Any, b: Any) -> Any:
        parts = [((b.long() >> 2 * index) & 3) - 1 for index in range(4)]
        return (a.double() @ torch.cat(parts).double()).to(torch.int32)

    a = torch.randint(-128, 128, (rows, k), generator=draw.generator).to(torch.int8)
    twos = torch.randint(0, 3, (4, k // 4, columns), generator=draw.generator)
    packed = torch.stack([twos[index] << 2 * index for index in range(4)]).sum(0).to(torch.uint8)
    return Case({"a": a, "b": packed}, liger, plain)
