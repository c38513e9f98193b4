"""``python -m benchmarks.triton_cache ~/.triton/cache``: what decides the speed of the kernels that a program ran with
Triton.

Triton's cache has the TTIR, the TTGIR and the facts of every kernel it compiled. Ours is made from the same TTIR, for
the same target and options; the table has the kernels for which a decision differs (see `ttgir_decisions.py`), and the
bytes of shared memory are those that Triton's own metadata says. A name behind the folder chooses kernels that contain
it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.ttgir_decisions import Decisions, decisions, is_as_good, shown
from tilework.ir.parser import parse_module
from tilework.target import Target
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline


@dataclass(frozen=True)
class Entry:
    """One kernel of the cache."""

    path: Path  # without a suffix
    facts: dict[str, Any]

    @property
    def capability(self) -> int:
        return int(self.facts["target"]["arch"])

    def ours(self) -> Decisions:
        module = parse_module(self.path.with_suffix(".ttir").read_text())
        warps, stages, ctas = (self.facts[name] for name in ("num_warps", "num_stages", "num_ctas"))
        passes = ttgir_pipeline(Target.parse(f"cuda:{self.capability}"), warps, stages, ctas)
        run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
        return decisions(module)

    def theirs(self) -> Decisions:
        return decisions(parse_module(self.path.with_suffix(".ttgir").read_text()), self.facts["shared"])


def entries(cache: Path, words: Sequence[str]) -> Iterator[Entry]:
    """The kernels for NVIDIA GPUs that have all that is needed, by name."""
    for path in sorted(cache.rglob("*.ttgir"), key=lambda path: (path.name, str(path))):
        described = path.with_suffix(".json")
        if words and not any(word in path.stem for word in words):
            continue
        if path.with_suffix(".ttir").exists() and described.exists():
            facts = json.loads(described.read_text())
            if facts.get("target", {}).get("backend") == "cuda":
                yield Entry(path.with_suffix(""), facts)


def main(arguments: Sequence[str]) -> int:
    folder, *words = arguments
    count = same = refused = worse = 0
    print(f"{'kernel':44}{'decision':20}{'tilework':40}{'Triton':40}")
    for entry in entries(Path(folder).expanduser(), words):
        count += 1
        name = f"{entry.path.name[:38]} {entry.capability}"
        try:
            own, other = entry.ours(), entry.theirs()
        except Exception as error:
            refused += 1
            print(f"{name:44}REFUSED  {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            continue
        same += own == other
        for field in fields(Decisions):
            a, b = getattr(own, field.name), getattr(other, field.name)
            if a != b:
                good = is_as_good(field.name, a, b)
                worse += not good
                verdict = "as good" if good else "WORSE"
                print(f"{name:44}{field.name.replace('_', ' '):20}{shown(a)[:38]:40}{shown(b)[:38]:40}{verdict}")
    print(f"{count} kernels: {same} with the same decisions, {refused} refused, {worse} decisions worse")
    return int(worse + refused > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
