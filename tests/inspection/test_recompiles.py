"""Why a kernel is compiled again: which argument, option, variable, source or tool differs from the nearest
specialisation."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
from tests.inspection.kernels import add
from tilework import knobs
from tilework.inspect.explain.compiled import why_compiled, why_tuned
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.recording import recorder as recording
from tilework.runtime.recording.key_parts import KeyParts, compared, differences, parts_of, stored_parts
from tilework.runtime.recording.recorder import Recorder, value_text
from tilework.target import GPUTarget
from tilework.targets.base import find_backend

TARGET = GPUTarget("cuda", 90, 32)
F32 = np.zeros(64, np.float32)


def parts(*args: Any, **options: Any) -> KeyParts:
    """The parts of the key of a launch of `add`."""
    _, _, _, _, bind = add.device_caches[0]
    values, specs, _, given = bind(*args, **options)
    found = Specialization.of(add, values, specs, given)
    backend = find_backend(TARGET)
    made = parts_of(found.source(), TARGET, backend, backend.parse_options(given), {"TRITON_F32_DEFAULT": "ieee"})
    assert made is not None
    return replace(made, values=dict(zip(add.arg_names, map(value_text, values), strict=True)))


BASE = (F32, F32, F32, 1024, 2)


@pytest.mark.parametrize(
    ("args", "options", "expected"),
    [
        ((F32, F32, F32, 1000, 2), {}, ("divisibility by 16", "n", "`n` = 1000 is not a multiple of 16, and 1024 was")),
        ((F32, F32, F32, 1024, 1), {}, ("value 1", "stride", ("`stride` is 1, which the code takes as a constant; "
                                                              "before it was any i32 (2)"))),
        ((F32, F32, F32, 1024, None), {}, ("None", "stride", "`stride` is None, not any i32 (2)")),
        ((F32, F32, F32, 1 << 32, 2), {}, ("width", "n", "`n` = 4294967296 is an i64, not an i32")),
        ((F32, F32, F32, 1024, 2.5), {}, ("dtype", "stride", "`stride` = 2.5 is fp32, not i32")),
        ((F32.astype(np.float16), F32, F32, 1024, 2), {}, ("dtype", "x", "`x` points to fp16, not to fp32")),
        ((F32, F32[1:], F32, 1024, 2), {}, ("divisibility by 16", "y", ("the address of `y` is not a multiple of "
                                                                        "16 bytes, and before it was"))),
        (BASE, {"BLOCK": 64}, ("constant", "BLOCK", "the constant `BLOCK` is 64, not 32")),
        (BASE, {"num_warps": 8}, ("option", "num_warps", "the option num_warps is 8, not 4")),
    ],
)  # fmt: skip
def test_words_for_every_kind_of_argument(args: Any, options: Any, expected: Any) -> None:
    (found,) = differences(parts(*BASE, BLOCK=32), parts(*args, **{"BLOCK": 32, **options}))
    assert (found.part, found.name, found.message) == expected


@pytest.mark.parametrize(
    ("key", "text", "part", "words"),
    [
        ("source", "other", "source", "the text of the kernel has changed"),
        ("global SCALE", "constexpr[3.0]", "global", "the global SCALE is"),
        ("environment TRITON_F32_DEFAULT", "tf32", "environment", "the variable TRITON_F32_DEFAULT is ieee, not tf32"),
        ("package", "0.0.9", "package", "tilework is another version, or its own files have changed"),
        ("tools", "ptxas-12", "tools", "the tools that make the code are others"),
        ("target", "cuda:80", "target", "it is compiled for cuda:90, not for cuda:80"),
    ],
)
def test_words_for_everything_else(key: str, text: str, part: str, words: str) -> None:
    new = parts(*BASE, BLOCK=32)
    assert key in new.others
    (found,) = differences(replace(new, others={**new.others, key: text}), new)
    assert found.part == part and words in found.message


def test_the_nearest_earlier_specialisation_is_compared() -> None:
    earlier = [parts(*BASE, BLOCK=32), parts(*BASE, BLOCK=64, num_warps=8), parts(F32[1:], *BASE[1:], BLOCK=128)]
    found = compared(parts(*BASE, BLOCK=64, num_warps=4), earlier)
    assert found.nearest is earlier[1]  # as near as the first, and later
    assert found.message() == "the option num_warps is 4, not 8"
    assert compared(parts(*BASE, BLOCK=32, num_warps=2), earlier).nearest is earlier[0]
    assert compared(earlier[0], []).message() == f"there is no other specialisation of {earlier[0].kernel}"


def test_parts_can_be_stored() -> None:
    new = parts(*BASE, BLOCK=32)
    assert KeyParts.from_json(json.loads(json.dumps(new.to_json()))) == new


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    recording.start(made)
    yield made
    recording.stop(made)


def test_a_recompilation_is_reported_at_the_line_of_the_launch(recorder: Recorder, tmp_path: Path) -> None:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        kernel = tilework.jit(add.fn)
        x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
        for n in (16, 32, 33, 34):
            kernel[(1,)](x, x, out, n, 2, BLOCK=32)  # the launch
        section = why_compiled(recorder.records)
        first, again = sorted(section.findings, key=lambda finding: finding.facts["against"] or "")
        assert "2 compilations" in section.summary and "0 taken from the disk cache; 2 loads" in section.summary
        assert "nothing of it was in the disk cache" in first.text()
        assert "`n` = 33 is not a multiple of 16, and 16 was" in again.text()
        assert again.span is not None and again.span.file == __file__ and "# the launch" in again.span.text
        assert again.text().splitlines()[2].strip(" |") == "^" * len("kernel[(1,)](x, x, out, n, 2, BLOCK=32)")
        # what is stored with the products says the same as what was compared
        stored = [json.loads(path.read_text()) for path in tmp_path.glob("*/add.json")]
        reported = [KeyParts.from_json(record["parts"]) for record in recorder.records if record["event"] == "compiled"]
        same = [stored_parts(data["key_parts"], data) for data in stored]
        assert sorted(str(one.others) for one in same) == sorted(str(one.others) for one in reported)
        # another process finds both on disk, and neither fits
        found = recording.on_disk("add", parts(*BASE, BLOCK=32), "")
        assert len(found) == 2


def test_hundreds_of_specialisations_are_few_findings() -> None:
    base = parts(*BASE, BLOCK=16)
    rows, earlier = [], [base]
    for number in range(1000, 1100):
        block = replace(base.arguments["BLOCK"], constant=str(number))
        new = replace(base, arguments={**base.arguments, "BLOCK": block})
        found = compared(new, earlier)
        earlier.append(new)
        assert found.nearest is not None
        reported = [difference.to_json() for difference in found.differences]
        rows.append(
            {
                "event": "compiled",
                "kernel": base.kernel,
                "hit": False,
                "seconds": 0.1,
                "process": 1,
                "key": str(number),
                "against": "process",
                "nearest": found.nearest.to_json(),
                "differences": reported,
            }
        )
    (finding,) = why_compiled(rows).findings
    assert (
        "100 times for this reason, 10.00 s in all: BLOCK was 1000, 1001, 1002, 1003, 1004, 1005 and 94 more"
        in finding.text()
    )


def test_why_configurations_lost(recorder: Recorder) -> None:
    configs = [tilework.Config({"BLOCK": block}) for block in (16, 32, 64, 128)]
    times = {16: 2.0, 32: 1.0, 64: 5.0}

    def early(configs: Any, named: Any, **kwargs: Any) -> Any:
        return [config for config in configs if config.kwargs["BLOCK"] < 128]

    tuner = tilework.autotune(configs, key=["n"], prune_configs_by={"early_config_prune": early})(tilework.jit(add.fn))

    def bench(*args: Any, config: Any, **meta: Any) -> Any:
        block = config.kwargs["BLOCK"]
        if block == 64:
            return tuner.failed(config, tilework.OutOfResources(300000, 232448, "shared memory"))
        return [times[block]] * 3

    tuner._bench = bench
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for n in (16, 48):
        tuner[(1,)](x, x, out, n, 2)
    again, first = why_tuned(recorder.records).findings[::-1], why_tuned(recorder.records).findings
    text = "\n".join(finding.text() for finding in first)
    assert "best: BLOCK: 32, num_warps: 4, num_ctas: 1, num_stages: 3: 1 ms" in text
    assert "slower: BLOCK: 16, num_warps: 4, num_ctas: 1, num_stages: 3: 2 ms, 2.00 times the best" in text
    assert "Required: 300000, Hardware limit: 232448" in text and "need less shared memory" in text
    assert "pruned: BLOCK: 128, num_warps: 4, num_ctas: 1, num_stages: 3: early_config_prune leaves it out" in text
    assert any("add was tuned again: `n`, which is in `key=`, is 48, not 16" in finding.title for finding in again)


def test_every_entry_of_a_tuning_key_has_a_name() -> None:
    tuner = tilework.autotune([tilework.Config({"BLOCK": 16})], key=["stride", "n"])(tilework.jit(add.fn))
    given = dict(zip(add.arg_names, BASE, strict=False))
    key = tuner.tuning_key(given, {})
    names = list(tuner.key_parts(key, given))
    assert names[:5] == ["tuning stride", "tuning n", "dtype x", "dtype y", "dtype out"]
    assert len(key) in (5, 6) and len(names) == len(key)
