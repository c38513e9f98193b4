"""Programs that call libraries of Triton kernels at the sizes of language models, for `benchmarks.real_kernels record`.

Each program is a function of a `Recorder`, which makes its tensors; the libraries are imported where they are used, so
that one that is not installed costs its own programs only. No GPU and no torch for CUDA is needed, and nothing of the
libraries' own requirements but a few packages:

    pip install torch triton einops pillow sqlalchemy tqdm pyyaml ml_dtypes xdsl ordered-set immutabledict
    pip install --no-deps liger-kernel fla-core flag_gems torchao gemlite sageattention unsloth sglang transformers
    pip download --no-deps vllm mamba-ssm flash-attn      # the .py files alone: their folders into site-packages

FLA refuses some backward passes for an H200 before Triton 3.7.1; launches that a newer Triton records run under an
older one.
"""

from benchmarks.real_programs import fla, flag_gems, inductor, liger, serving, training
from benchmarks.real_programs.registry import PROGRAMS

__all__ = ["PROGRAMS", "fla", "flag_gems", "inductor", "liger", "serving", "training"]
