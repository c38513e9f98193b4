"""Why was this compiled or tuned again: the records of `runtime/recording`, kernel by kernel.

A kernel with hundreds of specialisations has them for few reasons. Those with the same reason (the same parts of the
key differ from the nearest earlier specialisation) are one finding, at the line of the first. Every tuning is a finding
with the times of its configurations, or why they have none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilework import knobs
from tilework.errors import Span
from tilework.inspect.findings import Finding, Section, counted, listed, milliseconds, ordered

Record = Mapping[str, Any]


def why_compiled(records: Sequence[Record]) -> Section:
    """The section for all kernels of a program."""
    rows = [record for record in records if record["event"] == "compiled"]
    made = [row for row in rows if not row["hit"]]
    seconds = sum(row["seconds"] for row in made)
    loads = [record["seconds"] for record in records if record["event"] == "loaded"]
    parts = [
        f"{counted(len({row['kernel'] for row in rows}), 'kernel')}",
        f"{counted(len(made), 'compilation')}, {milliseconds(seconds)}",
        f"{len(rows) - len(made)} taken from the disk cache",
        f"{counted(len(loads), 'load')}, {milliseconds(sum(loads))}",
    ]
    processes = len({row["process"] for row in rows})
    if processes > 1:
        parts.append(f"in {processes} processes")
    findings = [
        finding for kernel in dict.fromkeys(row["kernel"] for row in made) for finding in of_kernel(kernel, rows)
    ]
    return Section("compiled", "; ".join(parts), ordered(findings))


def of_kernel(kernel: str, rows: Iterable[Record]) -> list[Finding]:
    """A finding for each reason that one kernel was compiled for."""
    own = [row for row in rows if row["kernel"] == kernel]
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in own:
        if not row["hit"]:
            groups.setdefault(reason_of(row), []).append(row)
    return [finding_of(kernel, group, own) for group in groups.values()]


def reason_of(row: Record) -> tuple[Any, ...]:
    """The key under which compilations for the same reason are grouped."""
    changed = tuple((difference["part"], difference["name"]) for difference in row.get("differences", ()))
    return ("tuning",) if row.get("is_tuning") else (row.get("against"), changed)


def finding_of(kernel: str, group: Sequence[Record], own: Sequence[Record]) -> Finding:
    """Return one finding for all compilations with the same reason, with the location of the first."""
    first, name = group[0], kernel.rpartition(".")[2]
    seconds = sum(row["seconds"] for row in group)
    differences = first.get("differences", [])
    reasons = "; ".join(difference["message"] for difference in differences)
    again = {"process": "was compiled again", "disk": "was compiled, though the disk cache has it otherwise"}
    is_tuning = bool(first.get("is_tuning"))
    title = f"{name} {again.get(first.get('against') or '', 'was compiled for the first time')}"
    if is_tuning:
        title = f"{name} was compiled for {counted(len(group), 'configuration')} of its autotuner"
    elif reasons or first.get("against"):
        title += f": {reasons or 'all parts of its key are the same, and its files were missing'}"
    notes = [f"{milliseconds(seconds if is_tuning else first['seconds'])}; {position(first, own)}"]
    elsewhere = sum(row["process"] != first["process"] for row in group)
    if is_tuning and elsewhere:
        notes.append(f"{elsewhere} of them in other processes, most likely workers")
    if len(group) > 1 and not is_tuning:
        notes.append(f"{len(group)} times for this reason, {milliseconds(seconds)} in all{changes(group)}")
    if first.get("against") is None:
        notes.append(f"nothing of it was in the disk cache, {knobs.cache.dir}")
    if same := Counter(row["key"] for row in group if row["key"]).most_common(1):
        if same[0][1] > 1:
            notes.append(
                f"one specialisation was compiled {same[0][1]} times, in processes that began at the same time"
            )
    calls = [Span(**call) for call in first.get("calls", ())]
    helps = dict.fromkeys(difference["help"] for difference in differences if difference["help"])
    return Finding(
        kernel=name,
        title=title,
        span=calls[0] if calls else None,
        notes=tuple(notes),
        help="" if is_tuning else "; ".join(helps),
        callers=tuple(calls[1:]),
        weight=seconds,
        facts={
            "count": len(group),
            "seconds": seconds,
            "against": first.get("against"),
            "differences": differences,
            "parts": first.get("parts"),
            "specialisations": len({row["key"] for row in own}),
        },
    )


def position(first: Record, own: Sequence[Record]) -> str:
    """The index of a specialisation, and the launch of the nearest earlier one."""
    keys = list(dict.fromkeys(row["key"] for row in own))
    text = f"specialisation {keys.index(first['key']) + 1} of {len(keys)}"
    if first.get("against") == "process":
        nearest = next((row for row in own if row.get("parts") == first["nearest"] and row.get("calls")), None)
        if nearest is not None:
            call = nearest["calls"][0]
            text += f"; the nearest earlier one was launched at {call['file']}:{call['line']}"
    return text


def changes(group: Sequence[Record]) -> str:
    """The values that one part has had, if it is one."""
    parts = group[0].get("differences", [])
    if len(parts) != 1:
        return ""
    values = dict.fromkeys(row["differences"][0]["after"].rpartition("=")[2] for row in group)
    return f": {parts[0]['name']} was {listed(list(values))}" if len(values) > 1 else ""


SHOWN = {"best": 1, "slower": 5, "stopped": 3, "failed": 4, "pruned": 3}  # configurations of one tuning


def why_tuned(records: Sequence[Record]) -> Section:
    """The section for all autotuners of a program."""
    rows = [record for record in records if record["event"] == "tuned"]
    names = {row["kernel"] for row in rows}
    seconds = sum(row["seconds"] for row in rows)
    summary = f"{counted(len(names), 'autotuned kernel')}; {counted(len(rows), 'tuning')}, {milliseconds(seconds)}"
    return Section("tuned", summary, ordered(tuning_finding(row, rows) for row in rows))


def tuning_finding(row: Record, rows: Sequence[Record]) -> Finding:
    """One tuning: why it was done, and what became of each configuration."""
    name = row["kernel"].rpartition(".")[2]
    reasons = "; ".join(difference["message"] for difference in row["differences"])
    title = f"{name} was tuned again: {reasons}" if reasons else f"{name} was tuned for the first time in this process"
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
    """Advice for the resources that failed configurations lacked."""
    lacking = {one["name"] for one in states["failed"] if "name" in one}
    texts = {
        "shared memory": "smaller blocks or num_stages need less shared memory",
        "registers": "more num_warps, or smaller blocks, leave a thread fewer accumulators",
        "threads": "num_warps is too large for a block",
    }
    return [texts[name] for name in texts if name in lacking]
