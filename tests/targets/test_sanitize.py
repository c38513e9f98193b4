"""Kernels that check themselves: what is reported, in which words, and what is not."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tests.targets.sanitized import line_of, report
from tilework import knobs
from tilework.errors import SanitizerError
from tilework.oracles.interpreter import AccessError, register_memory
from tilework.tools.tensor_descriptor import TensorDescriptor

HERE = Path(__file__)
ROOT = Path(tilework.__file__).parent.parent


@tilework.jit(sanitize=True)
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@tilework.jit(sanitize=True)
def copy_rows(x, out, rows, columns, row, column, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    tl.store(out + i * N + j, tl.load(x + i * row + j * column, mask=mask), mask=mask)


@tilework.jit(sanitize=True)
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@tilework.jit(sanitize=True)
def one(x, at):
    tl.store(x + at, 7.0)


def floats(count: int, dtype: Any = np.float32) -> Any:
    return np.arange(count).astype(dtype)


# Bounds


@pytest.mark.parametrize("n", [1, 15, 16, 1000, 1024])
def test_a_good_kernel_is_left_alone(n: int) -> None:
    x, out = floats(n), np.zeros(n, np.float32)
    copy[(8,)](x, out, n, BLOCK=128)
    np.testing.assert_array_equal(out, x)


def test_a_read_outside_says_where_and_what() -> None:
    text = report(lambda: copy[(8,)](floats(1000), np.zeros(1024, np.float32), 1001, BLOCK=128))
    line = line_of("v = tl.load(x + i, mask=i < n)")
    assert text.splitlines() == [
        f"{HERE}:{line}:9: error: program (7, 0, 0) reads element 1000 of argument 'x', which has 1000 elements"
        " (out of bounds)",
        f"{line:5d} |     v = tl.load(x + i, mask=i < n)",
        "      |         ^ index (1000,) of an array of shape (1000,)",
    ]


def test_a_write_outside_stops_before_it_is_done() -> None:
    memory = np.zeros(1024, np.float32)
    text = report(lambda: copy[(8,)](floats(1024), memory[:1000], 1001, BLOCK=128))
    assert "program (7, 0, 0) writes element 1000 of argument 'out', which has 1000 elements" in text
    assert not memory[1000:].any()


def test_the_error_is_the_interpreters_too_and_the_process_goes_on() -> None:
    with pytest.raises(AccessError):
        copy[(1,)](floats(4), np.zeros(4, np.float32), 5, BLOCK=16)
    out = np.zeros(4, np.float32)
    copy[(1,)](floats(4), out, 4, BLOCK=16)
    np.testing.assert_array_equal(out, floats(4))


def test_an_index_before_the_array() -> None:
    x = np.zeros(64, np.float32)
    assert "writes element -3 of argument 'x', which has 32 elements" in report(lambda: one[(1,)](x[16:48], -3))
    assert not x.any()


def test_one_element_in_the_last_place_and_behind_it() -> None:
    x = np.zeros(33, np.float32)
    one[(1,)](x[:32], 31)
    assert x[31] == 7
    assert "index (32,) of an array of shape (32,)" in report(lambda: one[(1,)](x[:32], 32))
    assert x[32] == 0


@pytest.mark.parametrize("bad", [64, -1, 2**30, -(2**31)])
@pytest.mark.parametrize("lane", [0, 5, 63])
def test_one_lane_of_a_gather(bad: int, lane: int) -> None:
    index = np.arange(64, dtype=np.int32)[::-1].copy()
    out = np.zeros(64, np.float32)
    gathered[(1,)](floats(64), index, out, BLOCK=64)
    np.testing.assert_array_equal(out, floats(64)[::-1])
    index[lane] = bad
    text = report(lambda: gathered[(1,)](floats(64), index, np.zeros(64, np.float32), BLOCK=64))
    assert f"reads element {bad} of argument 'x', which has 64 elements" in text


def test_a_view_with_strides_ends_at_its_last_byte() -> None:
    whole = floats(64).reshape(8, 8)
    view, out = whole[1:7, ::2], np.zeros((8, 4), np.float32)
    copy_rows[(1,)](view, out, 6, 4, 8, 2, M=8, N=4)
    np.testing.assert_array_equal(out[:6], view)
    text = report(lambda: copy_rows[(1,)](view, out, 7, 4, 8, 2, M=8, N=4))
    assert "reads element 48 of argument 'x', which has 47 elements" in text
    assert "index (6, 0) of an array of shape (6, 4) and strides (32, 8) in bytes" in text


def test_a_view_that_runs_backwards() -> None:
    whole = floats(32)
    view, out = whole[20:10:-1], np.zeros(16, np.float32)
    copy_rows[(1,)](view, out, 1, 10, 0, -1, M=1, N=16)
    np.testing.assert_array_equal(out[:10], view)
    text = report(lambda: copy_rows[(1,)](view, out, 1, 11, 0, -1, M=1, N=16))
    assert "reads element -10 of argument 'x', which has 10 elements" in text and "index (10,)" in text


@pytest.mark.parametrize("dtype", ["i1", "i2", "i8", "f2", "f8", "?"])
def test_elements_of_every_size(dtype: str) -> None:
    memory = np.zeros(64, dtype)
    out = np.zeros(40, dtype)
    copy[(1,)](memory[:40], out, 40, BLOCK=64)
    text = report(lambda: copy[(1,)](memory[:40], out, 41, BLOCK=64))
    assert "reads element 40 of argument 'x', which has 40 elements" in text


def test_arrays_without_elements() -> None:
    nothing = np.zeros(0, np.float32)
    copy[(4,)](nothing, nothing, 0, BLOCK=16)
    assert "which has 0 elements" in report(lambda: copy[(4,)](nothing, nothing, 1, BLOCK=16))


def test_none_and_bare_addresses() -> None:
    out = np.zeros(16, np.float32)
    masked_none[(1,)](None, out, 0)
    assert "reads argument 'x', which is None" in report(lambda: masked_none[(1,)](None, out, 1))
    masked_none[(1,)](out.ctypes.data, out, 16)  # an address inside an argument
    assert "in no array the kernel was given" in report(lambda: masked_none[(1,)](64, out, 1))


@tilework.jit(sanitize=True)
def masked_none(x: tl.pointer_type(tl.float32), out, n):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0))


@tilework.jit(sanitize=True)
def as_words(x, at):
    p = (x + at).to(tl.pointer_type(tl.int32))
    tl.store(p + tl.arange(0, 4), 1)


@tilework.jit(sanitize=True)
def add_word(x, at):
    tl.atomic_add((x + at).to(tl.pointer_type(tl.int32)), 1)


def test_misaligned_pointers() -> None:
    raw = np.zeros(64, np.int8)
    as_words[(1,)](raw, 8)
    assert raw[8] == 1
    text = report(lambda: as_words[(1,)](raw, 9))
    assert "writes element 9 of argument 'x' plus 0 bytes" in text and "(misaligned)" in text
    assert "updates element 2 of argument 'x' plus 0 bytes" in report(lambda: add_word[(1,)](raw, 2))
    assert raw.sum() == 4


def test_an_array_that_is_not_aligned() -> None:
    raw = np.zeros(4 * 32 + 1, np.uint8)
    odd, out = raw[1:].view(np.float32), np.zeros(32, np.float32)
    odd[:] = floats(32)
    copy[(1,)](odd, out, 32, BLOCK=32)
    np.testing.assert_array_equal(out, odd)
    assert "reads element 32 of argument 'x'" in report(lambda: copy[(1,)](odd, out, 33, BLOCK=64))
    with pytest.raises(ValueError, match="not aligned to 4 bytes"):
        atomics[(1,)](raw[1:].view(np.int32), np.zeros(4, np.int32), BLOCK=4)


# Where pointers come from


@tilework.jit(sanitize=True)
def chosen(x, y, out, which, n):
    i = tl.arange(0, 16)
    p = x if which == 0 else y
    for _ in range(n):
        p += 16
    tl.store(out + i, tl.load(p + i))


def test_pointers_through_branches_and_loops() -> None:
    x, y, out = floats(32), floats(48) + 100, np.zeros(16, np.float32)
    chosen[(1,)](x, y, out, 0, 1)
    np.testing.assert_array_equal(out, x[16:])
    chosen[(1,)](x, y, out, 1, 2)
    np.testing.assert_array_equal(out, y[32:])
    assert "(out of bounds)" in report(lambda: chosen[(1,)](x, y, out, 0, 10**6))
    assert "(out of bounds)" in report(lambda: chosen[(1,)](x, y, out, 1, 10**6))


@tilework.jit(sanitize=True)
def next_door(x, y):
    tl.store(x + 8, tl.load(y))


def test_an_array_that_begins_where_another_ends() -> None:
    both = np.zeros(16, np.float32)
    assert "writes element 8 of argument 'x'" in report(lambda: next_door[(1,)](both[:8], both[8:]))


@tilework.jit(sanitize=True)
def through_memory(table, out):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(p + i))


def test_addresses_that_were_loaded() -> None:
    hidden, out = floats(16), np.zeros(16, np.float32)
    table = np.array([hidden.ctypes.data])
    text = report(lambda: through_memory[(1,)](table, out))
    assert "which is in no array the kernel was given" in text and "register_memory" in text
    register_memory(hidden)
    through_memory[(1,)](table, out)
    np.testing.assert_array_equal(out, hidden)


@tilework.jit(noinline=True)
def store_apart(p, value):
    tl.store(p + tl.arange(0, 16), value)
    return value + 1


@tilework.jit(sanitize=True)
def calling(x, done, offset):
    again = store_apart(x + offset, 1.0)
    tl.store(done, again)


def test_functions_that_are_not_inlined_end_their_caller() -> None:
    x, done = np.zeros(32, np.float32), np.zeros(1, np.float32)
    calling[(1,)](x, done, 16)
    assert x[16:].all() and done[0] == 2
    done[0] = 0
    text = report(lambda: calling[(1,)](x, done, 17))
    assert "of argument 'x', which has 32 elements" in text and "tl.store(p + tl.arange(0, 16), value)" in text
    assert done[0] == 0


@tilework.jit(sanitize=True)
def endless(x, n):
    i = 0
    while i < n:
        tl.store(x + i, 1.0)
        i += 1


def test_while_loops_stop() -> None:
    x = np.zeros(16, np.float32)
    endless[(1,)](x[:8], 8)
    assert x[:8].all()
    assert "writes element 8" in report(lambda: endless[(1,)](x[:8], 2**31 - 1))
    assert not x[8:].any()


@tilework.jit(sanitize=True)
def atomics(x, index, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + tl.load(index + i), 1, mask=i < BLOCK - 1)


@tilework.jit(sanitize=True)
def exchange(x, at):
    tl.atomic_cas(x + at, 0, 1)


def test_atomics() -> None:
    x, index = np.zeros(8, np.int32), np.array([0, 1, 1, 999], np.int32)
    atomics[(1,)](x, index, BLOCK=4)
    assert x[:2].tolist() == [1, 2]
    index[1] = 8
    assert "updates element 8 of argument 'x'" in report(lambda: atomics[(1,)](x, index, BLOCK=4))
    exchange[(1,)](x, 7)
    assert x[7] == 1
    assert "updates element -1 of argument 'x'" in report(lambda: exchange[(1,)](x, -1))


@tilework.jit(sanitize=True)
def block_pointers(x, out, rows, columns, check: tl.constexpr):
    source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (16, 16), (1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option="zero") if check else tl.load(source)
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], tile)


def test_block_pointers() -> None:
    x, out = floats(15 * 16).reshape(15, 16), np.zeros((16, 16), np.float32)
    block_pointers[(1,)](x, out, 15, 16, check=True)
    np.testing.assert_array_equal(out[:15], x)
    text = report(lambda: block_pointers[(1,)](x, out, 15, 16, check=False))
    assert "reads element 240 of argument 'x'" in text and "index (15, 0) of an array of shape (15, 16)" in text
    assert "reads element 240" in report(lambda: block_pointers[(1,)](x, out, 16, 16, check=True))


@tilework.jit(sanitize=True)
def described(source, out):
    tile = source.load([0, 0])
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], tile)


def test_descriptors() -> None:
    x, out = floats(15 * 16).reshape(15, 16), np.zeros((16, 16), np.float32)
    described[(1,)](TensorDescriptor(x, [15, 16], [16, 1], [16, 16]), out)
    np.testing.assert_array_equal(out[:15], x)
    text = report(lambda: described[(1,)](TensorDescriptor(x, [16, 16], [16, 1], [16, 16]), out))
    assert "reads element 240 of argument 'source'" in text


@tilework.jit(sanitize=True)
def tupled(arrays, n):
    i = tl.arange(0, 16)
    tl.store(arrays[1] + i, tl.load(arrays[0] + i, mask=i < n), mask=i < n)


def test_arrays_in_tuples() -> None:
    x, out = floats(8), np.zeros(16, np.float32)
    tupled[(1,)]((x, out), 8)
    assert "of argument 'arrays[0]', which has 8 elements" in report(lambda: tupled[(1,)]((x, out), 9))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    whole = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    view, out = whole[:, :4], torch.zeros(8, 4)
    copy_rows[(1,)](view, out, 8, 4, view.stride(0), view.stride(1), M=8, N=4)
    assert torch.equal(out, view)
    text = report(lambda: copy_rows[(1,)](view, out, 8, 4, 9, 1, M=8, N=4))
    assert "reads element 63 of argument 'x', which has 60 elements" in text
    assert "index (7, 7) of an array of shape (8, 4) and strides (32, 4) in bytes" in text


# Arrays and grids that are refused, as without the sanitizer


def test_read_only_arrays_and_odd_grids() -> None:
    x, out = floats(16), np.zeros(16, np.float32)
    x.flags.writeable = False
    copy[(1,)](x, out, 16, BLOCK=16)
    with pytest.raises(ValueError, match="read-only"):
        copy[(1,)](out, x, 16, BLOCK=16)
    copy[(0,)](x, out, 10**6, BLOCK=16)
    with pytest.raises(ValueError, match="programs"):
        copy[(2**16, 2**15, 2)](x, out, 16, BLOCK=16)


def test_an_array_that_only_the_launch_holds() -> None:
    x = np.ones(1 << 16, np.float32)
    for _ in range(20):
        copy[(1 << 10,)](floats(1 << 16), x, 1 << 16, BLOCK=64)
    np.testing.assert_array_equal(x, floats(1 << 16))


# Settings


@tilework.jit
def plain(x, at):
    tl.store(x + at, 7.0)


def test_the_knob_and_the_option_and_the_cache() -> None:
    memory = np.zeros(16, np.float32)
    x = memory[:8]
    unchecked = plain[(1,)](x, 8)
    assert memory[8] == 7 and "ttc.check" not in unchecked.asm["ttcir"]
    assert "writes element 8" in report(lambda: plain[(1,)](x, 8, sanitize=True))
    with knobs.runtime.scope():
        knobs.runtime.sanitize = True
        assert "writes element 9" in report(lambda: plain[(1,)](x, 9))
        assert "ttc.check" not in plain[(1,)](x, 9, sanitize=False).asm["ttcir"] and memory[9] == 7
    assert plain[(1,)](x, 8) is unchecked
    checked = plain.warmup(np.zeros(8, np.float32), 8, grid=(1,), sanitize=True)
    assert "ttc.check" in checked.asm["ttcir"] and checked.hash != unchecked.hash and checked.metadata.sanitize


def test_the_variable_and_a_kernel_from_the_cache(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "import numpy as np\nimport tilework\nimport tilework.language as tl\n"
        "@tilework.jit\ndef plain(x, at):\n    tl.store(x + at, 7.0)\n"
        "try:\n    plain[(1,)](np.zeros(16, np.float32)[:8], 8)\nexcept RuntimeError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "TRITON_SANITIZE": "1", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = str(ROOT)
    for _ in range(2):
        done = run_python(str(script), cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stderr
        assert "program (0, 0, 0) writes element 8 of argument 'x', which has 8 elements" in done.stdout


def test_user_asserts_keep_their_words() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(RuntimeError, match="device-side assert triggered: no") as found:
        asserting[(1,)](x, 3, debug=True)
    assert not isinstance(found.value, SanitizerError)


@tilework.jit(sanitize=True)
def asserting(x, n):
    tl.device_assert(n < 3, "no")
    tl.store(x, 1.0)


def test_many_programs_on_several_threads() -> None:
    memory = np.zeros(1 << 20, np.float32)
    x, out = memory[: (1 << 19) + 5], np.zeros(1 << 20, np.float32)
    with knobs.runtime.scope():
        knobs.runtime.num_threads = 4
        for _ in range(5):
            text = report(lambda: copy[(1 << 12,)](x, out, 1 << 20, BLOCK=256))
            assert f"which has {(1 << 19) + 5} elements" in text
        copy[(1 << 12,)](x, out, (1 << 19) + 5, BLOCK=256)


def test_launches_from_several_threads_report_their_own() -> None:
    wrong: list[str] = []

    def work(count: int) -> None:
        for _ in range(20):
            text = report(lambda: copy[(4,)](floats(count), np.zeros(64, np.float32), count + 1, BLOCK=16))
            if f"reads element {count} of argument 'x', which has {count} elements" not in text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(count,)) for count in (20, 30, 40, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
