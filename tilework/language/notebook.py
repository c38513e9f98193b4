"""The HTML of kernels, compiled kernels, autotuners and benchmarks in notebooks: `_repr_html_` of each calls a function
of this module.

Colours are those of the notebook, light or dark: text has its own, lines and bars are grey or blue that both can show.
"""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite, log
from typing import Any

LINE = "rgba(128, 128, 128, 0.4)"
BAR = "rgba(66, 133, 244, 0.55)"
COLOURS = ("#4285f4", "#db4437", "#0f9d58", "#f4a300", "#ab47bc", "#00acc1", "#8d6e63", "#9e9d24")
MOST_TEXT = 100_000  # characters of a stage
CHART = (560, 260, 64, 16, 16, 44)  # width, height, and what is left free on the left, right, above and below


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """A table of cells that are HTML already."""
    style = f'style="text-align: left; border-bottom: 1px solid {LINE}; padding: 2px 10px"'
    lines = [f'<caption style="text-align: left; font-weight: bold">{caption}</caption>'] if caption else []
    lines += [f"<tr>{''.join(f'<th {style}>{cell}</th>' for cell in head)}</tr>"] if head else []
    lines += [f"<tr>{''.join(f'<td {style}>{cell}</td>' for cell in row)}</tr>" for row in rows]
    return f'<table style="border-collapse: collapse">{"".join(lines)}</table>'


def code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def folded(title: str, text: str, is_open: bool = False) -> str:
    """Text behind a title that opens it."""
    cut = "" if len(text) <= MOST_TEXT else f"\n... and {len(text) - MOST_TEXT} more characters"
    body = f'<pre style="max-height: 30em; overflow: auto">{escape(text[:MOST_TEXT])}{cut}</pre>'
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{body}</details>"


# ---- kernels


def function_html(fn: Any) -> str:
    """A kernel: its parameters, its source, and what is compiled of it."""
    rows = [
        (
            code(param.name),
            "compile-time" if param.is_constexpr else "not specialised" if param.do_not_specialize else "argument",
            code(repr(param.default)) if param.has_default else "",
        )
        for param in fn.params
    ]
    parts = [table(rows, ("parameter", "kind", "default"), f"kernel {code(fn.__name__)}")]
    if fn.__doc__:
        parts.append(f"<p>{escape(fn.__doc__.strip())}</p>")
    location = f"{escape(fn.where.file)}:{fn.def_line}" if fn.has_source else ""
    parts.append(folded(f"source <small>{location}</small>", fn.src))
    if compiled := compiled_kernels(fn):
        rows = [
            (code(described(kernel)), escape(str(kernel.metadata.target)), code(kernel.hash[:12]))
            for kernel in compiled
        ]
        parts.append(table(rows, ("specialisation", "target", "hash"), "compiled"))
    return "".join(parts)


def compiled_kernels(fn: Any) -> list[Any]:
    """Return the specializations that the kernel has been compiled to in this process."""
    found = (kernel for kernels in getattr(fn, "cache", {}).values() for kernel in list(kernels.values()))
    return list({kernel.hash: kernel for kernel in found if "metadata" in vars(kernel)}.values())


def described(kernel: Any) -> str:
    """``x: *fp32, n: i32, BLOCK=256``: the types and constants that a kernel is compiled for."""
    source = kernel.src
    names = getattr(getattr(source, "fn", None), "arg_names", None)
    if names is None:
        return str(getattr(source, "path", ""))
    constants = {key if isinstance(key, str) else names[key[0]]: value for key, value in source.constants.items()}
    types = source.signature
    return ", ".join(
        f"{name}={constants[name]!r}" if name in constants else f"{name}: {types.get(name, '?')}" for name in names
    )


def compiled_text(kernel: Any) -> str:
    """The `repr` of a compiled kernel."""
    metadata = kernel.metadata
    return (
        f"CompiledKernel({kernel.name} for {metadata.target}: {described(kernel)};"
        f" num_warps={metadata.num_warps}, num_stages={metadata.num_stages}, hash={kernel.hash[:12]})"
    )


def compiled_html(kernel: Any) -> str:
    """Return the HTML of a compiled kernel: its target, its resources, and every stage."""
    metadata = kernel.metadata
    is_gpu = metadata.target.backend != "cpu"
    facts = [
        ("target", escape(str(metadata.target))),
        ("compiled for", code(described(kernel))),
        ("num_warps, num_stages", f"{metadata.num_warps}, {metadata.num_stages}"),
        ("shared memory", f"{metadata.shared} bytes" if is_gpu else ""),
        ("registers, spills", f"{kernel.n_regs}, {kernel.n_spills}" if is_gpu and kernel.n_regs is not None else ""),
        ("hash", code(kernel.hash)),
    ]
    parts = [table([fact for fact in facts if fact[1]], caption=f"compiled kernel {code(kernel.name)}")]
    for stage in kernel.asm:
        result = kernel.asm[stage]
        if isinstance(result, str):
            parts.append(folded(f"{escape(stage)} <small>{result.count(chr(10))} lines</small>", result))
        else:
            parts.append(f"<div>{escape(stage)} <small>{len(result)} bytes</small></div>")
    return "".join(parts)


# ---- autotuners


def wrapper_text(wrapper: Any) -> str:
    """The `repr` of an autotuner or of heuristics."""
    name = f"{wrapper.__module__}:{wrapper.__name__}"
    return autotuner_text(wrapper) if hasattr(wrapper, "configs") else f"{type(wrapper).__name__}({name})"


