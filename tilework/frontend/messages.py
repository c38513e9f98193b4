"""Messages about wrong arguments, and advice for messages that do not carry their own.

A message may end in ``help: ...`` on a line of its own. For the others the first matching row of `ADVICE` is used.

A builtin reads its arguments as if they were right: ``tl.zeros((4,), "fp32")`` reads the attribute `is_fp8` of a str.
The AttributeError is true and useless; the user wrote an argument, so `wrong_argument` writes a message about the
argument:

    tl.zeros((4,), "fp32")      full: `dtype` cannot be 'fp32' (a str)
    tl.program_id(n)            program_id: `axis` must be known at compile time, but is int32
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tilework.language as language
from tilework.frontend.scopes import describe, unwrap
from tilework.language import core as tl
from tilework.language.compile_time import RunTimeOnly
from tilework.language.parameters import signature_of

ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"missing .*required|too many positional|unexpected keyword|multiple values|takes .* arguments?\b",
        "check the call against the function's signature",
    ),
    (
        r"incompatible dimensions|do not broadcast|cannot broadcast",
        "make the sizes equal, or one of them 1 (x[:, None] adds an axis)",
    ),
    (r"must be a power of 2", "round the size up with triton.next_power_of_2 and mask the rest"),
    (r"arange's arguments .* got .*\d\.", "a size is an int: divide with `//`, or convert with int(...)"),
    (
        r"must be of type tl\.constexpr|must be a constexpr|should be a constexpr|constexpr int|constexpr\[int\]"
        r"|not a constexpr",
        "declare the parameter `NAME: tl.constexpr`, or compute it from constexprs",
    ),
    (
        r"cannot convert .* to tensor",
        "only numbers and tensors are run-time values; annotate compile-time ones with tl.constexpr",
    ),
    (r"[Mm]ask .*(int1|bool)|mask must", "build the mask with a comparison, for example `mask=offsets < n`"),
    (
        r"Unsupported ptr type|not a pointer|unsupported ptr",
        "load and store take a pointer, or a pointer plus offsets: `ptr + tl.arange(0, BLOCK)`",
    ),
    (r"Cannot store to a constant pointer", "drop `tl.const` from the parameter"),
    (r"different signedness", "cast one operand so that both are signed or both unsigned"),
    (r"invalid operands of type", "cast the operands, or use an operator that these types have"),
    (r"out of range for type", "use a wider dtype, or cast the number explicitly: tl.full((), value, dtype)"),
    (
        r"unsupported tensor index",
        "Triton's blocks take only `:` and None; use tl.gather, tl.split or a new load to pick elements",
    ),
    (r"unsupported AST node type: (Break|Continue)", "compute a mask, or use `while` with a condition"),
    (
        r"unsupported AST node type: (Lambda|AsyncFunctionDef)|nested function definition",
        "define a @jit function at module level",
    ),
    (
        r"unsupported AST node type: ClassDef",
        "define it at module level; tl.core.aggregate makes classes that kernels can use",
    ),
    (r"unsupported AST node type: (Import|ImportFrom|Global|Nonlocal)", "move it out of the kernel"),
    (
        r"unsupported AST node type: (Dict|Set|GeneratorExp|DictComp|SetComp)",
        "use a tuple, or a constexpr built on the host",
    ),
    (r"unsupported AST node type: (Raise|Try|Assert)", "use tl.static_assert or tl.device_assert"),
    (r"unsupported AST node type: NamedExpr", "assign it in a statement of its own, before this one"),
    (
        r"unsupported AST node type: (Yield|YieldFrom|Await)",
        "store results with tl.store, or return them to the caller",
    ),
    (r"unsupported AST node type: Match", "use if, elif and else"),
    (r"unsupported AST node type: Delete", "variables end with the function; assign another value if you need to"),
    (r"unsupported AST node type", "see the language reference for the Python that kernels may use"),
    (r"simultaneous multiple comparison", "write `(a < b) & (b < c)`"),
    (r"simultaneous multiple assignment", "write one assignment per line"),
    (r"assignment to .* is not supported", "make a new value and bind it to a name"),
    (
        r"Cannot have `return` statements inside",
        "set a variable and return after the loop, or move the loop into a @jit function",
    ),
    (r"more than one value is ambiguous", "reduce it first: `if tl.max(mask, 0):`, or use tl.where"),
    (r"conditionals can only accept", "compare it: `if x == y:`"),
    (r"not supported in this architecture", "use a supported type, or compile for a newer target"),
    (r"Input shapes should have|K >= ", "pad the blocks, or use a larger BLOCK_K"),
    (r"program_id axis", "a grid has three axes: 0, 1 and 2"),
    (r"exceeds triton maximum", "use smaller blocks and more programs, or loop over parts of the tile"),
    (r"invalid axis|duplicate axes|axis", "axes count from 0 to rank-1; negative ones from the end"),
    (r"arange", "tl.arange(0, BLOCK) with BLOCK a constexpr"),
    (r"has no attribute", "check the spelling"),
    (r"already defined. constexpr", "use another name, or drop the annotation to make it a run-time variable"),
    (r"`other` cannot be provided without `mask`", "pass mask=, or drop other="),
    (r"must be same dtype", "cast one of them with .to(dtype)"),
    (r"`in` needs compile-time", "compare one by one: `(x == a) | (x == b)`"),
    (r"\*\*kwargs", "write the keywords out"),
    (r"cannot unpack", "one name per element; tl.split takes a block of two columns apart"),
    (r"is not defined", "define it before this line on every path, or pass it as an argument"),
    (r"Assertion condition could not be determined", "use tl.device_assert for run-time conditions"),
    (r"f-string", "use tl.device_print for run-time values"),
    (r"Only `range` and `static_range`", "iterate with range, tl.range or tl.static_range"),
    (r"iterat", "iterate with range, tl.range or tl.static_range"),
    (r"reshape", "the number of elements must stay the same"),
    (r"[Cc]annot cast", "cast through a type that both support, for example tl.float32"),
    (r"`(and|or|not)` takes bools", "compare it: `x != 0`"),
    (r"[Cc]annot bitcast", "bitcast keeps the number of bits; use .to(dtype) to convert"),
    (r"shape|dimension|rank", "check the shapes of the operands"),
    (
        r"unsupported operand type\(s\).*NoneType",
        "None is what a call without a result gives; check where it comes from",
    ),
    (r"unsupported operand type\(s\)", "both values are known at compile time, so Python's own rules apply"),
    (r"Expected dtype", "cast with .to(dtype)"),
)

PYTHON_WORDS = {
    "Lambda": "lambda expressions",
    "FunctionDef": "functions inside functions",
    "AsyncFunctionDef": "functions inside functions",
    "ClassDef": "classes inside functions",
    "ImportFrom": "`import`",
    "Dict": "dictionaries",
    "DictComp": "dictionaries",
    "Set": "sets",
    "SetComp": "sets",
    "GeneratorExp": "generator expressions",
    "NamedExpr": "`:=`",
    "TryStar": "`try`",
    "YieldFrom": "`yield`",
    "Delete": "`del`",
    "AsyncFor": "`async for`",
    "AsyncWith": "`async with`",
    "TypeAlias": "`type` statements",
}


def syntax_name(kind: str) -> str:
    """Return the usual name of a syntax-tree node: ``Break`` is `` `break` ``."""
    return PYTHON_WORDS.get(kind, f"`{kind.lower()}`")


def with_advice(error: Exception, text: str | None = None) -> str:
    """The text of an error, with advice at its end."""
    text = text if text is not None else str(error)
    if isinstance(error, AttributeError | KeyError | IndexError) and text and " " not in text.strip("'"):
        text = f"{type(error).__name__}: {text}"
    if not text:
        text = type(error).__name__
    if "\nhelp: " in text:
        return text
    if isinstance(error, AttributeError) and error.name is not None:
        return f"{text}\nhelp: {similar_attribute(error.obj, error.name)}"
    for pattern, advice in ADVICE:
        if re.search(pattern, text):
            return f"{text}\nhelp: {advice}"
    return text


def similar_attribute(owner: Any, name: str) -> str:
    """Return a suggestion for a misspelled ``owner.name``."""
    if hasattr(language, name) and owner is not language:
        return f"did you mean the function `tl.{name}`?"
    import difflib  # lazily: only mistakes need it

    close = difflib.get_close_matches(name, (known for known in dir(owner) if not known.startswith("_")), n=1)
    return f"did you mean `{close[0]}`?" if close else "check the spelling"


AT_COMPILE_TIME = "declare the parameter `NAME: tl.constexpr`, or compute it from constexprs"


def wrong_argument(callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception) -> str | None:
    """Return a message about the argument that `error` is about; None if it is about something else."""
    if isinstance(error, RunTimeOnly):
        culprit = error.value
    elif isinstance(error, AttributeError):
        culprit = error.obj
    else:
        return None
    parameter = next((name for name, value in named(callee, args, kwargs) if holds(value, culprit)), None)
    if parameter is None:
        return None
    name = getattr(callee, "__name__", "the call")
    if isinstance(error, AttributeError):
        return f"{name}: {parameter} cannot be {kind_of(culprit)}\nhelp: {calling_form(callee, name)}"
    if error.operation in ("__getitem__", "__iter__"):
        return f"{name}: {parameter} must be a list or a tuple, but is {describe(culprit)}\nhelp: put it in brackets"
    return f"{name}: {parameter} must be known at compile time, but is {describe(culprit)}\nhelp: {AT_COMPILE_TIME}"


def named(callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments with the names of their parameters, as messages show them."""
    try:
        names = list(signature_of(callee).parameters)
    except (TypeError, ValueError):
        names = []
    for position, value in enumerate(args):
        yield (f"`{names[position]}`" if position < len(names) else f"argument {position + 1}"), value
    for name, value in kwargs.items():
        yield f"`{name}`", value


