"""A process of `check_gems.py`: operators of torch run, and FlagGems' function for each of them beside it.

A dispatch mode sees every operator of aten. Where FlagGems has a function for it, that function gets arguments with the
same values, strides and aliases in memory of its own; both results, and all arguments afterwards, are compared. What is
found is one line of JSON.
"""

import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

LIMITS = {"float64": 1e-6, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
RANDOM = ("rand", "uniform", "normal", "exponential", "bernoulli", "dropout", "multinomial")
SECONDS_OF_A_CALL = 60


def present_cpu() -> None:
    """Let FlagGems see the CPU as the device of its first vendor, whose folder of settings it then reads."""
    folder = Path(importlib.util.find_spec("flag_gems").origin).parent / "runtime" / "backend"  # type: ignore
    sys.path.append(str(folder))
    import backend_utils  # type: ignore

    vendor: Any = ModuleType("_nvidia")
    vendor.__path__ = [str(folder / "_nvidia")]
    vendor.vendor_info = backend_utils.VendorInfoBase("nvidia", "cpu", "true", "CPU", "cpu")
    vendor.CUSTOMIZED_UNUSED_OPS = ()
    sys.modules["_nvidia"] = vendor
    os.environ["GEMS_VENDOR"] = "nvidia"
    properties = argparse.Namespace(
        multi_processor_count=2, major=0, minor=0, max_threads_per_multi_processor=1, L2_cache_size=1 << 20
    )
    torch.cuda.current_device = lambda: 0  # some ask here, whatever the vendor
    torch.cuda.get_device_properties = lambda *_: properties
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
        self.state = torch.tensor([7, 0]).view(torch.uint8) if state is None else state.clone()


def limit_tuning(count: int) -> None:
    """Of every tuned kernel the first `count` configurations are tried; one alone is not even timed."""
    from triton.runtime.autotuner import Autotuner

    prune = Autotuner.prune_configs
    Autotuner.prune_configs = lambda self, *a, **k: list(prune(self, *a, **k))[:count]
    if count == 1:
        Autotuner._bench = lambda self, *a, **k: [1.0, 1.0, 1.0]


def tensors_of(tree: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def twin(tree: Any) -> Any:
    """The same values in memory of their own, with the same strides, offsets and aliases."""
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
    """Return the distance of results in units of the rounding error; infinite where shape, type or a NaN differs."""
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
    text = hashlib.sha1()
    for each in results:
        text.update(
            each.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if each.numel() else b""
        )
    return text.hexdigest()[:12]


class Compared:
    """Runs FlagGems' function beside torch's operator, and writes down what was found."""

    def __init__(self, path: str, device: str, cases: int) -> None:
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
        """Return True for a call that has not run, as long as another operator's calls are few."""
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
        before = tensors_of((args, kwargs))
        described = [(tuple(t.shape), t.stride(), str(t.dtype)[6:]) for t in before]
        case = (
            f"{key} {described} {[leaf for leaf in tree_leaves((args, kwargs)) if not isinstance(leaf, torch.Tensor)]}"
        )
        mine_args, mine_kwargs = twin((args, kwargs))
        wanted = native(*args, **kwargs) if native is not None else None
        kind = next((str(t.dtype)[6:] for t in (*before, *tensors_of(wanted))), "none")
        if not tensors_of((args, kwargs, wanted)) or not self.is_new(key, kind, case):
            return wanted
        row: dict[str, Any] = {"op": self.label, "key": key, "kind": kind, "case": case[:500]}
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

    assert package.__file__ is not None
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


def is_composite(key: str, device: str) -> bool:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    with contextlib.suppress(RuntimeError):
        return has(f"aten::{key}", "CompositeImplicitAutograd") and not has(f"aten::{key}", device.upper())
    return False


def plain_name(key: str) -> str:
    return key.split(".")[0].strip("_").replace("native_", "").replace("_backward", "")


@contextlib.contextmanager
def present_as_cuda(device: str) -> Any:
    if device == "cpu":
        torch.Tensor.is_cuda = property(lambda self: True)  # type: ignore
    try:
        yield
    finally:
        if device == "cpu":
            del torch.Tensor.is_cuda


def calls_of(info: Any, device: str, kind: str, samples: int) -> Iterator[Any]:
    """Calls of one operator of torch's database, of its aliases, in place, and of its gradient."""
    dtype = getattr(torch, kind)
    if dtype not in info.supported_dtypes(device):
        return
    torch.manual_seed(3)
    generated = list(
        info.reference_inputs(device, dtype, requires_grad=info.supports_autograd and dtype.is_floating_point)
    )
    others = [info.inplace_variant, *(each for alias in info.aliases for each in (alias.op, alias.inplace_variant))]

    def forward_and_backward(sample: Any) -> None:
        result = info(sample.input, *sample.args, **sample.kwargs)
        if outs := [t for t in tensors_of(result) if t.requires_grad]:
            torch.autograd.backward(outs, [t.detach() for t in outs])

    def cut(leaf: Any) -> Any:
        return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf

    for sample in generated[:: max(1, len(generated) // samples)]:
        yield partial(forward_and_backward, sample)
    for other in filter(None, others):
        for sample in generated[:: max(1, len(generated) // 2)]:
            yield partial(other, *tree_map(cut, (sample.input, *sample.args)), **tree_map(cut, sample.kwargs))


def run_operators(names: list[str], options: Any) -> None:
    """Several operators in this process; each call's findings are on disk before the next begins."""
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
