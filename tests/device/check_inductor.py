"""`torch.compile` on a real GPU with tilework as its Triton: the models of tests/inductor, templates, CUDA graphs,
workers.

    python -m tests.device.check_inductor [WORD ...]        groups whose name contains a word; all without

Each group is a process of its own under `tilework.as_triton`, all at the same time, so that one which dies or hangs
takes nothing else with it. One line per check: the group, the check, its seconds, ok or what went wrong. The exit code
is the number of checks that are wrong or missing, 99 at most.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

LIMIT = 220  # seconds for a group; all run at the same time
WORKERS = "4"  # compile workers of each
TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "autotune_fallback_to_aten": False,
}


def model_groups() -> dict[str, list[str]]:
    """The models of tests/inductor in four parts, by name; importing them needs torch."""
    from tests.inductor.models import CASES

    names = list(CASES)
    return {f"models {part + 1}": names[part::4] for part in range(4)}


def models(names: list[str]) -> dict[str, Callable[[], object]]:
    from tests.inductor.models import check

    return {name: lambda name=name: check(name, "cuda", tolerance=5) for name in names}


def trains() -> dict[str, Callable[[], object]]:
    from tests.inductor.training import check

    return {
        "forward, backward, step": lambda: check("cuda", compile_step=False),
        "with a compiled step": lambda: check("cuda", compile_step=True),
        "in CUDA graphs": lambda: check("cuda", compile_step=False, mode="reduce-overhead"),
    }


def same(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    tolerance: float,
    needs: str = "",
    calls: int = 1,
    **options: Any,
) -> None:
    """Compare with eager; the program that Inductor writes must contain `needs`."""
    import torch
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, **options)
    for call in range(calls):
        fresh = tuple(arg.detach().clone().requires_grad_(arg.requires_grad) for arg in args)
        if call:
            found = compiled(*args)
        else:
            found, codes = run_and_get_code(compiled, *args)
            assert not needs or any(needs in code for code in codes), f"Inductor did not choose {needs}"
        expected = function(*fresh)
        torch.testing.assert_close(found.clone(), expected, rtol=tolerance, atol=tolerance)
        if found.requires_grad:
            wanted = [arg for arg in args if arg.requires_grad]
            ours = torch.autograd.grad(found.sum(), wanted)
            theirs = torch.autograd.grad(expected.sum(), [arg for arg in fresh if arg.requires_grad])
            torch.testing.assert_close(ours, theirs, rtol=4 * tolerance, atol=4 * tolerance)


def templates() -> dict[str, Callable[[], object]]:
    """The kernels that max-autotune writes from templates: only Triton's may be chosen."""
    import torch
    from torch.nn import functional as F

    from tests.inductor.models import floats

    def half(*shape: int, seed: int = 1) -> torch.Tensor:
        return floats(*shape, device="cuda", dtype=torch.float16, seed=seed) / 4

    def checked(function: Callable[..., Any], *args: torch.Tensor, tolerance: float = 1e-2) -> Callable[[], None]:
        def check() -> None:
            with torch._inductor.config.patch(known(TEMPLATES)):
                same(function, args, tolerance, "triton_tem")

        return check

    wide = floats(256, 128, device="cuda"), floats(128, 256, device="cuda", seed=2)
    images = half(4, 32, 28, 28).to(memory_format=torch.channels_last)
    return {
        "matmul f16": checked(lambda a, b: (a @ b).relu(), half(512, 256), half(256, 512, seed=2)),
        "matmul bf16": checked(
            lambda a, b: a @ b, half(300, 200).bfloat16(), half(200, 100, seed=2).bfloat16(), tolerance=5e-2
        ),
        "addmm": checked(
            lambda a, b, c: F.gelu(torch.addmm(c, a, b)), half(256, 128), half(128, 256, seed=2), half(256, seed=3)
        ),
        "bmm": checked(torch.bmm, half(4, 128, 64), half(4, 64, 128, seed=2)),
        "convolution": checked(lambda x, w: F.conv2d(x, w, padding=1).relu(), images, half(64, 32, 3, 3, seed=2) / 4),
        "matmul f32": checked(lambda a, b: a @ b + 1, *wide, tolerance=1e-4),
    }


