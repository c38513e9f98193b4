"""Small programs for `torch.compile`, one per kind of kernel that Inductor generates.

A case makes a function and its arguments for a device; what it returns is compared with eager torch, and so are the
gradients of arguments that ask for them. Random numbers are compared by what must hold for them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """`make(device)` gives a function and its arguments; `settings` are of `torch._inductor.config`."""

    make: Callable[[str], Made]
    settings: dict[str, Any] = field(default_factory=dict)
    dynamic: bool | None = None
    more: Callable[[str], list[tuple[Any, ...]]] | None = None  # arguments of further calls
    tolerance: float = 2e-5
    compare: Callable[[Any, Any], None] | None = None


CASES: dict[str, Case] = {}


def case(**options: Any) -> Callable[[Callable[[str], Made]], Callable[[str], Made]]:
    """Register a case under the name of its function."""

    def register(make: Callable[[str], Made]) -> Callable[[str], Made]:
        CASES[make.__name__] = Case(make, **options)
        return make

    return register


def floats(
    *shape: int, device: str, grad: bool = False, dtype: torch.dtype = torch.float32, seed: int = 1
) -> torch.Tensor:
    """Normal numbers, the same on every device."""
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=device, dtype=dtype)
    return made.requires_grad_(grad)


def integers(
    *shape: int, low: int, high: int, device: str, dtype: torch.dtype = torch.int64, seed: int = 1
) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).to(device)


# pointwise


@case()
def pointwise(device: str) -> Made:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return F.gelu(x) * torch.sigmoid(y) + torch.where(x > 0, x.sin(), y.cos()), (x - y).clamp(-1, 1).exp()

    return f, (floats(33, 130, device=device, grad=True), floats(130, device=device, grad=True, seed=2))


@case()
def elementary(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        small = x.clamp(-0.9, 0.9)
        return (
            x.tanh()
            + x.sinh()
            + x.cosh()
            + small.asin()
            + small.acos()
            + x.atan()
            + x.erf()
            + x.erfc()
            + small.erfinv(),
            x.abs().log() + x.abs().log2() + x.abs().log10() + small.log1p() + x.expm1() + x.exp2(),
            x.abs().sqrt() + x.abs().rsqrt() + x.floor() + x.ceil() + x.trunc() + x.round() + torch.atan2(x, x + 2),
            torch.pow(x.abs(), 1.7) + torch.hypot(x, small) + x.abs().lgamma() + x.abs().digamma(),
            torch.fmod(x, 0.7) + torch.remainder(x, -0.7) + torch.copysign(small, -x) + torch.nextafter(x, small),
        )

    return f, (floats(1000, device=device),)


@case()
def whole_numbers(device: str) -> Made:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        floor, trunc = torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc")
        return floor, trunc, x % y, torch.fmod(x, y), (x & y) | (x ^ 5), x << 2, x >> 1, ~x, x.to(torch.int8), x * y

    given = integers(999, low=-1000, high=1000, device=device, dtype=torch.int32)
    return f, (given, integers(999, low=1, high=50, device=device, dtype=torch.int32))


@case(tolerance=2e-2)
def narrow_floats(device: str) -> Made:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return F.silu(x) * y, (x @ y.t()).softmax(-1), x.float().sum(-1).to(torch.float16)

    both = (
        floats(32, 64, device=device, dtype=torch.bfloat16, grad=True),
        floats(32, 64, device=device, dtype=torch.bfloat16, seed=2),
    )
    return f, both


@case()
def views_and_broadcasts(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        moved = x.permute(2, 0, 1).contiguous()
        return (
            moved,
            F.pad(x, (1, 2, 3, 0), value=0.5),
            torch.cat([x, x.flip(0)], 1),
            x.repeat(2, 1, 1) + x[:, None, 1].mean(),
        )

    return f, (floats(4, 5, 37, device=device, grad=True),)


# reductions


@case()
def sums(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return x.sum(-1), x.mean(0), x.sum(), x.prod(1), x.var(-1), x.std(0), torch.linalg.vector_norm(x, dim=1)

    return f, (floats(40, 300, device=device, grad=True),)


@case()
def long_reduction(device: str) -> Made:
    """Too long for one program: a loop, or two kernels."""
    return lambda x: (x.sum(), x.amax(), (x * x).mean(-1)), (floats(3, 70_001, device=device),)


@case()
def column_reduction(device: str) -> Made:
    return lambda x: (x.sum(0), x.amax(0), x.var(0)), (floats(2000, 33, device=device),)


@case()
def extremes(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return (
            x.argmax(-1),
            x.argmin(0),
            x.max(1).indices,
            x.min(0).values,
            (x > 2).any(1),
            (x > -9).all(),
            x.amin((0, 1)),
        )

    return f, (floats(50, 77, device=device),)


@case()
def softmax(device: str) -> Made:
    return lambda x: (x.softmax(-1), x.log_softmax(0), x.logsumexp(-1)), (floats(64, 256, device=device, grad=True),)


@case()
def layer_norm(device: str) -> Made:
    layer = nn.LayerNorm(200).to(device)
    return lambda x: layer(x).relu(), (floats(16, 200, device=device, grad=True),)


@case(settings={"triton.persistent_reductions": False})
def looped_reductions(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return x.softmax(-1), x.var(-1), F.layer_norm(x, (300,)), x.argmax(-1)

    return f, (floats(17, 300, device=device, grad=True),)


@case(settings={"triton.cooperative_reductions": True, "triton.force_cooperative_reductions": True})
def cooperative_reductions(device: str) -> Made:
    """Several programs share a row and wait for each other."""

    def f(x: torch.Tensor) -> Any:
        return x.sum(-1), x.amax(-1), x.var(-1), x.softmax(-1), x.argmax(-1)

    return f, (floats(3, 9000, device=device),)


@case(settings={"triton.multi_kernel": 1})
def multi_kernel(device: str) -> Made:
    return lambda x: (x.softmax(-1), x.sum(-1)), (floats(20, 500, device=device),)


@case(settings={"combo_kernels": True, "benchmark_combo_kernel": False})
def combined_kernels(device: str) -> Made:
    """Independent kernels in one launch."""
    given = floats(100, device=device), floats(7, 30, device=device), floats(64, 5, device=device)
    return lambda x, y, z: (x.sin(), y.sum(-1), z * 2), given


# scans, sorts, indices


@case()
def scans(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return x.cumsum(-1), (x / 4).cumprod(0), x.logcumsumexp(-1), x.cummax(-1).values, x.cummin(0).indices

    return f, (floats(20, 100, device=device),)


@case()
def long_scan(device: str) -> Made:
    """Over several programs, which wait for each other."""
    return lambda x: (x * 0.01).cumsum(-1), (floats(2, 20_000, device=device),)


@case()
def associative_scan(device: str) -> Made:
    from torch._higher_order_ops.associative_scan import associative_scan as scan

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        def combine(a: Any, b: Any) -> Any:
            return a[0] * b[0], a[1] * b[0] + b[1]

        return scan(combine, (x, y), dim=1, combine_mode="pointwise" if device != "cpu" else "generic")

    return f, (floats(4, 64, device=device).sigmoid(), floats(4, 64, device=device, seed=2))


@case()
def sorts(device: str) -> Made:
    def f(x: torch.Tensor, k: torch.Tensor) -> Any:
        values, positions = x.sort(dim=-1, stable=True)
        return values, positions, k.argsort(dim=-1, stable=True, descending=True), x.topk(5, -1).values, k.msort()

    return f, (floats(9, 60, device=device), integers(9, 60, low=0, high=20, device=device))


@case()
def gathers(device: str) -> Made:
    def f(x: torch.Tensor, positions: torch.Tensor) -> Any:
        return (
            x[positions],
            x.gather(0, positions[:, None] % 5),
            torch.take(x, positions),
            x.index_select(1, positions % 7),
            x[positions, positions % 7],
        )

    return f, (floats(50, 7, device=device, grad=True), integers(33, low=0, high=50, device=device))


@case()
def scatters(device: str) -> Made:
    def f(x: torch.Tensor, positions: torch.Tensor, y: torch.Tensor) -> Any:
        added = x.index_add(0, positions, y)
        put = x.clone().index_put_((positions,), y, accumulate=True)
        return (
            added,
            put,
            x.scatter_add(0, positions[:, None].expand(-1, 7), y),
            x.scatter_reduce(0, positions[:, None].expand(-1, 7), y, "amax"),
        )

    given = (
        floats(20, 7, device=device),
        integers(60, low=0, high=20, device=device),
        floats(60, 7, device=device, seed=2),
    )
    return f, given


@case()
def embeddings(device: str) -> Made:
    layer = nn.Embedding(40, 24, padding_idx=3).to(device)

    def f(positions: torch.Tensor, scale: torch.Tensor) -> Any:
        return (layer(positions) * scale).sum(1), F.one_hot(positions, 40).float().mean(0)

    return f, (integers(8, 11, low=0, high=40, device=device), floats(24, device=device, grad=True))


@case()
def histograms_and_searches(device: str) -> Made:
    def f(x: torch.Tensor, edges: torch.Tensor) -> Any:
        return (
            torch.bucketize(x, edges),
            torch.searchsorted(edges, x),
            torch.zeros(9, device=x.device).index_add(0, torch.bucketize(x, edges), x),
        )

    return f, (floats(300, device=device), torch.linspace(-2, 2, 8, device=device))


# random numbers


def same_statistics(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert abs(ours.float().mean() - theirs.float().mean()) < 0.05 * max(1.0, theirs.float().std().item())
        assert 0.9 < ours.float().std() / theirs.float().std() < 1.1


@case(compare=same_statistics)
def random_numbers(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return torch.rand_like(x), torch.randn_like(x), F.dropout(x.abs() + 1, 0.25), torch.randint_like(x, 0, 10)

    return f, (floats(100, 200, device=device),)


@case(settings={"fallback_random": True})
def the_same_random_numbers(device: str) -> Made:
    """With Inductor's switch for it, dropout draws what eager draws."""
    return lambda x: F.dropout(x.relu(), 0.5) * 2, (floats(100, device=device, grad=True),)


