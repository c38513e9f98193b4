"""The mutated packages and modules, those that decide results, and the sample of their mutants."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.operators import Mutant, mutants_of

ROOMS: dict[str, tuple[str, ...]] = {
    "folding": ("transforms/folding",),
    "analysis": ("analysis",),
    "layouts": ("layouts",),
    "tt": ("transforms/tt",),
    "ttg": ("transforms/ttg",),
    "ttc": ("transforms/ttc",),
    "warp_specialize": ("transforms/warp_specialize",),
    "amd": ("transforms/amd",),
    "ttng": ("transforms/ttng",),
    "gpu": ("targets/gpu",),
    "cpu_lower": ("targets/cpu/lower",),
    "nvidia_lower": ("targets/nvidia/lower",),
    "amd_lower": ("targets/amd/lower",),
    "llvm": ("targets/llvm",),
    "numerics": ("numerics",),
    "launch_keys": (
        "runtime/launch/python/specialization.py",
        "runtime/launch/python/specialize.py",
    ),
    "cache_keys": ("runtime/kernel_cache/key.py",),
}
NO_RESULTS: dict[str, str] = {
    "tilework/layouts/picture.py": "draws layouts",
    "tilework/targets/llvm/debug.py": "writes line tables",
    "tilework/transforms/ttg/performance_remarks.py": "tells the user what is slow",
    "tilework/transforms/ttg/passes_for_tests.py": "prints analyses, peels loops",
}  # files of rooms that decide no result, and what they do instead


def files_of(room: str, root: Path) -> list[Path]:
    """The source files of a room."""
    paths = [root / "tilework" / path for path in ROOMS[room]]
    missing = [str(path) for path in paths if not path.exists()]
    assert not missing, f"ROOMS names files that do not exist: {missing}"
    files = (file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    return sorted(file for file in files if str(file.relative_to(root)) not in NO_RESULTS)


def all_files(root: Path) -> list[Path]:
    return [file for room in ROOMS for file in files_of(room, root)]


def mutants_in(room: str, root: Path) -> list[Mutant]:
    return [
        mutant
        for file in files_of(room, root)
        for mutant in mutants_of(str(file.relative_to(root)), file.read_text(encoding="utf-8"))
    ]


def shares(count: int, sizes: dict[str, int]) -> dict[str, int]:
    """Divide `count` mutants among the rooms by the square root of their size, so that small rooms count."""
    weights = {room: math.sqrt(size) for room, size in sizes.items()}
    return {
        room: min(sizes[room], math.ceil(count * weight / sum(weights.values()))) for room, weight in weights.items()
    }


def sample(count: int, seed: int, root: Path, rooms: Sequence[str] = tuple(ROOMS)) -> list[Mutant]:
    """At least `count` mutants over all `rooms`. The choice depends on `seed` and on the mutants' ids only, so that it
    mostly stays when sources change; a second mutant of a function comes after the first ones of all functions."""
    found = {room: mutants_in(room, root) for room in rooms}
    share = shares(count, {room: len(mutants) for room, mutants in found.items()})
    chosen: list[Mutant] = []
    for room, mutants in found.items():
        kept = [
            mutant
            for mutant in in_turn(mutants, seed)[: 2 * share[room] + 20]
            if mutant.compiles((root / mutant.file).read_text(encoding="utf-8"))
        ]
        chosen += kept[: share[room]]
    return chosen


def in_turn(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """One mutant of each function, then a second one of each, and so on; otherwise by a hash of the id."""

    def rank(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.id}".encode()).hexdigest()

    turns: dict[tuple[str, str], int] = defaultdict(int)
    order: list[tuple[int, str, Mutant]] = []
    for mutant in sorted(mutants, key=rank):
        path = (mutant.file, mutant.function)
        order.append((turns[path], rank(mutant), mutant))
        turns[path] += 1
    return [mutant for _, _, mutant in sorted(order, key=lambda entry: entry[:2])]
