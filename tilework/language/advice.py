"""What to do about a mistake: advice for messages of errors that do not carry their own.

A message may end in ``help: ...`` on a line of its own. For the others the first matching row of `ADVICE` is used, by
the compiler and by the interpreter alike.
"""

import ast
import re
from typing import Any

import tilework.language as language
from tilework.language.typing.indexing import NOT_AN_ARRAY

CHECK_THE_SPELLING = "check the spelling"
ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"(operands of type|dtype|takes bools|wrong type argument|add pointers) .*pointer<|of a pointer needs",
        "did you forget tl.load? A pointer is an address; cast it to tl.int64 to compute with the address itself",
    ),
    (
        r"cannot be block type if pointer argument is not a block",
        "the pointer is a single address; make it a tile of addresses: ptr + tl.arange(0, BLOCK)",
    ),
    (
        r"'tuple' object has no attribute '?(append|extend|insert|pop|remove|sort|reverse|clear)",
        "lists are tuples in kernels, which do not change: write `r = r + (x,)`",
    ),
    (
        r"out of range: there are 0 elements",
        "pointers and numbers have no axes; pass sizes as arguments of the kernel",
    ),
    (
        r"'tensor' object has no attribute '(stride|strides|size|ndim|flatten|item|tolist|copy|contiguous)'",
        "a kernel sees pointers and tiles, not arrays; pass sizes and strides as arguments",
    ),
    (r"is not string: device_print", 'the first argument is a text: print("x =", x)'),
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
    (r"has no attribute", CHECK_THE_SPELLING),
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

OTHER_NAMES = {
    "absolute": "abs", "amax": "max", "amin": "min", "matmul": "dot", "mm": "dot", "bmm": "dot",
    "concatenate": "cat", "true_divide": "fdiv", "fabs": "abs",
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "power": "pow", "transpose": "trans",
}  # fmt: skip


def with_advice(error: Exception, text: str | None = None, code: str | None = None) -> str:
    """The text of an error, with advice at its end; `code` is the expression that failed."""
    text = text if text is not None else str(error)
    if isinstance(error, KeyError | AttributeError | IndexError) and text and " " not in text.strip("'"):
        text = f"{type(error).__name__}: {text}"
    if not text:
        text = type(error).__name__
    if "\nhelp: " in text:
        return text
    advice = advice_for(error, text, code)
    return f"{text}\nhelp: {advice}" if advice else text


def advice_for(error: Exception, text: str, code: str | None) -> str | None:
    """What to do about an error; None if there is nothing to say."""
    if text.endswith(NOT_AN_ARRAY):
        return about_pointer_index(code)
    found = next((advice for pattern, advice in ADVICE if re.search(pattern, text)), None)
    if isinstance(error, AttributeError) and error.name is not None and found in (None, CHECK_THE_SPELLING):
        return similar_attribute(error.obj, error.name)
    return found


def about_pointer_index(code: str | None) -> str:
    """``x[i]`` of a pointer, with the names of the program."""
    name, address = "this", "pointer + offsets"
    if (node := subscript(code)) is not None:
        name = f"`{ast.unparse(node.value)}`"
        offsets = "offsets" if isinstance(node.slice, ast.Tuple | ast.Slice) else ast.unparse(node.slice)
        address = f"{ast.unparse(node.value)} + {offsets}"
    return f"{name} is a pointer: read with `tl.load({address})`, write with `tl.store({address}, value)`"


def subscript(code: str | None) -> ast.Subscript | None:
    """The first ``x[i]`` in a text; None if there is none, or the text is no Python."""
    try:
        nodes = ast.walk(ast.parse(code or ""))
    except SyntaxError:
        return None
    return next((node for node in nodes if isinstance(node, ast.Subscript)), None)


def similar_attribute(owner: Any, name: str) -> str:
    """Return a suggestion for a misspelled ``owner.name``."""
    if hasattr(language, name) and owner is not language:
        return f"did you mean the function `tl.{name}`?"
    import difflib  # lazily: only mistakes need it

    close = difflib.get_close_matches(name, (known for known in dir(owner) if not known.startswith("_")), n=1)
    return f"did you mean `{close[0]}`?" if close else CHECK_THE_SPELLING


def counterpart(name: str) -> str | None:
    """The function of the language that does what one of the host's of this name does: ``tl.exp`` for ``np.exp``."""
    own = OTHER_NAMES.get(name, name)
    owners = (("tl", language), ("tl.extra.libdevice", language.extra.libdevice))
    found = ((where, getattr(owner, own, None)) for where, owner in owners)
    return next((f"{where}.{own}" for where, value in found if callable(value)), None)


def foreign_call(library: str, callee: Any) -> str:
    """The message about ``np.sqrt(x)`` or ``math.sqrt(x)`` of a value of the kernel."""
    name = getattr(callee, "__name__", None) or type(callee).__name__
    found = counterpart(name)
    advice = f"use {found}" if found else "write it with tl.* functions, or compute it on the host and pass the result"
    what = "numbers" if library == "math" else "arrays"
    return f"{library}.{name} works on {what} of the host, not on the values of a kernel\nhelp: {advice}"
