"""Object files in memory without LLVM: every kind of reference, protection, what is left to LLVM."""

import ctypes
import platform
import re
import struct
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tilework.targets.llvm import object_loader
from tilework.targets.llvm.compile import initialize_all, jit_load, to_object
from tilework.targets.llvm.object_loader import (
    _UNUSED,
    MACHINES,
    RELOCATION,
    X86,
    Layout,
    Object,
    Unknown,
    load_object,
    mapped,
)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine().lower() not in MACHINES, reason="LLVM loads the files of this system"
)
TEXT = """
@table = private unnamed_addr constant [4 x double] [double 1.0, double 2.5, double 3.0, double 4.0]
@state = global [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 16
@zeros = internal global [9000 x i8] zeroinitializer, align 64
@places = global [2 x ptr] [ptr @state, ptr @helper]
@theirs = external global ptr
declare double @exp(double)
declare i32 @give(i32)
define internal i64 @helper(i64 %i) noinline {
  %at = getelementptr i64, ptr @state, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  ret i64 %new
}
define i64 @whole(i64 %i) {
  %one = getelementptr ptr, ptr @places, i64 1
  %function = load ptr, ptr %one
  %found = call i64 %function(i64 %i)
  %given = call i32 @give(i32 5)
  %wide = sext i32 %given to i64
  %bytes = getelementptr i8, ptr @zeros, i64 8999
  store i8 3, ptr %bytes
  %byte = load i8, ptr %bytes
  %small = zext i8 %byte to i64
  %half = add i64 %found, %wide
  %sum = add i64 %half, %small
  ret i64 %sum
}
define double @real(i64 %i) {
  %at = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %at
  %y = call double @exp(double %x)
  %z = fadd double %y, 0x400921FB54442D18
  ret double %z
}
define ptr @address_of_exp() {
  ret ptr @exp
}
define <2 x i64> @wide() {
  %all = load <2 x i64>, ptr @state, align 16
  ret <2 x i64> %all
}
"""
GIVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda x: x + 100)
IMPORTS = {"give": ctypes.cast(GIVE, ctypes.c_void_p).value or 0}
NAMES = ["whole", "real", "address_of_exp", "state"]


def results(library: object) -> tuple[object, ...]:
    whole = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library["whole"])  # type: ignore[index]
    real = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(library["real"])  # type: ignore[index]
    index = ctypes.CFUNCTYPE(ctypes.c_void_p)(library["address_of_exp"])()  # type: ignore[index]
    state = (ctypes.c_int64 * 4).from_address(library["state"])  # type: ignore[index]
    exp = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(index)
    return whole(2), whole(2), real(1), exp(1.0), list(state)


def test_the_same_results_as_what_llvm_loads() -> None:
    data = to_object(TEXT)
    assert results(mapped(data, NAMES, IMPORTS)) == results(jit_load(data, NAMES, IMPORTS))


def test_code_cannot_be_written_and_data_not_run() -> None:
    library = mapped(to_object(TEXT), NAMES, IMPORTS)
    maps = [re.match(r"(\w+)-(\w+) (\S+)", line) for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [(int(row[1], 16), int(row[2], 16), row[3]) for row in maps if row]

    def protection(address: int) -> str:
        return next(kind for start, end, kind in ranges if start <= address < end)

    assert (protection(library["whole"]), protection(library["state"])) == ("r-xp", "rw-p")


def test_memory_is_freed_when_the_next_one_is_loaded() -> None:
    data = to_object(TEXT)
    library = mapped(data, NAMES, IMPORTS)
    memory = library.memory
    del library
    assert memory in _UNUSED  # whoever runs in it may return from it
    kept = mapped(data, NAMES, IMPORTS)
    assert memory not in _UNUSED and kept["whole"]


def test_the_end_of_a_process_leaves_code_to_the_threads_in_it(tmp_path: Path) -> None:
    """Helpers wait in the pool's code when Python takes down its modules, and its objects with them."""
    data = to_object(
        "declare i32 @usleep(i32)\ndefine void @f() {\n br label %again\nagain:\n call i32 @usleep(i32 50)\n"
        " br label %again\n}"
    )
    program = f"""
import atexit, ctypes, threading, time
from tilework.targets.llvm import object_loader
library = object_loader.mapped(bytes.fromhex({data.hex()!r}), ["f"], {{}})
threading.Thread(target=ctypes.CFUNCTYPE(None)(library["f"]), daemon=True).start()
time.sleep(0.05)
class Late:  # goes when nearly all else is gone
    def __del__(self, sleep=time.sleep):
        sleep(0.1)
object_loader.late = library.late = Late()
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_is_unusual_is_left_to_llvm() -> None:
    data = to_object("define i32 @f() {\n ret i32 7\n}")
    with pytest.raises(Unknown):
        mapped(data, ["nothing_here"], {})
    with pytest.raises(RuntimeError, match="nothing_here"):
        load_object(data, ["nothing_here"])
    unknown = bytearray(to_object(TEXT))
    index = unknown.find(RELOCATION.pack(*next(iter(relocations(bytes(unknown))))))
    struct.pack_into("<I", unknown, index + 8, 0x7777)
    with pytest.raises(Unknown, match="relocation"):
        mapped(bytes(unknown), NAMES, IMPORTS)
    threads = to_object("@x = thread_local global i32 3\ndefine i32 @f() {\n %v = load i32, ptr @x\n ret i32 %v\n}")
    with pytest.raises(Unknown):
        mapped(threads, ["f"], {})


def test_a_defect_of_the_loader_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM loads what is unusual, and does not stand in for mistakes of ours."""

    def failing(*_: object) -> None:
        raise IndexError("a mistake")

    monkeypatch.setattr(object_loader, "mapped", failing)
    with pytest.raises(IndexError, match="a mistake"):
        load_object(to_object("define i32 @f() {\n ret i32 7\n}"), ["f"])


def relocations(data: bytes) -> list[tuple[int, ...]]:
    """The rows of the first table of them."""
    found = Object(data, MACHINES[platform.machine().lower()])
    section = next(section for section in found.sections if section.type == 4)
    return list(RELOCATION.iter_unpack(section.data))


def test_calls_of_x86_go_through_stubs() -> None:
    initialize_all()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(reloc="pic", codemodel="small")
    with llvm.create_context() as context, llvm.parse_assembly(TEXT, context) as module:
        module.triple = "x86_64-unknown-linux-gnu"
        layout = Layout(Object(machine.emit_object(module), X86))
    base, far = 0x7000_0000_0000, {"exp": 0x7FFF_1234_5678, "give": 0x1111_2222}
    content, _ = layout.image(base, lambda name: far[name])
    seen = set()
    for section, offset, kind, symbol, _ in layout.relocations:
        if kind in X86.calls and symbol.name in far:
            at = layout.offsets[section] + offset
            (distance,) = struct.unpack_from("<i", content, at)
            stub = at + 4 + distance
            assert bytes(content[stub : stub + 6]) == bytes.fromhex("ff2502000000")
            assert struct.unpack_from("<Q", content, stub + 8) == (far[symbol.name],)
            seen.add(symbol.name)
    assert seen == set(far)
    (table,) = [index for symbol, index in layout.entries.items() if symbol.name == "exp"]
    assert struct.unpack_from("<Q", content, table) == (far["exp"],)
