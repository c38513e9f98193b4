"""Training steps of six models that Inductor compiles: how long they take with each compiler.

    python -m benchmarks.inductor_models [MODEL ...]

Each compiler runs twice, in turns, in a new process with empty caches: milliseconds of a step (forward, backward,
update; the median) and seconds of the first one, which compiles. `real_programs/inductor.py` records kernels of such
models without a GPU.
"""

# pyright: basic, reportMissingImports=false

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional as F

STEPS, WARM_STEPS = 30, 5
COMPILERS = ("triton", "tilework")


class Attention(nn.Module):
    """Causal or full self-attention; `key_heads` fewer than `heads` share keys."""

    def __init__(self, width: int, heads: int, key_heads: int | None = None, is_causal: bool = True) -> None:
        super().__init__()
        self.heads, self.key_heads, self.is_causal = heads, key_heads or heads, is_causal
        self.depth = width // heads
        self.project = nn.Linear(width, (heads + 2 * self.key_heads) * self.depth, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor] | None = None) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, -1, self.depth).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.key_heads, self.key_heads], 1)
        if rotation is not None:
            q, k = rotate(q, *rotation), rotate(k, *rotation)
        attended = F.scaled_dot_product_attention(
            q, k, v, is_causal=self.is_causal, enable_gqa=self.key_heads != self.heads
        )
        return self.out(attended.transpose(1, 2).reshape(batch, length, width))


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


class Block(nn.Module):
    """A layer of GPT or of a vision transformer."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, is_causal=is_causal)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    def __init__(self, layers: int = 6, width: int = 768, heads: int = 12, vocabulary: int = 50304) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*(Block(width, heads, is_causal=True) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, key_heads: int, inner: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads, key_heads)
        self.norms = nn.ModuleList([nn.RMSNorm(width) for _ in range(2)])
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x), rotation)
        normal = self.norms[1](x)
        return x + self.down(F.silu(self.gate(normal)) * self.up(normal))


class Llama(nn.Module):
    def __init__(self, layers: int = 4, width: int = 2048, heads: int = 32, vocabulary: int = 32000) -> None:
        super().__init__()
        self.tokens, self.depth = nn.Embedding(vocabulary, width), width // heads
        self.blocks = nn.ModuleList([LlamaBlock(width, heads, 8, 5632) for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        step = torch.arange(0, self.depth, 2, device=tokens.device) / self.depth
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device), 1e4**-step).repeat(1, 2)
        rotation = (angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        for block in self.blocks:
            x = block(x, rotation)
        return self.head(self.norm(x))


class VisionTransformer(nn.Module):
    def __init__(self, layers: int = 6, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token, self.positions = (nn.Parameter(torch.randn(1, size, width) * 0.02) for size in (1, 197))
        self.blocks = nn.Sequential(*(Block(width, heads, is_causal=False) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Residual(nn.Module):
    """Two convolutions with batch norm, and the input added."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.convolutions(x) + self.shortcut(x))


class ConvolutionalNet(nn.Sequential):
    def __init__(self) -> None:
        widths = (64, 128, 256, 512)
        layers = [Residual(inputs, outputs, 2) for inputs, outputs in itertools.pairwise(widths)]
        super().__init__(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000),
        )  # fmt: skip


class Recommendation(nn.Module):
    """Embeddings of categories, their pairwise dots with dense features, and two MLPs."""

    def __init__(self, tables: int = 26, rows: int = 100_000, width: int = 128) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(rows, width) for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU())
        self.head = nn.Linear(256, 2)
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        features = torch.stack([bottom, *(table(categories[:, i]) for i, table in enumerate(self.tables))], 1)
        dots = torch.bmm(features, features.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.head(self.top(torch.cat([bottom, dots], 1))))


