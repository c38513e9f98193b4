"""Objects, the in-process linker, PTX, line tables."""

import ctypes
import mmap
import subprocess
import sys

import pytest

from tests.targets.llvm_run import new_module, to_assembly
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import NVPTX, check, data_layout, jit_load, target_machine, to_object
from tilework.targets.llvm.debug import LineTable
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import f32, i32, i64, pointer, void


def adder(name: str = "add") -> Module:
    module = new_module()
    function = module.function(name, i32, [(i32, "x"), (i32, "y")])
    b = Builder(function)
    b.ret(b.add(*function.args))
    return module


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_runs(level: int) -> None:
    library = jit_load(to_object(adder().text(), level, verify=True), ["add"])
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(library["add"])(40, 2) == 42


def test_an_object_is_the_same_every_time_and_loads_in_another_process() -> None:
    data = to_object(adder().text(), 1)
    assert data == to_object(adder().text(), 1)
    program = (
        "import ctypes, sys; from tilework.targets.llvm.compile import jit_load;"
        "library = jit_load(bytes.fromhex(sys.stdin.read()), ['add']);"
        "print(ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(library['add'])(40, 2))"
    )
    done = subprocess.run([sys.executable, "-c", program], input=data.hex(), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "42"


def test_imported_functions() -> None:
    module = new_module()
    b = Builder(module.function("kernel", i32, []))
    b.ret(b.call("give", i32, []))
    give = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 7)
    address = ctypes.cast(give, ctypes.c_void_p).value
    assert address is not None
    library = jit_load(to_object(module.text()), ["kernel"], {"give": address})
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(library["kernel"])() == 7


TABLE = """
@table = internal constant [3 x double] [double 1.5, double 2.5, double 3.5]
@count = global i64 0
define double @get(i64 %i) {
  store i64 %i, ptr @count
  %at = getelementptr double, ptr @table, i64 %i
  %x = load double, ptr %at
  ret double %x
}
"""


def test_sections_are_next_to_each_other_where_memory_has_holes() -> None:
    """Each section was in a hole of its own, and two of them more than 2 GB apart ended the process."""
    pages = [mmap.mmap(-1, mmap.PAGESIZE) for _ in range(200)]
    for page in pages[::2]:
        page.close()
    data = to_object(TABLE)
    kept = [jit_load(data, ["get", "count"]) for _ in range(10)]
    assert max(abs(library["get"] - library["count"]) for library in kept) <= 4 * mmap.PAGESIZE


def test_a_missing_symbol_is_an_error_not_a_crash() -> None:
    data = to_object(adder().text())
    with pytest.raises(RuntimeError, match="nothing_here"):
        jit_load(data, ["nothing_here"])


def test_bad_text_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        check("define i32 @f( {")


def test_line_tables_reach_the_machine_code() -> None:
    module = new_module()
    lines = LineTable(module)
    function = module.function("kernel", i32, [(i32, "x")])
    lines.describe(function, "/somewhere/kern.py", 10)
    b = Builder(function)
    b.location = lines.location(function, "/somewhere/kern.py", 11, 5)
    value = b.mul(function.args[0], 3)
    b.location = lines.location(function, "/elsewhere/lib.py", 99, 1)
    b.ret(value)
    text = to_assembly(module.text(), verify=True)
    assert ".loc" in text and "kern.py" in text and "lib.py" in text


def test_ptx() -> None:
    machine = target_machine(NVPTX, "sm_90a", "+ptx80")
    module = Module("k", data_layout(machine))
    function = module.function(
        "k",
        void,
        [(pointer(1), "p")],
        convention="ptx_kernel",
        attributes=('"nvvm.reqntid"="128"',),
        param_attributes={0: "align 16"},
    )
    lines = LineTable(module, "DebugDirectivesOnly")
    lines.describe(function, "/somewhere/kern.py", 3)
    b = Builder(function)
    b.location = lines.location(function, "/somewhere/kern.py", 4, 1)
    (p,) = function.args
    thread = b.zext(b.intrinsic("nvvm.read.ptx.sreg.tid.x", i32, overload=""), i64)
    address = b.gep(p, thread, f32)
    with b.fast_math("contract"):
        b.store(b.fadd(b.fmul(b.load(f32, address), 2.0), 1.0), address)
    b.ret()
    text = to_assembly(f'target triple = "{NVPTX}"\n' + module.text(), 1, machine, verify=True)
    assert ".visible .entry k(" in text and "fma.rn.f32" in text and ".reqntid 128" in text
    assert ".target sm_90a\n" in text and ".loc" in text
