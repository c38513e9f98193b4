"""The findings of an explanation, as diagnostics for people and as JSON for programs.

add.py:21:1: note: add is compiled again: `n` = 1000 is not a multiple of 16, and 1024 was
   21 | add[grid](x, y, out, 1000, BLOCK=256)
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   note: 41 ms; the specialisation that is nearest was launched at add.py:20
   help: pad it to a multiple of 16, which is faster code, too
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tilework.errors import Diagnostic, Span

QUESTIONS = ("compiled", "tuned", "slow", "different")  # `different` only on request
SHOWN = 40  # findings of a section that people read


@dataclass(frozen=True)
class Finding:
    """One answer about a kernel: location, statement and advice; `facts` are its figures."""

    kernel: str
    title: str
    span: Span | None = None
    label: str = ""
    notes: tuple[str, ...] = ()
    help: str = ""
    callers: tuple[Span, ...] = ()
    severity: str = "note"
    weight: float = 0.0  # what matters most comes first
    facts: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Return the finding as a diagnostic, with the user's line if it has one."""
        if self.span is not None:
            shown = (self.span, self.title, self.label, self.help, self.notes, self.callers, self.severity)
            return Diagnostic(*shown).render()
        lines = [f"{self.kernel}: {self.severity}: {self.title}", *(f"   note: {note}" for note in self.notes)]
        return "\n".join([*lines, f"   help: {self.help}"] if self.help else lines)

    def to_json(self) -> dict[str, Any]:
        data = {name: value for name, value in asdict(self).items() if value not in (None, "", (), {}, 0.0)}
        return {"kernel": self.kernel, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Finding":
        """Build a finding from the dictionary of `asdict`."""
        span = Span(**data["span"]) if data["span"] else None
        lists = {"notes": tuple(data["notes"]), "callers": tuple(Span(**one) for one in data["callers"])}
        return cls(**{**data, "span": span, **lists})


@dataclass(frozen=True)
class Section:
    """The answers to one question, the most important ones first."""

    why: str  # "compiled", "tuned", "slow", "different"
    summary: str
    findings: tuple[Finding, ...] = ()

    def text(self) -> str:
        head = f"why {self.why}: {self.summary}"
        texts = [finding.text() for finding in self.findings[:SHOWN]]
        if len(self.findings) > SHOWN:
            texts.append(f"... and {len(self.findings) - SHOWN} more, which matter less; JSON has them all")
        return "\n".join([head, "-" * min(len(head), 120), *texts])


@dataclass(frozen=True)
class Explanation:
    """The result of `kernel.explain()`: `print` shows it, `to_json` is the same for programs."""

    sections: tuple[Section, ...]

    def __str__(self) -> str:
        return "\n\n".join(section.text() for section in self.sections)

    __repr__ = __str__

    def section(self, why: str) -> Section | None:
        """Return the answers to one question; None if `why` did not name it."""
        return next((section for section in self.sections if section.why == why), None)

    def to_json(self) -> str:
        """Return all findings as JSON, by question."""
        data = {
            section.why: {
                "summary": section.summary,
                "findings": [finding.to_json() for finding in section.findings],
            }
            for section in self.sections
        }
        return json.dumps(data, indent=1, default=str)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by descending weight; equal ones keep their order."""
    return tuple(sorted(findings, key=lambda finding: -finding.weight))


def counted(count: int, noun: str, nouns: str = "") -> str:
    """``1 kernel``, ``3 kernels``."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def listed(texts: Sequence[str], most: int = 6) -> str:
    """``64, 128, 256 and 9 more``."""
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


def milliseconds(seconds: float) -> str:
    """``41 ms``, ``2.31 s``."""
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
