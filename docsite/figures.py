"""Record what the tutorials print and draw on this machine, into docs/figures.

    python -m docsite.figures record             all of them, with the sizes that the pages show
    python -m docsite.figures record 01 03       two of them
    python -m docsite.figures draw out           their figures as SVG files

Each tutorial runs in a process of its own on the host (TILEWORK_DEVICE=native). Where torch finds a GPU, a second
process measures the cells headed "On a GPU", and no others. Nothing is recorded while other programs use the cores, but
with --busy, and then the page says so. Needs tilework and NumPy.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from docsite import chart, recordings
from docsite.recordings import Figure, RecordedCell, Recording
from docsite.tutorials import ROOT, cells_of, digest, run_cells, scripts
from tilework.inspect.profiler.limits import cpu_name
from tilework.testing import Mark
from tilework.version import __version__

ON_GPU = "On a GPU"  # cells with this heading need one
IDLE = 0.85  # of the cores
Names = dict[str, Any]


def bars_or_lines(mark: Mark) -> list[Figure]:
    """The figures of a report of `tilework.testing`: bars where the x axis has names, lines where it has numbers."""
    found = []
    for benchmark, table in mark.reports:
        x = table.column(benchmark.x_names[0])
        series = {name: table.column(name) for name in benchmark.line_names}
        labels = {"x_label": benchmark.xlabel, "y_label": benchmark.ylabel}
        if isinstance(x[0], str):
            arguments = {"groups": x, "series": series, **labels}
        else:
            arguments = {"x": x, "series": series, "x_log": benchmark.x_log, "y_log": benchmark.y_log, **labels}
        found.append(Figure("bars" if "groups" in arguments else "lines", {"title": benchmark.plot_name, **arguments}))
    return found


# Figures of values that come from no report: by script and heading of the cell, from the names defined after it.
FIGURES_OF_VALUES: dict[tuple[str, str], Callable[[Names], Figure]] = {
    ("04_dropout", "What was dropped"): lambda names: Figure(
        "tiles",
        {
            "title": "Dropout with p = 0.5 of a matrix of ones",
            "panels": {f"seed {seed}": kept for seed, kept in names["kept"].items()},
            "x_label": "column",
            "y_label": "row",
            "value_label": "value",
        },
    ),
    ("04_dropout", "Other distributions"): lambda names: Figure(
        "lines",
        {
            "title": f"{names['samples'].size} numbers of tl.randn",
            "x": names["middles"],
            "series": {"histogram": names["density"], "density of the normal distribution": names["exact"]},
            "x_label": "value",
            "y_label": "density",
            "points_only": ["histogram"],
        },
    ),
    ("05_layer_norm", "Training with it"): lambda names: Figure(
        "lines",
        {
            "title": "Learning scale and shift of a layer norm",
            "x": list(range(len(names["losses"]))),
            "series": {"loss": names["losses"]},
            "x_label": "step",
            "y_label": "mean square of the difference",
            "y_log": True,
        },
    ),
    ("06_attention", "Which tiles are computed"): lambda names: Figure(
        "tiles",
        {
            "title": "Causal attention: the part of each tile that counts, %",
            "panels": {"": 100 * names["visible"]},
            "x_label": "keys, in tiles of 64",
            "y_label": "queries, in tiles of 64",
            "value_label": "% of the tile",
            "numbers": True,
        },
    ),
    ("07_grouped_persistent_matmul", "The order of tiles"): lambda names: Figure(
        "tiles",
        {
            "title": "The order in which tiles of C are computed",
            "panels": {f"GROUP = {group}": order for group, order in names["orders"].items()},
            "x_label": "column of tiles",
            "y_label": "row of tiles",
            "value_label": "program id",
            "numbers": True,
        },
    ),
    ("08_descriptors_tma", "What they count"): lambda names: Figure(
        "bars",
        {
            "title": "One matmul on an emulated H200, instructions of warps",
            "groups": names["kinds"],
            "series": {
                name: [found["instructions"].get(kind, 0) for kind in names["kinds"]]
                for name, found in names["counted"].items()
            },
            "x_label": "kind of instruction",
            "y_label": "instructions",
        },
    ),
}


def record(script: Path, work: Path, arguments: Sequence[str] = (), only_gpu: bool = False) -> tuple[RecordedCell, ...]:
    """Run a tutorial in this process and return its cells with what they printed and drew. With `only_gpu` those that
    ran on the host are empty, and their reports are not measured."""
    cells, recorded = cells_of(script), []
    shown: set[int] = set()
    runs = run_cells(script, cells, work, arguments)
    for cell in cells:
        is_wanted = not only_gpu or cell.heading == ON_GPU
        with nullcontext() if is_wanted else patch.object(Mark, "run", lambda mark, **options: None):
            printed, names = next(runs)
        if not is_wanted:
            recorded.append(RecordedCell(""))
            continue
        marks = [value for value in names.values() if isinstance(value, Mark) and value.reports]
        new = [mark for mark in marks if id(mark) not in shown]
        shown.update(map(id, new))
        figures = [figure for mark in new for figure in bars_or_lines(mark)]
        if (draw := FIGURES_OF_VALUES.get((script.stem, cell.heading))) is not None:
            figures.append(draw(names))
        figures = [Figure(one.kind, plain(one.arguments)) for one in figures]
        where = (gpu_machine() if only_gpu else host_machine()) if new else ""
        recorded.append(RecordedCell(printed.rstrip(), tuple(figures), where))
    return tuple(recorded)


def plain(value: Any) -> Any:
    """The same in types of JSON, with four digits of each number: more are noise."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return float(f"{value:.4g}") if isinstance(value, float) else value