def flex_attention() -> dict[str, Callable[[], object]]:
    import torch
    from torch.nn.attention import flex_attention as flex

    from tests.inductor.models import floats

    def three(grad: bool) -> tuple[torch.Tensor, ...]:
        made = [floats(2, 4, 256, 64, device="cuda", dtype=torch.float16, seed=seed) for seed in (1, 2, 3)]
        return tuple(one.requires_grad_(grad) for one in made)

    def biased(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return flex.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score - (i - j).abs() * 0.1)  # pyright: ignore[reportReturnType]

    def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cuda")
        return flex.flex_attention(q, k, v, block_mask=mask)  # pyright: ignore[reportReturnType]

    return {
        "with a bias": lambda: same(biased, three(False), 2e-2, "triton_tem"),
        "causal": lambda: same(causal, three(False), 2e-2, "triton_tem"),
        "backward": lambda: same(biased, three(True), 3e-2, "triton_tem"),
    }


def cuda_graphs() -> dict[str, Callable[[], object]]:
    import torch

    from tests.inductor.models import floats

    x = floats(64, 256, device="cuda")

    def layers(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.softmax(x.sin() + x.mean(), -1)
        return x

    return {"reduce-overhead": lambda: same(layers, (x,), 1e-4, calls=4, mode="reduce-overhead")}


def workers_and_caches() -> dict[str, Callable[[], object]]:
    def script(*words: str, says: str = "", cache: str = "") -> Callable[[], None]:
        def check() -> None:
            folder = cache or tempfile.mkdtemp()
            settings = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
            settings["TORCHINDUCTOR_CACHE_DIR"] = folder
            command = [sys.executable, "-m", "tilework.as_triton", "-m", "tests.inductor.processes", *words]
            done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0 and says in done.stdout, f"{done.stdout[-200:]} {done.stderr[-600:]}"

        return check

    shared = tempfile.mkdtemp()
    file = os.path.join(shared, "artifacts")
    none = "compiled here: 0"
    return {
        **{f"workers by {how}": script("workers", how, "cuda", says=none) for how in ("subprocess", "spawn")},
        "save artifacts": script("save", file, "cuda", says="compiled here", cache=shared),
        "warm start": script("warm", file, "cuda", says=none, cache=shared),
        "artifacts on an empty machine": script("load", file, "cuda", says=none),
    }


def known(settings: dict[str, Any]) -> dict[str, Any]:
    """Those that this version of Inductor has."""
    from torch._inductor import config

    return {name: value for name, value in settings.items() if hasattr(config, name)}


GROUPS: dict[str, Callable[[], dict[str, Callable[[], object]]]] = {
    "training": trains,
    "templates": templates,
    "flex attention": flex_attention,
    "CUDA graphs": cuda_graphs,
    "workers": workers_and_caches,
}


def run_group(group: str) -> int:
    """In the process of a group: all of its checks."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    wrong = 0
    checks = models(model_groups()[group]) if group.startswith("models") else GROUPS[group]()
    for name, check in checks.items():
        start = time.perf_counter()
        try:
            check()
            said = "ok"
        except Exception as error:
            wrong += 1
            said = f"WRONG {type(error).__name__}: {' '.join(str(error).split())[:400]}"
        print(f"{group:15} {name:32} {time.perf_counter() - start:6.1f} s  {said}", flush=True)
    return wrong


def start_group(group: str) -> str:
    """Run a group in a process; what it printed, and what became of it."""
    command = [sys.executable, "-m", "tilework.as_triton", "-m", "tests.device.check_inductor", "--group", group]
    try:
        settings = {"TORCHINDUCTOR_COMPILE_THREADS": WORKERS, **os.environ}
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout.decode() if isinstance(expired.stdout, bytes) else expired.stdout or ""
        return f"{printed}{group:15} WRONG: not done after {LIMIT} s\n"
    known_end = any(line.startswith(group) for line in done.stdout.splitlines()) and 0 <= done.returncode < 100
    tail = " ".join(done.stderr.split())[-400:]
    return done.stdout + ("" if known_end else f"{group:15} WRONG: ended with {done.returncode}: {tail}\n")


def main(words: list[str]) -> int:
    names = [*GROUPS, *(f"models {part}" for part in range(1, 5))]
    chosen = [name for name in names if not words or any(word in name for word in words)]
    start = time.perf_counter()
    wrong = right = 0
    with ThreadPoolExecutor(len(names)) as pool:
        for printed in pool.map(start_group, chosen):
            print(printed, end="", flush=True)
            wrong += printed.count("WRONG")
            right += printed.count("  ok\n")
    print(f"{right} right, {wrong} wrong, {time.perf_counter() - start:.0f} s")
    return min(wrong, 99)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--group"]:
        sys.exit(min(run_group(sys.argv[2]), 99))
    sys.exit(main(sys.argv[1:]))
