"""The report as text for a terminal, and the advice: one or two sentences with the kernel, the reason, and the next
command.

The first rule of `RULES` that applies gives the advice. Compilations and time outside of kernels come first where they
dominate the program; then launches that cost as much as their kernels; then the kernel whose optimisation would save
the most time.
"""

from collections.abc import Callable, Sequence

from tilework.inspect.findings import counted
from tilework.inspect.profiler.report import COLUMNS, MEMORY, Report, Row
from tilework.inspect.profiler.viewer import with_branches

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
            (cells_of(row, report), head + row.name)
            for head, row in with_branches(report.root, lambda row, _: row.children)
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
        f"{len(group)} {verb} in {sum(one.seconds for one in group) * 1e3:.0f} ms"
        for group, verb in ((rest, "compiled"), (hits, "taken from the cache"))
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
    sign = "" if row.is_reported else "~"
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


MUCH = 0.5  # of the program's time
GOOD = 0.7  # of the limit
OVERHEAD = 0.5  # of a kernel's time
TUNING = "autotuning "

Rule = Callable[[Report], str | None]


def advice(report: Report) -> str:
    """Return the advice of the first rule that applies."""
    rules = RULES if report.is_real else (nothing, kernel)  # steps cannot be compared with seconds
    return next(text for rule in rules if (text := rule(report)) is not None)


def nothing(report: Report) -> str | None:
    if report.kernels:
        return None
    return "no kernel was launched, so there is nothing to look at"


def tuning(report: Report) -> str | None:
    seconds = sum(row.seconds for row in report.kernels if is_tuning(row))
    if seconds < MUCH * report.seconds:
        return None
    row = max((row for row in report.kernels if is_tuning(row)), key=lambda row: row.seconds)
    return (
        f"{percent(seconds / report.seconds)} of the time the autotuner times configurations, most for `{row.name}`."
        f" Keep its results for later runs: tilework tune {report.program}"
    )


def compiling(report: Report) -> str | None:
    seconds = sum(one.seconds for one in report.compilations)
    if seconds < MUCH * report.seconds or seconds < report.root.seconds:
        return None
    slowest = max(report.compilations, key=lambda one: one.seconds)
    missed = sum(not one.hit for one in report.compilations)
    return (
        f"{percent(seconds / report.seconds)} of the time is compiling: {counted(missed, 'kernel')} not in the cache,"
        f" `{slowest.name}` took {slowest.seconds * 1e3:.0f} ms. A second run finds all there; why one is compiled"
        f" again says: tilework explain --why compiled {report.program}"
    )


def launching(report: Report) -> str | None:
    rows = [row for row in candidates(report) if row.overhead and row.overhead * row.calls > OVERHEAD * row.seconds]
    if not rows:
        return None
    row = max(rows, key=lambda row: (row.overhead or 0.0) * row.calls)
    if (row.overhead or 0.0) * row.calls < 0.1 * report.seconds:
        return None
    return (
        f"`{row.name}` runs for {row.seconds / row.calls * 1e6:.1f} us, and each of its {row.calls} launches costs"
        f" {(row.overhead or 0.0) * 1e6:.1f} us more. Let a launch do more work, fuse it with its neighbours, or call"
        f" `{row.name}.bind(..., grid=grid)` once; what its launches need says: tilework explain {report.program}"
    )


def outside(report: Report) -> str | None:
    inside = report.root.seconds + sum(one.seconds for one in report.compilations)
    if inside > (1 - MUCH) * report.seconds:
        return None
    return (
        f"{percent(1 - inside / report.seconds)} of the time is outside of kernels and their compiling, in the"
        f" program itself. Where: python -m cProfile -s tottime {report.program}. Of the kernels: {slowest(report)}"
    )


def kernel(report: Report) -> str | None:
    return slowest(report)


def slowest(report: Report) -> str:
    """The kernel that would save most if it reached its limit."""

    def lost(row: Row) -> float:
        return row.seconds * (1 - min(row.share if row.share is not None else 0.5, 1.0))

    row = max(candidates(report) or report.kernels, key=lost)
    whole = report.root.seconds
    part = f"`{row.name}` has {percent(row.seconds / whole if whole else 0)} of the kernels' time"
    next_command = f"tilework explain --why slow {report.program}"
    if row.share is None:
        return f"{part}; what limits it is not known here. Next: {next_command}"
    limit = "the memory's bandwidth" if row.limit == MEMORY else "the arithmetic"
    guess = "" if row.is_reported else ", as far as can be estimated"
    if row.share > 1 and row.limit == MEMORY:
        return (
            f"{part}, and its data comes from caches: {row.gigabytes or 0:.1f} GB/s are more than a copy gets from"
            f" memory. Next: {next_command}"
        )
    if row.share >= GOOD:
        reaches = f"{part} and reaches {percent(row.share)} of {limit}{guess}"
        return f"{reaches}: make it need less, by fusing it with its neighbours"
    return f"{part} and reaches {percent(row.share)} of {limit}{guess}. Next: {next_command}"


def candidates(report: Report) -> list[Row]:
    return [row for row in report.kernels if not is_tuning(row)]


def is_tuning(row: Row) -> bool:
    return any(part.startswith(TUNING) for part in row.path)


def percent(part: float) -> str:
    return f"{100 * part:.0f} %"


RULES: tuple[Rule, ...] = (nothing, tuning, compiling, launching, outside, kernel)
