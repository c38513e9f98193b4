"""Bound launches: `kernel.bind(...)` is called with what changes, and launches with that and with what is bound.

`self` is ``(state, Python, names, values, keywords)``; the grid is the last of the values.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import Writer, is_class, routine
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.types import i64, ptr
from tilework.targets.llvm.values import Value


@routine("ptr launch_bound(ptr self, ptr args, i64 nargs, ptr kwnames)")
def launch_bound(b: Writer, self: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """Launch with all arguments, bound and given. What is not simply a value for a name is left to Python."""
    names, values, keywords = (
        b.item(self, at) for at in (layout.BOUND_NAMES, layout.BOUND_VALUES, layout.BOUND_KEYWORDS)
    )
    (named,) = b.if_else(is_class(b, keywords, "tuple"), lambda: [b.size(keywords)], lambda: [num(0)])
    last = b.sub(b.size(names), 1)
    positional = b.sub(last, named)
    merged, other = b.alloca(ptr, layout.MOST_OBJECTS), b.new_block("other")
    found = b.alloca(i64)

    b.need(b.icmp("sle", nargs, positional), other)
    with b.loop(nargs, b.add(last, 1)) as index:
        b.store(b.item(values, index), b.gep(merged, index, ptr))
    with b.loop(0, nargs) as index:
        b.store(b.load(ptr, b.gep(args, index, ptr)), b.gep(merged, index, ptr))
    (given,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
    with b.loop(0, given) as index:
        name, number = b.item(kwnames, index), b.add(nargs, index)
        b.store(num(-1), found)
        with b.loop(nargs, b.add(last, 1)) as place, b.if_(b.icmp("eq", b.item(names, place), name)):
            b.store(place, found)
        position = b.load(i64, found)
        b.need(b.icmp("sge", position, 0), other)
        b.store(b.load(ptr, b.gep(args, number, ptr)), b.gep(merged, position, ptr))
    grid = b.load(ptr, b.gep(merged, last, ptr))
    shape = b.select(b.icmp("eq", named, 0), NULL, keywords)
    b.ret(b.run("launch_with", b.item(self, layout.STATE), grid, merged, positional, shape))
    b.enter(other)
    b.finish(b.api("PyObject_Vectorcall", b.item(self, layout.BY_PYTHON), args, nargs, kwnames))
