"""Launches that look for races between programs: TRITON_SANITIZE=race, or `sanitize="race"`.

    kernel.py:7:5: error: program (1, 0, 0) writes element 0 of argument 'out', and so does program (0, 0, 0); nothing orders them (race)
        7 |     tl.store(out, total)
          |     ^
       note: program (0, 0, 0) writes it in line 7: tl.store(out, total)

The evaluator runs the kernel, program after program, with memory that remembers who has read and written it
(`oracles/evaluator/races.py`). Programs that write what is there already are worth a warning only.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from tilework.errors import SanitizerError
from tilework.runtime.devices.host.evaluator_launcher import EvaluatorLauncher
from tilework.runtime.devices.launcher import Extent, Scratch
from tilework.runtime.sanitize.checked_launch import KernelAccessError, id_of, place_text, rendered, show_warning

ENDLESS = "programs run one after another here: one that waits for a later one waits for ever"


class RaceLauncher(EvaluatorLauncher):
    """Runs one compiled kernel in the evaluator."""

    def start(self, grid: Extent, stream: int, function: Any, args: Sequence[Any], scratch: Scratch) -> None:
        """Run every program of the grid, in order, until a race is found."""
        # lazily: a whole executor, which few programs use
        from tilework.oracles.evaluator.races import RaceFound, RaceMemory, granule_of
        from tilework.oracles.evaluator.rules import EvaluationError

        memory = RaceMemory(prod(grid), granule_of(function), foreign=True)
        try:
            self.evaluate(grid, function, args, scratch, memory)
        except RaceFound as found:
            raise SanitizerError(told(found.race, grid)[1]) from None
        except EvaluationError as error:
            raise translated(error) from None
        finally:
            for race in memory.harmless.values():
                place, text = told(race, grid, "warning")
                show_warning(text, place)


def translated(error: Any) -> Exception:
    """What stopped the evaluator, as the sanitizer says it."""
    if error.op == "tt.assert":
        return RuntimeError(f"{error.location}: device-side assert triggered: {error.reason} [program {error.program}]")
    help = ENDLESS if error.reason.startswith(("did not end", "waits")) else ""
    kind = KernelAccessError if error.reason.startswith(("reads", "writes")) else SanitizerError
    return kind(rendered(error.location, f"program {error.program} {error.reason}", help=help))


def told(race: Any, grid: Extent, severity: str = "error") -> tuple[str, str]:
    """The place of a race, and its text: both lines, both programs."""
    from tilework.ir.locations import location_text  # lazily: the compiler loads when something is compiled

    first, second = (id_of(number, grid) for number in race.programs)
    verb, own = race.verbs
    place, other = (location_text(op.location) or "" for op in (race.second, race.first))
    both = f"and so does program {first}" if verb == own else f"which program {first} {verb}"
    title = (
        f"program {second} {own} element {race.element} of argument {race.name!r}, {both}; nothing orders them (race)"
    )
    if race.is_harmless:
        title += ": harmless as long as all write the same"
    note = f"program {first} {verb} it in {place_text(other)}"
    return place, rendered(place, title, notes=(note,), severity=severity)
