"""Binding and specialising arguments: their types, and the facts about them that select a specialisation.

    specialize(x)        x a 16-byte aligned float32 array     ->  ("*fp32", "D")
    specialize(1024)                                           ->  ("i32", "D")      a multiple of 16
    specialize(1)                                              ->  ("constexpr", 1)  a constant
    specialize(0.5)                                            ->  ("fp32", None)

Arrays are recognised by their attributes, never by importing their library: NumPy's array interface, `data_ptr()` and
`dtype` (torch and friends), DLPack.

`make_binder` writes a function for each kernel that binds a launch's arguments and specialises them in one go.
For ``def add(x, y, n: tl.int64, BLOCK: tl.constexpr = 64)`` it is, in effect,

    def bind(x, y, n, BLOCK=64, **options):
        return ((x, y, n, BLOCK),
                (specialize(x, False, True, True), specialize(y, False, True, True), forced_int("i64", n),
                 ("constexpr", BLOCK)),
                (kind(BLOCK),),
                options)

The kinds are there because Python finds 1, True and 1.0 equal, and 0.0 and -0.0; as constants they are not. Python
itself does the binding, so positional, keyword and default arguments cost nothing extra, and a wrong call is the usual
TypeError.

A keyword that names both a parameter and an option (``def k(x, num_warps: tl.constexpr)``, launched with
``num_warps=8``) is bound and is among the options. Given by position, or left at its default, it is only an argument,
as in Triton.
"""

import ctypes
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter
from itertools import pairwise
from typing import Any

from tilework.errors import ArgumentError, OptionError, did_you_mean
from tilework.language import core as tl
from tilework.language.constant_text import constant_text
from tilework.language.function import JITCallable, JITFunction
from tilework.language.parameters import ARGUMENT_KINDS, KernelParam, canonicalize_dtype, no_element_type
from tilework.runtime.launch.python.wrappers import address

# ---- the facts about an argument that select the specialisation: one description for the Python path and the native
# launcher.
#
#     parameter                                       facts
#     n                                               WIDTH | ONE | MULTIPLE
#     n, do_not_specialize_on_alignment               WIDTH | ONE
#     n, do_not_specialize                            WIDTH
#     n: tl.int64                                     ONE | MULTIPLE
#     x: tl.float32                                   none: any scalar is converted
#     BLOCK: tl.constexpr                             VALUE
#     items of a tuple                                WIDTH | ONE | MULTIPLE
#
# The class of an argument always counts, and for arrays their element type and device. MULTIPLE is about integers and
# the addresses of arrays, ONE and WIDTH are about integers. The binder of a kernel (`make_binder`), the guards
# of an entry (`native/entries.py`) and the key that the native launcher finds an entry by (`native/code/launcher.py`)
# are made from the facts.


VALUE = 1  # the value itself
ONE = 2  # 1, or another integer
MULTIPLE = 4  # a multiple of 16, or another integer or address
WIDTH = 8  # an integer of 32 bits, a larger one, or a smaller one
ITEM = ONE | MULTIPLE | WIDTH  # of an argument that nothing is declared about
OPTION = VALUE  # `num_warps=4` and the like
NOTHING = 0

FLOATS = ("fp16", "bf16", "fp32", "fp64")


def facts_of(param: KernelParam) -> int:
    """Return the facts that select the specialisation of a kernel for arguments of a parameter."""
    if param.is_constexpr:
        return VALUE
    type = param.annotation_type
    if is_converted(type):
        return NOTHING
    width = NOTHING if type else WIDTH
    if param.do_not_specialize:
        return width
    is_fixed = bool(type) and not type.startswith("*")  # an integer type: always specialised on multiples
    return width | ONE | (MULTIPLE if is_fixed or not param.do_not_specialize_on_alignment else NOTHING)


def is_converted(type: str) -> bool:
    """Return True for an annotation that makes a float or a bool of every argument."""
    return type == "u1" or type in FLOATS or type.startswith("fp8")


Spec = tuple[Any, Any]
REFUSED = (ArgumentError, OverflowError)  # of an argument

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX, UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
ALIGNMENT = 16
FACTS: dict[str, list[Any]] = {"D": ["tt.divisibility", ALIGNMENT], "S": ["tt.pointer_range", 32]}

