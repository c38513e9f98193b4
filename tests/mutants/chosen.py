"""A pytest plugin: run the tests that the file MUTANTS_CHOSEN lists, in its order, and write the first that fails to
MUTANTS_FAILED."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = {test: number for number, test in enumerate(Path(os.environ["MUTANTS_CHOSEN"]).read_text().splitlines())}
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        Path(os.environ["MUTANTS_FAILED"]).write_text(report.nodeid)
