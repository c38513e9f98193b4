"""Runs one instruction on arrays: each thread gets one element of each input.

    >>> run("add.s32 d, a, b;", np.int32([1, 2]), np.int32([10, 20]), out=np.int32)
    array([11, 22], dtype=int32)

In the text ``d`` is the result and ``a``, ``b``, ``c`` ... the inputs; predicates are inputs and results of type bool.
"""

import re
from typing import Any

import numpy as np

from tilework.oracles.emulator.device import Device

HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n"
WIDTHS = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def kernel(body: str, params: int, registers: str = "") -> str:
    """A kernel ``k`` with pointer parameters p0, p1, ...; `%tid.x` is in ``%t`` and 64-bit registers ``%q0`` ... hold
    the pointers."""
    names = ", ".join(f".param .u64 p{i}" for i in range(params))
    loads = "\n".join(f"ld.param.u64 %q{i}, [p{i}];" for i in range(params))
    return (
        f"{HEAD}.visible .entry k({names}) {{\n.reg .b64 %q<{params + 8}>; .reg .b32 %t; .reg .b64 %at; {registers}\n"
        f"{loads}\nmov.u32 %t, %tid.x;\n{body}\nret;\n}}\n"
    )


def run(text: str, *inputs: Any, out: Any, threads: int | None = None, scope: str = "") -> Any:
    """The value of ``d`` in every thread; several results are written ``d0``, ``d1`` with `out` a tuple of types."""
    arrays = [np.atleast_1d(np.asarray(value)) for value in inputs]
    count = threads or max((len(array) for array in arrays), default=32)
    outs = out if isinstance(out, tuple) else (out,)
    names = ["d"] if not isinstance(out, tuple) else [f"d{i}" for i in range(len(outs))]
    registers, body = [], []
    for index, array in enumerate(arrays):
        name = "abcdefgh"[index]
        body += load(name, array.dtype, index, registers)
    for name, dtype in zip(names, outs, strict=True):
        registers.append(f".reg .{'pred' if np.dtype(dtype) == bool else WIDTHS[np.dtype(dtype).itemsize]} %{name};")
    body.append(re.sub(r"(?<![\w.%])([a-h]|d\d)(?![\w.])", r"%\1", text))
    for index, (name, dtype) in enumerate(zip(names, outs, strict=True)):
        body += store(name, np.dtype(dtype), len(arrays) + index)
    source = kernel("\n".join(body), len(arrays) + len(outs), " ".join(registers) + " .reg .b16 %byte; " + scope)
    device = Device(1 << 24)
    uploaded = [device.upload(np.resize(bits(array), count)) for array in arrays]
    results = [device.upload(np.zeros(count, np.uint8 if np.dtype(dtype) == bool else dtype)) for dtype in outs]
    device.launch(device.load(source).function("k"), 1, count, [*uploaded, *results])
    values = []
    for address, dtype in zip(results, outs, strict=True):
        raw = device.copy_out(address, count * np.dtype(dtype).itemsize)
        values.append(raw.view(np.uint8).astype(bool) if np.dtype(dtype) == bool else raw.view(dtype))
    return values[0] if not isinstance(out, tuple) else tuple(values)


def bits(array: Any) -> Any:
    return array.astype(np.uint8) if array.dtype == bool else array


def load(name: str, dtype: Any, index: int, registers: list[str]) -> list[str]:
    size = dtype.itemsize
    address = f"mad.wide.u32 %at, %t, {size}, %q{index};"
    if dtype.kind == "b":
        registers.append(f".reg .pred %{name};")
        return [address, "ld.global.u8 %byte, [%at];", f"setp.ne.u16 %{name}, %byte, 0;"]
    registers.append(f".reg .{WIDTHS[size]} %{name};")
    return [address, f"ld.global.{'u8' if size == 1 else WIDTHS[size]} %{name}, [%at];"]


def store(name: str, dtype: Any, index: int) -> list[str]:
    size = dtype.itemsize
    address = f"mad.wide.u32 %at, %t, {size}, %q{index};"
    if dtype.kind == "b":
        return [address, f"selp.b16 %byte, 1, 0, %{name};", "st.global.u8 [%at], %byte;"]
    return [address, f"st.global.{'u8' if size == 1 else WIDTHS[size]} [%at], %{name};"]