class Denoiser(nn.Module):
    """Convolutions with group norm and SiLU around attention, as diffusion models have."""

    def __init__(self, width: int = 320) -> None:
        super().__init__()
        self.inputs, self.outputs = nn.Conv2d(4, width, 3, 1, 1), nn.Conv2d(width, 4, 3, 1, 1)
        self.norms = nn.ModuleList([nn.GroupNorm(32, width) for _ in range(3)])
        self.convolutions = nn.ModuleList([nn.Conv2d(width, width, 3, 1, 1) for _ in range(2)])
        self.attention = Attention(width, 8, is_causal=False)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        x = self.inputs(x)
        h = self.convolutions[0](F.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        x = x + self.convolutions[1](F.silu(self.norms[1](h)))
        rows = self.norms[2](x).flatten(2).transpose(1, 2)
        x = x + self.attention(rows).transpose(1, 2).reshape(x.shape)
        return self.outputs(F.silu(x))


Step = tuple[nn.Module, Callable[[], torch.Tensor]]


def classified(model: nn.Module, inputs: Sequence[torch.Tensor], labels: torch.Tensor) -> Step:
    return model, lambda: F.cross_entropy(model(*inputs).flatten(0, -2).float(), labels.flatten())


def text(model: nn.Module, batch: int, length: int, vocabulary: int) -> Step:
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return classified(model, [tokens[:, :-1].contiguous()], tokens[:, 1:].contiguous())


def denoising(model: nn.Module) -> Step:
    image, time, noise = torch.randn(8, 4, 64, 64), torch.randn(8, 320), torch.randn(8, 4, 64, 64)
    return model, lambda: F.mse_loss(model(image, time).float(), noise.float())


def recommending(model: nn.Module) -> Step:
    rows = 8192
    dense, categories = torch.rand(rows, 13), torch.randint(0, 100_000, (rows, 26))
    return classified(model, [dense, categories], torch.randint(0, 2, (rows,)))


def images(model: nn.Module, batch: int) -> Step:
    return classified(model, [torch.randn(batch, 3, 224, 224)], torch.randint(0, 1000, (batch,)))


MODELS: dict[str, Callable[[], Step]] = {
    "gpt": lambda: text(Gpt(), 8, 1024, 50304),
    "llama": lambda: text(Llama(), 4, 2048, 32000),
    "vision transformer": lambda: images(VisionTransformer(), 64),
    "convolutional net": lambda: images(ConvolutionalNet(), 64),
    "recommendation": lambda: recommending(Recommendation()),
    "denoiser": lambda: denoising(Denoiser()),
}


def training_step(name: str) -> Callable[[], torch.Tensor]:
    """Return a compiled training step of a model on the GPU, in bf16."""
    torch.manual_seed(0)
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.bfloat16)
    model, loss_of = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    forward = torch.compile(loss_of)
    update = torch.compile(optimizer.step)

    def step() -> torch.Tensor:
        loss = forward()
        loss.backward()
        update()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def measure(name: str, compiler: str) -> dict[str, float]:
    """Return the seconds of the first step and the milliseconds of the later ones."""
    if compiler == "tilework":
        import tilework

        tilework.as_triton()
    start = time.perf_counter()
    step = training_step(name)
    step()
    torch.cuda.synchronize()
    first = time.perf_counter() - start
    for _ in range(WARM_STEPS):
        step()
    times: list[float] = []
    for _ in range(STEPS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return {"first": first, "ms": statistics.median(times), "loss": step().item()}


def compare(names: Sequence[str]) -> None:
    print(f"{'':20}{'Triton':>20}{'tilework':>20}   ratio{'first: Triton':>18}{'tilework':>12}   ratio   loss")
    for name in names:
        found: dict[str, list[dict[str, float]]] = {compiler: [] for compiler in COMPILERS}
        for _ in range(2):
            for compiler, runs in found.items():
                runs.append(child(name, compiler))
        times, firsts = ([[run[key] for run in found[c]] for c in COMPILERS] for key in ("ms", "first"))
        shown = "".join(f"{runs[0]:>11.2f}/{runs[1]:.2f} ms" for runs in times)
        seconds = "".join(f"{runs[0]:>9.1f}/{runs[1]:.1f} s" for runs in firsts)
        losses = "/".join(f"{found[compiler][0]['loss']:.4f}" for compiler in COMPILERS)
        ratios = [min(theirs) / min(ours) for theirs, ours in (times, firsts)]
        print(f"{name:20}{shown}   {ratios[0]:.3f}x{seconds}   {ratios[1]:.2f}x   {losses}", flush=True)


def child(name: str, compiler: str) -> dict[str, float]:
    """Measure in a new process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TRITON_CACHE_DIR": f"{folder}/triton"}
        environment = {**os.environ, **settings}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have bytecode
        command = [sys.executable, "-m", "benchmarks.inductor_models", "--compiler", compiler, name]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", choices=COMPILERS, help="measure with this one only, and print JSON")
    parser.add_argument("models", nargs="*", default=[*MODELS], help=", ".join(MODELS))
    args = parser.parse_args()
    if args.compiler:
        print(json.dumps(measure(args.models[0], args.compiler)))
    else:
        compare(args.models)


if __name__ == "__main__":
    main()
