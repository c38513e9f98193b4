"""The report as text for a terminal."""

from collections.abc import Sequence

from tilework.inspect.explain.findings import counted
from tilework.inspect.profiler.advice import advice
from tilework.inspect.profiler.frames import drawn
from tilework.inspect.profiler.report import COLUMNS, MEMORY, Report, Row

WIDTH = 9
NOTES = {
    "~": "~ estimated from the kernel's IR and its arguments; launch_metadata of @jit gives exact figures",
    "%*": "* more than a copy from memory gets: the data comes from caches",
    "%!": "! more than was measured: the machine was busy then (--measure measures again), or the estimate is too high",
}


def text_of(report: Report, most: int = 40) -> str:
    """The whole report."""
    lines = [headline(report), *compile_lines(report), ""]
    if report.kernels:
        rows = [
            (cells_of(row, report), head + row.name) for head, row in drawn(report.root, lambda row, _: row.children)
        ]
        for cells, name in [(COLUMNS, ""), *rows[:most]]:
            lines.append(f"  {'  '.join(f'{cell:>{WIDTH}}' for cell in cells)}  {name}".rstrip())
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more; --top N shows more of them")
        body = "\n".join(lines)
        lines += ["", *limit_lines(report), *(f"  {note}" for sign, note in NOTES.items() if sign in body), ""]
    lines.append(f"look first: {advice(report)}")
    return "\n".join(lines)


def headline(report: Report) -> str:
    root = report.root
    names = {row.name for row in report.kernels}
    share = f"{100 * root.seconds / report.seconds:.0f} % of it in " if report.is_real else ""
    part = f", {share}{counted(len(names), 'kernel')}" if names else ""
    launches = f", {counted(root.calls, 'launch', 'launches')}" if names else ""
    return f"{report.program}: {report.seconds:.3f} s{part}{launches}; {report.device}"


def compile_lines(report: Report) -> list[str]:
    found = report.compilations
    if not found:
        return []
    hits, rest = [one for one in found if one.hit], [one for one in found if not one.hit]
    parts = [
        f"{len(group)} {words} in {sum(one.seconds for one in group) * 1e3:.0f} ms"
        for group, words in ((rest, "compiled"), (hits, "taken from the cache"))
        if group
    ]
    return [f"{counted(len(found), 'specialisation')} of kernels: {', '.join(parts)}"]


def limit_lines(report: Report) -> list[str]:
    if not report.is_real:
        return ["  an emulated device has no limits, and its clock counts steps, not time"]
    if report.bandwidth is None:
        return ["  the limits of this machine cannot be measured"]
    rates = ", ".join(f"{kind} {rate / 1e12:.3g} TFLOP/s" for kind, rate in report.rates.items())
    text = f"limits of this machine, measured: copies {report.bandwidth / 1e9:.3g} GB/s{', ' if rates else ''}{rates}"
    return [f"  {text}"]


def cells_of(row: Row, report: Report) -> Sequence[str]:
    whole = report.root.seconds
    sign = "" if row.is_told else "~"
    return (
        f"{row.seconds * 1e3:.3f}",
        f"{100 * row.seconds / whole:.1f}" if whole else "",
        str(row.calls),
        f"{row.seconds / row.calls * 1e6:.2f}" if row.calls else "",
        figure(row.gigabytes, sign),
        figure(row.teraflops, sign),
        share_text(row),
        f"{row.overhead * 1e6:.2f}" if row.overhead is not None else "",
        compile_text(row),
    )


def figure(value: float | None, sign: str) -> str:
    """Three digits that count."""
    return "" if value is None else f"{sign}{value:.3g}" if value < 100 else f"{sign}{value:.0f}"


def share_text(row: Row) -> str:
    if row.share is None:
        return ""
    if row.share > 1:
        return f"{100 * row.share:.0f} %{'*' if row.limit == MEMORY else '!'}"
    return f"{100 * row.share:.0f} % {'mem' if row.limit == MEMORY else 'ari'}"


def compile_text(row: Row) -> str:
    if not row.compilations:
        return ""
    return f"{row.compile_seconds * 1e3:.0f}{' hit' if all(one.hit for one in row.compilations) else ''}"
