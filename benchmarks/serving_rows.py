"""The rows of `gpu.py` for the kernels of `serving_kernels.py`: decoding, experts, small weights, quantising,
sampling."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.gpu_rows import ROWS, Config, Device, Must, Row, tiles, warps

AIM = Must(1.1)
BF16, F32, FP8 = torch.bfloat16, torch.float32, torch.float8_e4m3fn
HEADS, QUERIES, D = 8, 8, 128  # heads of keys, queries of each
EXPERTS, CHOICES = 8, 2
GROUP = 128  # weights of 4 bits with one scale
SMALL = tiles((16, 64, 128, 4, 3), (16, 128, 128, 4, 3), (32, 64, 128, 4, 4), (64, 64, 64, 4, 4), (64, 128, 64, 4, 3))


def serving(kernel: str, configs: Sequence[Config], must: Must = AIM, **settings: Any) -> Row:
    return Row(kernel, configs, must=must, file="serving_kernels.py", **settings)


def decode(device: Device, sequences: int, splits: int, page: int = 64) -> Row:
    """Paged attention of one new token; sequences have different lengths."""
    sequences, longest = device.size(sequences, min(sequences, 4), 1), device.size(8192, 1024, 256)
    pages = longest // page
    splits = min(splits, pages)
    q = device.random(sequences, HEADS, QUERIES, D, dtype=BF16)
    k, v = (device.random(sequences * pages, page, HEADS, D, dtype=BF16) for _ in range(2))
    table = torch.randperm(sequences * pages).int().view(sequences, pages).to(device.device)
    lengths = (longest - torch.arange(sequences) * 37 % (longest // 2)).int().to(device.device)
    out = device.empty(sequences, HEADS, QUERIES, splits, D, dtype=BF16)

    def expected() -> torch.Tensor:
        wanted = torch.empty_like(out)
        for sequence, length in enumerate(lengths.tolist()):
            keys, values = (cache[table[sequence].long()].view(-1, HEADS, D)[:length].float() for cache in (k, v))
            scores = torch.einsum("hqd,thd->hqt", q[sequence].float(), keys) * D**-0.5
            share = math.ceil(math.ceil(length / page) / splits) * page
            for split in range(splits):
                part = slice(split * share, (split + 1) * share)
                weights = scores[..., part].softmax(-1)
                wanted[sequence, :, :, split] = torch.einsum("hqt,thd->hqd", weights, values[part]).to(BF16)
        return wanted

    return serving(
        "paged_decode", [{"num_warps": w, "num_stages": s} for w in (2, 4, 8) for s in (2, 3)],
        grid=lambda config: (sequences, HEADS, splits),
        args=lambda config, descriptor: (q, k, v, table, lengths, out, D**-0.5, pages), result=out,
        expected=expected, work=int(lengths.sum()) * HEADS * D * 4, unit="GB/s",
        constants={
            "HEADS": HEADS, "QUERIES": QUERIES, "ROWS": 16, "D": D, "PAGE": page, "SPLITS": splits,
        },
    )  # fmt: skip


def experts(device: Device, tokens: int) -> Row:
    """The first matmul of a mixture of experts: each token goes to `CHOICES` of them."""
    tokens = device.size(tokens, min(tokens, 256), 32)
    n, k = device.size(7168, 512, 128), device.size(4096, 256, 128)
    a, b = device.random(tokens, k, dtype=BF16), device.random(EXPERTS, n, k, dtype=BF16)
    chosen = torch.rand(tokens, EXPERTS).argsort(1)[:, :CHOICES].reshape(-1)
    out = torch.zeros(tokens * CHOICES, n, device=device.device, dtype=BF16)
    sorted_rows: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for block in (16, 32, 64, 128):
        rows: list[torch.Tensor] = []
        ids: list[int] = []
        for expert in range(EXPERTS):
            own = torch.nonzero(chosen == expert).view(-1)
            missing = -len(own) % block
            rows += [own, torch.full((missing,), tokens * CHOICES)]
            ids += [expert] * ((len(own) + missing) // block)
        sorted_rows[block] = (
            torch.cat(rows).int().to(device.device),
            torch.tensor(ids, dtype=torch.int32, device=device.device),
        )

    def expected() -> torch.Tensor:
        where = chosen.to(device.device)
        rows = a.repeat_interleave(CHOICES, 0).float()
        wanted = torch.empty(tokens * CHOICES, n, device=device.device)
        for expert in range(EXPERTS):
            wanted[where == expert] = rows[where == expert] @ b[expert].float().t()
        return wanted

    configs = tiles((16, 64, 128, 4, 3), (16, 128, 128, 4, 3), (64, 128, 64, 4, 3), (64, 128, 64, 8, 3))
    configs += tiles((128, 128, 64, 8, 3), (128, 128, 64, 4, 3))
    return serving(
        "expert_matmul", configs,
        grid=lambda config: (len(sorted_rows[config["BM"]][1]) * -(-n // config["BN"]),),
        args=lambda config, descriptor: (a, b, out, *sorted_rows[config["BM"]], tokens * CHOICES, n, k, CHOICES),
        result=out, expected=expected, work=2 * tokens * CHOICES * n * k,
    )  # fmt: skip


def small_sizes(device: Device, batch: int) -> tuple[int, int, int]:
    return batch, device.size(8192, 512, 256), device.size(8192, 512, 256)


def column_blocks(m: int, n: int) -> Callable[[Config], tuple[int, int]]:
    return lambda config: (n // config["BN"], -(-m // config["BM"]))


def int4_weights(device: Device, batch: int) -> Row:
    m, n, k = small_sizes(device, batch)
    a, scales = device.random(m, k), device.random(k // GROUP, n)
    packed = torch.randint(-(2**31), 2**31, (k // 8, n), dtype=torch.int64).int().to(device.device)
    out = device.empty(m, n)

    def expected() -> torch.Tensor:
        shifts = (torch.arange(8, device=device.device) * 4).view(1, 8, 1)
        weights = ((packed[:, None, :] >> shifts) & 15).view(k, n) - 8
        return a.float() @ (weights.half() * scales.repeat_interleave(GROUP, 0)).float()

    return serving(
        "int4_matmul", [config for config in SMALL if config["BK"] <= GROUP], grid=column_blocks(m, n),
        args=lambda config, descriptor: (a, packed, scales, out, m, n, k), result=out, expected=expected,
        work=n * k // 2, unit="GB/s", constants={"GROUP": GROUP},
    )  # fmt: skip


def fp8_weights(device: Device, batch: int) -> Row:
    m, n, k = small_sizes(device, batch)
    a, b = device.random(m, k, dtype=BF16), device.random(n, k, dtype=FP8)
    scales, out = device.random(n, dtype=F32), device.empty(m, n, dtype=BF16)
    return serving(
        "fp8_matmul", SMALL, grid=column_blocks(m, n),
        args=lambda config, descriptor: (a, b, scales, out, m, n, k), result=out,
        expected=lambda: a.float() @ b.float().t() * scales, work=n * k, unit="GB/s",
    )  # fmt: skip


def norm_quantize(device: Device, rows: int) -> Row:
    m, n = device.size(rows, min(rows, 512), 4), 8192
    x, weight = device.random(m, n, dtype=BF16), device.random(n, dtype=BF16)
    out = torch.empty(m, n, device=device.device, dtype=torch.int8)
    scales = device.empty(m, dtype=F32)

    def expected() -> torch.Tensor:
        normal = x.float() * torch.rsqrt((x.float() ** 2).mean(1, keepdim=True) + 1e-6) * weight.float()
        return torch.round(normal / (normal.abs().amax(1, keepdim=True) / 127))

    return serving(
        "norm_quantize", warps(4, 8, 16), grid=lambda config: (m,), unit="GB/s",
        args=lambda config, descriptor: (x, weight, out, scales, n, 1e-6), result=out, expected=expected,
        work=3 * m * n, constants={"BLOCK": n},
    )  # fmt: skip


def largest(device: Device, rows: int, k: int = 32, block: int = 2048) -> Row:
    m, n = device.size(rows, min(rows, 4), 1), device.size(131072, 131072, 4096)
    x, out = device.random(m, n, dtype=F32), device.empty(m, n // block, k, dtype=F32)
    return serving(
        "largest", warps(2, 4, 8), grid=lambda config: (m, n // block), unit="GB/s",
        args=lambda config, descriptor: (x, out, n), result=out,
        expected=lambda: torch.topk(x.view(m, -1, block), k).values, work=4 * m * n,
        constants={"K": k, "BLOCK": block},
    )  # fmt: skip


def sample(device: Device, rows: int) -> Row:
    """Temperatures near zero draw the most likely token, which torch knows, too."""
    m, n = device.size(rows, min(rows, 4), 1), device.size(131072, 131072, 4096)
    x, out = device.random(m, n, dtype=F32), torch.empty(m, device=device.device, dtype=torch.int32)
    configs = [{"BLOCK": block, "num_warps": count} for block, count in ((1024, 4), (2048, 8), (4096, 16))]
    return serving(
        "sample", configs, grid=lambda config: (m,), unit="GB/s",
        args=lambda config, descriptor: (x, out, n, 1e-5, 7), result=out, expected=lambda: x.argmax(1), work=4 * m * n,
        tolerance=0,
    )  # fmt: skip


SERVING: dict[str, Callable[[Device], Row]] = {
    "serving: paged decode, batch 1": partial(decode, sequences=1, splits=16),
    "serving: paged decode, batch 16": partial(decode, sequences=16, splits=4),
    "serving: paged decode, batch 128": partial(decode, sequences=128, splits=1),
    "serving: experts, 64 tokens": partial(experts, tokens=64),
    "serving: experts, 4096 tokens": partial(experts, tokens=4096),
    "serving: int4 weights, batch 1": partial(int4_weights, batch=1),
    "serving: int4 weights, batch 16": partial(int4_weights, batch=16),
    "serving: int4 weights, batch 64": partial(int4_weights, batch=64),
    "serving: fp8 weights, batch 1": partial(fp8_weights, batch=1),
    "serving: fp8 weights, batch 16": partial(fp8_weights, batch=16),
    "serving: fp8 weights, batch 64": partial(fp8_weights, batch=64),
    "serving: norm and quantise, 64 rows": partial(norm_quantize, rows=64),
    "serving: norm and quantise, 8192 rows": partial(norm_quantize, rows=8192),
    "serving: top 32 of blocks, batch 16": partial(largest, rows=16),
    "serving: sample, batch 128": partial(sample, rows=128),
}
ALL_ROWS = ROWS | SERVING
