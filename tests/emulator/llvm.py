"""LLVM text to PTX to results: each thread gets one element of each input.

    >>> each("%d = add i32 %a, %b", np.int32([1, 2]), np.int32([10, 20]), out=np.int32)
    array([11, 22], dtype=int32)

In the text ``%d`` is the result, ``%a``, ``%b`` ... are the inputs and ``%i`` the number of the thread in its block.
"""

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from tests.targets.llvm_run import to_assembly
from tilework.oracles.emulator.device import Device
from tilework.targets.llvm.compile import NVPTX, data_layout, target_machine

NAMES = {
    "bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
    "int64": "i64", "uint64": "i64", "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip
# (cpu, PTX version, level of the optimiser, level of the code generator)
TARGETS = (("sm_80", "+ptx80", 0, 0), ("sm_80", "+ptx80", 2, 2), ("sm_90a", "+ptx86", 0, 2), ("sm_90a", "+ptx90", 3, 3))
BF16 = np.dtype(ml_dtypes.bfloat16)


def ptx_of(text: str, target: tuple[str, str, int, int] = TARGETS[2]) -> str:
    """PTX of LLVM text that has no layout and triple yet."""
    cpu, version, optimiser, level = target
    machine = target_machine(NVPTX, cpu, version, level)
    head = f'target datalayout = "{data_layout(machine)}"\ntarget triple = "nvptx64-nvidia-cuda"\n'
    return to_assembly(head + text, optimiser, machine, verify=True)


def launch(
    text: str, *arrays: Any, grid: Any = 1, block: Any = 64, shared: int = 0, target: Any = TARGETS[2], name: str = "k"
) -> list[Any]:
    """Run the kernel with arrays (passed by address) and other values (passed as they are); return the contents of the
    arrays after the launch."""
    return launch_all(text, [name], *arrays, grid=grid, block=block, shared=shared, target=target)[0]


def launch_all(
    text: str, names: list[str], *arrays: Any, grid: Any = 1, block: Any, shared: int = 0, target: Any
) -> list[list[Any]]:
    """`launch` of several kernels of a module, each with the arrays as they are given."""
    device = Device(1 << 24)
    module = device.load(ptx_of(text, target))
    found = []
    for name in names:
        args: list[Any] = [
            device.upload(value) if isinstance(value, np.ndarray) and value.ndim else value for value in arrays
        ]
        device.launch(module.function(name), grid, block, args, shared)
        found.append(
            [
                device.download(address, value)
                for address, value in zip(args, arrays, strict=True)
                if isinstance(value, np.ndarray) and value.ndim
            ]
        )
    return found


def each(body: str, *inputs: Any, out: Any, declare: str = "", targets: Any = TARGETS) -> Any:
    """The value of ``%d`` in every thread, which must be the same for every target."""
    return each_of([body], *inputs, out=out, declare=declare, targets=targets)[0]


def each_of(bodies: Iterable[str], *inputs: Any, out: Any, declare: str = "", targets: Any = TARGETS) -> list[Any]:
    """`each` of several texts, which are kernels of one module: that takes half of the time."""
    bodies = list(bodies)
    inputs = tuple(np.atleast_1d(value) for value in inputs)
    count = max(len(value) for value in inputs)
    out = np.dtype(out)
    kind = "<2 x half>" if out == np.dtype("V4") else NAMES[out.name]
    params = ", ".join(f"ptr addrspace(1) %p{index}" for index in range(len(inputs) + 1))
    loads = []
    for index, value in enumerate(inputs):
        name, type = "abcefgh"[index], NAMES[value.dtype.name]
        loads.append(
            f"%at{index} = getelementptr {type}, ptr addrspace(1) %p{index}, i32 %i\n"
            f"  %{name} = load {type}, ptr addrspace(1) %at{index}"
        )
    text = f"declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n{declare}\n"
    for number, body in enumerate(bodies):
        text += f"""
define ptx_kernel void @k{number}({params}) {{
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  {chr(10).join(loads)}
  br label %work
work:
  {body}
  %to = getelementptr {kind}, ptr addrspace(1) %p{len(inputs)}, i32 %i
  store {kind} %d, ptr addrspace(1) %to
  ret void
}}
"""
    arrays = [
        np.resize(value, count).astype(np.uint8) if value.dtype.kind == "b" else np.resize(value, count)
        for value in inputs
    ]
    arrays.append(np.zeros(count, np.uint8 if out.kind == "b" else out))
    names = [f"k{number}" for number in range(len(bodies))]
    results = [
        [found[-1] for found in launch_all(text, names, *arrays, block=count, target=target)] for target in targets
    ]
    for other, target in zip(results, targets, strict=True):
        for body, ours, first in zip(bodies, other, results[0], strict=True):
            assert ours.tobytes() == first.tobytes(), (target, body, ours, first)
    return [found.astype(bool) if out.kind == "b" else found for found in results[0]]
