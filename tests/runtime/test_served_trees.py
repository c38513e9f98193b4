"""Decision trees in bundles: sizes that were not recorded get the configuration of those that are like them."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.bundles import bundle_of, stop_recording
from tests.runtime.forked_script import run_forked
from tests.runtime.without_compiler import run_without_compiler
from tilework import knobs
from tilework.aot.precompile import precompile
from tilework.errors import BundleError, NotRecorded
from tilework.process.events import BUNDLES
from tilework.runtime.bundle import missing
from tilework.runtime.bundle.bundle_file import BundleFile, Contents, Entry, write_bundle
from tilework.runtime.bundle.serving import TREES, Bundle, parse_target
from tilework.runtime.recording.manifest import read_manifest
from tilework.runtime.tuning.autotuner import Autotuner, jit_function
from tilework.tools.cli import main

CONFIGS = [tilework.Config({"BLOCK": block}) for block in (32, 64, 128)]
MEASURED: list[tuple[int, int]] = []  # the size and BLOCK of each measurement


def remember(args: dict[str, Any], reset_only: bool = False) -> None:
    if not reset_only:
        MEASURED.append((args["n"], args["BLOCK"]))


def bench(call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
    """Return times for which small sizes are fastest with BLOCK=32, large ones with 128."""
    call()
    n, block = MEASURED[-1]
    return [1.0 if block == best_block(n) else 2.0] * 3


def best_block(n: int) -> int:
    return 32 if n < 500 else 128


def choose(n: int) -> tilework.Config:
    return tilework.Config({"BLOCK": best_block(n)})


def dividing(configs: list[tilework.Config], named: dict[str, Any], **_: Any) -> list[tilework.Config]:
    return [config for config in configs if named["n"] % config.kwargs["BLOCK"] == 0]


@tilework.autotune(CONFIGS, key=["n"], pre_hook=remember, do_bench=bench)
@tilework.jit
def fill(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@tilework.autotune(CONFIGS, key=["n"], choose=choose)
@tilework.jit
def fill_chosen(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@tilework.autotune(CONFIGS, key=["n"], pre_hook=remember, do_bench=bench)
@tilework.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@tilework.jit
def fill_evenly(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out + i, i)
    else:
        tl.store(out + i, i, mask=i < n)


def even_or_error(args: dict[str, Any]) -> bool:
    if args["BLOCK"] == 64:
        raise ZeroDivisionError("64 is too odd")
    return args["n"] % args["BLOCK"] == 0


@tilework.autotune(CONFIGS, key=["n"], choose=choose)
@tilework.heuristics({"EVEN": even_or_error})
@tilework.jit
def fill_picky(out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@tilework.autotune(
    CONFIGS, key=["n"], pre_hook=remember, do_bench=bench, prune_configs_by={"early_config_prune": dividing}
)
@tilework.jit
def fill_unmasked(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i)


KERNELS: list[Autotuner] = [fill, fill_chosen, fill_evenly, fill_picky, fill_unmasked]


def launch(kernel: Autotuner, n: int) -> int:
    """Launch with a size; return the BLOCK that was used."""
    out = np.zeros(n, np.int32)
    kernel[lambda meta: (tilework.cdiv(n, meta["BLOCK"]),)](out, n)
    assert (out == np.arange(n)).all() and kernel.best_config is not None
    block = kernel.best_config.kwargs["BLOCK"]
    assert isinstance(block, int)
    return block


def forget() -> None:
    for kernel in KERNELS:
        function: Any = jit_function(kernel)
        function.device_caches.clear()
        kernel.cache.clear()
        kernel.tunings.clear()
        for one in (function, kernel):
            vars(one).pop("_bind_grid", None)
    stop_recording()


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with knobs.runtime.scope(), knobs.cache.scope(), knobs.autotuning.scope():
        forget()
        MEASURED.clear()
        yield
    BUNDLES.clear()
    missing.SAID.clear()
    forget()


def recorded(folder: Path, kernel: Autotuner, *sizes: int) -> Path:
    """Record launches, then forget them in this process."""
    with knobs.runtime.scope():
        knobs.runtime.record = str(folder / "app.jsonl")
        for n in sizes:
            launch(kernel, n)
    forget()
    MEASURED.clear()
    return folder / "app.jsonl"


@pytest.fixture
def served(tmp_path: Path) -> Callable[..., Bundle]:
    """Return a function that records a kernel and then serves it from the bundle, without cache and compiler."""

    def serve(kernel: Autotuner, *sizes: int) -> Bundle:
        file = bundle_of(recorded(tmp_path, kernel, *sizes))
        knobs.runtime.no_jit = True
        knobs.cache.dir = str(tmp_path / "cache")
        return tilework.load(file)

    return serve


Served = Callable[..., Bundle]


def test_other_sizes_get_the_answer_of_the_tree(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A multiple of 16 was recorded with one configuration, another number with another one."""
    bundle = served(fill, 64, 1001)
    sizes = (64, 1001, 80, 4096, 33, 4001)
    assert [launch(fill, n) for n in sizes * 2] == [best_block(n) for n in sizes * 2]
    assert not MEASURED and not (tmp_path / "cache").exists()
    with pytest.raises(NotRecorded, match="`n` is 1, which the code takes as a constant"):
        launch(fill, 1)
    assert len(list(bundle.file.entries())) == 4, "no leaf of the tree has BLOCK=64"
    assert main(["bundle", bundle.path]) == 0
    printed = capsys.readouterr().out
    assert "  tree fill(n) of int32" in printed and ":\n    n <= 253:\n      BLOCK=32, " in printed
    assert "    n > 253:\n      BLOCK=128, " in printed


