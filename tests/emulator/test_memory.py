"""Loads, stores and atomics in every space and width."""

import os

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.ptx import HEAD, run
from tilework.oracles.emulator.device import Device

N = np.arange(64, dtype=np.uint32)


def test_narrow_loads_extend() -> None:
    data = np.random.default_rng(0).integers(0, 2**32, 64, dtype=np.uint32)
    for type, view in (("u8", np.uint8), ("s8", np.int8), ("u16", np.uint16), ("s16", np.int16)):
        got = run(f"mad.wide.u32 %at, %t, 4, %q0; ld.global.{type} d, [%at];", data, out=np.int32)
        assert got.tolist() == data.view(view)[:: 4 // np.dtype(view).itemsize].tolist()


def test_a_generic_address_reports_its_space() -> None:
    spaces = {"shared": "mov.u64 a, cell; cvta.shared.u64 a, a;", "local": "mov.u64 a, depot; cvta.local.u64 a, a;"}
    spaces["global"] = "mov.u64 a, %q0;"
    scope = ".reg .b64 %a; .shared .b8 cell[8]; .local .b8 depot[8];"
    for own, make in spaces.items():
        requested = [run(f"{make} isspacep.{space} d, a;", out=bool, threads=4, scope=scope) for space in spaces]
        assert [answer.tolist() for answer in requested] == [[space == own] * 4 for space in spaces]


@pytest.mark.parametrize("count", (2, 4))
@pytest.mark.parametrize("type", ("u8", "b16", "b32", "f32", "b64"))
def test_vectors(type: str, count: int) -> None:
    size = {"u8": 1, "b16": 2, "b32": 4, "f32": 4, "b64": 8}[type]
    if size * count > 16:
        count = 2
    registers = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}[size]
    names = [f"%v{i}" for i in range(count)]
    body = f"mad.wide.u32 %at, %t, {size * count}, %q0; ld.global.v{count}.{type} {{{', '.join(names)}}}, [%at];"
    body += (
        f"mad.wide.u32 %at, %t, {size * count}, %q1; st.global.v{count}.{type} [%at], {{{', '.join(reversed(names))}}};"
    )
    text = (
        f"{HEAD}.visible .entry k(.param .u64 p0, .param .u64 p1) {{ .reg .b64 %q<2>; .reg .b64 %at; "
        f".reg .b32 %t; .reg .{registers} %v<4>;"
    )
    text += f"ld.param.u64 %q0, [p0]; ld.param.u64 %q1, [p1]; mov.u32 %t, %tid.x; {body} ret; }}"
    device = Device(1 << 22)
    data = np.random.default_rng(1).integers(0, 256, (32, count, size), dtype=np.uint8)
    source, target = device.upload(data), device.upload(np.zeros_like(data))
    device.launch(device.load(text).function("k"), 1, 32, [source, target])
    np.testing.assert_array_equal(device.download(target, data), data[:, ::-1])


SPACES = (
    HEAD
    + """
.global .align 4 .b32 numbers[4] = {10, 20, 30, 40};
.const .align 4 .f32 factor = 0f40000000;
.global .align 8 .u64 where = numbers+8;
.global .align 8 .u64 anywhere = generic(numbers)+4;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out, .param .align 8 .b8 box[16], .param .f32 real, .param .u8 small) {
  .local .align 8 .b8 depot[32]; .shared .align 4 .b32 cell[64];
  .reg .b32 %t, %a, %b, %s; .reg .b64 %o, %at, %g, %l; .reg .f32 %f, %h; .reg .b16 %n;
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 64, %o;
  ld.global.u32 %a, [numbers+12]; st.global.u32 [%o], %a;
  ld.const.f32 %f, [factor]; st.global.f32 [%o+4], %f;
  ld.global.u64 %at, [where]; ld.global.u32 %a, [%at]; st.global.u32 [%o+8], %a;
  ld.global.u64 %at, [anywhere]; ld.u32 %a, [%at]; st.global.u32 [%o+12], %a;
  ld.param.u32 %a, [box+4]; st.global.u32 [%o+16], %a; ld.param.f32 %h, [real]; st.global.f32 [%o+20], %h;
  ld.param.u8 %n, [small]; cvt.u32.u16 %a, %n; st.global.u32 [%o+24], %a;
  mul.lo.u32 %b, %t, 7; st.local.u32 [depot+8], %b; mov.u64 %l, depot; cvta.local.u64 %g, %l; ld.u32 %a, [%g+8];
  st.global.u32 [%o+28], %a;
  shl.b32 %s, %t, 2; mov.u32 %b, cell; add.u32 %s, %s, %b; st.shared.u32 [%s], %t; cvt.u64.u32 %at, %s;
  cvta.shared.u64 %g, %at; ld.u32 %a, [%g]; st.global.u32 [%o+32], %a;
  mov.u32 %b, dynamic; st.shared.u32 [%b], %t; bar.sync 0; ld.shared.u32 %a, [dynamic]; st.global.u32 [%o+36], %a;
  mov.u64 %at, box; cvta.param.u64 %g, %at; ld.u32 %a, [%g+8]; st.global.u32 [%o+40], %a;
  ret;
}
"""
)


def test_every_space() -> None:
    device = Device(1 << 22)
    out = device.upload(np.zeros((32, 16), np.uint32))
    box = np.array([1, 2, 3, 4], np.uint32).tobytes()
    device.launch(device.load(SPACES).function("k"), 1, 32, [out, box, 1.5, 200], shared=64)
    got = device.copy_out(out, 32 * 64).view(np.uint32).reshape(32, 16)
    floats = got.view(np.float32)
    assert (got[:, 0] == 40).all() and (floats[:, 1] == 2).all() and (got[:, 2] == 30).all() and (got[:, 3] == 20).all()
    assert (got[:, 4] == 2).all() and (floats[:, 5] == 1.5).all() and (got[:, 6] == 200).all()
    assert got[:, 7].tolist() == [7 * t for t in range(32)] and got[:, 8].tolist() == list(range(32))
    assert (got[:, 9] == 31).all() and (got[:, 10] == 3).all()


