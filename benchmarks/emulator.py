"""The speed of the PTX emulator.

    python -m benchmarks.emulator

Two measurements, each the best of several runs, in seconds of one core. Instructions: a block of 128 threads in a loop
of integer and float arithmetic with one load, in thread-instructions per second, beside plain Python: a function per
instruction, one thread after the other. A tile: one step of a 128 x 128 x 32 product of f16 matrices by four warps,
with ldmatrix and mma.sync from shared memory. Results are compared with NumPy's before anything is timed. The last
column is the goal: 8 million a second, and 20 ms.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.oracles.emulator.device import Device

THREADS = 128
LOOP = """.version 8.0
.target sm_80
.visible .entry loop(.param .u64 x, .param .u64 out, .param .u32 count) {
    .reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .f32 %f<4>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out]; ld.param.u32 %r5, [count];
    mov.u32 %r1, %tid.x; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.f32 %f1, 0f00000000;
    mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 8, %rd2;
again:
    ld.global.u32 %r2, [%rd3];
    add.u32 %r3, %r3, %r2;
    xor.b32 %r3, %r3, %r4;
    shl.b32 %r6, %r3, 1;
    mad.lo.u32 %r3, %r6, 3, %r3;
    cvt.rn.f32.u32 %f2, %r4;
    fma.rn.f32 %f1, %f1, 0f3F000000, %f2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra again;
    st.global.u32 [%rd4], %r3;
    st.global.f32 [%rd4+4], %f1;
    ret;
}"""
PER_ROUND = 10  # instructions of the loop


# the loop as one Python function per instruction, on the registers of one thread: memory, then r2, r3, r4, r5, r6, f1,
# f2, p1
MEMORY, R2, R3, R4, R5, R6, F1, F2, P1 = range(9)
WORD = 0xFFFF_FFFF


def store(target: int, function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], None]:
    def instruction(registers: list[Any]) -> None:
        registers[target] = function(registers)

    return instruction


PLAIN = [
    store(R2, lambda r: r[MEMORY]),
    store(R3, lambda r: (r[R3] + r[R2]) & WORD),
    store(R3, lambda r: r[R3] ^ r[R4]),
    store(R6, lambda r: (r[R3] << 1) & WORD),
    store(R3, lambda r: (r[R6] * 3 + r[R3]) & WORD),
    store(F2, lambda r: float(r[R4])),
    store(F1, lambda r: r[F1] * 0.5 + r[F2]),
    store(R4, lambda r: (r[R4] + 1) & WORD),
    store(P1, lambda r: r[R4] < r[R5]),
]


def plain_loop(x: np.ndarray, count: int) -> list[tuple[int, float]]:
    """Thread after thread, instruction after instruction; floats are not rounded to 32 bits, which would cost more."""
    found = []
    for word in x.tolist():
        registers: list[Any] = [word, 0, 0, 0, count, 0, 0.0, 0.0, True]
        while registers[P1]:
            for instruction in PLAIN:
                instruction(registers)
        found.append((registers[R3], registers[F1]))
    return found


def best(run: Callable[[], Any], times: int = 5) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def instructions() -> None:
    device = Device()
    x = np.arange(THREADS, dtype=np.uint32) * 7
    source, out = device.upload(x), device.allocate(8 * THREADS)
    kernel = device.load(LOOP).function("loop")
    device.launch(kernel, 1, THREADS, [source, out, 50])
    found = device.copy_out(out, 8 * THREADS).view(np.dtype([("value", np.uint32), ("total", np.float32)]))
    wanted = plain_loop(x, 50)
    assert found["value"].tolist() == [value for value, _ in wanted]
    assert np.allclose(found["total"], [total for _, total in wanted])
    count = 2000
    seconds = best(lambda: device.launch(kernel, 1, THREADS, [source, out, count]))
    plain = best(lambda: plain_loop(x, 20), 3) * count / 20
    work = PER_ROUND * count * THREADS
    print(f"{'128 threads, emulator':<38}{work / seconds / 1e6:8.1f} M thread-instructions/s    goal 8")
    print(f"{'128 threads, plain Python':<38}{work / plain / 1e6:8.1f} M thread-instructions/s")
    print(f"{'ratio':<38}{plain / seconds:8.1f}")


# a tile step; each of 2 x 2 warps has 64 x 64 of C


def tile_ptx() -> str:
    body: list[str] = []
    for k in range(2):
        for m in range(4):
            registers = ", ".join(f"%a{m * 4 + i}" for i in range(4))
            body.append(f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{registers}}}, [%r4+{m * 16 * 64 + k * 32}];")
        for n in range(4):
            registers = ", ".join(f"%b{n * 4 + i}" for i in range(4))
            body.append(
                f"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{registers}}}, [%r5+{k * 16 * 256 + n * 32}];"
            )
        for m in range(4):
            a = ", ".join(f"%a{m * 4 + i}" for i in range(4))
            for n in range(8):
                c = ", ".join(f"%f{(m * 8 + n) * 4 + i}" for i in range(4))
                b = ", ".join(f"%b{n * 2 + i}" for i in range(2))
                body.append(f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};")
    zero = "\n".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(128))
    stores = []
    for m in range(4):
        for n in range(8):
            for i in range(0, 4, 2):
                at = (m * 8 + n) * 4 + i
                address = 4 * ((m * 16 + i // 2 * 8) * 128 + n * 8)
                stores.append(f"st.global.v2.f32 [%rd5+{address}], {{%f{at}, %f{at + 1}}};")
    lines = "\n".join(body)
    return f""".version 8.0
