"""Which names the reference has, in the order of its pages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Names that stand on one page."""

    title: str
    part: str  # "language" or "runtime"
    names: tuple[str, ...]


def family(part: str, title: str, prefix: str, names: str) -> Family:
    return Family(title, part, tuple(prefix + name for name in names.split()))


FAMILIES = (family("language", "Programs", "tl.", "program_id num_programs"),)
