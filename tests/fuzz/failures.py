"""Kernels that failed, as files that pytest runs: source, arguments, the expected value, seed, commit and device."""

import importlib.util
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from typing import Any

from tests.fuzz import rules
from tests.fuzz.comparison import interpreted
from tests.fuzz.cpu import kind
from tests.fuzz.devices import Outcome
from tests.fuzz.kernels import Kernel

ROOT = Path(__file__).resolve().parents[2]
DTYPES = {dtype.code: dtype for dtype in vars(rules).values() if isinstance(dtype, rules.DType)}
MISMATCH = re.compile(r"(\w+): index (\d+): .*, interpreter (.*)")
PLAIN = {"static_assert", "program_id", "arange", "load", "store", "broadcast_to", "debug_barrier", "constexpr"}


@dataclass(frozen=True)
class Failure:
    """A kernel that failed on a device."""

    kernel: Kernel
    device: str
    outcome: Outcome
    generator: str = ""

    @property
    def name(self) -> str:
        return f"test_{re.sub(r'[^a-z0-9]', '_', self.device)}_{self.kernel.seed}.py"

    @property
    def fold(self) -> str:
        """The key by which failures of one cause are folded: the message, and after reduction the operations."""
        body = self.kernel.source[self.kernel.source.index("def kernel") :]
        names = set(re.findall(r"\b(?:tl|d\d+)\.(\w+)\(", body)) - PLAIN
        words = names if len(body.splitlines()) < 20 else set()
        return f"{self.outcome.kind}: {kind(self.outcome.why)} [{' '.join(sorted(words))}]"


TEMPLATE = '''"""{kind} on {device}, found by `make fuzz` ({generator}): {first_line}

Seed {seed}, commit {commit}. `python -m tests.fuzz.reduction` on this file makes the kernel smaller.
"""

from tests.fuzz.failures import check, kernel_of

DEVICE = "{device}"
OUTCOME = "{kind}"
GENERATOR = "{generator}"
EXPECTED = {expected}  # array, index, value by the interpreter
WHY = {why}
KERNEL = {facts}
SOURCE = r"""{source}"""


def test_failure() -> None:
    check(kernel_of(KERNEL, SOURCE), DEVICE, EXPECTED)
'''


def write_failure(failure: Failure, path: Path) -> None:
    kernel, outcome = failure.kernel, failure.outcome
    facts = {
        "seed": kernel.seed,
        "signature": kernel.signature,
        "divisible": kernel.divisible,
        "inputs": {name: dtype.code for name, dtype in kernel.inputs.items()},
        "capability": kernel.capability,
        "numbers": kernel.numbers,
        "grid": kernel.grid,
        "aliases": kernel.aliases,
    }
    mismatch = MISMATCH.match(outcome.first_line)
    path.write_text(
        TEMPLATE.format(
            kind=outcome.kind,
            device=failure.device,
            generator=failure.generator,
            first_line=outcome.first_line[:200].replace("\\", "/").replace('"""', "'''"),
            seed=kernel.seed,
            commit=commit(),
            expected=(mismatch[1], int(mismatch[2]), mismatch[3]) if mismatch else None,
            why=pformat(outcome.why[-4000:], width=115),
            facts=pformat(facts, width=115, sort_dicts=False),
            source=kernel.source,
        )
    )


def commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def kernel_of(facts: dict[str, Any], source: str) -> Kernel:
    inputs = {name: DTYPES[code] for name, code in facts["inputs"].items()}
    return Kernel(source=source, **{**facts, "inputs": inputs})


def read_failure(path: Path) -> Failure:
    """Read back what `write_failure` has written."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = kernel_of(module.KERNEL, module.SOURCE)
    return Failure(kernel, module.DEVICE, Outcome(module.OUTCOME, module.WHY), module.GENERATOR)


def check(kernel: Kernel, device: str, expected: tuple[str, int, str] | None) -> None:
    """Assert that the interpreter still says `expected`, and that the device agrees; in a process of its own."""
    from tests.fuzz.reduction import outcome_in_child

    if expected is not None:
        import tempfile

        name, index, value = expected
        with tempfile.TemporaryDirectory() as folder:
            assert str(interpreted(kernel, Path(folder))[name][index]) == value, (
                "the interpreter says something else now"
            )
    found = outcome_in_child(kernel, device)
    assert found.kind == "same", found.why
