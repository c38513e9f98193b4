"""The bits of NaNs on a GPU beside the table of the emulator: ``python -m tests.device.check_nan`` on a machine with an
NVIDIA GPU.

Each row of `tests/emulator/nan_rows.py` runs as inline assembly, and each NaN of a kernel as
`tests/emulator/test_nan_patterns.py` makes it. A line for each row, `differs` where the GPU gives other bits; the exit
status says whether there are such rows.
"""

import sys
from typing import Any

import numpy as np
import torch

import tilework
import tilework.language as tl
from tests.emulator.nan_rows import ROWS, name_of, operand_bytes
from tests.emulator.test_nan_patterns import GIVEN, NVIDIA, invalid

CONSTRAINTS = {2: "h", 4: "r", 8: "l"}
INTEGERS = {2: (torch.int16, tl.int16), 4: (torch.int32, tl.int32), 8: (torch.int64, tl.int64)}


@tilework.jit
def instruction(a, b, c, out, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, TYPE: tl.constexpr, COUNT: tl.constexpr):
    x = tl.load(a)
    if COUNT == 1:
        found = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], TYPE, is_pure=True, pack=1)
    elif COUNT == 2:
        found = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x, tl.load(b)], TYPE, is_pure=True, pack=1)
    else:
        found = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x, tl.load(b), tl.load(c)], TYPE, is_pure=True, pack=1)
    tl.store(out, found)


def tensor(bits: int, size: int) -> Any:
    return torch.from_numpy(np.array([bits], f"u{size}").view(f"i{size}")).cuda()


def on_gpu(size: int, text: str, operands: tuple[int, ...]) -> int:
    given = [tensor(bits, operand_bytes(text)) for bits in operands]
    out = torch.zeros(1, dtype=INTEGERS[size][0], device="cuda")
    asm = text.replace(" d,", " $0,")
    for number, letter in enumerate("abc"[: len(operands)], 1):
        asm = asm.replace(f" {letter},", f" ${number},").replace(f" {letter};", f" ${number};")
    constraints = ",".join([f"={CONSTRAINTS[size]}", *([CONSTRAINTS[operand_bytes(text)]] * len(operands))])
    instruction[(1,)](*(given * 3)[:3], out, asm, constraints, INTEGERS[size][1], len(operands))
    return int(out.cpu().numpy().view(f"u{size}")[0])


def main() -> int:
    different = 0
    found: dict[str, tuple[int, int]] = {}
    for row in ROWS:
        size, text, operands, wanted = row
        found[name_of(row)] = (on_gpu(size, text, operands), wanted)
    out = torch.zeros(len(NVIDIA.split()), dtype=torch.int32, device="cuda")
    tilework.jit(invalid.fn)[(1,)](torch.from_numpy(GIVEN).cuda(), out)
    for number, (bits, wanted) in enumerate(zip(out.cpu().numpy().view(np.uint32), NVIDIA.split(), strict=True)):
        found[f"value {number} of `invalid`"] = int(bits), int(wanted, 16)
    for name, (bits, wanted) in found.items():
        different += bits != wanted
        print(f"{name:60} GPU {bits:16x}  emulator {wanted:16x}{'' if bits == wanted else '  differs'}")
    print(f"{torch.cuda.get_device_name()}: {len(found)} rows, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
