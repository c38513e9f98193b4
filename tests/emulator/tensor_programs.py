"""Kernels around one instruction, for the tests of tensor cores and asynchronous copies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework.oracles.emulator.device import Device

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
WARP = 32
Array = np.ndarray[Any, Any]


def registers_in_and_out(
    body: str, inputs: int, outputs: int, bits: int = 32, shared: int = 0, declarations: str = ""
) -> str:
    """Every thread loads %i0.. from its row of the first array, runs `body`, and stores %o0.. to its row of the second.
    The shared bytes are at `smem`; %t is the thread in the block and %lane its lane."""
    size = bits // 8
    loads = "".join(f"    ld.global.b{bits} %i{n}, [%in+{n * size}];\n" for n in range(inputs))
    stores = "".join(f"    st.global.b{bits} [%out+{n * size}], %o{n};\n" for n in range(outputs))
    memory = f".shared .align 1024 .b8 smem[{shared}];\n" if shared else ""
    return f"""{HEADER}{memory}.visible .entry kernel(.param .u64 source, .param .u64 target) {{
    .reg .b{bits} %i<{inputs + 1}>, %o<{outputs + 1}>; .reg .b32 %t, %lane, %block, %row; .reg .b64 %in, %out;
    {declarations}
    ld.param.u64 %in, [source]; ld.param.u64 %out, [target];
    mov.u32 %t, %tid.x; mov.u32 %block, %ctaid.x; and.b32 %lane, %t, 31;
    mov.u32 %row, %ntid.x; mad.lo.u32 %row, %block, %row, %t;
    mad.wide.u32 %in, %row, {inputs * size}, %in; mad.wide.u32 %out, %row, {outputs * size}, %out;
{loads}{body}
{stores}    ret;
}}
"""


def run_registers(text: str, values: Array, outputs: int, threads: int = WARP) -> Array:
    """Run such a kernel on rows of bits, one per thread; the rows that come out."""
    device = Device(1 << 30)
    target = np.zeros((len(values), outputs), values.dtype)
    source, into = device.upload(np.ascontiguousarray(values)), device.upload(target)
    device.launch(device.load(text).function("kernel"), len(values) // threads, threads, [source, into])
    return device.download(into, target)


def run(
    text: str, threads: int, arguments: Sequence[Any], out: Array, grid: int = 1, device: Device | None = None
) -> Array:
    """Run `kernel(arguments..., out)`: arrays are uploaded, the rest is passed as it is."""
    device = device or Device(1 << 30)
    passed = [device.upload(value) if isinstance(value, np.ndarray) and value.ndim else value for value in arguments]
    target = device.upload(out)
    device.launch(device.load(text).function("kernel"), grid, threads, [*passed, target])
    return device.download(target, out)


def names(letter: str, first: int, count: int) -> str:
    """``names("i", 4, 2)`` is ``{%i4, %i5}``."""
    return "{" + ", ".join(f"%{letter}{first + index}" for index in range(count)) + "}"


def mma_text(modifiers: str, d: int, a: int, b: int, c: int, bits: int = 32) -> str:
    """mma with A, B and C in %i and D in %o; the counts are registers."""
    operands = f"{names('o', 0, d)}, {names('i', 0, a)}, {names('i', a, b)}, {names('i', a + b, c)}"
    return registers_in_and_out(f"    mma.sync.aligned.{modifiers} {operands};", a + b + c, d, bits)


def pack(elements: Array, dtype: Any, word: Any = np.uint32) -> Array:
    """Rows of elements as rows of register bits."""
    return np.ascontiguousarray(elements.astype(dtype)).view(word)


def elements_of(position: Callable[[int, int], tuple[int, int]], matrix: Array, count: int) -> Array:
    """The fragments of a matrix: (32, count), where `position(lane, index)` is the row and column of an element."""
    return np.array([[matrix[position(lane, index)] for index in range(count)] for lane in range(WARP)])


def matrix_of(position: Callable[[int, int], tuple[int, int]], fragments: Array, shape: tuple[int, int]) -> Array:
    """A matrix put together from fragments (32, count)."""
    found = np.zeros(shape, fragments.dtype)
    for lane in range(WARP):
        for index in range(fragments.shape[1]):
            found[position(lane, index)] = fragments[lane, index]
    return found


def wgmma_text(
    modifiers: str, d: int, shared: int, constants: str = "", a_registers: bool = False, scale: str = "%p"
) -> str:
    """One wgmma by every warpgroup. kernel(image of shared memory, registers, descriptor of A, of B, scale-d, target):
    descriptors are relative to the image; a thread's row of registers is D's old content and, where A is in registers,
    four more."""
    extra = 4 if a_registers else 0
    loads = "".join(f"    ld.global.b32 %d{n}, [%regs+{4 * n}];\n" for n in range(d))
    loads += "".join(f"    ld.global.b32 %a{n}, [%regs+{4 * (d + n)}];\n" for n in range(extra))
    stores = "".join(f"    st.global.b32 [%out+{4 * n}], %d{n};\n" for n in range(d))
    left = names("a", 0, 4) if a_registers else "%da"
    return f"""{HEADER}.shared .align 1024 .b8 smem[{shared}];