# shapes that change, control flow


@case(dynamic=True, more=lambda device: [(floats(n, 64, device=device, seed=n),) for n in (3, 50, 129)])
def dynamic_shapes(device: str) -> Made:
    return lambda x: (x.softmax(0), x.sum(1), x[: x.shape[0] // 2] * x.shape[0]), (floats(20, 64, device=device),)


@case()
def control_flow(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    return f, (floats(64, device=device),)


# networks


@case()
def matmuls(device: str) -> Made:
    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return (x @ y).relu(), torch.bmm(x[None], y[None]).sum(-1), torch.addmm(y[0], x, y)

    return f, (floats(48, 64, device=device, grad=True), floats(64, 32, device=device, grad=True, seed=2))


@case(tolerance=1e-4)
def convolutions(device: str) -> Made:
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 1)
    )
    net = net.to(device).eval()
    return lambda x: F.adaptive_avg_pool2d(net(x), 2).flatten(1), (floats(2, 3, 16, 16, device=device, grad=True),)


@case(tolerance=1e-4)
def resampling(device: str) -> Made:
    def f(x: torch.Tensor) -> Any:
        return (
            F.interpolate(x, scale_factor=2, mode="bilinear"),
            F.avg_pool2d(x, 3, 2, 1),
            F.pixel_shuffle(x, 2),
            F.group_norm(x, 2),
        )

    return f, (floats(2, 4, 10, 10, device=device, grad=True),)


@case(tolerance=1e-4)
def attention(device: str) -> Made:
    given = tuple(floats(2, 4, 32, 16, device=device, grad=True, seed=seed) for seed in (1, 2, 3))
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), given


