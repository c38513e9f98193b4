"""FlagGems: operators of torch as Triton kernels."""

# pyright: basic, reportMissingImports=false

import torch

from benchmarks.real_programs.registry import F32, program
from benchmarks.record_launches import Recorder

BIG, SMALL = (4096, 8192), (64, 1024)


@program("flag_gems")
def elementwise(r: Recorder) -> None:
    from flag_gems import ops

    for name in ("abs", "exp", "tanh", "silu", "gelu", "rsqrt", "sin", "erf", "sigmoid", "log", "cos", "reciprocal"):
        for shape in (BIG, SMALL):
            getattr(ops, name)(r.uniform(*shape, low=0.1, high=2.0))
    x, y = r.normal(*BIG), r.normal(*BIG)
    for name in ("add", "mul", "sub", "true_divide", "maximum", "eq", "lt", "pow_tensor_tensor"):
        getattr(ops, name)(x, y)


@program("flag_gems")
def broadcasts(r: Recorder) -> None:
    from flag_gems import ops

    ops.add(r.normal(8, 1024, 4096), r.normal(4096))
    ops.mul(r.normal(8, 1024, 4096), r.normal(8, 1024, 1))
    ops.mul(r.normal(4096, 4096).t(), r.normal(4096, 4096))
    ops.where_self(r.integers(0, 2, 4096, 4096).bool(), r.normal(4096, 4096), r.normal(1))


@program("flag_gems")
def elementwise_rest(r: Recorder) -> None:
    from flag_gems import ops

    x = r.normal(*BIG)
    ops.clamp(x, -1.0, 1.0)
    ops.masked_fill(x, r.integers(0, 2, *BIG).bool(), -1e4)
    ops.pow_tensor_scalar(x, 3.0)


@program("flag_gems")
def reductions(r: Recorder) -> None:
    from flag_gems import ops

    for shape in ((4096, 4096), (8192, 1024), (512, 32000)):
        x = r.normal(*shape)
        ops.sum_dim(x, [1])
        ops.mean_dim(x, [1])
        ops.argmax(x, 1)
        ops.softmax(x, 1)
        ops.log_softmax(x, 1)
        ops.amax(x, [1])
    ops.sum_dim(r.normal(4096, 4096), [0])
    ops.softmax(r.normal(64, 512, 128), 1)
    ops.sum(r.normal(4096, 4096))
    ops.max(r.normal(4096, 4096))


@program("flag_gems")
def scans_and_statistics(r: Recorder) -> None:
    from flag_gems import ops

    ops.cumsum(r.normal(1024, 4096), 1)
    ops.var_mean(r.normal(4096, 4096), [1])
    ops.vector_norm(r.normal(4096, 4096), 2, [1])
    ops.std(r.normal(4096, 4096), [1])


@program("flag_gems")
def selections(r: Recorder) -> None:
    from flag_gems import ops

    ops.topk(r.normal(128, 32000), 8)
    ops.topk(r.normal(8192, 256, dtype=F32), 8)


@program("flag_gems")
def sorting(r: Recorder) -> None:
    from flag_gems import ops

    ops.sort(r.normal(64, 32000))
    ops.sort(r.normal(4096, 512))


@program("flag_gems")
def norms(r: Recorder) -> None:
    from flag_gems import ops

    for rows, columns in ((4096, 4096), (8192, 1024), (1024, 12288)):
        x, w, b = r.normal(rows, columns), r.normal(columns), r.normal(columns)
        ops.layer_norm(x, [columns], w, b)
        mean, rstd = r.normal(rows, dtype=F32), r.uniform(rows, low=0.5, high=2.0, dtype=F32)
        ops.layer_norm_backward(r.normal(rows, columns), x, [columns], mean, rstd, w, b, [True, True, True])
        ops.rms_norm_forward(x, [columns], w)
        ops.rms_norm_backward(r.normal(rows, columns), x, rstd, [columns], w)


@program("flag_gems")
def group_norms(r: Recorder) -> None:
    from flag_gems import ops

    ops.group_norm(r.normal(16, 512, 64, 64), r.normal(512), r.normal(512), 16, 512, 4096, 32)
    ops.batch_norm(r.normal(16, 256, 64, 64), r.normal(256), r.normal(256), r.normal(256, dtype=F32),
                   r.uniform(256, dtype=F32), True, 0.1, 1e-5)  # fmt: skip


