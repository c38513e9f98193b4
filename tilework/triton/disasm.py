"""The instructions of a cubin with their scheduling, as Triton shows them.

    >>> print(get_sass(kernel.asm["cubin"]))
    Function:add
    --:-:1:-:1<TAB>LDC R1, c[0x0][0x28];
    LBB0:
    04:-:-:Y:3<TAB>IADD3 R2, R2, 0x1, RZ;

`targets/nvidia/cubin.py` explains the scheduling in front of an instruction, and shows all functions of a cubin; this
module shows the first, with labels for the targets of branches.
"""

import os
import re
import subprocess
import tempfile
from functools import lru_cache
from itertools import takewhile

from tilework import knobs
from tilework.targets.nvidia.cubin import FUNCTION, INSTRUCTION, tabulate

__all__ = ["extract", "get_sass", "path_to_cuobjdump"]

OFFSET = re.compile(r"\s*/\*(?P<offset>[0-9a-f]{4,})\*/")
BRANCH = re.compile(r"(?P<head>.*\bBRA\S*\s(?:.*\s)?`?\(?)(?P<target>0x[0-9a-f]+)(?P<tail>.*)")


def path_to_cuobjdump() -> str:
    """Return the path of cuobjdump; an error says where to get it."""
    return knobs.nvidia.cuobjdump.path


@lru_cache
def get_sass(cubin_asm: bytes, fun: str | None = None) -> str | None:
    """The first function of a cubin, or the one called `fun`; None if there is no such function."""
    descriptor, path = tempfile.mkstemp(suffix=".cubin")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(cubin_asm)
        return extract(path, fun)
    finally:
        os.remove(path)


def extract(file_path: str, fun: str | None) -> str | None:
    """The first function of a file, or the one called `fun`."""
    command = [path_to_cuobjdump(), "-sass", *(["-fun", fun] if fun is not None else []), file_path]
    text = subprocess.check_output(command).decode()
    found = shown(text)
    return None if not found else f"{found}\n"


def shown(printed: str) -> str:
    """The first function of what cuobjdump prints, with labels where branches go; "" if there is none."""
    lines = iter(printed.splitlines())
    name = next((found[2] for line in lines if (found := re.match(FUNCTION, line))), None)
    own = list(takewhile(lambda line: not re.match(FUNCTION, line), lines))
    offsets = [
        int(found["offset"], 16) for line in own if re.match(INSTRUCTION, line) and (found := OFFSET.match(line))
    ]
    rows = tabulate("\n".join(own)).splitlines()
    if name is None or not rows:
        return ""
    labels: dict[int, str] = {}
    listed = [(offset, labelled(row, labels)) for offset, row in zip(offsets, rows, strict=True)]
    body = (f"{labels[offset]}:\n{row}\n" if offset in labels else f"{row}\n" for offset, row in listed)
    return "".join([f"Function:{name}\n", *body])


def labelled(row: str, labels: dict[int, str]) -> str:
    """Return an instruction with the label that it branches to."""
    if (found := BRANCH.fullmatch(row)) is None:
        return row
    label = labels.setdefault(int(found["target"], 16), f"LBB{len(labels)}")
    return f"{found['head']}{label}{found['tail']}"
