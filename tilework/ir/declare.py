"""The declaration of ops: each once, in its class.

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

    the text      `form` is the text after the name (`ir/fields.py`); an op without one is written in generic form.
                  A few have `parse` and `text` by hand, as the form would be of that op alone: `tt.func` (parameters
                  with attributes), `ttg.warp_specialize` (a region per partition), `arith.select` (two or one type),
                  loops and branches.
    the types     that neither the form nor a caller gives, by `infer` (`ir/form_text.py`)
    the builder   ``LoadOp.make(ptr, mask, other, loc, cache=CacheModifier.CA)``: operands, properties without a
                  default, regions, and the types of results that cannot be inferred, in the order of the fields; then
                  the location; then properties that have a default and the inferred type, by name. Properties are given
                  as Python values (`ir/attr_text.py`). One that computes something is written by hand as `make`.
    the segments  how many operands each field has is a property where several fields may have none, or many
    the effects   the traits `Pure`, `NoMemoryEffect`, `MemoryReadEffect`, `MemoryWriteEffect`, `RecursiveMemoryEffect`,
                  `IsTerminator`, `Elementwise`; an op without traits reads and writes (`ir/effects.py`)
    the dialect   the prefix of the name: ``dialect_ops("tt")`` are all ops declared with it

Reader, writer and builder are made when an op of the class is first read, written or built: a compilation uses a third
of the ops that it imports. The fields are in `ir/fields.py`.

`compile_maker` compiles the builder of an op class from its fields, as fast as one written by hand. The source for
`tt.expand_dims` is

    @cache
    def properties(axis):
        found = {}
        found["axis"] = attribute_axis(axis)
        return found

    def make(src, axis, loc, type=None):
        types = ((infer_result(src.type, axis) if type is None else type), )
        return create_op(cls, (src,), types, loc, properties(axis))
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilework.ir.attr_text import ARRAY
from tilework.ir.create import create_op
from tilework.ir.fields import SEGMENTS, Fields, Property, Slot, fields_of, traits_def, verify_fields
from tilework.ir.form_text import Rule, reader_of, solve, writer_of
from tilework.ir.types import i32_array

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


class PlainPrinter:
    """Names and attributes as xDSL's printer writes them."""

    def __init__(self, printer: "Printer") -> None:
        self.printer = printer
        self.names: Any = Lookup(self.of_value)
        self.texts: Any = self
        self.out: Any = self
        self.append = printer.print_string
        self.indent = ""

    def captured(self, print: Callable[[Any], Any], what: Any) -> str:
        outer, self.printer.stream = self.printer.stream, StringIO()
        try:
            print(what)
            return self.printer.stream.getvalue()
        finally:
            self.printer.stream = outer

    def of_value(self, value: SSAValue) -> str:
        return self.captured(self.printer.print_ssa_value, value)

    def of(self, attribute: Attribute) -> str:
        return self.captured(self.printer.print_attribute, attribute)

    def argument(self, argument: BlockArgument) -> str:
        return f"{self.of_value(argument)}: {self.of(argument.type)}"

    def argument_location(self, location: LocationAttr) -> str:
        return ""

    def block_name(self, block: Block) -> str:
        return self.captured(self.printer.print_block_name, block)

    def region(
        self, region: Region, *, entry_arguments: bool = True, empty_block: bool = True, terminators: bool = True
    ) -> None:
        self.printer.print_region(region, entry_arguments, empty_block, terminators)


class Lookup:
    """A mapping that computes its values."""

    def __init__(self, compute: Callable[[Any], str]) -> None:
        self.compute = compute

    def __getitem__(self, key: Any) -> str:
        return self.compute(key)


Scope = dict[str, Any]