@program("flag_gems")
def matmuls(r: Recorder) -> None:
    from flag_gems import ops

    for m, n, k in ((4096, 4096, 4096), (128, 8192, 4096), (8192, 1024, 8192)):
        ops.mm(r.normal(m, k), r.normal(k, n))
        ops.addmm(r.normal(n), r.normal(m, k), r.normal(k, n))
    ops.bmm(r.normal(32, 1024, 128), r.normal(32, 128, 1024))
    ops.mv(r.normal(8192, 4096), r.normal(4096))


@program("flag_gems")
def outer_and_baddbmm(r: Recorder) -> None:
    from flag_gems import ops

    ops.baddbmm(r.normal(32, 1024, 1024), r.normal(32, 1024, 128), r.normal(32, 128, 1024))
    ops.addmv(r.normal(8192), r.normal(8192, 4096), r.normal(4096))


@program("flag_gems")
def indexing(r: Recorder) -> None:
    from flag_gems import ops

    ops.embedding(r.normal(32000, 4096), r.integers(0, 32000, 8192))
    ops.embedding_backward(r.normal(8192, 4096), r.integers(0, 32000, 8192), 32000)
    ops.index_select(r.normal(8192, 4096), 0, r.integers(0, 8192, 4096))
    ops.gather(r.normal(4096, 4096), 1, r.integers(0, 4096, 4096, 512))


@program("flag_gems")
def layout_changes(r: Recorder) -> None:
    from flag_gems import ops

    ops.cat([r.normal(4096, 2048), r.normal(4096, 2048)], 1)
    ops.contiguous(r.normal(4096, 4096).t())
    ops.flip(r.normal(4096, 4096), [1])
    ops.triu(r.normal(4096, 4096))
    ops.repeat(r.normal(1024, 1024), [4, 4])


@program("flag_gems")
def random_numbers(r: Recorder) -> None:
    from flag_gems import ops

    ops.dropout(r.normal(4096, 4096), 0.5, True)
    ops.rand((4096, 4096), dtype=torch.float32, device="cuda")
    ops.randn((4096, 4096), dtype=torch.float32, device="cuda")


@program("flag_gems")
def gems_fused(r: Recorder) -> None:
    from flag_gems import fused

    for rows, columns in ((4096, 4096), (64, 8192)):
        fused.fused_add_rms_norm(r.normal(rows, columns), r.normal(rows, columns), [columns], r.normal(columns), 1e-6)
        fused.silu_and_mul(r.normal(rows, columns), r.normal(rows, columns))
        fused.gelu_and_mul(r.normal(rows, columns), r.normal(rows, columns))
        fused.skip_layer_norm(r.normal(rows, columns), r.normal(rows, columns), [columns], r.normal(columns),
                              r.normal(columns))  # fmt: skip


@program("flag_gems")
def gems_rotary(r: Recorder) -> None:
    from flag_gems import fused

    q, k = r.normal(8192, 32, 128), r.normal(8192, 8, 128)
    fused.apply_rotary_pos_emb(q, k, r.normal(8192, 64), r.normal(8192, 64), r.integers(0, 8192, 8192))


@program("flag_gems")
def gems_losses(r: Recorder) -> None:
    from flag_gems import fused

    fused.cross_entropy_loss(r.normal(4096, 32000), r.integers(0, 32000, 4096))


@program("flag_gems")
def gems_attention(r: Recorder) -> None:
    from flag_gems import ops

    q, k, v = (r.normal(2, heads, 2048, 128) for heads in (32, 8, 8))
    ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@program("flag_gems")
def gems_quantized(r: Recorder) -> None:
    from flag_gems import ops

    ops.per_token_group_quant_fp8(r.normal(4096, 4096), 128)
    a, b = (r.normal(*shape, dtype=F32).to(torch.float8_e4m3fn) for shape in ((1024, 4096), (4096, 4096)))
    ops.w8a8_block_fp8_matmul(a, b, r.uniform(1024, 32, dtype=F32), r.uniform(32, 32, dtype=F32), [128, 128])
