"""Kernels written for Triton 3.6 give the same bits under each version of Triton that tilework follows.

The kernels are the rows of ops and accesses on tiles, the examples, and the examples of the reference. What a later
version refuses is in `REFUSED`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from docsite.public_names import Entry, entries, run_example
from tests.differential.devices import HOSTS, Refused
from tests.differential.harness import agree, compare, launch
from tests.differential.test_differential_sizes import CELLS, shapes_for
from tests.differential.tile_accesses import ACCESSES, arrays
from tests.differential.tile_ops import ROWS, Shape, inputs
from tests.pipeline.compiled import CASES
from tilework import knobs
from tilework.errors import CompilationError
from tilework.process.triton_version import VERSIONS

OTHERS = [version for version in VERSIONS if version != knobs.TRITON_VERSION]
EXAMPLES = {entry.name: entry for entry in entries() if entry.family.part == "language" and entry.example}
WHOLE = [name for name, case in CASES.items() if not case.memory(case.arguments(np.random.default_rng(1)))]
REFUSED = dict.fromkeys(
    [("3.8.0", name) for name in ("tl.make_block_ptr", "tl.advance", "block pointers", "matmul_block_pointers")],
    r"Triton 3\.8 has no tl\.make_block_ptr",
)


def in_all_versions(name: str, run: Callable[[], Mapping[Any, Any]]) -> None:
    """Compare the bits of the arrays that `run` returns."""
    wanted: Mapping[Any, Any] = {}
    for version in VERSIONS:
        knobs.language.triton_version = version
        if (version, name) in REFUSED:
            with pytest.raises(Refused, match=REFUSED[version, name]):
                run()
            continue
        found = run()
        wanted = wanted or found
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            if isinstance(value, np.ndarray):
                compare(value, found[key], f"{key}: Triton {VERSIONS[0]} and {version}")


@pytest.mark.parametrize(("name", "shape"), CELLS)
def test_ops(name: str, shape: Shape) -> None:
    row = ROWS[name]
    blocks, params = inputs(row, shape, sum(shape)), row.params(shape)
    run = lambda: agree(row.fn, *blocks, params=params, rtol=row.rtol, atol=row.rtol, devices=HOSTS)
    in_all_versions(name, lambda: dict(enumerate(run())))


@pytest.mark.parametrize("name", ACCESSES)
def test_accesses(name: str) -> None:
    args, constants = arrays(ACCESSES[name], *shapes_for(name)[0])
    in_all_versions(name, lambda: launch(ACCESSES[name].kernel, args, constants, devices=HOSTS))


@pytest.mark.parametrize("name", WHOLE)
def test_examples(name: str) -> None:
    case = CASES[name]
    args, room = case.arguments(np.random.default_rng(1)), case.atol
    run = lambda: launch(case.kernel, args, case.constexprs, case.grid, atol=room, rtol=room, devices=HOSTS)
    in_all_versions(name, run)


@pytest.mark.filterwarnings("ignore:view is deprecated")
@pytest.mark.parametrize("version", OTHERS)
@pytest.mark.parametrize("entry", EXAMPLES.values(), ids=EXAMPLES)
def test_examples_of_the_reference(entry: Entry, version: str) -> None:
    """They assert what they compute; `tests/test_reference.py` runs them under the default version."""
    knobs.language.triton_version = version
    if (version, entry.name) in REFUSED:
        with pytest.raises(CompilationError, match=REFUSED[version, entry.name]):
            run_example(entry)
    else:
        run_example(entry)
