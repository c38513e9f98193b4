"""Rules of LLVM code are imported when a kernel has one of their ops."""

import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from tilework.targets.llvm.rules import Rules

TABLES = {  # where the files of a table are listed, and where the table is
    "tilework.targets.cpu.lower.codegen": ("tilework.targets.cpu.lower.lowering", "CPU"),
    "tilework.targets.gpu.codegen": ("tilework.targets.gpu.lowering", "NEUTRAL"),
    "tilework.targets.nvidia.lower.emit": ("tilework.targets.nvidia.lower", "NVIDIA"),
    "tilework.targets.amd.lower.emit": ("tilework.targets.amd.lower", "AMD"),
}


@pytest.mark.parametrize("listed", TABLES)
def test_every_rule_is_found_by_the_name_of_its_op(listed: str) -> None:
    files: dict[str, str] = import_module(listed).MORE_RULES
    module, name = TABLES[listed]
    for file in (
        *files,
        *(file for other in TABLES if other.endswith("codegen") for file in import_module(other).MORE_RULES),
    ):
        import_module(file)
    table: Rules = getattr(import_module(module), name)
    rules = {**table.own.whole, **table.own.elementwise}
    wrong = {
        cls.name: rule.__module__
        for cls, rule in rules.items()
        if not cls.name.startswith(tuple(files.get(rule.__module__, cls.name).split()))
    }
    assert rules and not wrong
    assert {rule.__module__ for rule in rules.values()} >= files.keys()
    assert table.behind is not None and table.behind.known & rules.keys() == table.overriding


def test_what_a_kernel_does_not_need_is_not_loaded() -> None:
    program = """
import sys
from tilework.compiler import ASTSource, GPUTarget, lower
from examples.add import CASES
case = CASES[0]
cpu = ("targets.cpu.lower.dot_rules", "targets.cpu.lower.sort_runs", "transforms.tt.licm")
gpu = ("targets.nvidia.lower.wgmma_rules", "targets.gpu.dot_rules", "transforms.ttng.fence_insertion")
for target, unused in ((GPUTarget("cpu", "host", 1), cpu), (GPUTarget("cuda", 90, 32), gpu)):
    lower(ASTSource(case.kernel, case.types, case.constexprs, case.attrs), target, ["llir"])
    loaded = [name for name in unused if f"tilework.{name}" in sys.modules]
    assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_rules_can_be_requested_while_another_thread_imports_a_file_of_them() -> None:
    behind = Rules()
    ops: list[Any] = [type(f"Op{number}", (), {"name": f"op{number}"}) for number in range(3)]
    table = Rules(behind)

    class Watched(dict[Any, Any]):
        def __setitem__(self, op: Any, rule: Any) -> None:
            super().__setitem__(op, rule)
            assert table.resolved.whole[op] is rule  # what the other thread asks for now

        def items(self) -> Any:
            for item in super().items():
                yield item
                super().__setitem__(ops[-1], repr)

    for op in ops:
        behind.lowers(op)(print)
    table.own = table.own._replace(whole=Watched())
    table.lowers(*ops[:2], overrides=True)(str)
    assert table.resolved.whole == {ops[0]: str, ops[1]: str, ops[2]: print}
