"""How an op is declared: once, in its class.

    @op_definition
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
        irdl_options = (AttrSizedOperandSegments(as_property=True),)
        traits = traits_def(MemoryReadEffect(), SameEncoding(), TensorSize())

From this follow

    the text      `form` is what stands behind the name (`ir/forms.py`); an op without one is written in generic form.
                  Text that no form describes is written by hand: `parse` reads it, `text` gives it.
    the types     that neither the form nor a caller gives, by `infer` (`ir/infer.py`)
    the builder   ``LoadOp.make(ptr, mask, other, loc, cache=CacheModifier.CA)``: operands, properties without a default,
                  regions, and the types of results that cannot be inferred, in the order of the fields; then the
                  location; then properties that have a default and the inferred type, by name. Properties are given as
                  Python values (`ir/property_text.py`). One that must compute something is written by hand as `make`.
    the effects   the traits `Pure`, `NoMemoryEffect`, `MemoryReadEffect`, `MemoryWriteEffect`, `RecursiveMemoryEffect`,
                  `IsTerminator`, `Elementwise` say it; `ir/effects.py` answers questions about them
    the dialect   the prefix of the name: ``dialect_ops("tt")`` are all ops declared with it

Reader, writer and builder are made when an op of the class is first read, written or built.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Self, TypeVar

from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilework.ir.create import create_op
from tilework.ir.form_reader import reader_of
from tilework.ir.form_writer import writer_of
from tilework.ir.forms import FORMS, SEGMENTS, Fields, Form, fields_of
from tilework.ir.infer import solve
from tilework.ir.plain_printer import PlainPrinter
from tilework.ir.types import i32_array

OpT = TypeVar("OpT", bound="Op")
DECLARED: dict[str, list[type[Operation]]] = {}
OWN_FIELDS = ("form", "infer")  # of ours, unknown to xDSL


class Op(IRDLOperation):
    """An op with what follows from its declaration."""

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


def print_itself(self: Operation, printer: Printer) -> None:
    """For xDSL's printer; modules are written by `ir/printer.py`."""
    writer = writer_of(type(self))
    assert writer is not None
    printer.print_string(writer(PlainPrinter(printer), self))


def op_definition(cls: type[OpT]) -> type[OpT]:
    """Declare an op (see above)."""
    own = {key: cls.__dict__[key] for key in OWN_FIELDS if key in cls.__dict__}
    for key in own:
        delattr(cls, key)
    irdl_op_definition(cls)
    FORMS[cls] = Form(own.get("form", ""), own.get("infer", {}))
    if "form" in own or hasattr(cls, "text"):
        cls.print = print_itself
    DECLARED.setdefault(cls.name.partition(".")[0], []).append(cls)
    return cls


def dialect_ops(prefix: str) -> list[type[Operation]]:
    """The ops declared so far whose names start with `prefix`."""
    return sorted(DECLARED[prefix], key=lambda cls: cls.name)


@cache
def compile_maker(cls: type[Operation]) -> Callable[..., Any]:
    """The builder of `cls`, as source like

    @cache
    def properties(axis):
        found = {"axis": attribute_axis(axis)}
        return found

    def make(src, axis, loc, type=None):
        return create_op(cls, (src,), (infer_result(src.type, axis) if type is None else type,), loc, properties(axis))
    """
    fields = fields_of(cls)
    scope: dict[str, Any] = {
        "cls": cls,
        "create_op": create_op,
        "cache": cache,
        "i32_array": i32_array,
        "SEGMENTS": SEGMENTS,
        "with_regions": with_regions,
    }
    arguments, options = parameters(cls, fields, scope)
    keys, source = properties_source(fields, scope)
    operands = operands_source(fields)
    types = "".join(f"{text}, " for text in types_source(cls, fields, scope))
    built = f"create_op(cls, {operands}, ({types}), loc, properties({', '.join(keys)}))"
    if fields.regions:
        built = f"with_regions({built}, {', '.join(fields.regions)})"
    source += f"def make({', '.join([*arguments, 'loc', *options])}):\n    return {built}\n"
    exec(source, scope)
    scope["make"].__doc__ = source
    return scope["make"]


def with_regions(op: Operation, *regions: Region) -> Operation:
    for region in regions:
        op.add_region(region)
    return op


def result_parameter(fields: Fields, name: str) -> str:
    """``type``, or ``types``; the name of the result where there are several."""
    if len(fields.results) > 1:
        return name
    return "types" if fields.results[name].is_variadic else "type"


