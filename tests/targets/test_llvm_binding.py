"""llvmlite's own IR is imported by whoever uses it, and by nobody else."""

import subprocess
import sys

PROGRAM = """
import sys
from tilework.targets.llvm.binding import llvm
import llvmlite
assert "llvmlite.ir" not in sys.modules and not hasattr(llvmlite, "ir")
with llvm.parse_assembly("@x = global {double, [2 x i8]} zeroinitializer") as module:
    (variable,) = module.global_variables
    from llvmlite import ir
    assert isinstance(ir, type(sys)) and ir is sys.modules["llvmlite.ir"]
    assert str(variable.global_value_type.as_ir(ir.global_context)) == "{double, [2 x i8]}"
"""


def test_the_classes_of_llvmlites_ir_come_when_they_are_used() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
