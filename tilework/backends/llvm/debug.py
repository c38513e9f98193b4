"""Line tables: which line of which Python file an instruction comes from.

    lines = LineTable(module, emission="LineTablesOnly")      # for gdb, perf; "DebugDirectivesOnly" for PTX
    lines.describe(function, "kern.py", 10)
    b.location = lines.location(function, "kern.py", 11, 5)   # every following instruction carries it

A location in another file than its function's gets a lexical block for that file.
"""

import os

from tilework.backends.llvm.module import Function, Module


class LineTable:
    """The debug metadata of one module."""

    def __init__(self, module: Module, emission: str = "LineTablesOnly") -> None:
        self.module, self.emission = module, emission
        self.files: dict[Function, str] = {}
        module.flag("Debug Info Version", 3)
        module.flag("Dwarf Version", 4, behaviour=7)

    def file(self, path: str) -> str:
        folder, name = os.path.split(path)
        return self.module.node(f'!DIFile(filename: "{escaped(name)}", directory: "{escaped(folder)}")')

    def unit(self, path: str) -> str:
        """The compile unit; the first file asked for names it."""
        if self.module.compile_unit is None:
            self.module.compile_unit = self.module.node(
                f'distinct !DICompileUnit(language: DW_LANG_C, file: {self.file(path)}, producer: "tilework", '
                f"isOptimized: true, runtimeVersion: 0, emissionKind: {self.emission})"
            )
        return self.module.compile_unit

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
        """The node of one place in the source, to assign to `Builder.location`."""
        scope = function.subprogram
        assert scope is not None, f"describe @{function.name} before giving locations in it"
        if path != self.files[function]:
            scope = self.module.node(
                f"distinct !DILexicalBlockFile(scope: {scope}, file: {self.file(path)}, discriminator: 0)"
            )
        return self.module.node(f"!DILocation(line: {line}, column: {column}, scope: {scope})")


def escaped(text: str) -> str:
    return "".join(
        c if 32 <= ord(c) < 127 and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode()) for c in text
    )