@cache
def compile_maker(cls: type[Operation]) -> Callable[..., Any]:
    """The builder of `cls`; its source is its documentation."""
    fields = fields_of(cls)
    scope: Scope = {"cls": cls, "cache": cache, "create_op": create_op, "i32_array": i32_array}
    scope |= {"SEGMENTS": SEGMENTS, "with_regions": with_regions}
    known = [*fields.operands, *fields.properties]
    rules = {rule.target: rule for rule in solve(cls, fields, known) if rule.target in fields.results}
    arguments, source = properties_source(fields, scope)
    types = "".join(f"{text}, " for text in types_source(fields, rules, scope))
    built = f"create_op(cls, {operands_source(list(fields.operands.values()))}, types, loc, properties({arguments}))"
    if fields.regions:
        built = f"with_regions({built}, {', '.join(fields.regions)})"
    parameters = ", ".join(parameters_source(cls, fields, rules, scope))
    source += f"def make({parameters}):\n    types = ({types})\n    return {built}\n"
    exec(source, scope)
    scope["make"].__doc__ = source
    return scope["make"]


def with_regions(op: Operation, *regions: Region) -> Operation:
    for region in regions:
        op.add_region(region)
    return op


def parameters_source(cls: type[Operation], fields: Fields, rules: dict[str, Rule], scope: Scope) -> list[str]:
    """Return the parameters of a builder: those that are required, the location, the optional ones."""
    needed, options, types = [], [], []
    for name in field_order(cls, fields):
        declared = fields.properties.get(name)
        if name in fields.results:
            parameter = result_parameter(fields, name)
            types.append(f"{parameter}=None") if name in rules else needed.append(parameter)
        elif declared is not None and (declared.is_optional or declared.default is not None):
            default = None if declared.is_optional else declared.default
            scope[f"default_{name}"] = None if default is None else declared.codec.value(default)
            options.append(f"{name}=default_{name}")
        else:
            needed.append(name)
    return [*needed, "loc", *options, *types]


def field_order(cls: type[Operation], fields: Fields) -> Iterator[str]:
    """Return the fields in the order of the class, those of its bases first."""
    known = {*fields.operands, *fields.results, *fields.properties, *fields.regions}
    return iter(dict.fromkeys(name for base in reversed(cls.__mro__) for name in base.__dict__ if name in known))


def result_parameter(fields: Fields, name: str) -> str:
    """``type``, or ``types``; the name of the result where there are several."""
    if len(fields.results) > 1:
        return name
    return "types" if fields.results[name].is_variadic else "type"


def types_source(fields: Fields, rules: dict[str, Rule], scope: Scope) -> Iterator[str]:
    """The types of the results: given, or inferred."""
    known = {name: f"{name}.type" for name in fields.operands}
    known |= {name: argument_source(fields, name) for name in fields.properties}
    for name, slot in fields.results.items():
        known[name] = parameter = result_parameter(fields, name)
        if (rule := rules.get(name)) is not None:
            scope[f"infer_{name}"] = rule.function if rule.fixed is None else rule.fixed
            inferred = inferred_source(f"infer_{name}", rule, fields, known)
            known[name] = f"({inferred} if {parameter} is None else {parameter})"
        yield f"*{known[name]}" if slot.is_many else known[name]


def inferred_source(function: str, rule: Rule, fields: Fields, known: dict[str, str]) -> str:
    if rule.fixed is not None:
        return function
    first, *others = rule.sources
    is_many = first in fields.operands and fields.operands[first].is_many
    arguments = ", ".join(["value.type" if is_many else known[first], *(known[other] for other in others)])
    source = arguments if rule.function is None else f"{function}({arguments})"
    return f"[{source} for value in {first}]" if is_many else source


def operands_source(slots: list[Slot]) -> str:
    """``(ptr, *indices)``, without the optional operands that are None."""
    if not any(slot.is_many for slot in slots) and any(slot.is_optional for slot in slots):
        return f"[value for value in ({', '.join(slot.name for slot in slots)},) if value is not None]"
    starred = {
        slot.name: f"*(() if {slot.name} is None else ({slot.name},))" if slot.is_optional else f"*{slot.name}"
        for slot in slots
        if slot.is_variadic
    }
    return f"({''.join(f'{starred.get(slot.name, slot.name)}, ' for slot in slots)})"


def argument_source(fields: Fields, name: str) -> str:
    """A property as a key of a cache: a list is a tuple."""
    return f"tuple({name})" if fields.properties[name].codec is ARRAY else name


