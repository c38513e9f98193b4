"""Kernels of Mamba, flash-attn, SageAttention, Unsloth, torchao and GemLite."""

# pyright: basic, reportMissingImports=false

import contextlib
import importlib
import sys
from typing import Any

import torch

from benchmarks.real_programs.registry import F32, bare, both_ways, program
from benchmarks.record_launches import Recorder


@program("mamba")
def mamba_scan(r: Recorder) -> None:
    bare("mamba_ssm", stubs=("causal_conv1d", "causal_conv1d_cuda", "selective_scan_cuda"))
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    for heads, depth, state in ((64, 64, 128), (80, 64, 64)):
        x = r.normal(2, 4096, heads, depth, grad=True)
        b, c = (r.normal(2, 4096, 1, state, grad=True) for _ in range(2))
        dt = r.normal(2, 4096, heads, grad=True)
        a = r.uniform(heads, low=-2.0, high=-0.1, dtype=F32, grad=True)
        both_ways(r, mamba_chunk_scan_combined, x, dt, a, b, c, 256, r.normal(heads, dtype=F32, grad=True),
                  dt_bias=r.normal(heads, dtype=F32, grad=True), dt_softplus=True)  # fmt: skip


@program("mamba")
def mamba_decode(r: Recorder) -> None:
    bare("mamba_ssm")
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update

    for batch in (1, 64):
        a = r.uniform(64, low=-2.0, high=-0.1, dtype=F32).view(64, 1, 1).expand(64, 64, 128)
        dt = r.normal(batch, 64).unsqueeze(-1).expand(batch, 64, 64)
        bias = r.normal(64).unsqueeze(-1).expand(64, 64)
        selective_state_update(r.normal(batch, 64, 64, 128), r.normal(batch, 64, 64), dt, a, r.normal(batch, 1, 128),
                               r.normal(batch, 1, 128), r.normal(64).unsqueeze(-1).expand(64, 64), dt_bias=bias,
                               dt_softplus=True)  # fmt: skip


@program("mamba")
def mamba_norms(r: Recorder) -> None:
    bare("mamba_ssm")
    from mamba_ssm.ops.triton import layer_norm, layernorm_gated

    for rows, columns in ((8192, 4096), (8192, 2048)):
        x, z, w = (r.normal(*shape, grad=True) for shape in ((rows, columns), (rows, columns), (columns,)))
        both_ways(r, layernorm_gated.rmsnorm_fn, x, w, None, z, 1e-5, None, False)
        both_ways(r, layer_norm.rms_norm_fn, x, w, None, residual=r.normal(rows, columns, dtype=F32), prenorm=True,
                  residual_in_fp32=True)  # fmt: skip


@program("flash_attn")
def flash_layer_norm(r: Recorder) -> None:
    bare("flash_attn")
    from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn

    for rows, columns in ((8192, 4096), (2048, 8192)):
        x, w, b = (r.normal(*shape, grad=True) for shape in ((rows, columns), (columns,), (columns,)))
        both_ways(r, layer_norm_fn, x, w, b, residual=r.normal(rows, columns))
        both_ways(r, rms_norm_fn, x, w, None)


@program("flash_attn")
def flash_rest(r: Recorder) -> None:
    bare("flash_attn")
    from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
    from flash_attn.ops.triton.rotary import apply_rotary

    for interleaved in (False, True):
        apply_rotary(r.normal(2, 4096, 32, 128), r.normal(4096, 64), r.normal(4096, 64), interleaved=interleaved)
    for rows, vocabulary in ((4096, 32000), (2048, 128256)):
        logits = r.normal(rows, vocabulary, grad=True)
        both_ways(r, cross_entropy_loss, logits, r.integers(0, vocabulary, rows), label_smoothing=0.1)


@program("sageattention")
def sage(r: Recorder) -> None:
    bare("sageattention")
    from sageattention import core

    for depth, length in ((64, 4096), (128, 4096), (128, 1024)):
        for causal in (False, True):
            q, k, v = (r.normal(2, 16, length, depth, dtype=torch.float16) for _ in range(3))
            core.sageattn(q, k, v, is_causal=causal)


