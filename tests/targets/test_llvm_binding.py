"""llvmlite is loaded without its own IR, which is imported by whoever uses it; its library is opened ahead."""

import subprocess
import sys

PROGRAM = """
import sys
from tilework.targets.llvm.compile import llvm
import llvmlite
assert "llvmlite.ir" not in sys.modules and not hasattr(llvmlite, "ir")
with llvm.parse_assembly("@x = global {double, [2 x i8]} zeroinitializer") as module:
    (variable,) = module.global_variables
    from llvmlite import ir
    assert isinstance(ir, type(sys)) and ir is sys.modules["llvmlite.ir"]
    assert str(variable.global_value_type.as_ir(ir.global_context)) == "{double, [2 x i8]}"
"""

AHEAD = """
import os, sys, threading
from tilework.targets.llvm.apart import open_ahead
open_ahead()
if (child := os.fork()) == 0:               # whenever that is: the child can go on
    from tilework.targets.llvm.compile import llvm
    os._exit(0 if llvm.llvm_version_info[0] > 10 else 1)
assert os.waitpid(child, 0)[1] == 0
for thread in set(threading.enumerate()) - {threading.main_thread()}:
    thread.join()
assert "llvmlite.binding" not in sys.modules
if sys.platform == "linux":
    with open("/proc/self/maps") as maps:
        assert "libllvmlite" in maps.read()
"""


def test_the_library_is_opened_ahead() -> None:
    subprocess.run([sys.executable, "-c", AHEAD], check=True)


def test_the_classes_of_llvmlites_ir_come_when_they_are_used() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
