"""`compile`: sources of Python and of IR, the compiled kernel, resources that do not suffice."""

import gc
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import fake_gpu
from tests.runtime.launch_kernels import HOPPER, HOST, SIGNATURE, fill, fill_source
from tilework import knobs, metrics
from tilework.compiler import ASTSource, compile, lower
from tilework.errors import DoesNotFit, OutOfResources, PassError, PTXASError
from tilework.process.triton_version import selected
from tilework.runtime.compile import stages
from tilework.targets.base import GPUTarget

pytestmark = pytest.mark.usefixtures("fresh_cache")

CUDA = GPUTarget("cuda", 90, 32)


def test_compile_without_a_device(tmp_path: Path) -> None:
    source = ASTSource(add_kernel, {"BLOCK": "constexpr", "n": "i32", "x": "*fp32"}, {"BLOCK": 16})
    compiled = compile(source, CUDA, {"num_warps": 8})
    assert compiled.metadata.target == CUDA
    assert compiled.metadata.num_warps == 8
    assert "tt.load" in compiled.asm["ttir"]
    path = tmp_path / "k.ttir"
    path.write_text(compiled.asm["ttir"])
    again = compile(str(path), "cuda:90")
    assert again.name == "add_kernel" and again.metadata.target == CUDA


@tilework.jit
def add_kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_signature_keys_are_strings() -> None:
    with pytest.raises(TypeError):
        ASTSource(add_kernel, {0: "*fp32"})


@tilework.jit
def touch(x):
    tl.store(x, 1)


@pytest.mark.parametrize("error", [OutOfResources(2, 1, "shared memory"), DoesNotFit(2, 1, "registers")])
def test_copies_of_the_compilers_choice_that_do_not_fit_are_left_out_and_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def failing(source: Any, target: Any, backend: Any, options: Any, *rest: Any) -> Any:
        if options.auto_tma:
            raise error
        return real(source, target, backend, options, *rest)

    real = stages.build
    monkeypatch.setattr(stages, "build", failing)
    monkeypatch.setenv("TILEWORK_PERFORMANCE_REMARKS", "1")
    source, before = ASTSource(touch, {"x": "*i32"}), metrics.total("fallbacks", without="auto_tma", target=str(CUDA))
    assert compile(source, CUDA, {"auto_tma": "pays"}).metadata.auto_tma is False
    assert metrics.total("fallbacks", without="auto_tma", target=str(CUDA)) == before + 1
    assert re.search(r"touch: remark: it runs without copies by TMA .* out of resource", capsys.readouterr().err)
    with pytest.raises(type(error)):
        compile(source, CUDA, {"auto_tma": True})


