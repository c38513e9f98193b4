"""One object for equal attributes, found without hashing twice.

xDSL compares and hashes attributes field by field (5 us and more for a dense constant). Passes that look attributes up
use `identity` instead: a number that equal attributes share, remembered in the attribute itself.

    >>> identity(IntegerAttr(1, i32)) == identity(IntegerAttr(1, i32))
    True
"""

from xdsl.ir import Attribute

FIRST: dict[Attribute, Attribute] = {}  # each attribute seen, to the first one equal to it, which stays alive


def identity(attribute: Attribute) -> int:
    """A number that is the same for equal attributes, and for no others."""
    memo = vars(attribute)
    number = memo.get("_identity")
    if number is None:
        number = memo["_identity"] = id(FIRST.setdefault(attribute, attribute))
    return number


def is_same(a: Attribute, b: Attribute) -> bool:
    """`a` and `b` are equal; cheaper than ``==`` for types that differ, which xDSL compares field by field."""
    return a is b or identity(a) == identity(b)
