"""Line tables: which line of which Python file an instruction comes from.

    lines = LineTable(module, emission="LineTablesOnly")      # for gdb, perf; "DebugDirectivesOnly" for PTX
    lines.describe(function, "kern.py", 10)
    b.location = lines.location(function, "kern.py", 11, 5)   # every following instruction carries it

A location in another file than its function's gets a lexical block for that file.

LLVM_EXTRACT_DI_LOCAL_VARIABLES=1 also requests the names of values, as far as the user gave them one; of a tile the
first element of a thread represents all:

    %v4 = mul i32 %v3, 16, !dbg !9
    #dbg_value(i32 %v4, !10, !DIExpression(), !9)         !10 = !DILocalVariable(name: "offsets", ...)
"""

import os

from tilework import knobs
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Function, Module, escaped
from tilework.targets.llvm.types import Type
from tilework.targets.llvm.values import Value

UNITS = "llvm.dbg.cu"


class LineTable:
    """The debug metadata of one module."""

    def __init__(self, module: Module, emission: str = "LineTablesOnly") -> None:
        self.module = module
        self.files: dict[Function, str] = {}
        # by the id of a location: itself, and its node
        self.located: dict[Function, dict[int, tuple[object, str]]] = {}
        self.has_variables = knobs.compilation.dump_ir_extract_di_local_variables
        self.emission = "FullDebug" if self.has_variables and emission == "LineTablesOnly" else emission
        module.flag("Debug Info Version", 3)
        module.flag("Dwarf Version", 4, behaviour=7)

    def file(self, path: str) -> str:
        folder, name = os.path.split(path)
        return self.module.node(f'!DIFile(filename: "{escaped(name)}", directory: "{escaped(folder)}")')

    def unit(self, path: str) -> str:
        """The compile unit; the first file names it."""
        if (listed := self.module.lists.get(UNITS)) is not None:
            return listed[UNITS]
        text = (
            f'distinct !DICompileUnit(language: DW_LANG_C, file: {self.file(path)}, producer: "tilework", '
            f"isOptimized: true, runtimeVersion: 0, emissionKind: {self.emission})"
        )
        return self.module.list_node(UNITS, UNITS, text)

    def describe(self, function: Function, path: str, line: int) -> None:
        """Say where the source of `function` is."""
        file = self.file(path)
        kind = self.module.node(f"!DISubroutineType(types: {self.module.node('!{}')})")
        function.subprogram = self.module.node(
            f'distinct !DISubprogram(name: "{function.name}", linkageName: "{function.name}", '
            f"scope: {file}, file: {file}, "
            f"line: {line}, type: {kind}, scopeLine: {line}, spFlags: DISPFlagDefinition | DISPFlagOptimized, "
            f"unit: {self.unit(path)})"
        )
        self.files[function] = path

    def location(self, function: Function, path: str, line: int, column: int) -> str:
        """The node of one source location, to assign to `Builder.location`."""
        scope = function.subprogram
        assert scope is not None, f"describe @{function.name} before giving locations in it"
        if path != self.files[function]:
            scope = self.module.node(
                f"distinct !DILexicalBlockFile(scope: {scope}, file: {self.file(path)}, discriminator: 0)"
            )
        return self.module.node(f"!DILocation(line: {line}, column: {column}, scope: {scope})")

    def variable(self, b: Builder, name: str, value: Value, path: str, line: int) -> None:
        """Record that the user's variable `name` is `value` from here on."""
        if not b.location:
            return
        kind, scope = self.basic_type(value.type), b.function.subprogram
        node = self.module.node(
            f'!DILocalVariable(name: "{escaped(name)}", scope: {scope}, file: {self.file(path)}, line: {line},'
            f" type: {kind})"
        )
        b.block.lines.append(f"    #dbg_value({value.typed}, {node}, !DIExpression(), {b.location})")

    def basic_type(self, type: Type) -> str:
        """The type of a register, for debuggers."""
        bits = 64 if type.is_pointer else type.scalar.bits
        encoding = "DW_ATE_address" if type.is_pointer else "DW_ATE_float" if type.is_float else "DW_ATE_signed"
        return self.module.node(f'!DIBasicType(name: "{type}", size: {bits * type.count}, encoding: {encoding})')