INTEGER = {
    "add": lambda x, y: x + y, "min": min, "max": max, "and": lambda x, y: x & y, "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y, "exch": lambda x, y: y, "inc": lambda x, y: 0 if x >= y else x + 1,
    "dec": lambda x, y: y if x == 0 or x > y else x - 1,
}  # fmt: skip


@pytest.mark.parametrize("space", ("global", "shared"))
@pytest.mark.parametrize(
    ("name", "type"),
    [(name, type) for name in INTEGER for type in ("u32", "s32", "u64") if type == "u32" or name not in ("inc", "dec")],
)
def test_integer_atomics(name: str, type: str, space: str) -> None:
    """Four addresses, each hit by several threads; the old values show the order."""
    shown = f"b{type[1:]}" if name in ("and", "or", "xor", "exch") else type
    dtype = np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(type[1:]) // 8}")
    values = np.random.default_rng(2).integers(0, 50, 64).astype(dtype)
    size = dtype.itemsize
    where = (
        f"and.b32 %x, %t, 3; mad.wide.u32 %at, %x, {size}, %q1;"
        if space == "global"
        else f"and.b32 %x, %t, 3; mul.lo.u32 %x, %x, {size}; mov.u32 %y, cells; add.u32 %x, %x, %y;"
    )
    pointer = "%at" if space == "global" else "%x"
    start = np.zeros(64, dtype)
    got = run(
        f"{where} atom.{space}.{name}.{shown} d, [{pointer}], a;",
        values,
        start,
        out=dtype,
        scope=f".reg .b32 %x, %y; .shared .align 8 .b{8 * size} cells[4];",
    )
    for cell in range(4):
        value = 0
        for thread in range(cell, 64, 4):
            assert int(got[thread]) == value
            value = int(INTEGER[name](value, int(values[thread])))


def test_compare_and_swap() -> None:
    got = run("atom.global.cas.b32 d, [%q0], 5, %t;", np.full(32, 5, np.uint32), out=np.uint32)
    assert got.tolist() == [5] + [0] * 31


@pytest.mark.parametrize("type", ("f32", "f64"))
def test_float_atomics(type: str) -> None:
    dtype = np.dtype(np.float32 if type == "f32" else np.float64)
    values = np.random.default_rng(3).normal(size=32).astype(dtype)
    start = np.zeros(32, dtype)
    got = run(f"atom.global.add.{type} d, [%q1], a;", values, start, out=dtype)
    total = dtype.type(0)
    for old, value in zip(got, values, strict=True):
        assert old == total
        total = total + value


def test_packed_atomics() -> None:
    values = np.random.default_rng(4).normal(size=(32, 2))
    for type, dtype in (("f16x2", np.dtype(np.float16)), ("bf16x2", np.dtype(ml_dtypes.bfloat16))):
        words = values.astype(dtype)
        got = run(
            f"atom.global.add.noftz.{type} d, [%q1], a;",
            words.view(np.uint32)[:, 0],
            np.zeros(32, np.uint32),
            out=np.uint32,
        )
        total = np.zeros(2, dtype)
        for old, value in zip(got.view(dtype).reshape(-1, 2), words, strict=True):
            assert (old == total).all()
            total = (total.astype(np.float32) + value.astype(np.float32)).astype(dtype)


def test_reductions_without_a_result() -> None:
    got = run(
        "red.global.add.u32 [%q1], a; bar.sync 0; ld.global.u32 d, [%q1];", N, np.zeros(64, np.uint32), out=np.uint32
    )
    assert (got == 2016).all()


def test_messages(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        HEAD
        + """
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
    .global .align 1 .b8 format[24] = {105, 61, 37, 100, 32, 120, 61, 37, 46, 50, 102, 32, 115, 61, 37, 115, 32, 37, 53,
    120, 124, 37, 37, 10};
    .global .align 1 .b8 word[3] = {104, 105, 0};
    .visible .entry k() {
      .local .align 8 .b8 depot[32]; .reg .b64 %a, %b, %f, %w; .reg .b32 %t; .reg .f64 %d;
      mov.u64 %b, depot; cvta.local.u64 %a, %b; mov.u32 %t, %tid.x;
      st.local.u32 [depot], %t; mov.f64 %d, 0d4004000000000000; st.local.f64 [depot+8], %d;
      mov.u64 %f, word; cvta.global.u64 %w, %f; st.local.u64 [depot+16], %w; mov.u32 %t, 255;
      st.local.u32 [depot+24], %t;
      mov.u64 %f, format; cvta.global.u64 %w, %f;
      { .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], %w; st.param.b64 [p1], %a;
      call.uni (r), vprintf, (p0, p1); }
      ret;
    }"""
    )
    text = text.replace("format[24]", "format[25]")
    device = Device(1 << 22)
    device.launch(device.load(text).function("k"), 1, 2, [])
    assert capsys.readouterr().out == "i=0 x=2.50 s=hi    ff|%\ni=1 x=2.50 s=hi    ff|%\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_memory_that_is_not_touched_costs_nothing() -> None:
    """More than the machine has, and a process with such memory can fork."""
    devices = [Device(1 << 36) for _ in range(8)]
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and len(devices) == 8
