"""The kernels that Inductor writes for six models, forward and backward, without a GPU.

The graphs are compiled for a GPU that is only described (`tests.inductor.without_gpu`); the wrapper around the kernels
then runs on tensors in host memory, and its launches are recorded.
"""

# pyright: basic, reportMissingImports=false

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

from benchmarks.real_programs.registry import program
from benchmarks.record_launches import Recorder

BF16 = torch.bfloat16


class RecordedKernel:
    """Stands for what `async_compile.triton` gives: a kernel whose launches are recorded."""

    def __init__(self, recorder: Recorder, kernel: Any) -> None:
        self.recorder, self.tuner = recorder, kernel.tuner

    def run(self, *args: Any, stream: int) -> None:
        from torch._inductor.runtime.triton_heuristics import GridExpr

        extra = self.tuner.inductor_meta.get("extra_launcher_args", ())
        names = [param.name for param in self.tuner.fn.params if not param.is_constexpr]
        given = dict(zip([*names, *extra], args, strict=True))
        config = self.tuner.configs[0]
        grid = GridExpr.from_meta(self.tuner.inductor_meta, config).eval_slow(given)
        settings = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        constants = {
            name: value for name, value in self.tuner.triton_meta["constants"].items() if isinstance(name, str)
        }
        self.recorder.launch(self.tuner.fn, (), {**constants, **given, **settings}, tuple(grid))


