"""FlagGems (written for 5.0.2): its operators with tilework and (on a GPU) with Triton, compared with torch's own.

    python -m tests.device.check_gems [NAME ...] [--jobs 8] [--seconds 140]      on a GPU, both compilers
    python -m tests.device.check_gems [NAME ...] --device cpu                    on the CPU, tilework only

Inputs are the samples of torch's own operator database (`OpInfo`: odd shapes, empty and non-contiguous tensors, special values), forward
and backward, and those of `gems_cases.py` for operators that torch does not have. Every operator of aten that torch reaches and that
FlagGems implements is run both ways on copies of the same memory, arguments that change included; what torch computes goes on. Random
operators are compared between compilers only. One configuration of each tuned kernel is used (`--configs` more).
Processes have a few operators each; one that dies or hangs is one row, and another goes on with the rest. Needs torch and flag_gems
(with sqlalchemy, pyyaml, packaging); torch's database asks for expecttest.
"""

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

KINDS = ("float32", "bfloat16", "int32", "float16", "int64", "bool", "uint8", "int16")
LIMITS = {"float64": 1e-6, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
RANDOM = ("rand", "uniform", "normal", "exponential", "bernoulli", "dropout", "multinomial")
SECONDS_OF_A_CALL = 60
NAMES = """
nn.functional.group_norm remainder cos constant_pad_nd zero_ full_like kron slice randn corrcoef cummax aminmax sin
randn_like signbit allclose nn.functional.softshrink maximum round cosh t_copy nn.functional.interpolate cumsum hstack
logical_and linspace zeros slice_scatter nn.functional.binary_cross_entropy_with_logits amax nn.functional.hardsigmoid tril
argmin floor_divide ldexp nonzero clamp atan minimum ones native_group_norm isinf combinations logical_xor
nn.functional.conv3d alias_copy special.i0e argmax nn.functional.conv1d logical_or resolve_conj multinomial logaddexp
log_softmax angle arange eye square nn.functional.prelu bmm sum select prod addr add clamp_min nn.functional.rrelu bernoulli
nn.functional.margin_ranking_loss trace acos mean cumprod native_batch_norm sub masked_fill mm triu polar
nn.functional.pixel_unshuffle erf neg nn.functional.linear_cross_entropy tile nn.functional.scaled_dot_product_attention
diagonal fmin nn.functional.rms_norm exp2 sqrt index_put gt vstack repeat_interleave nn.functional.glu dot take_along_dim
nn.functional.nll_loss nn.functional.selu mvlgamma log zeros_like stack diag_embed isclose nn.functional.normalize vdot equal
unique index_add where i0 ones_like masked_select _softmax_backward_data cat gather nn.functional.batch_norm atan2 lerp eq
quantile normal isneginf nn.functional.softplus logical_not count_nonzero all uniform rsqrt nn.functional.dropout logspace
nn.functional.relu6 cummin bitwise_or nn.functional.gelu resolve_neg baddbmm lt logit diag pow min full nn.functional.conv2d
addmv max_pool2d_with_indices_backward nn.functional.soft_margin_loss nn.functional.embedding index_select isnan div
nn.functional.gaussian_nll_loss select_scatter nn.functional.fractional_max_pool2d log10 var_mean isin digamma bitwise_and
nn.functional.pad mul softmax isfinite nn.functional.avg_pool2d roll repeat logcumsumexp flip nn.functional.one_hot var
native_dropout_backward exponential nn.functional.layer_norm std mv expm1 scatter true_divide abs nn.functional.mse_loss
unfold addcmul addcdiv topk le bitwise_not nn.functional.silu fill sort hypot native_layer_norm sigmoid __rand__
nn.functional.threshold nan_to_num max addmm nn.functional.cosine_embedding_loss bincount exp masked_scatter reciprocal
nn.functional.celu ne tan nn.functional.elu ceil ge any tanh unique_consecutive nn.functional.relu conj_physical
"""


def present_cpu() -> None:
    """Let FlagGems see the CPU as the device of its first vendor, whose folder of settings it then reads."""
    import torch

    folder = Path(importlib.util.find_spec("flag_gems").origin).parent / "runtime" / "backend"  # type: ignore
    sys.path.append(str(folder))
    import backend_utils  # type: ignore

    vendor = ModuleType("_nvidia")
    vendor.__path__ = [str(folder / "_nvidia")]
    vendor.vendor_info = backend_utils.VendorInfoBase("nvidia", "cpu", "true", "CPU", "cpu")
    vendor.CUSTOMIZED_UNUSED_OPS = ()
    sys.modules["_nvidia"] = vendor
    os.environ["GEMS_VENDOR"] = "nvidia"
    properties = argparse.Namespace(
        multi_processor_count=2, major=0, minor=0, max_threads_per_multi_processor=1, L2_cache_size=1 << 20
    )
    torch.cpu.device = lambda _: contextlib.nullcontext()
    torch.cpu.current_device = lambda: 0  # type: ignore
    torch.cpu.get_device_properties = lambda *_: properties
    torch.cpu.get_device_capability = lambda *_: (0, 0)
    torch.cpu.get_device_name = lambda *_: "cpu"
    torch.cpu.default_generators = [Philox()]


class Philox:
    """A generator whose state is what CUDA's is: a seed and an offset."""

    def __init__(self) -> None:
        self.set_state(None)

    def get_state(self) -> Any:
        return self.state.clone()

    def set_state(self, state: Any) -> None:
        import torch

        self.state = torch.tensor([7, 0]).view(torch.uint8) if state is None else state.clone()


def limit_tuning(count: int) -> None:
    """Of every tuned kernel the first `count` configurations are tried; one alone is not even timed."""
    from triton.runtime.autotuner import Autotuner

    prune = Autotuner.prune_configs
    Autotuner.prune_configs = lambda self, *a, **k: list(prune(self, *a, **k))[:count]
    if count == 1:
        Autotuner._bench = lambda self, *a, **k: [1.0, 1.0, 1.0]


def leaves_of(tree: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return tree_leaves(tree)


def tensors_of(tree: Any) -> list[Any]:
    import torch

    return [leaf for leaf in leaves_of(tree) if isinstance(leaf, torch.Tensor)]


def twin(tree: Any) -> Any:
    """The same values in memory of their own, with the same strides, offsets and aliases."""
    import torch
    from torch.utils._pytree import tree_map

    memory: dict[int, Any] = {}

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        storage = leaf.untyped_storage()
        if storage.data_ptr() not in memory:
            memory[storage.data_ptr()] = storage.clone()
        copy = torch.empty(0, dtype=leaf.dtype, device=leaf.device)
        return copy.set_(memory[storage.data_ptr()], leaf.storage_offset(), leaf.size(), leaf.stride())

    return tree_map(one, tree)


def distance(found: list[Any], wanted: list[Any]) -> float:
    """How far results are apart, in units of what rounding excuses; infinite where shape, type or a NaN is another."""
    import torch

    worst = 0.0
    if len(found) != len(wanted):
        return float("inf")
    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return float("inf")
        if one.numel() == 0 or one.dtype.is_complex:
            continue
        a, b = one.detach().double(), other.detach().double()
        same = (a == b) | (a.isnan() & b.isnan())
        if bool(same.all()):
            continue
        if not one.is_floating_point():
            return float("inf")
        apart = torch.where(same, 0.0, (a - b).abs())
        size = b.abs().nan_to_num(0, 0, 0)
        excused = LIMITS.get(str(one.dtype)[6:], 0.3) * (size + 0.1 * size.mean() + 1e-3)
        worst = max(worst, float((apart / excused).nan_to_num(float("inf"), float("inf")).max()))
    return worst


def digest(results: list[Any]) -> str:
    import torch

    text = hashlib.sha1()
    for each in results:
        text.update(
            each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if each.numel() else b""
        )
    return text.hexdigest()[:12]


class Compared:
    """Runs FlagGems' function beside torch's operator, and writes down what was found."""

    def __init__(self, path: str, device: str, cases: int) -> None:
        import torch
        from flag_gems import FULL_CONFIG_BY_FUNC  # type: ignore

        self.output = Path(path).open("a", buffering=1)  # noqa: SIM115
        self.functions = {item[0]: item[1] for items in FULL_CONFIG_BY_FUNC.values() for item in items}
        self.experimental = experimental_functions()
        self.seen: Counter[Any] = Counter()
        self.label, self.device, self.cases = "", device, cases
        self.library = torch.library.Library("aten", "IMPL")
        self.composite = {key for key in self.functions if is_composite(key, device)}
        for key in self.composite:  # with a kernel of its own torch does not take it apart before the mode sees it
            self.library.impl(key, self.functions[key], device.upper())

    def write(self, **row: Any) -> None:
        print(json.dumps(row), file=self.output)

    def is_new(self, key: str, kind: str, case: str) -> bool:
        """Whether to run this: nothing twice, and few calls of what another operator is for."""
        own = plain_name(key) in (plain_name(self.label), plain_name(self.label.split(".")[-1]))
        self.seen[case] += 1
        self.seen[key, kind] += not own
        return self.seen[case] == 1 and (own or self.seen[key, kind] <= self.cases)

    def compare_operator(self, key: str, native: Any, args: Any, kwargs: Any) -> Any:
        """An operator of torch, with every function that FlagGems has for it."""
        if key in self.experimental:
            self.compare(f"experimental.{key}", native, self.experimental[key], *twin((args, kwargs)))
        if key in self.functions:
            return self.compare(key, native, self.functions[key], args, kwargs)
        return native(*args, **kwargs)

    def compare(self, key: str, native: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """One call both ways; gives torch's results."""
        import torch

        before = tensors_of((args, kwargs))
        described = [(tuple(t.shape), t.stride(), str(t.dtype)[6:]) for t in before]
        case = f"{key} {described} {[leaf for leaf in leaves_of((args, kwargs)) if not isinstance(leaf, torch.Tensor)]}"
        mine_args, mine_kwargs = twin((args, kwargs))
        wanted = native(*args, **kwargs) if native is not None else None
        kind = next((str(t.dtype)[6:] for t in (*before, *tensors_of(wanted))), "none")
        if not tensors_of((args, kwargs, wanted)) or not self.is_new(key, kind, case):
            return wanted
        row = {"op": self.label, "key": key, "kind": kind, "case": case[:500]}
        self.write(begin=True, **row)
        start, lost = time.perf_counter(), False
        torch.manual_seed(7)
        signal.alarm(SECONDS_OF_A_CALL)
        try:
            with present_as_cuda(self.device):
                found = function(*mine_args, **mine_kwargs)
                if self.device == "cuda":
                    torch.cuda.synchronize()
            signal.alarm(0)
            row["seconds"] = time.perf_counter() - start
            row["digest"] = digest(tensors_of((found, mine_args, mine_kwargs)))
            all_found = tensors_of((found, mine_args, mine_kwargs))
            row["apart"] = distance(all_found, tensors_of((wanted, args, kwargs)))
            row["random"] = native is None or any(word in key for word in RANDOM)
            if row["random"] or row["apart"] > 1:
                row["values"] = [some_values(t) for t in all_found]
        except Exception as error:
            signal.alarm(0)
            row["seconds"] = time.perf_counter() - start
            lost = "CUDA error" in str(error)
            row["error"] = f"{type(error).__name__}: {' | '.join(str(error).strip().splitlines()[-3:])}"[:300]
            if os.environ.get("CHECK_GEMS_RAISE"):
                traceback.print_exc()
        self.write(**row)
        if lost:
            os._exit(3)  # with its CUDA context
        return wanted


def experimental_functions() -> dict[str, Any]:
    """FlagGems' further operators: modules whose function has the name of the operator."""
    import flag_gems.experimental_ops as package  # type: ignore

    names = [path.stem for path in Path(package.__file__).parent.glob("*.py") if not path.stem.startswith("__")]
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    return {
        key: vars(module)[name]
        for name, module in modules.items()
        if name in vars(module)
        for key in (name, f"{name}.Tensor")
    }


def some_values(tensor: Any) -> list[float]:
    """Up to 64 of its elements, all over it."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // 64)].double().cpu().tolist() if not tensor.dtype.is_complex else []


def are_close(some: Any, others: Any) -> bool:
    """Values of two compilers that differ by rounding; for those that cannot be compared with torch."""
    if len(some) != len(others) or any(len(a) != len(b) for a, b in zip(some, others, strict=True)):
        return False
    pairs = [(a, b) for row, other in zip(some, others, strict=True) for a, b in zip(row, other, strict=True)]
    size = sum(abs(b) for _, b in pairs if math.isfinite(b)) / max(1, len(pairs))
    return all(a == b or (a != a and b != b) or abs(a - b) <= 0.02 * (abs(b) + size) for a, b in pairs)


def is_composite(key: str, device: str) -> bool:
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    with contextlib.suppress(RuntimeError):
        return has(f"aten::{key}", "CompositeImplicitAutograd") and not has(f"aten::{key}", device.upper())
    return False


def plain_name(key: str) -> str:
    return key.split(".")[0].strip("_").replace("native_", "").replace("_backward", "")


@contextlib.contextmanager
def present_as_cuda(device: str) -> Any:
    import torch

    if device == "cpu":
        torch.Tensor.is_cuda = property(lambda self: True)  # type: ignore
    try:
        yield
    finally:
        if device == "cpu":
            del torch.Tensor.is_cuda


def calls_of(info: Any, device: str, kind: str, samples: int) -> Iterator[Any]:
    """Calls of one operator of torch's database, of its aliases, in place, and of its gradient."""
    import torch
    from torch.utils._pytree import tree_map

    dtype = getattr(torch, kind)
    if dtype not in info.supported_dtypes(device):
        return
    torch.manual_seed(3)
    drawn = list(info.reference_inputs(device, dtype, requires_grad=info.supports_autograd and dtype.is_floating_point))
    others = [info.inplace_variant, *(each for alias in info.aliases for each in (alias.op, alias.inplace_variant))]

    def forward_and_backward(sample: Any) -> None:
        result = info(sample.input, *sample.args, **sample.kwargs)
        if outs := [t for t in tensors_of(result) if t.requires_grad]:
            torch.autograd.backward(outs, [t.detach() for t in outs])

    def cut(leaf: Any) -> Any:
        return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf

    for sample in drawn[:: max(1, len(drawn) // samples)]:
        yield partial(forward_and_backward, sample)
    for other in filter(None, others):
        for sample in drawn[:: max(1, len(drawn) // 2)]:
            yield partial(other, *tree_map(cut, (sample.input, *sample.args)), **tree_map(cut, sample.kwargs))


def run_operators(names: list[str], options: Any) -> None:
    """Several operators in this process; each call's findings are on disk before the next begins."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    device = options.device
    if device == "cpu":
        present_cpu()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    import flag_gems  # noqa: F401  # type: ignore
    from torch.testing._internal.common_methods_invocations import op_db

    limit_tuning(options.configs)
    compared = Compared(options.run, device, options.samples)

    def stop(*_: Any) -> None:
        raise TimeoutError(f"longer than {SECONDS_OF_A_CALL} s")

    signal.signal(signal.SIGALRM, stop)

    class Beside(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            key = func._schema.name.removeprefix("aten::") + (
                "" if func._overloadname == "default" else f".{func._overloadname}"
            )
            native = func.decompose if key in compared.composite else func
            known = key in compared.functions or key in compared.experimental
            if not known or any(t.device.type != device for t in tensors_of((args, kwargs)) if t.dim()):
                return native(*args, **(kwargs or {}))
            return compared.compare_operator(key, native, args, kwargs or {})

    for name in names:
        compared.label = name
        compared.write(begin=True, op=name)
        start = time.monotonic()
        if name == "cases":
            run_cases(compared, Beside(), options)
        for info, kind in ((info, kind) for kind in options.kinds for info in op_db if info.name == name):
            try:
                for call in calls_of(info, device, kind, options.samples):
                    if time.monotonic() - start < options.each:
                        with contextlib.suppress(Exception), Beside():
                            call()
            except Exception as error:
                compared.write(op=name, key="", kind=kind, case="", sampling=repr(error)[:200])
        compared.write(end=True, op=name)


def run_cases(compared: Compared, beside: Any, options: Any) -> None:
    """The calls of `gems_cases.py`."""
    import flag_gems  # type: ignore
    import torch

    from tests.device import gems_cases

    part, parts = map(int, options.part.split("/"))
    for kind in options.kinds:
        torch.manual_seed(3)
        with contextlib.suppress(StopIteration):
            for number, call in enumerate(gems_cases.operator_calls(options.device, getattr(torch, kind))):
                if number % parts == part:
                    with contextlib.suppress(Exception), beside:
                        call()
        if getattr(torch, kind).is_floating_point:
            torch.manual_seed(3)
            for number, (function, args, reference) in enumerate(
                gems_cases.fused_cases(flag_gems, options.device, getattr(torch, kind))
            ):
                if number % parts == part:
                    with contextlib.suppress(Exception):
                        compared.compare(function.__name__, reference, function, args, {})


def run_side(side: str, names: list[str], path: Path, options: Any, until: float) -> None:
    """Run `names` with one compiler, in as many processes as it takes."""
    how = ["-m", "tilework.as_triton"] if side == "tilework" else []
    left = list(names)
    while left and (time_left := until - time.monotonic()) > 5:
        command = [
            sys.executable,
            *how,
            "-m",
            "tests.device.check_gems",
            *left,
            "--run",
            str(path),
            "--device",
            options.device,
        ]
        command += ["--configs", str(options.configs), "--samples", str(options.samples), "--each", str(options.each)]
        command += ["--kinds", *options.kinds, "--part", f"{path.stem.split('-')[1]}/{options.jobs}"]
        folder = path.parent
        caches = {"TRITON_CACHE_DIR": f"{folder}/cache-{side}", "FLAGGEMS_CACHE_DIR": f"{folder}/gems-{path.stem}"}
        with path.with_suffix(".log").open("a") as log:
            try:
                code = subprocess.run(
                    command, stdout=log, stderr=log, timeout=time_left, env={**os.environ, **caches}
                ).returncode
            except subprocess.TimeoutExpired:
                return
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        ended = {row["op"] for row in rows if "end" in row}
        begun = [row["op"] for row in rows if "begin" in row and row["op"] not in ended]
        if code and begun:
            last = next(row for row in reversed(rows) if "begin" in row)
            if "key" in last and rows[-1] is last:
                with path.open("a") as output:
                    print(json.dumps({**last, "begin": None, "error": f"the process ended with {code}"}), file=output)
        elif code:
            print(f"{side}: no operator could be run, see {path.with_suffix('.log')}")
            return
        left = [name for name in left if name not in ended and name not in begun]


def rows_of(paths: list[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """What was found, by operator and case."""
    rows = [json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines()]
    return {(row["key"], row["case"]): row for row in rows if row.get("key") and not row.get("begin")}


def verdict_of(row: dict[str, Any]) -> str:
    if "error" in row:
        return "refused"
    return "random" if row["random"] else "right" if row["apart"] <= 1 else "wrong"


def report(folder: Path, sides: list[str]) -> None:
    found = {side: rows_of(sorted(folder.glob(f"{side}-*.jsonl"))) for side in sides}
    ours, theirs = found[sides[-1]], found[sides[0]]
    counts: Counter[str] = Counter()
    operators: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, row in ours.items():
        verdict, other = verdict_of(row), theirs.get(place)
        if len(sides) == 1:
            word = verdict
        elif other is None:
            word = f"{verdict}, not run with Triton"
        else:
            theirs_is = verdict_of(other)
            same = row.get("digest") == other.get("digest")
            word = f"{verdict} in both" if verdict == theirs_is else f"{verdict}, {theirs_is} with Triton"
            if verdict == theirs_is and verdict in ("wrong", "random"):
                close = are_close(row["values"], other["values"])
                word += ", the same bits" if same else ", close to Triton's" if close else ", APART"
            seconds[row["key"]][0] += row.get("seconds", 0)
            seconds[row["key"]][1] += other.get("seconds", 0)
        counts[word] += 1
        operators[word].add(row["key"])
        if verdict in ("wrong", "refused") or word.endswith("APART"):
            print(f"{word}: {row['kind']} {row['case'][:230]}: {row.get('error', row.get('apart'))}")
    for word, count in sorted(counts.items()):
        print(f"{count:6} cases of {len(operators[word]):4} operators: {word}")
    print(
        f"{len({key for key, _ in ours})} operators, {sum(row.get('seconds', 0) for row in ours.values()):.0f} s of calls"
    )
    slow = sorted(seconds.items(), key=lambda item: item[1][1] - item[1][0])
    print("seconds of calls with tilework and Triton:", *(f"{key} {a:.1f}/{b:.1f}" for key, (a, b) in slow[:25]))
    print(f"in all {sum(a for a, _ in seconds.values()):.0f}/{sum(b for _, b in seconds.values()):.0f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--each", type=float, default=60, help="seconds of one operator")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--configs", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--keep", help="folder for what was found")
    parser.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("flag_gems") is None or importlib.util.find_spec("torch") is None:
        print("skipped: flag_gems or torch is not installed")
        return
    if options.run:
        run_operators(options.names, options)
        return
    until = time.monotonic() + options.seconds
    names = options.names or NAMES.split()
    sides = ["triton", "tilework"] if options.device == "cuda" else ["tilework"]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(options.jobs * len(sides)) as pool:
        folder = Path(options.keep or made)
        folder.mkdir(exist_ok=True)
        for job in range(options.jobs):
            for side in sides:
                mine = [*names[job :: options.jobs], *(["cases"] if not options.names else [])]
                pool.submit(run_side, side, mine, folder / f"{side}-{job}.jsonl", options, until)
        pool.shutdown()
        report(folder, sides)


if __name__ == "__main__":
    main()
