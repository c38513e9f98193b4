"""Compile the programs of this folder and the planted bugs to PTX with nvcc, to be checked in beside their sources.

    python -m tests.emulator.programs.build [NAME ...]

Code is for sm_80, or for sm_90a where the source says "Built for sm_90a". Line numbers stay, the paths of this machine
do not.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "planted")
FILE = re.compile(r'(\.file\s+\d+\s+)"[^"]*/([^"/]+)"(?:,\s*\d+,\s*\d+)?')
DEBUG = re.compile(r"^\s*\.section\s+\.debug_\w+\s*\{.*?^\s*\}\s*$", re.MULTILINE | re.DOTALL)


def build(source: Path) -> Path:
    """The PTX of a source file, written beside it."""
    arch = "sm_90a" if "Built for sm_90a" in source.read_text() else "sm_80"
    target = source.with_suffix(".ptx")
    command = ["nvcc", "-ptx", f"-arch={arch}", "-lineinfo", "-std=c++17", "-o", target.name, source.name]
    subprocess.run(command, cwd=source.parent, check=True)
    text = FILE.sub(r'\1"\2"', target.read_text())
    target.write_text(DEBUG.sub("", text).rstrip() + "\n")
    return target


def main(names: list[str]) -> None:
    for folder in FOLDERS:
        for source in sorted(folder.glob("*.cu")):
            if not names or source.stem in names:
                print(build(source).name)


if __name__ == "__main__":
    main(sys.argv[1:])