def record_graph(r: Recorder, function: Callable[..., Any], *args: torch.Tensor) -> None:
    """Record the kernels of one graph."""
    from torch._inductor.async_compile import AsyncCompile

    from tests.inductor.without_gpu import EmulatedKernel, compile_python, generate

    text = generate(function, args).wrapper
    text = text.replace("from torch._C import _cuda_getCurrentRawStream as get_raw_stream", "get_raw_stream = int")
    text = text.replace("torch._C._dynamo.guards._empty_strided_cuda", "torch._C._dynamo.guards._empty_strided_cpu")
    text = re.sub(r"with torch\.cuda\._DeviceGuard\(\d+\):", "if True:", text)
    text = re.sub(r"^ +torch\.cuda\.set_device\(\d+\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"device\(type='cuda', index=0\)|'cuda:0'", "'cpu'", text)
    folder = Path(tempfile.mkdtemp())
    (folder / "wrapper.py").write_text(text)
    module = ModuleType("wrapper")

    def triton(self: Any, name: str, source: str, device_str: str = "cuda") -> RecordedKernel:
        return RecordedKernel(r, EmulatedKernel(name, source, folder))

    with mock.patch.object(AsyncCompile, "triton", triton):
        exec(compile_python(folder / "wrapper.py"), vars(module))
    with r.recording():
        module.call(list(args))


def with_gradients(loss: Callable[..., torch.Tensor], first: int = 0) -> Callable[..., Any]:
    """Return a function that computes a loss and its gradients by the floating-point arguments from `first` on."""

    def both(*args: torch.Tensor) -> Any:
        with torch.enable_grad():
            leaves = [one.detach().requires_grad_(one.is_floating_point()) for one in args]
            found = loss(*leaves)
            return found, *torch.autograd.grad(found, [one for one in leaves[first:] if one.is_floating_point()])

    return both


def own(function: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
    """Mark a program that starts the recording by itself."""
    function.records_itself = True  # type: ignore[attr-defined]
    return function


@program("inductor")
@own
def gpt_block(r: Recorder) -> None:
    def loss(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor, g: torch.Tensor, b: torch.Tensor,
             head: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # fmt: skip
        h = F.layer_norm(x, (1024,), g, b)
        q, k, v = (h @ w1).view(8, 1024, 3, 16, 64).permute(2, 0, 3, 1, 4)
        p = (q @ k.transpose(-1, -2) * 0.125).masked_fill(torch.ones(1024, 1024).triu(1).bool(), -1e9).softmax(-1)
        x = x + (p @ v).transpose(1, 2).reshape(8, 1024, 1024)
        x = x + F.gelu(F.layer_norm(x, (1024,), g, b) @ w2, approximate="tanh") @ w3
        return F.cross_entropy((F.layer_norm(x, (1024,), g, b) @ head).view(8192, -1).float(), y)

    shapes = ((8, 1024, 1024), (1024, 3072), (1024, 4096), (4096, 1024), (1024,), (1024,), (1024, 32000))
    record_graph(r, with_gradients(loss), *(r.normal(*shape) for shape in shapes), r.integers(0, 32000, 8192))


@program("inductor")
@own
def llama_block(r: Recorder) -> None:
    def norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16) * w

    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, -1)
        return x * cos + torch.cat((-right, left), -1) * sin

    def loss(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor, g: torch.Tensor, cos: torch.Tensor,
             sin: torch.Tensor) -> torch.Tensor:  # fmt: skip
        q, k, v = (norm(x, g) @ w1).view(2, 2048, 3, 16, 128).permute(2, 0, 3, 1, 4)
        p = (rotated(q, cos, sin) @ rotated(k, cos, sin).transpose(-1, -2) * 0.088).float().softmax(-1).to(BF16)
        x = x + (p @ v).transpose(1, 2).reshape(2, 2048, 2048)
        up, gate = (norm(x, g) @ w2).chunk(2, -1)
        return (x + (F.silu(gate) * up) @ w3).float().pow(2).mean()

    shapes = ((2, 2048, 2048), (2048, 6144), (2048, 11264), (5632, 2048), (2048,), (2048, 128), (2048, 128))
    record_graph(r, with_gradients(loss), *(r.normal(*shape) for shape in shapes))


@program("inductor")
@own
def vision_transformer(r: Recorder) -> None:
    def loss(x: torch.Tensor, patch: torch.Tensor, place: torch.Tensor, g: torch.Tensor, b: torch.Tensor,
             w1: torch.Tensor, w2: torch.Tensor, head: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # fmt: skip
        x = x.view(64, 3, 14, 16, 14, 16).permute(0, 2, 4, 1, 3, 5).reshape(64, 196, 768) @ patch + place
        x = x + F.gelu(F.layer_norm(x, (768,), g, b) @ w1) @ w2
        return F.cross_entropy((F.layer_norm(x, (768,), g, b).mean(1) @ head).float(), y, label_smoothing=0.1)

    shapes = ((64, 3, 224, 224), (768, 768), (196, 768), (768,), (768,), (768, 3072), (3072, 768), (768, 1000))
    record_graph(r, with_gradients(loss), *(r.normal(*shape) for shape in shapes), r.integers(0, 1000, 64))


@program("inductor")
@own
def convolutional_net(r: Recorder) -> None:
    def loss(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor, head: torch.Tensor,
             y: torch.Tensor) -> torch.Tensor:  # fmt: skip
        h = F.relu(F.batch_norm(x, None, None, g, b, True))
        h = F.relu(F.batch_norm(F.conv2d(h, w, padding=1), None, None, g, b, True) + x)
        return F.cross_entropy(F.avg_pool2d(h, 2).mean((2, 3)) @ head, y)

    shapes = ((32, 64, 56, 56), (64,), (64,), (64, 64, 3, 3), (64, 1000))
    args = (r.normal(*shape, dtype=torch.float32) for shape in shapes)
    record_graph(r, with_gradients(loss), *args, r.integers(0, 1000, 32))


@program("inductor")
@own
def recommendation(r: Recorder) -> None:
    def loss(table: torch.Tensor, dense: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, w3: torch.Tensor,
             ids: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # fmt: skip
        sparse = F.embedding(ids, table)
        h = F.relu(F.relu(dense @ w1) @ w2)
        both = torch.cat((h[:, None], sparse), 1)
        pairs = (both @ both.transpose(1, 2)).flatten(1)
        return F.binary_cross_entropy_with_logits((torch.cat((h, pairs), 1) @ w3).squeeze(1), y)

    shapes = ((100_000, 64), (4096, 16), (16, 512), (512, 64), (64 + 27 * 27, 1))
    args = (r.normal(*shape, dtype=torch.float32) for shape in shapes)
    # the gradient of the table would be an operator that a torch without CUDA cannot trace
    record_graph(r, with_gradients(loss, 1), *args, r.integers(0, 100_000, 4096, 26),
                 r.uniform(4096, dtype=torch.float32))  # fmt: skip


@program("inductor")
@own
def diffusion_block(r: Recorder) -> None:
    def loss(x: torch.Tensor, t: torch.Tensor, w: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        shift, scale, gate = (F.silu(t) @ w).chunk(3, -1)
        h = F.layer_norm(x, (1536,)) * (1 + scale[:, None]) + shift[:, None]
        x = x + gate[:, None] * (h @ q)
        return F.group_norm(x.transpose(1, 2), 32).sigmoid().float().mean()

    shapes = ((4, 4096, 1536), (4, 1536), (1536, 4608), (1536, 1536))
    record_graph(r, with_gradients(loss), *(r.normal(*shape) for shape in shapes))
