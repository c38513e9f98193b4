"""Fixtures of several files of this folder."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.python_programs import run_python
from tests.runtime.cuda_fixture import cuda as cuda
from tests.runtime.forked_script import run_forked
from tilework import JITFunction, knobs
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING
from tilework.runtime.kernel_cache.remote import guard, shared_cache


@contextmanager
def fresh_shared_cache() -> Iterator[None]:
    """Reset the shared cache as in a new process: no server is down, no warning was given, nothing is queued."""
    guard.forget()
    shared_cache._warned.clear()
    shared_cache._keys.clear()
    yield
    guard.flush_all(5)
    guard.forget()


ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def fresh_cache(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a test its own cache and knobs, and leave no kernel or hook to the next test."""
    for key in CACHE_INVALIDATING:
        monkeypatch.delenv(key, raising=False)
    with ExitStack() as stack:
        for group in (knobs.cache, knobs.redis, knobs.runtime, knobs.compilation, knobs.language):
            stack.enter_context(group.scope())
        stack.enter_context(fresh_shared_cache())
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in vars(request.module).values():
        if isinstance(kernel, JITFunction):
            kernel.device_caches.clear()
            kernel.pre_run_hooks.clear()


@pytest.fixture
def hits(fresh_cache: None) -> list[bool]:
    """Return a list with an item for each compilation: True if it was found in the cache."""
    seen: list[bool] = []
    knobs.compilation.listener = lambda **event: seen.append(event["cache_hit"])
    return seen


@pytest.fixture(scope="module")
def triton_program(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path):
    """Return a function that runs a program with `import triton` and returns what it printed."""
    script = tmp_path_factory.mktemp("names") / "program.py"

    def runner(text: str, **environment: str) -> str:
        script.write_text(text)
        settings = {"TRITON_CACHE_DIR": str(warm_cache), "TRITON_INTERPRET": "0", **environment}
        code, printed, error = run_forked(script, settings, says_triton=True)
        assert code == 0, error
        return printed

    return runner


@pytest.fixture(scope="module")
def triton_program_alone(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path):
    """Return `triton_program` for a new process, which has not imported tilework before."""
    folder = tmp_path_factory.mktemp("names")

    def runner(script: str, **environment: str) -> str:
        (folder / "program.py").write_text(script)
        settings = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRITON_CACHE_DIR": str(warm_cache),
            "TRITON_INTERPRET": "0",
        }
        done = run_python("-m", "tilework.as_triton", "program.py", cwd=folder, env=settings | environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return runner
