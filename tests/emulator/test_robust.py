"""Odd shapes and programs, long ones, broken ones; one device used for many things."""

import random
import re
from typing import Any

import numpy as np
import pytest

from tests.emulator.ptx import HEAD, kernel
from tests.emulator.test_control import CALLS
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.parser import parse_ptx
from tilework.oracles.emulator.syntax import EmulatorError, PtxSyntaxError
from tilework.oracles.emulator.translate import Unsupported

THREAD_INDEX = """.reg .b32 %x, %y, %z, %nx, %ny, %nz, %i, %c;
mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z; mov.u32 %nx, %ntid.x; mov.u32 %ny, %ntid.y;
mov.u32 %nz, %ntid.z;
mad.lo.u32 %i, %z, %ny, %y; mad.lo.u32 %i, %i, %nx, %x;"""


def launch(
    text: str, arrays: Any, grid: Any = 1, block: Any = 64, shared: int = 0, device: Device | None = None
) -> list[Any]:
    device = device or Device(1 << 24)
    addresses = [device.upload(array) for array in arrays]
    device.launch(device.load(text).function("k"), grid, block, addresses, shared)
    return [device.download(address, array) for address, array in zip(addresses, arrays, strict=True)]


@pytest.mark.parametrize("shape", (1, 2, 31, 33, 100, 1024, (3, 5, 7), (1, 1, 64), (32, 32, 1)))
def test_blocks_of_any_shape(shape: Any) -> None:
    """Every thread adds its index; a barrier and shared memory work with a last warp that is not whole."""
    count = int(np.prod(shape))
    body = (
        THREAD_INDEX
        + """.shared .align 4 .b32 total; mad.wide.u32 %at, %i, 4, %q0; atom.shared.add.u32 %c, [total], %i; bar.sync 0;
        ld.shared.u32 %c, [total]; add.u32 %c, %c, %i; st.global.u32 [%at], %c;"""
    )
    got = launch(kernel(body, 1), [np.zeros(count, np.uint32)], block=shape)[0]
    np.testing.assert_array_equal(got, count * (count - 1) // 2 + np.arange(count))


def test_many_blocks() -> None:
    body = """.reg .b32 %a<9>; mov.u32 %a1, %ctaid.x; mov.u32 %a2, %ctaid.y; mov.u32 %a3, %ctaid.z;
        mov.u32 %a4, %nctaid.x; mov.u32 %a5, %nctaid.y;
        mad.lo.u32 %a6, %a3, %a5, %a2; mad.lo.u32 %a6, %a6, %a4, %a1; mad.wide.u32 %at, %a6, 4, %q0;
        red.global.add.u32 [%at], %a6;"""
    got = launch(kernel(body, 1), [np.zeros(7 * 11 * 5, np.uint32)], grid=(7, 11, 5), block=32)[0]
    np.testing.assert_array_equal(got, 32 * np.arange(385))


def test_registers_and_shared_memory_start_as_zero_in_every_block() -> None:
    body = """.reg .b32 %r<4>; .reg .pred %p; .reg .b128 %w; .reg .b64 %l<2>; .shared .align 8 .b8 mine[256];
        .local .align 4 .b32 own;
        shl.b32 %r2, %t, 2; mov.u32 %r3, mine; add.u32 %r2, %r2, %r3; ld.shared.u32 %r3, [%r2]; add.u32 %r1, %r1, %r3;
        @%p add.u32 %r1, %r1, 1;
        ld.local.u32 %r3, [own]; add.u32 %r1, %r1, %r3; mov.b128 {%l0, %l1}, %w; cvt.u32.u64 %r3, %l1;
        add.u32 %r1, %r1, %r3; addc.u32 %r1, %r1, 0;
        red.global.add.u32 [%q0], %r1; mov.u32 %r1, 7; st.shared.u32 [%r2], %r1; st.local.u32 [own], %r1;
        setp.eq.u32 %p, %r1, 7;
        mov.b128 %w, {%q0, %q0}; mov.u32 %r3, 0xFFFFFFFF; add.cc.u32 %r3, %r3, %r3;"""
    device = Device(1 << 22)
    function = device.load(kernel(body, 1)).function("k")
    out = device.upload(np.zeros(1, np.uint32))
    for _ in range(3):
        device.launch(function, 4, 64, [out])
    assert device.copy_out(out, 4).view(np.uint32)[0] == 0


def test_dynamic_shared_memory_of_any_size() -> None:
    text = kernel(
        """.reg .b32 %s, %v; mov.u32 %v, 5; mov.u32 %s, %dynamic_smem_size; @!%big bra SMALL;
            st.shared.u32 [buffer], %v; ld.shared.u32 %v, [buffer];
        SMALL: add.u32 %s, %s, %v; st.global.u32 [%q0], %s;""",
        1, ".reg .pred %big; .reg .b32 %d; mov.u32 %d, %dynamic_smem_size; setp.ge.u32 %big, %d, 4;",
    ).replace(".visible", ".extern .shared .align 16 .b8 buffer[];\n.visible", 1)  # fmt: skip
    device = Device(1 << 22)
    for size in (0, 4, 1000, 227 * 1024):
        assert launch(text, [np.zeros(1, np.uint32)], block=32, shared=size, device=device)[0][0] == size + 5
    for size in (-1, 227 * 1024 + 1):
        with pytest.raises(EmulatorError, match="dynamic shared memory"):
            launch(text, [np.zeros(1, np.uint32)], block=32, shared=size, device=device)


def test_one_device_for_many_modules_and_shapes() -> None:
    device = Device(1 << 24)
    functions = [
        device.load(kernel(f"mad.wide.u32 %at, %t, 4, %q0; red.global.add.u32 [%at], {n};", 1)).function("k")
        for n in range(20)
    ]
    out = device.upload(np.zeros(64, np.uint32))
    for function in functions:
        for block in (32, 64, (8, 2)):
            device.launch(function, 1, block, [out])
    got = device.copy_out(out, 256).view(np.uint32)
    total = sum(range(20))
    np.testing.assert_array_equal(got, np.where(np.arange(64) < 8, 4, np.where(np.arange(64) < 32, 2, 1)) * total)
    for _ in range(3000):  # memory that was freed is used again
        device.free(device.allocate(1 << 16))


def test_memory_that_was_freed() -> None:
    device = Device(1 << 22)
    function = device.load(kernel("ld.global.u32 %t, [%q0];", 1)).function("k")
    address = device.upload(np.zeros(8, np.uint32))
    device.launch(function, 1, 32, [address])
    device.free(address)
    with pytest.raises(MemoryFault, match="not allocated"):
        device.launch(function, 1, 32, [address])
    with pytest.raises(EmulatorError, match="not the start of an allocation"):
        device.free(address)
    device.launch(function, 1, 32, [device.upload(np.zeros(8, np.uint32))])  # and the machine works on


def test_long_kernels_and_long_loops() -> None:
    body = ".reg .b32 %r<8>;" + "\n".join(
        f"add.u32 %r{i % 7 + 1}, %r{(i + 3) % 7 + 1}, {i % 5};" for i in range(20_000)
    )
    values = [0] * 8
    for i in range(20_000):
        values[i % 7 + 1] = values[(i + 3) % 7 + 1] + i % 5
    got = launch(kernel(body + "st.global.u32 [%q0], %r1;", 1), [np.zeros(1, np.uint32)], block=32)[0]
    assert got[0] == values[1] % 2**32
    loop = (
        ".reg .b32 %r<3>; .reg .pred %p; L: add.u32 %r1, %r1, 1; xor.b32 %r2, %r2, %r1; "
        "setp.lt.u32 %p, %r1, 10000; @%p bra L; st.global.u32 [%q0], %r2;"
    )
    assert launch(kernel(loop, 1), [np.zeros(1, np.uint32)], block=32)[0][0] == int(
        np.bitwise_xor.reduce(np.arange(10_001))
    )


def test_barriers_with_threads_that_ended() -> None:
    """In every round one lane of each warp ends; the others still meet."""
    body = """.reg .b32 %n, %l; .reg .pred %p; mov.u32 %l, %laneid; mov.u32 %n, 0; L: setp.eq.u32 %p, %n, %l;
        @%p bra DONE; bar.sync 0; add.u32 %n, %n, 1; bra L;
        DONE: red.global.add.u32 [%q0], %n;"""
    assert launch(kernel(body, 1), [np.zeros(1, np.uint32)], block=96)[0][0] == 3 * sum(range(32))


def test_divergence_inside_nested_calls() -> None:
    text = (
        HEAD
        + """
.func (.param .b32 r) inner(.param .b32 x) { .reg .b32 %a; .reg .pred %p; ld.param.b32 %a, [x]; and.b32 %a, %a, 1;
setp.eq.u32 %p, %a, 0; @%p bra E; add.u32 %a, %a, 10; E: st.param.b32 [r], %a; }
.func (.param .b32 r) outer(.param .b32 x) { .reg .b32 %a, %b; .reg .pred %p; ld.param.b32 %a, [x];
setp.lt.u32 %p, %a, 5; mov.u32 %b, 100; @%p bra E;
  { .param .b32 s; .param .b32 d; st.param.b32 [s], %a; call (d), inner, (s); ld.param.b32 %b, [d]; }
  E: st.param.b32 [r], %b; ret; }
.visible .entry k(.param .u64 p) { .reg .b64 %q; .reg .b32 %t, %v; ld.param.u64 %q, [p]; mov.u32 %t, %tid.x;
  { .param .b32 s; .param .b32 d; st.param.b32 [s], %t; call (d), outer, (s); ld.param.b32 %v, [d]; }
  mad.wide.u32 %q, %t, 4, %q; st.global.u32 [%q], %v; }"""
    )
    n = np.arange(64)
    np.testing.assert_array_equal(
        launch(text, [np.zeros(64, np.uint32)])[0], np.where(n < 5, 100, np.where(n & 1, 11, 0))
    )


@pytest.mark.parametrize(
    "body",
    (
        "",
        "ret;",
        "{}",
        "{ { } }",
        "END:",
        "bra END; END:",
        ".reg .pred %p; @%p ret; @!%p bra END; bra END; END: ",
        "bar.sync 0;",
        "exit; L: bra L;",
    ),
)
def test_kernels_that_do_nothing(body: str) -> None:
    device = Device(1 << 22)
    device.launch(device.load(f"{HEAD}.visible .entry k() {{ {body} }}").function("k"), 2, 48, [])


def test_scopes_may_be_deep() -> None:
    body = "".join(f"{{ .reg .b32 %v; mov.u32 %v, {n}; add.u32 %t, %t, %v;" for n in range(100)) + "}" * 100
    assert launch(kernel(body + "st.global.u32 [%q0], %t;", 1), [np.zeros(1, np.uint32)], block=1)[0][0] == sum(
        range(100)
    )


def test_two_functions_may_use_one_name() -> None:
    text = (
        HEAD
        + """
.func other() { .shared .align 4 .b32 box; .reg .b32 %a; mov.u32 %a, 5; st.shared.u32 [box], %a; ret; }
.visible .entry k(.param .u64 p) { .shared .align 4 .b32 box; .reg .b32 %a; .reg .b64 %q; ld.param.u64 %q, [p];
mov.u32 %a, 9; st.shared.u32 [box], %a;
  call other; ld.shared.u32 %a, [box]; st.global.u32 [%q], %a; ret; }"""
    )
    assert launch(text, [np.zeros(1, np.uint32)], block=32)[0][0] == 9


@pytest.mark.parametrize(("text", "message"), (
    ("add.q32 %t, %t, 1;", (r"PTX line 7 \(from kernel\.py:42\): add\.q32 is not supported: the type \.q32\n  "
                            r"add\.q32 %t, %t, 1;")),
    ("frobnicate.b32 %t;", r"PTX line 7 \(from kernel\.py:42\): frobnicate\.b32 is not supported"),
    ("mov.b32 %t, {%t, %t, %t};", "32 bits in 3 parts"), ("add.u32 %q0, %t, %t;", "%q0 has 64 bits, not 32"),
    ("add.u32 5, %t, %t;", "cannot be written"), ("ld.global.u32 %t, %q0;", "ld.global.u32 is not supported"),
    ("bra NOWHERE;", "not a label"), ("call missing;", "missing has no body"),
    ("mov.u32 %t, nothing;", "nothing is not declared"), ("add.u32 %t, %t;", "its operands do not fit it"),
    ("brx.idx %t, T;", "not declared"),
    ("bar.sync 99;", r"(?s)barrier 99.*block \(0, 0, 0\).*kernel\.py:42.*PTX line 7"),
))  # fmt: skip
def test_errors_name_the_lines(text: str, message: str) -> None:
    source = kernel(f'.file 1 "kernel.py"\n.loc 1 42 0\n{text}', 1)
    line = next(number for number, found in enumerate(source.splitlines(), 1) if text in found)
    device = Device(1 << 22)
    with pytest.raises(EmulatorError, match=message.replace("line 7", f"line {line}")):
        device.launch(device.load(source).function("k"), 1, 32, [0])


@pytest.mark.parametrize(("text", "message"), (
    (".version x", "not a version"), (".global .align 3 .b8 x;", "a power of two"),
    (".global .b8 x[-1];", "an array of -1"), (".global .b32 x = 08;", "octal"),
    (".entry k() { .reg .b32 %r<99999999>; }", "99999999 registers"), (".global .b32 x = {;};", "an initial value is"),
    (".global .f32 x = 1e999999;", None),
))  # fmt: skip
def test_bad_declarations(text: str, message: str | None) -> None:
    if message is None:
        parse_ptx(HEAD + text)
        return
    with pytest.raises(PtxSyntaxError, match=message):
        parse_ptx(HEAD + text)


def test_too_much_memory() -> None:
    device = Device(1 << 22)
    with pytest.raises(EmulatorError, match="bytes of local memory in a thread"):
        device.launch(device.load(HEAD + ".entry k() { .local .b8 x[9999999999]; ret; }").function("k"), 1, 32, [])
    with pytest.raises(EmulatorError, match="out of device memory"):
        device.load(HEAD + ".global .b8 x[9999999999];")


WORDS = re.compile(r"[%$._a-zA-Z][\w$.%:]*|\d+|\S")
STRANGE = (
    "0 -1 4294967296 %a %p %at {%a,%b} [%at] [0] _ !%p 0f7FC00000 %tid.x %clock64 ; } { .b128 .f16x2 .v4 .shared"
).split()


def test_broken_programs_raise_only_our_errors() -> None:
    """Words of a real program left out, exchanged and invented."""
    chosen = random.Random(5)
    words = WORDS.findall(CALLS)
    seen = set()
    for _ in range(250):
        lines: list[str] = [*CALLS.split("\n")]
        for _ in range(chosen.choice((1, 1, 3))):
            at = chosen.randrange(4, len(lines))
            found = list(WORDS.finditer(lines[at]))
            if found:
                match = chosen.choice(found)
                new = chosen.choice((chosen.choice(words), chosen.choice(STRANGE), "", match.group() + ".u8"))
                lines[at] = lines[at][: match.start()] + new + lines[at][match.end() :]
        device = Device(1 << 22, max_instructions=2000)
        try:
            device.launch(device.load("\n".join(lines)).function("k"), 1, 64, [device.upload(np.zeros(128, np.uint32))])
        except EmulatorError as error:
            seen.add(type(error))
    assert {PtxSyntaxError, Unsupported} <= seen
