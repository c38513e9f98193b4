"""placeholder"""
from collections.abc import Sequence
from xdsl.ir import Operation


def accumulate_in_threads(reduces: Sequence[Operation]) -> None:
    return None
