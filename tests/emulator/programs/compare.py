"""Compare what a GPU gave (see `on_gpu`) with the emulator, bit by bit.

    python -m tests.emulator.programs.compare results.npz

Programs that use approximate instructions may differ within their tolerance; all others must give the same bits.
"""

import sys

import numpy as np

from tests.emulator.programs.table import PROGRAMS, Program
from tests.emulator.test_programs import run
from tilework.oracles.emulator.device import Device


def verdict(program: Program, saved: dict[str, np.ndarray]) -> tuple[bool, str]:
    """The comparison of a program's results with NumPy's."""
    worst = 0.0
    same = True
    for number, mine in enumerate(run(program, Device())):
        theirs = saved.get(f"{program.name}.{number}")
        if theirs is None:
            continue
        same &= mine.reshape(-1).view(np.uint8).tobytes() == theirs.tobytes()
        a, b = mine.astype(np.float64).reshape(-1), theirs.view(mine.dtype).astype(np.float64).reshape(-1)
        worst = max(worst, float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-300)))
    if f"{program.name}.0" not in saved:
        return False, "not in the file"
    return same or (
        program.approximate and worst <= program.tolerance
    ), "the same bits" if same else f"differs by {worst:.2g} of the largest"


def main(file: str) -> int:
    saved = dict(np.load(file))
    wrong = 0
    for program in PROGRAMS:
        good, text = verdict(program, saved)
        wrong += not good
        print(f"{program.name}: {text}{'' if good else '  <- wrong'}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
