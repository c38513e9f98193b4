"""Triton's names for the meaning of the language: the class that builds IR, and the error of operands that do not go together."""

from typing import Any

from tilework.frontend.semantic import Semantic as TritonSemantic

__all__ = ["IncompatibleTypeErrorImpl", "TritonSemantic"]


class IncompatibleTypeErrorImpl(Exception):
    """Two types that an operator does not take together."""

    def __init__(self, type_a: Any, type_b: Any) -> None:
        self.type_a, self.type_b = type_a, type_b
        self.message = f"invalid operands of type {type_a!r} and {type_b!r}"
        super().__init__(self.message)
