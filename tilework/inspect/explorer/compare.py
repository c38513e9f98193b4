"""Compare two compilations: the stages that differ, the first pass that makes them differ, and the metrics.

    found = compare(one, other)                  # each a document with one kernel (`document.py`)
    print(comparison_text(found))

Locations do not count: a kernel that moved in its file has the same code. Texts are compared line by line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tilework.inspect.explorer.document import TITLES
from tilework.inspect.findings import listed
from tilework.inspect.source_lines import edited

Lines = list[str]
Sides = list[tuple[Mapping[str, Any], Mapping[str, Any]]]  # documents, and the kernel of each
SHOWN = 24  # lines of a difference in a terminal
NAMED = 5  # passes that only one ran
NONE = (None, "")


@dataclass(frozen=True)
class TextDifference:
    """A text of both kernels; `edits` are [index of the line, number of removed lines, added lines]."""

    name: str
    before: Lines
    after: Lines
    edits: list[tuple[int, int, Lines]]

    @property
    def removed(self) -> int:
        return sum(count for _, count, _ in self.edits)

    @property
    def added(self) -> int:
        return sum(len(lines) for _, _, lines in self.edits)


@dataclass(frozen=True)
class Comparison:
    """The differences. `steps` are the passes that both ran, with their texts; `parted` names those that only one
    ran."""

    titles: tuple[str, str]
    metrics: list[tuple[str, Any, Any, str]]
    stages: list[TextDifference]
    only: list[tuple[str, int]]  # stages that only one has, and which
    steps: list[TextDifference]
    parted: str

    @property
    def first(self) -> int | None:
        """The first pass behind which the texts differ."""
        return next((index for index, step in enumerate(self.steps) if step.edits), None)


def compare(one: Mapping[str, Any], other: Mapping[str, Any]) -> Comparison:
    """Compare the first kernels of two documents."""
    sides = [(document, document["kernels"][0]) for document in (one, other)]
    a, b = (stage_texts(*side) for side in sides)
    sources = difference("source", *(source_lines(document, kernel["name"]) for document, kernel in sides))
    stages = [difference(name, a[name], b[name]) for name in a if name in b]
    only = [(name, int(name in b)) for name in dict.fromkeys([*a, *b]) if name not in a or name not in b]
    metrics = metrics_of(*(kernel for _, kernel in sides))
    return Comparison(titles_of(sides), metrics, [sources, *stages], only, *compared_steps(sides))


def stage_texts(document: Mapping[str, Any], kernel: Mapping[str, Any]) -> dict[str, Lines]:
    """The lines of each stage, by its title."""
    return {
        TITLES.get(name := str(stage["name"]), name): lines_of(document, stage["rows"]) for stage in kernel["stages"]
    }


def lines_of(document: Mapping[str, Any], rows: Sequence[int]) -> Lines:
    strings, ids = document["strings"], document["rowStrings"]
    return [strings[ids[row]] for row in rows]


def source_lines(document: Mapping[str, Any], kernel: str) -> Lines:
    """The user's functions, the kernel itself first."""
    parts = [part for file in document["files"] if not file["library"] for part in file["parts"]]
    ordered = sorted(parts, key=lambda part: part["name"] != kernel)
    return [document["strings"][line] for part in ordered for line in part["lines"]]


def difference(name: str, before: Lines, after: Lines) -> TextDifference:
    matcher = SequenceMatcher(None, before, after, autojunk=False) if before != after else None
    codes = [] if matcher is None else matcher.get_opcodes()
    edits = [(first, last - first, after[new:end]) for kind, first, last, new, end in codes if kind != "equal"]
    return TextDifference(name, before, after, edits)


def titles_of(sides: Sides) -> tuple[str, str]:
    """Kernel and target, and all that differs."""
    facts = [
        {**kernel["signature"], **kernel["constants"], **kernel["options"], "tilework": document["tilework"]}
        for document, kernel in sides
    ]
    differing = [name for name in dict.fromkeys([*facts[0], *facts[1]]) if facts[0].get(name) != facts[1].get(name)]
    left, right = (
        ", ".join([kernel["name"], kernel["target"], *(f"{name}={found[name]}" for name in differing if name in found)])
        for (_, kernel), found in zip(sides, facts, strict=True)
    )
    return left, right


def metrics_of(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any, str]]:
    left, right = ({name: (value, of) for name, value, of in kernel["metrics"]} for kernel in (a, b))
    totals = [kernel["counters"].get("total") for kernel in (a, b)]
    names = dict.fromkeys([*left, *right])
    pairs = [(name, *zip(left.get(name, NONE), right.get(name, NONE), strict=True)) for name in names]
    found = [(name, *values, both(*of)) for name, values, of in pairs]
    if None not in totals:
        columns = [{name: rest for name, *rest in kernel["counters"]["columns"]} for kernel in (a, b)]
        for name in [name for name in columns[0] if name in columns[1] and name not in ("coalescing", "tensor")]:
            of = both(*(f"{side[name][1]}, by {kernel['counters']['by']}" for side, kernel in zip(columns, (a, b))))
            found.append((columns[0][name][0], totals[0][name], totals[1][name], of))
    return found


