"""The rows of `gpu.py`: what is launched, over which configurations, what torch does for the same work, and what must
be reached.

Sizes are those of the table, small ones at which a GPU does the same, or such that the emulator can run a row on
tensors of the host.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

import torch

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Must:
    """The required speed relative to Triton, to torch and to a copy of the same bytes."""

    triton: float
    torch: float | None = None
    copy: float | None = None

    def __str__(self) -> str:
        parts = [f"{self.triton:g}x Triton"]
        parts += [f"{self.torch:g}x torch"] if self.torch else []
        parts += [f"{self.copy:g} of a copy"] if self.copy else []
        return ", ".join(parts)


@dataclass
class Row:
    """One kernel of a file beside this one on some data.

    `args(config, descriptor)` are its arguments, `grid(config)` its grid; `work` are bytes or floating-point
    operations. `copied` are a source and a target that have all these bytes together.
    """

    kernel: str
    configs: Sequence[Config]
    grid: Callable[[Config], tuple[int, ...]]
    args: Callable[[Config, Any], Sequence[Any]]
    result: Any
    expected: Callable[[], Any]
    work: float
    must: Must
    unit: str = "TFLOP/s"
    reference: Callable[[], Any] | None = None
    tolerance: float = 2e-2
    constants: Config = field(default_factory=dict)
    copied: tuple[Any, Any] | None = None
    file: str = "gpu_kernels.py"


class Sizes(Enum):
    TABLE = 0
    BLOCKS_STAY = 1  # small, but there are more tiles than multiprocessors
    EMULATED = 2


@dataclass(frozen=True)
class Device:
    """The device and size of tensors. Small ones have the same values on every device: they are made on the host."""

    device: str = "cuda"
    sizes: Sizes = Sizes.TABLE

    def size(self, *sizes: int) -> int:
        return sizes[self.sizes.value]

    @property
    def source(self) -> str:
        return self.device if self.sizes is Sizes.TABLE else "cpu"

    def random(self, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        return torch.randn(*shape, device=self.source).to(dtype).to(self.device)

    def integers(self, end: int, count: int) -> torch.Tensor:
        return torch.randint(0, end, (count,), device=self.source, dtype=torch.int32).to(self.device)

    def empty(self, *shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
        return torch.empty(*shape, device=self.device, dtype=dtype)


def tiles(*rows: tuple[int, int, int, int, int]) -> list[Config]:
    names = ("BM", "BN", "BK", "num_warps", "num_stages")
    return [dict(zip(names, row, strict=True)) for row in rows]


F16_TILES = tiles(
    (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 4, 4), (256, 128, 64, 8, 3), (64, 256, 64, 4, 4)
)
FP8_TILES = tiles(
    (128, 256, 128, 8, 3), (128, 128, 128, 4, 4), (256, 128, 128, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 4, 4)
)
TF32_TILES = tiles(
    (128, 128, 32, 4, 3), (128, 256, 32, 8, 3), (128, 128, 32, 4, 4), (128, 128, 32, 8, 3), (64, 128, 32, 4, 4)
)


FEW_ROWS = 2304, 256  # 162 tiles of 128 x 256, or one
FEW_COLUMNS = 640, 256  # no multiple of three or four steps of 128


def programs(size: int, config: Config) -> tuple[int]:
    return (-(-size // config["BM"]) * -(-size // config["BN"]),)


def matmul(
    device: Device, large: int, dtype: torch.dtype, configs: Sequence[Config], must: Must, **constants: Any
) -> Row:
    size, depth = device.size(large, *FEW_ROWS), device.size(large, *FEW_COLUMNS)
    is_fp8 = dtype is torch.float8_e4m3fn
    a, b = device.random(size, depth, dtype=dtype), device.random(depth, size, dtype=dtype)
    c = device.empty(size, size, dtype=torch.float16 if is_fp8 else dtype)
    torch.backends.cuda.matmul.allow_tf32 = True
    product = partial(torch.matmul, a, b, out=c)
    if is_fp8:
        one, transposed = torch.ones((), device=device.device), b.t().contiguous().t()
        product = partial(torch._scaled_mm, a, transposed, one, one, out_dtype=c.dtype, use_fast_accum=True)
    return Row(
        "matmul", configs, partial(programs, size),
        lambda config, descriptor: (a, b, c, size, size, depth, depth, size, size), c,
        lambda: a.float() @ b.float(), 2 * size * size * depth, must, reference=product,
        constants={"GROUP": 8, **constants},
    )  # fmt: skip


def matmul_descriptors(device: Device, must: Must, **constants: Any) -> Row:
    size, depth = device.size(8192, *FEW_ROWS), device.size(8192, *FEW_COLUMNS)
    a, b, c = device.random(size, depth), device.random(depth, size), device.empty(size, size)

    def args(config: Config, descriptor: Any) -> Sequence[Any]:
        m, n, k = config["BM"], config["BN"], config["BK"]
        pairs = ((a, [m, k]), (b, [k, n]), (c, [m, n]))
        return (*(descriptor.from_tensor(tensor, block) for tensor, block in pairs), size, size, depth)

    return Row(
        "matmul_descriptors", F16_TILES, partial(programs, size), args, c, lambda: a.float() @ b.float(),
        2 * size * size * depth, must,
        reference=partial(torch.matmul, a, b, out=c), constants={"GROUP": 8, **constants},
    )  # fmt: skip


def attention(device: Device, depth: int, is_causal: bool, must: Must, **constants: Any) -> Row:
    batch, heads, length = device.size(2, 1, 1), device.size(16, 2, 1), device.size(8192, 1024, 256)
    q, k, v = (device.random(batch, heads, length, depth) for _ in range(3))
    out = torch.empty_like(q)
    attend = partial(torch.nn.functional.scaled_dot_product_attention, q, k, v, is_causal=is_causal)
    rows = ((128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 3), (128, 128, 8, 3), (64, 64, 4, 3))
    names = ("BM", "BN", "num_warps", "num_stages")
    return Row(
        "attention", [dict(zip(names, row, strict=True)) for row in rows],
        lambda config: (length // config["BM"], batch * heads),
        lambda config, descriptor: (q, k, v, out, length, depth**-0.5), out, attend,
        4 * batch * heads * length**2 * depth / (2 if is_causal else 1), must, reference=attend,
        constants={"D": depth, "CAUSAL": is_causal, **constants},
    )  # fmt: skip


AS_FAST = Must(1.0, copy=0.97)


def bandwidth(kernel: str, configs: Sequence[Config], work: int, must: Must = AS_FAST, **settings: Any) -> Row:
    return Row(kernel, configs, work=work, must=must, unit="GB/s", **settings)


def warps(*counts: int, **more: Any) -> list[Config]:
    return [{"num_warps": count, **more} for count in counts]


def blocks(*pairs: tuple[int, int]) -> list[Config]:
    return [{"BLOCK": block, "num_warps": count} for block, count in pairs]


BLOCKS = blocks((1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 8))


def per_block(n: int) -> Callable[[Config], tuple[int]]:
    return lambda config: (-(-n // config["BLOCK"]),)


def add(device: Device) -> Row:
    n = device.size(1 << 26, 1 << 20, 1 << 13)
    x, y, out = (device.random(n, dtype=torch.float32) for _ in range(3))
    return bandwidth(
        "add", BLOCKS, 12 * n, grid=per_block(n), args=lambda config, descriptor: (x, y, out, n), result=out,
        expected=lambda: x + y, reference=partial(torch.add, x, y, out=out),
    )  # fmt: skip


def softmax(device: Device) -> Row:
    m, n = device.size(8192, 512, 4), 4096
    x, out = device.random(m, n, dtype=torch.float32), device.empty(m, n, dtype=torch.float32)
    return bandwidth(
        "softmax", warps(4, 8, 16, 32), 8 * m * n, grid=lambda config: (m,),
        args=lambda config, descriptor: (out, x, n), result=out,
        expected=lambda: torch.softmax(x, 1), reference=partial(torch.softmax, x, 1), constants={"BLOCK": n},
        copied=(x, out),
    )  # fmt: skip


def layernorm(device: Device) -> Row:
    m, n = device.size(8192, 512, 4), 4096
    x, out = device.random(m, n, dtype=torch.bfloat16), device.empty(m, n, dtype=torch.bfloat16)
    w, b = (device.random(n, dtype=torch.bfloat16) for _ in range(2))
    norm = partial(torch.nn.functional.layer_norm, x, (n,), w, b)
    return bandwidth(
        "layernorm", warps(4, 8, 16, 32), 4 * m * n, grid=lambda config: (m,), result=out, expected=norm,
        reference=norm,
        args=lambda config, descriptor: (out, x, w, b, n, 1e-5), constants={"BLOCK": n}, tolerance=5e-2,
        copied=(x, out),
    )  # fmt: skip


def transpose(device: Device) -> Row:
    m = n = device.size(8192, 1024, 128)
    x, out = device.random(m, n, dtype=torch.float32), device.empty(n, m, dtype=torch.float32)
    shapes = ((64, 64, 4), (32, 64, 4), (64, 32, 4), (32, 128, 8), (64, 64, 8))
    return bandwidth(
        "transpose", [dict(zip(("BM", "BN", "num_warps"), shape, strict=True)) for shape in shapes], 8 * m * n,
        grid=lambda config: (m // config["BM"], n // config["BN"]), args=lambda config, descriptor: (x, out, m, n),
        result=out,
        expected=lambda: x.t(), reference=lambda: out.copy_(x.t()), copied=(x, out),
    )  # fmt: skip


def cumsum(device: Device) -> Row:
    m, n = device.size(8192, 512, 4), 4096
    x, out = device.random(m, n, dtype=torch.float32), device.empty(m, n, dtype=torch.float32)
    return bandwidth(
        "cumsum", warps(4, 8, 16), 8 * m * n, grid=lambda config: (m,), args=lambda config, descriptor: (x, out, n),
        result=out,
        expected=lambda: torch.cumsum(x, 1), reference=partial(torch.cumsum, x, 1, out=out), constants={"BLOCK": n},
        copied=(x, out),
    )  # fmt: skip


def sort(device: Device) -> Row:
    m, n = device.size(32768, 512, 2), 1024
    x, out = device.random(m, n, dtype=torch.float32), device.empty(m, n, dtype=torch.float32)
    return bandwidth(
        "sort", warps(1, 2, 4, 8), 8 * m * n, Must(2.0), grid=lambda config: (m,),
        args=lambda config, descriptor: (x, out), result=out,
        expected=lambda: torch.sort(x, 1).values, reference=partial(torch.sort, x, 1), constants={"BLOCK": n},
    )  # fmt: skip


def histogram(device: Device) -> Row:
    n, bins = device.size(1 << 26, 1 << 22, 1 << 12), 256
    x = device.integers(bins, n)
    counts = torch.zeros(bins, device=device.device, dtype=torch.int32)
    return bandwidth(
        "histogram", BLOCKS[:4], 4 * n, Must(5.0), grid=per_block(n), args=lambda config, descriptor: (x, counts, n),
        result=counts,
        expected=lambda: torch.bincount(x, minlength=bins).int(), tolerance=0,
    )  # fmt: skip


F16, BF16, F32, FP8 = torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn
REQUESTED = {"SPECIALIZE": True}
ROWS: dict[str, Callable[[Device], Row]] = {
    "matmul f16 4096, pointers": lambda device: matmul(device, 4096, F16, F16_TILES, Must(1.05)),
    "matmul f16 8192, pointers": lambda device: matmul(device, 8192, F16, F16_TILES, Must(1.05)),
    "matmul bf16 8192, pointers": lambda device: matmul(device, 8192, BF16, F16_TILES, Must(1.05)),
    "matmul f16 8192, descriptors": lambda device: matmul_descriptors(device, Must(1.08, torch=1.03)),
    "matmul fp8 8192, row-major B": lambda device: matmul(device, 8192, FP8, FP8_TILES, Must(5.0)),
    "matmul tf32 4096, row-major B": lambda device: matmul(device, 4096, F32, TF32_TILES, Must(3.5)),
    "attention D64 full": lambda device: attention(device, 64, False, Must(1.1)),
    "attention D64 causal": lambda device: attention(device, 64, True, Must(1.1)),
    "attention D128 full": lambda device: attention(device, 128, False, Must(1.15)),
    "attention D128 causal": lambda device: attention(device, 128, True, Must(1.15)),
    "histogram i32 2^26": histogram,
    "vadd f32 2^26": add,
    "softmax f32 8192x4096": softmax,
    "layernorm bf16 8192x4096": layernorm,
    "transpose f32 8192x8192": transpose,
    "cumsum f32 8192x4096": cumsum,
    "sort f32 32768x1024": sort,
    "matmul f16 8192, pointers, asked to specialise": lambda device: matmul(
        device, 8192, F16, F16_TILES[:3], Must(1.05), **REQUESTED
    ),
    "matmul f16 8192, descriptors, asked to specialise": lambda device: matmul_descriptors(
        device, Must(1.08, torch=1.03), **REQUESTED
    ),
    "attention D128 full, asked to specialise": lambda device: attention(device, 128, False, Must(1.15), **REQUESTED),
    "attention D128 causal, asked to specialise": lambda device: attention(device, 128, True, Must(1.15), **REQUESTED),
}
ONLY_CHECKED: dict[str, Callable[[Device], Row]] = {
    "attention D64 full, asked to specialise": lambda device: attention(device, 64, False, Must(1.1), **REQUESTED),
    "attention D64 causal, asked to specialise": lambda device: attention(device, 64, True, Must(1.1), **REQUESTED),
}