_codes: dict[Any, str] = {}


def dtype_code(dtype: object) -> str:
    """The signature code of an array's dtype (`numpy.dtype`, `torch.dtype`, `tl.dtype`): ``"fp32"``."""
    code = _codes.get(dtype)
    if code is None:
        name = getattr(dtype, "name", None)
        if getattr(dtype, "isnative", True) is False:
            raise ArgumentError(no_element_type(dtype))
        try:
            code = _codes[dtype] = canonicalize_dtype(name if isinstance(name, str) else dtype)
        except KeyError:
            raise ArgumentError(no_element_type(dtype)) from None
    return code


def specialize_int(value: int, specialize_value: bool, align: bool) -> Spec:
    """An integer: its width, whether it is 1, whether it is a multiple of 16."""
    if value == 1 and specialize_value:
        return ("constexpr", 1)
    if INT32_MIN <= value <= INT32_MAX:
        type = "i32"
    elif INT64_MIN <= value <= INT64_MAX:
        type = "i64"
    elif 0 <= value <= UINT64_MAX:
        type = "u64"
    else:
        raise OverflowError(f"{value} does not fit into 64 bits: pass a smaller integer, or a float")
    if not specialize_value:
        return (type, None)
    return (type, "D" if align and value % ALIGNMENT == 0 else "")