@case()
def losses(device: str) -> Made:
    def f(x: torch.Tensor, labels: torch.Tensor) -> Any:
        return (
            F.cross_entropy(x, labels, label_smoothing=0.1),
            F.mse_loss(x, x.detach().roll(1)),
            F.smooth_l1_loss(x, x.detach().flip(0)),
        )

    return f, (floats(30, 50, device=device, grad=True), integers(30, low=0, high=50, device=device))


@case()
def optimiser_step(device: str) -> Made:
    """The foreach kernels of an optimiser, compiled."""

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        found = [x.cos(), 2 * y]
        moments = torch._foreach_lerp([torch.zeros_like(x), torch.zeros_like(y)], found, 0.1)
        return torch._foreach_addcdiv([x, y], moments, [g.abs() + 1 for g in found], value=-0.1)

    return f, (floats(30, 40, device=device), floats(70, device=device, seed=2))


@case()
def a_kernel_of_the_users(device: str) -> Made:
    """A Triton kernel inside of a compiled function."""
    from tests.inductor.user_kernel import add_scaled

    def f(x: torch.Tensor, y: torch.Tensor) -> Any:
        return add_scaled(x.sin(), y) * 2

    return f, (floats(1000, device=device), floats(1000, device=device, seed=2))


# checking


def leaves(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for item in value for leaf in leaves(item)]


def gradients(results: list[torch.Tensor], args: tuple[Any, ...]) -> list[torch.Tensor]:
    wanted = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    scored = [(result.double() * torch.arange(1, result.numel() + 1,
                                              device=result.device).reshape(result.shape).sin()).sum()
              for result in results if result.requires_grad]  # fmt: skip
    if not wanted or not scored:
        return []
    return [g for g in torch.autograd.grad(torch.stack(scored).sum(), wanted, allow_unused=True) if g is not None]


def check(name: str, device: str, tolerance: float = 1.0, **compile_options: Any) -> None:
    """Compile a case and compare it with eager torch; AssertionError says where they differ. `tolerance` times the
    usual one."""
    chosen = CASES[name]
    near = tolerance * chosen.tolerance
    torch._dynamo.reset()
    torch.manual_seed(0)
    f, args = chosen.make(device)
    with torch._inductor.config.patch(chosen.settings):
        compiled = torch.compile(f, dynamic=chosen.dynamic, fullgraph=True, **compile_options)
        for given in [args, *(chosen.more(device) if chosen.more else [])]:
            torch.manual_seed(0)
            expected = leaves(f(*given))
            torch.manual_seed(0)
            found = leaves(compiled(*given))
            if chosen.compare is not None:
                chosen.compare(found, expected)
                continue
            torch.testing.assert_close(found, expected, rtol=near, atol=near, equal_nan=True)
            ours, theirs = gradients(found, given), gradients(expected, given)
            torch.testing.assert_close(ours, theirs, rtol=10 * near, atol=10 * near)
