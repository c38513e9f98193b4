"""From compiled kernels, or from records of a program, to what `slow.py` looks at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tilework.errors import CompilationError
from tilework.inspect.explain.findings import Finding
from tilework.inspect.explain.slow import Case, refused
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.recording.key_parts import KeyParts, parts_of, stored_parts
from tilework.target import GPUTarget
from tilework.targets.base import find_backend

OWN = frozenset({"arch", "backend_name", "warp_size", "extern_libs", "auto_tma", "ptx_version", "ptx_options"})
Record = Mapping[str, Any]


def settings_for(options: Mapping[str, Any], compiled: GPUTarget, target: GPUTarget) -> dict[str, Any]:
    """The options that a launch asked for, as far as another target has them, too."""
    usual = find_backend(compiled).parse_options({})
    chosen = {one.name: frozen(options[one.name]) for one in fields(usual) if one.name in options}
    known = {one.name for one in fields(find_backend(target).parse_options({}))}
    return {
        name: value
        for name, value in chosen.items()
        if value != getattr(usual, name) and name in known and (compiled == target or name not in OWN)
    }


def frozen(value: Any) -> Any:
    """As it was before it was written as JSON."""
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def module_for(source: Any, target: GPUTarget, settings: Mapping[str, Any]) -> Any:
    """The module before any pass, as the frontend makes it for a target."""
    return source.module(frontend_options(target, find_backend(target).parse_options(settings)))


def parts_of_kernel(kernel: Any) -> KeyParts | None:
    """What a compiled kernel is for."""
    metadata = kernel.metadata._asdict()
    if (own := metadata.get("key_parts")) is not None:
        return stored_parts(own, {**metadata, "target": str(kernel.metadata.target)})
    backend = find_backend(kernel.metadata.target)
    known = {one.name: metadata[one.name] for one in fields(backend.parse_options({})) if one.name in metadata}
    return parts_of(kernel.src, kernel.metadata.target, backend, backend.parse_options(known), {})


def case_of_kernel(kernel: Any, targets: Sequence[GPUTarget] = (), grid: Any = None) -> Iterator[Case | Finding]:
    """A compiled kernel on its own target, or on others; a finding for those that it cannot be compiled for."""
    compiled = kernel.metadata.target
    parts = parts_of_kernel(kernel)
    text = parts.text() if parts is not None else kernel.name
    for target in targets or (compiled,):
        settings = settings_for(kernel.metadata._asdict(), compiled, target)
        yield case_of(kernel.src, kernel.src.name, target, settings, grid, text)


def case_of(
    source: Any, name: str, target: GPUTarget, settings: Mapping[str, Any], grid: Any, text: str
) -> Case | Finding:
    try:
        return Case(name, module_for(source, target, settings), target, settings, grid, text=text)
    except (CompilationError, ValueError) as error:
        return refused(name, target, error)


# ---- from records


def recorded_cases(records: Sequence[Record]) -> tuple[list[Case], list[Finding]]:
    """One specialisation of each kernel: the one that its autotuner chose, or the last that was launched."""
    from tilework.ir.parser import parse_module  # with the compiler

    cases: list[Case] = []
    failures: list[Finding] = []
    rows = [record for record in records if record["event"] == "compiled" and "parts" in record]
    launches = {record["key"]: record for record in records if record["event"] == "launch"}
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        chosen = best_of(own, launches, [record for record in records if record["event"] == "tuned"])
        name = kernel.rpartition(".")[2]
        launch = launches.get(chosen["key"], {})
        modules = (record for record in records if record["event"] == "module" and record["key"] == chosen["key"])
        for made in {record["target"]: record for record in modules}.values():  # several processes may have it
            target = GPUTarget.parse(made["target"])
            if made.get("failure"):
                failures.append(refused(name, target, made["failure"]))
                continue
            module = parse_module(Path(made["path"]).read_text(encoding="utf-8"), made["path"])
            grid = tuple(launch["grid"]) if "grid" in launch else None
            text = KeyParts.from_json(chosen["parts"]).text()
            counts = launch.get("counted", {}).get(made["target"], {})
            settings = {name: frozen(value) for name, value in made["settings"].items()}
            cases.append(Case(name, module, target, settings, grid, counts, text, launch.get("bytes", 0)))
    return cases, list({finding.title: finding for finding in failures}.values())


def best_of(own: Sequence[Record], launches: Mapping[str, Record], tunings: Sequence[Record]) -> Record:
    """The specialisation to look at."""
    for tuning in reversed([tuning for tuning in tunings if tuning["kernel"] == own[0]["kernel"]]):
        for row in reversed(own):
            arguments, others = row["parts"]["arguments"], row["parts"]["others"]
            if all(
                text in (arguments.get(name, {}).get("constant"), others.get(f"option {name}"))
                for name, text in tuning["settings"].items()
            ):
                return row
    launched = [row for row in own if row["key"] in launches]
    counted = [row for row in launched if launches[row["key"]].get("counted")]
    return (counted or launched or own)[-1]
