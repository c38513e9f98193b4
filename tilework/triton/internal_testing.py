"""The names that Triton's own tests import: dtypes, queries about the target, arrays with random contents.

    x = numpy_random((4, 8), "bfloat16")              # float32 values that bfloat16 represents exactly
    kernel[(1,)](to_triton(x, device="cuda", dst_type="bfloat16"), ...)

Where torch is not installed, `to_triton` gives NumPy arrays, which kernels take as well.
"""

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from tilework import knobs
from tilework import language as tl
from tilework.process.triton_version import follows
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.wrappers import TensorWrapper, reinterpret
from tilework.targets.base import GPUTarget

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = integral_dtypes + float_dtypes_with_bfloat16
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted({*dtypes_with_bfloat16} - {"int64", "uint64", "float64"})
HIP_LDS_SIZES = {"gfx950": 163840, "gfx1250": 327680}  # bytes; of all others 64 KiB

GROUPS = ("build", "redis", "cache", "compilation", "autotuning", "runtime", "language", "nvidia", "amd", "proton")


def is_interpreter() -> bool:
    """Return True if kernels run in the interpreter."""
    return knobs.runtime.interpret


def get_current_target() -> GPUTarget | None:
    """Return the target of kernels; None in the interpreter."""
    return None if is_interpreter() else driver.active.get_current_target()


def get_arch() -> str:
    """The architecture as text; empty in the interpreter."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def question(backend: str, *archs: str) -> Callable[[], bool]:
    """A question about the target: its backend, and how its architecture begins."""

    def holds() -> bool:
        target = get_current_target()
        return target is not None and target.backend == backend and get_arch().startswith(archs or ("",))

    return holds


is_cuda, is_hip, is_xpu = question("cuda"), question("hip"), question("xpu")
is_hip_cdna2, is_hip_cdna3, is_hip_cdna4 = (
    question("hip", "gfx90a"),
    question("hip", "gfx942"),
    question("hip", "gfx950"),
)
is_hip_cdna = question("hip", "gfx90a", "gfx942", "gfx950")
is_hip_rdna3, is_hip_rdna4, is_hip_gfx1250 = (question("hip", arch) for arch in ("gfx11", "gfx12", "gfx1250"))
is_hip_rdna = question("hip", "gfx11", "gfx12")
is_hip_gfx11, is_hip_gfx12, is_hip_cdna5 = is_hip_rdna3, is_hip_rdna4, is_hip_gfx1250  # names of 3.6, 3.6 and 3.8


def get_hip_lds_size() -> int:
    """The bytes of local memory that a program can have on an AMD GPU."""
    return HIP_LDS_SIZES.get(get_arch(), 65536)


def cuda_capability() -> int:
    """80, 90 ...; 0 when the target is no NVIDIA GPU."""
    return int(get_arch()) if is_cuda() else 0


def has_capability(least: int, end: int = 1000) -> Callable[[], bool]:
    return lambda: least <= cuda_capability() < end


is_ampere_or_newer, is_hopper_or_newer = has_capability(80), has_capability(90)
is_hopper, is_blackwell_ultra, is_sm12x = has_capability(90, 100), has_capability(103, 104), has_capability(120, 130)


def is_blackwell() -> bool:
    """Return True for capabilities 10 and, since 3.7, 11."""
    return 100 <= cuda_capability() < (120 if follows("capability-11") else 110)


def is_compile_warmup() -> bool:
    """Return True if tests compile their kernels without running them, a mode of Triton 3.8's own tests: here they
    always run."""
    return False


def supports_tma(byval_only: bool = False) -> bool:
    """Return True if descriptors work: the interpreter and every target here have them, in hardware or not."""
    return is_interpreter() or get_current_target() is not None


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test of descriptors is skipped."""
    what, release = ("__grid_constant__", "12.0") if byval_only else ("advanced", "12.3")
    return f"Requires {what} TMA support (NVIDIA Hopper or higher, CUDA {release} or higher)"


def __getattr__(name: str) -> Any:
    if name != "requires_tma":  # a mark that needs the target, which importing this module does not
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("pytest").mark.skipif(not supports_tma(), reason=tma_skip_msg())


