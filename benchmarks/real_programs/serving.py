"""Kernels of vLLM and SGLang at the sizes of a server."""

# pyright: basic, reportMissingImports=false

import enum
import re
import sys
from typing import Any, NamedTuple

import torch

from benchmarks.real_programs.registry import F32, Anything, bare, program
from benchmarks.record_launches import Recorder


class Capability(NamedTuple):
    """vLLM's version of a GPU."""

    major: int
    minor: int

    def to_int(self) -> int:
        return 10 * self.major + self.minor


class KVQuantMode(enum.IntEnum):
    """The modes of vLLM's cache that kernels of attention compare with; the file that has them imports all of vLLM."""

    NONE, INT8_PER_TOKEN_HEAD, FP8_PER_TOKEN_HEAD, INT4_PER_TOKEN_HEAD = 0, 2, 3, 4


class Platform(Anything):
    """The description of an H200 that vLLM and SGLang ask."""

    def fp8_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn

    def is_cuda(self) -> bool:
        return True

    def is_cuda_alike(self) -> bool:
        return True

    def has_device_capability(self, *args: Any) -> bool:
        return True

    def get_device_capability(self, *args: Any) -> Capability:
        return Capability(9, 0)


def vllm_files() -> None:
    bare("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.ops", "vllm.v1.sample", "vllm.v1.sample.ops",
         "vllm.v1.worker", "vllm.v1.worker.gpu", "vllm.v1.worker.gpu.sample", "vllm.model_executor",
         "vllm.model_executor.determinism", "vllm.model_executor.warmup", "vllm.model_executor.layers",
         "vllm.model_executor.layers.mamba", "vllm.model_executor.layers.mamba.ops",
         "vllm.model_executor.layers.fused_moe",
         "vllm.model_executor.layers.quantization", "vllm.model_executor.layers.quantization.utils",
         "vllm.model_executor.layers.quantization.compressed_tensors", "vllm.utils",
         stubs=("vllm.logger", "vllm.envs", "vllm.platforms", "vllm._custom_ops", "vllm.config",
                "vllm.distributed", "vllm.utils.gpu_sync_debug", "vllm.utils.platform_utils", "vllm.utils.torch_utils",
                "vllm.utils.mem_utils", "vllm.utils.nccl", "vllm.sampling_params",
                "vllm.v1.outputs", "vllm.v1.worker.gpu.buffer_utils", "vllm.v1.kv_cache_interface",
                "vllm.v1.worker.gpu.sample.logits_processor", "vllm.triton_utils",
                "vllm.model_executor.layers.quantization.utils.quant_utils", "vllm.forward_context",
                "vllm.model_executor.layers.fused_moe.utils", "vllm.model_executor.layers.fused_moe.modular_kernel",
                "vllm.model_executor.custom_op", "vllm.scalar_type", "vllm.model_executor.parameter"))  # fmt: skip
    import triton
    import vllm.platforms
    import vllm.triton_utils as utils
    import vllm.utils.platform_utils
    import vllm.v1.kv_cache_interface

    sys.modules.setdefault("regex", re)
    vllm.platforms.current_platform = Platform()
    vllm.v1.kv_cache_interface.KVQuantMode = KVQuantMode
    vllm.utils.platform_utils.num_compute_units = lambda *args: 132
    utils.triton, utils.tl, utils.HAS_TRITON = triton, triton.language, True
    utils.tldevice = triton.language.extra.libdevice


