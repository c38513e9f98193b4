"""What a builtin asks of its `_semantic` argument, and what every operation means: which types, which shapes, which errors.

A builtin turns its compile-time arguments into plain Python values and calls one method here. Values (a tensor, a constexpr or
a number) are passed on as the user wrote them; the method promotes, broadcasts, checks, and raises ValueError, TypeError or
AssertionError with the words the user will read. What is left to do, `Carrier` lists: the compiler builds IR
(`tilework.frontend.semantic`), the interpreter computes.
"""

from tilework.language.typing.program import Program
from tilework.language.values import tensor


class Semantic(Program):
    """The methods of all families (`tilework.language.typing`); who carries them out supplies those of `Carrier`."""

    tensor = tensor