def test_what_is_listed_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = recorded(tmp_path, fill, 64, 1001)
    assert main(["precompile", str(manifest), "--list"]) == 0
    assert "4 specialisations" in capsys.readouterr().out


def test_measuring_is_asked_for(served: Served) -> None:
    served(fill, 64, 1001)
    knobs.runtime.no_jit = False
    launch(fill, 80)
    assert not MEASURED
    knobs.autotuning.save = True
    launch(fill, 96)
    assert len(MEASURED) == len(CONFIGS)


def test_times_on_disk_are_recorded_too(tmp_path: Path) -> None:
    """Times on disk are recorded also if the launch is the first of a process and compiles nothing."""
    knobs.autotuning.cache = True
    knobs.cache.dir = str(tmp_path / "kept")
    launch(fill, 64)
    launch(fill, 1001)
    forget()
    MEASURED.clear()
    with knobs.runtime.scope():
        knobs.runtime.record = str(tmp_path / "app.jsonl")
        launch(fill, 64)
        launch(fill, 1001)
    assert not MEASURED
    records = [record for record in read_manifest([str(tmp_path / "app.jsonl")]) if record["record"] == "tuning"]
    assert [len(record["timings"]) for record in records] == [3, 3]


def test_two_runs_and_their_times(tmp_path: Path) -> None:
    """A second run, with other times, adds no lines that are read twice."""
    manifest = recorded(tmp_path, fill, 64)
    before = len(read_manifest([str(manifest)]))
    lines = manifest.read_text().splitlines()
    tuning = next(line for line in map(json.loads, lines) if line["record"] == "tuning")
    manifest.write_text("\n".join([*lines, json.dumps({**tuning, "timings": [[tuning["config"], 0.5]]}), ""]))
    assert len(read_manifest([str(manifest)])) == before


def test_choose_answers_where_it_was_recorded_for_another_size(served: Served) -> None:
    bundle = served(fill_chosen, 64, 1001)
    assert not bundle.trees
    assert [launch(fill_chosen, n) for n in (80, 4096, 33, 4001)] == [32, 128, 32, 128]
    assert len(list(bundle.file.entries())) == 4


def test_parameters_that_depend_on_the_configuration(served: Served) -> None:
    """Code for other values of these is not in the bundle, and is never replaced by what is."""
    served(fill_evenly, 64, 1001)
    assert launch(fill_evenly, 96) == 32 and launch(fill_evenly, 33) == 32
    with pytest.raises(NotRecorded, match="`n` = 48 is a multiple of 16, and 1001 was not"):
        launch(fill_evenly, 48)


def test_an_answer_that_the_launch_does_not_allow_is_refused(served: Served) -> None:
    served(fill_unmasked, 64, 1024)
    assert launch(fill_unmasked, 2048) == 128
    with pytest.raises(NotRecorded, match=r'"BLOCK": 128.* is none of the configurations that the program has for'):
        launch(fill_unmasked, 1056)
    knobs.runtime.no_jit = False
    launch(fill_unmasked, 1056)
    assert MEASURED or fill_unmasked.best_config == CONFIGS[0]


def test_a_heuristic_that_refuses_a_configuration_is_reported(tmp_path: Path) -> None:
    with pytest.warns(
        RuntimeWarning, match=r"fill_picky is not recorded with BLOCK: 64.*ZeroDivisionError: 64 is too"
    ) as found:
        manifest = recorded(tmp_path, fill_picky, 64)
    blocks = [record["config"]["BLOCK"] for record in read_manifest([str(manifest)]) if record["record"] == "candidate"]
    assert blocks == [128] and len(found) == 1


def test_a_candidate_that_cannot_be_compiled_is_a_note(tmp_path: Path) -> None:
    manifest = recorded(tmp_path, fill, 64, 1001)
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    for line in lines:
        if line["record"] == "candidate":
            line["constants"] = {"BLOCK": 48.5}
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = precompile(read_manifest([str(manifest)]), [parse_target("cpu")], workers=1)
    assert not made.failures and len(made.contents.entries) == 2
    assert len(made.notes) == 1 and "fill for cpu: a configuration for other sizes is left out" in made.notes[0]


def with_trees(file: Path, change: Callable[[Any], Any] | bytes) -> None:
    """Replace the trees of a bundle, and keep all hashes correct."""
    bundle = BundleFile.open(file)
    entries = [Entry(one.target, one.kernel, one.key, bundle.files(one)) for one in bundle.entries()]
    blobs = {name: bundle.blob(name) or b"" for name in bundle.blobs}
    data = change if isinstance(change, bytes) else json.dumps(change(json.loads(blobs[TREES]))).encode()
    write_bundle(file, Contents(bundle.targets, bundle.kernels, entries, {**blobs, TREES: data}, bundle.facts))


