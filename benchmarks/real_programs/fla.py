"""Flash linear attention at the sizes of language models."""

# pyright: basic, reportMissingImports=false

import torch

from benchmarks.real_programs.registry import F32, both_ways, program
from benchmarks.record_launches import Recorder

BATCH, LENGTH, HEADS, DEPTH = 2, 4096, 16, 128
WIDE = (BATCH, LENGTH, HEADS, DEPTH)


def qkv(r: Recorder, depth: int = DEPTH, heads: int = HEADS, length: int = LENGTH) -> list[torch.Tensor]:
    """Return queries, keys and values."""
    return [r.normal(BATCH, length, heads, depth, scale=0.3, grad=True) for _ in range(3)]


def gates(r: Recorder, *shape: int) -> torch.Tensor:
    """Return logarithms of decays."""
    return r.uniform(*shape, low=-0.5, high=-0.01, dtype=F32, grad=True)


def fractions(r: Recorder, *shape: int) -> torch.Tensor:
    return r.uniform(*shape, low=0.05, high=0.95, grad=True)


@program("fla")
def gla(r: Recorder) -> None:
    from fla.ops.gla import chunk_gla, fused_recurrent_gla

    both_ways(r, chunk_gla, *qkv(r), gates(r, *WIDE))
    both_ways(r, fused_recurrent_gla, *qkv(r, length=512), gates(r, BATCH, 512, HEADS, DEPTH))


@program("fla")
def simple_gla(r: Recorder) -> None:
    from fla.ops.simple_gla import chunk_simple_gla, parallel_simple_gla

    both_ways(r, chunk_simple_gla, *qkv(r), gates(r, *WIDE[:3]))
    both_ways(r, parallel_simple_gla, *qkv(r), gates(r, *WIDE[:3]))


@program("fla")
def retention(r: Recorder) -> None:
    from fla.ops.retention import chunk_retention, parallel_retention

    both_ways(r, chunk_retention, *qkv(r, depth=256, heads=8))
    both_ways(r, parallel_retention, *qkv(r))


@program("fla")
def linear_attn(r: Recorder) -> None:
    from fla.ops.linear_attn import chunk_linear_attn

    both_ways(r, chunk_linear_attn, *qkv(r, depth=64, heads=32), normalize=False)


@program("fla")
def delta_rule(r: Recorder) -> None:
    from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule

    both_ways(r, chunk_delta_rule, *qkv(r), fractions(r, *WIDE[:3]), use_qk_l2norm_in_kernel=True)
    both_ways(r, fused_recurrent_delta_rule, *qkv(r, length=512), fractions(r, BATCH, 512, HEADS))


@program("fla")
def gated_delta_rule(r: Recorder) -> None:
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

    both_ways(r, chunk_gated_delta_rule, *qkv(r), gates(r, *WIDE[:3]), fractions(r, *WIDE[:3]),
              use_qk_l2norm_in_kernel=True)  # fmt: skip
    q, k, v = (one.detach() for one in qkv(r, length=1))
    fused_recurrent_gated_delta_rule(q, k, v, gates(r, BATCH, 1, HEADS).detach(), beta=fractions(r, BATCH, 1, HEADS),
                                     initial_state=r.normal(BATCH, HEADS, DEPTH, DEPTH, dtype=F32),
                                     output_final_state=True)  # fmt: skip


@program("fla")
def kda(r: Recorder) -> None:
    from fla.ops.kda import chunk_kda

    both_ways(r, chunk_kda, *qkv(r), gates(r, *WIDE), fractions(r, *WIDE[:3]))


@program("fla")
def rwkv6(r: Recorder) -> None:
    from fla.ops.rwkv6 import chunk_rwkv6

    q, k, v = qkv(r, depth=64, heads=32)
    both_ways(r, chunk_rwkv6, q, k, v, gates(r, BATCH, LENGTH, 32, 64), r.normal(32, 64, grad=True))


