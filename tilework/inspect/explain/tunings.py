"""Why was this tuned again, and why were these configurations pruned, or lost."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilework.errors import Span
from tilework.inspect.explain.findings import Finding, Section, counted, milliseconds, ordered

Record = Mapping[str, Any]
SHOWN = {"best": 1, "slower": 5, "stopped": 3, "failed": 4, "pruned": 3}  # configurations of one tuning


def why_tuned(records: Sequence[Record]) -> Section:
    """The section for all autotuners of a program."""
    rows = [record for record in records if record["event"] == "tuned"]
    names = {row["kernel"] for row in rows}
    seconds = sum(row["seconds"] for row in rows)
    summary = f"{counted(len(names), 'autotuned kernel')}; {counted(len(rows), 'tuning')}, {milliseconds(seconds)}"
    return Section("tuned", summary, ordered(finding_of(row, rows) for row in rows))


def finding_of(row: Record, rows: Sequence[Record]) -> Finding:
    """One tuning: why it was done, and what became of each configuration."""
    name = row["kernel"].rpartition(".")[2]
    words = "; ".join(difference["words"] for difference in row["differences"])
    title = f"{name} was tuned again: {words}" if words else f"{name} was tuned for the first time in this process"
    configs = row["configs"]
    states = {state: [one for one in configs if one["state"] == state] for state in SHOWN}
    counts = ", ".join(f"{len(found)} {WORDS[state]}" for state, found in states.items() if found and state != "best")
    notes = [
        f"{milliseconds(row['seconds'])} for {counted(len(configs), 'configuration')}"
        + (f": {counts}" if counts else "")
    ]
    if row["from_disk"]:
        notes.append(f"{row['from_disk']} of the timings are from disk")
    for state, most in SHOWN.items():
        fastest = sorted(states[state], key=lambda one: one.get("milliseconds", 0.0))
        notes += [config_line(one, states["best"]) for one in fastest[:most]]
        if (more := len(states[state]) - most) > 0:
            notes.append(f"{more} more {WORDS[state]}; --json has them all")
    calls = [Span(**call) for call in row.get("calls", ())]
    helps = [difference["help"] for difference in row["differences"] if difference["help"]]
    return Finding(
        kernel=name,
        title=title,
        span=calls[0] if calls else None,
        notes=tuple(notes),
        help="; ".join(dict.fromkeys([*helps, *advice(states)])),
        callers=tuple(calls[1:]),
        weight=row["seconds"],
        facts={key: row[key] for key in ("key", "tuning", "differences", "seconds", "best", "configs")},
    )


WORDS = {
    "slower": "slower than the best",
    "stopped": "given up early",
    "failed": "could not run",
    "pruned": "pruned before they were compiled",
}


def config_line(one: Record, best: Sequence[Record]) -> str:
    """``BLOCK: 256, num_warps: 8: 0.52 ms, 1.31 times the best``"""
    text = one["config"].removesuffix(", maxnreg: None")
    if "milliseconds" not in one:
        return f"{WORDS[one['state']].split(' ')[0]}: {text}: {one['reason']}"
    time = one["milliseconds"]
    factor = (
        f", {time / best[0]['milliseconds']:.2f} times the best"
        if best and one["state"] != "best" and best[0]["milliseconds"]
        else ""
    )
    return f"{one['state']}: {text}: {time:.4g} ms{factor}" + (f" ({one['reason']})" if one["reason"] else "")


def advice(states: Mapping[str, Sequence[Record]]) -> list[str]:
    """What the failures have in common."""
    lacking = {one["name"] for one in states["failed"] if "name" in one}
    texts = {
        "shared memory": "smaller blocks or num_stages need less shared memory",
        "registers": "more num_warps, or smaller blocks, leave a thread fewer accumulators",
        "threads": "num_warps is too large for a block",
    }
    return [texts[name] for name in texts if name in lacking]
