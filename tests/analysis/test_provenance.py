"""The parameters from which a pointer may be derived, and the tables of pointers through which it was loaded."""

import pytest

from tilework.analysis.provenance import UNKNOWN, memory_provenance, pointer_provenance
from tilework.ir import tt
from tilework.ir.parser import parse_module

MODULE = """
tt.func public @kernel(%a: !tt.ptr<f32>, %t: !tt.ptr<i64>, %u: !tt.ptr<i64>, %i: i32, %c: i1, %n: i64) {{
  {text}
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}}
"""
LOADED = """
  %at = tt.addptr %{table}, %i : !tt.ptr<i64>, i32
  %number{table} = tt.load %at : !tt.ptr<i64>
  %from_{table} = tt.int_to_ptr %number{table} : i64 -> !tt.ptr<f32>
"""
FROM_T, FROM_U = (LOADED.format(table=table).replace("%at", f"%at{table}") for table in "tu")
OFFSET = "%p = tt.addptr %{of}, %i : !tt.ptr<f32>, i32"
CHOICE = "%p = arith.select %c, %{one}, %{other} : !tt.ptr<f32>"
NOWHERE = "%q = tt.int_to_ptr %n : i64 -> !tt.ptr<f32>\n"
CASES = {
    "a parameter": (OFFSET.format(of="a"), {0}, {0}),
    "a table": (FROM_T + OFFSET.format(of="from_t"), {UNKNOWN}, {-2 - 1}),
    "another table": (FROM_U + OFFSET.format(of="from_u"), {UNKNOWN}, {-2 - 2}),
    "two tables": (FROM_T + FROM_U + CHOICE.format(one="from_t", other="from_u"), {UNKNOWN}, {-2 - 1, -2 - 2}),
    "a table or a parameter": (FROM_T + CHOICE.format(one="from_t", other="a"), {UNKNOWN, 0}, {-2 - 1, 0}),
    "a number": (NOWHERE + OFFSET.format(of="q"), {UNKNOWN}, {UNKNOWN}),
    "a table at a number": (
        NOWHERE.replace("%q", "%w").replace("f32", "i64")
        + FROM_T.replace("tt.addptr %t", "tt.addptr %w")
        + OFFSET.format(of="from_t"),
        {UNKNOWN},
        {UNKNOWN},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_provenance_of_a_pointer(name: str) -> None:
    text, by_parameter, by_table = CASES[name]
    module = parse_module(MODULE.format(text=f"%f = arith.constant 0.0 : f32\n{text}"))
    (store,) = (op for op in module.walk() if isinstance(op, tt.StoreOp))
    assert pointer_provenance(module)[store.operands[0]] == by_parameter
    assert memory_provenance(module)[store.operands[0]] == by_table
