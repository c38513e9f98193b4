"""A table of checks: what each prints, and how the program ends.

    @check
    def the_library() -> str:
        expect(missing(), [])
        return "CUDA 12.8"

prints ``PASS  without torch  the_library  CUDA 12.8``, or FAIL and the error.
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKS: list[tuple[str, Callable[[], Any]]] = []


def check(function: Callable[[], Any]) -> Callable[[], Any]:
    """A row of the table; what the function returns is printed with it."""
    CHECKS.append((function.__name__, function))
    return function


def expect(found: Any, wanted: Any) -> None:
    """Fail unless they are equal, and say what they are."""
    if not (found == wanted):
        raise AssertionError(f"found {found!r}, expected {wanted!r}")


def expect_error(
    kind: type[BaseException] | tuple[type[BaseException], ...], said: str, call: Callable[[], Any]
) -> str:
    """The first line of the error that a call raises, which must say this."""
    try:
        call()
    except kind as error:
        if said not in str(error):
            raise AssertionError(f"the error says {error!s}, not {said!r}") from error
        return str(error).splitlines()[0]
    raise AssertionError(f"nothing was raised, expected {kind}")


def run(words: list[str], round: str) -> int:
    """All checks, or those that are asked for; how many failed."""
    failed = 0
    for name, function in CHECKS:
        if words and not any(word in name for word in words):
            continue
        try:
            detail = function() or ""
            result = "PASS"
        except BaseException as error:  # one broken check must not hide the others
            if isinstance(error, KeyboardInterrupt):
                raise
            frame = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"
            result, failed = "FAIL", failed + 1
        print(f"{result}  {round:<13} {name:<48} {detail}", flush=True)
    return failed
