"""Python's AST to TTIR: visitors know Python, `semantic` knows types and builds ops. Start at `generator`.

This file holds the table from a node to its visitor:

    @visits(ast.Pass)
    def visit_pass(gen, node):
        ...

Each module of visitors (`statements`, `control_flow`, `loops`, `expressions`, `calls`) fills its part; a node without a
visitor is not part of the language.
"""

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it calls the visitors, which know it as a type only
    from tilework.frontend.generator import FunctionGenerator as FunctionGenerator
else:
    FunctionGenerator = Any


Visitor = Callable[[FunctionGenerator, Any], Any]
VISITORS: dict[type[ast.AST], Visitor] = {}


def visits(*nodes: type[ast.AST]) -> Callable[[Visitor], Visitor]:
    """Register the visitor of these node classes; a second one for the same class is a mistake."""

    def register(visitor: Visitor) -> Visitor:
        for node in nodes:
            assert node not in VISITORS, f"{node.__name__} has a visitor already"
            VISITORS[node] = visitor
        return visitor

    return register
