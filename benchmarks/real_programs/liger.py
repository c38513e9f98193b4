"""Liger at the sizes of language models."""

# pyright: basic, reportMissingImports=false

import torch

from benchmarks.real_programs.registry import both_ways, program
from benchmarks.record_launches import Recorder

ROWS = ((8192, 4096), (2048, 8192), (64, 2048))


@program("liger")
def dyt(r: Recorder) -> None:
    from liger_kernel.ops.dyt import LigerDyTFunction

    for rows, columns in ROWS:
        x, gamma, beta = (r.normal(*shape, grad=True) for shape in ((rows, columns), (columns,), (columns,)))
        both_ways(r, LigerDyTFunction.apply, x, r.normal(1, grad=True), gamma, beta)


@program("liger")
def kl_div(r: Recorder) -> None:
    from liger_kernel.ops.kl_div import LigerKLDivLossFunction

    for rows, columns in ((4096, 32000), (1024, 128256)):
        for is_log in (False, True):
            y = r.uniform(rows, columns, low=-8.0, high=-0.5, dtype=torch.float32, grad=True)
            target = r.uniform(rows, columns, low=-4.0 * is_log, high=1.0 - is_log, dtype=torch.float32)
            both_ways(r, LigerKLDivLossFunction.apply, y, target, "batchmean", is_log)


@program("liger")
def jsd(r: Recorder) -> None:
    from liger_kernel.ops.jsd import LigerJSDFunction

    for rows, columns in ((4096, 32000), (1024, 128256)):
        x, y = (r.uniform(rows, columns, low=-9.0, high=-1.0, dtype=torch.float32, grad=True) for _ in range(2))
        both_ways(r, LigerJSDFunction.apply, x, y.detach())


@program("liger")
def tvd(r: Recorder) -> None:
    from liger_kernel.ops.tvd import LigerTVDLossFunction

    x, y = (r.uniform(4096, 32000, dtype=torch.float32, grad=True) for _ in range(2))
    both_ways(r, LigerTVDLossFunction.apply, x, y.detach())


@program("liger")
def geglu(r: Recorder) -> None:
    from liger_kernel.ops.geglu import LigerGELUMulFunction

    for shape in ((8192, 11008), (4096, 14336), (64, 4096)):
        both_ways(r, LigerGELUMulFunction.apply, r.normal(*shape, grad=True), r.normal(*shape, grad=True))


@program("liger")
def swiglu(r: Recorder) -> None:
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    for shape in ((8192, 11008), (4096, 14336), (64, 4096)):
        both_ways(r, LigerSiLUMulFunction.apply, r.normal(*shape, grad=True), r.normal(*shape, grad=True))


@program("liger")
def relu_squared(r: Recorder) -> None:
    from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction

    both_ways(r, LigerReLUSquaredFunction.apply, r.normal(4096, 8192, grad=True))


@program("liger")
def cross_entropy(r: Recorder) -> None:
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    for rows, vocabulary, smoothing, softcap in (
        (4096, 32000, 0.0, None),
        (2048, 128256, 0.0, None),
        (2048, 128256, 0.1, 30.0),
    ):
        logits = r.normal(rows, vocabulary, grad=True)
        both_ways(r, LigerCrossEntropyFunction.apply, logits, r.integers(0, vocabulary, rows), None, -100, 1e-4,
                  smoothing, "mean", softcap)  # fmt: skip


@program("liger")
def fused_linear_cross_entropy(r: Recorder) -> None:
    from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction

    x, w = r.normal(8192, 4096, grad=True), r.normal(128256, 4096, grad=True)
    both_ways(r, LigerFusedLinearCrossEntropyFunction.apply, x, w, r.integers(0, 128256, 8192))


@program("liger")
def rms_norm(r: Recorder) -> None:
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    for rows, columns in (*ROWS, (16384, 128)):
        for mode in ("llama", "gemma"):
            x, w = r.normal(rows, columns, grad=True), r.normal(columns, grad=True)
            both_ways(r, LigerRMSNormFunction.apply, x, w, 1e-6, 0.0, mode)


@program("liger")
def fused_add_rms_norm(r: Recorder) -> None:
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

    for rows, columns in ROWS:
        x, y, w = (r.normal(*shape, grad=True) for shape in ((rows, columns), (rows, columns), (columns,)))
        out, _ = LigerFusedAddRMSNormFunction.apply(x, y, w, 1e-6)
        r.backward(out)


