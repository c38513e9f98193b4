"""Carry the components of a descriptor to the next iteration of a loop, and make the descriptor again there.

    scf.for ... iter_args(%last = %d) {              scf.for ... iter_args(%last = %d, %kind = 0, %p = ..., %m = ...) {
      ...                                              %l = scf.if %kind != 0 { make_tensor_descriptor %p, [%m] }
                                             ==>            else { yield %last }
      use %last                                        use %l
      %new = tt.make_tensor_descriptor %q, [%k]        %new = tt.make_tensor_descriptor %q, [%k]
      scf.yield %new                                   scf.yield %new, 1, %q, %k

An op in a loop writes its descriptor to the same memory in every iteration, so a handle is valid only until the op runs
again. The loop does not overwrite descriptors made before it: their handles are carried as before (kind 0). Kinds 1 and
2 pad with zeros and with NaN. Descriptors that live for one iteration are left alone. A call in a loop that returns a
descriptor is inlined, so that the loop makes it.
Stage: TTIR to TTIR, targets with TMA. Cost: one walk where no descriptor is carried.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilework.analysis.value_flows import sources_of
from tilework.errors import PassError
from tilework.ir import scf, tt, ub
from tilework.ir.arith import SelectOp
from tilework.ir.enums import PaddingOption
from tilework.ir.functions import callee_of, functions_by_name, modules, ops_in_order
from tilework.ir.nesting import behind, end_of, owner_of
from tilework.ir.rewrite import insert_after, insert_before
from tilework.ir.scf import LOOPS, carry_beside, loop_around, make_if, make_yield
from tilework.ir.types import TensorDescType, i32, i64, int_property, is_descriptor
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.inline import CallSites, splice
from tilework.transforms.passes import module_pass
from tilework.transforms.tt.rewrite_tensor_descriptor import components

HANDLE = 0
KINDS = {PaddingOption.ZERO: 1, PaddingOption.NAN: 2}
Parts = tuple[SSAValue, ...]  # the kind, the base, the shape, the strides


@module_pass("triton-remake-carried-descriptors")
def remake_carried_descriptors(module: ModuleOp) -> None:
    for table in modules(module):
        ops = [inner for function in functions_by_name(table).values() for inner in ops_in_order(*function.regions)]
        loops = [op for op in ops if type(op) in LOOPS and any(is_descriptor(operand.type) for operand in op.operands)]
        calls = [inner for inner in ops if type(inner) is tt.CallOp and makes_descriptor(inner)]
        if loops or calls:
            Rewrite(table).run(loops, calls)


def makes_descriptor(call: Operation) -> bool:
    """Return True if `call` returns a descriptor in each iteration of a loop."""
    return any(is_descriptor(result.type) for result in call.results) and loop_around(call) is not None


class Rewrite:
    """The functions of a module; `parts` of the descriptors that are carried in parts."""

    def __init__(self, module: ModuleOp) -> None:
        self.functions = functions_by_name(module)
        self.parts: dict[SSAValue, Parts] = {}
        self.in_parts: set[Operation] = set()  # loops and terminators that pass descriptors on in parts
        self.call_sites = CallSites()
        makes = [op for op in ops_in_order(*module.regions) if type(op) is tt.MakeTensorDescOp]
        self.paddings = sorted({padding_of(make) for make in makes}, key=KINDS.__getitem__)

    def run(self, loops: Sequence[Operation], calls: Sequence[Operation]) -> None:
        """Rewrite outer loops first, so that inner ones can take over the parts they carry."""
        for call in calls:
            if self.is_of_one_block(call):
                self.inline(call)
        for loop in loops:
            if loop not in self.in_parts and any(self.is_stale(index, loop) for index in range(len(loop.operands))):
                self.carry_parts(loop)

    def is_stale(self, index: int, loop: Operation) -> bool:
        """Return True if the loop reads, as carried value `index`, a descriptor made by an earlier iteration."""
        if not is_descriptor(loop.operands[index].type):
            return False
        first = 3 if type(loop) is scf.ForOp else 0
        argument = loop.regions[0].blocks[0].args[index - first + (first > 0)]
        end = end_of(loop.regions[-1].blocks[0])
        following = end.operands[index - first]
        used = any(use.operation is not end or use.index != argument.index - (first > 0) for use in argument.uses)
        return used and self.is_made_in(following, loop, set())

    def is_made_in(self, value: SSAValue, loop: Operation, seen: set[SSAValue]) -> bool:
        """Return True if an op under `loop` may have made the descriptor `value`."""
        owner = owner_of(value)
        if value in seen or owner is None or not loop.is_ancestor(owner):
            return False
        seen.add(value)
        if isinstance(value, BlockArgument) or type(owner) in (*LOOPS, scf.IfOp):
            return any(self.is_made_in(source, loop, seen) for sources in sources_of(value) for source in sources)
        if type(owner) is SelectOp:
            return any(self.is_made_in(operand, loop, seen) for operand in owner.operands[1:])
        return True

    def parts_of(self, value: SSAValue) -> Parts:
        """The parts of a descriptor, as values that dominate its uses."""
        if (known := self.parts.get(value)) is not None:
            return known
        owner = owner_of(value)
        if isinstance(value, BlockArgument) or owner is None or loop_around(owner) is None:
            return self.handle(value)
        if isinstance(owner, tt.MakeTensorDescOp):
            code = Emitter(owner.location)
            parts = (code.constant(KINDS[padding_of(owner)], i32), owner.base, *owner.shape, *owner.strides)
            insert_after(owner, *code.ops)
            self.parts[value] = parts
            return parts
        assert isinstance(value, OpResult)
        if type(owner) in (*LOOPS, scf.IfOp):
            self.carry_parts(owner)
            return self.parts[value]
        if type(owner) is SelectOp:
            return self.convert_select(owner)
        if type(owner) is tt.CallOp:
            what = "a tensor descriptor from a noinline function with several returns"
            raise PassError(f"{what} cannot be carried to the next iteration", owner.location)
        return self.handle(value)

    def handle(self, value: SSAValue) -> Parts:
        """The handle of a descriptor from before the loops: kind 0, and parts that are never read."""
        first = behind(value)
        code = Emitter(first.location)
        kind = code.constant(HANDLE, i32)
        rest = [
            code.append(ub.PoisonOp.create(result_types=(type,), location=code.loc))
            for type in part_types(value.type)[1:]
        ]
        code.insert_before(first)
        parts = self.parts[value] = (kind, *rest)
        return parts

    # Ops that pass descriptors on.

    def carry_parts(self, op: Operation) -> None:
        """Carry the parts of every descriptor of a loop or branch beside it."""
        learned: list[SSAValue] = []

        def learn(value: SSAValue, parts: Sequence[SSAValue]) -> None:
            self.parts[value] = tuple(parts)
            learned.append(value)

        carry_beside(
            op,
            lambda value: is_descriptor(value.type),
            lambda value: part_types(value.type),
            lambda value, like, before: self.parts_of(value),
            learn,
        )
        self.in_parts |= {op, *(end_of(region.blocks[0]) for region in op.regions)}
        for value in learned if type(op) in LOOPS else ():
            self.remake(value, behind(value))

    def convert_select(self, select: Operation) -> Parts:
        condition, *sides = select.operands
        first, second = (self.parts_of(side) for side in sides)
        code = Emitter(select.location)
        pairs = zip(first, second, strict=True)
        chosen = [one if one is other else code.select(condition, one, other) for one, other in pairs]
        insert_after(select, *code.ops)
        parts = self.parts[select.results[0]] = tuple(chosen)
        return parts

    def is_of_one_block(self, call: Operation) -> bool:
        callee = self.functions.get(callee_of(call))
        return callee is not None and len(callee.regions[0].blocks) == 1

    def inline(self, call: Operation) -> None:
        """Inline the function: a pipelined loop gives each descriptor it makes several buffers."""
        body = self.functions[callee_of(call)].regions[0].clone()
        calls = [op for op in body.walk() if type(op) is tt.CallOp]
        self.call_sites.move(body, call.location)
        splice(call, body)
        for op in calls:
            if makes_descriptor(op) and self.is_of_one_block(op):
                self.inline(op)

    def remake(self, value: SSAValue, before: Operation) -> None:
        """Replace the uses of `value`, whose handle may be stale, by a descriptor built from its parts."""
        kind, base, *rest = self.parts[value]
        assert isinstance(value.type, TensorDescType)
        uses = [use for use in value.uses if use.operation not in self.in_parts]
        if not uses:
            return
        block, rank, loc = value.type.block, len(rest) // 2, before.location

        def make(paddings: Sequence[PaddingOption]) -> list[Operation]:
            """Build the descriptor with the padding that `kind` selects."""
            made = tt.MakeTensorDescOp.make(base, rest[:rank], rest[rank:], block, paddings[0], loc)
            if len(paddings) == 1:
                return [made]
            return choice(kind, KINDS[paddings[0]], [made], made.results[0], make(paddings[1:]))

        code = choice(kind, HANDLE, [], value, make(self.paddings))
        insert_before(before, *code)
        for use in uses:
            use.operation.operands[use.index] = code[-1].results[0]


def padding_of(make: Operation) -> PaddingOption:
    return PaddingOption(int_property(make, "padding"))


def choice(
    kind: SSAValue, wanted: int, then: list[Operation], chosen: SSAValue, otherwise: list[Operation]
) -> list[Operation]:
    """``kind == wanted ? chosen : the result of otherwise[-1]``, as ops; `then` computes `chosen`.

    `then` is in the branch that a pipeline may run for no iteration.
    """
    code = Emitter(otherwise[-1].location)
    other = code.compare("ne", kind, wanted)
    otherwise.append(make_yield(otherwise[-1].results, code.loc))
    then.append(make_yield([chosen], code.loc))
    regions = (Region(Block(otherwise)), Region(Block(then)))
    return [*code.ops, make_if(other, [chosen.type], *regions, code.loc)]


def part_types(type: Attribute) -> tuple[Attribute, ...]:
    """The types of the parts that are carried beside the handle."""
    base, *sizes, _, _ = components(type)
    rank = len(sizes) // 2
    return (i32, base, *(i32,) * rank, *(i64,) * rank)
