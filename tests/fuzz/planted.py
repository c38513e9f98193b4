"""The number of generated kernels that it takes to detect a planted defect.

python -m tests.fuzz.planted --jobs 14 --minutes 2     a line for each defect: after how many kernels, where, how

Each defect is put into a copy of the tree, where `python -m tests.fuzz` runs until it finds something. The numbers of
kernels that `make test` runs (`amount.py`) follow from this table.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.failures import ROOT


@dataclass(frozen=True)
class Defect:
    """A text in a file of the package, what stands there instead, and the devices whose code goes through it."""

    path: str
    text: str
    instead: str
    devices: str


DEFECTS = {
    "(x + y) - x is x": Defect(
        "transforms/folding/arith.py",
        "        if first is rhs:\n            return second\n    return None",
        "        if first is rhs:\n            return first\n    return None",
        "evaluator native",
    ),
    "a sum is as constant as its first term": Defect(
        "analysis/axis_transfer.py",
        "max(gcd(ka, cb), gcd(ca, kb))",
        "max(gcd(ka, cb), ca)",
        "native cuda:90 hip:gfx942",
    ),
    "padded lanes of a maximum hold 0": Defect(
        "transforms/tt/pad_tiles.py",
        "arith.MaxSIOp: lambda bits: -(1 << bits - 1)",
        "arith.MaxSIOp: lambda bits: 0",
        "cuda:80 cuda:90 hip:gfx942",
    ),
    "padded lanes of a xor hold 1": Defect(
        "transforms/tt/pad_tiles.py",
        "arith.XOrIOp: lambda bits: 0",
        "arith.XOrIOp: lambda bits: 1",
        "cuda:80 cuda:90 hip:gfx942",
    ),
    "nine bf16 are read at once": Defect(
        "targets/llvm/memory.py", "type.count % 8 == 1 and type.count > 1", "type.count < 0", "native"
    ),
    "inner loops hand on offsets first": Defect(
        "transforms/amd/canonicalize_pointers.py",
        "            if rewrite.has_offset(pointer):",
        "            if False:",
        "hip",
    ),
}


def noticed(defect: Defect, jobs: int, minutes: float, first: int) -> str:
    """After how many kernels, and how."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tilework", "tests"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
        path = Path(folder) / "tilework" / defect.path
        source = path.read_text()
        assert source.count(defect.text) == 1, f"{defect.path} has changed"
        path.write_text(source.replace(defect.text, defect.instead))
        words = [f"--{name}={value}" for name, value in (("jobs", jobs), ("minutes", minutes), ("first", first))]
        subprocess.run(
            [sys.executable, "-m", "tests.fuzz", *words, "--once", "--out", "out", "--only", *defect.devices.split()],
            cwd=folder,
            capture_output=True,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])},
        )
        rows = [json.loads(line) for line in (Path(folder) / "out" / "results.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows, 1):
        if row["outcome"] in ("different", "crashed", "lost"):
            return f"{number} kernels: {row['device']}, {row['generator'] or 'lost'}: {row['why'][:60]}"
    return f"not noticed by {len(rows)} kernels"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=2, help="for each defect")
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    for name, defect in DEFECTS.items():
        print(f"{name:44}{noticed(defect, args.jobs, args.minutes, args.first)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
