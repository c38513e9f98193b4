"""Error messages without Python's jargon: a missing file is no "[Errno 2]"."""

from pathlib import Path


class UsageError(Exception):
    """A user error, shown without a traceback."""


def read_text(path: str) -> str:
    """A file that has to be text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {plain(error)}") from None


def plain(error: BaseException) -> str:
    """The message of an error that a user can mend.

    >>> plain(FileNotFoundError(2, "No such file or directory", "add.py"))
    'add.py: no such file or directory'
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        reason = error.strerror[0].lower() + error.strerror[1:]
        return f"{error.filename}: {reason}"
    if isinstance(error, UnicodeDecodeError):
        return f"not text: byte {error.object[error.start]:#04x} at position {error.start} is not {error.encoding}"
    return str(error) or type(error).__name__
