"""The corpus of kernel launches: its files, the modules it copies kernels into, both ways of loading them."""

import os
import sys
from types import ModuleType
from typing import Any

import pytest

import tilework
import tilework.language as tl
from benchmarks import corpus, corpus_sample, real_kernels
from benchmarks.corpus import Descriptor, DType, Function, Launch, Parameter, Storage, Tensor, Writer
from benchmarks.kernel_source import CannotExtract, module_text
from tests.targets.cuda_tools import needs_ptxas
from tilework.compiler import ASTSource, GPUTarget
from tilework.compiler import compile as compile_kernel


@pytest.fixture
def sample(tmp_path):
    corpus_sample.write(tmp_path / "sample")
    return tmp_path / "sample"


def test_a_folder_and_its_zip_file_have_the_same_launches(sample):
    launches = corpus.read(sample)
    assert [one.name for one in launches] == ["add", "softmax", "layernorm", "matmul"]
    assert corpus.read(sample.with_suffix(".zip")) == launches
    assert corpus.read(sample.with_suffix(".zip"))[0].source() == launches[0].source()


def test_recording_again_replaces_the_launches_of_the_programs_that_recorded_some(tmp_path):
    def launch(library, name, size):
        return Launch(library, name, "m", "f", [Parameter("n")], {"n": size}, [], [1])

    first = [launch("b", "one: k", 1), launch("b", "two: k", 2), launch("a", "one: k", 3)]
    writer = Writer(tmp_path / "c")
    for one in (launch("b", "two: k", 4), launch("b", "two: j", 5)):
        writer.add(one)
    real_kernels.add_others(writer, first, ["a", "b"])
    writer.finish()
    found = [(one.library, one.name, one.arguments["n"]) for one in corpus.read(tmp_path / "c.zip")]
    assert found == [("a", "one: k", 3), ("b", "one: k", 1), ("b", "two: k", 4), ("b", "two: j", 5)]


def test_no_request_is_begun_after_the_time_is_up(sample):
    requests = [{"index": 0, "action": "static"}] * 2
    assert real_kernels.ask_all(str(sample), requests, 1, 60, lambda index, found: None, most=0) == [{}, {}]


def test_all_kinds_of_arguments_are_read_back(tmp_path):
    x = Tensor(0, "bf16", [4, 8], [8, 1], 2)
    arguments = {
        "x": x, "d": Descriptor(x, [4, 8], [8, 1], [2, 8]), "none": None, "f": Function("f"), "t": (1, (x, 2.5)),
        "dtype": DType("fp32"), "pointer": DType("fp32", is_pointer=True), "inf": float("inf"), "b": True, "s": "ieee",
    }  # fmt: skip
    writer = Writer(tmp_path / "c")
    data = writer.add_data(bytes(range(64)))
    launch = Launch("l", "n", "m", "f", [Parameter("x")], arguments, [Storage("i32", 16, ["stored", data])], [1, 2, 3],
                    {"num_warps": 8})  # fmt: skip
    assert writer.add(launch)
    assert not writer.add(launch)
    writer.finish()
    (found,) = corpus.read(tmp_path / "c")
    assert found == launch
    assert found.corpus is not None
    assert found.corpus.read_bytes(data) == bytes(range(64))


def test_a_specialization_has_types_constants_and_multiples():
    params = [Parameter("x"), Parameter("y"), Parameter("n"), Parameter("one"), Parameter("raw", is_specialized=False),
              Parameter("big", type="i64"), Parameter("none"), Parameter("B", is_constexpr=True),
              Parameter("t")]  # fmt: skip
    values = {"x": Tensor(0, "bf16", [8], [1]), "y": Tensor(0, "fp32", [8], [1], 1), "n": 32, "one": 1, "raw": 1,
              "big": 7, "none": None, "B": 64, "t": (1.5, 16, None)}  # fmt: skip
    launch = Launch("l", "n", "m", "f", params, values, [], [1])
    found = launch.specialization(None)
    assert found.signature == {
        "x": "*bf16", "y": "*fp32", "n": "i32", "one": "constexpr", "raw": "i32", "big": "i64", "none": "constexpr",
        "B": "constexpr", "t": ("fp32", "i32", "constexpr"),
    }  # fmt: skip
    assert found.constants == {"one": 1, "none": None, "B": 64, (8, 2): None}
    assert sorted(found.attrs) == [(0,), (2,), (8, 1)]


@needs_ptxas
def test_the_sample_compiles_without_a_gpu(sample):
    for launch in corpus.read(sample)[:2]:
        kernel = launch.load("tilework")
        source = ASTSource(kernel, *launch.specialization(kernel))
        compiled = compile_kernel(source, target=GPUTarget("cuda", 90, 32), options=dict(launch.options))
        assert ".visible .entry" in compiled.asm["ptx"]


