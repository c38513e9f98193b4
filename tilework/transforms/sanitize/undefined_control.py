"""Loops and branches carry the shadows of what they carry."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilework.ir.scf_ext import carry_beside
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.sanitize.undefined_shadows import Shadow, Shadows, Sources, sources_below


def carried_sources(shadows: Shadows, op: Operation) -> Sources:
    """The sources that a loop or branch may carry elements of: those in it, and those of what is used in it."""
    found = [(*sources_below(shadows, inner), *shadows.sources.get(inner, ())) for inner in op.walk()]
    return tuple(dict.fromkeys(source for sources in found for source in sources))


def carry_shadows(shadows: Shadows, op: Operation) -> None:
    sources = carried_sources(shadows, op)

    def shadow_of(value: SSAValue, like: SSAValue, before: Operation) -> list[SSAValue]:
        code = Emitter(before.location)
        made = shadows.carried(code, value, like)
        code.insert_before(before)
        return [made]

    def learn(value: SSAValue, made: Sequence[SSAValue]) -> None:
        shadows.known[value] = Shadow(sources, value=made[0])

    carry_beside(
        op, shadows.partial.__contains__, lambda value: [shadows.type_of(value)], shadow_of, learn, shadows.visit_block
    )
