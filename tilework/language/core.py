"""The names of the kernel language, and the decorators that make them callable from kernels.

A *builtin* is a Python function with a hidden `_semantic` argument. The compiler supplies it; a user who calls the
builtin outside a kernel gets an error instead:

    @builtin
    def double(x, _semantic=None):
        return _semantic.add(x, x, True)

The functions themselves are defined by family in the modules imported below; here they become builtins, and methods
of `tensor` where the language has them as methods. The wrapper that runs at a call is in this file, because a
traceback through a builtin must show a file of this name.
"""

# ruff: noqa: F401

import builtins
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tilework.language import assembly, dots, reductions, shapes
from tilework.language import elementwise_builtins as elementwise
from tilework.language import memory_builtins as memory
from tilework.language import program_builtins as program
from tilework.language.active import ACTIVE, RunTimeOnly
from tilework.language.aggregate import _aggregate, _aggregate_type
from tilework.language.compile_time import (
    _unwrap_if_constexpr,
    _unwrap_iterable,
    _unwrap_shape,
    base_type,
    base_value,
    constexpr,
    constexpr_type,
    slice,
    slice_type,
    tuple,
    tuple_type,
)
from tilework.language.dtypes import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    block_type,
    const,
    const_pointer_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    function_type,
    get_int_dtype,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    str_to_ty,
    tensor_descriptor_type,
    uint8,
    uint16,
    uint32,
    uint64,
    validate_block_shape,
    void,
)
from tilework.language.elementwise_builtins import PropagateNan
from tilework.language.loops import condition, range, static_range
from tilework.language.shapes import _wrap_axis
from tilework.language.values import tensor, tensor_descriptor

TRITON_BUILTIN = "__triton_builtin__"
Function = TypeVar("Function", bound=Callable[..., Any])


def builtin(fn: Function) -> Function:
    """Mark `fn` as callable from kernels. It must accept `_semantic`, and may accept `_generator`."""
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount]
    assert "_semantic" in names, f"the builtin {fn.__name__} must accept _semantic"

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("_semantic") is not None:
            return fn(*args, **kwargs)
        # a call from Python: it means something only while a kernel is interpreted
        if (active := ACTIVE.get()) is None:
            text = f"{fn.__name__} can only be called inside a kernel: did you forget the @jit decorator?"
            text += " (`_semantic` argument must be provided outside of JIT functions)"
            raise RunTimeOnly(text, fn.__name__, args[0] if args else None)
        kwargs["_semantic"] = active.semantic
        if takes_generator:
            kwargs["_generator"] = active
        result = fn(*args, **kwargs)
        return tuple(result) if result.__class__ is builtins.tuple else result

    takes_generator = "_generator" in names
    vars(wrapper).update({TRITON_BUILTIN: True, "_takes_generator": takes_generator})
    return wrapper  # pyright: ignore[reportReturnType]


def is_builtin(fn: Any) -> bool:
    """True if the compiler must pass `_semantic` to `fn`."""
    return getattr(fn, TRITON_BUILTIN, False)


def extern(fn: Function) -> Function:
    """As `builtin`, for the wrapper of a function from a device library."""
    return builtin(fn)


def must_use_result(x: Any, s: str | bool = True) -> Any:
    """Make it an error to call a function and drop its result; with a text, the text is part of the error.

    @must_use_result("Nothing changes in place.")
    @jit
    def cube(x): ...
    """
    if isinstance(x, str):
        return lambda function: must_use_result(function, x)
    x._must_use_result = s
    return x


def tensor_method(fn: Any) -> Any:
    """Make a function also a method of `tensor`: ``x.sum(0)`` is ``sum(x, 0)``. Returns the function."""
    method = fn if is_builtin(fn) else _method_of_jit_function(fn)
    setattr(tensor, fn.__name__, method)
    return fn


