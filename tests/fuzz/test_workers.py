"""Work in processes that die, hang or go well."""

import os
import time

from tests.fuzz.workers import Last, Lost, results


def fragile(item: int) -> int:
    if item == 1:
        os._exit(7)
    if item == 2:
        time.sleep(60)
    return item * item


def test_a_process_that_dies_or_hangs_costs_one_result() -> None:
    found = dict(results(fragile, range(6), jobs=2, limit=2))
    lost = {1: Lost("the process died with exit code 7"), 2: Lost("no result within 2 s")}
    assert found == {0: 0, **lost, 3: 9, 4: 16, 5: 25}


def test_all_is_over_at_the_end() -> None:
    assert list(results(fragile, [2], jobs=1, end=time.monotonic() + 0.1)) == []


def test_items_are_requested_when_there_is_time_for_them() -> None:
    found: list[int] = []
    for item, _ in results(fragile, (item for item in range(3, 100) if len(found) < 2), jobs=1):
        found.append(item)
    assert found == [3, 4]


def dying(item: int) -> Last[int] | int:
    return Last(os.getpid()) if item == 1 else os.getpid()


def test_a_last_result_ends_its_process() -> None:
    found = dict(results(dying, range(4), jobs=1))
    assert found[0] == found[1] != found[2] == found[3]