@program("fla")
def rwkv7(r: Recorder) -> None:
    from fla.ops.rwkv7 import chunk_rwkv7

    q, k, v = qkv(r, depth=64, heads=32)
    a, b = (r.normal(BATCH, LENGTH, 32, 64, scale=0.1, grad=True) for _ in range(2))
    w = r.uniform(BATCH, LENGTH, 32, 64, low=-0.5, high=-0.01, grad=True)
    both_ways(r, chunk_rwkv7, q, w, k, v, a, b)


@program("fla")
def hgrn(r: Recorder) -> None:
    from fla.ops.hgrn import chunk_hgrn, fused_recurrent_hgrn

    for function in (chunk_hgrn, fused_recurrent_hgrn):
        both_ways(r, function, r.normal(4, 4096, 2048, grad=True), gates(r, 4, 4096, 2048))


@program("fla")
def gsa(r: Recorder) -> None:
    from fla.ops.gsa import chunk_gsa

    s = r.normal(BATCH, LENGTH, HEADS, 64, scale=0.3, grad=True)
    both_ways(r, chunk_gsa, *qkv(r), s, gates(r, BATCH, LENGTH, HEADS, 64))


@program("fla")
def based(r: Recorder) -> None:
    from fla.ops.based import fused_chunk_based, parallel_based

    for function in (parallel_based, fused_chunk_based):
        q, k = (r.normal(BATCH, 2048, HEADS, 16, scale=0.3, grad=True) for _ in range(2))
        both_ways(r, function, q, k, r.normal(BATCH, 2048, HEADS, DEPTH, grad=True))


@program("fla")
def attn(r: Recorder) -> None:
    from fla.ops.attn import parallel_attn

    k, v = (r.normal(BATCH, LENGTH, 4, DEPTH, grad=True) for _ in range(2))
    both_ways(r, parallel_attn, r.normal(BATCH, LENGTH, 32, DEPTH, grad=True), k, v)


@program("fla")
def forgetting_attn(r: Recorder) -> None:
    from fla.ops.forgetting_attn import parallel_forgetting_attn

    both_ways(r, parallel_forgetting_attn, *qkv(r), gates(r, *WIDE[:3]))


@program("fla")
def path_attn(r: Recorder) -> None:
    from fla.ops.path_attn import parallel_path_attn

    q, k, v = qkv(r, depth=64)
    w = r.normal(BATCH, LENGTH, HEADS, 64, scale=0.1, dtype=F32, grad=True)
    beta = r.uniform(*WIDE[:3], low=0.05, high=0.95, dtype=F32, grad=True)
    both_ways(r, parallel_path_attn, q, k, v, w, beta, gates(r, *WIDE[:3]))


