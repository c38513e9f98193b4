"""What to do about a mistake: advice for messages of errors that do not carry their own.

A message may end in ``help: ...`` on a line of its own. For the others the first matching row of `ADVICE` is used, by
the compiler and by the interpreter alike.
"""

import ast
import re
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

import tilework.language as language
from tilework.language.parameters import signature_of
from tilework.language.typing import triton_messages
from tilework.language.typing.indexing import NOT_AN_ARRAY
from tilework.language.typing.promotion import plain

CHECK_THE_SPELLING = "check the spelling"
CHECK_THE_CALL = "check the call against the function's signature"
LOOPS = "iterate with range or tl.static_range; for the items of a tuple t: `for i in tl.static_range(len(t))` and t[i]"
NUMPY_NUMBER = "write a Python number, such as 2.0 or float(x); for one of a certain type, tl.full((), 2.0, tl.float32)"
AN_ARRAY = "an array is not a tile: use tl.arange, tl.zeros or tl.full, or pass the array to the kernel and load it"
MATMUL = "use tl.dot(a, b)"
POWER = "write x * x for a square, tl.sqrt(x) for a root, tl.exp(x) for e ** x, or tl.extra.libdevice.pow(x, y)"
DIVMOD = "write `a // b` and `a % b`"
ADVICE: tuple[tuple[str, str], ...] = (
    (r"an offset is an integer; cast", "divide integers with `//`, or convert with .to(tl.int32)"),
    (r"operands of type .*NoneType.* for `[!=]=`", "ask whether it is None: `x is None`, `x is not None`"),
    (r"operands of type .*ndarray", AN_ARRAY),
    (
        r"operands of type .*\bstr\b.* for `[!=]=`",
        "pass texts at compile time: declare the parameter `NAME: tl.constexpr`",
    ),
    (r"must have type `constexpr\[int\]`, got \d*\.", "a size is an integer, and the shape is the first argument"),
    (
        r"operands? .*NoneType|<class 'NoneType'> to tensor|cannot cast void",
        "None is an argument that was left out, or what a call without a result gives; check where it comes from",
    ),
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
        r"compile_time\.tuple'> to tensor",
        "a tuple is several values: take one, such as t[0]; masks are combined with `&` and `|`",
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
    (r"device_print\(\)|type str and .* for `%`", 'print takes a text, and then the values: print("x =", x)'),
    (
        r"missing .*required|too many positional|unexpected keyword|multiple values|takes .* arguments?\b",
        CHECK_THE_CALL,
    ),
    (
        r"incompatible dimensions|do not broadcast|cannot broadcast",
        "make the sizes equal, or one of them 1 (x[:, None] adds an axis)",
    ),
    (r"must be a power of 2", "round the size up with triton.next_power_of_2 and mask the rest"),
    (
        r"arange's arguments .* got u?int\d+\[\] and",
        "add the run-time start to a tile that starts at 0: start + tl.arange(0, BLOCK)",
    ),
    (
        r"reduce: `axis` must be constexpr, but is \w+\[.+\] at",
        "an axis is a compile-time integer; of two tiles, tl.maximum(a, b) and tl.minimum(a, b) take each pair",
    ),
    (r"arange's arguments .* got .*\d\.", "a size is an int: divide with `//`, or convert with int(...)"),
    (
        r"must be of type tl\.constexpr|must be (a )?constexpr|should be a constexpr|constexpr int|constexpr\[int\]"
        r"|not a constexpr",
        "declare the parameter `NAME: tl.constexpr`, or compute it from constexprs",
    ),
    (
        r"<class '(numpy\.ndarray|torch\.Tensor)'> to tensor",
        AN_ARRAY,
    ),
    (r"<class 'numpy\.\w+'> to tensor", NUMPY_NUMBER),
    (
        r"cannot convert .* to tensor",
        "only numbers and tensors are run-time values; annotate compile-time ones with tl.constexpr",
    ),
    (r"specified for (loading|storing) block pointers|with block pointers", "pass boundary_check=(0,) instead"),
    (r"[Mm]ask .*(int1|bool)|mask must", "build the mask with a comparison, for example `mask=offsets < n`"),
    (
        r"Unsupported ptr type tensor_descriptor",
        "a descriptor has methods of its own: desc.load([i, j]), desc.store([i, j], value)",
    ),
    (
        r"Unsupported ptr type|not a pointer|unsupported ptr",
        "load and store take a pointer, or a pointer plus offsets: `ptr + tl.arange(0, BLOCK)`",
    ),
    (r"Cannot store to a constant pointer", "drop `tl.const` from the parameter"),
    (r"different signedness", "cast one operand so that both are signed or both unsigned"),
    (r"np\.\w+\([^)]*\) is not a number|of type (float|int|uint)\d+\)$", NUMPY_NUMBER),
    (r"invalid operands of type", "cast the operands, or use an operator that these types have"),
    (r"out of range for type", "use a wider dtype, or cast the number explicitly: tl.full((), value, dtype)"),
    (r"too many indices", "write one index for each axis; None adds an axis"),
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
    (r"unsupported AST node type: (Import|ImportFrom)", "move it out of the kernel"),
    (
        r"unsupported AST node type: (Global|Nonlocal)",
        "a kernel cannot change variables outside of it: write results with tl.store",
    ),
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
    (r"index must be an integer tensor", "convert it: index.to(tl.int32)"),
    (r"split needs a last axis", "make pairs first: tl.split(x.reshape(N // 2, 2)), where N is the number of elements"),
    (r"Expected 0 <= axis < 0", "a single value has no axes; load a tile: tl.load(ptr + tl.arange(0, BLOCK))"),
    (r"invalid axis \[", "an axis is one integer; without an axis, all elements are reduced"),
    (r"must be positive, got -1", "write every size: none is computed from the others"),
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
    (r"f-string", 'a text holds compile-time values only; to print others, write print("x =", x)'),
    (r"Only `range` and `static_range`|target of a for loop", LOOPS),
    (r"iterat", "iterate with range, tl.range or tl.static_range"),
    (
        r"total number of elements in tensor: \[\] has 1,",
        "a pointer or a number has no elements to arrange; load a tile first: tl.load(x + tl.arange(0, BLOCK))",
    ),
    (r"reshape", "the number of elements must stay the same"),
    (r"[Cc]annot cast", "cast through a type that both support, for example tl.float32"),
    (r"`(and|or|not)` takes bools", "compare it: `x != 0`"),
    (r"[Cc]annot bitcast", "bitcast keeps the number of bits; use .to(dtype) to convert"),
    (r"equal ranks >= 2", "tl.dot multiplies matrices; the product of two vectors is tl.sum(a * b, axis=0)"),
    (r"shape|dimension|rank", "check the shapes of the operands"),
    (r"for \*\* or pow\(\): .*'tensor'", POWER),
    (r"for @: .*'tensor'", MATMUL),
    (r"bad operand type for abs\(\): 'tensor'", "use tl.abs"),
    (r"'?tensor'? .*define __round__", "use tl.extra.libdevice.rint"),
    (r"unsupported operand type\(s\) .*divmod", DIVMOD),
    (r"unsupported operand type\(s\) .*'tensor'", "kernels have no such operator; use functions of `tl`"),
    (r"unsupported operand type\(s\)", "both values are known at compile time, so Python's own rules apply"),
    (r"Expected dtype", "cast with .to(dtype)"),
)

