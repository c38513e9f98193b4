"""Triton's kernel library for mixtures of experts, compared with float64: routing, matmul_ogs, swiglu, topk, mxfp.

    python -m tests.device.check_triton_kernels [NAME ...]                    on the GPU, else on the CPU
    TILEWORK_DEVICE=emulator:sm_90 python -m tests.device.check_triton_kernels [NAME ...]
    python -m tests.device.check_triton_kernels --triton [NAME ...]           with Triton itself, on the GPU

The library is not on PyPI by itself (`triton_kernels` there is another project); vLLM's wheel has it:

    pip download --no-deps vllm && unzip -q vllm-*.whl 'vllm/third_party/triton_kernels/*'
    python -m tests.device.check_triton_kernels --library vllm/third_party

It runs in this process under `as_triton`. Prints a line for each case, and ends with the number of failures.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

CASES: dict[str, Callable[[], Any]] = {}
LIMITS = {torch.float32: 2e-3, torch.float16: 2e-3, torch.bfloat16: 1e-2}  # of the norm; f32 products may be tf32
DEVICE = "cpu"


def case(*settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table, once for each tuple of settings."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for values in settings or ((),):
            words = [str(value).removeprefix("torch.") for value in values]
            CASES["-".join([function.__name__, *words])] = partial(function, *values)
        return function

    return add


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(DEVICE, dtype)


def expect_close(found: torch.Tensor, wanted: torch.Tensor, limit: float) -> str:
    """Fail if the relative distance of the norms is beyond the limit; the distance in words."""
    assert found.shape == wanted.shape, f"shape {tuple(found.shape)}, expected {tuple(wanted.shape)}"
    a, b = found.double().cpu(), wanted.double().cpu()
    apart = float((a - b).norm() / (b.norm() + 1e-30))
    assert apart <= limit, f"relative distance {apart:.2g}, limit {limit:.2g}"
    return f"{apart:.1e}"


def expect_same(found: torch.Tensor, wanted: torch.Tensor) -> str:
    assert torch.equal(found.cpu(), wanted.cpu()), f"{found.cpu()}, expected {wanted.cpu()}"
    return "equal"


# ---- routing


@case((64, 32, 4), (50, 32, 2), (33, 128, 8))
def topk(rows: int, experts: int, k: int) -> str:
    from triton_kernels.topk import topk

    logits = normal(rows, experts)
    scales, chosen, bits = topk(logits, k, apply_softmax=True)
    wanted = logits.double().topk(k).indices.sort().values
    expect_same(chosen.long(), wanted)
    mask = torch.zeros(rows, experts, dtype=torch.int64)
    mask.scatter_(1, wanted.cpu(), 1)
    words = mask.reshape(rows, -1, 32) @ (2 ** torch.arange(32))
    expect_same(bits.storage.data[:rows].cpu().to(torch.int64).reshape(rows, -1) & 0xFFFFFFFF, words)
    return expect_close(scales, logits.double().gather(1, wanted).softmax(1), 1e-5)


@case((64, 32, 4), (50, 32, 2))
def topk_gradient(rows: int, experts: int, k: int) -> str:
    from triton_kernels.topk import topk

    logits, weights = normal(rows, experts).requires_grad_(), normal(rows, k, seed=1)
    (topk(logits, k, apply_softmax=True)[0] * weights).sum().backward()
    exact = logits.detach().double().requires_grad_()
    chosen = exact.topk(k).indices.sort().values
    (exact.gather(1, chosen).softmax(1) * weights.double()).sum().backward()
    return expect_close(logits.grad, exact.grad, 1e-5)


def routed(rows: int, experts: int, k: int) -> tuple[Any, Any, Any]:
    from triton_kernels.routing import routing

    return routing(normal(rows, experts, seed=2), k)


@case((64, 32, 4), (50, 8, 2))
def routing(rows: int, experts: int, k: int) -> str:
    data, gather, scatter = routed(rows, experts, k)
    chosen = normal(rows, experts, seed=2).topk(k).indices.sort().values.reshape(-1).cpu()
    expect_same(data.expt_hist.long(), torch.bincount(chosen, minlength=experts))
    order = gather.src_indx.long().cpu()
    expect_same(chosen[order], chosen.sort().values)
    expect_same(gather.dst_indx.long(), order.argsort())
    return expect_same(scatter.src_indx.long(), order.argsort())


@case((40, 8), (129, 16))
def compaction(rows: int, columns: int) -> str:
    from triton_kernels.compaction import compaction

    generator = torch.Generator().manual_seed(3)
    keys = torch.stack([torch.randperm(32, generator=generator)[:columns] for _ in range(rows)])
    bits = torch.randint(-(2**31), 2**31, (rows, 1), generator=generator)
    values, indices = compaction(
        normal(rows, columns), keys.to(DEVICE, torch.int32), (bits & 0xFFFFFFFF).to(torch.uint32).to(DEVICE)
    )
    source = normal(rows, columns).cpu()
    for row in range(rows):
        kept = [c for c in range(columns) if int(bits[row]) >> int(keys[row, c]) & 1]
        expect_same(indices[row, : len(kept)].long(), keys[row, kept])
        expect_same(values[row, : len(kept)], source[row, kept])
        assert (indices[row, len(kept) :] == -1).all(), "what is left is no sentinel"
    return "equal"


# ---- activations


def exact_swiglu(a: torch.Tensor, alpha: float, limit: float) -> torch.Tensor:
    gate, linear = a.double()[..., ::2].clamp(max=limit), a.double()[..., 1::2].clamp(-limit, limit)
    return gate / (1 + torch.exp(-alpha * gate)) * (linear + 1)


@case((64, 128, torch.float32), (50, 90, torch.bfloat16))
def swiglu(rows: int, columns: int, dtype: torch.dtype) -> str:
    from triton_kernels.swiglu import PrecisionConfig, swiglu

    a = normal(rows, columns, dtype=dtype)
    return expect_close(swiglu(a, 1.1, PrecisionConfig(limit=1.2)), exact_swiglu(a, 1.1, 1.2), LIMITS[dtype])


# ---- products


def grouped(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, routing: Any, gather: Any) -> torch.Tensor:
    """The rows of each expert times its matrix, in float64, in the order of the experts."""
    source = (gather.src_indx.long() // routing.n_expts_act).cpu()
    sizes = routing.expt_hist.tolist()
    rows = x.double().cpu()[source].split(sizes)
    parts = zip(rows, w.double().cpu(), bias.double().cpu(), strict=True)
    return torch.cat([part @ matrix + added for part, matrix, added in parts])


VARIANTS = {"plain": {}, "split": {"split_k": 3}, "persistent": {"is_persistent": True}}
DTYPES = [(dtype, how) for dtype in (torch.float32, torch.float16, torch.bfloat16) for how in VARIANTS]


def choose(how: str) -> None:
    """Have the library use a variant of its kernels; without a GPU it knows no sizes of tiles."""
    from triton_kernels.matmul_ogs_details import opt_flags

    opt_flags.reset_opt_flags_constraints()
    if DEVICE == "cuda":
        opt_flags.update_opt_flags_constraints(VARIANTS[how])
        return
    chosen: dict[str, Any] = {
        "block_m": 32, "block_n": 32, "block_k": 32, "num_warps": 4, "num_stages": 2, "group_m": 4, "xcd_swizzle": 1,
        "w_cache_modifier": "", "split_k": 1, "is_persistent": False, "fused_scatter": False, "idle_sms": 0,
        "epilogue_subtile": 1, "arch": None, "target_kernel_kwargs": {},
    }  # fmt: skip
    opt_flags._opt_flags = None  # or it refuses others
    opt_flags.set_opt_flags(opt_flags.OptFlags(**chosen | VARIANTS[how]))


@case(*DTYPES)
def matmul_dense(dtype: torch.dtype, how: str) -> str:
    choose(how)
    from triton_kernels.matmul_ogs import matmul_ogs

    x, w, bias = normal(70, 96, dtype=dtype), normal(96, 80, dtype=dtype, seed=1), normal(80, seed=2)
    return expect_close(matmul_ogs(x, w, bias), x.double() @ w.double() + bias.double(), LIMITS[dtype])


@case(*(row for row in DTYPES if row[1] != "split"))  # which the library has not
def matmul_batched(dtype: torch.dtype, how: str) -> str:
    choose(how)
    from triton_kernels.matmul_ogs import matmul_ogs

    x, w, bias = normal(3, 40, 64, dtype=dtype), normal(3, 64, 48, dtype=dtype, seed=1), normal(3, 48, seed=2)
    return expect_close(matmul_ogs(x, w, bias), x.double() @ w.double() + bias.double()[:, None], LIMITS[dtype])


@case(*DTYPES)
def matmul_ragged(dtype: torch.dtype, how: str) -> str:
    choose(how)
    from triton_kernels.matmul_ogs import matmul_ogs

    data, gather, _ = routed(50, 8, 2)
    x, w, bias = normal(50, 96, dtype=dtype), normal(8, 96, 64, dtype=dtype, seed=1), normal(8, 64, seed=2)
    return expect_close(matmul_ogs(x, w, bias, data, gather), grouped(x, w, bias, data, gather), LIMITS[dtype])


@case(*DTYPES)
def matmul_scattered(dtype: torch.dtype, how: str) -> str:
    """The outputs of a token's experts are weighted and added."""
    choose(how)
    from triton_kernels.matmul_ogs import matmul_ogs

    data, gather, scatter = routed(50, 8, 2)
    x, w, bias = normal(50, 96, dtype=dtype), normal(8, 96, 64, dtype=dtype, seed=1), normal(8, 64, seed=2)
    found = matmul_ogs(x, w, bias, data, gather, scatter, gammas=data.gate_scal)
    weighted = grouped(x, w, bias, data, gather) * data.gate_scal.double().cpu()[:, None]
    wanted = torch.zeros(50, 64, dtype=torch.float64)
    wanted.index_add_(0, gather.src_indx.long().cpu() // 2, weighted)
    return expect_close(found, wanted, LIMITS[dtype])


@case(*DTYPES)
def matmul_swiglu(dtype: torch.dtype, how: str) -> str:
    """An activation that the library writes into the kernel's source."""
    choose(how)
    from triton_kernels.matmul_ogs import FnSpecs, FusedActivation, matmul_ogs
    from triton_kernels.swiglu import swiglu_fn

    data, gather, _ = routed(50, 8, 2)
    x, w, bias = normal(50, 96, dtype=dtype), normal(8, 96, 64, dtype=dtype, seed=1), normal(8, 64, seed=2)
    activation = FusedActivation(FnSpecs("swiglu", swiglu_fn, ("alpha", "limit")), (1.1, 1.2), 2)
    found = matmul_ogs(x, w, bias, data, gather, fused_activation=activation)
    return expect_close(found, exact_swiglu(grouped(x, w, bias, data, gather), 1.1, 1.2), LIMITS[dtype])


# ---- microscaling

FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def unpacked(values: torch.Tensor, scales: torch.Tensor, axis: int) -> torch.Tensor:
    """Microscaled numbers in float64; bytes hold two e2m1 numbers, the lower one first."""
    raw = values.cpu().movedim(axis, -1)
    if values.dtype == torch.uint8:
        raw = FP4[torch.stack([raw & 15, raw >> 4], -1).flatten(-2).long()]
    factors = torch.exp2(scales.cpu().movedim(axis, -1).double() - 127)
    return (raw.double().unflatten(-1, (-1, 32)) * factors[..., None]).flatten(-2).movedim(-1, axis)


MX = [(kind, axis) for kind in (torch.float8_e4m3fn, torch.float8_e5m2, torch.uint8) for axis in (0, 1)]
STEPS = {torch.float8_e4m3fn: 2**-4, torch.float8_e5m2: 2**-3, torch.uint8: 2**-2}  # half a unit in the last place


@case(*MX)
def mxfp_down(kind: torch.dtype, axis: int) -> str:
    from triton_kernels.numerics_details.mxfp import downcast_to_mxfp

    x = normal(64, 96, dtype=torch.bfloat16)
    values, scales = downcast_to_mxfp(x, kind, axis)
    return expect_close(unpacked(values, scales, axis), x, STEPS[kind])


@case(*MX)
def mxfp_up(kind: torch.dtype, axis: int) -> str:
    from triton_kernels.numerics_details.mxfp import downcast_to_mxfp, upcast_from_mxfp

    values, scales = downcast_to_mxfp(normal(64, 96, dtype=torch.bfloat16), kind, axis)
    return expect_same(upcast_from_mxfp(values, scales, torch.bfloat16, axis).double(), unpacked(values, scales, axis))


@case(*((kind, how) for kind in STEPS for how in VARIANTS if how != "persistent"))  # which needs Blackwell
def matmul_mxfp(kind: torch.dtype, how: str) -> str:
    """Weights with scales, as those of gpt-oss."""
    choose(how)
    from triton_kernels.matmul_ogs import PrecisionConfig, matmul_ogs
    from triton_kernels.numerics_details.mxfp import downcast_to_mxfp
    from triton_kernels.tensor import FP4, wrap_torch_tensor

    data, gather, _ = routed(50, 8, 2)
    x, bias = normal(50, 128, dtype=torch.bfloat16), normal(8, 64, seed=2)
    values, scales = downcast_to_mxfp(normal(8, 128, 64, dtype=torch.bfloat16, seed=1), kind, 1)
    exact = unpacked(values, scales, 1)
    weights = wrap_torch_tensor(values, dtype=FP4 if kind == torch.uint8 else None)
    config = PrecisionConfig(weight_scale=wrap_torch_tensor(scales))
    found = matmul_ogs(x, weights, bias, data, gather, precision_config=config)
    return expect_close(found, grouped(x, exact, bias, data, gather), LIMITS[torch.bfloat16])


def stand_in() -> None:
    """Provide what the library expects of torch with a GPU: multiprocessors, and memory in aligned units of 512 bytes.

    One of its kernels writes beyond a view, up to the end of its storage; the emulator allows that where it is
    registered.
    """
    from tilework.oracles.interpreter import register_memory

    empty, kept = torch.empty, []

    def rounded(*sizes: Any, size: Any = (), dtype: torch.dtype | None = None, **settings: Any) -> torch.Tensor:
        made = empty(*(sizes or (size,)), dtype=dtype, device="meta")
        units = -(-max(made.nbytes, 1) // 512)
        whole = empty((units + 1) * 512, dtype=torch.uint8, **settings)
        whole = whole[-whole.data_ptr() % 512 :][: units * 512]
        kept.append(register_memory(whole))
        return whole.view(made.dtype).as_strided(made.shape, made.stride())

    torch.empty = rounded
    torch.cuda.get_device_properties = lambda *_: SimpleNamespace(multi_processor_count=4, name="", major=9, minor=0)


def main() -> int:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases, or the beginnings of their names")
    parser.add_argument("--library", help="the folder that has triton_kernels")
    parser.add_argument("--triton", action="store_true", help="run it with Triton instead of tilework")
    parser.add_argument("--errors", action="store_true", help="show tracebacks")
    args = parser.parse_args()
    if args.library:
        sys.path.insert(0, args.library)
    if not args.triton:
        import tilework

        tilework.as_triton()
    DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
    if DEVICE == "cpu":
        stand_in()
    failures = 0
    for name, run in CASES.items():
        if args.names and not name.startswith(tuple(args.names)):
            continue
        start = time.perf_counter()
        try:
            said, word = run(), "PASS"
        except Exception as error:
            failures += 1
            said, word = f"{type(error).__name__}: {str(error).strip()[:600]}", "FAIL"
            if args.errors:
                traceback.print_exc()
        print(f"{word}  {name:<40} {time.perf_counter() - start:6.1f} s  {said}", flush=True)
    print(f"{failures} failures on {DEVICE}, {'Triton' if args.triton else 'tilework'}")
    return min(failures, 1)


if __name__ == "__main__":
    raise SystemExit(main())