def _method_of_jit_function(fn: Any) -> Any:
    def method(self: Any, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
        return _generator.call_JitFunction(fn, (self, *args), kwargs)

    method.__name__, method.__doc__, method.__qualname__ = fn.__name__, fn.__doc__, f"tensor.{fn.__name__}"
    method.__wrapped__ = fn  # pyright: ignore[reportFunctionMemberAccess]  # `inspect.signature` shows its parameters
    return builtin(method)


assume = builtin(program.assume)
debug_barrier = builtin(program.debug_barrier)
device_assert = builtin(program.device_assert)
device_print = builtin(program.device_print)
max_constancy = builtin(program.max_constancy)
max_contiguous = builtin(program.max_contiguous)
multiple_of = builtin(program.multiple_of)
num_programs = builtin(program.num_programs)
program_id = builtin(program.program_id)
static_assert = builtin(program.static_assert)
static_print = builtin(program.static_print)

arange = builtin(shapes.arange)
broadcast = builtin(shapes.broadcast)
broadcast_to = builtin(shapes.broadcast_to)
cat = builtin(shapes.cat)
expand_dims = builtin(shapes.expand_dims)
full = builtin(shapes.full)
gather = builtin(shapes.gather)
histogram = builtin(shapes.histogram)
join = builtin(shapes.join)
permute = builtin(shapes.permute)
reshape = builtin(shapes.reshape)
split = builtin(shapes.split)
trans = builtin(shapes.trans)
view = builtin(shapes.view)

_experimental_descriptor_load = builtin(memory._experimental_descriptor_load)
_experimental_descriptor_store = builtin(memory._experimental_descriptor_store)
atomic_add = builtin(memory.atomic_add)
atomic_and = builtin(memory.atomic_and)
atomic_cas = builtin(memory.atomic_cas)
atomic_max = builtin(memory.atomic_max)
atomic_min = builtin(memory.atomic_min)
atomic_or = builtin(memory.atomic_or)
atomic_xchg = builtin(memory.atomic_xchg)
atomic_xor = builtin(memory.atomic_xor)
load = builtin(memory.load)
load_tensor_descriptor = builtin(memory.load_tensor_descriptor)
make_block_ptr = builtin(memory.make_block_ptr)
make_tensor_descriptor = builtin(memory.make_tensor_descriptor)
store = builtin(memory.store)
store_tensor_descriptor = builtin(memory.store_tensor_descriptor)
advance = must_use_result(
    builtin(memory.advance), "tl.advance leaves its argument as it is: assign the result, p = tl.advance(p, ...)."
)

abs = builtin(elementwise.abs)
add = builtin(elementwise.add)
cast = builtin(elementwise.cast)
ceil = builtin(elementwise.ceil)
clamp = builtin(elementwise.clamp)
cos = builtin(elementwise.cos)
div_rn = builtin(elementwise.div_rn)
erf = builtin(elementwise.erf)
exp = builtin(elementwise.exp)
exp2 = builtin(elementwise.exp2)
fdiv = builtin(elementwise.fdiv)
floor = builtin(elementwise.floor)
fma = builtin(elementwise.fma)
log = builtin(elementwise.log)
log2 = builtin(elementwise.log2)
maximum = builtin(elementwise.maximum)
minimum = builtin(elementwise.minimum)
mul = builtin(elementwise.mul)
rsqrt = builtin(elementwise.rsqrt)
sin = builtin(elementwise.sin)
sqrt = builtin(elementwise.sqrt)
sqrt_rn = builtin(elementwise.sqrt_rn)
sub = builtin(elementwise.sub)
to_tensor = builtin(elementwise.to_tensor)
umulhi = builtin(elementwise.umulhi)
where = builtin(elementwise.where)

dot = builtin(dots.dot)
dot_scaled = builtin(dots.dot_scaled)

associative_scan = builtin(reductions.associative_scan)
map_elementwise = builtin(reductions.map_elementwise)
reduce = builtin(reductions.reduce)

extern_elementwise = builtin(assembly.extern_elementwise)
inline_asm_elementwise = builtin(assembly.inline_asm_elementwise)

for _function in (
    abs,
    advance,
    associative_scan,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    broadcast_to,
    cast,
    ceil,
    cos,
    erf,
    exp,
    exp2,
    expand_dims,
    floor,
    gather,
    histogram,
    log,
    log2,
    permute,
    reduce,
    reshape,
    rsqrt,
    sin,
    split,
    sqrt,
    sqrt_rn,
    store,
    trans,
    view,
):
    tensor_method(_function)

# The operators and methods that the classes define themselves: each is a builtin under the name it has in its class.
for _class in (tensor, tensor_descriptor):
    for _name, _member in list(vars(_class).items()):
        if "_semantic" in getattr(getattr(_member, "__code__", None), "co_varnames", ()) and not is_builtin(_member):
            _member.__name__ = _name
            setattr(_class, _name, builtin(_member))