.visible .entry kernel(.param .u64 image, .param .u64 registers, .param .u64 pa, .param .u64 pb, .param .u32 keep,
.param .u64 target) {{
    .reg .b32 %d<{d}>, %a<4>, %t, %at, %base, %word, %row, %block, %keep;
    .reg .b64 %image, %from, %regs, %out, %da, %db, %start; .reg .pred %p;
    ld.param.u64 %image, [image]; ld.param.u64 %regs, [registers]; ld.param.u64 %da, [pa]; ld.param.u64 %db, [pb];
    ld.param.u64 %out, [target]; ld.param.u32 %keep, [keep]; setp.ne.u32 %p, %keep, 0;
    mov.u32 %t, %tid.x; mov.u32 %base, smem; shl.b32 %at, %t, 2; mov.u32 %row, %ntid.x; mov.u32 %block, %ctaid.x;
    mad.lo.u32 %row, %block, %row, %t; mad.wide.u32 %image, %block, {shared}, %image;
COPY: cvt.u64.u32 %from, %at; add.u64 %from, %from, %image; ld.global.b32 %word, [%from];
    add.u32 %at, %at, %base; st.shared.b32 [%at], %word; sub.u32 %at, %at, %base;
    add.u32 %at, %at, 512; setp.lt.u32 %p, %at, {shared}; @%p bra COPY;
    setp.ne.u32 %p, %keep, 0;
    fence.proxy.async.shared::cta; bar.sync 0;
    shr.u32 %base, %base, 4; cvt.u64.u32 %start, %base; add.u64 %da, %da, %start; add.u64 %db, %db, %start;
    mad.wide.u32 %regs, %row, {4 * (d + extra)}, %regs; mad.wide.u32 %out, %row, {4 * d}, %out;
{loads}    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.{modifiers} {names("d", 0, d)}, {left}, %db, {scale}{constants};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{stores}    ret;
}}
"""


def descriptor(start: int, leading: int = 16, stride: int = 16, mode: int = 0) -> int:
    """A matrix descriptor; all in bytes but the mode (0 none, 1: 128B, 2: 64B, 3: 32B)."""
    return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62


def packed_by_k(matrix: Array) -> bytes:
    """Rows of 32 bytes of k without swizzle: (r/8)·256 + (c/16)·128 + (r%8)·16 + c%16, which is leading 128, stride
    256."""
    rows = np.ascontiguousarray(matrix).view(np.uint8).reshape(len(matrix) // 8, 8, 2, 16)
    return rows.transpose(0, 2, 1, 3).tobytes()