def both(a: str, b: str) -> str:
    """The unit of a metric on both sides."""
    return a if a == b or not b else b if not a else f"a: {a}; b: {b}"


def texts_of(document: Mapping[str, Any], kernel: Mapping[str, Any]) -> Iterator[tuple[str, Lines]]:
    """The name of each pass, and the text behind it."""
    for run in kernel["runs"]:
        rows = run["rows"]
        for step in run["steps"]:
            rows = edited(rows, step["edits"])
            yield step["name"], lines_of(document, rows)


def compared_steps(sides: Sides) -> tuple[list[TextDifference], str]:
    """The passes that both ran, whose options may differ, and which passes only one of the two ran."""
    left, right = (list(texts_of(*side)) for side in sides)
    names = [[name.partition("{")[0] for name, _ in side] for side in (left, right)]
    steps: list[TextDifference] = []
    alone: list[list[str]] = [[], []]
    for kind, first, last, new, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind != "equal":
            alone[0] += names[0][first:last]
            alone[1] += names[1][new:end]
            continue
        for (name, before), (its, after) in zip(left[first:last], right[new:end], strict=True):
            steps.append(difference(name if name == its else f"{name} / {its}", before, after))
    return steps, "; ".join(
        f"only {side} ran {listed(some, NAMED)}" for side, some in zip("ab", alone, strict=True) if some
    )


# ---- as text


def comparison_text(found: Comparison) -> str:
    """Return the comparison as text for a terminal."""
    titles = [f"{side}: {title}" for side, title in zip("ab", found.titles, strict=True)]
    return "\n".join([*titles, "", *metric_rows(found), "", *stage_rows(found), "", *first_rows(found), ""])


def metric_rows(found: Comparison) -> list[str]:
    rows = [("", "a", "b", "", "")]
    for name, a, b, of in found.metrics:
        is_same = a == b
        change = (
            f"{round(b - a, 3):+,}" if isinstance(a, int | float) and isinstance(b, int | float) and not is_same else ""
        )
        rows.append((name, shown(a), shown(b), change, of))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    ]


def shown(value: Any) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


def difference_text(stage: TextDifference) -> str:
    if not stage.edits:
        return "the same"
    return f"differs: {stage.removed} of {len(stage.before)} lines became {stage.added} of {len(stage.after)}"


def stage_rows(found: Comparison) -> list[str]:
    rows = [f"{stage.name:<10} {difference_text(stage)}" for stage in found.stages]
    return rows + [f"{name:<10} only {'ab'[which]} has it" for name, which in found.only]


def first_rows(found: Comparison) -> list[str]:
    """The first pass behind which the texts differ, and the beginning of how."""
    if found.first is None:
        return [
            f"the {len(found.steps)} passes that both ran leave the same",
            *([found.parted] if found.parted else []),
        ]
    step = found.steps[found.first]
    title = f"the texts differ first behind {step.name} (pass {found.first + 1} of {len(found.steps)})"
    title = title if found.first else f"the texts differ from the first pass on ({step.name})"
    return [f"{title}:", *changed_lines(step, SHOWN), *([found.parted] if found.parted else [])]


def changed_lines(step: TextDifference, most: int) -> list[str]:
    """Return the removed and added lines, at most `most`."""
    rows = []
    for at, count, lines in step.edits:
        rows += [f"  - {line.strip()}" for line in step.before[at : at + count]] + [
            f"  + {line.strip()}" for line in lines
        ]
    return rows[:most] + ([f"  ... {len(rows) - most} lines more"] if len(rows) > most else [])


def unified(step: TextDifference) -> str:
    """Return a whole difference as text, as `diff -u` shows it."""
    from difflib import unified_diff  # lazily: only for `--show`

    return "\n".join(unified_diff(step.before, step.after, f"a {step.name}", f"b {step.name}", lineterm=""))


# ---- as a page


def data_of(found: Comparison) -> dict[str, Any]:
    """The data of the page: every string once, texts as indices."""
    ids: dict[str, int] = {}

    def text(lines: Lines) -> list[int]:
        return [ids.setdefault(line, len(ids)) for line in lines]

    def entry(step: TextDifference) -> dict[str, Any]:
        edits = [[at, count, text(lines)] for at, count, lines in step.edits]
        return {
            "name": step.name,
            "rows": text(step.before) if step.edits else [],
            "lines": len(step.before),
            "edits": edits,
        }

    stages, steps = [entry(stage) for stage in found.stages], [entry(step) for step in found.steps]
    return {
        "format": "tilework-comparison",
        "titles": list(found.titles),
        "metrics": [list(metric) for metric in found.metrics],
        "stages": stages,
        "only": [list(one) for one in found.only],
        "steps": steps,
        "parted": found.parted,
        "strings": list(ids),
        "rowStrings": list(range(len(ids))),
        "rowLocations": [0] * len(ids),
        "locations": [[]],
        "files": [],
        "kernels": [],
    }
