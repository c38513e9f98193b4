"""A keyword of a launch that names an option and a parameter of the kernel is both, on every way to launch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.bundles import bundle_of, stop_recording
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.emulated_hip import emulated_hip
from tests.runtime.test_compile_options import GIVEN
from tilework import Config, knobs
from tilework.knobs import cuda_tools
from tilework.process.events import BUNDLES
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.hip_driver import DeviceArray as HipArray
from tilework.runtime.launch.python.specialize import call_of
from tilework.tools.filecheck import run_parser

pytestmark = pytest.mark.usefixtures("fresh_cache")
NAMES = [name for name in GIVEN if name not in ("num_ctas", "arch")]  # as for options that are no parameters


def constant(out, num_warps: tl.constexpr, after: tl.constexpr = 5):  # pyright: ignore[reportArgumentType]
    tl.store(out, num_warps)
    tl.store(out + 1, after)


def number(out, num_warps, after=5):
    tl.store(out, num_warps)
    tl.store(out + 1, after)


kernels = pytest.mark.parametrize("source", [constant, number])


@tilework.jit
def every(
    out, num_warps: tl.constexpr = 1, num_stages: tl.constexpr = 1,  # pyright: ignore[reportArgumentType]
    maxnreg: tl.constexpr = None, ptx_version: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    ptx_options: tl.constexpr = None, enable_fp_fusion: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    enable_reflect_ftz: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    launch_cooperative_grid: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    launch_pdl: tl.constexpr = None, debug: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
    sanitize_overflow: tl.constexpr = None, extern_libs: tl.constexpr = None,  # pyright: ignore[reportArgumentType]
):  # fmt: skip
    tl.store(out, 1 if num_warps is None else num_warps)


@pytest.mark.parametrize("name", NAMES)
def test_every_option(name: str) -> None:
    out = np.zeros(2, np.int32)
    plain, given = every[(1,)](out), every[(1,)](out, **{name: GIVEN[name]})
    assert plain.hash != given.hash and plain.metadata.num_warps == 4  # what a default says is no option
    wanted = GIVEN[name] if name != "extern_libs" else [["mine", "/nowhere.bc"]]
    assert getattr(given.metadata, name) == wanted
    assert out[0] == (8 if name == "num_warps" else 1)


@kernels
def test_both_launch_paths(source: Any) -> None:
    kernel, out = tilework.jit(source), np.zeros(2, np.int32)
    for launch in (kernel[(1,)], lambda *args, **kwargs: kernel.run(*args, grid=(1,), **kwargs)):
        for warps in (8, 2, 8, 2, 16):  # again: in machine code
            assert launch(out, num_warps=warps).metadata.num_warps == warps == out[0]
        for warps in (8, 2, 8):
            assert launch(out, warps).metadata.num_warps == 4 and out[0] == warps  # by position it is an argument
        assert launch(out, num_warps=tl.constexpr(8) if source is constant else 8, after=7).metadata.num_warps == 8
        assert out.tolist() == [8, 7]


@kernels
def test_a_grid_sees_it(source: Any) -> None:
    kernel, seen = tilework.jit(source), []
    for warps in (8, 2, 8, 2):
        kernel[lambda meta: seen.append(meta["num_warps"]) or (1,)](np.zeros(2, np.int32), num_warps=warps)
    assert seen == [8, 2, 8, 2]


@kernels
def test_warmup_bind_and_the_interpreter(source: Any) -> None:
    kernel, out = tilework.jit(source), np.zeros(2, np.int32)
    assert kernel.warmup(out, num_warps=8, grid=(1,)).metadata.num_warps == 8
    assert len({kernel.warmup(out, num_warps=warps, grid=(1,)).hash for warps in (2, 4, 8)}) == 3
    launch = kernel.bind(out, num_warps=8, grid=(1,))
    for warps in (8, 2, 8, 2):
        assert launch(num_warps=warps).metadata.num_warps == warps == out[0]
    assert launch(after=1).metadata.num_warps == 8
    interpreted, options = tilework.jit(source, interpret=True), []
    interpreted.bound_values = lambda *args, find=interpreted.bound_values: options.append(find(*args)) or options[-1]
    interpreted[(1,)](out, num_warps=2)
    interpreted[(1,)](out, 8)
    assert out[0] == 8 and [found.num_warps for _, found in options] == [2, 4]


def test_memory_is_no_option() -> None:
    @tilework.jit
    def kernel(out, debug, num_stages):
        tl.store(out, tl.load(debug) + num_stages)

    out = np.zeros(1, np.int32)
    for _ in range(3):
        found = kernel[(1,)](out, debug=np.full(1, 2, np.int32), num_stages=5)
        assert out[0] == 7 and found.metadata.num_stages == 5 and found.metadata.debug is False
    tilework.jit(kernel, interpret=True)[(1,)](out, debug=np.full(1, 2, np.int32), num_stages=6)
    assert out[0] == 8


@kernels
def test_configurations_and_heuristics(source: Any) -> None:
    out = np.zeros(2, np.int32)
    tuned = tilework.autotune(
        [Config({}, num_warps=2), Config({}, num_warps=8)],
        key=[],
        do_bench=lambda call, quantiles: [call() or -float(out[0])] * 3,
    )(tilework.jit(source))
    for _ in range(3):
        assert tuned[(1,)](out).metadata.num_warps == 8 == out[0]
    assert [kernel.metadata.num_warps for kernel in tuned.warmup(out, grid=(1,))] == [2, 8]
    chosen = tilework.heuristics({"num_warps": lambda args: 2 * args["after"]})(tilework.jit(source))
    for after in (4, 1, 4):
        assert chosen[(1,)](out, after=after).metadata.num_warps == 2 * after == out[0]


@kernels
@pytest.mark.parametrize(
    "device, array", [(emulated_cuda, DeviceArray.of), (emulated_hip, HipArray.of)], ids=["cuda", "hip"]
)
def test_on_a_gpu(source: Any, device: Any, array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    with device():
        kernel, out = tilework.jit(source), array(np.zeros(2, np.int32))
        for warps in (8, 2, 8, 2):
            found = kernel[(1,)](out, num_warps=warps)
            assert f'"ttg.num-warps" = {warps} : i32' in found.asm["ttgir"] and out.numpy()[0] == warps


def test_a_bundle_has_it(tmp_path: Path) -> None:
    file, out = tmp_path / "app.jsonl", np.zeros(2, np.int32)
    with knobs.runtime.scope():
        knobs.runtime.record = str(file)
        every[(1,)](out, num_warps=8)
    stop_recording()
    bundle = bundle_of(file)
    every.device_caches.clear()
    try:
        with knobs.runtime.scope(), tilework.load(bundle):
            knobs.runtime.no_jit = True
            assert every[(1,)](out, num_warps=8).metadata.num_warps == 8 == out[0]
            with pytest.raises(tilework.errors.NotRecorded):
                every[(1,)](out, 8)
    finally:
        BUNDLES.clear()


def test_tools_that_launch_again() -> None:
    kernel, out = tilework.jit(constant), np.zeros(2, np.int32)
    text = str(kernel.explain(out, num_warps=8, grid=(1,), why="different"))
    assert "constant" in text and out[0] == 0
    assert "tt.store" in str(run_parser(kernel, (out,), {"num_warps": 8}))
    for args, kwargs in [
        ((out,), {"num_warps": 8}),
        ((out, 8), {}),
        ((out, 8, 6), {"debug": True}),
        ((), {"out": out}),
    ]:
        *_, bind = kernel.device_caches[0]
        kwargs = kwargs if args else {**kwargs, "num_warps": 8, "after": 6}
        bound = bind(*args, **kwargs)
        again_args, again_kwargs = call_of(kernel, bound[0], bound[3])
        assert bind(*again_args, **again_kwargs) == bound
