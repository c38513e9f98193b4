"""Why is this different: one launch on every device, against the interpreter, and the first pass that changed the
result.

    why_different([Launch(add, (x, y, out, n, 1024), (4, 1, 1))])
    first_change(launch, "emulator:sm_90", kept, expected, tolerance).description
                        "the pass 'tritongpu-pipeline{num-stages=3}' (make_ttgir) changed it: out[3] is 1.0, not 2.0
                        ..."

The interpreter runs the kernel's own Python and shares nothing with the compiler but the typing rules, so it is the
reference. Where it cannot run the kernel, its error may be the answer: an access out of bounds is an error there, and
undefined elsewhere. Only elements that the launch writes are compared. Differences by rounding are distinguished from
wrong values (`check_each.py`), and so are those as large as the interpreter's own when it adds in another order.

To find the pass, the launch is compiled for the device and every module on the way is evaluated with the launch's
arguments; modules that a pass left unchanged are not evaluated again. If all of them compute the expected results, the
error is made behind them: by the code generator, LLVM, the assembler, or the device.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

from tilework.errors import InterpreterError, Span, span_at
from tilework.inspect.check_each import EXACT, PROMISES, Array, Expected, Gap, Tolerance, tolerance_of
from tilework.inspect.compilation import Request
from tilework.inspect.findings import Finding, Section, counted, ordered
from tilework.inspect.replay import (
    DEVICES,
    INTERPRETER,
    NATIVE,
    Kept,
    Launch,
    OutOfReach,
    TakesTooLong,
    active,
    limited,
    names_of,
    run_on,
    silence,
    unlaunched,
)
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.oracles.interpreter.operators import ORDERS, SUM_ORDER
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host.evaluator_launcher import runtime_values
from tilework.targets.base import IR_STAGES
from tilework.targets.observe import recording

SECONDS = 60.0  # for one device
AS_LARGE = 4.0  # times what another order of additions does: devices have other orders than the two that are tried

WILD = "not run: it would access memory out of bounds"


@dataclass
class Outcome:
    """The results of a launch on one device, or its failure."""

    device: str
    arrays: Mapping[str, Array] = field(default_factory=dict)
    failure: str | None = None
    gaps: Sequence[Gap] = ()
    tolerance: Tolerance = EXACT

    @property
    def wrong(self) -> Gap | None:
        return next((gap for gap in self.gaps if not gap.is_rounding), None)


def why_different(launches: Sequence[Launch], devices: Sequence[str] = DEVICES) -> Section:
    """Return the section about the differences of some launches."""
    found = [finding for launch in launches for finding in findings_of(launch, devices)]
    return section_of(found, len(launches), devices)


def section_of(found: Sequence[Finding], launches: int, devices: Sequence[str]) -> Section:
    wrong = sum(finding.severity == "error" for finding in found)
    verdict = f"{counted(wrong, 'difference')} that rounding does not explain" if wrong else "no wrong values"
    summary = f"{counted(launches, 'launch', 'launches')} on {', '.join(devices)}: {verdict}"
    return Section("different", summary, ordered(together(found)))


def together(found: Sequence[Finding]) -> list[Finding]:
    """Merge findings with equal texts."""
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.text(), []).append(finding)
    return [
        replace(group[0], notes=(*group[0].notes, f"the same for {len(group)} launches"))
        if len(group) > 1
        else group[0]
        for group in groups.values()
    ]


def findings_of(launch: Launch, devices: Sequence[str] = DEVICES, seconds: float = SECONDS) -> list[Finding]:
    """Return the findings about one launch."""
    name, part = launch.fn.__name__, launch.first_programs()
    where = kernel_span(launch.fn)
    try:
        kept = Kept(list(names_of(launch.fn, launch.values)))
    except OutOfReach as error:
        return [Finding(name, f"{name} was not compared: {error}", where, severity="warning")]
    with kept, silence():
        before = kept.arrays()
        outcomes = list(outcomes_of(part, kept, devices, seconds))
        ran = [outcome for outcome in outcomes if outcome.failure is None]
        failed = failure_findings(name, where, [one for one in outcomes if one.failure is not None])
        if len(ran) < 2:
            return failed
        reference = ran[0]
        expected = Expected(reference.arrays, before, kept.written() if reference.device == INTERPRETER else {})
        for outcome in ran[1:]:
            with active(outcome.device):
                outcome.tolerance = tolerance_of(launch_request(launch).module())
            outcome.gaps = expected.gaps(outcome.arrays, outcome.tolerance)
        wrong = [outcome for outcome in ran[1:] if outcome.wrong is not None]
        moves = moves_by_order(part, kept, expected, seconds) if wrong and reference.device == INTERPRETER else {}
        first = [
            order_finding(name, where, one, moves)
            if is_explained(one.gaps, moves)
            else wrong_finding(name, where, one, reference.device, part, kept, expected)
            for one in wrong
        ]
    ran_all = f"{part.programs} of {launch.programs} programs ran" if part.programs < launch.programs else ""
    return [*failed, *first, same_finding(name, where, ran, reference, ran_all)]


def outcomes_of(launch: Launch, kept: Kept, devices: Sequence[str], seconds: float) -> Iterator[Outcome]:
    """Run the devices one after the other; a launch that is out of bounds in the interpreter does not run as
    unchecked native code."""
    is_wild = False
    for device in devices:
        if is_wild and device == NATIVE:
            yield Outcome(device, failure=WILD)
            continue
        outcome = outcome_of(device, launch, kept, seconds)
        is_wild |= device == INTERPRETER and "AccessError" in (outcome.failure or "")
        yield outcome


def outcome_of(device: str, launch: Launch, kept: Kept, seconds: float) -> Outcome:
    """Run a launch on one device, and restore its memory."""
    try:
        noting = kept.noting_writes() if device == INTERPRETER else nullcontext()
        with limited(seconds), redirect_stdout(io.StringIO()), noting:
            run_on(device, launch)
        return Outcome(device, kept.arrays())
    except TakesTooLong:
        return Outcome(device, failure=f"given up after {seconds:.0f} s: choose a smaller problem")
    except Exception as error:  # whatever a device does not like is what the user wants to know
        return Outcome(device, failure=failure_text(error))
    finally:
        kept.restore()


def failure_text(error: BaseException) -> str:
    """An error; one of the interpreter as what the kernel raised."""
    if isinstance(error, InterpreterError) and error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def moves_by_order(launch: Launch, kept: Kept, expected: Expected, seconds: float) -> dict[str, float]:
    """Return the largest deviation of each array from the expected values when the interpreter adds in other orders."""
    found: dict[str, float] = {}
    for order in ORDERS:
        token = SUM_ORDER.set(order)
        try:
            outcome = outcome_of(INTERPRETER, launch, kept, seconds)
        finally:
            SUM_ORDER.reset(token)
        for name, array in outcome.arrays.items():
            found[name] = max(found.get(name, 0.0), expected.largest_move(name, array))
    return found


def is_explained(gaps: Sequence[Gap], moves: Mapping[str, float]) -> bool:
    """Return True if no error is much larger than what another order of additions does."""
    return all(gap.is_rounding or gap.largest <= AS_LARGE * moves.get(gap.name, 0.0) for gap in gaps)


def order_finding(name: str, where: Span | None, outcome: Outcome, moves: Mapping[str, float]) -> Finding:
    """A difference that the order of additions makes."""
    gap = outcome.wrong
    assert gap is not None
    return Finding(
        kernel=name,
        title=f"{name} is different on {outcome.device} by the order of a summation: {gap.describe(outcome.tolerance)}",
        span=where,
        notes=(f"the {INTERPRETER}'s own `{gap.name}` moves by {moves[gap.name]:.3g} when it adds in another order",),
        help="every order is right, and the result depends on it: add in a wider type, or fix the order by"
        " reproducible=True",
        severity="warning",
        weight=5.0,
        facts={
            "device": outcome.device,
            "argument": gap.name,
            "largest_error": gap.largest,
            "moves_by": moves[gap.name],
            "culprit": "order of summation",
        },
    )


def wrong_finding(
    name: str,
    where: Span | None,
    outcome: Outcome,
    reference: str,
    launch: Launch,
    kept: Kept,
    expected: Expected,
) -> Finding:
    """Wrong values on one device, and the pass that made them."""
    gap, tolerance = outcome.wrong, outcome.tolerance
    assert gap is not None
    change = first_change(launch, outcome.device, kept, expected, tolerance)
    others = [one.describe(tolerance) for one in outcome.gaps if one is not gap]
    return Finding(
        kernel=name,
        title=f"{name} is different on {outcome.device}: {gap.describe(tolerance)}",
        span=where,
        notes=(f"the {reference} says what is right", *others, change.description),
        help=HELP.get(change.culprit, PASS_HELP),
        severity="error",
        weight=10.0,
        facts={
            "device": outcome.device,
            "argument": gap.name,
            "index": gap.index,
            "expected": gap.expected,
            "got": gap.got,
            "largest_error": gap.largest,
            "culprit": change.culprit,
        },
    )


PASS_HELP = "this is a mistake of the compiler: TRITON_REPRODUCER_PATH=FILE writes what the pass got, for a report"
HELP = {
    "code generation": "programs that race, or read uninitialized memory, differ without any mistake in the"
    " compiler: TRITON_SANITIZE=race and =1 look for that",
    "frontend": "the interpreter and the compiler understand the kernel differently: a global that changed, or a"
    " mistake of one of them",
}


def failure_findings(name: str, where: Span | None, failed: Sequence[Outcome]) -> list[Finding]:
    """Findings about devices that could not run the launch; a failure of the interpreter covers the others."""
    if not failed:
        return []
    first, *rest = failed
    if first.device != INTERPRETER:
        return [failure_finding(name, where, one) for one in failed]
    return [failure_finding(name, where, first, [one.device for one in rest if one.failure != WILD])]


def failure_finding(name: str, where: Span | None, outcome: Outcome, also: Sequence[str] = ()) -> Finding:
    """A device that could not run the launch; in the interpreter that often is the answer."""
    is_reference = outcome.device == INTERPRETER
    first, *rest = (outcome.failure or "").splitlines() or [""]
    is_mistake = is_reference and "given up" not in first
    help = "what is an error in the interpreter is undefined on other devices: mend it first" if is_mistake else ""
    return Finding(
        kernel=name,
        title=f"{name} does not run on {outcome.device}: {first}",
        span=where,
        notes=(*(line for line in rest[:8] if line.strip()), *([f"nor on {', '.join(also)}"] if also else [])),
        help=help,
        severity="error" if is_mistake else "warning",
        weight=20.0 if is_reference else 5.0,
        facts={"device": outcome.device, "failure": outcome.failure},
    )


def same_finding(name: str, where: Span | None, ran: Sequence[Outcome], reference: Outcome, note: str) -> Finding:
    """The devices with equal results, and the rounding errors of the others."""
    equal = [one.device for one in ran[1:] if not one.gaps]
    near = [one for one in ran[1:] if one.gaps and one.wrong is None]
    title = (
        f"{name}: the same bits as the {reference.device} on {', '.join(equal)}"
        if equal
        else f"{name}: no device has the bits of the {reference.device}"
    )
    rounding = [f"{one.device}: {one.gaps[0].describe(one.tolerance)}" for one in near]
    return Finding(
        kernel=name,
        title=title,
        span=where,
        notes=(*rounding, *([note] if note else [])),
        facts={"equal": equal, "rounding": {one.device: one.gaps[0].relative for one in near}},
    )


def kernel_span(fn: Any) -> Span | None:
    """The line of the kernel's `def`."""
    found = span_at(fn.where.file, fn.def_line, fn.where.indent)
    return found if found.text else None


