"""Turn a counted loop with `break` or `return` into an `scf.for` with the exact trip count, where it can be computed in
advance.

    for k in range(0, n, 32):                    stop = min(n, limit)
        a = load(k)                              for k in range(0, stop, 32):        pipelined like any other loop
            if k >= limit: break         ==>         a = load(k); use(a)
        use(a)                                   if stop < n: a = load(stop)         the last iteration up to its exit

The trip count is known if the exit condition is computed from scalars that the loop does not load: then only that part
of the body runs first in a loop of its own, which finds the iteration that exits. An exit by ``k >= limit`` needs no
such loop. Nothing is loaded that the program would not load. The condition may use scalars that the loop loads if the
loop does not store to their arrays and has dots, which make up for loading them twice. Where tiles decide (``if
tl.max(found, 0): break``), the next iteration is not known to exist before this one is done: the loop remains an
`scf.while`, and a remark says so.

The frontend marks these loops (`frontend/control_flow.py`); no other loop is touched.
Stage: TTIR to TTIR. Cost: one walk; for each such loop a copy of its body.
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilework.analysis.provenance import NO_PARAMETER, UNKNOWN, WRITERS, Provenance, pointer_provenance
from tilework.analysis.value_flows import reached
from tilework.ir import arith, scf, tt
from tilework.ir.arith import INVERSE, SGE, SGT, SLT, SWAPPED
from tilework.ir.attr_text import is_true
from tilework.ir.create import append_op, clone_op
from tilework.ir.effects import is_pure, is_speculatable, writes
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, end_of, is_inside, owner_of
from tilework.ir.rewrite import constant, constant_value, defining_op, erase_op
from tilework.ir.scf import make_condition, make_for, make_if, make_while, make_yield
from tilework.ir.types import i1, is_tensor
from tilework.process.forks import cached_property
from tilework.transforms.building.emitter import Emitter, iterations
from tilework.transforms.remarks import remark
from tilework.transforms.tt.flag_logic import (
    arguments_in,
    assume,
    choice_of,
    comparison_of,
    inverted,
    is_none_of,
    only_ends,
)

Limits = list[tuple[int, SSAValue]]
DOTS = (tt.DotOp, tt.DotScaledOp)
Mapping = dict[SSAValue, SSAValue]


def count_exits(loop: Operation, module: ModuleOp, may_alias: bool = False) -> None:
    """Convert a loop that the frontend has marked to an `scf.for`; if that is impossible, a remark says why."""
    exiting = ExitingLoop(loop, module, may_alias)
    if (reason := exiting.problem()) is None:
        exiting.convert()
    elif exiting.is_worth_counting:
        remark(loop, f"the loop is not pipelined: {reason}")


class ExitingLoop:
    """An `scf.while` that counts: its condition compares the counter, and tests flags that the body sets and does not
    read.

    All indices are those of the inputs of the loop; `arguments` are the body arguments for them.
    """

    def __init__(self, loop: Operation, module: ModuleOp, may_alias: bool) -> None:
        self.loop = loop
        self.module, self.may_alias = module, may_alias
        self.body = loop.regions[1].blocks[0]
        self.condition = end_of(loop.regions[0].blocks[0])
        self.yields = tuple(end_of(self.body).operands)
        self.code = Emitter(loop.location)

    def has_form(self) -> bool:
        """Find the parts; return False if the loop does not have the form that the frontend emits."""
        test, *passed = self.condition.operands
        before = self.loop.regions[0].blocks[0]
        both = defining_op(test)
        if not isinstance(both, arith.AndIOp) or not all(value in before.args for value in passed):
            return False
        for compared, continues in (tuple(both.operands), tuple(reversed(both.operands))):
            counted = comparison_of(compared)
            flags = {argument.index for argument in arguments_in(continues)}
            if (
                counted is None
                or counted[0] != SLT
                or counted[1] not in before.args
                or not is_none_of(continues, before)
            ):
                continue
            counter = counted[1].index  # pyright: ignore[reportAttributeAccessIssue]
            self.inputs = [value.index for value in passed]  # pyright: ignore[reportAttributeAccessIssue]
            self.end, self.flags, self.counter = counted[2], sorted(flags), counter
            following = self.sum_of(self.yields[counter])
            if not isinstance(following, arith.AddiOp) or counter not in self.inputs or not self.is_outside(self.end):
                continue
            argument, self.step = following.operands
            if argument is self.argument(counter) and self.is_outside(self.step):
                self.carried = [index for index in self.inputs if index != counter and index not in flags]
                return True
        return False

    def sum_of(self, following: SSAValue) -> Operation | None:
        """The op that adds the step to the counter, without the check that the sum is below the end."""
        choice = choice_of(following)
        return defining_op(following if choice is None or choice[2] is not self.end else choice[1])

    def argument(self, index: int) -> BlockArgument:
        return self.body.args[self.inputs.index(index)]

    def is_outside(self, value: SSAValue) -> bool:
        """Return True if `value` is defined outside of the loop."""
        owner = owner_of(value)
        return owner is None or (owner is not self.loop and not is_inside(owner, self.loop))

    @cached_property
    def is_worth_counting(self) -> bool:
        """True if the loop would be pipelined."""
        has_dots = any(type(op) in DOTS for op in self.body.walk())
        return has_dots or "tt.num_stages" in self.loop.attributes

    @cached_property
    def decision(self) -> "Decision":
        return Decision(self)

    @cached_property
    def bounds(self) -> Limits | None:
        """The comparisons with the counter that end the loop as soon as one holds, if that is all there is."""
        step = constant_value(self.step)
        if not isinstance(step, int) or step <= 0:
            return None
        return concatenated(self.comparisons(self.yields[flag]) for flag in self.flags)

    def comparisons(self, flag: SSAValue, truth: bool = True) -> Limits | None:
        """The comparisons of the counter of which one must hold for `flag` to be `truth`."""
        if (known := constant_value(flag)) is not None:
            return None if known == truth else []
        if (compared := comparison_of(flag)) is not None:
            return self.limit(*compared, truth)
        op = defining_op(flag)
        if type(op) is (arith.OrIOp if truth else arith.AndIOp):
            return concatenated(self.comparisons(operand, truth) for operand in op.operands)  # pyright: ignore
        if (opposite := inverted(flag)) is not None:
            return self.comparisons(opposite, not truth)
        if (choice := choice_of(flag)) is not None:
            condition, yes, no = choice
            for ends, holds, other in ((yes, True, no), (no, False, yes)):
                if constant_value(ends) == truth:
                    return concatenated([self.comparisons(condition, holds), self.comparisons(other, truth)])
        return None

    def limit(self, predicate: int, counter: SSAValue, limit: SSAValue, truth: bool) -> Limits | None:
        """The limit that one comparison implies."""
        if counter is not self.argument(self.counter):
            predicate, counter, limit = SWAPPED[predicate], limit, counter
        predicate = predicate if truth else INVERSE[predicate]
        is_limit = predicate in (SGE, SGT) and counter is self.argument(self.counter) and self.is_fixed(limit)
        return [(predicate, limit)] if is_limit else None

    def is_fixed(self, value: SSAValue) -> bool:
        """Return True if `value` is loop-invariant and can be computed in front of the loop."""
        if self.is_outside(value):
            return True
        op = defining_op(value)
        return op is not None and not op.regions and is_speculatable(op) and all(map(self.is_fixed, op.operands))

    def problem(self) -> str | None:
        """The reason why the end of the loop cannot be found before it starts, or None."""
        if not self.has_form() or self.result(self.counter) is not None:
            return "it does not count as a `for` does"
        if any(self.argument(flag).first_use is not None for flag in self.flags if flag in self.inputs):
            return "it reads what ends it"
        if self.bounds is not None:
            return None
        if not self.is_worth_counting:
            return "it has no dots"
        return self.decision.problem

    # The new loop.

    def result(self, index: int) -> OpResult | None:
        """The result of the loop for an input, if it is used."""
        if index not in self.inputs:
            return None
        result = self.loop.results[self.inputs.index(index)]
        return None if result.first_use is None else result

    def convert(self) -> None:
        """Replace the loop."""
        self.first = self.loop.operands[self.counter]
        index_of_exit, stop, leaves = self.known_stop() if self.bounds is not None else self.counted_stop()
        (flag, *others) = self.flags
        is_whole = not others and only_ends(self.yields[flag], end_of(self.body), self.body)
        if is_whole:  # nothing depends on whether this iteration exits: it is like all others
            behind = self.code.binary(arith.AddiOp, index_of_exit, 1)
            stop = self.code.select(leaves, behind, stop)
        rest = None if is_whole else self.copy_of_body(index_of_exit)
        new = self.counted_loop(stop)
        results = dict(zip((*self.carried, flag), (*new.results, leaves), strict=True))
        if rest is not None:
            results = self.finished(leaves, rest, new)
        self.code.insert_before(self.loop)
        for index, value in results.items():
            if (old := self.result(index)) is not None:
                old.replace_all_uses_with(value)
        erase_op(self.loop)

    def known_stop(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """(the index of the exiting iteration, an upper bound that excludes only it, "there is one")."""
        code, stop, copies = self.code, self.end, Mapping()
        for predicate, limit in self.bounds or ():
            limit = self.copied_in_front(limit, copies)
            first = limit if predicate == SGE else code.binary(arith.AddiOp, limit, 1)
            stop = code.select(code.compare("slt", limit, stop), first, stop)
        count, all = (iterations(code, self.first, end, self.step) for end in (stop, self.end))
        leaves = code.compare("ult", count, all)
        return code.binary(arith.AddiOp, self.first, code.binary(arith.MuliOp, count, self.step)), stop, leaves

    def copied_in_front(self, value: SSAValue, copies: Mapping) -> SSAValue:
        """`value`, computed in front of the loop."""
        op = defining_op(value)
        if op is None or not is_inside(op, self.loop):
            return value
        if value not in copies:
            for operand in op.operands:
                copies[operand] = self.copied_in_front(operand, copies)
            self.code.append(clone_op(op, copies))
        return copies[value]

    def counted_stop(self) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The same, found by a loop over the ops that decide."""
        carried, loc = self.decision.carried, self.loop.location
        indices = (self.counter, *carried)
        initial = [self.loop.operands[index] for index in indices]
        types = [value.type for value in initial]
        before, after, decided, over = Block(arg_types=types), Block(arg_types=types), Block(), Block()
        mapping: Mapping = dict(zip(map(self.argument, indices), before.args, strict=True))
        self.decision.copy(self.body, decided, mapping)
        code = Emitter(loc)
        unset = [code.negated(mapping.get(self.yields[flag], self.yields[flag])) for flag in self.flags]
        goes_on = unset[0] if len(unset) == 1 else code.binary(arith.AndIOp, *unset)
        code.ops.append(make_yield([goes_on, *(mapping.get(v := self.yields[index], v) for index in carried)], loc))
        decided.add_ops(code.ops)
        over.add_ops([no := constant(0, i1, loc), make_yield([no.results[0], *before.args[1:]], loc)])
        exists = Emitter(loc)
        is_there = exists.compare("slt", before.args[0], self.end)
        branch = make_if(is_there, [i1, *types[1:]], Region(decided), Region(over), loc)
        before.add_ops(
            [*exists.ops, branch, make_condition(branch.results[0], [before.args[0], *branch.results[1:]], loc)]
        )
        code = Emitter(loc)
        following = code.binary(arith.AddiOp, after.args[0], self.step)
        is_below = code.compare("ult", self.step, code.binary(arith.SubiOp, self.end, after.args[0]))
        following = code.select(is_below, following, self.end)
        after.add_ops([*code.ops, make_yield([following, *after.args[1:]], loc)])
        found = self.code.append(make_while(initial, types, Region(before), Region(after), loc))
        return found, found, self.code.compare("slt", found, self.end)

    def counted_loop(self, stop: SSAValue) -> Operation:
        """The loop over the iterations before the exiting one; the body moves there."""
        body, region = self.body, self.loop.detach_region(self.loop.regions[1])
        order = [self.counter, *self.carried]
        for flag in self.flags:
            assume(self.yields[flag], False, body)
        for index in order:
            old = self.argument(index)
            new = body.insert_arg(old.type, len(body.args), old.location)
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        for argument in body.args[: len(self.inputs)]:
            body.erase_arg(argument)
        last = end_of(body)
        last.operands = [last.operands[index] for index in self.carried]
        initial = [self.loop.operands[index] for index in self.carried]
        made = make_for(self.first, stop, self.step, initial, region, self.loop.location)
        made.attributes.update(self.loop.attributes)
        self.code.ops.append(made)
        return made

    def copy_of_body(self, counter: SSAValue) -> Block:
        """The exiting iteration, on the arguments of the old body except the counter."""
        block, mapping = Block(), Mapping({self.argument(self.counter): counter})
        for op in self.body.ops:
            append_op(block, clone_op(op, mapping))
        if len(self.flags) == 1:
            assume(end_of(block).operands[self.flags[0]], True, block)
        return block

    def finished(self, leaves: SSAValue, rest: Block, new: Operation) -> dict[int, SSAValue]:
        """The results after the exiting iteration, if there is one; else those of the `new` loop, and unset flags."""
        loc, region, last = self.loop.location, Region(rest), end_of(rest)
        given: Mapping = dict(zip(body_of(new).args[1:], new.results, strict=True))
        indices = [*self.carried, *self.flags]
        last.operands = [last.operands[index] for index in indices]
        for op in ops_in_order(region):
            if any(value in given for value in op.operands):
                op.operands = [given.get(value, value) for value in op.operands]
        values = [*new.results, *(self.loop.operands[flag] for flag in self.flags)]
        other = Region(Block([make_yield(values, loc)]))
        branch = make_if(leaves, [value.type for value in values], region, other, loc)
        self.code.ops.append(branch)
        return dict(zip(indices, branch.results, strict=True))