def parameters(cls: type[Operation], fields: Fields, scope: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What comes before the location and what after it."""
    inferred = inferred_results(cls, fields)
    arguments, options, late = [], [], []
    for name in field_order(cls, fields):
        if name in fields.results:
            (late if name in inferred else arguments).append(result_parameter(fields, name))
        elif (declared := fields.properties.get(name)) is not None and (
            declared.is_optional or declared.default is not None
        ):
            scope[f"default_{name}"] = None if declared.default is None else declared.codec.value(declared.default)
            options.append(f"{name}=default_{name}")
        else:
            arguments.append(name)
    return arguments, options + [f"{name}=None" for name in late]


def field_order(cls: type[Operation], fields: Fields) -> Iterator[str]:
    """The fields as they stand in the class, those of its bases first."""
    known = {*fields.operands, *fields.results, *fields.properties, *fields.regions}
    for base in reversed(cls.__mro__):
        for name in base.__dict__:
            if name in known:
                known.discard(name)
                yield name


def inferred_results(cls: type[Operation], fields: Fields) -> dict[str, Any]:
    """For each result whose type follows from the operands (and properties): how."""
    rules = {rule.target: rule for rule in solve(cls, fields, [*fields.operands, *fields.properties])}
    return {name: rules[name] for name in fields.results if name in rules}


def types_source(cls: type[Operation], fields: Fields, scope: dict[str, Any]) -> Iterator[str]:
    """The types of the results."""
    rules = inferred_results(cls, fields)
    done: dict[str, str] = {}
    for name, slot in fields.results.items():
        parameter = result_parameter(fields, name)
        if name not in rules:
            done[name] = parameter
        else:
            scope[f"infer_{name}"] = rules[name].apply if rules[name].function is None else rules[name].function
            inferred = inferred_source(name, rules[name], fields, done, scope)
            done[name] = f"({inferred} if {parameter} is None else {parameter})"
        yield f"*{done[name]}" if slot.is_variadic else done[name]


def inferred_source(name: str, rule: Any, fields: Fields, done: dict[str, str], scope: dict[str, Any]) -> str:
    if rule.fixed is not None:
        scope[f"infer_{name}"] = rule.fixed
        return f"infer_{name}"
    first, *others = rule.sources
    rest = "".join(f", {type_source(other, fields, done)}" for other in others)
    if first in fields.operands and fields.operands[first].is_variadic:
        return f"[{'value.type' if rule.function is None else f'infer_{name}(value.type{rest})'} for value in {first}]"
    source = type_source(first, fields, done)
    return source if rule.function is None else f"infer_{name}({source}{rest})"


def type_source(name: str, fields: Fields, done: dict[str, str]) -> str:
    """The type of an operand or result; a property is itself."""
    if name in done:
        return done[name]
    if name in fields.operands:
        return f"{name}.type"
    return f"tuple({name})" if is_list(fields, name) else name


def is_list(fields: Fields, name: str) -> bool:
    return fields.properties[name].codec.words == "a list of numbers"


def operands_source(fields: Fields) -> str:
    """``(ptr, *indices)``, without the optional operands that are None."""
    parts = [
        f"*(() if {slot.name} is None else ({slot.name},))"
        if slot.is_optional
        else f"*{slot.name}"
        if slot.is_variadic
        else slot.name
        for slot in fields.operands.values()
    ]
    if not parts:
        return "()"
    if not any(slot.is_variadic for slot in fields.operands.values()):
        return f"({', '.join(parts)},)"
    if all(slot.is_optional or not slot.is_variadic for slot in fields.operands.values()):
        return f"[value for value in ({', '.join(fields.operands)},) if value is not None]"
    return f"({', '.join(parts)},)"


def properties_source(fields: Fields, scope: dict[str, Any]) -> tuple[list[str], str]:
    """The arguments and the source of the function that gives the properties; equal arguments give the same ones."""
    names, keys, lines = [], [], []
    is_cached = True
    for name, declared in fields.properties.items():
        scope[f"attribute_{name}"] = declared.codec.attribute
        is_cached &= declared.codec.is_hashable
        names.append(name)
        keys.append(f"tuple({name})" if is_list(fields, name) else name)
        line = f"found[{declared.key!r}] = attribute_{name}({name})"
        lines.append(f"if {name} is not None and {name} is not False: {line}" if declared.is_optional else line)
    if fields.has_segments:
        for slot in fields.operands.values():
            if slot.is_variadic:
                names.append(f"size_{slot.name}")
                keys.append(f"int({slot.name} is not None)" if slot.is_optional else f"len({slot.name})")
        sizes = ", ".join(f"size_{slot.name}" if slot.is_variadic else "1" for slot in fields.operands.values())
        lines.append(f"found[SEGMENTS] = i32_array({sizes})")
    body = "".join(f"    {line}\n" for line in lines)
    head = "@cache\n" if is_cached else ""
    return keys, f"{head}def properties({', '.join(names)}):\n    found = {{}}\n{body}    return found\n"