def supports_ws() -> bool:
    """Return True if warps of one program can take different roles."""
    return is_hopper_or_newer()


def numpy_random(shape: Any, dtype_str: str, rs: Any = None, low: Any = None, high: Any = None) -> np.ndarray:
    """Random values of a dtype; integers are never 0, so that they can divide."""
    shape = (shape,) if isinstance(shape, int) else shape
    rs = np.random.RandomState(seed=17) if rs is None else rs
    if dtype_str in integral_dtypes:
        info = np.iinfo(getattr(np, dtype_str))
        low = info.min if low is None else max(low, info.min)
        high = info.max if high is None else min(high, info.max)
        found = rs.randint(low, high, shape, dtype=getattr(np, dtype_str))
        found[found == 0] = 1
        return found
    if dtype_str.startswith("float8"):
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        return (rs.normal(0, 1, shape).astype("float32").view("uint32") & np.uint32(0xFFFF0000)).view("float32")
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise RuntimeError(f"Unknown dtype {dtype_str}")


def torch_module() -> ModuleType | None:
    """torch, where it is installed."""
    return import_module("torch") if find_spec("torch") else None


def to_triton(x: np.ndarray, device: str, dst_type: str | None = None) -> Any:
    """An array as a kernel argument: a tensor on `device`; unsigned and fp8 types by reinterpretation."""
    torch = torch_module()

    def tensor(array: np.ndarray) -> Any:
        return array if torch is None else torch.tensor(array, device=device)

    if x.dtype.name in uint_dtypes:
        return reinterpret(tensor(x.astype(x.dtype.name.removeprefix("u"))), getattr(tl, x.dtype.name))
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor(x), getattr(tl, dst_type))
    if x.dtype.name == "float32" and dst_type == "bfloat16":
        return x.astype(import_module("ml_dtypes").bfloat16) if torch is None else tensor(x).bfloat16()
    return tensor(x)


def to_numpy(x: Any) -> np.ndarray:
    """The contents of what `to_triton` made."""
    if isinstance(x, TensorWrapper):
        return to_numpy(x.base).astype(getattr(np, torch_dtype_name(x.dtype)))
    if isinstance(x, np.ndarray):
        return x.astype(np.float32) if x.dtype.name == "bfloat16" else x
    return x.cpu().float().numpy() if torch_dtype_name(x.dtype) == "bfloat16" else x.cpu().numpy()


def str_to_triton_dtype(x: str) -> Any:
    """``"float32"`` -> `tl.float32`."""
    return tl.str_to_ty(x, None)


def torch_dtype_name(dtype: Any) -> str:
    """The name of a tl or torch dtype: ``"float32"``."""
    if isinstance(dtype, tl.dtype):
        return repr(dtype).rsplit(".", 1)[-1]
    return str(dtype).removeprefix("torch.")


def unwrap_tensor(t: Any) -> Any:
    """The tensor behind a `TensorWrapper`."""
    return t.base if isinstance(t, TensorWrapper) else t


def default_alloc_fn(size: int, align: int, stream: Any) -> Any:
    """Scratch memory for `set_allocator`: on the GPU where torch is installed, else on the host."""
    torch = torch_module()
    if torch is None:
        return TensorWrapper(np.empty(size, np.int8), tl.int8)
    return torch.empty(size, dtype=torch.int8, device="cuda" if is_cuda() else "cpu")


def _fresh_knobs_impl(skipped_attr: set[str] | None = None) -> tuple[Callable[[], ModuleType], Callable[[], None]]:
    """(start, stop): between them every knob group is a fresh copy, no variable of theirs is set, and both
    propagate."""
    skipped = skipped_attr or set()
    stack = ExitStack()

    def start() -> ModuleType:
        stack.callback(setattr, knobs, "propagate_env", knobs.propagate_env)
        knobs.propagate_env = True
        for name in GROUPS:
            group = getattr(knobs, name)
            if name not in skipped:
                stack.callback(setattr, knobs, name, group)
                stack.enter_context(group.scope())
                for key in group.variables:
                    knobs.setenv(key, None)
                setattr(knobs, name, type(group)())
        return knobs

    return start, stack.close
