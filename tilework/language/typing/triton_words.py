"""How Triton refuses the Python that its kernels do not have; the compiler and the interpreter say the same (`TILEWORK_STRICT_TRITON=1`)."""

from typing import Any

from tilework.language.typing.promotion import plain

BREAK = "unsupported AST node type: Break: kernels have no `break`"
CONTINUE = "unsupported AST node type: Continue: kernels have no `continue`"
MATCH = "unsupported AST node type: Match: kernels have no `match`"
FOR_ELSE = "`for ... else` is not supported"
WHILE_ELSE = "`while ... else` is not supported"
RETURN_IN_LOOP = "Cannot have `return` statements inside `while` or `for` statements in triton"
COMPARISONS = "simultaneous multiple comparison is not supported"
ASSIGNMENTS = "simultaneous multiple assignment is not supported."
NESTED_COMPREHENSIONS = "nested comprehensions are not supported"
COMPREHENSION = "only comprehensions over tuples, with one name as target, are supported"
AMBIGUOUS = "Boolean value of Tensor with more than one value is ambiguous"
NESTED_FUNCTION = "nested function definition is not supported."
FOREVER = "\nhelp: write the condition here, or use tl.static_range for a loop known at compile time"


def list_target(target: str) -> str:
    """For ``[a, b] = t``."""
    return f"assignment to {target} is not supported: use a tuple (list)"


def starred_target(target: str) -> str:
    """For ``a, *b = t``."""
    return f"assignment to {target} is not supported: it has a starred target"


def part(target: str) -> str:
    """For ``x[0] = v``."""
    return f"assignment to {target} is not supported: values of a kernel cannot be changed in place (subscript)"


def augmented(target: str) -> str:
    """For ``x[0] += v``."""
    return f"augmented assignment to {target} is not supported, only to names"


def pattern(case: str) -> str:
    """For ``case {"x": y}``, which we have not either."""
    return f"`case {case}` is not supported: only values, names, `|` and sequences"


def known_condition(value: Any) -> str:
    """For ``while True``."""
    return f"the condition of a while loop must be a run-time value, this one is {value!r}{FOREVER}"


def index(value: Any) -> str:
    """For ``x[0]``."""
    return f"unsupported tensor index: {plain(value)}; a tensor takes only `:` and None"
