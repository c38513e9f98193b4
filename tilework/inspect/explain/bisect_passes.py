"""Which pass changed a result: a launch is compiled for a device, and every module on the way is evaluated.

    found = first_change(launch, "emulator:sm_90", kept, expected, room)
    found.words        "the pass 'tritongpu-pipeline{num-stages=3}' (make_ttgir) changed it: out[3] is 1.0, not 2.0 ..."

As `tilework opt --check-each`, with the arguments of the launch. Modules that a pass left as they were are not evaluated again. If all
of them compute what was expected, the mistake is made behind them: by the code generator, LLVM, the assembler, or whoever runs the code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilework.inspect.explain.devices import Launch, active, silence, unlaunched
from tilework.inspect.explain.gaps import Expected, Room
from tilework.inspect.explain.launch_memory import Kept
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host.evaluator_launcher import runtime_values
from tilework.runtime.launch.python.specialization import Specialization
from tilework.targets.base import IR_STAGES
from tilework.targets.recording import recording
from tilework.tools.check_each import PROMISES

NO_RULE = "has no rule in the evaluator"


@dataclass(frozen=True)
class Change:
    """Where a result became another one: a pass by its name, the frontend, or what comes behind the passes."""

    culprit: str
    words: str
    evaluated: int = 0


@dataclass(frozen=True)
class Compiling:
    """How a launch is compiled for a device."""

    source: Any
    target: Any
    backend: Any
    options: Any

    @classmethod
    def of(cls, fn: Any, values: Any, specs: Any, options: Mapping[str, Any], **more: Any) -> "Compiling":
        """A call whose arguments are bound."""
        _, _, target, backend, _ = fn.device_caches[driver.cache_key(driver.active)]
        found = Specialization.of(fn, values, specs, {**fn.full_options(options, backend), **more})
        return cls(found.source(), target, backend, backend.parse_options(found.options))


def compiling(launch: Launch, **more: Any) -> Compiling:
    """What a launch on the active device would compile."""
    made = unlaunched(launch.fn)
    *_, bind = made.device_caches[driver.cache_key(driver.active)]
    args, kwargs = launch.call(launch.options)
    values, specs, _, options = bind(*args, **kwargs)
    return Compiling.of(made, values, specs, options, **more)


def front_module(found: Compiling) -> Any:
    """The module before any pass."""
    return found.source.module(frontend_options(found.target, found.options))


def first_change(launch: Launch, device: str, kept: Kept, expected: Expected, room: Room) -> Change:
    """The first step on the way to the code of a device after which the evaluator computes something else."""
    with silence(), active(device):
        found = compiling(launch, auto_tma=False)
        module = front_module(found)
        if (wrong := evaluated(module, launch, found.source, kept, expected, room)) is not None:
            return Change("frontend", f"the module before any pass computes something else already: {wrong}", 1)
        with recording() as seen:
            stages = [run for name, run in found.backend.stages(found.options).items() if name in IR_STAGES]
            try:
                for run in stages:
                    module = run(module)
            except Exception as error:
                return Change("compiler", f"it does not compile: {type(error).__name__}: {error}")
        steps = [(run, step) for run in seen.runs if run.tag != "remarks" for step in run.steps]
        text, count, has, skipped = seen.runs[0].text if seen.runs else "", 1, set[str](), list[str]()
        for run, step in steps:
            name = step.name.partition("{")[0]
            has |= PROMISES.get(name, set())
            if step.text == text:
                continue
            text, count = step.text, count + 1
            wrong = evaluated(parse_module(text), launch, found.source, kept, expected, room, has)
            if wrong is not None and NO_RULE in wrong:  # what a module without such ops does later may still be known
                skipped.append(step.name)
            elif wrong is not None:
                since = f", or one since '{skipped[0]}', behind which modules cannot be evaluated," if skipped else ""
                return Change(step.name, f"the pass '{step.name}' ({run.tag}){since} changed it: {wrong}", count)
            else:
                skipped.clear()
    words = f"all {len(steps)} passes keep it ({count} modules were evaluated): the mistake is made behind them, in the code generator or by who runs the code"
    if skipped:
        words = f"every pass before '{skipped[0]}' keeps it, behind which modules have ops that cannot be evaluated: the mistake is made there or later"
    return Change("code generation", words, count)


def evaluated(
    module: Any,
    launch: Launch,
    source: Any,
    kept: Kept,
    expected: Expected,
    room: Room,
    has: Sequence[str] | set[str] = (),
) -> str | None:
    """What a module computes wrongly, in words; None if it is right."""
    values: list[Any] = []
    for type_, value in zip(source.signature.values(), launch.values, strict=True):
        runtime_values(type_, value, values)
    try:
        evaluate(
            module,
            None,
            values,
            launch.grid,
            foreign=True,
            on_print=lambda line: None,
            barriers="barriers" in has,
            fences="fences" in has,
        )
        gaps = expected.gaps(kept.arrays(), room)
    except EvaluationError as error:
        return f"it fails: {error}"
    finally:
        kept.restore()
    return next((gap.words(room) for gap in gaps if not gap.is_rounding), None)