.target sm_80
.extern .shared .align 128 .b8 memory[];
.visible .entry tile(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 steps) {{
    .reg .b32 %r<30>; .reg .b32 %a<16>; .reg .b32 %b<16>; .reg .f32 %f<128>; .reg .b64 %rd<9>; .reg .pred %p<2>;
    .reg .b32 %v<4>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r9, [steps];
    mov.u32 %r1, %tid.x; mov.u32 %r2, memory; and.b32 %r3, %r1, 31; shr.u32 %r6, %r1, 5;
    mov.u32 %r10, %r1;
fill:                                                        // 512 pieces of 16 bytes of A, as many of B
    mul.wide.u32 %rd4, %r10, 16; add.u64 %rd6, %rd1, %rd4; add.u64 %rd7, %rd2, %rd4;
    shl.b32 %r11, %r10, 4; add.u32 %r11, %r11, %r2;
    ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%rd6]; st.shared.v4.b32 [%r11], {{%v0, %v1, %v2, %v3}};
    ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%rd7]; st.shared.v4.b32 [%r11+8192], {{%v0, %v1, %v2, %v3}};
    add.u32 %r10, %r10, 128; setp.lt.u32 %p1, %r10, 512; @%p1 bra fill;
    bar.sync 0;
    shr.u32 %r7, %r6, 1; and.b32 %r8, %r6, 1;                // the warp's row and column of 64 x 64
    and.b32 %r12, %r3, 15; shr.u32 %r13, %r3, 4;
    shl.b32 %r14, %r7, 6; add.u32 %r14, %r14, %r12; shl.b32 %r14, %r14, 6; shl.b32 %r15, %r13, 4;
    add.u32 %r4, %r2, %r14; add.u32 %r4, %r4, %r15;          // A: rows of 64 bytes
    shl.b32 %r16, %r12, 8; shl.b32 %r17, %r8, 7; add.u32 %r5, %r2, 8192; add.u32 %r5, %r5, %r16; add.u32 %r5, %r5, %r17;
    add.u32 %r5, %r5, %r15;                                  // B: rows of 256 bytes
    {zero}
    mov.u32 %r18, 0;
step:
    {lines}
    add.u32 %r18, %r18, 1; setp.lt.u32 %p1, %r18, %r9; @%p1 bra step;
    shr.u32 %r19, %r3, 2; and.b32 %r20, %r3, 3; shl.b32 %r21, %r7, 6; add.u32 %r21, %r21, %r19; shl.b32 %r21, %r21, 7;
    shl.b32 %r22, %r8, 6; add.u32 %r21, %r21, %r22; shl.b32 %r23, %r20, 1; add.u32 %r21, %r21, %r23;
    mul.wide.u32 %rd8, %r21, 4; add.u64 %rd5, %rd3, %rd8;
    {chr(10).join(stores)}
    ret;
}}"""


def tile() -> None:
    device = Device()
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((128, 32)).astype(np.float16), draw.standard_normal((32, 128)).astype(np.float16)
    addresses = [device.upload(a), device.upload(b), device.allocate(4 * 128 * 128)]
    kernel = device.load(tile_ptx()).function("tile")
    device.launch(kernel, 1, THREADS, [*addresses, 1], shared=16384)
    found = device.copy_out(addresses[2], 4 * 128 * 128).view(np.float32).reshape(128, 128)
    assert np.allclose(found, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)
    few, many = (
        best(lambda steps=steps: device.launch(kernel, 1, THREADS, [*addresses, steps], shared=16384), 3)
        for steps in (1, 6)
    )
    print(f"{'128 x 128 x 32 f16 tile step':<38}{(many - few) / 5 * 1e3:8.1f} ms                         goal 20")


if __name__ == "__main__":
    instructions()
    tile()
