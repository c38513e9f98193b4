"""Drop private functions that no public function can reach.

    tt.func public @kernel() { tt.call @used() }
    tt.func private @used()                        stays
    tt.func private @helper() { tt.call @helper() }   goes, although it calls itself

Stage: any. Cost: a walk, if there are private functions.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilework.ir import tt
from tilework.ir.rewrite import erase_op
from tilework.transforms.folding.worklist import ops_in_order


@dataclass(frozen=True)
class SymbolDCEPass(ModulePass):
    name = "symbol-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {symbol_of(function): function for function in op.ops if type(function) is tt.FuncOp}
        if not any(is_private(function) for function in functions.values()):
            return
        live = {name for name, function in functions.items() if not is_private(function)}
        stack = list(live)
        while stack:
            for callee in callees(functions[stack.pop()]):
                if callee in functions and callee not in live:
                    live.add(callee)
                    stack.append(callee)
        for name, function in functions.items():
            if name not in live:
                erase_op(function)


def symbol_of(function: Operation) -> str:
    """The name of a function."""
    name = function.properties["sym_name"]
    assert isinstance(name, StringAttr), "a function has a name"
    return name.data


def is_private(function: Operation) -> bool:
    """True if only functions of this module can call `function`."""
    visibility = function.properties.get("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.data == "private"


def callee_of(call: Operation) -> str:
    """The name of the function that a `tt.call` calls."""
    return call.properties["callee"].root_reference.data  # pyright: ignore[reportAttributeAccessIssue]


def callees(function: Operation) -> list[str]:
    """The names of the functions that `function` calls, once per call, in program order."""
    return [callee_of(op) for op in ops_in_order(*function.regions) if type(op) is tt.CallOp]