@program("sageattention")
def sage_varlen(r: Recorder) -> None:
    bare("sageattention")
    from sageattention import core

    q, k, v = (r.normal(8192, heads, 128, dtype=torch.float16) for heads in (32, 8, 8))
    lengths = torch.arange(0, 8193, 1024, dtype=torch.int32)
    core.sageattn_varlen(q, k, v, lengths, lengths, 1024, 1024, is_causal=True)


UNSLOTH = ("bitsandbytes", "peft", "unsloth_zoo", "transformers", "unsloth.device_type", "unsloth.bnb_availability",
           "unsloth.kernels.utils", "fbgemm_gpu")  # fmt: skip


def unsloth() -> Any:
    """Return the package of Unsloth's kernels, with the few names of its utilities that they use."""
    bare("unsloth", "unsloth.kernels", stubs=UNSLOTH)
    import triton
    import unsloth.kernels.utils as utils

    def settings(n: int) -> tuple[int, int]:
        block = triton.next_power_of_2(n)
        return block, 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4

    utils.calculate_settings, utils.MAX_FUSED_SIZE = settings, 65536
    utils.torch_gpu_device = lambda device: contextlib.nullcontext()
    utils.is_cdna = lambda: False
    utils.long_indexing = lambda *args, **kwargs: False
    utils.norm_num_warps = lambda count, *args, **kwargs: 8
    utils.next_power_of_2 = triton.next_power_of_2
    utils.DEVICE_COUNT, utils.DEVICE_TYPE = 1, "cuda"
    device = sys.modules.get("unsloth.device_type") or importlib.import_module("unsloth.device_type")
    device.DEVICE_COUNT, device.DEVICE_TYPE = 1, "cuda"
    import triton.language as tl
    from triton.language.extra import libdevice

    utils.triton_tanh, utils.triton_cast = libdevice.tanh, tl.cast
    return utils


