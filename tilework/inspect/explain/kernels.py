"""`kernel.explain(...)`: the questions about one kernel, answered in the process that compiled it; and the listener
inside a program that `tilework explain` runs.

print(add.explain())                                        what was compiled of it, and why each time; why it is slow
print(add.explain(x, y, out, 1000, BLOCK=256))              the same for a launch with these arguments
print(add.explain(..., target="cuda:90"))                   on another device
print(add.explain(..., grid=(4,), why="different"))         on every device against the interpreter

A folder of records with `settings.json` requests the listener: ``{"targets": ["cuda:90"], "questions": ["slow",
"different"], "devices": [...]}``. It writes modules, counts in the emulator and compares devices at the first launch of
each specialisation, before the launch itself, on its own arguments, whose memory is restored.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tilework.errors import TritonError
from tilework.inspect.compilation import Request, settings_for
from tilework.inspect.explain.compiled import why_tuned
from tilework.inspect.explain.different import findings_of, kernel_span, why_different
from tilework.inspect.explain.slow import Case, case_of, cases_of_kernel, parts_of_kernel, strided_findings, why_slow
from tilework.inspect.findings import QUESTIONS, Explanation, Finding, Section, counted
from tilework.inspect.replay import DEVICES, Died, Launch, counts_apart, counts_of, isolated
from tilework.language.function import JITFunction
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars
from tilework.runtime.recording.key_parts import Comparison, KeyParts, compared, parts_of
from tilework.runtime.recording.recorder import QUIET, Recorder, is_tuning, tuning_record, value_text
from tilework.runtime.workers import async_compile
from tilework.target import GPUTarget


def explain_kernel(
    kernel: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    grid: Any = None,
    target: str | Sequence[str] | None = None,
    why: str | Sequence[str] | None = None,
    device: str | Sequence[str] | None = None,
) -> Explanation:
    """Return the answers for a kernel, or for an autotuner or heuristics around one; `different` only if `why` names
    it."""
    questions = chosen_questions(why)
    targets = [GPUTarget.parse(text) for text in ([target] if isinstance(target, str) else target or ())]
    sections: list[Section] = []
    fn, settings, tuners = unwrapped(kernel, args, kwargs)
    if "tuned" in questions and any(tuner.tunings for tuner in tuners):
        sections.append(why_tuned([{"event": "tuned", **tuning_record(t, key)} for t in tuners for key in t.tunings]))
    is_called = bool(args or kwargs)
    if "compiled" in questions:
        sections.insert(0, compiled_section(fn, args, settings, is_called, tuned_names(tuners)))
    if "slow" in questions:
        sections.append(slow_section(fn, args, settings, is_called, grid, targets))
    if "different" in questions:
        if not is_called or grid is None:
            raise TypeError("explain(why='different') repeats a launch: give it the arguments of one, and grid=")
        sections.append(why_different([launch_of(fn, args, settings, grid)], chosen_devices(device)))
    return Explanation(tuple(sections))


def chosen_questions(why: str | Sequence[str] | None) -> list[str]:
    chosen = why.replace(" ", "").split(",") if isinstance(why, str) else list(why or QUESTIONS[:3])
    if wrong := [question for question in chosen if question not in QUESTIONS]:
        raise ValueError(f"explain answers {', '.join(QUESTIONS)}, not {wrong[0]!r}")
    return chosen


def chosen_devices(device: str | Sequence[str] | None) -> Sequence[str]:
    """The interpreter, and what is compared with it."""
    chosen = [device] if isinstance(device, str) else list(device or DEVICES)
    if wrong := [name for name in chosen if name not in DEVICES]:
        raise ValueError(f"device is one of {', '.join(DEVICES)}, not {wrong[0]!r}")
    return list(dict.fromkeys((DEVICES[0], *chosen)))


def unwrapped(kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any], list[Any]]:
    """(the kernel inside of autotuners and heuristics, what they add to a launch, the autotuners)."""
    settings, tuners = dict(kwargs), []
    while not isinstance(kernel, JITFunction):
        if hasattr(kernel, "tunings"):
            tuners.append(kernel)
            best = kernel.best_config or (kernel.configs[0] if kernel.configs else None)
            settings |= best.all_kwargs() if best is not None and (args or kwargs) else {}
        elif hasattr(kernel, "extend") and (args or kwargs):
            settings = kernel.extend(args, settings)
        kernel = kernel.fn
    return kernel, settings, tuners


def launch_of(fn: Any, args: Sequence[Any], settings: Mapping[str, Any], grid: Any) -> Launch:
    values, _, options = bound(fn, args, settings)
    return Launch.of(fn, values, grid, options)


def bound(fn: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """(values, specialisations, options) of a call."""
    _, _, _, _, bind = fn.device_caches[driver.cache_key(driver.active)]
    try:
        values, specs, _, options = bind(*args, **settings)
    except TypeError as error:
        from tilework.runtime.launch.python.specialize import wrong_call  # lazily: only mistakes need it

        raise wrong_call(fn, error, tuple(args), dict(settings)) from None
    return values, specs, options


def called(fn: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, Request]:
    """(values, what would be compiled) of a call."""
    values, specs, options = bound(fn, args, settings)
    return values, Request.of_call(fn, values, specs, options)


# ---- why compiled


def compiled_kernels(fn: Any) -> list[Any]:
    """The compiled specialisations of a kernel in this process, in order of creation."""
    return [kernel for entry in fn.device_caches.values() for kernel in entry[0].values() if "metadata" in vars(kernel)]


def tuned_names(tuners: Sequence[Any]) -> set[str]:
    """The names that configurations set; differences in them need no advice."""
    return {name for tuner in tuners for config in tuner.configs for name in config.all_kwargs()}


def compiled_section(
    fn: Any, args: Sequence[Any], settings: Mapping[str, Any], is_called: bool, tuned: set[str]
) -> Section:
    """Compare each specialisation with those before it; with arguments, explain what a launch with them would
    compile."""
    known = [parts for kernel in compiled_kernels(fn) if (parts := parts_of_kernel(kernel)) is not None]
    where, name = kernel_span(fn), fn.__name__
    if is_called:
        new = called_parts(fn, args, settings)
        found = compared(new, known)
        return Section("compiled", f"{new.text()}", (call_finding(name, where, found, known, tuned),))
    findings: list[Finding] = []
    for position, parts in enumerate(known):
        found = compared(parts, known[:position])
        reason = f"the first in this process: {parts.text()}" if found.nearest is None else found.message()
        findings.append(made(name, where, f"specialisation {position + 1} of {name}: {reason}", found, tuned))
    return Section("compiled", f"{counted(len(known), 'specialisation')} of {name} in this process", tuple(findings))


def called_parts(fn: Any, args: Sequence[Any], settings: Mapping[str, Any]) -> KeyParts:
    values, found = called(fn, args, settings)
    made = parts_of(found.source, found.target, found.backend, found.options, cache_invalidating_env_vars())
    assert made is not None
    return KeyParts(
        made.kernel, made.arguments, made.others, dict(zip(fn.arg_names, map(value_text, values), strict=True))
    )


def call_finding(name: str, where: Any, found: Comparison, known: Sequence[KeyParts], tuned: set[str]) -> Finding:
    if found.nearest is None:
        title = f"{name} has not been compiled in this process: this call would"
    elif not found.differences:
        title = f"this call of {name} needs nothing new: one of its {counted(len(known), 'specialisation')} fits"
    else:
        title = f"this call of {name} needs a new specialisation: {found.message()}"
    return made(name, where, title, found, tuned)


def made(name: str, where: Any, title: str, found: Comparison, tuned: set[str]) -> Finding:
    helps = dict.fromkeys(one.help for one in found.differences if one.help and one.name not in tuned)
    facts = {"differences": [one.to_json() for one in found.differences], "parts": found.new.to_json()}
    return Finding(name, title, where, help="; ".join(helps), facts=facts)


# ---- why slow


def slow_section(
    fn: Any, args: Sequence[Any], settings: Mapping[str, Any], is_called: bool, grid: Any, targets: Sequence[GPUTarget]
) -> Section:
    found = list(
        called_cases(fn, args, settings, grid, targets)
        if is_called
        else (case for kernel in compiled_kernels(fn)[-1:] for case in cases_of_kernel(kernel, targets))
    )
    if not found:
        help = "launch it, or give `explain` the arguments of a launch"
        return why_slow(
            [], [Finding(fn.__name__, f"nothing of {fn.__name__} has been compiled in this process", help=help)]
        )
    return slow_of(found)


def slow_of(found: Sequence[Case | Finding]) -> Section:
    cases = [one for one in found if isinstance(one, Case)]
    return why_slow(cases, [one for one in found if isinstance(one, Finding)])


def called_cases(
    fn: Any, args: Sequence[Any], settings: Mapping[str, Any], grid: Any, targets: Sequence[GPUTarget]
) -> Iterator[Case | Finding]:
    """The cases of a launch with these arguments, with counters of the emulator."""
    values, found = called(fn, args, settings)
    yield from strided_findings(fn, values)
    launch = launch_of(fn, args, settings, grid) if grid is not None else None
    for target in targets or (found.target,):
        chosen = settings_for(vars(found.options), found.target, target)
        case = case_of(Request(found.source, target, chosen, launch))
        if isinstance(case, Case) and launch is not None and target.backend == "cuda":
            case = replace(case, counted=counts_of(launch, target))
        yield case


def explain_compiled(kernel: Any, target: str | Sequence[str] | None = None) -> Explanation:
    """Explain why a compiled kernel is slow, on its own target or another one."""
    if not hasattr(kernel.src, "fn"):
        raise TritonError(
            f"{kernel.name} was compiled from a file of IR: `tilework opt` and `tilework compile` explain those"
        )
    targets = [GPUTarget.parse(text) for text in ([target] if isinstance(target, str) else target or ())]
    return Explanation((slow_of(list(cases_of_kernel(kernel, targets))),))


# ---- inside a program that is explained

MOST_COMPARED = 20  # launches
MOST_COUNTED = 2  # specialisations of a kernel


class Watcher:
    """Listens to the events of `process/events.py` beside a recorder."""

    def __init__(self, recorder: Recorder, settings: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.targets = [GPUTarget.parse(text) for text in settings.get("targets", ())]
        self.questions = settings.get("questions", ())
        self.devices = settings.get("devices", ())
        self.compared = 0
        self.counted_of: Counter[str] = Counter()

    def __call__(self, what: str, facts: dict[str, Any]) -> None:
        if QUIET.is_quiet:
            return
        if what == "compiled" and "slow" in self.questions:
            self.keep_modules(facts)
        elif what == "ready":
            self.see_launch(facts)

    def keep_modules(self, facts: Mapping[str, Any]) -> None:
        """Write the module of a specialisation before any pass, for its own target or for the requested ones."""
        source, compiled = facts["source"], facts["target"]
        if not hasattr(source, "fn"):
            return
        from tilework.ir.printer import print_module  # with the compiler

        for target in self.targets or [compiled]:
            name = f"{facts['kernel'].hash}-{target.backend}-{target.arch}.ttir"
            path = Path(self.recorder.folder or "", name)
            known = {"kernel": source.fn._fn_name, "key": facts["kernel"].hash, "target": str(target)}
            settings = settings_for(vars(facts["options"]), compiled, target)
            try:
                text = print_module(Request(source, target, settings).module(), debuginfo=True)
                path.write_text(text, encoding="utf-8")
                self.recorder.write("module", path=str(path), settings=settings, **known)
            except (TritonError, ValueError) as error:
                self.recorder.write("module", failure=str(error), **known)

    def see_launch(self, facts: Mapping[str, Any]) -> None:
        """The first launch of a specialisation."""
        fn, kernel, grid = facts["fn"], facts["kernel"], facts["grid"]
        if isinstance(kernel, async_compile.FutureKernel):
            return
        launch = Launch.of(fn, facts["values"], grid, facts["options"])
        counted = {} if is_tuning() else self.counted(launch, kernel.metadata.target)
        strided = [asdict(finding) for finding in strided_findings(fn, facts["values"])]
        known = {"grid": launch.grid, "bytes": launch.bytes, "counted": counted, "strided": strided}
        self.recorder.write("launch", kernel=fn._fn_name, key=kernel.hash, **known)
        if "different" in self.questions and not is_tuning() and launch.programs:
            self.compare(launch)

    def counted(self, launch: Launch, compiled: GPUTarget) -> dict[str, Any]:
        """Counters of a launch by line, for each NVIDIA target."""
        wanted = [target for target in self.targets or [compiled] if target.backend == "cuda"]
        if "slow" not in self.questions or not launch.programs or not wanted:
            return {}
        self.counted_of[launch.fn._fn_name] += 1
        if self.counted_of[launch.fn._fn_name] > MOST_COUNTED:
            return {}
        return {str(target): counts_apart(launch, target) for target in wanted}

    def compare(self, launch: Launch) -> None:
        self.compared += 1
        if self.compared > MOST_COMPARED:
            return
        print(f"tilework explain: comparing {launch.fn.__name__} on {len(self.devices)} devices", file=sys.stderr)
        found = isolated(lambda: [asdict(finding) for finding in findings_of(launch, self.devices)])
        if isinstance(found, Died):
            found = [asdict(fatal(launch, found))]
        for finding in found:
            self.recorder.write("different", kernel=launch.fn._fn_name, finding=finding)


def fatal(launch: Launch, died: Died) -> Finding:
    """A launch that no device may repeat."""
    name = launch.fn.__name__
    help = "TRITON_SANITIZE=1 finds accesses out of bounds; --device chooses the devices one by one"
    return Finding(
        name,
        f"{name} kills its process ({died.how}) on one of the devices",
        kernel_span(launch.fn),
        help=help,
        severity="error",
        weight=30.0,
    )


def watch(recorder: Recorder) -> Watcher:
    """Return the watcher for the settings in a recorder's folder."""
    return Watcher(recorder, json.loads(Path(recorder.folder or "", "settings.json").read_text()))


__all__ = ["DEVICES", "explain_compiled", "explain_kernel"]