PROGRAM = "a program works on a whole tile, not on an element: tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
MEMORY = "the compiler places tiles in registers and shared memory, and inserts the barriers"

OTHER_NAMES = {
    "absolute": "abs", "amax": "max", "amin": "min", "matmul": "dot", "mm": "dot", "bmm": "dot",
    "concatenate": "cat", "true_divide": "fdiv", "fabs": "abs", "clip": "clamp", "round": "rint",
    "random": "rand", "normal": "randn", "standard_normal": "randn",
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "power": "pow", "transpose": "trans",
}  # fmt: skip

# what to write instead of functions and methods of Python, of arrays and of CUDA that the language does not have
IDIOMS = {
    "mean": "divide the sum by the number of elements: tl.sum(x, axis=0) / n",
    "average": "divide the sum by the number of elements: tl.sum(x, axis=0) / n",
    "var": "compute it from sums: tl.sum((x - mean) * (x - mean), axis=0) / n",
    "std": "compute it from sums: tl.sqrt(tl.sum((x - mean) * (x - mean), axis=0) / n)",
    "prod": "reduce with a @jit function that multiplies: tl.reduce(x, 0, multiply)",
    "any": "take the maximum of the mask: tl.max(mask.to(tl.int32), axis=0)",
    "all": "take the minimum of the mask: tl.min(mask.to(tl.int32), axis=0)",
    "astype": "convert with x.to(dtype), for example x.to(tl.float32)",
    "float": "convert with x.to(tl.float32)",
    "int": "convert with x.to(tl.int32)",
    "pow": POWER,
    "power": POWER,
    "ones": "use tl.full(shape, 1, dtype)",
    "empty": "use tl.zeros(shape, dtype)",
    "array": "make tiles with tl.arange, tl.full and tl.load; pass arrays as arguments of the kernel",
    "asarray": "make tiles with tl.arange, tl.full and tl.load; pass arrays as arguments of the kernel",
    "linspace": "compute it: start + tl.arange(0, N) * step",
    "stack": "use tl.join(a, b), which adds a last axis of two",
    "relu": "use tl.maximum(x, 0.0)",
    "bool": "compare: `x != 0`, or convert with x.to(tl.int1)",
    "divmod": DIVMOD,
    "str": 'only texts that are known at compile time exist; to print values, write print("x =", x)',
    "reversed": "count down: range(n - 1, -1, -1)",
    "data_ptr": "the value is the pointer already",
    "numel": "pass the size as an argument of the kernel",
    "thread_id": PROGRAM,
    "thread_idx": PROGRAM,
    "threadIdx": PROGRAM,
    "block_id": PROGRAM,
    "block_idx": PROGRAM,
    "blockIdx": PROGRAM,
    "syncthreads": MEMORY,
    "shared": MEMORY,
    "shared_memory": MEMORY,
    "copy": "a name can be bound again without changing the old value: no copy is needed",
}


