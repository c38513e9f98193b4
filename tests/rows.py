"""Rows of tables as tests: for cells that take less time than pytest needs for a test."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def row(names: str | tuple[str, ...], cells: Iterable[Any]) -> Callable[[Any], Any]:
    """As `pytest.mark.parametrize`, in one test: it is called for each of `cells`, and a failure names its own."""
    cells = list(cells)
    assert cells, "a row without cells tests nothing"

    def decorate(test: Any) -> Any:
        @wraps(test)
        def run(**given: Any) -> None:
            for cell in cells:
                values = {names: cell} if isinstance(names, str) else dict(zip(names, cell, strict=True))
                try:
                    test(**given, **values)
                except BaseException as error:
                    error.add_note(f"in the cell {values}")
                    raise

        own = {names} if isinstance(names, str) else set(names)
        parameters = inspect.signature(test).parameters
        assert own <= set(parameters), f"{test.__name__} has no parameters {own}"
        run.__signature__ = inspect.Signature([p for name, p in parameters.items() if name not in own])  # pyright: ignore
        return run

    return decorate
