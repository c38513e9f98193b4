"""The functions of a module, the ops in them, and the call graph.

A module may hold modules. Each is a table of names of its own: a call means the function of that name in the module
around it, and two modules may both have a function called `@kernel`. So a pass
over functions takes all of `functions(module)`, and a pass that follows calls looks callees up in the
`functions_by_name` of each of `modules(module)`.
"""

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.traits import IsolatedFromAbove

from tilework.ir.create import list_ops
from tilework.ir.nesting import ops_around
from tilework.ir.tt.function_ops import CallOp, FuncOp, function_type_of


def modules(root: Operation) -> list[ModuleOp]:
    """`root` and the modules inside of it."""
    if not isinstance(root, ModuleOp):
        return []
    return [root, *(inner for op in root.ops if type(op) is ModuleOp for inner in modules(op))]


def functions(root: ModuleOp) -> list[Operation]:
    """Return the functions in `root` and in the modules inside of it."""
    found: list[Operation] = []
    for op in root.ops:
        found += functions(op) if type(op) is ModuleOp else (op,)
    return found


def functions_by_name(module: ModuleOp) -> dict[str, FuncOp]:
    """The functions that a call in `module` can mean."""
    return {symbol_of(op): op for op in module.ops if type(op) is FuncOp}


def symbol_of(function: Operation) -> str:
    return function.properties["sym_name"].data  # pyright: ignore[reportAttributeAccessIssue]


def is_private(function: Operation) -> bool:
    """Return True if only functions of its module can call `function`; programs start with the others."""
    return getattr(function.properties.get("sym_visibility"), "data", "public") == "private"


def callee_of(call: Operation) -> str:
    return call.properties["callee"].root_reference.data  # pyright: ignore[reportAttributeAccessIssue]


def callees(function: Operation) -> list[str]:
    """The names of the functions that `function` calls, once per call, in program order."""
    return [callee_of(op) for op in ops_in_order(*function.regions) if type(op) is CallOp]


def callees_first(functions: Mapping[str, Operation]) -> list[str]:
    """The names of functions of one module, each behind those of the functions that it calls."""
    finished: dict[str, None] = {}
    started: set[str] = set()

    def visit(name: str) -> None:
        if name in functions and name not in started:
            started.add(name)
            for callee in callees(functions[name]):
                visit(callee)
            finished[name] = None

    for name in functions:
        visit(name)
    return list(finished)


def has_body(function: Operation) -> bool:
    return bool(function.regions and function.regions[0].blocks)


def function_around(op: Operation) -> FuncOp:
    """The function that holds `op`."""
    found = next((outer for outer in ops_around(op) if isinstance(outer, FuncOp)), None)
    assert found is not None, f"{op.name} is in no function"
    return found


def entry_around(op: Operation) -> Block:
    """The first block of the function that holds `op`, or of the partition of its warps: what is there, `op` may
    use."""
    region = op.parent_region()
    while region is not None and (parent := region.parent) is not None and not parent.has_trait(IsolatedFromAbove):
        region = parent.parent_region()
    assert region is not None, f"{op.name} is in no function"
    return region.blocks[0]


def ops_in_order(*regions: Region) -> list[Operation]:
    """Every op of `regions`, each before those nested in it; several times cheaper than `walk`."""
    found: list[Operation] = []
    for region in regions:
        list_ops(region, found)
    return found


def given_types(op: Operation) -> Iterable[Attribute]:
    """The types of what an op makes, or a function takes."""
    return function_type_of(op).inputs if type(op) is FuncOp else [result.type for result in op.results]