@program("fla")
def nsa(r: Recorder) -> None:
    from fla.ops.nsa import parallel_nsa

    k, v = (r.normal(1, 8192, 4, DEPTH, grad=True) for _ in range(2))
    q, blocks = r.normal(1, 8192, 64, DEPTH, grad=True), r.integers(0, 128, 1, 8192, 4, 16)
    blocks = torch.minimum(blocks, torch.arange(8192)[None, :, None, None] // 64)
    both_ways(r, parallel_nsa, q, k, v, block_indices=blocks, block_counts=16, block_size=64)


@program("fla")
def mesa_net(r: Recorder) -> None:
    from fla.ops.mesa_net import chunk_mesa_net

    both_ways(r, chunk_mesa_net, *qkv(r, length=2048), gates(r, BATCH, 2048, HEADS), fractions(r, BATCH, 2048, HEADS),
              r.uniform(HEADS, DEPTH, low=0.25, high=1.0, dtype=F32, grad=True))  # fmt: skip


@program("fla")
def comba(r: Recorder) -> None:
    from fla.ops.comba import chunk_comba

    q, k, v = qkv(r)
    both_ways(r, chunk_comba, q, k, v, r.normal(*WIDE, scale=0.3, grad=True), gates(r, *WIDE[:3]),
              fractions(r, *WIDE[:3]))  # fmt: skip


@program("fla")
def dplr_delta_rule(r: Recorder) -> None:
    from fla.ops.generalized_delta_rule import chunk_dplr_delta_rule, chunk_iplr_delta_rule

    a, b = (r.normal(BATCH, LENGTH, HEADS, 64, scale=0.1, grad=True) for _ in range(2))
    both_ways(r, chunk_dplr_delta_rule, *qkv(r, depth=64), a, b, gates(r, BATCH, LENGTH, HEADS, 64))
    both_ways(r, chunk_iplr_delta_rule, *qkv(r, depth=64), a, b)


@program("fla")
def log_linear_attn(r: Recorder) -> None:
    from fla.ops.log_linear_attn import chunk_log_linear_attn

    q, k = (r.normal(BATCH, LENGTH, 1, DEPTH, scale=0.3, grad=True) for _ in range(2))
    both_ways(r, chunk_log_linear_attn, q, k, r.normal(BATCH, LENGTH, HEADS, 64, grad=True), gates(r, *WIDE[:3]),
              r.uniform(BATCH, LENGTH, HEADS, 13, dtype=F32, grad=True))  # fmt: skip


@program("fla")
def ttt_linear(r: Recorder) -> None:
    from fla.ops.ttt import chunk_ttt_linear

    w, b = r.normal(HEADS, 64, grad=True), r.normal(HEADS, 64, grad=True)
    eta = r.uniform(BATCH, LENGTH, HEADS, 1, low=0.0, high=0.01, grad=True)
    both_ways(r, chunk_ttt_linear, *qkv(r, depth=64), w, b, eta, chunk_size=16)


@program("fla")
def stickbreaking_attn(r: Recorder) -> None:
    from fla.ops.stickbreaking_attn import parallel_stickbreaking_attn

    both_ways(r, parallel_stickbreaking_attn, *qkv(r, depth=64))


@program("fla")
def fla_norms(r: Recorder) -> None:
    from fla.modules.norm import layernorm
    from fla.modules.norm.fused_norm_gate import rms_norm_gated
    from fla.modules.norm.l2norm import l2norm

    both_ways(r, l2norm, r.normal(*WIDE, grad=True))
    for columns in (2048, 128):
        x, w = r.normal(8192, columns, grad=True), r.normal(columns, grad=True)
        both_ways(r, layernorm.rms_norm, x, w, None)
        both_ways(r, layernorm.layer_norm, x, w, r.normal(columns, grad=True))
        both_ways(r, rms_norm_gated, x, r.normal(8192, columns, grad=True), w, None)


@program("fla")
def fla_modules(r: Recorder) -> None:
    from fla.modules import activations
    from fla.modules.causal_conv1d import causal_conv1d
    from fla.modules.rotary import rotary_embedding
    from fla.modules.token_shift import token_shift

    x = r.normal(BATCH, LENGTH, 2048, grad=True)
    both_ways(r, activations.swish, x)
    both_ways(r, activations.logsigmoid, x)
    both_ways(r, activations.swiglu, x, r.normal(BATCH, LENGTH, 2048, grad=True))
    both_ways(r, causal_conv1d, x, r.normal(2048, 4, grad=True), activation="silu")
    both_ways(r, token_shift, x)
    both_ways(r, rotary_embedding, r.normal(*WIDE, grad=True), r.normal(LENGTH, 64), r.normal(LENGTH, 64))


@program("fla")
def fla_losses(r: Recorder) -> None:
    from fla.modules import FusedCrossEntropyLoss, FusedLinearCrossEntropyLoss

    both_ways(r, FusedCrossEntropyLoss(), r.normal(4096, 32000, grad=True), r.integers(0, 32000, 4096))
    x, w = r.normal(4096, 2048, grad=True), r.normal(32000, 2048, grad=True)
    both_ways(r, FusedLinearCrossEntropyLoss(), x, r.integers(0, 32000, 4096), w)
