"""Small modules of TTGIR, written as text around one op, compiled to PTX and run in the emulator with all its checks.

    tile = Tile((16, 32), layout(rng, (16, 32), warps=4))
    outs = run(f"%y = arith.addi %x, %x : {tile.type('i32')}", [("x", tile, x)], [("y", tile, np.int32)], warps=4)

Inputs are loaded in the layout of their tile, results are stored from theirs. `layout` generates a linear layout: any
bit of a coordinate may be a bit of the register, the lane or the warp, and what is left of those are copies."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.oracles.emulator.device import Device
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx

Array = np.ndarray[Any, Any]
ELEMENTS = {
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}
CPU = {80: "sm_80", 90: "sm_90a"}


def element(dtype: Any) -> str:
    return ELEMENTS[np.dtype(dtype).name]


@dataclass(frozen=True)
class Tile:
    """The shape and encoding of a tensor; () is a scalar."""

    shape: tuple[int, ...]
    encoding: str = ""

    def type(self, element: str) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}x{element}, {self.encoding}>" if self.shape else element

    def without(self, axis: int) -> "Tile":
        """Return the shape without `axis`."""
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        return Tile(shape, f"#ttg.slice<{{dim = {axis}, parent = {self.encoding}}}>")

    def with_one(self, axis: int) -> "Tile":
        return Tile((*self.shape[:axis], 1, *self.shape[axis + 1 :]), self.encoding)


def layout(rng: np.random.Generator, shape: Sequence[int], warps: int, lanes: int = 32) -> str:
    """A linear layout; at least the lanes and warps are there, some of the bits of a register may be copies too."""
    bits = [
        [1 << index if other == dim else 0 for other in range(len(shape))]
        for dim, size in enumerate(shape)
        for index in range(size.bit_length() - 1)
    ]
    zero = [0] * len(shape)
    rng.shuffle(bits)
    levels: dict[str, list[list[int]]] = {"lane": [], "warp": []}
    for name, count in (("lane", lanes.bit_length() - 1), ("warp", warps.bit_length() - 1)):
        for _ in range(count):
            levels[name].append(bits.pop() if bits and rng.random() < 0.85 else zero)
    registers = [*bits, *([zero] if rng.random() < 0.3 else [])]
    rng.shuffle(registers)
    return f"#ttg.linear<{{register = {registers}, lane = {levels['lane']}, warp = {levels['warp']}, block = []}}>"


def blocked(per_thread: Sequence[int], lanes: Sequence[int], warps: Sequence[int], order: Sequence[int]) -> str:
    parts = zip(
        ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order"), (per_thread, lanes, warps, order), strict=True
    )
    return f"#ttg.blocked<{{{', '.join(f'{name} = {list(value)}' for name, value in parts)}}}>"


def pointers(name: str, tile: Tile, kind: str) -> list[str]:
    """Ops that make %NAME_p, the addresses of a row-major array at %NAME_base."""
    if not tile.shape:
        return [f"%{name}_p = tt.addptr %{name}_base, %zero : !tt.ptr<{kind}>, i32"]
    lines, rank = [], len(tile.shape)
    whole = tile.type("i32")
    for dim, size in enumerate(tile.shape):
        chain = [tile]
        for other in reversed([other for other in range(rank) if other != dim]):
            chain.append(chain[-1].without(other))
        at = f"%{name}_{dim}"
        line = Tile((size,), chain[-1].encoding)
        lines.append(f"{at} = tt.make_range {{start = 0 : i32, end = {size} : i32}} : {line.type('i32')}")
        for other, to in zip([other for other in range(rank) if other != dim], reversed(chain[:-1]), strict=True):
            shape = list(line.shape)
            shape.insert(other, 1)
            wider = Tile(tuple(shape), to.encoding)
            lines.append(
                f"{at}x{other} = tt.expand_dims {at} {{axis = {other} : i32}} : {line.type('i32')} "
                f"-> {wider.type('i32')}"
            )
            at, line = f"{at}x{other}", wider
        if line.shape != tile.shape:
            lines.append(f"{at}b = tt.broadcast {at} : {line.type('i32')} -> {whole}")
            at += "b"
        stride = f"%{name}_s{dim}"
        lines.append(f"{stride} = arith.constant dense<{prod(tile.shape[dim + 1 :])}> : {whole}")
        lines.append(f"%{name}_m{dim} = arith.muli {at}, {stride} : {whole}")
        if dim:
            before = f"%{name}_t{dim - 1}" if dim > 1 else f"%{name}_m0"
            lines.append(f"%{name}_t{dim} = arith.addi {before}, %{name}_m{dim} : {whole}")
    total = f"%{name}_t{rank - 1}" if rank > 1 else f"%{name}_m0"
    address = tile.type(f"!tt.ptr<{kind}>")
    lines.append(f"%{name}_q = tt.splat %{name}_base : !tt.ptr<{kind}> -> {address}")
    lines.append(f"%{name}_p = tt.addptr %{name}_q, {total} : {address}, {whole}")
    return lines


def module_text(
    body: str,
    inputs: Sequence[tuple[str, Tile, Array]],
    outputs: Sequence[tuple[str, Tile, Any]],
    warps: int,
    arch: int,
) -> str:
    """A kernel that loads the inputs, runs `body` and stores the outputs."""
    named = [(name, element(array.dtype)) for name, _, array in inputs] + [
        (name, element(dtype)) for name, _, dtype in outputs
    ]
    params = ", ".join(f"%{name}_base: !tt.ptr<{kind}>" for name, kind in named)
    lines = ["%zero = arith.constant 0 : i32"]
    for name, tile, array in inputs:
        kind = element(array.dtype)
        lines += pointers(name, tile, kind)
        lines.append(f"%{name} = tt.load %{name}_p : {tile.type(f'!tt.ptr<{kind}>')}")
    lines.append(body)
    for name, tile, dtype in outputs:
        kind = element(dtype)
        lines += pointers(name, tile, kind)
        lines.append(f"tt.store %{name}_p, %{name} : {tile.type(f'!tt.ptr<{kind}>')}")
    facts = (
        f'"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:{arch}", '
        '"ttg.threads-per-warp" = 32 : i32'
    )
    inner = "\n    ".join([*lines, "tt.return"])
    return f"module attributes {{{facts}}} {{\n  tt.func public @kernel({params}) {{\n    {inner}\n  }}\n}}"


def compiled(text: str, arch: int) -> str:
    """The PTX of a module of TTGIR."""
    module = parse_module(text)
    verify(module)
    return to_ptx(emit_module(module, arch, lines=False), PtxSettings(CPU[arch], 80))


def run(
    body: str,
    inputs: Sequence[tuple[str, Tile, Array]],
    outputs: Sequence[tuple[str, Tile, Any]],
    warps: int = 4,
    arch: int = 80,
) -> list[Array]:
    """The arrays that are stored."""
    ptx = compiled(module_text(body, inputs, outputs, warps, arch), arch)
    device = Device(check=True, together=True)
    results = [np.zeros(tile.shape, dtype) for _, tile, dtype in outputs]
    addresses = [device.upload(np.ascontiguousarray(array)) for array in (*(array for _, _, array in inputs), *results)]
    function = device.load(ptx).function("kernel")
    scratch = device.allocate(16)
    device.launch(function, (1,), 32 * warps, [*addresses, scratch, 0], ptx_text.metadata(ptx).get("shared", 0))
    device.synchronize()
    return [device.download(address, array) for address, array in zip(addresses[len(inputs) :], results, strict=True)]
