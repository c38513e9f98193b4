"""Results shared by all workers of a test run: the site, a warm cache."""

from pathlib import Path

import pytest


def shared_by_workers(factory: pytest.TempPathFactory) -> Path:
    """The folder of this run, in which each worker has one of its own."""
    base = factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base
