"""The mutation run itself: which mistakes it plants, which tests it chooses, and that a planted mistake is noticed."""

import gzip
import json
import tomllib
from pathlib import Path

import pytest

from tests.mutants.__main__ import EQUIVALENT, equivalent_mutants
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.reached import Reached, TimedTest, stages
from tests.mutants.rooms import NO_RESULTS, ROOMS, files_of, in_turn, shares
from tests.mutants.trees import ROOT

SOURCE = '''
TABLE = {1: "a", 2: "b"}


def choose(first: int, second: int) -> int:
    """A docstring stays."""
    if first > second and second != 0:
        raise ValueError(f"{first + 1}")
    total = gcd(first, second)
    for item in (first, second):
        total += min(item, 3) << 1
    return total if not first else second
'''
EXPECTED = {
    ("comparison", "first > second", "first >= second"),
    ("and-or", "first > second and second != 0", "(first > second or second != 0)"),
    ("and-or", "first > second and second != 0", "first > second"),
    ("condition", "first > second and second != 0", "False"),
    ("gcd", "gcd(first, second)", "first"),
    ("name", "first", "second"),
    ("min-max", "min(item, 3)", "max(item, 3)"),
    ("operator", "min(item, 3) << 1", "(min(item, 3) >> 1)"),
    ("operand", "min(item, 3) << 1", "(min(item, 3))"),
    ("constant", "3", "4"),
    ("forgotten", "total += min(item, 3) << 1", "pass"),
    ("element", "(first, second)", "(first,)"),
    ("element", '{1: "a", 2: "b"}', "{1: 'a'}"),
    ("branches", "total if not first else second", "(second if not first else total)"),
    ("sign", "not first", "(first)"),
    ("return", "return total if not first else second", "return None"),
}


def test_mistakes_of_every_kind() -> None:
    mutants = mutants_of("a.py", SOURCE)
    found = {(mutant.kind, mutant.old, mutant.new) for mutant in mutants}
    assert found >= EXPECTED
    assert not any("first + 1" in mutant.old or "docstring" in mutant.old for mutant in mutants)
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        assert mutant.compiles(SOURCE) and mutant.apply(SOURCE) != SOURCE
        assert f"+{mutant.apply(SOURCE).splitlines()[mutant.line - 1]}" in mutant.diff(SOURCE)


def test_the_order_of_a_collection_is_no_mistake() -> None:
    source = "def f(x, y):\n    return x in (1, 2) or frozenset((3, 4)) or zip((5, 6), y, strict=True)\n"
    swapped = {mutant.new for mutant in mutants_of("a.py", source) if mutant.kind == "element"}
    assert swapped == {"(1,)", "(3,)", "(5,)", "(6, 5)"}
    assert not any(mutant.old == "True" for mutant in mutants_of("a.py", source))


def test_the_order_of_commutative_arguments_is_no_mistake() -> None:
    source = "def f(x, y):\n    return gcd(x, y) + two_sum(x, y) + max(x, y) + g(x, y)\n"
    assert [mutant.new for mutant in mutants_of("a.py", source) if mutant.kind == "arguments"] == ["g(y, x)"]


def test_files_that_decide_no_results_are_files_of_rooms() -> None:
    paths = {f"tilework/{path}/" for room in ROOMS.values() for path in room}
    assert all((ROOT / file).is_file() and file.startswith(tuple(paths)) for file in NO_RESULTS)


def test_an_id_survives_changes_elsewhere() -> None:
    moved = "import math\n\n\ndef other():\n    return min(1, 2)\n" + SOURCE
    assert {mutant.id for mutant in mutants_of("a.py", SOURCE)} <= {mutant.id for mutant in mutants_of("a.py", moved)}


def test_a_sample_takes_one_mutant_of_each_function_first() -> None:
    mutants = mutants_of("a.py", SOURCE + SOURCE.replace("choose", "again").replace("TABLE", "OTHER"))
    first = in_turn(mutants, seed=1)[:3]
    assert {mutant.function for mutant in first} == {"", "choose", "again"}
    assert in_turn(mutants, seed=1) == in_turn(mutants[::-1], seed=1) != in_turn(mutants, seed=2)
    share = shares(100, {"small": 100, "large": 10000})
    assert sum(share.values()) >= 100 and share["small"] >= 9


@pytest.mark.parametrize("room", ROOMS)
def test_the_rooms_exist(room: str) -> None:
    assert files_of(room, ROOT)


def test_tests_are_chosen_by_line_and_run_fastest_first(tmp_path: Path) -> None:
    entries = [
        {"test": "tests/a.py::slow", "seconds": 9.0, "passed": True, "starts": False,
         "hits": {"tilework/x.py": hex(1 << 5)}},
        {"test": "tests/a.py::fast[1]", "seconds": 0.1, "passed": True, "starts": False,
         "hits": {"tilework/x.py": hex(1 << 5)}},
        {"test": "tests/a.py::fast[2]", "seconds": 0.2, "passed": True, "starts": False,
         "hits": {"tilework/x.py": hex(3 << 4)}},
        {"test": "tests/b.py::other", "seconds": 0.1, "passed": True, "starts": True,
         "hits": {"tilework/x.py": hex(1 << 4)}},
        {"test": "tests/b.py::fails", "seconds": 0.1, "passed": False, "starts": False,
         "hits": {"tilework/x.py": hex(1 << 5)}},
    ]  # fmt: skip
    with gzip.open(tmp_path / "reach-1.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(entry) + "\n" for entry in entries))
    reached = Reached(tmp_path)

    def chosen(function: str, line: int, file: str = "tilework/x.py") -> list[str]:
        mutant = Mutant(file, function, "name", line, 0, "a", "b", 0)
        return [test.id for stage in stages(reached.tests(mutant), 60)[0] for test in stage]

    assert chosen("f", 5) == ["tests/a.py::fast[1]", "tests/a.py::slow", "tests/a.py::fast[2]"]
    assert chosen("f", 4) == ["tests/b.py::other", "tests/a.py::fast[2]"]
    assert len(chosen("f", 6)) == len(chosen("", 6)) == len(chosen("", 6, "tilework/y.py")) == 4
    assert chosen("f", 6, "tilework/z/y.py") == []
    assert chosen("f", 1, "tilework/runtime/kernel_cache/key.py") == ["tests/b.py::other"]


def test_what_takes_too_long_is_left_out() -> None:
    tests = [TimedTest(f"tests/a.py::f[{number}]", 1.0, False) for number in range(10)]
    runs, left_out = stages(tests, 4.5)
    assert [len(run) for run in runs] == [1, 3] and left_out == 6


def test_every_equivalent_mutant_exists_and_has_a_reason() -> None:
    assert all(reason.strip() for reason in equivalent_mutants().values())
    for entry in tomllib.loads(EQUIVALENT.read_text()).get("mutant", ()):
        ids = {mutant.id for mutant in mutants_of(entry["file"], (ROOT / entry["file"]).read_text(encoding="utf-8"))}
        assert entry["id"] in ids, f"the code of {entry['id']} has changed: remove it from {EQUIVALENT.name}"
