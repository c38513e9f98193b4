"""Which `for` loops must carry their variable, because something reads it after the loop.

    lasting_loops(tree)     # the ids of these `for` nodes of a function's syntax tree

        for i in range(n):      carried: the last value of `i` is stored
            ...
        tl.store(out, i)
        for i in range(n):      not carried: nothing reads `i` before the next value
            ...

The variable of a finished loop is poison in Triton, and has Python's value here. Two walks over the tree find its
readers, as in any analysis of live variables. The first one computes for each statement the variables that it may read
before it sets them, and those that it sets on every path. The second one goes backwards through the blocks with the set
of live variables. Variables that are live after a loop or at the start of its next iteration are live everywhere in its
body, which `break` and `continue` may leave anywhere.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Uses(NamedTuple):
    """The loop variables that statements read and set."""

    reads: set[str]  # perhaps before they set them
    sets: set[str]  # on every path to their end
    may_jump: bool  # there may be no such path


def lasting_loops(tree: Any) -> frozenset[int]:
    """Return the ids of the `for` loops over run-time ranges whose variable may be read later; kept in the tree."""
    cached: frozenset[int] | None = getattr(tree, "_lasting_loops", None)
    if cached is None:
        cached = tree._lasting_loops = frozenset(LiveVariables(tree).lasting)
    return cached


class LiveVariables:
    """The two walks over a tree; see the module docstring."""

    def __init__(self, tree: Any) -> None:
        targets = [node.target for node in ast.walk(tree) if isinstance(node, ast.For)]
        self.names = {target.id for target in targets if isinstance(target, ast.Name)}
        self.known: dict[int, Uses] = {}  # of loops and branches
        self.lasting: set[int] = set()
        if self.names:
            self.walk_back(tree.body[0].body, set(), frozenset())

    # ---- what statements read and set

    def of_block(self, statements: Sequence[ast.stmt]) -> Uses:
        reads, sets, may_jump = set[str](), set[str](), False
        for statement in reversed(statements):
            uses = self.of(statement)
            reads -= uses.sets
            reads |= uses.reads
            if uses.may_jump:
                sets.clear()
            sets |= uses.sets
            may_jump |= uses.may_jump
        return Uses(reads, sets, may_jump)

    def of(self, node: ast.stmt) -> Uses:
        """The uses of one statement."""
        if (known := self.known.get(id(node))) is not None:
            return known
        match node:
            case ast.For() | ast.While():
                first = self.read_in(node.iter if isinstance(node, ast.For) else node.test)
                body, last = self.of_block(node.body), self.of_block(node.orelse)
                found = Uses(first | (body.reads - set_by(node)) | last.reads, set(), body.may_jump or last.may_jump)
            case ast.If():
                blocks = [self.of_block(node.body), self.of_block(node.orelse)]
                reads = self.read_in(node.test).union(*(block.reads for block in blocks))
                found = Uses(reads, blocks[0].sets & blocks[1].sets, any(block.may_jump for block in blocks))
            case ast.Match():
                blocks = [self.of_block(case.body) for case in node.cases]
                reads = self.read_in(node).union(*(block.reads for block in blocks))
                found = Uses(reads, set(), any(block.may_jump for block in blocks))
            case ast.Break() | ast.Continue() | ast.Return():
                return Uses(self.read_in(node), set(), True)
            case ast.Assign():
                return Uses(self.read_in(node), self.set_in(node.targets), False)
            case ast.AnnAssign() if node.value is not None:
                return Uses(self.read_in(node), self.set_in([node.target]), False)
            case ast.AugAssign():
                return Uses(self.read_in(node) | self.set_in([node.target]), set(), False)
            case _:
                return Uses(self.read_in(node), set(), False)
        self.known[id(node)] = found
        return found

    def read_in(self, node: ast.AST) -> set[str]:
        """The variables that are read anywhere in `node`."""
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
        return {name.id for name in names if name.id in self.names}

    def set_in(self, targets: Iterable[ast.expr]) -> set[str]:
        """The variables that are set by an assignment to `targets`."""
        names = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        return {name.id for name in names if isinstance(name.ctx, ast.Store) and name.id in self.names}

    # ---- what is live

    def walk_back(self, statements: Sequence[ast.stmt], live: set[str], anywhere: frozenset[str] | set[str]) -> None:
        """Note the lasting loops among `statements`. `live` are the variables that are live after them, and is changed;
        those in `anywhere` are live everywhere in them."""
        for statement in reversed(statements):
            uses = self.of(statement)
            match statement:
                case ast.For() | ast.While():
                    self.walk_back(statement.orelse, set(live), anywhere)
                    after = live | self.of_block(statement.orelse).reads
                    if set_by(statement) & after and not is_unrolled(statement):
                        self.lasting.add(id(statement))
                    inside = after | uses.reads
                    self.walk_back(statement.body, set(inside), inside)
                case ast.If():
                    for block in (statement.body, statement.orelse):
                        self.walk_back(block, set(live), anywhere)
                case ast.Match():
                    for case in statement.cases:
                        self.walk_back(case.body, set(live), anywhere)
                case _:
                    pass
            live -= uses.sets - anywhere
            live |= uses.reads


def set_by(loop: ast.For | ast.While) -> set[str]:
    """The variable of a loop, if it has one."""
    return {loop.target.id} if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) else set()


def is_unrolled(loop: ast.For | ast.While) -> bool:
    """Return True for a loop over `static_range`, by its text: its variable is a constant after the loop too."""
    return isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and name_of(loop.iter.func) == "static_range"


def name_of(function: ast.expr) -> str | None:
    return getattr(function, "attr", getattr(function, "id", None))
