"""Ops and attributes of xDSL and tilework that are defined when one of them is first looked at: a compilation needs few of 300.

    with deferred_definitions():
        from xdsl.dialects import arith         # 50 classes
    arith.AddiOp.create(...).lhs                # here one of them finds out what `lhs` is

`irdl_op_definition` makes constraints and accessors of the fields of a class. Here the fields stay as they were written, and
the first of them that is read from an op, or whoever verifies, parses or prints, has the class defined; who asks for the definition gets it
without accessors. Name and traits are there at once. Textual formats are read later still: tilework prints and parses most ops by itself. The constraints of an attribute's
parameters are found when one is made.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tilework.forks import held_at_fork

OWNERS = ("xdsl", "tilework")
ANNOTATIONS_WAIT = sys.version_info >= (3, 14)  # nobody has looked at them
DEFINING = held_at_fork(threading.RLock())
UNDEFINED: dict[type, Any] = {}  # classes, with the check that they have themselves
DEFINITIONS: dict[type, Any] = {}  # of some of them: who asked for it did not need the accessors of fields


@contextmanager
def deferred_definitions() -> Iterator[None]:
    """Ops that are declared inside of the block are defined when that is needed."""
    from xdsl import irdl  # lazily: only a compiler needs it

    plain, plain_attribute = irdl.irdl_op_definition, irdl.attributes.irdl_param_attr_definition
    union: Any = irdl.AnyOf
    plain_union = union.get
    prepare()

    def put_off(cls: type) -> type:
        return define_later(cls) if is_ours(cls) else plain(cls)

    def put_off_attribute(cls: type) -> type:
        return define_attribute_later(cls) if is_ours(cls) else plain_attribute(cls)  # pyright: ignore[reportArgumentType]

    irdl.irdl_op_definition = irdl.operations.irdl_op_definition = put_off
    irdl.attributes.irdl_param_attr_definition = put_off_attribute  # pyright: ignore[reportAttributeAccessIssue]
    union.get = staticmethod(any_of)
    try:
        yield
    finally:
        irdl.irdl_op_definition = irdl.operations.irdl_op_definition = plain
        irdl.attributes.irdl_param_attr_definition = plain_attribute
        union.get = staticmethod(plain_union)


def is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in OWNERS


def define_attribute_later(cls: Any) -> Any:
    """What `irdl_param_attr_definition` does, without looking at the parameters."""
    from xdsl.ir import TypedAttribute  # lazily, as above
    from xdsl.utils.runtime_final import runtime_final

    definition = ParametersLater(cls)
    cls.get_irdl_definition = classmethod(lambda cls: definition)
    if issubclass(cls, TypedAttribute):
        index: Any = classmethod(lambda cls: [name for name, _ in definition.parameters].index("type"))
        cls.get_type_index = index
    return runtime_final(dataclasses.dataclass(frozen=True, init=False)(cls))


class ParametersLater:
    """`ParamAttrDef` of a class, read when it is needed."""

    def __init__(self, cls: Any) -> None:
        self.source = cls

    def __getattr__(self, name: str) -> Any:
        from xdsl.irdl import ParamAttrDef  # lazily, as above

        found = (
            ParamAttrDef.from_pyrdl(self.source) if has_parameters(self.source) else ParamAttrDef(self.source.name, [])
        )
        self.__dict__.update(vars(found))
        return getattr(found, name)

    def verify(self, attribute: Any) -> None:
        from xdsl.irdl import ParamAttrDef  # lazily, as above

        if self.parameters:
            ParamAttrDef.verify(self, attribute)  # pyright: ignore[reportArgumentType]


def has_parameters(cls: type) -> bool:
    """Whether an attribute may have some: something but its name is annotated."""
    return ANNOTATIONS_WAIT or any(
        vars(base).get("__annotations__", {}).keys() - {"name", "parameters"} for base in cls.__mro__
    )


def any_of(*constraints: Any) -> Any:
    """`AnyOf.get`: it tries to merge every two of them, although of two classes (there are 18 of floats) only equal ones merge."""
    from xdsl.irdl import AnyAttr, AnyOf, BaseAttr, irdl_to_attr_constraint  # lazily, as above

    given = [irdl_to_attr_constraint(constraint) for constraint in constraints]
    flat = [
        part
        for constraint in given
        for part in (constraint.attr_constrs if type(constraint) is AnyOf else (constraint,))
    ]
    found: list[Any] = []
    classes, others = set[type](), list[int]()  # what of it is a class, and where the rest is
    for constraint in flat:
        is_class = type(constraint) is BaseAttr
        if type(constraint) is AnyAttr:
            return constraint
        if is_class and constraint.attr in classes:
            continue
        for place in others if is_class else range(len(found)):
            if (merged := found[place].relax_constraint(constraint)) is not None:
                found[place] = merged
                break
        else:
            if is_class:
                classes.add(constraint.attr)
            else:
                others.append(len(found))
            found.append(constraint)
    return found[0] if len(found) == 1 else AnyOf(tuple(found))


def define_later(cls: Any) -> Any:
    """What `irdl_op_definition` does, without looking at the fields."""
    from xdsl.ir import Operation, OpTraits  # lazily, as above
    from xdsl.irdl import traits_def

    declared = [
        vars(base)["traits"] for base in cls.__mro__ if "traits" in vars(base) and base not in Operation.__mro__
    ]
    if not declared:
        cls.traits = traits_def()
    elif len(declared) > 1:
        cls.traits = OpTraits(lambda: tuple(trait for traits in declared for trait in traits.gen_traits()))
    UNDEFINED[cls] = getattr(cls, "verify_", None)
    cls.get_irdl_definition = GET_DEFINITION
    cls.verify_ = verify_
    return cls


def define(cls: Any) -> bool:
    """Define a class; False if it is already."""
    from xdsl.irdl.operations import get_accessors_from_op_def  # lazily, as above

    if cls not in UNDEFINED:
        return False
    with DEFINING:
        if cls in UNDEFINED:
            with deferred_formats():
                accessors = get_accessors_from_op_def(definition_of(cls), UNDEFINED[cls])
            for name, accessor in accessors.items():
                setattr(cls, name, accessor)
            del UNDEFINED[cls]
    return True


def definition_of(cls: Any) -> Any:
    """What the fields of a class say; all who ask get the same one."""
    from xdsl.irdl.operations import OpDef  # lazily, as above

    with DEFINING:
        if (found := DEFINITIONS.get(cls)) is None:
            found = OpDef.from_pyrdl(cls)
            found.traits = cls.traits
            DEFINITIONS[cls] = found
        return found


@classmethod
def GET_DEFINITION(cls: Any) -> Any:
    """`get_irdl_definition` of a class that is not defined."""
    return definition_of(defining(cls))


def verify_(self: Any) -> None:
    """`verify_` of a class that is not defined."""
    define(defining(type(self)))
    self.verify_()


def defining(cls: Any) -> Any:
    """The class, or the one it inherits from, whose definition is missing."""
    return next(base for base in cls.__mro__ if "get_irdl_definition" in vars(base))


@cache
def prepare() -> None:
    """Let fields, and the default way to print and parse, define the class that they are asked of."""
    from xdsl.ir import Operation  # lazily, as above
    from xdsl.irdl.operations import _OpDefField

    def set_name(self: Any, owner: type, name: str) -> None:
        self.name = name

    def need(self: Any, op: Any) -> None:
        if not define(defining(type(op))):
            raise AttributeError(f"{type(op).__name__}.{self.name} is a field of a class that is no definition")

    def get(self: Any, op: Any, owner: Any = None) -> Any:
        if op is None:
            return self
        need(self, op)
        return getattr(op, self.name)

    def put(self: Any, op: Any, value: Any) -> None:
        need(self, op)
        setattr(op, self.name, value)

    field: Any = _OpDefField
    field.__set_name__, field.__get__, field.__set__ = set_name, get, put
    plain_print, plain_parse = Operation.print, Operation.parse.__func__

    def print(self: Any, printer: Any) -> Any:
        return self.print(printer) if define(type(self)) else plain_print(self, printer)

    def parse(cls: Any, parser: Any) -> Any:
        return cls.parse(parser) if define(cls) else plain_parse(cls, parser)

    Operation.print, Operation.parse = print, classmethod(parse)  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def deferred_formats() -> Iterator[None]:
    """Ops that are defined inside of the block read their format when it is needed."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram  # lazily, as above

    read = FormatProgram.from_str
    FormatProgram.from_str = staticmethod(lambda *source: FormatLater(read, source))  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(read)


class FormatLater:
    """`FormatProgram` of an op, read when it is needed."""

    def __init__(self, read: Callable[..., Any], source: tuple[Any, ...]) -> None:
        self.read, self.source = read, source

    def __getattr__(self, name: str) -> Any:
        self.__dict__.update(vars(program := self.read(*self.source)))
        return getattr(program, name)