def holds(value: Any, culprit: Any) -> bool:
    """`culprit` is `value`, the constant inside it, or an element of it."""
    plain = unwrap(value)
    if value is culprit or plain is culprit:
        return True
    if isinstance(culprit, str | int | float) and type(plain) is type(culprit) and plain == culprit:
        return True  # an equal constant, from a cache
    elements = plain.values if isinstance(plain, tl.tuple) else plain if isinstance(plain, (list, tuple)) else ()
    return any(holds(element, culprit) for element in elements)


def kind_of(value: Any) -> str:
    """``'fp32' (a str)``, ``3 (an int)``, ``int32`` for a tensor."""
    if isinstance(value, tl.base_value):
        return describe(value) or str(value)
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{shortened(value)} ({'an' if kind[0] in 'aeiou' else 'a'} {kind})"


def shortened(value: Any) -> str:
    """The text of a value, if it is short enough to read."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >> 128 else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def calling_form(callee: Any, name: str) -> str:
    """``it is called as full(shape, value, dtype)``."""
    try:
        parameters = signature_of(callee).parameters.values()
    except (TypeError, ValueError):
        return "check the call against the function's signature"
    visible = [str(p.replace(annotation=p.empty)) for p in parameters if not p.name.startswith("_")]
    return f"it is called as {name}({', '.join(visible)})"