def in_tree(**changes: Any) -> Callable[[Any], Any]:
    return lambda rows: [{**row, "tree": {**row["tree"], **changes}} for row in rows]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (b"{", "Expecting property name"),
        (b"[" * 100_000, "recursion"),
        (b"[7]", "subscriptable"),
        (b"{}7", "Extra data"),
        (lambda rows: [{**row, "tree": []} for row in rows], r"neither a configuration nor a split: \[\]"),
        (lambda rows: [{name: row[name] for name in row if name != "family"} for row in rows], "it has no 'family'"),
        (lambda rows: [{**row, "kernel": 7} for row in rows], "its description is"),
        (in_tree(size="m"), "it splits at 'm', and the sizes are n"),
        (in_tree(limit="many"), "neither a configuration nor a split"),
        (in_tree(above=None), "neither a configuration nor a split: null"),
        (in_tree(more=1), "neither a configuration nor a split"),
    ],
)
def test_a_tree_that_is_none_is_one_clear_error(
    change: Any, words: str, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = served(fill, 64, 1001)
    bundle.close()
    file = Path(bundle.path)
    with_trees(file, change)
    with tilework.load(file) as bundle:
        with pytest.raises(BundleError, match=f"{file} has a decision tree that is none: .*{words}.*compile it again"):
            launch(fill, 80)
        assert launch(fill, 64) == 32, "what was recorded needs no tree"
    assert main(["bundle", str(file), "--verify"]) == 1
    assert "has a decision tree that is none" in capsys.readouterr().err


def test_a_leaf_with_a_configuration_that_the_program_does_not_have(served: Served) -> None:
    bundle = served(fill, 64, 1001)
    bundle.close()
    with_trees(Path(bundle.path), in_tree(above={"config": {"BLOCK": 7}, "loss": 0.0}))
    with tilework.load(bundle.path):
        assert launch(fill, 80) == 32
        with pytest.raises(NotRecorded, match=r'\{"BLOCK": 7\}\) is none of the configurations that the program has'):
            launch(fill, 4096)


def test_a_changed_byte_of_a_tree_is_found(served: Served) -> None:
    bundle = served(fill, 64, 1001)
    bundle.close()
    data = bytearray((file := Path(bundle.path)).read_bytes())
    data[data.index(b'"limit": 253') + 9] ^= 1
    file.write_bytes(data)
    with tilework.load(file), pytest.raises(BundleError, match="damaged"):
        launch(fill, 80)


@pytest.mark.parametrize("times", ["fast", [1.0], [[{}, "fast"]], [[{}, -1.0]], [[{}, True]], [[{}]], [["a", 1.0]]])
def test_times_in_a_manifest_that_are_none(times: Any, tmp_path: Path) -> None:
    manifest = recorded(tmp_path, fill, 64)
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    number = next(number for number, line in enumerate(lines, 1) if line["record"] == "tuning")
    lines[number - 1]["timings"] = times
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BundleError, match=f"app.jsonl:{number}: the times of the configurations are none"):
        read_manifest([str(manifest)])


SCRIPT = """
import sys
import numpy as np
import tilework, tilework.language as tl

measured = []

def remember(args, reset_only=False):
    measured.append((args["n"], args["BLOCK"]))

def bench(call, quantiles):
    call()
    n, block = measured[-1]
    return [1.0 if (block == 32) is (n < 500) else 2.0] * 3

configs = [tilework.Config({"BLOCK": block}) for block in (32, 64, 128)]

@tilework.autotune(configs, key=["n"], pre_hook=remember, do_bench=bench)
@tilework.jit
def fill(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)

def run(n):
    out = np.zeros(n, np.int32)
    fill[lambda meta: (tilework.cdiv(n, meta["BLOCK"]),)](out, n)
    assert (out == np.arange(n)).all()
    return fill.best_config.kwargs["BLOCK"]

if __name__ == "__main__":
    print([run(n) for n in SIZES])
"""


def test_a_machine_without_a_compiler(tmp_path: Path) -> None:
    (script := tmp_path / "app.py").write_text(SCRIPT.replace("SIZES", "(64, 1001)"))
    code, _, errors = run_forked(script, {"TILEWORK_RECORD": str(tmp_path / "app.jsonl")})
    assert code == 0, errors
    assert main(["precompile", str(tmp_path / "app.jsonl"), "-j", "1", "-t", "cpu"]) == 0
    (elsewhere := tmp_path / "elsewhere").mkdir()
    settings = {"TILEWORK_BUNDLE": str(tmp_path / "app.tilebundle")}
    done = run_without_compiler(elsewhere, SCRIPT.replace("SIZES", "(80, 4096, 33, 4001)"), settings)
    assert (done.returncode, done.stdout) == (0, "[32, 128, 32, 128]\n"), done.stderr
    assert not (elsewhere / "cache").exists()
