"""A libamdhip64 in C: it is found, its functions are called with the types that they have, from Python and from machine
code."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.hidden_gpu import no_gpu_for_torch
from tilework import knobs
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.devices.hip_driver import GPUS as hip_device
from tilework.runtime.devices.hip_driver import DeviceArray, HipDriver
from tilework.targets.amd import libhip

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

LIBRARY = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef int R; typedef void *P; typedef unsigned U;
U launch[9]; unsigned char values[64]; P stream, extra = (P)1; int launches, forgotten; static __thread int device;
R hipDriverGetVersion(int *v) { *v = 60443483; return 0; }
R hipGetDeviceCount(int *n) { *n = 2; return 0; }
R hipGetDevice(int *d) { *d = device; return 0; }
R hipSetDevice(int d) { device = d; return d < 2 ? 0 : 101; }
R hipDeviceSynchronize(void) { return 0; }
R hipGetDevicePropertiesR0600(char *p, int d) {
  memset(p, 0, 1472);
  *(uint64_t *)(p + 296) = 65536; *(int *)(p + 304) = 65536; *(int *)(p + 308) = 64; *(int *)(p + 388) = 304 - d;
  strcpy(p + 1160, "gfx942:sramecc+:xnack-");
  return 0;
}
R hipMalloc(P *p, size_t n) { *p = aligned_alloc(256, (n + 255) / 256 * 256); return n > 1u << 30 ? 2 : 0; }
R hipFree(P p) { free(p); return 0; }
R hipMemcpyHtoDAsync(P d, const void *s, size_t n, P q) { memcpy(d, s, n); return 0; }
R hipMemcpyDtoHAsync(P d, const void *s, size_t n, P q) { memcpy(d, s, n); return 0; }
R hipMemsetD8Async(P d, unsigned char v, size_t n, P q) { memset(d, v, n); return 0; }
R hipPointerGetAttribute(P out, int a, P p) { return 1; }
R hipGetLastError(void) { forgotten++; return 0; }
const char *hipGetErrorString(R code) { return code == 2 ? "out of memory" : "some error"; }
R hipStreamCreateWithFlags(P *s, U f) { *s = (P)(0x7000000000ull + f); return 0; }
R hipStreamDestroy(P s) { return 0; }
R hipStreamSynchronize(P s) { return 0; }
R hipEventCreateWithFlags(P *e, U f) { *e = malloc(8); return 0; }
R hipEventRecord(P e, P s) { return 0; }
R hipEventSynchronize(P e) { return 0; }
R hipEventElapsedTime(float *ms, P a, P b) { *ms = 2.5f; return 0; }
R hipEventDestroy(P e) { free(e); return 0; }
R hipModuleLoadDataEx(P *m, const char *image, U n, P o, P v) { *m = (P)0x42; return n || o || v || image[1] != 'E'; }
R hipModuleGetFunction(P *f, P m, const char *name) { *f = (P)0x1234567890ull; return strcmp(name, "scaled") ? 500 : 0;
}
R hipModuleUnload(P m) { return 0; }
R hipFuncGetAttribute(int *v, int a, P f) { *v = a == 0 ? 256 : a == 4 ? 7 : 0; return f != (P)0x1234567890ull; }
R hipModuleLaunchKernel(P f, U gx, U gy, U gz, U bx, U by, U bz, U shared, P s, P *params, P e) {
  U now[9] = { f == (P)0x1234567890ull, gx, gy, gz, bx, by, bz, shared, device };
  memcpy(launch, now, sizeof now); stream = s; extra = e; launches++;
  for (int i = 0; i < 5; i++) memcpy(values + 8 * i, params[i], i == 1 || i == 2 ? 4 : 8);
  return gy == 7 ? 719 : 0;
}
"""


@tilework.jit
def scaled(p, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * a, mask=i < n)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rocm")
    (folder / "hip.c").write_text(LIBRARY)
    product = folder / "libamdhip64.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", product, folder / "hip.c"], check=True)
    return product


@pytest.fixture
def seen(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    before = driver._active
    monkeypatch.setattr(libhip.FOUND, "found", None)
    with knobs.runtime.scope(), knobs.amd.scope(), knobs.cache.scope(), no_gpu_for_torch():
        knobs.cache.dir = str(path.parent / "cache")
        knobs.runtime.device = "hip"
        knobs.amd.libhip_path = str(path)
        driver.set_active(default_driver())
        yield ctypes.CDLL(str(path))
        driver.set_active(before)


def test_the_library_is_used(seen: ctypes.CDLL) -> None:
    active = driver.active
    assert type(active) is HipDriver and str(active.get_current_target()) == "hip:gfx942"
    assert active.utils.get_device_properties(1)["multiprocessor_count"] == 303
    x = DeviceArray.of(np.arange(64, dtype="f4"))
    assert (x.numpy() == np.arange(64)).all() and not DeviceArray(8).fill(0)
    first, last = (hip_device.Event(enable_timing=True) for _ in range(2))
    first.record()
    last.record()
    last.synchronize()
    assert first.elapsed_time(last) == 2.5
    with pytest.raises(libhip.HipError, match=r"Code: 2, Messsage: out of memory \(hipMalloc\)"):
        DeviceArray(1 << 31)
    with pytest.raises(ValueError, match="cannot be accessed"):
        active.check_arguments([np.zeros(4)])
    assert ctypes.c_int.in_dll(seen, "forgotten").value == 1


def test_launches_by_python_and_by_machine_code_are_the_same(seen: ctypes.CDLL) -> None:
    x, side = DeviceArray(256), hip_device.Stream()
    got = []
    with hip_device.stream(side):
        for count in range(1, 4):
            kernel = scaled[(3, 2)](x, 60, 0.5, BLOCK=64)
            numbers = (ctypes.c_uint32 * 9).in_dll(seen, "launch")
            values = bytes((ctypes.c_char * 64).in_dll(seen, "values"))
            offsets = [ctypes.c_void_p.in_dll(seen, name).value for name in ("stream", "extra")]
            assert ctypes.c_int.in_dll(seen, "launches").value == count
            got.append(([*numbers], values, offsets))
    assert got[0] == got[1] == got[2] and (kernel.n_regs, kernel.n_max_threads) == (7, 256)
    numbers, values, offsets = got[0]
    assert numbers == [1, 3, 2, 1, 256, 1, 1, 0, 0] and offsets == [side.cuda_stream, None]
    assert int.from_bytes(values[:8], "little") == x.data_ptr() and values[8:12] == (60).to_bytes(4, "little")
    assert values[16:20] == np.float32(0.5).tobytes() and values[24:40] == bytes(16)
    with pytest.raises(libhip.HipError, match=r"Code: 719, Messsage: some error \[launch of scaled: 1 x 7 x 1 blocks"):
        scaled[(1, 7)](x, 60, 0.5, BLOCK=64)


def test_where_it_is_looked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "lib").mkdir()
    shutil.copy(path, path.parent / "lib")
    for variable in ("LD_LIBRARY_PATH", "HIP_PATH", "ROCM_PATH"):
        folder = path.parent if variable == "LD_LIBRARY_PATH" else path.parent / "lib"
        with monkeypatch.context() as patch:
            patch.setattr("tilework.targets.amd.libhip.SONAMES", ())  # another test has loaded it: so would be found
            patch.setenv(variable, str(folder if variable == "LD_LIBRARY_PATH" else path.parent))
            assert libhip.load()._name == str(folder / "libamdhip64.so")