def host_machine() -> str:
    """The processor and the software."""
    return f"{cpu_name()}, {cores()} cores; {software()}"


def gpu_machine() -> str:
    import torch  # lazily: only where there is a GPU

    return f"{torch.cuda.get_device_name()}; {software()}, torch {torch.__version__}"


def software() -> str:
    return f"tilework {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_of_cores() -> float:
    """The part of all cores that processes on each of them get: 1 on an idle machine."""
    spin = (
        "import time; begin, used = time.perf_counter(), time.process_time()\n"
        "while time.perf_counter() < begin + 1: pass\n"
        "print(time.process_time() - used)"
    )
    command = [sys.executable, "-S", "-c", spin]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(cores())]
    return sum(float(process.communicate()[0]) for process in processes) / len(processes)


def busy_note(share: float) -> str:
    """Text behind the machine's name if it was not idle."""
    return "" if share >= IDLE else f" (other programs used {100 * (1 - share):.0f} % of its cores)"


def commit_of_checkout() -> str:
    git = ("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD")
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def gpu_is_here() -> bool:
    """Return True if there is a GPU. Another process finds out, so that this one does not occupy the GPU."""
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def in_a_process(script: Path, device: str, arguments: Sequence[str]) -> Sequence[RecordedCell] | None:
    """The result of `record` in a new process that launches kernels on `device`; None if the tutorial fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    environment.pop("TILEWORK_DEVICE", None)
    if device == "native":
        environment["TILEWORK_DEVICE"] = device
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, "-m", "docsite.figures", "one", script.stem, str(result), "--device", device]
        done = subprocess.run([*command, *arguments], env=environment)
        return recordings.read(result.read_text(encoding="utf-8")).cells if done.returncode == 0 else None


def record_all(chosen: Sequence[Path], folder: Path, commit: str, quick: bool, busy: bool) -> int:
    """Write a file for each tutorial and return the exit code."""
    note = busy_note(share_of_cores())
    if note and not busy:
        print(f"nothing is recorded on a busy machine{note}: wait, or --busy and the pages say so", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    has_gpu, failed = gpu_is_here(), []
    sizes = ["--quick"] if quick else []
    options = f"{' --quick' if quick else ''}{' --busy' if note else ''}"
    for script in chosen:
        start = datetime.datetime.now()
        host = in_a_process(script, "native", sizes)
        needs_gpu = has_gpu and any(cell.heading == ON_GPU for cell in cells_of(script))
        gpu = in_a_process(script, "gpu", ["--quick"]) if needs_gpu else None
        if host is None or (needs_gpu and gpu is None):
            failed.append(script.stem)
        if host is not None:
            whole = Recording(
                digest(cells_of(script)),
                f"python -m docsite.figures record {script.stem[:2]}{options}",
                str(datetime.date.today()),
                commit,
                tuple(replace(cell, where=cell.where + note) if cell.where else cell for cell in host),
            )
            on_gpu = None if gpu is None else replace(whole, cells=tuple(gpu))
            text = recordings.merged(whole, on_gpu).text()
            (folder / f"{script.stem}.json").write_text(text, encoding="utf-8")
        print(f"{script.stem}: {(datetime.datetime.now() - start).total_seconds():.1f} s", flush=True)
    if failed:
        print("failed:", *failed, file=sys.stderr)
    return 1 if failed else 0


def draw_all(folder: Path) -> int:
    """Write each recorded figure as an SVG file."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in scripts():
        recording = recordings.recording_of(script.stem)
        figures = [one for cell in recording.cells for one in cell.figures] if recording is not None else []
        for number, one in enumerate(figures, 1):
            svg = getattr(chart, one.kind)(**one.arguments)
            (folder / f"{script.stem}-{number}.svg").write_text(svg, encoding="utf-8")
    return 0


def record_one(name: str, result: Path, device: str, arguments: Sequence[str]) -> int:
    """The process of one tutorial."""
    (script,) = (one for one in scripts() if one.stem == name)
    with tempfile.TemporaryDirectory() as work:
        cells = record(script, Path(work), arguments, only_gpu=device != "native")
    result.write_text(Recording("", "", "", "", cells).text(), encoding="utf-8")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record", help="run tutorials and write docs/figures")
    recorder.add_argument("names", nargs="*", help="beginnings of their names; all of them if there is none")
    recorder.add_argument("--commit", default="", help="where there is no git: the commit of the sources")
    recorder.add_argument("--to", type=Path, default=recordings.FOLDER, help="another folder than docs/figures")
    recorder.add_argument("--quick", action="store_true", help="small sizes, to see whether everything runs")
    recorder.add_argument("--busy", action="store_true", help="also while other programs run")
    drawer = commands.add_parser("draw", help="write the recorded figures as SVG files")
    drawer.add_argument("folder", type=Path)
    one = commands.add_parser("one", help="the process of one tutorial, which `record` starts")
    one.add_argument("name")
    one.add_argument("result", type=Path)
    one.add_argument("--device", default="native")
    one.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    if given.command == "draw":
        return draw_all(given.folder)
    if given.command == "one":
        return record_one(given.name, given.result, given.device, ["--quick"] if given.quick else [])
    chosen = [script for script in scripts() if not given.names or script.stem.startswith(tuple(given.names))]
    if not chosen:
        parser.error(f"no tutorial begins with {' or '.join(given.names)}")
    return record_all(chosen, given.to, given.commit or commit_of_checkout(), given.quick, given.busy)


if __name__ == "__main__":
    sys.exit(main())
