"""Launches that need different code have different keys, in bundles, on disk and in memory."""

import dataclasses
import enum
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.errors import BundleError
from tilework.runtime.bundle import serving
from tilework.runtime.bundle.bundle_file import Contents, write_bundle
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host.own_code import layout_key
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording.manifest import choice
from tilework.runtime.recording.specialization_record import SpecializationRecord
from tilework.targets.cpu import machines


class Point(NamedTuple):
    x: int
    y: int


class Transposed(NamedTuple):
    y: int
    x: int


@tilework.jit
def first(out, point):
    tl.store(out, point.x)


@tilework.jit
def length(out, items):
    tl.store(out, len(items))


@tilework.jit
def halved(out, items):
    tl.store(out, items[0] / 2)


@tilework.jit
def size_of(out, config: tl.constexpr):
    tl.store(out, config.size())  # pyright: ignore[reportAttributeAccessIssue]


def with_default(number: int) -> Any:
    @tilework.jit
    def helper(x, factor: tl.constexpr = number):  # pyright: ignore[reportArgumentType]
        return x * factor

    @tilework.jit
    def kernel(out):
        tl.store(out, helper(5))

    return kernel


def with_table(number: int) -> Any:
    table = {"a": [number]}

    @tilework.constexpr_function
    def looked_up(name):
        return table[name][0]

    @tilework.jit
    def kernel(out):
        tl.store(out, looked_up("a"))

    return kernel


def config(number: int) -> Any:
    @dataclasses.dataclass(frozen=True)
    class Config:
        rows: int

        def size(self) -> int:
            return self.rows * number

    return Config(2)


def mode(number: int) -> Any:
    class Mode(enum.Enum):
        FAST = 1

        def size(self) -> int:
            return number

    return Mode.FAST


PAIRS: dict[str, tuple[Callable[[int], tuple[Any, tuple[Any, ...]]], tuple[float, float]]] = {
    "named tuples of two classes": (lambda n: (first, (Point(5, 7) if n == 2 else Transposed(5, 7),)), (5, 7)),
    "empty tuples": (lambda n: (length, ((((),) * n),)), (2, 3)),
    "an empty tuple and one in a tuple": (lambda n: (length, (((),) if n == 2 else ((), ())[:0],)), (1, 0)),
    "default arguments of a function that is called": (lambda n: (with_default(n), ()), (10, 15)),
    "a dictionary of a constexpr function": (lambda n: (with_table(n), ()), (2, 3)),
    "methods of a constant": (lambda n: (size_of, (config(n),)), (4, 6)),
    "methods of an enum": (lambda n: (size_of, (mode(n),)), (2, 3)),
}


def key_of(kernel: Any, *args: Any, **given: Any) -> str:
    _, _, _, backend, bind = kernel.device_caches[driver.cache_key(driver.active)]
    values, specs, _, options = bind(*args, **given)
    return SpecializationRecord(
        Specialization.of(kernel, values, specs, kernel.full_options(options, backend)), backend
    ).key


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_has_keys_and_code_of_its_own(name: str) -> None:
    make, expected = PAIRS[name]
    keys, results = [], []
    for number in (2, 3):
        kernel, args = make(number)
        out = np.zeros(1, np.float32)
        keys.append(key_of(kernel, out, *args))
        kernel[(1,)](out, *args)
        results.append(float(out[0]))
    assert keys[0] != keys[1] and tuple(results) == expected


def test_settings_that_change_code_change_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    out = np.zeros(1, np.float32)
    keys = [key_of(first, out, Point(1, 2))]
    settings = {"PTXAS_OPTIONS": "--fmad=false", "TRITON_DEFAULT_FP_FUSION": "0", "TRITON_F32_DEFAULT": "tf32"}
    for name, value in settings.items():
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            keys.append(key_of(first, out, Point(1, 2)))
    for name, value in {"reproducible": True, "sanitize": True, "debug": True}.items():
        with knobs.runtime.scope():
            setattr(knobs.runtime, name, value)
            keys.append(key_of(first, out, Point(1, 2)))
    assert len(set(keys)) == 7


@pytest.mark.parametrize("option", ["ir_override", "extern_libs"])
def test_a_file_that_an_option_names_counts_by_its_content(option: str, tmp_path: Path) -> None:
    def key(folder: str, content: str) -> str:
        file = tmp_path / folder / "changed.ttir"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)
        path = str(file)
        return key_of(first, out, Point(1, 2), **{option: {"mine": path} if option == "extern_libs" else path})

    out = np.zeros(1, np.float32)
    one, other, moved = key("here", "one"), key("here", "two"), key("there", "one")
    assert one != other and one == moved


def test_equal_constants_of_other_classes_in_a_tuple() -> None:
    out = np.zeros(1, np.float32)
    keys = {key_of(halved, out, (tl.constexpr(value),)) for value in (1, True, 1.0)}
    specs = {
        halved.device_caches[driver.cache_key(driver.active)][4](out, (tl.constexpr(value),))[1]
        for value in (1, True, 1.0)
    }
    assert len(keys) == len(specs) == 3


