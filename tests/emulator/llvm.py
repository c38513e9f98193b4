"""LLVM text to PTX to results: each thread gets one element of each input.

    >>> each("%d = add i32 %a, %b", np.int32([1, 2]), np.int32([10, 20]), out=np.int32)
    array([11, 22], dtype=int32)

In the text ``%d`` is the result, ``%a``, ``%b`` ... are the inputs and ``%i`` the number of the thread in its block.
"""

from typing import Any

import ml_dtypes
import numpy as np

from tests.targets.llvm_run import to_assembly
from tilework.oracles.emulator.device import Device
from tilework.targets.llvm.compile import data_layout, nvptx_target_machine

NAMES = {
    "bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32", "int64": "i64", "uint64": "i64",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip
# (cpu, PTX version, level of the optimiser, level of the code generator)
TARGETS = (("sm_80", "+ptx80", 0, 0), ("sm_80", "+ptx80", 2, 2), ("sm_90a", "+ptx86", 0, 2), ("sm_90a", "+ptx90", 3, 3))
BF16 = np.dtype(ml_dtypes.bfloat16)


def ptx_of(text: str, target: tuple[str, str, int, int] = TARGETS[2]) -> str:
    """PTX of LLVM text that has no layout and triple yet."""
    cpu, version, optimiser, level = target
    machine = nvptx_target_machine(cpu, version, level)
    head = f'target datalayout = "{data_layout(machine)}"\ntarget triple = "nvptx64-nvidia-cuda"\n'
    return to_assembly(head + text, optimiser, machine, verify=True)


def launch(
    text: str, *arrays: Any, grid: Any = 1, block: Any = 64, shared: int = 0, target: Any = TARGETS[2], name: str = "k"
) -> list[Any]:
    """Run the kernel with arrays (passed by address) and other values (passed as they are); what the arrays hold afterwards."""
    device = Device(1 << 24)
    args = [device.upload(value) if isinstance(value, np.ndarray) and value.ndim else value for value in arrays]
    device.launch(device.load(ptx_of(text, target)).function(name), grid, block, args, shared)
    return [
        device.download(address, value)
        for address, value in zip(args, arrays, strict=True)
        if isinstance(value, np.ndarray) and value.ndim
    ]


def each(body: str, *inputs: Any, out: Any, declare: str = "", targets: Any = TARGETS) -> Any:
    """The value of ``%d`` in every thread, which must be the same for every target."""
    inputs = tuple(np.atleast_1d(value) for value in inputs)
    count = max(len(value) for value in inputs)
    out = np.dtype(out)
    kind = "<2 x half>" if out == np.dtype("V4") else NAMES[out.name]
    params = ", ".join(f"ptr addrspace(1) %p{index}" for index in range(len(inputs) + 1))
    loads = []
    for index, value in enumerate(inputs):
        name, type = "abcefgh"[index], NAMES[value.dtype.name]
        loads.append(
            f"%at{index} = getelementptr {type}, ptr addrspace(1) %p{index}, i32 %i\n  %{name} = load {type}, ptr addrspace(1) %at{index}"
        )
    text = f"""
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
{declare}
define ptx_kernel void @k({params}) {{
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
    results = []
    for target in targets:
        arrays = [
            np.resize(value, count).astype(np.uint8) if value.dtype.kind == "b" else np.resize(value, count)
            for value in inputs
        ]
        results.append(
            launch(text, *arrays, np.zeros(count, np.uint8 if out.kind == "b" else out), block=count, target=target)[-1]
        )
    for other in results[1:]:
        assert other.tobytes() == results[0].tobytes(), (other, results[0])
    return results[0].astype(bool) if out.kind == "b" else results[0]
