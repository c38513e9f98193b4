"""The findings of the checker, and the error that reports them.

>>> site = Site("k.cu:7", 31, "ld.shared.u32 %r1, [%r2];")
>>> finding = Finding("race", "thread (3, 0, 0) loads what thread (0, 0, 0) stores", (site,))
>>> print(finding)
race: thread (3, 0, 0) loads what thread (0, 0, 0) stores
  at k.cu:7, PTX line 31: ld.shared.u32 %r1, [%r2];
"""

from dataclasses import dataclass
from typing import Any

from tilework.oracles.emulator.syntax import EmulatorError

MOST = 200  # findings that are kept

SHOWN = 20  # findings that one error spells out


@dataclass(frozen=True)
class Site:
    """One instruction: its source line, its line in the PTX or LLVM text, its text."""

    source: str
    line: int
    text: str
    locations: tuple[tuple[str, int], ...] = ()  # (file, line), then those where it is inlined
    language: str = "PTX"

    @classmethod
    def of(cls, ins: Any) -> "Site":
        return cls(ins.location, ins.line, ins.text, ins.locations, ins.language)

    def __str__(self) -> str:
        return (f"{self.source}, " if self.source else "") + f"{self.language} line {self.line}: {self.text}"


@dataclass(frozen=True)
class Finding:
    """One error. `sites` are the instruction that shows it and, for a race, the one it races with."""

    kind: str
    what: str
    sites: tuple[Site, ...] = ()
    address: int | None = None  # of a bad access to global memory
    block: tuple[int, int, int] = (0, 0, 0)

    @property
    def key(self) -> tuple[str, tuple[Site, ...]]:
        """Findings that differ only in their threads have the same key."""
        return self.kind, self.sites

    def __str__(self) -> str:
        lines = [f"  {'and' if index else 'at'} {site}" for index, site in enumerate(self.sites)]
        return "\n".join([f"{self.kind}: {self.what}", *lines])


class Findings(list[Finding]):
    """The findings of one launch, without duplicates."""

    def add(self, finding: Finding) -> None:
        if len(self) < MOST and all(known.key != finding.key for known in self):
            self.append(finding)


class CheckFailed(EmulatorError):
    """A launch in which the checker found errors; `findings` has all of them."""

    def __init__(self, kernel: str, findings: list[Finding]) -> None:
        shown = "\n".join(str(finding) for finding in findings[:SHOWN])
        more = f"\n... and {len(findings) - SHOWN} more" if len(findings) > SHOWN else ""
        count = "one finding" if len(findings) == 1 else f"{len(findings)} findings"
        super().__init__(f"{kernel}: {count}\n{shown}{more}")
        self.findings = findings