class Decision:
    """The ops of a body that decide whether it ends the loop, in this iteration or a later one."""

    def __init__(self, exiting: ExitingLoop) -> None:
        self.exiting = exiting
        self.needed: dict[Operation, set[int]] = {}  # with the results of branches that are needed
        self.indices: set[int] = set()
        self.loads: list[Operation] = []
        self.problem: str | None = None
        for _ in reached([exiting.yields[flag] for flag in exiting.flags], self.needs):
            if self.problem is not None:
                break
        if self.problem is None and self.loads and not self.are_fixed_in_memory():
            self.problem = "what it loads decides when it ends, and it writes to memory"

    @property
    def carried(self) -> list[int]:
        """The arguments of the body, without the counter, that decide."""
        return sorted(self.indices)

    def needs(self, value: SSAValue) -> list[SSAValue]:
        """The values that `value` is computed from."""
        loop, body = self.exiting.loop, self.exiting.body
        if isinstance(value, BlockArgument):
            if value.block is not body or (index := self.exiting.inputs[value.index]) == self.exiting.counter:
                return []
            self.indices.add(index)
            return [self.exiting.yields[index]]
        op = defining_op(value)
        if op is None or not is_inside(op, loop):
            return []
        if is_tensor(value.type):
            self.problem = "the content of a tile decides when it ends"
            return []
        needed = self.needed.setdefault(op, set())
        if type(op) is scf.IfOp:
            needed.add(value.index)  # pyright: ignore[reportAttributeAccessIssue]
            yielded = [end_of(region.blocks[0]).operands[value.index] for region in op.regions]  # pyright: ignore
            return [op.operands[0], *yielded]
        if type(op) is tt.LoadOp and not is_true(op.properties.get("isVolatile")):
            self.loads.append(op)
        elif op.regions and any(is_tensor(operand.type) for operand in op.operands):
            self.problem = "the content of a tile decides when it ends"
        elif op.regions:
            self.problem = "a loop inside decides when it ends"
        elif not is_pure(op):
            self.problem = f"{op.name} decides when it ends, and has effects"
        return list(op.operands)

    def are_fixed_in_memory(self) -> bool:
        """Return True if nothing in the loop writes what its loads read.

        Parameters are taken to be different memory, as by the pipeliner, unless they may alias.
        """
        effects = [op for op in self.exiting.body.walk() if not op.regions and writes(op)]
        if any(type(op) is not tt.StoreOp for op in effects):
            return False
        if not effects or self.exiting.may_alias:
            return not effects
        provenance = pointer_provenance(self.exiting.module)
        own = self.parameters(self.loads, provenance)
        return UNKNOWN not in own and not own & self.parameters(effects, provenance)

    @staticmethod
    def parameters(accesses: Sequence[Operation], provenance: Provenance) -> frozenset[int]:
        found = (provenance.get(op.operands[WRITERS.get(type(op), 0)], NO_PARAMETER) for op in accesses)
        return frozenset[int]().union(*found)

    def copy(self, source: Block, target: Block, mapping: Mapping) -> None:
        """Append the needed ops of `source`, without its terminator, to `target`."""
        for op in source.ops:
            if op not in self.needed:
                continue
            if type(op) is not scf.IfOp:
                append_op(target, clone_op(op, mapping))
                continue
            kept, branches = sorted(self.needed[op]), (Block(), Block())
            for region, inner in zip(op.regions, branches, strict=True):
                self.copy(region.blocks[0], inner, mapping)
                values = [end_of(region.blocks[0]).operands[index] for index in kept]
                append_op(inner, make_yield([mapping.get(value, value) for value in values], op.location))
            condition = mapping.get(op.operands[0], op.operands[0])
            types, (yes, no) = [op.results[index].type for index in kept], map(Region, branches)
            branch = make_if(condition, types, yes, no, op.location)
            append_op(target, branch)
            mapping.update(zip((op.results[index] for index in kept), branch.results, strict=True))


def concatenated(parts: Iterable[Limits | None]) -> Limits | None:
    """Concatenate `parts`; None if one of them is."""
    found = list(parts)
    return None if None in found else [one for part in found if part is not None for one in part]
