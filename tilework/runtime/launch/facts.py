"""The facts about an argument that select the specialisation: one description for the Python path and the native
launcher.

    parameter                                       facts
    n                                               WIDTH | ONE | MULTIPLE
    n, do_not_specialize_on_alignment               WIDTH | ONE
    n, do_not_specialize                            WIDTH
    n: tl.int64                                     ONE | MULTIPLE
    x: tl.float32                                   none: any scalar is converted
    BLOCK: tl.constexpr                             VALUE
    items of a tuple                                WIDTH | ONE | MULTIPLE

The class of an argument always counts, and for arrays their element type and device. MULTIPLE is about integers and the
addresses of arrays, ONE and WIDTH are about integers. The binder of a kernel (`python/specialize.py`), the guards of an
entry (`native/entries.py`) and the key that the native launcher finds an entry by (`native/code/keys.py`) are made from
the facts.
"""

from tilework.language.parameters import KernelParam

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
