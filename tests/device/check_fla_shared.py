"""The shared memory of flash-linear-attention's kernels beside Triton's, without a GPU.

    python -m tests.device.check_fla_shared record FILE [--configs 3]     writes down how the library calls its kernels
    python -m tests.device.check_fla_shared compile FILE OUT [--triton]   compiles all of that for cuda:90: bytes by
                                                                          specialisation
    python -m tests.device.check_fla_shared compare OURS TRITON  lists those that need more, exit status 1 if any

The library's functions (`check_fla.py`) run on CPU tensors with launches that only note signature, constants and
options, so what they compute is nonsense and takes no time. `compile --triton` is run by a Python that has Triton, fla
and torch; the others under ours.
"""

import argparse
import contextlib
import importlib
import json
import os
import pickle
import sys
from types import SimpleNamespace
from typing import Any

H200 = {"multi_processor_count": 132, "major": 9, "minor": 0, "name": "NVIDIA H200", "total_memory": 140 << 30}
MAKERS = ("randn", "rand", "arange", "empty", "zeros", "ones", "tensor", "full")
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
Record = tuple[str, str, dict[str, str], dict[tuple[int, ...], Any], dict[tuple[int, ...], Any], dict[str, Any]]


def pretend_a_gpu() -> None:
    """Let torch say that there is an H200; tensors for it are made on the CPU."""
    import torch

    class Nothing(contextlib.nullcontext[None]):
        def __init__(self, *_: Any) -> None:
            super().__init__()

    names: Any = torch.cuda
    names.device, names.is_available, names.device_count = Nothing, lambda: True, lambda: 1
    names.current_device, names.synchronize = lambda: 0, lambda *_: None
    names.get_device_name, names.get_device_capability = lambda *_: H200["name"], lambda *_: (9, 0)
    names.get_device_properties = lambda *_: SimpleNamespace(**H200)
    for name in MAKERS:
        make = getattr(torch, name)
        setattr(torch, name, lambda *args, make=make, **options: make(*args, **{**options, "device": "cpu"}))


def record(path: str, configs: int) -> None:
    """Call every operation of `check_fla`, forward and backward, and keep what its kernels were called with."""
    from tilework.as_triton import as_triton

    os.environ["TILEWORK_DEVICE"] = "emulator"
    as_triton()
    pretend_a_gpu()
    found: dict[str, Record] = {}
    stop_launches(found, configs)
    import fla.ops
    import torch

    from tests.device.check_fla import CASES

    for name, make in CASES.items():
        torch.manual_seed(0)
        tensors, options = make()
        try:
            results = getattr(fla.ops, name)(*tensors, **options)
            results = results if isinstance(results, tuple) else (results,)
            summed = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
            torch.stack([r.float().sum() for r in summed]).sum().backward()
        except Exception as error:  # the library refuses some, after it has launched others
            print(f"{name}: {type(error).__name__}: {str(error)[:120]}")
    with open(path, "wb") as file:
        pickle.dump(list(found.values()), file)
    print(f"{len(found)} specialisations of {len({r[:2] for r in found.values()})} kernels")


def stop_launches(found: dict[str, Record], configs: int) -> None:
    """Kernels note their launch and do nothing; tuned ones do so for some of their configurations."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    def launched(self: Any, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        row = specialisation(self, args, kwargs)
        found.setdefault(repr(row), row)
        return SimpleNamespace()

    def tuned(self: Any, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        every = self.configs
        for config in every[:: max(1, len(every) // configs)][:configs]:
            self.fn.run(*args, grid=grid, **{**kwargs, **config.all_kwargs()})

    for kind, run in ((JITFunction, launched), (Autotuner, tuned)):
        kind.run = run
        kind.__getitem__ = lambda self, grid: lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)


def specialisation(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Record:
    """Signature, constants and attributes of a launch, by the rules of Triton."""
    import torch

    defaults = {p.name: p.default for p in kernel.params if p.has_default}
    given = {**defaults, **dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for index, parameter in enumerate(kernel.params):
        value = given[parameter.name]
        is_one = type(value) is int and value == 1 and not parameter.do_not_specialize
        if parameter.is_constexpr or value is None or is_one:
            signature[parameter.name], constants[index,] = "constexpr", value
            continue
        signature[parameter.name] = type_of(value)
        if isinstance(value, torch.Tensor) or (
            type(value) is int and value % 16 == 0 and not parameter.do_not_specialize
        ):
            attributes[index,] = [["tt.divisibility", 16]]
    options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
    return kernel.fn.__module__, kernel.fn.__name__, signature, constants, attributes, options


def type_of(value: Any) -> str:
    """Return the name of an argument's type in a signature."""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    name = str(value.dtype).removeprefix("torch.")
    return "*" + name.replace("bfloat", "bf").replace("float", "fp").replace("uint", "u").replace("int", "i").replace(
        "bool", "i1"
    )


def compile_all(path: str, out: str, is_triton: bool) -> None:
    """The bytes of shared memory of each recorded specialisation."""
    if not is_triton:
        from tilework.as_triton import as_triton

        os.environ["TILEWORK_DEVICE"] = "emulator"
        as_triton()
    pretend_a_gpu()
    import triton  # pyright takes tests/triton for it
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    target = GPUTarget("cuda", 90, 32)
    if is_triton:
        known = {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}
        utils = SimpleNamespace(get_device_properties=lambda *_: known)
        triton.runtime.driver.set_active(  # pyright: ignore[reportAttributeAccessIssue]
            SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0, utils=utils)
        )
    with open(path, "rb") as file:
        records: list[Record] = pickle.load(file)
    table: dict[str, int] = {}
    for module, name, signature, constants, attributes, options in records:
        kernel: Any = getattr(importlib.import_module(module), name)
        while not isinstance(kernel, JITFunction):
            kernel = kernel.fn
        source = ASTSource(kernel, signature, constants, attributes)
        made = triton.compile(source, target=target, options=options)  # pyright: ignore[reportAttributeAccessIssue]
        table[json.dumps([f"{module}.{name}", signature, repr(constants), options])] = made.metadata.shared
        with open(out, "w") as file:
            json.dump(table, file)


def compare(ours: str, theirs: str) -> int:
    """Print the specialisations that need more here, and how many there are of each kind."""
    with open(ours) as one, open(theirs) as other:
        mine, known = json.load(one), json.load(other)
    both = [(key, mine[key], known[key]) for key in mine if key in known]
    for key, here, there in both:
        if here > there:
            name, _, _, options = json.loads(key)
            print(f"{name} {options}: {here}, Triton {there}")
    more, less = sum(here > there for _, here, there in both), sum(here < there for _, here, there in both)
    names = {json.loads(key)[0] for key, *_ in both}
    print(
        f"{len(both)} specialisations of {len(names)} kernels: {more} more, {less} less, "
        f"{len(both) - more - less} equal"
    )
    return int(more > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compile", "compare"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--configs", type=int, default=3)
    parser.add_argument("--triton", action="store_true")
    options = parser.parse_args()
    if options.what == "record":
        record(options.files[0], options.configs)
    elif options.what == "compile":
        compile_all(*options.files, is_triton=options.triton)
    else:
        sys.exit(compare(*options.files))


if __name__ == "__main__":
    main()
