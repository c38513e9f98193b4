"""Modules of TTGIR as text, compiled to PTX and run in the checking emulator.

    (y,) = elementwise("%y = math.exp %x : T<f32>", {"x": x}, {"y": np.float32}, arch=80)

In the text `T<f32>` is a tensor of the size of the inputs; each input is loaded from its array, each output stored in
its own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.targets.gpu_run import CPU, VERSION
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.oracles.emulator.device import Device
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

Array = np.ndarray[Any, Any]
NAMES: dict[Any, str] = {
    np.dtype(np.float16): "f16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(np.bool_): "i1",
}
NAMES |= {np.dtype(f"{kind}{size}"): f"i{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)}
DTYPES: dict[str, Any] = {name: dtype for dtype, name in NAMES.items() if dtype.kind != "u"}


def to_module(text: str) -> Any:
    module = parse_module(text)
    verify(module)
    return module


def ptx_of(
    text: str, arch: int, options: Any = None, libraries: tuple[tuple[str, str], ...] = (), fuses: bool = True
) -> str:
    llvm = emit_module(to_module(text), arch, options=options, fuses=fuses)
    return to_ptx(llvm, PtxSettings(CPU[arch], VERSION, libraries=libraries))


def launch(
    ptx: str, name: str, args: Sequence[Any], warps: int, grid: Any = 1, output: Callable[[str], None] | None = None
) -> None:
    """Run a kernel; arrays among the arguments are copied to the device, and back after the launch."""
    device = Device(check=True, together=True, output=output)
    addresses = [(arg, device.upload(arg)) for arg in args if isinstance(arg, np.ndarray)]
    known = {id(array): address for array, address in addresses}
    facts = ptx_text.metadata(ptx)
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * int(np.prod(grid))))
    given = [known.get(id(arg), arg) for arg in args]
    function = device.load(ptx).function(name)
    device.launch(function, grid, 32 * warps, [*given, scratch, 0], facts.get("shared", 0))
    for array, address in addresses:
        array[...] = device.download(address, array)


def with_tensors(text: str, size: int, layout: str) -> str:
    """`T<f32>` spelled out."""
    return re.sub(r"\bT<(!tt\.ptr<\w+>|\w+)>", rf"tensor<{size}x\1, {layout}>", text)


def blocked(per_thread: int, warps: int) -> str:
    return (
        f"#ttg.blocked<{{sizePerThread = [{per_thread}], threadsPerWarp = [32], warpsPerCTA = [{warps}], order = [0]}}>"
    )


def module_text(params: Sequence[str], body: str, arch: int, warps: int) -> str:
    return f"""
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:{arch}", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel({", ".join(params)}) {{
{body}
    tt.return
  }}
}}"""  # noqa: E501


def elementwise_text(
    body: str,
    ins: Mapping[str, str],
    outs: Mapping[str, str],
    size: int,
    arch: int,
    per_thread: int,
    warps: int = 1,
    pointers: Mapping[str, str] | None = None,
) -> str:
    """A kernel around a piece of text, which may also use the addresses `%p_at` of elements of `pointers` and
    `%p_ptr`."""
    both = {**ins, **outs, **(pointers or {})}
    params = [f"%{name}_ptr: !tt.ptr<{type}> {{tt.divisibility = 16 : i32}}" for name, type in both.items()]
    lines = [f"%places = tt.make_range {{start = 0 : i32, end = {size} : i32}} : T<i32>"]
    for name, type in both.items():
        lines.append(f"%{name}_all = tt.splat %{name}_ptr : !tt.ptr<{type}> -> T<!tt.ptr<{type}>>")
        lines.append(f"%{name}_at = tt.addptr %{name}_all, %places : T<!tt.ptr<{type}>>, T<i32>")
    lines += [f"%{name} = tt.load %{name}_at : T<!tt.ptr<{type}>>" for name, type in ins.items()]
    lines.append(body)
    lines += [f"tt.store %{name}_at, %{name} : T<!tt.ptr<{type}>>" for name, type in outs.items()]
    return module_text(params, with_tensors("\n".join(lines), size, blocked(per_thread, warps)), arch, warps)


def elementwise(
    body: str, ins: Mapping[str, Array], outs: Mapping[str, Any], arch: int = 90, per_thread: int = 4, **more: Any
) -> list[Array]:
    """What a piece of text makes of arrays; they are filled up to a power of two."""
    count = len(next(iter(ins.values())))
    size = 1 << max(count - 1, 31).bit_length()
    arrays = [np.resize(array, size) for array in ins.values()]
    results = [np.zeros(size, dtype) for dtype in outs.values()]
    text = elementwise_text(
        body,
        {name: NAMES[array.dtype] for name, array in ins.items()},
        {name: NAMES[np.dtype(dtype)] for name, dtype in outs.items()},
        size,
        arch,
        per_thread,
    )
    launch(ptx_of(text, arch, **more), "kernel", [*arrays, *results], 1)
    return [result[:count] for result in results]


def kernel_ptx(
    kernel: Any,
    types: Mapping[str, str],
    constexprs: Mapping[str, Any],
    arch: int = 90,
    warps: int = 4,
    overflows: bool = False,
) -> str:
    """PTX of a kernel in Python; pointers are aligned to 16 bytes. Integers stop it where they overflow, unless they
    may."""
    options = frontend_options(GPUTarget("cuda", arch, 32), {"debug": not overflows})
    names = kernel.arg_names
    attrs: Any = {
        (names.index(name),): [["tt.divisibility", 16]] for name, type in types.items() if type.startswith("*")
    }
    module = compile_to_ttir(
        kernel, {**types, **dict.fromkeys(constexprs, "constexpr")}, dict(constexprs), attrs, options
    )
    run_pipeline(module, ttir_pipeline(Target.parse(f"cuda:{arch}")))
    run_pipeline(
        module,
        [one for item in ttgir_pipeline(Target.parse(f"cuda:{arch}"), warps, 3, 1) for one in parse_pipeline(item)],
    )
    return to_ptx(emit_module(module, arch), PtxSettings(CPU[arch], VERSION))