def wrapper_html(wrapper: Any) -> str:
    """An autotuner, or the rules of heuristics; then what is inside."""
    inside = getattr(wrapper.fn, "_repr_html_", None)
    if hasattr(wrapper, "configs"):
        own = autotuner_html(wrapper)
    else:
        own = table([(code(name), "computed") for name in wrapper.values], ("parameter", "kind"), "heuristics")
    return own + (inside() if inside is not None else "")


def autotuner_text(tuner: Any) -> str:
    best = f", best: {tuner.best_config}" if tuner.best_config is not None else ""
    return f"Autotuner({tuner.__module__}:{tuner.__name__}, {len(tuner.configs)} configs, key={tuner.keys}{best})"


def autotuner_html(tuner: Any) -> str:
    """Every configuration with its time for the last key, and what was chosen for each key."""
    times = {
        config: first(tuner.configs_timings[config]) for config in tuner.configs if config in tuner.configs_timings
    }
    longest = max((time for time in times.values() if isfinite(time)), default=0.0)
    rows = []
    for config in tuner.configs:
        time = times.get(config)
        failure = tuner.failures.get(config)
        status = "not measured" if time is None else f"{time:.4g} ms" if isfinite(time) else "cannot run"
        if failure is not None:
            status += f": {escape(str(failure).splitlines()[0])}" if str(failure) else f": {type(failure).__name__}"
        is_best = config == tuner.best_config
        name = f"<b>{code(str(config))}</b> ✓" if is_best else code(str(config))
        rows.append((name, status, bar(time / longest) if time is not None and longest and isfinite(time) else ""))
    caption = f"autotuner of {code(tuner.__name__)}, key {code(', '.join(tuner.keys))}"
    parts = [table(rows, ("configuration", "time", ""), caption)]
    if tuner.cache:
        chosen = [(code(repr(key)), code(str(config))) for key, config in tuner.cache.items()]
        parts.append(table(chosen, ("key", "chosen"), "chosen"))
    return "".join(parts)


def first(timing: Any) -> float:
    return float(timing[0] if isinstance(timing, list | tuple) else timing)


def bar(part: float) -> str:
    return f'<div style="background: {BAR}; width: {max(1, round(160 * part))}px; height: 0.8em"></div>'


# ---- benchmarks


def mark_html(mark: Any) -> str:
    """The reports of the last run: a chart and a table each."""
    if not mark.reports:
        return f"benchmark {code(mark.fn.__name__)}: not run yet, call <code>.run()</code>"
    return "".join(report_html(benchmark, table) for benchmark, table in mark.reports)


def report_html(benchmark: Any, report: Any) -> str:
    names = [str(name) for name in benchmark.line_names]
    lines = {name: report.column(name) for name in names}
    xs = report.column(benchmark.x_names[0])
    chart = ""
    if len(xs) > 1 and all(isinstance(x, int | float) for x in xs):
        label = benchmark.xlabel or ", ".join(benchmark.x_names)
        chart = line_chart(xs, lines, label, benchmark.ylabel, benchmark.x_log, benchmark.y_log)
    count = len(benchmark.x_names) + len(names)
    rows = [[cell_text(cell) for cell in row[:count]] for row in report.rows]
    return f"{table(rows, [escape(str(name)) for name in report.columns[:count]], escape(benchmark.plot_name))}{chart}"


def table_html(report: Any) -> str:
    """A table of numbers."""
    return table(
        [[cell_text(cell) for cell in row] for row in report.rows], [escape(str(name)) for name in report.columns]
    )


def cell_text(cell: Any) -> str:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else escape(str(cell))


def line_chart(
    xs: Sequence[float], lines: dict[str, list[Any]], xlabel: str, ylabel: str, x_log: bool, y_log: bool
) -> str:
    """Lines over `xs`, as SVG in the colours of the page."""
    width, height, left, right, above, below = CHART
    values = [y for line in lines.values() for y in line if y is not None and isfinite(y)]
    if not values:
        return ""
    x_log, y_log = x_log and min(xs) > 0, y_log and min(values) > 0
    across = scale(min(xs), max(xs), left, width - right, x_log)
    down = scale(min(values) if y_log else min(0.0, *values), max(values), height - below, above, y_log)
    parts = [
        f'<svg width="{width}" height="{height}" role="img" style="font: 12px sans-serif; fill: currentColor">',
        f'<path d="M{left},{above}V{height - below}H{width - right}" fill="none" stroke="currentColor" opacity="0.5"/>',
        f'<text x="{(left + width - right) / 2:.0f}" y="{height - 6}" text-anchor="middle">{escape(xlabel)}</text>',
        f'<text x="{left}" y="{above - 4}">{escape(ylabel)}</text>',
    ]
    for x in sorted({xs[0], xs[len(xs) // 2], xs[-1]}):
        parts.append(f'<text x="{across(x):.1f}" y="{height - below + 16}" text-anchor="middle">{x:g}</text>')
    for y in sorted({min(values), max(values)}):
        parts.append(f'<text x="{left - 6}" y="{down(y) + 4:.1f}" text-anchor="end">{y:.3g}</text>')
    for index, (name, line) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = [(across(x), down(y)) for x, y in zip(xs, line, strict=True) if y is not None and isfinite(y)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 12}" y="{above + 14 + 15 * index}" fill="{colour}">{escape(name)}</text>')
    return "".join([*parts, "</svg>"])


def scale(low: float, high: float, start: float, end: float, is_log: bool) -> Any:
    """The scale from values to positions."""
    bottom, top = (log(low), log(high)) if is_log else (low, high)
    span = (top - bottom) or 1.0
    return lambda value: start + (end - start) * ((log(value) if is_log else value) - bottom) / span
