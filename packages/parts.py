"""The command of setuptools that collects Python files, for each of the two wheels (`split.py`)."""

from pathlib import Path
from typing import Any

from setuptools.command.build_py import build_py
from split import ROOT, runtime_modules, version

Found = list[tuple[str, str, str]]  # (package, module, file)


class Part(build_py):
    """Takes the modules that belong to it, and the files beside them."""

    def belongs(self, module: str) -> bool:
        raise NotImplementedError

    def find_package_modules(self, package: str, package_dir: str) -> Found:
        found: Found = super().find_package_modules(package, package_dir)
        if self.editable_mode:
            return found
        return [row for row in found if self.belongs(".".join(row[:2]).removesuffix(".__init__"))]

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        """Files beside modules go with the package that they are in."""
        found: list[str] = super().find_data_files(package, src_dir)
        return [path for path in found if self.editable_mode or self.belongs(owner_of(Path(path)))]


def owner_of(path: Path) -> str:
    """The package whose folder a file is in, or below."""
    folder = path.resolve().parent
    while not (folder / "__init__.py").exists():
        folder = folder.parent
    return ".".join(folder.relative_to(ROOT).parts)


class RuntimePart(Part):
    """Of `tilework`."""

    def belongs(self, module: str) -> bool:
        return module in runtime_modules()


class CompilerPart(Part):
    """Of `tilework-compiler`, with the version that it was built with (`runtime/compile/compiler_presence.py` compares
    it)."""

    def belongs(self, module: str) -> bool:
        return module not in runtime_modules()

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            path = Path(self.build_lib, "tilework", "compiler_version.txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{version()}\n")

    def get_outputs(self, *args: Any, **kwargs: Any) -> list[str]:
        made: list[str] = super().get_outputs(*args, **kwargs)
        return [*made, str(Path(self.build_lib, "tilework", "compiler_version.txt"))]