def paged(r: Recorder, batch: int, length: int, page: int = 16) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return the block table and the lengths of a paged cache, and its number of pages."""
    pages = batch * (length // page)
    order = torch.randperm(pages, generator=torch.Generator().manual_seed(1), dtype=torch.int64).to(torch.int32)
    return order.view(batch, -1), torch.full((batch,), length, dtype=torch.int32), pages


@program("vllm")
def vllm_unified_attention(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.attention.ops.triton_unified_attention import unified_attention

    for batch, new, length in ((32, 1, 4096), (4, 1024, 2048), (1, 1, 8192)):
        table, lengths, pages = paged(r, batch, length)
        q, out = r.normal(batch * new, 32, 128), r.normal(batch * new, 32, 128)
        k, v = (r.normal(pages, 16, 8, 128) for _ in range(2))
        starts = torch.arange(0, batch * new + 1, new, dtype=torch.int32)
        unified_attention(q, k, v, out, starts, new, lengths, length, 0.088, True, (-1, -1), table, 0, None, None, None)


@program("vllm")
def vllm_decode_attention(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd

    for batch, heads, groups, depth, values in ((32, 32, 8, 128, 128), (16, 128, 1, 576, 512)):
        table, lengths, pages = paged(r, batch, 4096)
        k, v = r.normal(pages, 16, groups, depth), r.normal(pages, 16, groups, values)
        scale = r.uniform(1, dtype=F32)
        logits = r.normal(batch, heads, 8, values + 1, dtype=F32)
        decode_attention_fwd(r.normal(batch, heads, depth), k, v, r.normal(batch, heads, values),
                             r.normal(batch, heads, dtype=F32), table, lengths, logits, 8, 0.088, 16,
                             is_mla=depth != values, k_scale=scale, v_scale=scale)  # fmt: skip


@program("vllm")
def vllm_prefill_attention(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.attention.ops.triton_prefill_attention import context_attention_fwd

    q, out = r.normal(8192, 32, 128), r.normal(8192, 32, 128)
    k, v = (r.normal(8192, 8, 128) for _ in range(2))
    starts, lengths = torch.arange(0, 8192, 2048, dtype=torch.int32), torch.full((4,), 2048, dtype=torch.int32)
    context_attention_fwd(q, k, v, out, starts, lengths, 2048, True)


@program("vllm")
def vllm_merge_states(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states

    out, one, two = (r.normal(4096, 32, 128) for _ in range(3))
    merge_attn_states(out, one, r.normal(32, 4096, dtype=F32), two, r.normal(32, 4096, dtype=F32))


@program("vllm")
def vllm_batch_invariant(r: Recorder) -> None:
    vllm_files()
    from vllm.model_executor.determinism import batch_invariant as invariant

    for rows in (4096, 128):
        invariant.matmul_persistent(r.normal(rows, 4096), r.normal(4096, 4096))
    invariant.log_softmax(r.normal(1024, 32000))
    invariant.softmax(r.normal(1024, 32000))
    invariant.mean_dim(r.normal(4096, 4096), 1)
    invariant.rms_norm_batch_invariant(r.normal(4096, 4096), r.normal(4096))


@program("vllm")
def vllm_sampling(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.worker.gpu.sample import gumbel, min_p

    logits, rows = r.normal(128, 128256, dtype=F32), torch.arange(128, dtype=torch.int32)
    gumbel.apply_temperature(logits, rows, r.uniform(128, low=0.5, high=1.0, dtype=F32))
    min_p.apply_min_p(logits, rows, r.uniform(128, low=0.01, high=0.1, dtype=F32))
    gumbel.gumbel_sample(logits, rows, r.uniform(128, dtype=F32), r.integers(0, 1 << 30, 128),
                         r.integers(0, 1 << 12, 128), True, False)  # fmt: skip


@program("vllm")
def vllm_top_k(r: Recorder) -> None:
    vllm_files()
    from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton

    apply_top_k_top_p_triton(r.normal(64, 128256, dtype=F32), torch.full((64,), 50, dtype=torch.int32), None)


@program("vllm")
def vllm_mamba(r: Recorder) -> None:
    vllm_files()
    from vllm.model_executor.layers.mamba.ops.layernorm_gated import rms_norm_gated

    rms_norm_gated(r.normal(4096, 4096), r.normal(4096), None, z=r.normal(4096, 4096))


@program("vllm")
def vllm_quantization(r: Recorder) -> None:
    vllm_files()
    from vllm.model_executor.layers.quantization.utils import fp8_utils

    a, b = r.normal(256, 4096).to(torch.float8_e4m3fn), r.normal(4096, 4096).to(torch.float8_e4m3fn)
    fp8_utils.w8a8_triton_block_scaled_mm(a, b, r.uniform(256, 32, dtype=F32), r.uniform(32, 32, dtype=F32), [128, 128])


@program("vllm")
def vllm_awq(r: Recorder) -> None:
    vllm_files()
    from vllm.model_executor.layers.quantization.awq_triton import awq_dequantize_triton, awq_gemm_triton

    weights, zeros = (r.integers(-(2**31), 2**31 - 1, *shape, dtype=torch.int32) for shape in ((4096, 512), (32, 512)))
    scales = r.uniform(32, 4096, dtype=torch.float16)
    awq_dequantize_triton(weights, scales, zeros)
    for rows in (1, 64):
        awq_gemm_triton(r.normal(rows, 4096, dtype=torch.float16), weights, scales, zeros, 8)


@program("vllm")
def vllm_scaled_mm(r: Recorder) -> None:
    vllm_files()
    from vllm.model_executor.layers.quantization.compressed_tensors.triton_scaled_mm import triton_scaled_mm

    a, b = (r.integers(-127, 128, *shape, dtype=torch.int8) for shape in ((512, 4096), (4096, 4096)))
    triton_scaled_mm(a, b.t(), r.uniform(512, 1, dtype=F32), r.uniform(4096, 1, dtype=F32), torch.bfloat16)


def experts(tokens: int, count: int, chosen: int, block: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the tokens of each expert in blocks, the expert of each block, and the number of padded tokens."""
    ids = torch.randint(0, count, (tokens, chosen), generator=torch.Generator().manual_seed(3)).flatten()
    parts, owners = [], []
    for expert in range(count):
        own = (ids == expert).nonzero().flatten().to(torch.int32)
        padded = -(-own.numel() // block) * block
        parts.append(torch.cat([own, torch.full((padded - own.numel(),), ids.numel(), dtype=torch.int32)]))
        owners += [expert] * (padded // block)
    tokens_of = torch.cat(parts)
    return tokens_of, torch.tensor(owners, dtype=torch.int32), torch.tensor([tokens_of.numel()], dtype=torch.int32)


@program("vllm")
def vllm_fused_moe(r: Recorder) -> None:
    vllm_files()
    import triton.language as tl
    from vllm.model_executor.layers.fused_moe.fused_moe import invoke_fused_moe_triton_kernel

    for tokens in (16, 2048):
        block = 16 if tokens == 16 else 128
        config = {"BLOCK_SIZE_M": block, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "num_warps": 8,
                  "num_stages": 3, "SPLIT_K": 1}  # fmt: skip
        rows, owners, padded = experts(tokens, 16, 2, block)
        invoke_fused_moe_triton_kernel(
            r.normal(tokens, 2048), r.normal(16, 2816, 2048), r.normal(tokens, 2, 2816), None, None,
            r.uniform(tokens, 2, dtype=F32), rows, owners, padded, False, 2, config, tl.bfloat16, False, False, False,
            False, False, None,
        )  # fmt: skip


def sglang_files() -> None:
    bare("sglang", "sglang.kernels", "sglang.kernels.ops", "sglang.kernels.ops.attention",
         "sglang.kernels.ops.activation", "sglang.kernels.ops.layernorm", "sglang.kernels.ops.moe",
         "sglang.kernels.ops.gemm", "sglang.kernels.ops.quantization", "sglang.kernels.ops.elementwise",
         "sglang.kernels.ops.attention.fla", "sglang.kernels.ops.diffusion", "sglang.kernels.ops.diffusion.norm",
         "sglang.kernels.ops.diffusion.rope", "sglang.kernels.ops.diffusion.modulate",
         stubs=("sglang.srt", "sglang.kernels.kernel_api_logging", "sglang.multimodal_gen", "sgl_kernel"))  # fmt: skip
    import sglang.multimodal_gen.runtime.platforms as platforms

    platforms.current_platform = Platform()


@program("sglang")
def sglang_decode_attention(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.attention import decode_attention

    for batch, heads, groups, depth, values in ((32, 32, 8, 128, 128), (8, 32, 32, 128, 128), (16, 64, 1, 576, 512)):
        length = 2048
        starts = torch.arange(0, batch * length + 1, length, dtype=torch.int32)
        slots = torch.randperm(batch * length, generator=torch.Generator().manual_seed(2))
        k, v = r.normal(batch * length, groups, depth), r.normal(batch * length, groups, values)
        function = decode_attention.decode_attention_fwd_normal if heads == groups else (
            decode_attention.decode_attention_fwd_grouped)  # fmt: skip
        function(r.normal(batch, heads, depth), k, v, r.normal(batch, heads, values), starts, slots,
                 r.normal(batch, heads, 8, values, dtype=F32), r.normal(batch, heads, 8, dtype=F32),
                 torch.full((batch,), 8, dtype=torch.int32), 8, 0.088, 1.0)  # fmt: skip


@program("sglang")
def sglang_extend_attention(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd

    batch, new, prefix = 4, 1024, 2048
    q, out = r.normal(batch * new, 32, 128), r.normal(batch * new, 32, 128)
    k, v = (r.normal(batch * new, 8, 128) for _ in range(2))
    buffers = [r.normal(batch * prefix, 8, 128) for _ in range(2)]
    starts = torch.arange(0, batch * new + 1, new, dtype=torch.int32)
    prefixes = torch.arange(0, batch * prefix + 1, prefix, dtype=torch.int32)
    slots = torch.arange(batch * prefix)
    extend_attention_fwd(q, k, v, out, *buffers, starts, prefixes, slots, None, True, None, new, 1.0, 1.0)


@program("sglang")
def sglang_prefill_attention(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.attention.prefill_attention import context_attention_fwd

    k, v = (r.normal(8192, 8, 128) for _ in range(2))
    starts, lengths = torch.arange(0, 8192, 2048, dtype=torch.int32), torch.full((4,), 2048, dtype=torch.int32)
    context_attention_fwd(r.normal(8192, 32, 128), k, v, r.normal(8192, 32, 128), starts, lengths, 2048, True)


@program("sglang")
def sglang_activations(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.activation import gelu_and_mul_triton, softcap

    gelu_and_mul_triton.gelu_and_mul_triton(r.normal(4096, 22016))
    softcap.softcap_inplace_logits(r.normal(256, 128256), 30.0)


@program("sglang")
def sglang_norms(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.diffusion.norm import norm_triton, rmsnorm_onepass_triton

    norm_triton.norm_infer(r.normal(8192, 4096), r.normal(4096), None, 1e-6, True)
    norm_triton.norm_infer(r.normal(8192, 4096), r.normal(4096), r.normal(4096), 1e-6)
    rmsnorm_onepass_triton.triton_one_pass_rms_norm(r.normal(16384, 128), r.normal(128))


@program("sglang")
def sglang_rotary(r: Recorder) -> None:
    sglang_files()
    from sglang.kernels.ops.diffusion.modulate.scale_shift_triton import fuse_scale_shift_kernel
    from sglang.kernels.ops.diffusion.rope.rotary_triton import apply_rotary_embedding

    apply_rotary_embedding(r.normal(1, 4096, 24, 128), r.normal(4096, 64), r.normal(4096, 64))
    fuse_scale_shift_kernel(r.normal(1, 4096, 3072), r.normal(1, 3072), r.normal(1, 3072))
