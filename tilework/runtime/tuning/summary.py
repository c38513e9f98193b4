"""What a tuning tried and chose, for people: TRITON_PRINT_AUTOTUNING=1."""

from typing import Any

from tilework.errors import DoesNotFit
from tilework.runtime.tuning.results import has_failed


def summary(tuner: Any, key: tuple[Any, ...]) -> str:
    """The text that Triton's programs print, with what only we know."""
    found = tuner.tunings[key]
    timings, failures = found["timings"], found["failures"]
    lines = [
        f"Triton autotuning for function {tuner.__name__},",
        f"with key as {key},",
        f"finished after {found['seconds']:.2f}s,",
    ]
    if found["from_disk"]:
        lines.append(f"{found['from_disk']} of {len(timings)} timings from disk,")
    if found["elsewhere"]:
        lines.append(f"{found['elsewhere']} configurations compiled in other processes,")
    if misfits := [error for error in failures.values() if isinstance(error, DoesNotFit)]:
        lines.append(f"{len(misfits)} of {len(timings)} configurations pruned: they cannot fit,")
    for config in (config for config, timing in timings.items() if has_failed(timing)):
        reason = failures.get(config)
        lines.append(f"failed config: {config}: {'as before' if reason is None else reason},")
    return "\n".join([*lines, f"best config selected: {found['best']};"])
