"""From the fields of an op class the function that builds ops of it, as fast as one written by hand.

For `tt.expand_dims` its source is

    @cache
    def properties(axis):
        found = {}
        found["axis"] = attribute_axis(axis)
        return found

    def make(src, axis, loc, type=None):
        types = ((infer_result(src.type, axis) if type is None else type), )
        return create_op(cls, (src,), types, loc, properties(axis))
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from xdsl.ir import Operation, Region

from tilework.ir.create import create_op
from tilework.ir.forms import SEGMENTS, Fields, Slot, fields_of
from tilework.ir.infer import Rule, solve
from tilework.ir.property_text import ARRAY
from tilework.ir.types import i32_array

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
    """What must be given, the location, what may be."""
    needed, options, types = [], [], []
    for name in field_order(cls, fields):
        declared = fields.properties.get(name)
        if name in fields.results:
            parameter = result_parameter(fields, name)
            types.append(f"{parameter}=None") if name in rules else needed.append(parameter)
        elif declared is not None and (declared.is_optional or declared.default is not None):
            scope[f"default_{name}"] = None if declared.default is None else declared.codec.value(declared.default)
            options.append(f"{name}=default_{name}")
        else:
            needed.append(name)
    return [*needed, "loc", *options, *types]


def field_order(cls: type[Operation], fields: Fields) -> Iterator[str]:
    """The fields as they stand in the class, those of its bases first."""
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
