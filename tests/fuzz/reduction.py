"""Make a failing kernel smaller: leave out statements, and loops and branches around others, while it fails alike.

python -m tests.fuzz.reduction fuzz-failures/test_cuda_90_17.py       writes the file again with the smaller kernel

A candidate that no longer compiles, agrees, fails in another way or does not end is not taken. Each is tried in a
process of its own where the kernel kills the process or hangs.
"""

import ast
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.fuzz.comparison import interpreted
from tests.fuzz.cpu import kind
from tests.fuzz.devices import CRASHED, LOST, Outcome, outcome_of
from tests.fuzz.kernels import Kernel
from tests.fuzz.workers import Lost, results

HEAD = re.compile(r"@jit(?:\([^)\n]*\))?\ndef kernel")


def alike(found: Outcome, wanted: Outcome) -> bool:
    """Return True if it seems to be the same failure."""
    if found.kind != wanted.kind:
        return False
    return wanted.kind not in (CRASHED, LOST) or kind(found.why) == kind(wanted.why)


def outcome_in_child(kernel: Kernel, device: str, limit: float = 60) -> Outcome:
    """The outcome, or that the process died or hung."""
    ((_, found),) = results(partial(outcome_in_folder, device=device), [kernel], 1, limit)
    return Outcome(LOST, found.why) if isinstance(found, Lost) else found


def outcome_in_folder(kernel: Kernel, device: str) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        return outcome_of(kernel, device, Path(folder))


def tried(kernel: Kernel, device: str, seconds: float = 20) -> Outcome:
    """The outcome of a candidate in this process; one whose loop has lost its end is lost."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError(f"no result within {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with tempfile.TemporaryDirectory() as folder:
            interpreted(kernel, Path(folder))  # first: an alarm does not stop machine code
            return outcome_of(kernel, device, Path(folder))
    except Exception as error:
        return Outcome(LOST, str(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reduced(kernel: Kernel, wanted: Outcome, try_out: Callable[[Kernel], Outcome], seconds: float) -> Kernel:
    """The smallest kernel found within `seconds` that fails as this one does."""
    end = time.monotonic() + seconds
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for source in smaller(kernel.source):
            if time.monotonic() > end:
                return kernel
            candidate = replace(kernel, source=source)
            if alike(try_out(candidate), wanted):
                kernel, is_smaller = candidate, True
                break
    return without_helpers(kernel, wanted, try_out)


def smaller(source: str) -> Iterator[str]:
    """Sources with less in the kernel: long runs of statements are left out first, then single ones, then blocks."""
    found = HEAD.search(source)
    assert found is not None, "there is no kernel"
    head, text = source[: found.start()], source[found.start() :]
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    lines = text.splitlines(keepends=True)
    blocks = list(bodies(function))
    longest = max(len(block) for block in blocks)
    size = 1 << longest.bit_length()
    while size := size // 2:
        for block in blocks:
            for start in range(len(block) - 1, -1, -size):
                part = block[max(0, start - size + 1) : start + 1]
                rest = "pass" if len(part) == len(block) else ""
                if part and not (rest and all(isinstance(one, ast.Pass) for one in part)):
                    yield head + without(lines, part, rest)
    for block in blocks:
        for one in block:
            if isinstance(one, (ast.If, ast.For, ast.While)):
                yield head + opened(lines, one)


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every block of statements, outer ones first."""
    for name in ("body", "orelse"):
        if block := getattr(node, name, None):
            yield block
            for one in block:
                yield from bodies(one)


def without(lines: list[str], part: list[ast.stmt], rest: str) -> str:
    """The text without some statements of a block; `rest` replaces them."""
    first, last = part[0].lineno - 1, part[-1].end_lineno
    filler = [" " * part[0].col_offset + rest + "\n"] if rest else []
    return "".join([*lines[:first], *filler, *lines[last:]])


def opened(lines: list[str], block: ast.If | ast.For | ast.While) -> str:
    """The text with a block replaced by its body; a loop's counter is 0."""
    shift = block.body[0].col_offset - block.col_offset
    first, last = block.body[0].lineno - 1, block.body[-1].end_lineno
    body = [line[shift:] for line in lines[first:last]]
    if isinstance(block, ast.For):
        body.insert(0, f"{' ' * block.col_offset}{ast.unparse(block.target)} = 0\n")
    return "".join([*lines[: block.lineno - 1], *body, *lines[block.end_lineno :]])


def without_helpers(kernel: Kernel, wanted: Outcome, try_out: Callable[[Kernel], Outcome]) -> Kernel:
    """The kernel with only the functions above it that it calls, if it still fails."""
    tree = ast.parse(kernel.source)
    lines = kernel.source.splitlines(keepends=True)
    used, kept = {"kernel"}, []
    for one in reversed(tree.body):
        names = {one.name} if isinstance(one, ast.FunctionDef) else assigned(one)
        if not names or names & used:
            used |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name)}
            decorators = getattr(one, "decorator_list", [])
            first = min([one.lineno, *(decorator.lineno for decorator in decorators)])
            kept.append("".join(lines[first - 1 : one.end_lineno]))
    source = "".join(f"{text}\n\n" if "def " in text else text for text in reversed(kept))
    candidate = replace(kernel, source=source.replace("jit\n@jit", "jit\n\n\n@jit").rstrip() + "\n")
    return candidate if alike(try_out(candidate), wanted) else kernel


def assigned(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def main() -> int:
    from tests.fuzz.failures import read_failure, write_failure

    for word in sys.argv[1:]:
        failure = read_failure(Path(word))
        in_child = partial(outcome_in_child, device=failure.device)
        found = in_child(failure.kernel)
        if found.kind not in (LOST, failure.outcome.kind):
            print(f"{word}: {found.kind} now")
            continue
        kills = found.kind == LOST or (failure.device == "gpu" and found.kind == CRASHED)
        in_here = in_child if kills else partial(tried, device=failure.device)
        kernel = reduced(failure.kernel, found, in_here, 600)
        write_failure(replace(failure, kernel=kernel, outcome=in_child(kernel)), Path(word))
        print(f"{word}: {len(kernel.source.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
