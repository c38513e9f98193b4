"""Kernels as Python programs over NumPy: executes the language statement by statement.

    @jit(interpret=True)                # or TRITON_INTERPRET=1
    def double(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        breakpoint()                    # pdb, print and tracebacks work in the kernel's own file
        tl.store(x + i, tl.load(x + i) * 2)

It shares only the typing rules with the compiler, so that each can be tested against the other. Every memory access is
checked.
"""

from tilework.errors import InterpreterError
from tilework.oracles.interpreter.allowed_memory import AccessError
from tilework.oracles.interpreter.arguments import register_memory
from tilework.oracles.interpreter.function import InterpretedFunction

__all__ = ["AccessError", "InterpretedFunction", "InterpreterError", "register_memory"]
