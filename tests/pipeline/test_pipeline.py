"""The stage `ttir`, for every example and target: well formed after each pass, repeatable, and readable again."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from tests.pipeline.compiled import (
    CASES,
    TARGETS,
    first_difference,
    frontend_module,
    location_difference,
    optimise,
    optimised,
    passes,
)
from tests.pipeline.stages import StageError, check_stage
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.transforms.passes import Pass
from tilework.transforms.registry import run_pipeline

every_case = pytest.mark.parametrize("name", CASES)
every_target = pytest.mark.parametrize("target", TARGETS)
ROOT = Path(__file__).parent.parent.parent


@every_case
@every_target
def test_every_pass_leaves_a_module_of_the_stage(name: str, target: str) -> None:
    """And before any, the module is read again from its text; behind all of them the text is that of another run."""
    module = frontend_module(CASES[name], target)
    verify(module)
    check_stage(module, "ttir")
    assert_read_again(module)

    def check(stage: Pass, module: ModuleOp) -> None:
        try:
            verify(module)
            check_stage(module, "ttir")
        except (VerifyException, StageError) as error:
            raise AssertionError(f"after {stage.name}: {error}") from error

    run_pipeline(module, passes(target), after=check)
    assert print_module(module, debuginfo=True) == print_module(optimised(name, target), debuginfo=True)


@every_case
@every_target
def test_the_text_is_read_as_the_same_module(name: str, target: str) -> None:
    assert_read_again(optimised(name, target))


def assert_read_again(module: ModuleOp) -> None:
    plain, located = (parse_module(print_module(module, debuginfo=debuginfo)) for debuginfo in (False, True))
    assert first_difference(module, plain) is None
    assert first_difference(module, located) is None
    assert location_difference(module, located) is None


@every_case
def test_a_second_run_of_the_pipeline_finds_little_to_do(name: str) -> None:
    """The pipeline is not asked to be a fixed point, but what it leaves must survive it."""
    module = optimise(optimised(name, "cuda:90").clone(), "cuda:90")
    verify(module)
    assert sum(1 for _ in module.walk()) <= sum(1 for _ in optimised(name, "cuda:90").walk())


def digest() -> str:
    """One hash over the text of all examples for all targets."""
    texts = [print_module(optimised(name, target), debuginfo=True) for name in CASES for target in TARGETS]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def test_the_text_does_not_depend_on_hash_seeds() -> None:
    code = "from tests.pipeline.test_pipeline import digest; print(digest())"
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    command, environment = [sys.executable, "-W", "ignore", "-c", code], {**os.environ, "PYTHONHASHSEED": other}
    assert subprocess.check_output(command, cwd=ROOT, env=environment, text=True).strip() == digest()
