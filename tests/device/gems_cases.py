"""Calls of FlagGems' functions that torch's operator database does not reach: fused ones, attention, quantised
products, scalars.

Each case is (function, arguments, reference): what torch computes for the same arguments, or None where only the
compilers are compared with each other. Functions may change their arguments; a reference does the same.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

Case = tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any] | None]


def fused_cases(gems: Any, device: str, dtype: torch.dtype) -> Iterator[Case]:
    """Functions of their own names."""

    def draw(*shape: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.randn(shape, device=device).to(kind)

    def below(limit: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, limit, shape, device=device)

    def halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.float().chunk(2, -1)

    for rows, columns in ((5, 64), (33, 250)):
        x, y, weight = draw(rows, columns), draw(rows, columns), draw(columns)
        yield gems.silu_and_mul, (x, y), lambda a, b: (F.silu(a.float()) * b).to(a.dtype)
        yield gems.gelu_and_mul, (x, y), lambda a, b: (F.gelu(a.float()) * b).to(a.dtype)
        yield gems.gelu_and_mul, (x, y, "tanh"), lambda a, b, how: (F.gelu(a.float(), approximate=how) * b).to(a.dtype)
        yield gems.swiglu, (x,), lambda a: (F.silu(halves(a)[0]) * halves(a)[1]).to(a.dtype)
        yield gems.reglu, (x,), lambda a: (F.relu(halves(a)[0]) * halves(a)[1]).to(a.dtype)
        yield gems.geglu, (x,), lambda a: (F.gelu(halves(a)[0], approximate="tanh") * halves(a)[1]).to(a.dtype)
        half = draw(rows, columns // 2)
        for gradient in (gems.dswiglu, gems.dreglu, gems.dgeglu):
            yield gradient, (half, x), None
        yield gems.rms_norm_forward, (x, [columns], weight), None
        yield gems.fused_add_rms_norm, (x, y, [columns], weight), None
        yield (
            gems.skip_layer_norm,
            (x, y, [columns], weight, draw(columns)),
            lambda a, b, n, w, c: F.layer_norm(a + b, n, w, c),
        )
        yield gems.outer, (draw(rows), draw(columns)), torch.outer
        yield (
            gems.weight_norm,
            (x, draw(rows, 1)),
            lambda v, g: v * (g / v.float().norm(dim=1, keepdim=True)).to(v.dtype),
        )
        yield (
            gems.instance_norm,
            (draw(2, 3, rows, columns), draw(3), draw(3)),
            lambda a, w, b: F.instance_norm(a, weight=w, bias=b),
        )
        yield gems.cross_entropy_loss, (x, below(columns, rows)), F.cross_entropy
        yield gems.cross_entropy_loss, (x, below(columns, rows), None, "none", -100, 0.1), smoothed_cross_entropy
        yield gems.topk_softmax, (*routing(rows, 4, device), draw(rows, 16, kind=torch.float32)), None
        yield gems.grouped_topk, (draw(rows, 64), 8, 4, 6, True, 1.5, draw(64, kind=torch.float32)), None
        yield (
            gems.moe_sum,
            (draw(rows, 4, columns), x.clone()),
            lambda a, out: out.copy_(a.float().sum(1).to(a.dtype)) and None,
        )
        yield gems.moe_align_block_size, (below(8, rows, 2).int(), 16, 8), None
        penalties = (
            x.clone(),
            below(2, rows, columns).bool(),
            below(2, rows, columns).bool(),
            draw(rows, kind=torch.float32).abs() + 1,
        )
        yield gems.apply_repetition_penalties, penalties, None
        yield gems.normed_cumsum, (x.float().abs(),), None
    yield gems.hadamard_transform, (draw(7, 256),), None
    yield gems.hadamard_transform, (draw(3, 1024), 0.5), None
    heads = (draw(2, 77, 4, 64), draw(2, 77, 2, 64), draw(77, 32), draw(77, 32))
    yield gems.apply_rotary_pos_emb, heads, None
    yield gems.apply_rotary_pos_emb, (*heads, None, True), None
    yield gems.rwkv_ka_fusion, (draw(5, 128), draw(128), draw(5, 128), draw(128), 2, 64), None
    yield gems.rwkv_mm_sparsity, (F.relu(draw(512)), draw(512, 128)), lambda k, v: k @ v
    yield (
        gems.bucket_sort_topk,
        (draw(3, 500, kind=torch.float32), below(1, 3).int(), below(1, 3).int() + 500, 64),
        None,
    )
    slots = torch.randperm(64, device=device)[:10]
    scale = torch.ones((), device=device)
    yield (
        gems.reshape_and_cache_flash,
        (draw(10, 4, 32), draw(10, 4, 32), draw(8, 8, 4, 32), draw(8, 8, 4, 32), slots, "auto", scale, scale),
        None,
    )
    yield (
        gems.reshape_and_cache,
        (draw(10, 4, 32), draw(10, 4, 32), draw(8, 4, 4, 8, 8), draw(8, 4, 32, 8), slots, "auto", scale, scale),
        None,
    )
    yield gems.concat_and_cache_mla, (draw(10, 128), draw(10, 64), draw(8, 8, 192), slots, "auto", scale), None
    if dtype == torch.float32:
        return
    for causal in (False, True):
        q, k, v = draw(2, 4, 130, 64), draw(2, 4, 130, 64), draw(2, 4, 130, 64)
        yield gems.scaled_dot_product_attention, (q, k, v, None, 0.0, causal), F.scaled_dot_product_attention
    lengths = torch.tensor([0, 33, 130], device=device, dtype=torch.int32)
    yield (
        gems.flash_attn_varlen_func,
        (draw(130, 4, 64), draw(130, 2, 64), draw(130, 2, 64), 97, lengths, 97, lengths),
        None,
    )
    yield gems.fused_experts_impl, experts(draw, below), None
    yield gems.per_token_group_quant_fp8, (draw(12, 256), 128), None
    yield gems.act_quant_triton, (draw(12, 256),), None
    eight = torch.float8_e4m3fn
    yield (
        gems.w8a8_block_fp8_matmul,
        (draw(40, 256).to(eight), draw(128, 256).to(eight), scales(device, 40, 2), scales(device, 1, 2), [128, 128]),
        None,
    )
    yield (
        gems.sparse_attn_triton,
        (draw(1, 20, 16, 64), draw(1, 40, 64), draw(16, kind=torch.float32), below(40, 1, 20, 16).int(), 0.125),
        None,
    )
    chunked = (draw(1, 130, 2, 64), F.normalize(draw(1, 130, 2, 64), dim=-1), draw(1, 130, 2, 64))
    decay, rate = F.logsigmoid(draw(1, 130, 2, kind=torch.float32)), draw(1, 130, 2).sigmoid()
    yield (
        gems.chunk_gated_delta_rule_fwd,
        (*chunked, decay, rate, 0.125, draw(1, 2, 64, 64, kind=torch.float32), True),
        None,
    )


def scales(device: str, *shape: int) -> torch.Tensor:
    return torch.rand(shape, device=device) + 0.5


def routing(rows: int, top: int, device: str) -> tuple[torch.Tensor, ...]:
    """The outputs of `topk_softmax`: weights, experts, and their indices."""
    return tuple(
        torch.zeros(rows, top, device=device, dtype=kind) for kind in (torch.float32, torch.int32, torch.int32)
    )


def experts(draw: Any, below: Any) -> tuple[Any, ...]:
    weights = torch.softmax(draw(20, 2, kind=torch.float32), -1)
    return draw(20, 64) / 8, draw(4, 128, 64) / 8, draw(4, 64, 64) / 8, weights, below(4, 20, 2)


def smoothed_cross_entropy(x: Any, target: Any, weight: Any, reduction: str, ignored: int, smoothing: float) -> Any:
    return F.cross_entropy(x, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=smoothing)


def operator_calls(device: str, dtype: torch.dtype) -> Iterator[Callable[[], Any]]:
    """Calls of torch's operators with arguments that its database leaves out: scalars, odd sizes, no elements, many
    rows."""
    aten = torch.ops.aten
    floating = dtype.is_floating_point

    def draw(*shape: int) -> torch.Tensor:
        if floating:
            return torch.randn(shape, device=device).to(dtype)
        return torch.randint(0, 2 if dtype == torch.bool else 90, shape, device=device).to(dtype)

    for shape in ((), (0, 3), (1,), (37, 41), (3, 5, 7), (1030, 3), (4, 2049)):
        x, y = draw(*shape), draw(*shape)
        for apply in (
            aten.abs,
            aten.neg,
            aten.eq,
            aten.maximum,
            aten.add,
            aten.mul,
            aten.sub,
            aten.where,
            aten.cumsum,
            aten.sum,
            aten.amax,
        ):
            arguments = {
                aten.eq: (x, y),
                aten.maximum: (x, y),
                aten.add: (x, y),
                aten.mul: (x, y),
                aten.sub: (x, y),
            }.get(apply, (x,))
            arguments = {aten.where: (x > 0, x, y), aten.cumsum: (x, -1)}.get(apply, arguments)
            yield lambda apply=apply, arguments=arguments: apply(*arguments)
        for dim in range(-1, len(shape) and 1):
            for reduce in (
                torch.sum,
                torch.max,
                torch.min,
                torch.any,
                torch.argmax,
                torch.prod,
                torch.cummax,
                torch.cummin,
                torch.sort,
            ):
                yield lambda reduce=reduce, x=x, dim=dim: reduce(x, dim=dim)
            if floating:
                for apply in (torch.softmax, torch.log_softmax, torch.var_mean, torch.mean, torch.std):
                    yield lambda apply=apply, x=x, dim=dim: apply(x, dim=dim)
        if floating:
            for apply in (aten.div.Tensor_mode, aten.remainder.Tensor, aten.floor_divide, aten.pow.Tensor_Tensor):
                last = {"rounding_mode": "floor"} if apply is aten.div.Tensor_mode else {}
                yield lambda apply=apply, x=x, y=y, last=last: apply(x, y, **last)
    if not floating and dtype != torch.bool:
        x = draw(37, 41)
        for apply in (aten.bitwise_and, aten.bitwise_or):
            yield lambda apply=apply, x=x: (apply.Scalar(x, 5), apply.Scalar_Tensor(5, x))
        for apply in (aten.bitwise_left_shift, aten.bitwise_right_shift):
            yield lambda apply=apply, x=x: apply.Tensor(x, x % 7)
        for mode in ("trunc", "floor"):
            yield lambda x=x, mode=mode: torch.div(x - 40, 7 - x % 5, rounding_mode=mode)
        yield lambda x=x: torch.remainder(40 - x, x % 5 - 7)
        yield lambda x=x: aten.remainder.Scalar_Tensor(100, x + 1)
    if floating:
        for rows, inner, columns in ((1, 64, 300), (37, 41, 53), (130, 257, 66), (512, 512, 512)):
            a, b, c = draw(rows, inner) / math.sqrt(inner), draw(inner, columns), draw(columns)
            yield lambda a=a, b=b, c=c: (
                torch.mm(a, b),
                torch.mm(a, b.t().contiguous().t()),
                torch.addmm(c, a, b, beta=0.5),
            )
            yield lambda a=a, b=b: (
                torch.mv(a, b[:, 0]),
                torch.bmm(a[None].expand(3, -1, -1), b[None].expand(3, -1, -1)),
            )
        image = draw(2, 6, 17, 19)
        for groups in (1, 2, 6):
            yield lambda groups=groups: F.conv2d(
                image, draw(12, 6 // groups, 3, 3), draw(12), padding=1, stride=2, groups=groups
            )
        yield lambda: aten._conv_depthwise2d(image, draw(6, 1, 3, 3), [3, 3], draw(6), [1, 1], [1, 1], [1, 1])
        yield lambda: (F.max_pool2d(image, 3, 2, 1), F.avg_pool2d(image, 3, 2, 1))
        yield lambda: aten._upsample_bicubic2d_aa(image, [9, 40], False)
        yield lambda: aten._weight_norm_interface(draw(7, 9), draw(7, 1))
        yield lambda: (
            F.reflection_pad1d(image[0], (1, 2)) if False else aten.reflection_pad1d(image[0], [1, 2]),
            aten.reflection_pad2d(image, [1, 2, 3, 0]),
        )
        yield lambda: (aten.replication_pad1d(image[0], [1, 2]), aten.replication_pad3d(image, [1, 2, 0, 1, 1, 1]))
        yield lambda: aten.native_dropout(draw(1000), 0.3, True)
        yield lambda: (
            aten.rand_like(draw(1000)),
            aten.randn_like(draw(1000)),
            draw(1000).exponential_(),
            draw(1000).uniform_(-1, 2),
        )
    yield lambda: aten.randperm(1000, device=device)
    index = torch.randint(0, 37, (20, 41), device=device)
    x, source = draw(37, 41), draw(20, 41)
    yield lambda: (x.clone().scatter_(0, index, source), torch.gather(x, 0, index), x[index[:, 0]], x[index[:, 0], 3])
    yield lambda: x.clone().index_put_((index[:, 0],), source, accumulate=dtype != torch.bool)
    if dtype != torch.bool:
        yield lambda: (x.clone().scatter_add_(0, index, source), torch.index_add(x, 0, index[:, 0], source))
        yield lambda: (
            torch.topk(draw(5, 3000), 17),
            torch.sort(draw(5, 3000), stable=True),
            torch.unique(draw(5000), return_inverse=True),
        )
    yield lambda: (torch.nonzero(x), torch.masked_select(x, x > 0), x.masked_fill(x > 0, 1), torch.isin(x, source[0]))
