"""Loops and branches carry the shadows of what they carry."""

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tilework.ir.carried import also_give, also_yield
from tilework.ir.nesting import end_of
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


def add_results(shadows: Shadows, op: Operation, carried: Sequence[int], sources: Sources) -> None:
    """The shadows of the results `carried` as further results of `op`."""
    for result in [op.results[number] for number in carried]:
        shadows.known[result] = Shadow(sources, value=also_give(op, shadows.type_of(result)))


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
    if likes:
        end = end_of(block)
        values = [end.operands[offset + n] for n, _ in likes]
        also_yield(block, carried_shadows(shadows, values, [like for _, like in likes], end))


def carry_for(shadows: Shadows, op: Operation) -> None:
    block = op.regions[0].blocks[0]
    inner, sources = block.args[1:], carried_sources(shadows, op)
    carried = [n for n, argument in enumerate(inner) if argument in shadows.partial]
    likes = [(n, op.results[n]) for n in carried]
    initial = carried_shadows(shadows, [op.operands[3 + n] for n in carried], [like for _, like in likes], op)
    add_arguments(shadows, block, [n + 1 for n in carried], sources)
    shadows.visit_block(block)
    extend_end(shadows, block, likes, 0)
    op.operands = (*op.operands, *initial)
    add_results(shadows, op, carried, sources)


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
    op.operands = (*op.operands, *initial)
    add_results(shadows, op, leaving, sources)


def carry_if(shadows: Shadows, op: Operation) -> None:
    carried = [n for n, result in enumerate(op.results) if result in shadows.partial]
    likes = [(n, op.results[n]) for n in carried]
    sources = carried_sources(shadows, op)
    for region in op.regions:
        for block in region.blocks:
            shadows.visit_block(block)
            extend_end(shadows, block, likes, 0)
    add_results(shadows, op, carried, sources)


CONTROL: dict[type[Operation], Callable[[Shadows, Operation], None]] = {
    scf.ForOp: carry_for,
    scf.IfOp: carry_if,
    scf.WhileOp: carry_while,
}