@program("unsloth")
def unsloth_activations(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels import geglu, swiglu

    for rows, columns in ((4096, 11008), (64, 4096)):
        one, two, three = (r.normal(1, rows, columns) for _ in range(3))
        swiglu.swiglu_fg_kernel(one, two)
        geglu.geglu_exact_forward_kernel(one, two)
        geglu.geglu_approx_forward_kernel(one, two)
        one, two, three = (one.view(rows, columns) for one in (one, two, three))
        swiglu.swiglu_DWf_DW_dfg_kernel(one, two, three)
        geglu.geglu_exact_backward_kernel(one, two, three)
        geglu.geglu_approx_backward_kernel(one, two, three)


@program("unsloth")
def unsloth_rms_norm(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels.rms_layernorm import Fast_RMS_Layernorm

    for gemma in (False, True):
        both_ways(r, Fast_RMS_Layernorm.apply, r.normal(2, 4096, 4096, grad=True), r.normal(4096), 1e-6, gemma)


@program("unsloth")
def unsloth_layer_norm(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels.layernorm import Fast_Layernorm

    both_ways(r, Fast_Layernorm.apply, r.normal(2, 4096, 4096, grad=True), r.normal(4096), r.normal(4096), 1e-6)


@program("unsloth")
def unsloth_rope(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels.rope_embedding import Fast_RoPE_Embedding

    both_ways(r, Fast_RoPE_Embedding.apply, r.normal(2, 4096, 32, 128, grad=True), r.normal(4096, 128),
              r.normal(4096, 128))  # fmt: skip


@program("unsloth")
def unsloth_loss(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels.cross_entropy_loss import Fast_CrossEntropyLoss

    for vocabulary, softcap in ((32000, 0), (128256, 0), (256000, 30.0)):
        logits = r.normal(2048, vocabulary, grad=True)
        both_ways(r, Fast_CrossEntropyLoss.apply, logits, r.integers(0, vocabulary, 2048), softcap, 0)


@program("unsloth")
def unsloth_fp8(r: Recorder) -> None:
    unsloth()
    from unsloth.kernels import fp8

    fp8.act_quant(r.normal(4096, 4096))
    fp8.weight_dequant_block(r.normal(4096, 4096).to(torch.float8_e4m3fn), r.uniform(32, 32, dtype=F32))


@program("torchao")
def torchao_blockwise(r: Recorder) -> None:
    from torchao.kernel import blockwise_quantization as blockwise

    blockwise.fp8_blockwise_act_quant(r.normal(4096, 4096))
    blockwise.fp8_blockwise_weight_quant(r.normal(4096, 4096))
    weight = r.normal(4096, 4096).to(torch.float8_e4m3fn)
    blockwise.fp8_blockwise_weight_dequant(weight, r.uniform(32, 32, dtype=F32))
    for rows in (4096, 64):
        x = r.normal(rows, 4096).to(torch.float8_e4m3fn)
        blockwise.blockwise_fp8_gemm(x, r.uniform(rows, 32, dtype=F32), weight, r.uniform(32, 32, dtype=F32))


@program("torchao")
def torchao_int8(r: Recorder) -> None:
    from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm_cuda

    for rows in (4096, 512):
        a, b = (r.integers(-127, 128, *shape, dtype=torch.int8) for shape in ((rows, 4096), (4096, 4096)))
        scaled_int8_mm_cuda(a, b, r.uniform(rows), r.uniform(4096))


@program("torchao")
def torchao_training(r: Recorder) -> None:
    from torchao.prototype.blockwise_fp8_training import kernels

    kernels.triton_fp8_blockwise_act_quant_lhs(r.normal(4096, 4096))
    kernels.triton_fp8_blockwise_act_quant_transposed_lhs(r.normal(4096, 4096))
    kernels.triton_fp8_blockwise_act_quant_rhs(r.normal(4096, 4096))
    kernels.triton_fp8_blockwise_weight_quant_rhs(r.normal(4096, 4096))
    kernels.triton_fp8_blockwise_weight_quant_transposed_rhs(r.normal(4096, 4096))


@program("torchao")
def torchao_rowwise(r: Recorder) -> None:
    from torchao.prototype.moe_training.kernels import float8_rowwise

    float8_rowwise.triton_fp8_rowwise_3d_transpose_rhs(r.normal(8, 4096, 2048), torch.float8_e4m3fn)


@program("torchao")
def torchao_tensorwise(r: Recorder) -> None:
    from torchao.float8.float8_training_tensor import LinearMMConfig
    from torchao.prototype.float8nocompile.kernels import fp8_dynamic_tensorwise as tensorwise

    for name in ("hp_to_fp8_row_major", "hp_to_fp8_row_major_t", "hp_to_fp8_col_major", "hp_to_fp8_row_and_col_major"):
        getattr(tensorwise, name)(r.normal(4096, 4096), torch.float8_e4m3fn, LinearMMConfig())


def gemlite_layer(r: Recorder, bits: int, group: int) -> Any:
    from gemlite.core import DType, GemLiteLinearTriton

    layer = GemLiteLinearTriton(bits, group, 4096, 4096, DType.FP16, DType.FP16)
    weights = r.integers(0, 2**bits, 4096, 4096, dtype=torch.uint8)
    shape = (4096, 4096 // group)
    layer.pack(
        weights,
        r.uniform(*shape, dtype=torch.float16).view(-1, 1),
        r.uniform(*shape, dtype=torch.float16).view(-1, 1),
        None,
    )
    return layer


@program("gemlite")
def gemlite_int4(r: Recorder) -> None:
    layer = gemlite_layer(r, 4, 64)
    for name, rows in (("GEMV", 1), ("GEMV_REVSPLITK", 1), ("GEMM_SPLITK", 16), ("GEMM", 64), ("GEMM", 512)):
        layer.forward_manual(r.normal(rows, 4096, dtype=torch.float16), name)


@program("gemlite")
def gemlite_int8(r: Recorder) -> None:
    layer = gemlite_layer(r, 8, 64)
    for name, rows in (("GEMV", 1), ("GEMV_SPLITK", 1), ("GEMM_SPLITK", 16), ("GEMM", 256)):
        layer.forward_manual(r.normal(rows, 4096, dtype=torch.float16), name)
