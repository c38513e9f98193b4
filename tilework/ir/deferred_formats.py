"""Textual formats of xDSL's ops that are read when the first such op is: tilework prints and parses most ops by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred_formats() -> Iterator[None]:
    """Ops that are declared inside of the block read their format when it is needed."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram  # lazily: only a compiler needs it

    read = FormatProgram.from_str

    class Later:
        def __init__(self, text: str, definition: Any) -> None:
            self.source = (text, definition)

        def __getattr__(self, name: str) -> Any:
            self.__dict__.update(vars(program := read(*self.source)))
            return getattr(program, name)

    FormatProgram.from_str = staticmethod(Later)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(read)
