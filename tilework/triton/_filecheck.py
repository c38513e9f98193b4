"""Names that Triton's FileCheck support imports."""

from tilework.compiler import ASTSource, make_backend
from tilework.triton.runtime.jit import create_function_from_signature

__all__ = ["ASTSource", "create_function_from_signature", "make_backend"]
