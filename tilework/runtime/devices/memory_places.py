"""The location of an argument's memory: on the host, on a GPU, or nowhere.

    >>> place_of(np.zeros(4)), place_of(torch.zeros(4, device="cuda")), place_of(4)
    (HOST, DEVICE, NOWHERE)

A tuple is in all the places of its items, a descriptor where its base is. Arrays are recognised by what they offer,
never by importing their library; how to ask the objects of a class is found once.
"""

from collections.abc import Callable
from typing import Any

NOWHERE, HOST, DEVICE = 0, 1, 2
DLPACK = {
    1: HOST,
    2: DEVICE,
    3: HOST,
    10: DEVICE,
    11: HOST,
}  # by DLPack's number of a kind of device; 3 and 11 are pinned memory

Rule = Callable[[Any], int]


def place_of(arg: object) -> int:
    """The places of an argument, added up."""
    rule = RULES.get(type(arg))
    if rule is None:
        rule = RULES[type(arg)] = rule_for(arg)
    return rule(arg)


def nowhere(arg: object) -> int:
    return NOWHERE


def in_tuple(arg: object) -> int:
    found = NOWHERE
    for item in arg:
        found |= place_of(item)
    return found


def of_tensor(arg: Any) -> int:
    return DEVICE if arg.is_cuda else HOST if arg.is_cpu else NOWHERE


def of_interfaces(arg: Any) -> int:
    """The location of objects without a better way to find it; a property may fail where the memory is elsewhere."""
    if hasattr(arg, "__cuda_array_interface__"):
        return DEVICE
    if hasattr(arg, "__dlpack_device__"):
        return DLPACK.get(int(arg.__dlpack_device__()[0]), NOWHERE)
    return HOST if hasattr(arg, "__array_interface__") else NOWHERE


def rule_for(arg: object) -> Rule:
    """The function that returns the location of objects like this one."""
    if isinstance(arg, tuple):
        return in_tuple
    if hasattr(arg, "is_cuda") and hasattr(arg, "is_cpu"):
        return of_tensor
    if getattr(arg, "is_cuda", False) is True:
        return lambda arg: DEVICE
    if any(cls.__name__ == "ndarray" and cls.__module__ == "numpy" for cls in type(arg).__mro__):
        return lambda arg: HOST
    if hasattr(arg, "base") and (hasattr(arg, "data_ptr") or hasattr(arg, "block_shape")):
        return lambda arg: place_of(arg.base)
    is_scalar = getattr(arg, "shape", None) == () and hasattr(arg, "__array_interface__")
    offers = ("__cuda_array_interface__", "__dlpack_device__", "__array_interface__")
    return of_interfaces if not is_scalar and any(hasattr(type(arg), name) for name in offers) else nowhere


RULES: dict[type, Rule] = dict.fromkeys((int, float, bool, str, type(None)), nowhere)
