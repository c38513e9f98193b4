"""Triton's names for the meaning of the language: the class that builds IR, and the error of operands that do not go together."""

from tilework.frontend.semantic import Semantic as TritonSemantic
from tilework.language.typing.promotion import IncompatibleTypeErrorImpl

__all__ = ["IncompatibleTypeErrorImpl", "TritonSemantic"]
