"""The running line of the user's program.

calls = user_calls()            the innermost line outside of tilework first, then its caller
calls[0].render()               "   12 | add[(4,)](x, y, out, 1000, BLOCK=256)" and carets
"""

import os
import sys
import sysconfig
from types import FrameType

from tilework.errors import Span, span_at

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
STANDARD = sysconfig.get_path("stdlib") + os.sep
PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})


def user_calls() -> tuple[Span, ...]:
    """The lines that are being executed: the nearest one outside of tilework, and if that is in an installed package,
    the
    nearest one outside of all of them."""
    outside = list(frames_outside(sys._getframe(1)))
    own = [frame for frame in outside if is_own(frame.f_code.co_filename)]
    chosen = outside[:1] if not own or (outside and outside[0] is own[0]) else [outside[0], own[0]]
    return tuple(span_of(frame) for frame in chosen)


def warn_user(text: str) -> None:
    """A warning at the line of the user's program that is running."""
    import warnings  # lazily: few are warned

    calls = user_calls()
    warnings.warn_explicit(text, RuntimeWarning, *((calls[0].file, calls[0].line) if calls else ("<launch>", 0)))


def is_own(file: str) -> bool:
    """Return True for a file of this program: not an installed one, nor one that torch's compiler generated."""
    return not file.startswith((*PACKAGES, "<")) and "torchinductor_" not in file


def frames_outside(frame: FrameType | None) -> "list[FrameType]":
    found: list[FrameType] = []
    while frame is not None:
        file = frame.f_code.co_filename
        is_standard = file.startswith(STANDARD) and not file.startswith(PACKAGES)  # packages may be below
        if not is_standard and not file.startswith((PACKAGE, "<frozen", "<binder")):
            found.append(frame)
        frame = frame.f_back
    return found


def span_of(frame: FrameType) -> Span:
    """The expression that a frame is executing."""
    positions = list(frame.f_code.co_positions())
    line, end_line, column, end = positions[frame.f_lasti // 2] if frame.f_lasti >= 0 else (None, None, None, None)
    line = line or frame.f_lineno
    place = span_at(frame.f_code.co_filename, line, column or 0)
    if column is None:
        return place
    raw = place.text.encode()
    start = len(raw[:column].decode(errors="ignore"))  # counted in bytes
    last = len(raw[:end].decode(errors="ignore")) if end_line == line and end is not None else len(place.text)
    return Span(place.file, place.line, start, max(last, start + 1), place.text)