def properties_source(fields: Fields, scope: Scope) -> tuple[str, str]:
    """The arguments and the source of the function that gives the properties; equal arguments give the same ones."""
    arguments = {name: argument_source(fields, name) for name in fields.properties}
    lines = []
    for name, declared in fields.properties.items():
        scope[f"attribute_{name}"] = declared.codec.attribute
        line = f"found[{declared.key!r}] = attribute_{name}({name})"
        lines.append(f"if {name} is not None and {name} is not False: {line}" if declared.is_optional else line)
    if fields.has_segments:
        sizes = {slot.name: "1" for slot in fields.operands.values()}
        for slot in fields.operands.values():
            if slot.is_variadic:
                sizes[slot.name] = size = f"size_{slot.name}"
                arguments[size] = f"int({slot.name} is not None)" if slot.is_optional else f"len({slot.name})"
        lines.append(f"found[SEGMENTS] = i32_array({', '.join(sizes.values())})")
    is_cached = all(declared.codec.is_hashable for declared in fields.properties.values())
    body = "".join(f"    {line}\n" for line in lines)
    head = "@cache\n" if is_cached else ""
    source = f"{head}def properties({', '.join(arguments)}):\n    found = {{}}\n{body}    return found\n"
    return ", ".join(arguments.values()), source


DECLARED: dict[str, list[type[Operation]]] = {}


class Op(Operation):
    """An op with what follows from its declaration; a class without a name is a base of some."""

    DEFAULTS: ClassVar[dict[str, Attribute]] = {}  # the properties that an op gets where they are not given
    SEES_MODULE: ClassVar[bool] = False  # its verifier reads facts of the module
    SAME_SIZES: ClassVar[bool] = False  # variadic operands have the same number of values
    form: ClassVar[str] = ""
    infer: ClassVar[Mapping[str, Any]] = {}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init_subclass__(cls) -> None:
        properties = [field for field in vars(cls).values() if isinstance(field, Property) and not field.is_optional]
        defaults = {field.key: field.default for field in properties if field.default is not None}
        if defaults:
            cls.DEFAULTS = {**cls.DEFAULTS, **defaults}
        if cls.form or hasattr(cls, "text"):
            cls.print = print_itself
        if "name" in cls.__dict__:
            DECLARED.setdefault(cls.name.partition(".")[0], []).append(cls)

    __hash__ = object.__hash__
    __eq__ = object.__eq__  # pyright: ignore[reportAssignmentType] # its parameter has another name

    def __post_init__(self) -> None:
        for key, value in self.DEFAULTS.items():
            self.properties.setdefault(key, value)

    def verify(self, verify_nested_ops: bool = True) -> None:
        verify_fields(self)
        super().verify(verify_nested_ops)

    @classmethod
    def make(cls, *arguments: Any, **options: Any) -> Self:
        """A detached op: operands, properties and types in the order of the fields, the location, then options."""
        make = compile_maker(cls)
        cls.make = staticmethod(make)
        return make(*arguments, **options)

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        reader = reader_of(cls)
        return super().parse(parser) if reader is None else reader(parser, cls)  # pyright: ignore[reportReturnType]


def print_itself(self: Operation, printer: "Printer") -> None:
    """Print for xDSL's printer, which uses the generic form otherwise; `ir/printer.py` prints modules."""
    writer = writer_of(type(self))
    assert writer is not None
    printer.print_string(writer(PlainPrinter(printer), self))


FamilyT = TypeVar("FamilyT", bound=Op)


def declare_op(family: type[FamilyT], name: str) -> type[FamilyT]:
    """Declare the op `name`, which has the fields, the form and the traits of its family and none of its own."""
    fields = {"name": name, "__module__": family.__module__}
    return type(name, (family,), fields)  # pyright: ignore[reportReturnType]


def dialect_ops(prefix: str) -> list[type[Operation]]:
    """The ops declared so far whose names start with `prefix`."""
    return sorted(DECLARED[prefix], key=lambda cls: cls.name)
