"""The one switch between versions of Triton, and its table."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget, compile, make_backend
from tilework.process.triton_version import DIFFERENCES, VERSIONS, Difference, follows, message, selected


def test_a_row_holds_from_its_version_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIFFERENCES, "planted", Difference("3.7.1", "old {x}", "new {x}"))
    seen = {}
    for version in VERSIONS:
        with knobs.language.scope() as language:
            language.triton_version = version
            seen[version] = (follows("planted"), message("planted", x=1))
    assert seen == {"3.6.0": (False, "old 1"), "3.7.1": (True, "new 1"), "3.8.0": (True, "new 1")}


def test_an_unknown_version_is_an_error() -> None:
    with knobs.language.scope() as language:
        language.triton_version = "2.0"
        with pytest.raises(ValueError, match=r"TILEWORK_TRITON_VERSION is 3\.6\.0, 3\.7\.1 or 3\.8\.0, not '2\.0'"):
            selected()


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWORK_TRITON_VERSION", raising=False)
    knobs.refresh_knobs()
    usual = selected()
    monkeypatch.setenv("TILEWORK_TRITON_VERSION", "")
    knobs.refresh_knobs()
    assert selected() == usual in VERSIONS


@tilework.jit
def reshaped(out):
    x = tl.arange(0, 2)
    tl.store(out + tl.arange(0, 2) + tl.sum(tl.unsqueeze(x, -1), 0), x)


def by_knob(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    knobs.language.triton_version = version


def by_environment(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("TILEWORK_TRITON_VERSION", version)
    knobs.refresh_knobs()


@pytest.mark.parametrize("select", [by_knob, by_environment])
@pytest.mark.usefixtures("fresh_cache")
def test_a_launch_follows_the_version(
    select: Callable[[pytest.MonkeyPatch, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels in memory are of the version that they were compiled for."""
    with knobs.language.scope():
        made: list[Any] = []
        for version in ("3.7.1", "3.8.0", "3.7.1"):
            select(monkeypatch, version)
            made.append([reshaped[(1,)](np.zeros(4, np.int32)) for _ in range(4)])
    assert all(kernel is kernels[0] for kernels in made for kernel in kernels)
    assert made[0][0] is made[2][0] and made[0][0].hash != made[1][0].hash
    assert made[0][0].asm["ttir"] != made[1][0].asm["ttir"]


def test_every_row_is_of_a_known_version() -> None:
    assert {row.since for row in DIFFERENCES.values()} <= set(VERSIONS)
    assert all(row.before != row.after for row in DIFFERENCES.values())


def test_the_default_of_schedule_hint() -> None:
    backend = make_backend(GPUTarget("hip", "gfx942", 64))
    with knobs.language.scope() as language:
        for version, wanted in (("3.7.1", "none"), ("3.8.0", "")):
            language.triton_version = version
            assert backend.parse_options({}).schedule_hint == wanted  # pyright: ignore[reportAttributeAccessIssue]
            source = ASTSource(reshaped, {"out": "*i32"})
            assert compile(source, GPUTarget("hip", "gfx942", 64)).metadata.schedule_hint == wanted
        hinted = backend.parse_options({"schedule_hint": "attention"})
        assert hinted.schedule_hint == "attention"  # pyright: ignore[reportAttributeAccessIssue]
