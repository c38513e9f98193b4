"""Walks over deep syntax trees: programs write kernels whose expressions have thousands of terms.

    deeply(levels_of(tree), lambda: visitor.visit(tree))

Python refuses more than 1,000 nested calls, which a walk needs for a few hundred levels; with a higher limit alone a walk can overflow
the stack of its thread, which ends the process. So a deep tree is walked in a thread with a stack for its depth, and the limit is
higher until that walk ends. Context variables are those of the caller.
"""

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from tilework.process.forks import held_at_fork

T = TypeVar("T")

SHALLOW = 40  # levels of most kernels, which are walked where the caller is
DEEPEST = 20_000  # levels; Python itself compiles fewer
FRAMES = 12  # nested Python calls of a walk for each level, at most
LEVEL_BYTES, LEAST_BYTES = 16 * 1024, 16 << 20  # of the stack
TOO_DEEP = "this is nested too deeply\nhelp: give parts of it names, in statements of their own"
_LOCK = held_at_fork(threading.RLock())
_RAISED: list[int] = []  # Python's own limit, once for each walk that needs a higher one


def levels_of(tree: ast.AST) -> int:
    """How many nodes are nested in each other."""
    levels, level = 0, [tree]
    while level:
        levels, level = levels + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return levels


def deeply(levels: int, call: Callable[[], T]) -> T:
    """``call()``, which recurses through so many levels of a tree."""
    if levels <= SHALLOW:
        return call()
    if levels > DEEPEST:
        raise RecursionError(TOO_DEEP)
    found: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            errors.append(error)

    with raised_limit(levels * FRAMES):
        context = copy_context()
        with _LOCK:
            before = threading.stack_size(LEAST_BYTES + levels * LEVEL_BYTES)
            try:
                thread = threading.Thread(target=context.run, args=(run,), name="tilework deep tree", daemon=True)
                thread.start()
            finally:
                threading.stack_size(before)
        thread.join()
    if errors:
        raise errors.pop()
    return found[0]


@contextmanager
def raised_limit(frames: int) -> Iterator[None]:
    """Let all threads nest `frames` more calls than before."""
    with _LOCK:
        limit = sys.getrecursionlimit()
        _RAISED.append(_RAISED[0] if _RAISED else limit)
        sys.setrecursionlimit(max(limit, _RAISED[0] + frames))
    try:
        yield
    finally:
        with _LOCK:
            limit = _RAISED.pop()
            if not _RAISED:
                sys.setrecursionlimit(limit)
