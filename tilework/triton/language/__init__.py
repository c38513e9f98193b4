"""Names that programs find in Triton's language, and not in ours."""

from tilework.language import core

# Inductor writes a dtype that a kernel imports by its bare name as `tl.NAME`, with the name that the dtype has
bf16, fp16, fp32, fp64 = core.bfloat16, core.float16, core.float32, core.float64
fp8e4b8, fp8e4b15, fp8e4nv = core.float8e4b8, core.float8e4b15, core.float8e4nv
fp8e5, fp8e5b16 = core.float8e5, core.float8e5b16

__all__ = ["bf16", "fp8e4b8", "fp8e4b15", "fp8e4nv", "fp8e5", "fp8e5b16", "fp16", "fp32", "fp64"]
