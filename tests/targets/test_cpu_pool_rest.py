"""Helpers without work: awake while launches follow each other, asleep soon after."""

from collections.abc import Callable, Iterator

import pytest

from tests.targets.pool_scripts import Scripts

Run = Callable[..., str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    scripts = Scripts(tmp_path_factory.mktemp("cache"))
    yield scripts.run
    scripts.server.stdin.close()
    assert scripts.server.wait(60) == 0
    scripts.server.stdout.close()


READY = """
import ctypes
def ready():
    return ctypes.c_int64.from_address(pool.POOL.words[4]).value
def until(condition):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return True
"""


def test_a_helper_is_awake_between_launches_and_asleep_after_them(run: Run) -> None:
    """It uses no more of the processor then; a forked child has none that is awake."""
    text = """
print(ready())
check()
print(until(lambda: (check_sums(), ready())[1] > 0))
child = os.fork()
if child == 0:
    os._exit(ready())
print(os.waitpid(child, 0)[1])
print(until(lambda: ready() == 0))
start = time.process_time()
time.sleep(0.1)
print(time.process_time() - start < 0.05)
"""
    assert run(READY + text) == "0\nTrue\n0\nTrue\nTrue\n"


@pytest.mark.parametrize("threads, helpers", [("1", 0), ("2", 1)])
def test_short_launches_that_follow_each_other_are_shared(run: Run, threads: str, helpers: int) -> None:
    """Of one alone nobody would wake a helper: it takes some ten microseconds."""
    text = """
x, y = np.ones(1 << 14, "f4"), np.zeros(1 << 14, "f4")
def launch():
    add[(64,)](x, y, 1 << 14, B=256)
    return pool.POOL.count
launch()
end = time.monotonic() + 1
while not launch() and time.monotonic() < end:
    pass
assert (y == 2).all()
print(launch())
"""
    assert run(READY + text, TILEWORK_NUM_THREADS=threads) == f"{helpers}\n"