def with_advice(
    error: Exception, text: str | None = None, code: str | None = None, scope: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """The text of an error, with advice at its end; `code` is the expression that failed, and `scope` what its names
    are, as far as it is known."""
    text = text if text is not None else str(error)
    if isinstance(error, KeyError | AttributeError | IndexError) and text and " " not in text.strip("'"):
        text = f"{type(error).__name__}: {text}"
    if not text:
        text = type(error).__name__
    if "\nhelp: " in text:
        return text
    advice = advice_for(error, text, code, scope)
    return f"{text}\nhelp: {advice}" if advice else text


def advice_for(error: Exception, text: str, code: str | None, scope: Mapping[str, Any]) -> str | None:
    """What to do about an error; None if there is nothing to say."""
    if text.endswith(NOT_AN_ARRAY):
        return about_pointer_index(code)
    if isinstance(error, AttributeError) and (dtype := dtype_meant(error.obj)) is not None:
        return f"kernels name types as the language does: tl.{dtype}"
    found = next((advice for pattern, advice in ADVICE if re.search(pattern, text)), None)
    if isinstance(error, AttributeError) and error.name is not None and found in (None, CHECK_THE_SPELLING):
        return similar_attribute(error.obj, error.name)
    return about_call(text, code, scope) if found is CHECK_THE_CALL else found


def about_call(text: str, code: str | None, scope: Mapping[str, Any]) -> str:
    """Return advice on a wrong call of a function: the intended parameter, or the signature."""
    call = next((node for node in nodes_of(code) if isinstance(node, ast.Call)), None)
    if call is not None and isinstance(call.func, ast.Name) and (known := scope.get(call.func.id)) is not None:
        return about_form(calling_form(getattr(known, "fn", known), call.func.id), text)
    if call is None or not isinstance(call.func, ast.Attribute):
        return CHECK_THE_CALL
    name = call.func.attr
    owner = re.match(r"(\w+)\.(\w+)\(\)", text)  # of a method: tensor_descriptor.load() missing ...
    method = getattr(getattr(language, owner[1], None), owner[2], None) if owner and owner[2] == name else None
    function = method or getattr(language, name, None) or getattr(language.tensor, name, None)
    return about_form(calling_form(getattr(function, "fn", function), name), text)


def about_form(form: str, text: str) -> str:
    """`form`, which says how a function is called, with the parameter that a misspelled keyword in `text` means."""
    if form == CHECK_THE_CALL or (misspelled := re.search(r"keyword argument '(\w+)'", text)) is None:
        return form
    import difflib  # lazily: only mistakes need it

    meant, names = KEYWORDS.get(misspelled[1], misspelled[1]), re.findall(r"\w+", form.partition("(")[2])
    close = difflib.get_close_matches(meant, names, n=1)
    return f"did you mean `{close[0]}`? {form[0].upper()}{form[1:]}" if close else form


def calling_form(callee: Any, name: str) -> str:
    """``it is called as full(shape, value, dtype)``."""
    try:
        parameters = signature_of(callee).parameters.values()
    except (TypeError, ValueError):
        return CHECK_THE_CALL
    named = [p for p in parameters if not p.name.startswith("_") and p.name != "self"]
    visible = [str(p.replace(annotation=p.empty, default=plain(p.default))) for p in named]
    return f"it is called as {name}({', '.join(visible)})"


KEYWORDS = {"dim": "axis", "default": "other"}  # of NumPy and torch
DTYPES = {
    "float": "float32", "int": "int32", "bool": "int1", "bool_": "int1", "half": "float16",
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16",
}  # fmt: skip


def dtype_meant(value: Any) -> str | None:
    """The name in the language of a type of Python, NumPy or torch, which programs pass as a dtype; None for other
    values."""
    if isinstance(value, type):
        is_type, name = value.__module__ in ("builtins", "numpy"), value.__name__
    elif isinstance(value, str):
        is_type, name = True, value
    else:
        is_type, name = type(value).__name__.lower().endswith("dtype"), str(value).rpartition(".")[2]
        is_type = is_type and not isinstance(value, language.dtype)
    name = DTYPES.get(name, name)
    return name if is_type and isinstance(getattr(language, name, None), language.dtype) else None


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
    return next((node for node in nodes_of(code) if isinstance(node, ast.Subscript)), None)


def nodes_of(code: str | None) -> list[ast.AST]:
    """The nodes of a text, outer ones first; none if it is no Python."""
    try:
        return list(ast.walk(ast.parse(code or "")))
    except SyntaxError:
        return []


def similar_attribute(owner: Any, name: str) -> str:
    """Return a suggestion for a misspelled ``owner.name``."""
    if name in IDIOMS and isinstance(owner, language.tensor | ModuleType):
        return IDIOMS[name]
    if isinstance(owner, language.tensor) and not hasattr(language, name) and (found := counterpart(name)) is not None:
        return f"use {found}"
    if hasattr(language, name) and owner is not language:
        return f"did you mean the function `tl.{name}`?"
    if (owner is language or owner is language.math) and (found := counterpart(name)) is not None:
        return f"use {found}"
    import difflib  # lazily: only mistakes need it

    close = difflib.get_close_matches(
        name, (known for known in dir(owner) if not known.startswith("_")), n=1, cutoff=0.7
    )
    return f"did you mean `{close[0]}`?" if close else CHECK_THE_SPELLING


def counterpart(name: str) -> str | None:
    """The function of the language that does what one of the host's of this name does: ``tl.exp`` for ``np.exp``."""
    own = OTHER_NAMES.get(name, name)
    owners = (("tl", language), ("tl.extra.libdevice", language.extra.libdevice))
    found = ((where, getattr(owner, own, None)) for where, owner in owners)
    return next((f"{where}.{own}" for where, value in found if callable(value)), None)


def loop_refusal(iterator: Any, target: str, source: str) -> str:
    """The message about ``for target in source``, whose `iterator` is no range."""
    if not isinstance(iterator, language.tensor):
        return triton_messages.LOOP
    if iterator.type.is_block():
        advice = "a tile has no loop over its elements: compute with the whole tile, or reduce it (tl.sum)"
    else:
        advice = f"write `for {target} in range({source}):`"
    return f"{triton_messages.LOOP}\nhelp: {advice}"


def not_jit(fn: Any) -> str:
    """The message about a callable in the place of a @jit function."""
    return f"expected a @jit function, got {getattr(fn, '__name__', fn)!s:.60}\nhelp: define one at module level"


def foreign_call(library: str, callee: Any) -> str:
    """The message about ``np.sqrt(x)`` or ``math.sqrt(x)`` of a value of the kernel."""
    name = getattr(callee, "__name__", None) or type(callee).__name__
    found = counterpart(name)
    advice = f"use {found}" if found else "write it with tl.* functions, or compute it on the host and pass the result"
    advice = IDIOMS.get(name, advice)
    what = "numbers" if library == "math" else "arrays"
    return f"{library}.{name} works on {what} of the host, not on the values of a kernel\nhelp: {advice}"
