"""Counters: what is counted, and the text for Prometheus."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.forked_script import run_forked
from tilework import knobs, metrics

SAMPLE = re.compile(
    r'[a-z_]+\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\} \d+(\.\d+)?(e-\d+)?'
)


@tilework.jit
def kernel(out, n):  # pyright: ignore[reportMissingParameterType]
    tl.store(out, n)


@pytest.mark.usefixtures("fresh_cache")
def test_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics.reset()
    seen: list[tuple[str, str]] = []
    stop = metrics.subscribe(lambda name, amount, labels: seen.append((name, labels.get("cache", ""))))
    out = np.zeros(16, np.int32)
    for _ in range(3):
        kernel[(1,)](out, 5)  # compiled and loaded once
    monkeypatch.setattr(kernel, "debug", False)
    kernel[(1,)](out, 5)  # another way to say the same
    kernel.device_caches.clear()
    kernel[(1,)](out, 5)
    stop()
    kernel[(1,)](out, 16)
    name = kernel._fn_name
    assert seen == [
        ("compiles", ""), ("compile_seconds", ""), ("loads", ""), ("load_seconds", ""),
        ("cache_hits", "memory"), ("cache_hits", "disk"), ("loads", ""), ("load_seconds", ""),
    ]  # fmt: skip
    assert metrics.total("compiles") == 2 == metrics.snapshot()["compiles"][f'kernel="{name}",target="cpu"']
    assert metrics.total("cache_hits", cache="disk", kernel=name) == 1 == metrics.total("cache_hits", cache="memory")
    assert metrics.total("compile_seconds") > 0 < metrics.total("load_seconds")


def test_the_text_is_what_prometheus_reads() -> None:
    metrics.reset()
    metrics.count("compiles", kernel='a"b\\c\nd', target="cpu")
    metrics.count("compile_seconds", 1.5e-7, kernel="é", target="cpu")
    text = metrics.prometheus()
    assert text.endswith("\n") and r'tilework_compiles_total{kernel="a\"b\\c\nd",target="cpu"} 1' in text.splitlines()
    for line in text.splitlines():
        assert line.startswith(("# HELP tilework_", "# TYPE tilework_")) or SAMPLE.fullmatch(line), line
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(set(names)) == len(names) == len(metrics.HELP) and all(name.endswith("_total") for name in names)
    metrics.reset()


def test_a_forked_process_counts_from_zero(tmp_path: Path) -> None:
    metrics.count("tunings", kernel="parent")
    (script := tmp_path / "child.py").write_text("import tilework\nprint(tilework.metrics.total('tunings'))")
    assert run_forked(script, {})[:2] == (0, "0\n")
    assert metrics.total("tunings", kernel="parent") == 1
    metrics.reset()


def test_a_refusal_is_counted(fresh_cache: None) -> None:
    metrics.reset()
    knobs.runtime.no_jit = True
    with pytest.raises(tilework.errors.NotRecorded):
        kernel[(1,)](np.zeros(16, np.int32), 5)
    assert metrics.total("refusals") == 1


def test_a_refusal_passes_over_what_another_version_left(fresh_cache: None) -> None:
    out = np.zeros(16, np.int32)
    compiled = kernel[(1,)](out, 6)
    (left,) = (path for path in map(Path, compiled.metadata_group.values()) if path.name == "kernel.json")
    data = json.loads(left.read_text())
    del data["key_parts"]["others"]["source"]
    left.write_text(json.dumps(data))
    knobs.runtime.no_jit = True
    with pytest.raises(tilework.errors.NotRecorded, match="is not in the cache"):
        kernel[(1,)](out.astype(np.int64), 6)