NO_RULE = "has no rule in the evaluator"


@dataclass(frozen=True)
class Change:
    """The step that changed a result: a pass by its name, the frontend, or the code generation behind the passes."""

    culprit: str
    description: str
    evaluated: int = 0


def launch_request(launch: Launch, **more: Any) -> Request:
    """Return the compilation that a launch on the active device needs."""
    made = unlaunched(launch.fn)
    *_, bind = made.device_caches[driver.cache_key(driver.active)]
    args, kwargs = launch.call(launch.options)
    values, specs, _, options = bind(*args, **kwargs)
    return Request.of_call(made, values, specs, options, **more)


def first_change(launch: Launch, device: str, kept: Kept, expected: Expected, tolerance: Tolerance) -> Change:
    """The first step on the way to the code of a device after which the evaluator computes something else."""
    with silence(), active(device):
        found = launch_request(launch, auto_tma=False)
        module = found.module()
        if (wrong := evaluated(module, launch, found.source, kept, expected, tolerance)) is not None:
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
            wrong = evaluated(parse_module(text), launch, found.source, kept, expected, tolerance, has)
            if wrong is not None and NO_RULE in wrong:  # what a module without such ops does later may still be known
                skipped.append(step.name)
            elif wrong is not None:
                since = f", or one since '{skipped[0]}', behind which modules cannot be evaluated," if skipped else ""
                return Change(step.name, f"the pass '{step.name}' ({run.tag}){since} changed it: {wrong}", count)
            else:
                skipped.clear()
    description = (
        f"all {len(steps)} passes keep it ({count} modules were evaluated): the mistake is made behind them, in the"
        " code generator or by the device"
    )
    if skipped:
        description = (
            f"every pass before '{skipped[0]}' keeps it, behind which modules have ops that cannot be evaluated: the"
            " mistake is made there or later"
        )
    return Change("code generation", description, count)


def evaluated(
    module: Any,
    launch: Launch,
    source: Any,
    kept: Kept,
    expected: Expected,
    tolerance: Tolerance,
    has: Sequence[str] | set[str] = (),
) -> str | None:
    """Evaluate a module; return a text about its first wrong result, None if all are right."""
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
        gaps = expected.gaps(kept.arrays(), tolerance)
    except EvaluationError as error:
        return f"it fails: {error}"
    finally:
        kept.restore()
    return next((gap.describe(tolerance) for gap in gaps if not gap.is_rounding), None)