@pytest.mark.parametrize(
    "error", [AssertionError("broken"), KeyError("op"), PTXASError("syntax"), PassError("no rule")]
)
def test_a_defect_of_the_compiler_is_seen_whatever_it_chose(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def failing(source: Any, target: Any, backend: Any, options: Any, *rest: Any) -> Any:
        raise error if options.auto_tma else AssertionError("compiled again")

    monkeypatch.setattr(stages, "build", failing)
    with pytest.raises(type(error)) as found:
        compile(ASTSource(touch, {"x": "*i32"}), CUDA, {"auto_tma": "pays"})
    assert found.value is error


def test_parameters_without_a_type_must_be_constants() -> None:
    with pytest.raises(Exception, match="n"):
        compile(ASTSource(fill, {"p": "*fp32", "value": "fp32"}, {"BLOCK": 16}), HOPPER)


def test_order_is_that_of_the_function() -> None:
    backwards = ASTSource(fill, dict(reversed(SIGNATURE.items())), {"BLOCK": 16})
    assert backwards.hash() == fill_source().hash() and list(backwards.signature) == ["p", "value", "n"]


@pytest.mark.parametrize("constants", [{"BLOCK": 16}, {(3,): 16}, {3: 16}])
def test_constants_by_name_and_path(constants: Any) -> None:
    text = lower(ASTSource(fill, SIGNATURE, constants), HOPPER)["ttir"]
    assert "end = 16 : i32" in text


def test_attributes_by_path() -> None:
    text = lower(ASTSource(fill, SIGNATURE, {"BLOCK": 16}, {(0,): [["tt.divisibility", 16]]}), HOPPER)["ttir"]
    assert re.search(r"%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}", text)


def test_no_target_is_the_current_device() -> None:
    assert compile(fill_source()).metadata.target == HOST


def test_members() -> None:
    out = np.zeros(16, "f4")
    kernel = fill.warmup(out, 1.0, 16, grid=(1,))
    assert isinstance(kernel.asm["source"], str) and isinstance(kernel.asm["ttir"], str)
    with pytest.raises(KeyError):
        kernel.asm["nothing"]
    names = "hash target name shared tmem_size num_warps num_ctas num_stages global_scratch_size global_scratch_align"
    names += " profile_scratch_size profile_scratch_align tensordesc_meta triton_version"
    for name in names.split():
        assert hasattr(kernel.metadata, name), name
    assert isinstance(kernel.metadata.target, GPUTarget) and kernel.metadata.triton_version == selected()
    assert kernel.metadata.tilework_version == tilework.__version__
    assert all(Path(path).is_file() for path in kernel.metadata_group.values()) and "fill.json" in kernel.metadata_group
    assert kernel.packed_metadata == (4, 1, 1) and kernel.metadata.hash == kernel.hash and len(kernel.hash) == 64
    assert (kernel.module, kernel.function, kernel.n_regs, kernel.n_spills) == (None, None, None, None)
    assert kernel.src.fn is fill and kernel.kernel == kernel.asm[kernel.metadata.binary_ext]
    assert callable(kernel.run)  # loads the binary
    assert None not in (kernel.module, kernel.function, kernel.n_regs, kernel.n_spills, kernel.n_max_threads)


@pytest.mark.parametrize(
    ("facts", "options", "message"),
    [
        ({"shared": 1 << 20}, {}, "out of resource: shared memory, Required: 1048576, Hardware limit: 65536."),
        ({"tmem_size": 513}, {}, "out of resource: tensor memory, Required: 513, Hardware limit: 512."),
        ({}, {"num_warps": 64}, "out of resource: threads, Required: 2048, Hardware limit: 1024."),
    ],
    ids=["shared memory", "tensor memory", "threads"],
)
def test_out_of_resources(facts: Any, options: Any, message: str) -> None:
    whole = message + " Reducing block sizes or `num_stages` may help."
    with fake_gpu(**facts) as gpu:
        for _ in range(3):
            with pytest.raises(OutOfResources, match=f"^{re.escape(whole)}$"):
                touch[(1,)](np.zeros(1, "i4"), **options)
        assert gpu.loads == (1 if "threads" in message else 0)  # it is remembered, not tried again
    assert not gpu.launches


LOCATED = """module {
  tt.func public @copy(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>) {
    %0 = tt.load %a : !tt.ptr<f32> loc("model.py":31:4)
    tt.store %b, %0 : !tt.ptr<f32> loc("model.py":32:4)
    tt.return
  }
}
"""


@pytest.mark.parametrize("setting", [None, "ttir", "ttgir"])
def test_lines_of_a_file_of_ir(setting: str | None, tmp_path: Path) -> None:
    """Locations in the file stay, ops without one are where they stand; with USE_IR_LOC all are."""
    file = tmp_path / "copy.ttir"
    file.write_text(LOCATED)
    knobs.compilation.use_ir_loc = setting
    kernel = compile(str(file), HOPPER)
    ttir, ttgir = kernel.asm["ttir"], kernel.asm["ttgir"]
    assert f'loc("{file}":5:5)' in ttir
    assert ('loc("model.py":31:4)' in ttir) is (setting is None) is not (f'loc("{file}":3:5)' in ttir)
    path = kernel.metadata_group["@copy.ttgir"] if setting == "ttgir" else str(file)
    assert f'loc("{path}":' in ttgir and ("model.py" in ttgir) is (setting is None)


def test_a_file_starts_at_its_stage(tmp_path: Path) -> None:
    texts = lower(
        ASTSource(fill, {"p": "*fp32", "value": "fp32", "n": "i32"}, {"BLOCK": 16}), HOPPER, ["ttir", "ttgir"]
    )
    seen: list[list[str]] = []
    knobs.runtime.add_stages_inspection_hook = lambda *args: seen.append(list(args[1])) if args else ("key", "hash")
    for stage in ("ttir", "ttgir"):
        file = tmp_path / f"{stage}.{stage}"
        file.write_text(texts[stage])
        assert compile(str(file), HOPPER).asm["ttgir"].count("tt.store") == 1
    assert seen[0][:2] == ["ttir", "ttgir"] and seen[1] == seen[0][1:]
    other = tmp_path / "kernel.txt"
    other.write_text(texts["ttir"])
    with pytest.raises(ValueError, match=r"kernel\.txt: a source is a \.ttir"):
        compile(str(other), HOPPER)


def test_launch_metadata_of_a_compiled_kernel() -> None:
    kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
    assert kernel.launch_metadata((1, 1, 1), 5, None) is None, "there is no listener"
    knobs.runtime.launch_enter_hook.add(lambda metadata: None)
    found = kernel.launch_metadata((1, 1, 1), 5, None).get()
    assert found == {"name": "fill", "function": kernel.function, "stream": 5}


def test_a_compiled_kernel_launches_on_the_stream_it_is_given() -> None:
    streams: list[int] = []
    knobs.runtime.launch_enter_hook.add(lambda metadata: streams.append(metadata.get()["stream"]))
    kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
    out = np.zeros(4, "f4")
    kernel[(1, 1, 1)](out, 2.0, 4, 16)
    kernel[(1, 1, 1)](out, 2.0, 4, 16, stream=3)
    assert streams == [0, 3] and (out == 2).all()


def test_the_error_of_a_later_launch_keeps_nothing_alive() -> None:
    class Big:
        """Something that a frame of the caller holds."""

    def launch() -> weakref.ref[Big]:
        big = Big()
        with pytest.raises(OutOfResources):
            fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
        return weakref.ref(big)

    fill.device_caches.clear()
    with fake_gpu(shared=1 << 20) as gpu:
        alive = [launch() for _ in range(3)]
        gc.collect()
        assert [reference() for reference in alive] == [None] * 3 and gpu.loads == 0
    fill.device_caches.clear()