def test_a_choice_for_ordinary_launches_is_none_for_reproducible_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reproducible launch may choose only among configurations that give the same bits."""
    configs = [
        tilework.Config({"BLOCK": 32}),
        tilework.Config({"BLOCK": 64}),
        tilework.Config({"BLOCK": 32}, num_warps=8),
    ]

    @tilework.autotune(configs, key=["n"])
    @tilework.jit
    def fill(out, n, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), n)

    given = {"out": np.zeros(64, np.float32), "n": 3}
    monkeypatch.setattr("tilework.runtime.recording.manifest.name_of", lambda fn: fn.__qualname__)

    def rows(config: Any, **options: Any) -> list[dict[str, Any]]:
        return [choice(fill, fill.fn, config, given, options)]

    served: Any = type("Served", (), {"path": "x", "kernels": [], "tunings": [], "trees": []})()
    monkeypatch.setattr(serving, "BUNDLES", [served])
    served.tunings = rows(configs[1]) + rows(configs[2], reproducible=True)
    assert serving.choice_for(fill, given, {}) is configs[1]
    assert serving.choice_for(fill, given, {"reproducible": True}) is configs[2]
    served.tunings = rows(configs[1], reproducible=True)  # the first configuration was another one then
    assert serving.choice_for(fill, given, {"reproducible": True}) is None


def test_code_with_instructions_for_dots_is_not_for_who_forbids_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "had_instructions", lambda: frozenset({"avx2", "avx512_vnni", "i8mm", "asimd"}))
    assert "avx512_vnni" in serving.instructions()
    with knobs.runtime.scope():
        knobs.runtime.cpu_dots = False
        assert serving.instructions() == {"avx2", "asimd"}


def test_code_for_this_machine_uses_what_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new processor has instructions that LLVM uses and Linux does not show."""
    monkeypatch.setattr(machines, "host_features", lambda: ("new", "+avx2,+avxneconvert,-xop,+brandnew"))
    monkeypatch.setattr(machines.HostTarget, "detect", lambda: machines.HostTarget.of("x86_64", "new", {"avx2"}))
    assert machines.shown_features() == "+avx2,-avxneconvert,-xop,-brandnew"
    linux = {
        "bmi": "bmi1",
        "lzcnt": "abm",
        "pclmul": "pclmulqdq",
        "rdrnd": "rdrand",
        "sahf": "lahf_lm",
        "sha": "sha_ni",
    }
    linux |= {"sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "avxvnni": "avx_vnni"}
    unlike = ("bf16", "bitalg", "fp16", "vbmi2", "vnni", "vpopcntdq")
    linux |= {f"avx512{name}": f"avx512_{name}" for name in unlike}
    known = {*serving.V4, *serving.MORE}
    assert {linux.get(name, name) for name in machines.SHOWN} == known


def test_who_changes_stages_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilework.runtime.bundle.serving.kernel_for", lambda *_: pytest.fail("it was served"))
    monkeypatch.setattr("tilework.runtime.launch.python.jit.BUNDLES", [object()])
    out = np.zeros(1, np.float32)
    with knobs.runtime.scope():
        knobs.runtime.add_stages_inspection_hook = lambda *_: ("key", "hash")
        first[(1,)](out, Point(9, 1))
    assert out[0] == 9


def test_a_bundle_of_another_build_is_refused(tmp_path: Path) -> None:
    """Two builds of one version differ: a checkout changes every day."""
    for layout in ("", layout_key(), None):
        write_bundle(tmp_path / "own", Contents([], [], [], {}, {"layout": layout}))
        tilework.load(tmp_path / "own").close()
    write_bundle(tmp_path / "other", Contents([], [], [], {}, {"layout": "0123"}))
    with pytest.raises(BundleError, match="another build of tilework"):
        tilework.load(tmp_path / "other")
    assert layout_key()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (pipe, tmp_path / "loop", tmp_path, "/dev/null", "/dev/zero"):
        with pytest.raises(BundleError):
            tilework.load(path)
    write_bundle(tmp_path / "real", Contents([], [], []))
    (tmp_path / "link").symlink_to("real")
    with tilework.load(tmp_path / "link") as bundle:
        assert bundle.kernels == []
    (tmp_path / "huge").write_bytes(b"")
    header = bytearray((tmp_path / "real").read_bytes()[:96])
    header[16:24] = (1 << 40).to_bytes(8, "little")
    header[24:32] = ((1 << 40) + 96).to_bytes(8, "little")
    with open(tmp_path / "huge", "wb") as file:  # full of holes: no reason to ask for so much memory
        file.write(header)
        file.truncate((1 << 40) + 96)
    with pytest.raises(BundleError, match="nothing sensible"):
        tilework.load(tmp_path / "huge")