@program("liger")
def layer_norm(r: Recorder) -> None:
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    for rows, columns in ROWS:
        x, w, b = (r.normal(*shape, grad=True) for shape in ((rows, columns), (columns,), (columns,)))
        both_ways(r, LigerLayerNormFunction.apply, x, w, b, 1e-6)


@program("liger")
def poly_norm(r: Recorder) -> None:
    from liger_kernel.ops.poly_norm import LigerPolyNormFunction

    x, w, b = r.normal(4096, 4096, grad=True), r.normal(3, grad=True), r.normal(grad=True)
    both_ways(r, LigerPolyNormFunction.apply, x, w, b)


@program("liger")
def group_norm(r: Recorder) -> None:
    from liger_kernel.ops.group_norm import LigerGroupNormFunction

    x, w, b = r.normal(32, 512, 4096, grad=True), r.normal(512, grad=True), r.normal(512, grad=True)
    both_ways(r, LigerGroupNormFunction.apply, x, w, b, 512, 32, 1e-6)


@program("liger")
def rope(r: Recorder) -> None:
    from liger_kernel.ops.rope import LigerRopeFunction

    for batch, length, heads, groups, depth in ((2, 4096, 32, 8, 128), (1, 2048, 64, 8, 64)):
        q = r.normal(batch, length, heads, depth, grad=True).transpose(1, 2)
        k = r.normal(batch, length, groups, depth, grad=True).transpose(1, 2)
        both_ways(r, LigerRopeFunction.apply, q, k, r.normal(1, length, depth), r.normal(1, length, depth))


@program("liger")
def qwen2vl_mrope(r: Recorder) -> None:
    from liger_kernel.ops.qwen2vl_mrope import LigerQwen2VLMRopeFunction

    q, k = (r.normal(2, 4096, heads, 128, grad=True).transpose(1, 2) for heads in (28, 4))
    both_ways(r, LigerQwen2VLMRopeFunction.apply, q, k, r.normal(3, 2, 4096, 128), r.normal(3, 2, 4096, 128),
              [16, 24, 24])  # fmt: skip


@program("liger")
def softmax(r: Recorder) -> None:
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    for rows, columns in ((8192, 4096), (4096, 32768)):
        both_ways(r, LigerSoftmaxFunction.apply, r.normal(rows, columns, grad=True))


@program("liger")
def sparsemax(r: Recorder) -> None:
    from liger_kernel.ops.sparsemax import LigerSparsemaxFunction

    for rows, columns in ((4096, 4096), (1024, 32768)):
        both_ways(r, LigerSparsemaxFunction.apply, r.normal(rows, columns, grad=True), -1)


@program("liger")
def embedding(r: Recorder) -> None:
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    both_ways(r, LigerEmbeddingFunction.apply, r.normal(32000, 4096, grad=True), r.integers(0, 32000, 8192))


@program("liger")
def grpo_loss(r: Recorder) -> None:
    from liger_kernel.ops.grpo_loss import GrpoLossFunction

    rows, length, vocabulary = 8, 512, 32000
    logits = r.normal(rows, length + 1, vocabulary, grad=True)
    old, ref = (r.uniform(rows, length, low=-9.0, high=-1.0, dtype=torch.float32) for _ in range(2))
    ids, mask = r.integers(0, vocabulary, rows, length), r.integers(0, 2, rows, length)
    both_ways(r, GrpoLossFunction.apply, logits, old, ref, ids, r.normal(rows, dtype=torch.float32), mask, 0.9, 0.04,
              0.2, 0.2, True)  # fmt: skip


@program("liger")
def llama4_rope(r: Recorder) -> None:
    from liger_kernel.ops.llama4_rope import LigerLlama4RopeFunction

    q, k = (r.normal(2, 4096, heads, 128, grad=True) for heads in (40, 8))
    both_ways(r, LigerLlama4RopeFunction.apply, q, k, r.normal(4096, 64, 2, dtype=torch.float32))


@program("liger")
def attn_res(r: Recorder) -> None:
    from liger_kernel.ops.attn_res import LigerAttnResFunction

    both_ways(r, LigerAttnResFunction.apply, r.normal(8, 2, 2048, 2048, grad=True), r.normal(2048, grad=True),
              r.normal(2048, grad=True), 1e-6)  # fmt: skip


@program("liger")
def modulated_rms_norm(r: Recorder) -> None:
    from liger_kernel.ops.modulated_rms_norm import LigerModulatedRMSNormFunction

    x, w, scale, shift = (r.normal(*shape, grad=True) for shape in ((2, 4096, 3072), (3072,), (2, 3072), (2, 3072)))
    both_ways(r, LigerModulatedRMSNormFunction.apply, x, w, scale, shift, 1e-6)