def specialize_pointer(code: str, address: int, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """A pointer to elements of `code`: is the address a multiple of 16?"""
    type = f"*k{code}" if is_const else f"*{code}"
    if not specialize_value:
        return (type, None)
    return (type, "D" if align and address % ALIGNMENT == 0 else "")


def specialize(arg: Any, is_const: bool = False, specialize_value: bool = True, align: bool = True) -> Spec:
    """(type, key) of one argument; see the module docstring."""
    kind = type(arg)
    if kind is int:
        return specialize_int(arg, specialize_value, align)
    rule = RULES.get(kind)
    if rule is None:
        rule = RULES[kind] = find_rule(arg)
    return rule(arg, is_const, specialize_value, align)


Rule = Callable[[Any, bool, bool, bool], Spec]


def find_rule(arg: object) -> Rule:
    """The rule for a class, found once by what its instances offer."""
    if isinstance(arg, type):  # a class has the attributes of its instances, but no values of them
        return refuse
    if isinstance(arg, bool):
        return lambda arg, is_const, value, align: ("u1", None)
    if isinstance(arg, int):
        return lambda arg, is_const, value, align: specialize_int(int(arg), value, align)
    if isinstance(arg, float):
        return lambda arg, is_const, value, align: ("fp32", None)
    if isinstance(arg, tl.constexpr):
        return lambda arg, is_const, value, align: ("constexpr", arg)
    if isinstance(arg, JITCallable) or hasattr(arg, "cache_key"):
        return lambda arg, is_const, value, align: ("constexpr", arg.cache_key)
    if isinstance(arg, tuple):
        return specialize_tuple
    if hasattr(arg, "block_shape") and hasattr(arg, "base"):
        return specialize_descriptor
    if hasattr(arg, "data_ptr"):
        return specialize_data_ptr
    if hasattr(arg, "__array_interface__"):
        return specialize_numpy_scalar if getattr(arg, "shape", None) == () and not is_array(arg) else array_rule(arg)
    if hasattr(arg, "__cuda_array_interface__"):
        return specialize_cuda_array
    if hasattr(arg, "__dlpack__"):
        return specialize_dlpack
    return refuse


def is_array(arg: object) -> bool:
    """A NumPy array (0-d ones too), as opposed to a NumPy scalar, which offers the same interface."""
    return any(cls.__name__ == "ndarray" for cls in type(arg).__mro__)


def specialize_tuple(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """A tuple: every leaf is fully specialised; the class of a named tuple is kept."""
    specs = [specialize(item) for item in arg]
    types, keys = [spec[0] for spec in specs], [spec[1] for spec in specs]
    is_named = hasattr(arg, "_fields")
    if not is_named and not any(isinstance(key, tl.constexpr) for key in keys):
        return (tuple(types), tuple(keys))
    return (type(arg)(*types) if is_named else tuple(types), TupleKeys(keys, type(arg)))


class TupleKeys(tuple[Any, ...]):
    """The keys of a tuple of some class: Python finds named tuples of different classes equal, and 1, True and 1.0 in
    them.
    """

    of: Any

    def __new__(cls, keys: list[Any], of: object) -> "TupleKeys":
        made = super().__new__(cls, keys)
        made.of = of, constant_text(keys)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleKeys) and self.of == other.of and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def specialize_descriptor(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """A host tensor descriptor."""
    dims = ", ".join(str(size) for size in arg.block_shape)
    code = dtype_code(arg.base.dtype)
    layout = getattr(arg, "layout", None)
    return (f"tensordesc<{code}[{dims}]{f',{layout!r}' if layout is not None else ''}>", None)


def specialize_data_ptr(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """Anything with `data_ptr()` and `dtype`: torch tensors, TensorWrapper, MockTensor."""
    code = dtype_code(arg.dtype)
    try:
        address = arg.data_ptr()
    except RuntimeError as error:  # torch: sparse tensors, and others without a storage
        raise ValueError(
            f"an argument of type {type(arg).__name__} has no memory that a kernel can read: {error}"
        ) from error
    return specialize_pointer(code, address, is_const, specialize_value, align)


def specialize_array(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """A NumPy array."""
    code = _codes.get(arg.dtype) or dtype_code(arg.dtype)
    return specialize_pointer(code, array_address(arg), is_const, specialize_value, align)


def array_address(array: Any) -> int:
    """The address of a NumPy array's elements; the interface dictionary costs 2 us, see `fast_array_address`."""
    return array.__array_interface__["data"][0]


def fast_array_address(array: object) -> int:
    """The `data` member of a NumPy array object, which follows the object header in every NumPy since 1.0."""
    return _read_pointer(id(array) + _HEADER).value or 0


_HEADER = object.__basicsize__
_read_pointer = ctypes.c_void_p.from_address


def specialize_ndarray(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """`specialize_array` for exactly `numpy.ndarray`, a quarter of its cost."""
    type = _pointer_types.get((arg.dtype, is_const))
    if type is None:
        type = _pointer_types[arg.dtype, is_const] = ("*k" if is_const else "*") + dtype_code(arg.dtype)
    if not specialize_value:
        return (type, None)
    return (type, "D" if align and not (_read_pointer(id(arg) + _HEADER).value or 0) % ALIGNMENT else "")


_pointer_types: dict[Any, str] = {}


def array_rule(arg: object) -> Rule:
    """The fast rule if the object layout is as expected (tried on this very array), else the portable one."""
    exact = type(arg).__module__ == "numpy" and type(arg).__name__ == "ndarray"
    return specialize_ndarray if exact and fast_array_address(arg) == array_address(arg) else specialize_array


def specialize_cuda_array(arg: object, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """An array in GPU memory; of some types it has no interface, though its class has."""
    if (interface := getattr(arg, "__cuda_array_interface__", None)) is None:
        return specialize_dlpack(arg, is_const, specialize_value, align)
    return specialize_pointer(
        typestr_code(interface["typestr"]), interface["data"][0], is_const, specialize_value, align
    )


def typestr_code(typestr: str) -> str:
    """``"<f4"`` -> ``"fp32"``."""
    kind, size = typestr[1], int(typestr[2:])
    return {"f": "fp", "i": "i", "u": "u"}[kind] + str(size * 8) if kind != "b" else "u1"


def specialize_dlpack(arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """Anything that exports DLPack, from a GPU or from host memory (device kinds 1 and, pinned, 3 and 11)."""
    import numpy as np  # lazily: few launches need NumPy, which is slow to load

    from tilework.runtime.devices.dlpack import exported, is_cuda_export  # lazily: few launches need it

    if is_cuda_export(arg):
        found = exported(arg, 0)
        return specialize_pointer(found.code, found.address, is_const, specialize_value, align)
    kind = arg.__dlpack_device__()[0] if hasattr(arg, "__dlpack_device__") else 1
    if kind not in (1, 3, 11):
        raise ValueError(
            f"an argument of type {type(arg).__name__} cannot be accessed from Triton: DLPack shares memory of the host"
            f" and of NVIDIA GPUs here, and this is on a device of DLPack's kind {int(kind)}"
        )
    return specialize_array(np.from_dlpack(arg), is_const, specialize_value, align)


def specialize_numpy_scalar(arg: object, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    """A NumPy scalar is specialised as the Python scalar that it equals; float64 is a float, and never comes here."""
    scalar = python_scalar(arg)
    rule = refuse if scalar is arg else specialize
    return rule(scalar, is_const, specialize_value, align)


def python_scalar(value: Any) -> Any:
    """The Python scalar that a NumPy scalar equals; anything else as it is."""
    if not hasattr(value, "__array_interface__") or not hasattr(value, "item") or is_array(value):
        return value
    scalar = value.item()
    return scalar if isinstance(scalar, bool | int | float) else value


def refuse(arg: object, is_const: bool, specialize_value: bool, align: bool) -> Spec:
    raise ArgumentError(f"failed to specialize argument of type: {type(arg).__name__}: {ARGUMENT_KINDS}")


RULES: dict[type, Rule] = {type(None): lambda arg, is_const, value, align: ("constexpr", None)}


type_and_key = specialize  # for functions with a parameter of that name


def mangle_type(arg: object, specialize: bool = False) -> Any:
    """The type alone: ``mangle_type(1.5) == "fp32"``."""
    return type_and_key(arg, specialize_value=specialize)[0]


def parse_attr(key: object) -> list[list[Any]]:
    """Return the argument attributes of a key: ``"D"`` is divisibility by 16, ``"S"`` a small array."""
    return [fact for flag, fact in FACTS.items() if flag in key] if isinstance(key, str) else []


def flags(facts: Iterable[Sequence[object]]) -> str:
    """The inverse of `parse_attr`: ``[["tt.divisibility", 16]]`` is ``"D"``."""
    known = [list(fact) for fact in facts]
    return "".join(flag for flag, fact in FACTS.items() if fact in known)


def leaves_of(signature: Mapping[str, object], names: Sequence[str]) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """(name, path, type) of each argument; those in tuples are called ``pair[1]``, and named and empty tuples are there
    themselves.
    """

    def inside(name: str, type: object, path: tuple[object, ...]) -> Iterator[tuple[str, tuple[Any, ...], str]]:
        if not isinstance(type, tuple):
            yield name, path, str(type)
            return
        fields = getattr(type, "_fields", None)
        if not type or fields is not None:  # which its items do not say
            yield name, path, "()" if fields is None else f"{type.__class__.__qualname__}({', '.join(fields)})"
        for index, inner in enumerate(type):
            yield from inside(f"{name}[{index}]", inner, (*path, index))

    positions: dict[str, Any] = {name: position for position, name in enumerate(names)}
    for name, type in signature.items():
        yield from inside(name, type, (positions.get(name, name),))


# small arrays: every element is less than 2**31 bytes behind the pointer that a kernel gets (the flag ``S`` of their
# key). Offsets of 32 bits reach all of such an array, and none is negative: a view that does not begin where its memory
# begins is not small, since a kernel may look at what is in front of it.

LIMIT = 2**31 - 2  # bytes that buffer instructions reach


def is_small(arg: Any) -> bool:
    """Return True if an array is known to be small."""
    if hasattr(arg, "ptr_range"):
        return arg.ptr_range() <= LIMIT
    if hasattr(arg, "untyped_storage"):
        storage = arg.untyped_storage()
        has_size = storage is not arg and hasattr(storage, "size")  # a pointer with a type may call itself its storage
        return has_size and storage.size() <= LIMIT and begins_with(arg, storage)
    if not is_array(arg):  # a TensorWrapper
        return (
            hasattr(arg, "base")
            and hasattr(arg, "data_ptr")
            and is_small(arg.base)
            and arg.data_ptr() == address(arg.base)
        )
    whole = arg
    while is_array(whole.base):
        whole = whole.base
    return whole.nbytes <= LIMIT and array_address(whole) == array_address(arg)


def begins_with(arg: Any, storage: Any) -> bool:
    """Return True if an array begins where its storage begins; wrappers of tensors do not always have an offset."""
    return not arg.storage_offset() if hasattr(arg, "storage_offset") else arg.data_ptr() == storage.data_ptr()


def specialize_small(arg: object, is_const: bool = False, specialize_value: bool = True, align: bool = True) -> Spec:
    """As `specialize`, with the flag; items of a tuple have their own."""
    type_, key = specialize(arg, is_const, specialize_value, align)
    return type_, with_small_flag(type_, key, arg)


def with_small_flag(type: Any, key: Any, arg: Any) -> Any:
    if isinstance(type, tuple):
        items = [with_small_flag(*item) for item in zip(type, key, arg, strict=True)]
        return key.__class__(*items) if hasattr(key, "_fields") else tuple(items)
    is_pointer = isinstance(type, str) and type.startswith("*")
    return key + "S" if is_pointer and key is not None and is_small(arg) else key


def small_address(arg: object) -> int:
    """The address of a small array; an error for others (`entries.py`)."""
    if not is_small(arg):
        raise ValueError("an array of 2 GiB or more, or a part of one, in place of a small one")
    return address(arg)


Binder = Callable[..., tuple[tuple[Any, ...], tuple[Spec, ...], tuple[Any, ...], dict[str, Any]]]


def make_binder(
    fn: JITFunction, specialize: Callable[..., Spec] = specialize, option_names: Collection[str] = ()
) -> Binder:
    """Compile the binder of a kernel; `option_names` are the options of the backend."""
    scope: dict[str, Any] = {
        "__specialize": specialize,
        "__forced_int": forced_int,
        "__kind": kind,
    }  # no parameter has such a name
    parameters, specs = [], []
    by_keyword = first_by_keyword(fn)
    for param in fn.params:
        text = f"*, {param.name}" if param.name == by_keyword else param.name
        if param.has_default:
            scope[f"__default_{param.name}"] = param.default
            text += f"=__default_{param.name}"
        parameters.append(text)
        specs.append(spec_expression(param))
    values = "".join(f"{name}, " for name in fn.arg_names)
    kinds = "".join(f"__kind({param.name}), " for param in fn.params if param.is_constexpr)
    source = (
        f"def bind({', '.join([*parameters, '**options'])}):\n"
        f"    return ({values}), ({''.join(f'{spec}, ' for spec in specs)}), ({kinds}), options\n"
    )
    exec(compile(source, f"<binder of {fn.__name__}>", "exec"), scope)
    bind = scope["bind"]
    bind.__name__ = fn.__name__
    bind.__qualname__ = fn.__qualname__
    shared = [index for index, name in enumerate(fn.arg_names) if name in option_names]
    return with_shared(bind, fn.arg_names, shared) if shared else bind


def first_by_keyword(fn: JITFunction) -> str | None:
    """The first parameter that arguments by position do not reach.

    As in Triton, they reach keyword-only parameters too, unless one without a default follows one with a default.
    """
    if not any(not param.has_default and before.has_default for before, param in pairwise(fn.params)):
        return None
    kinds = fn.signature.parameters
    return next((param.name for param in fn.params if kinds[param.name].kind is Parameter.KEYWORD_ONLY), None)


def with_shared(bind: Binder, names: Sequence[str], shared: Sequence[int]) -> Binder:
    """A binder that adds to the options the keywords that are arguments too; memory is no option."""

    def bind_both(*args: object, **kwargs: object) -> Any:
        values, specs, kinds, options = bind(*args, **kwargs)
        for index in shared:
            if (name := names[index]) in kwargs and is_plain_type(specs[index][0]):
                options[name] = tl._unwrap_if_constexpr(values[index])
        return values, specs, kinds, options

    return bind_both


def is_plain_type(type: object) -> bool:
    """Return True for the type of a constant or a scalar."""
    return isinstance(type, str) and not type.startswith(("*", "tensordesc"))


def call_of(
    fn: JITFunction, values: Sequence[object], options: Mapping[str, object]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (positional, keyword) arguments of a launch that binds to these values and options."""
    first = next((index for index, name in enumerate(fn.arg_names) if name in options), len(values))
    rest = zip(fn.params[first:], values[first:], strict=True)
    named = {param.name: value for param, value in rest if not param.has_default or value is not param.default}
    return tuple(values[:first]), {**named, **options}


BY_EQUALITY = frozenset({int, bool, str, bytes, type(None), tl.dtype, tl.pointer_type, tl.block_type})


def kind(value: Any) -> Any:
    """Return a key that distinguishes equal constants: their class, for floats the sign of zero, else all parts."""
    cls = value.__class__
    if cls is float:
        return repr(value)
    if cls in BY_EQUALITY:
        return cls
    if cls is tuple:
        return tuple([kind(item) for item in value])
    return cls if cls.__eq__ is object.__eq__ else constant_text(value)


def spec_expression(param: KernelParam) -> str:
    """The Python expression that specialises one parameter."""
    name, forced, facts = param.name, param.annotation_type, facts_of(param)
    if facts & VALUE:
        return f'("constexpr", {name})'
    if forced and not forced.startswith("*"):
        return (
            f'("{forced}", None)' if is_converted(forced) else f'__forced_int("{forced}", {name}, {bool(facts & ONE)})'
        )
    flags = f"{param.is_const}, {bool(facts & ONE)}, {bool(facts & MULTIPLE)}"
    if forced:
        return f'("{forced}", __specialize({name}, {flags})[1])'
    return f"__specialize({name}, {flags})"


def forced_int(type: str, value: Any, specialize_value: bool = True) -> Spec:
    """An integer whose type the annotation fixes: 1, multiples of 16 and the rest get entries of their own."""
    if not specialize_value:
        return (type, None)
    if value == 1:
        return (type, "1")
    return (type, "D" if value % 16 == 0 else "")


# ---- errors about launches that do not match their kernel: the argument or keyword, and a suggestion
#
#     kernel[grid](x, BLOK=64)     missing a required argument: 'BLOCK'; 'BLOK' is neither a parameter nor an option of
#                                  this kernel: did you mean 'BLOCK'?
#     kernel[grid]([1, 2], 64)     failed to specialize argument of type: list (argument 'x' of kernel): pass ...


def wrong_call(
    fn: JITFunction, error: TypeError | OverflowError, args: Sequence[object], kwargs: Mapping[str, object]
) -> TypeError | OverflowError:
    """Return the error of a binder as a message about the user's call; any other error unchanged."""
    if isinstance(error, REFUSED):
        name = refused_argument(fn, args, kwargs)
        head, separator, rest = str(error).partition(": pass ")
        text = f"{head} (argument {name!r} of {fn.__name__}){separator}{rest}"
        return type(error)(text) if name and separator else error
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None:
        return error  # not of the call itself: something that it called
    from tilework.targets.options import NAMES  # lazily: only mistakes need it

    text = str(error)
    for name in kwargs:
        if name not in fn.arg_names and name not in NAMES:
            text += f"; {name!r} is neither a parameter nor an option of this kernel{near(fn, name)}"
    for param in fn.signature.parameters.values():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            text += f"; a kernel must name its parameters: `{param}` is not possible"
    return ArgumentError(text)


def wrong_option(fn: JITFunction, error: OptionError, given: Sequence[str]) -> OptionError:
    """The error of a backend about an option, which may have been meant as a parameter."""
    unknown = next((name for name in given if f"argument {name} " in str(error)), None)
    if unknown is None:
        return error
    return OptionError(f"Keyword argument {unknown} was specified but unrecognised{near(fn, unknown)}")


def near(fn: JITFunction, name: str) -> str:
    from tilework.targets.options import NAMES  # lazily: only mistakes need it

    return did_you_mean(name, [*fn.arg_names, *NAMES])


def refused_argument(fn: JITFunction, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """The parameter whose argument has no type in a kernel."""
    given = {name: param.default for name, param in fn.signature.parameters.items() if param.default is not param.empty}
    given |= dict(zip(fn.arg_names, args)) | {name: kwargs[name] for name in fn.arg_names if name in kwargs}
    for param in fn.params:
        if param.name in given and not param.is_constexpr:
            try:
                specialize(given[param.name])
            except REFUSED:
                return param.name
    return None
