"""Kernels with tensor descriptors, compiled to PTX and run in the emulator with all its checks.

run(kernel, {"x": Block(x, (16, 32)), "y": y, "row": 16}, {"N": 32}, arch=90)      changes the arrays, gives the PTX
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.targets.gpu_run import CPU, VERSION
from tilework.frontend.generator import compile_to_ttir
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.tensor_map import REPLACE_TYPES, SWIZZLES, encode_tensor_map
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

Array = np.ndarray[Any, Any]
NAMES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16", "int8": "i8", "uint8": "u8",
    "int16": "i16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip
RNG = np.random.default_rng(5)


def compiled(
    kernel: Any,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    warps: int = 4,
    arch: int = 90,
    aligned: Sequence[str] = (),
) -> str:
    """The PTX of a kernel; pointers and the numbers called `aligned` are multiples of 16."""
    options = frontend_options(GPUTarget("cuda", arch, 32), {})
    names = kernel.arg_names
    known = [name for name, type in types.items() if type.startswith("*") or name in aligned]
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in known}
    module = compile_to_ttir(
        kernel, {**types, **dict.fromkeys(constants, "constexpr")}, dict(constants), attrs, options
    )
    run_pipeline(module, ttir_pipeline(Target.parse(f"cuda:{arch}")))
    run_pipeline(
        module,
        [one for item in ttgir_pipeline(Target.parse(f"cuda:{arch}"), warps, 3, 1) for one in parse_pipeline(item)],
    )
    return to_ptx(emit_module(module, arch), PtxSettings(CPU[arch], VERSION))


class Block:
    """An array for a host descriptor with blocks of `shape`; `size` is what the descriptor says of the array's size."""

    def __init__(self, array: Array, shape: Sequence[int], size: Sequence[int] | None = None) -> None:
        self.array, self.shape, self.size = array, tuple(shape), tuple(size or array.shape)

    @property
    def type(self) -> str:
        return f"tensordesc<{NAMES[self.array.dtype.name]}[{', '.join(map(str, self.shape))}]>"

    def map(self, address: int, meta: Mapping[str, Any]) -> bytes:
        """The tensor map that a launcher creates from the compiler's description."""
        assert meta["elem_size"] == self.array.itemsize
        strides = self.array.strides[:-1][::-1]
        type, swizzle = REPLACE_TYPES[meta["elem_type"]], SWIZZLES[meta["swizzle"]]
        return encode_tensor_map(type, address, self.size[::-1], strides, meta["block_size"][::-1], swizzle=swizzle)


def run(kernel: Any, args: Mapping[str, Any], constants: Mapping[str, Any] = {}, grid: int = 1, **options: Any) -> str:
    """Run a kernel on arrays, descriptors (`Block`) and numbers, which it changes; gives its PTX."""
    types = {
        name: value.type if isinstance(value, Block) else f"*{NAMES[value.dtype.name]}" if isinstance(value,
            np.ndarray) else "i32"
        for name, value in args.items()
    }  # fmt: skip
    text = compiled(kernel, types, constants, **options)
    launched(text, kernel.__name__, args, grid, options.get("warps", 4))
    return text


def launched(text: str, name: str, args: Mapping[str, Any], grid: int = 1, warps: int = 4) -> None:
    """Run PTX like `run`."""
    facts = ptx_text.metadata(text)
    maps = iter(facts.get("tensordesc_meta", ()))
    device, uploaded, values = Device(check=True, together=True), [], []
    for value in args.values():
        array = value.array if isinstance(value, Block) else value
        if not isinstance(array, np.ndarray):
            values.append(value)
            continue
        if not any(array is other for other, _ in uploaded):
            uploaded.append((array, device.upload(array)))
        address = next(position for other, position in uploaded if array is other)
        if isinstance(value, Block) and (meta := next(maps, None)) is not None:
            values.append(value.map(address, meta))
        elif isinstance(value, Block):
            values += [address, *value.size, *(step // array.itemsize for step in array.strides), 0, 0]
        else:
            values.append(address)
        if isinstance(value, Block):
            values += [*value.size, *(step // array.itemsize for step in array.strides)]
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * grid))
    function = device.load(text).function(name)
    device.launch(
        function,
        grid,
        32 * facts.get("num_warps", warps),
        [*values, scratch, 0],
        facts.get("shared", 0),
    )
    device.synchronize()
    for array, address in uploaded:
        array[...] = device.download(address, array)


def generated(shape: Sequence[int], dtype: Any) -> Array:
    """Small whole numbers, which every type holds."""
    return RNG.integers(-9 if np.dtype(dtype).kind != "u" else 0, 9, size=tuple(shape)).astype(dtype)
