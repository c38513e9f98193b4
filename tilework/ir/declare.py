"""How an op is declared: once, in its class.

    class LoadOp(Op):
        \"""Read memory: ``%v = tt.load %p, %mask, %other cacheModifier = ca : tensor<64x!tt.ptr<f32>>``.\"""

        name = "tt.load"
        ptr = operand_def(PTR_LIKE)
        mask = opt_operand_def(BOOL_LIKE)
        other = opt_operand_def(ANY)
        result = result_def(ANY)
        cache = enum_prop(CacheModifier, default=CacheModifier.NONE)
        is_volatile = prop_def(I1_PROPERTY, default_value=FALSE, prop_name="isVolatile")
        form = "$operands(? cacheModifier = $cache) {} : type($ptr)"
        infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result"), "other": "result"}
        traits = traits_def(MemoryReadEffect(), SameEncoding(), TensorSize())

From this follow

    the text      `form` is what stands behind the name (`ir/forms.py`); an op without one is written in generic form.
                  Three have `parse` and `text` by hand, as the form would be of that op alone: `tt.func` (parameters
                  with attributes), `ttg.warp_specialize` (a region per partition), `arith.select` (two or one type).
    the types     that neither the form nor a caller gives, by `infer` (`ir/infer.py`)
    the builder   ``LoadOp.make(ptr, mask, other, loc, cache=CacheModifier.CA)``: operands, properties without a default,
                  regions, and the types of results that cannot be inferred, in the order of the fields; then the
                  location; then properties that have a default and the inferred type, by name. Properties are given as
                  Python values (`ir/property_text.py`). One that must compute something is written by hand as `make`.
    the segments  how many operands each field has is a property where several fields may have none, or many
    the effects   the traits `Pure`, `NoMemoryEffect`, `MemoryReadEffect`, `MemoryWriteEffect`, `RecursiveMemoryEffect`,
                  `IsTerminator`, `Elementwise` say it; an op without traits reads and writes; `ir/effects.py` answers questions
    the dialect   the prefix of the name: ``dialect_ops("tt")`` are all ops declared with it

Reader, writer and builder are made when an op of the class is first read, written or built; constraints and accessors of
its fields when one of them is first used or an op is verified. A compilation uses a third of the ops that it imports.
"""

import threading
from functools import cache
from typing import Any, Self

from xdsl.ir import Operation
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, OptOperandDef, VarOperandDef, traits_def
from xdsl.irdl.operations import _OpDefField, get_accessors_from_op_def  # pyright: ignore[reportPrivateUsage]
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilework.forks import held_at_fork
from tilework.ir.form_reader import reader_of
from tilework.ir.form_writer import writer_of
from tilework.ir.forms import FORMS, Form
from tilework.ir.makers import compile_maker
from tilework.ir.plain_printer import PlainPrinter

DECLARED: dict[str, list[type[Operation]]] = {}
OWN_FIELDS = ("form", "infer")  # of ours, unknown to xDSL


class Op(IRDLOperation):
    """An op with what follows from its declaration; a class without a name is a base of some."""

    def __init_subclass__(cls) -> None:
        for name, field in vars(cls).items():
            if isinstance(field, _OpDefField):
                field.__class__, vars(field)["name"] = deferred(type(field)), name
        if "name" not in cls.__dict__:
            return
        own = {key: cls.__dict__[key] for key in OWN_FIELDS if key in cls.__dict__}
        for key in own:
            delattr(cls, key)
        if "traits" not in cls.__dict__:
            cls.traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
        kinds = [getattr(field, "cls", None) for field in vars(cls).values()]  # of the fields of operands and the like
        if sum(kind in (VarOperandDef, OptOperandDef) for kind in kinds) > 1 and "irdl_options" not in cls.__dict__:
            cls.irdl_options = (AttrSizedOperandSegments(as_property=True),)
        define_later(cls)
        FORMS[cls] = Form(own.get("form", ""), own.get("infer", {}))
        if "form" in own or hasattr(cls, "text"):
            cls.print = print_itself
        DECLARED.setdefault(cls.name.partition(".")[0], []).append(cls)

    @classmethod
    def make(cls, *arguments: Any, **options: Any) -> Self:
        """A detached op: operands, properties and types in the order of the fields, the location, then options."""
        make = compile_maker(cls)
        cls.make = staticmethod(make)
        return make(*arguments, **options)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reader = reader_of(cls)
        return super().parse(parser) if reader is None else reader(parser, cls)  # pyright: ignore[reportReturnType]


UNDEFINED: dict[type[Op], Any] = {}  # ops whose fields have no accessors yet, with their `verify_`
DEFINING = held_at_fork(threading.RLock())


def define_later(cls: type[Op]) -> None:
    """Do what `irdl_op_definition` does when the definition of `cls`, or one of its fields, is first used."""
    UNDEFINED[cls] = getattr(cls, "verify_", None)
    definition: Any = classmethod(lambda cls: define(cls).get_irdl_definition())
    cls.get_irdl_definition = definition
    cls.verify_ = lambda self: define(type(self)).verify_(self)


def define(cls: Any) -> type[Op]:
    """Return the class that declares the op `cls`, with accessors for its fields."""
    cls = next(base for base in cls.__mro__ if "get_irdl_definition" in vars(base))
    with DEFINING:
        if cls in UNDEFINED:
            accessors = get_accessors_from_op_def(OpDef.from_pyrdl(cls), UNDEFINED[cls])
            for name, accessor in accessors.items():
                setattr(cls, name, accessor)
            del UNDEFINED[cls]
    return cls


class DeferredField:
    """A field of an op that is not defined: its first use defines the op, which replaces it by xDSL's accessor."""

    __slots__ = ()
    name: str

    def __get__(self, op: Any, owner: Any = None) -> Any:
        if op is None:
            return self
        define(type(op))
        return getattr(op, self.name)

    def __set__(self, op: Any, value: Any) -> None:
        define(type(op))
        setattr(op, self.name, value)


@cache
def deferred(kind: type[Any]) -> type[Any]:
    """The deferred form of a class of fields of xDSL (operands, results, properties ...)."""
    return type(f"Deferred{kind.__name__}", (kind, DeferredField), {"__slots__": ()})


def print_itself(self: Operation, printer: Printer) -> None:
    """For xDSL's printer; modules are written by `ir/printer.py`."""
    writer = writer_of(type(self))
    assert writer is not None
    printer.print_string(writer(PlainPrinter(printer), self))


def dialect_ops(prefix: str) -> list[type[Operation]]:
    """The ops declared so far whose names start with `prefix`."""
    return sorted(DECLARED[prefix], key=lambda cls: cls.name)
