"""Loops and branches carry the shadows of what they carry."""

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilework.ir.rewrite import erase_op, insert_before, recreate, replace_all_uses
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.sanitize.undefined_shadows import Shadow, Shadows, Sources, sources_below


def carried_shadows(
    shadows: Shadows, values: Sequence[SSAValue], likes: Sequence[SSAValue], before: Operation
) -> list[SSAValue]:
    """The shadows of `values`, as a loop or branch carries them on as `likes`."""
    code = Emitter(before.location)
    made = [shadows.carried(code, value, like) for value, like in zip(values, likes, strict=True)]
    code.insert_before(before)
    return made


def rebuild(
    shadows: Shadows, op: Operation, operands: Sequence[SSAValue], carried: Sequence[int], sources: Sources
) -> None:
    """`op` with the shadows of the results `carried` as further results."""
    types = [*(result.type for result in op.results), *(shadows.type_of(op.results[n]) for n in carried)]
    new = recreate(op, operands=operands, result_types=types, regions=tuple(op.regions))
    insert_before(op, new)
    for number, old in enumerate(op.results):
        for group in (shadows.partial, shadows.varied):
            if old in group:
                group.add(new.results[number])
        replace_all_uses(old, new.results[number])
    for position, number in enumerate(carried):
        shadows.known[new.results[number]] = Shadow(sources, value=new.results[len(op.results) + position])
    erase_op(op)


def add_arguments(shadows: Shadows, block: Block, numbers: Sequence[int], sources: Sources) -> None:
    """Further arguments of a block: the shadows of some of its own."""
    for number in numbers:
        argument = block.args[number]
        added = block.insert_arg(shadows.type_of(argument), len(block.args), argument.location)
        shadows.known[argument] = Shadow(sources, value=added)


def carried_sources(shadows: Shadows, op: Operation) -> Sources:
    """The sources that a loop or branch may carry elements of: those in it, and those of what is used in it."""
    found = [(*sources_below(shadows, inner), *shadows.sources.get(inner, ())) for inner in op.walk()]
    return tuple(dict.fromkeys(source for sources in found for source in sources))


def extend_end(shadows: Shadows, block: Block, likes: Sequence[tuple[int, SSAValue]], offset: int) -> None:
    """The terminator of a block also gives the shadows of what it gives."""
    end = block.last_op
    assert end is not None, "a region ends in a terminator"
    if likes:
        values = [end.operands[offset + n] for n, _ in likes]
        end.operands = (*end.operands, *carried_shadows(shadows, values, [like for _, like in likes], end))


def carry_for(shadows: Shadows, op: Operation) -> None:
    block = op.regions[0].blocks[0]
    inner, sources = block.args[1:], carried_sources(shadows, op)
    carried = [n for n, argument in enumerate(inner) if argument in shadows.partial]
    likes = [(n, op.results[n]) for n in carried]
    initial = carried_shadows(shadows, [op.operands[3 + n] for n in carried], [like for _, like in likes], op)
    add_arguments(shadows, block, [n + 1 for n in carried], sources)
    shadows.visit_block(block)
    extend_end(shadows, block, likes, 0)
    if carried:
        rebuild(shadows, op, (*op.operands, *initial), carried, sources)


def carry_while(shadows: Shadows, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    entering = [n for n, argument in enumerate(before.args) if argument in shadows.partial]
    leaving = [n for n, argument in enumerate(after.args) if argument in shadows.partial]
    sources = carried_sources(shadows, op)
    inward = [(n, before.args[n]) for n in entering]
    outward = [(n, after.args[n]) for n in leaving]
    initial = carried_shadows(shadows, [op.operands[n] for n in entering], [like for _, like in inward], op)
    add_arguments(shadows, before, entering, sources)
    shadows.visit_block(before)
    extend_end(shadows, before, outward, 1)
    add_arguments(shadows, after, leaving, sources)
    shadows.visit_block(after)
    extend_end(shadows, after, inward, 0)
    if entering or leaving:
        rebuild(shadows, op, (*op.operands, *initial), leaving, sources)


def carry_if(shadows: Shadows, op: Operation) -> None:
    carried = [n for n, result in enumerate(op.results) if result in shadows.partial]
    likes = [(n, op.results[n]) for n in carried]
    sources = carried_sources(shadows, op)
    for region in op.regions:
        for block in region.blocks:
            shadows.visit_block(block)
            extend_end(shadows, block, likes, 0)
    if carried:
        rebuild(shadows, op, tuple(op.operands), carried, sources)


CONTROL: dict[type[Operation], Callable[[Shadows, Operation], None]] = {
    scf.ForOp: carry_for,
    scf.IfOp: carry_if,
    scf.WhileOp: carry_while,
}