def test_tensors_are_equal_for_equal_seeds(sample):
    torch = pytest.importorskip("torch")
    launch = corpus.read(sample)[0]
    kernel = launch.load("tilework")
    first, second = (corpus.materialize(launch, "cpu", seed=3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    values = launch.values(kernel, first)
    assert values["x_ptr"].shape == (64, 1000)
    assert values["n"] == 64000


def test_a_launch_runs_under_both_compilers_and_is_timed_in_turns(sample, monkeypatch):
    torch = pytest.importorskip("torch")
    from benchmarks import real_kernels_process as process

    class Graph:
        def __init__(self, run, count):
            self.replay = lambda: [run() for _ in range(count)]

    class Event:
        def elapsed_time(self, other):
            return 1.0

    def event_pair(graph):
        graph.replay()
        return Event(), Event()

    facts = {"registers": 32, "spills": 0, "shared": 0, "warps": 4, "occupancy": 64}
    monkeypatch.setattr(process, "DEVICE", "cpu")
    monkeypatch.setattr(process, "captured", Graph)
    monkeypatch.setattr(process, "event_pair", event_pair)
    monkeypatch.setattr(process, "synchronize", lambda: None)
    monkeypatch.setattr(process, "facts", lambda compiled: facts)
    load = corpus.load
    monkeypatch.setattr(corpus, "load", lambda name, text, compiler: load(name, text, "tilework"))
    launch = corpus.read(sample)[1]
    found = process.measure(launch, None)
    assert found["ratio"] == 1
    assert found["distance"] == 0
    assert "softmax" in real_kernels.row(launch, found)
    real_kernels.report([{"library": launch.library, "name": launch.name, **found}])
    monkeypatch.setattr(process, "FAR", -1.0)
    far = process.measure(launch, None)
    assert 0 < far["sensitivity"] < 0.01  # softmax is well-conditioned
    diverging = {**far, "distance": 1.0, "sensitivity": 1.0}
    assert "differ by 1.0e+00 in , Triton's own by 1.0e+00" in real_kernels.row(launch, diverging)
    other = torch.zeros(64)
    assert process.distance(other, other + 1) == 1
    assert process.distance(torch.full((4,), torch.nan), torch.full((4,), torch.nan)) == 0


def test_warps_of_a_multiprocessor_follow_registers_and_shared_memory():
    process = pytest.importorskip("benchmarks.real_kernels_process")
    assert process.occupancy(32, 0, 4) == 64
    assert process.occupancy(128, 0, 4) == 16
    assert process.occupancy(32, 100_000, 8) == 16


@needs_ptxas
def test_a_process_that_dies_costs_one_answer(sample):
    worker = real_kernels.Worker(str(sample), {**os.environ, "PYTHONPATH": "."})
    request = {"index": 99, "action": "static"}
    assert "IndexError" in worker.ask(request, 60)["error"]
    found = worker.ask({"index": 0, "action": "static", "compilers": ["tilework"]}, 120)
    assert found["tilework"]["bytes"] > 0
    worker.stop()


# The text of modules --------------------------------------------------------------------------------------------------

SCALE = tl.constexpr(3)
LIMIT: Any = 2.5


other = ModuleType("other")
other_text = """
import enum
import numpy as np
import tilework, tilework.language as tl
INFO = np.finfo("float32")
SCALE = tl.constexpr(7)
class Mode(enum.Enum):
    TWICE = 2
@tilework.jit
def helper(x):
    return x * SCALE
"""


@tilework.jit
def helper(x):
    return x + SCALE


@tl.constexpr
def doubled(x):
    return 2 * x


@tilework.jit(do_not_specialize=["n"])
def kernel(out, n, KIND: tl.constexpr = LIMIT, unused: ModuleType | None = None):
    total = helper(tl.load(out)) + other.helper(n) + tl.cdiv(n, 2) + other.INFO.bits
    tl.store(out, total + doubled(other.Mode.TWICE.value) + tl.sum(tl.arange(0, 4), 0) + KIND)


@pytest.fixture
def other_module(tmp_path, monkeypatch):
    file = tmp_path / "other.py"
    file.write_text(other_text)
    other.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "other", other)
    exec(compile(other_text, str(file), "exec"), vars(other))


def test_a_module_has_what_its_kernel_uses_and_renames_what_clashes(other_module):
    text, names = module_text(kernel)
    assert names == {id(kernel): "kernel"}
    assert text.startswith("import triton\n")
    assert "import triton.language as tl" in text
    assert "SCALE = tl.constexpr(3)" in text
    assert "SCALE__2 = tl.constexpr(7)" in text
    assert "KIND: tl.constexpr=2.5, unused=None" in text
    assert "doubled(2)" in text
    assert text.endswith("doubled = tl.constexpr(doubled_function)\n")
    assert "do_not_specialize=['n']" in text
    assert "other_helper(n) + tl.cdiv(n, 2) + 32" in text
    assert text.count("@triton.jit") == 3


def test_a_copied_module_computes_the_same(other_module):
    np = pytest.importorskip("numpy")
    text, _ = module_text(kernel)
    copied = corpus.load("copied", text, "tilework").kernel
    given, expected = (np.array([5.0], np.float32) for _ in range(2))
    kernel[(1,)](expected, 6)
    copied[(1,)](given, 6)
    assert given == expected


def test_an_object_without_a_text_is_an_error():
    thing: Any = object()

    @tilework.jit
    def strange(out):
        tl.store(out, thing)

    with pytest.raises(CannotExtract, match=r"a value of type builtins\.object"):
        module_text(strange)
