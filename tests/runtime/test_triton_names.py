"""Names that programs written for Triton use, under `as_triton`: what they are, and what they do."""

import pytest

BACKENDS = """
import triton
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase

assert list(triton.backends.backends)[:2] == ["nvidia", "amd"]
for backend in triton.backends.backends.values():
    assert issubclass(backend.compiler, BaseBackend) and issubclass(backend.driver, DriverBase)
driver = triton.runtime.driver
cpu = triton.backends.backends["cpu"]
assert isinstance(driver.active, cpu.driver) and cpu.driver.is_active()
driver.set_active(cpu.driver())
target = driver.active.get_current_target()
assert cpu.compiler.supports_target(target) and driver.active.map_python_to_cpp_type("i32") == "int32_t"
for target in (target, GPUTarget("cuda", 90, 32)):
    backend = triton.compiler.compiler.make_backend(target)
    options = backend.parse_options({})
    assert isinstance(backend, BaseBackend) and options.__dict__["num_warps"] == 4
    assert "min_dot_size" in backend.get_codegen_implementation(options) and backend.get_module_map() is not None
    stages = {}
    backend.add_stages(stages, options)
    print(*stages)
"""


def test_backends_by_name(triton_program) -> None:
    first = "import triton.runtime.driver\n"  # must not replace the driver of that name
    assert (
        triton_program(first + BACKENDS, TILEWORK_DEVICE="native") == "ttir ttcir llir obj\nttir ttgir llir ptx cubin\n"
    )


LATE = """
import triton, sys
assert triton.compiler.errors.CompilationError and triton._C.libtriton.native_specialize_impl
assert not hasattr(triton.compiler.compiler, "AttrsDescriptor")
assert not hasattr(triton.backends.compiler, "AttrsDescriptor")
import triton.compiler
triton.compiler.errors, triton.compiler.code_generator
key = "ab" * 32
assert triton.runtime.cache._base32(key) in triton.runtime.cache.FileCacheManager(key).cache_dir
import triton.language as tl
assert tl.extra.cpu.libdevice.exp is tl.extra.libdevice.exp
from triton.language.extra.cpu.libdevice import exp
assert "backends" in dir(triton.backends) and "jit" in dir(triton) and "autotune" in dir(triton)
"""


@pytest.mark.parametrize(
    "first", ["", "import tilework.compiler, tilework.runtime.kernel_cache.managers, tilework.targets\n"]
)
def test_names_without_their_own_import(triton_program_alone, first: str) -> None:
    """Attributes exist after `import triton` alone, whatever was imported before."""
    triton_program_alone(first + LATE)


PRUNING = """
import numpy as np, triton, triton.language as tl
from triton.runtime.autotuner import Autotuner

class Mine(Autotuner):
    def prune_configs(self, kwargs):
        seen.append((sorted(self.nargs), sorted(kwargs)))
        return super().prune_configs(kwargs)

    def _bench(self, *args, config, **meta):
        seen.append((len(args), config.kwargs["BLOCK"], self.nargs["n"]))
        return super()._bench(*args, config=config, **meta)

@triton.jit
def fill(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)

seen = []
prune = {"early_config_prune": lambda configs, named, **kwargs: configs[: named["n"] // 50]}
configs = [triton.Config({"BLOCK": size}) for size in (16, 32, 64)]
bench = lambda call, quantiles: call() or [1.0] * 3
tuner = Mine(fill, fill.arg_names, configs, ["n"], None, None, prune_configs_by=prune, do_bench=bench)
x = np.zeros(100, np.float32)
tuner[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, 100)
assert x.all() and tuner.nargs is None
passed = ["grid", "warmup"] if "warmup" in seen[0][1] else ["grid"]
assert seen == [(["n", "x"], passed), (2, 16, 100), (2, 32, 100)], seen
"""


def test_an_autotuner_of_ones_own(triton_program) -> None:
    """Inductor's pruning: `prune_configs(kwargs)` finds the positional arguments in `nargs`."""
    triton_program(PRUNING, TILEWORK_COMPILE_WORKERS="1")


def test_small_functions() -> None:
    from collections import namedtuple

    from tilework import language as tl
    from tilework.triton import runtime

    Pair = namedtuple("Pair", "a b")
    values = [1, ("s", 2, Pair("q", [3, "t"])), [], "u", tl.tuple([4])]
    paths = runtime.find_paths_if(values, lambda path, value: isinstance(value, str))
    assert paths == [(1, 0), (1, 2, 0), (1, 2, 1, 1), (3,)]
    assert [runtime.get_iterable_path(values, path) for path in paths] == ["s", "q", "t", "u"]
    runtime.set_iterable_path(values, (4, 0), 5)
    assert values[4][0] == 5 and runtime.get_iterable_path(values, ()) is values
    with pytest.raises(AssertionError):
        runtime.set_iterable_path(values, (1, 0), 5)
    bits = ("i1", 1), ("int32", 32), ("half", 16), ("float8_e5m2", 8), ("void", 0), ("u64", 64), ("bool", 1)
    assert (
        all(runtime.get_primitive_bitwidth(name) == width for name, width in bits) and len(runtime.BITWIDTH_DICT) == 48
    )
    assert runtime.is_namedtuple(Pair) and not runtime.is_namedtuple(Pair(1, 2)) and not runtime.is_namedtuple(tuple)
    assert [n for n in range(-4, 9) if runtime.is_power_of_two(n)] == [0, 1, 2, 4, 8]


KERNEL_NAMES = """
import inspect, numpy as np, triton, triton.language as tl
from triton.language.standard import _compare_and_swap, _bitonic_merge, sort_impl
from triton.language.extra import libdevice

@triton.jit
def kernel(x, out, n, WHICH: tl.constexpr, BLOCK: tl.constexpr = 16):
    v = tl.load(x + tl.arange(0, BLOCK))
    if WHICH == 0:
        bits: tl.constexpr = tl.standard._log2(BLOCK)
        r = v + bits + tl.core.CONSTEXPR_0
    elif WHICH == 1:
        r = tl.reshape(_compare_and_swap(tl.reshape(v, [2, 2, 2, 2]), 1, 3), [BLOCK])
    elif WHICH == 2:
        r = _bitonic_merge(v, 3, 2, 4)
    elif WHICH == 3:
        r = sort_impl(v, None, None, 1)
    elif WHICH == 4:
        r = tl.reduce(v, 0, tl.standard._elementwise_max) + tl.zeros([BLOCK], tl.float32)
    elif WHICH == 5:
        r = libdevice.abs(arg0=libdevice.pow(v, arg1=v * 0 + 1))
    else:
        r = v * 0 + tl.core.builtin_max(n, 3)
    tl.store(out + tl.arange(0, BLOCK), r)

x = np.array([2, 11, 10, 3, 0, 4, 7, 5, 12, 14, 9, 6, 8, 13, 15, 1], np.float32)
expected = [
    x + 4,
    np.concatenate([np.maximum(x[:8], x[8:]), np.minimum(x[:8], x[8:])]),
    [0, 3, 4, 7, 2, 5, 10, 11, 15, 14, 12, 6, 13, 9, 8, 1],  # as Triton's interpreter
    np.sort(x)[::-1],
    [15] * 16,
    x,
    [5] * 16,
]
for which, wanted in enumerate(expected):
    out = np.zeros(16, np.float32)
    kernel[(1,)](x, out, 5, which)
    assert np.array_equal(out, np.asarray(wanted, np.float32)), (which, out)
assert list(inspect.signature(kernel).parameters) == ["x", "out", "n", "WHICH", "BLOCK"]
assert inspect.signature(tl.sum).parameters["axis"].default is None
assert "dtype" in inspect.signature(tl.tensor.sum).parameters
assert str(inspect.signature(triton.JITFunction)).startswith("(fn: ")
assert str(inspect.signature(libdevice.fma)).count("arg") == 3
assert isinstance(tl.core.tensor_descriptor_base, type) and tl.float32.codegen_name() == "float32"
assert not tl.core.dtype.is_ptr()
from triton._internal_testing import get_hip_lds_size, is_hip_gfx11, is_hip_gfx12, requires_tma, tma_skip_msg
assert requires_tma.args == (False,) and not is_hip_gfx11() and not is_hip_gfx12() and get_hip_lds_size() == 65536
assert "TMA" in tma_skip_msg()
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils, ty_to_cpp as hip_type
assert triton.backends.backends["amd"].driver is HIPDriver and hip_type("*fp32") == "hipDeviceptr_t"
from triton.backends.nvidia.driver import include_dirs, library_dirs, ty_to_cpp
assert isinstance(include_dirs, list) and callable(library_dirs) and ty_to_cpp("*fp32") == "CUdeviceptr"
from triton.runtime.jit import convert_to_tuple_if_list, get_full_name, serialize_specialization_data
assert get_full_name(kernel) == "__main__.kernel" and convert_to_tuple_if_list([1, [2, (3, [4])]]) == (1, (2, (3, [4])))
"""


@pytest.mark.parametrize("interpret", ["0", "1"])
def test_private_helpers_work_in_kernels(triton_program, interpret: str) -> None:
    script = KERNEL_NAMES
    if interpret == "1":  # functions of the library are then interpreted, and have no signature of their own
        script = script.partition("assert list(inspect")[0]
    triton_program(script, TRITON_INTERPRET=interpret, TILEWORK_DEVICE="native")


def test_arity_of_libdevice_is_checked(triton_program) -> None:
    triton_program(
        "import triton, triton.language as tl\n"
        "from triton.language.extra import libdevice\n"
        "from triton.backends.compiler import GPUTarget\n"
        "@triton.jit\ndef kernel(x):\n    tl.store(x, libdevice.exp(tl.load(x), 1.0))\n"
        "try:\n    triton.compile(triton.compiler.ASTSource(kernel, {'x': '*fp32'}), target=GPUTarget('cuda', 90, "
        "32))\n"
        "    raise SystemExit('compiled')\n"
        "except triton.CompilationError as error:\n    assert 'exp() takes at most 1 argument' in str(error), error\n"
    )


def test_torch_finds_what_a_kernel_writes(triton_program) -> None:
    """torch.compile finds the outputs of a user's kernel through make_ir and the walk over the module."""
    pytest.importorskip("torch")
    printed = triton_program(
        "import torch, triton, triton.language as tl\n"
        "from torch._higher_order_ops import triton_kernel_wrap as wrap\n"
        "@triton.jit\n"
        "def kernel(x, y, out, n, BLOCK: tl.constexpr):\n"
        "    for j in range(2):\n"
        "        i = tl.arange(0, BLOCK)\n"
        "        if n > 3:\n"
        "            tl.store(out + i, tl.load(x + i) + tl.load(y + i), mask=i < n)\n"
        "a = torch.ones(16)\n"
        "given = {'x': a, 'y': a, 'out': a, 'n': 4, 'BLOCK': 16}\n"
        "module, names = wrap.generate_ttir(kernel, dict(given), {})\n"
        "assert names == ['x', 'y', 'out', 'n'] and list(wrap.ttir_to_functions(module)) == ['kernel']\n"
        "found = wrap.identify_accessed_tensors(kernel, dict(given), {}).read_writes\n"
        "print(sorted(dep.name for dep in found.writes), sorted(dep.name for dep in found.reads))\n"
    )
    assert printed == "['out'] ['x', 'y']\n"


HABITS = """
import collections
import numpy as np, triton, triton.language as tl
import triton.testing
from triton import knobs
from triton._C.libtriton import amd, ir, native_specialize_impl
from triton.backends.amd.compiler import get_min_dot_size
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon.language import NVMMASharedLayout as Layout
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as WithLayout
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

Pair = collections.namedtuple("Pair", "a b")
default, matrix = Layout.get_default_for, np.zeros((64, 64), np.float16)
described = WithLayout.from_tensor(matrix, [64, 64], Layout(128, 16))

@triton.jit
def loops(x, out, n, N: tl.constexpr, MARKED: tl.constexpr, ROUNDS: tl.constexpr):
    offsets = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for i in tl.range(0, ROUNDS if ROUNDS else n, disable_licm=MARKED):
        total += tl.load(x + offsets) * i
    tl.store(out + offsets, total)

def llir(marked=False, rounds=0, **settings):
    with knobs.compilation.scope():
        for name, value in settings.items():
            setattr(knobs.compilation, name, value)
        x = np.zeros(16, np.float32)
        loops.device_caches.clear()
        return loops.warmup(x, x, 5, 16, marked, rounds, grid=(1,)).asm["llir"]

def swizzle(*args, **kwargs):
    found = default(*args, **kwargs)
    return found.swizzle_byte_width, found.rank

def refused(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def starred(module, names):
    scope = {}
    exec(f"from triton.{module} import *", scope)
    return sorted({*names.split()} & {*scope})

def passes():
    pm = ir.pass_manager(ir.context())
    amd.passes.ttgpuir.add_accelerate_matmul(pm, "gfx942", 16, 2)
    amd.passes.ttgpuir.add_pipeline(pm, True, False)
    amd.passes.ttgpuir.add_convert_to_buffer_ops(pm, "gfx942", True, False)
    amd.load_dialects(ir.context())
    return pm.items
"""
ROWS = {
    "native_specialize_impl(None, Pair(1, 16), False, True, True)": '(Pair("constexpr", "i32"), (1, "D"))',
    "native_specialize_impl(None, (2, Pair(2.0, (3,))), False, True, True)[1]": '("", (None, ("",)))',
    "isinstance(described, TensorDescriptor) or issubclass(TensorDescriptor, WithLayout)": "False",
    "(described.layout, described.padding, described.strides)": '(Layout(128, 16), "zero", [64, 1])',
    "refused(lambda: WithLayout(matrix, [64, 64], [64, 2], [64, 64], Layout(128, 16)))[:43]": (
        '"AssertionError: Last dimension must be contiguous"[:43]'
    ),
    "native_specialize_impl(None, described, False, True, True)[0][:22]": '"tensordesc<fp16[64, 64]"[:22]',
    # debug info is asked for by one variable and refused by another
    '"!DILocalVariable" in llir(dump_ir_extract_di_local_variables=True)': "True",
    '"!DI" in llir(dump_ir_extract_di_local_variables=True, disable_line_info=True)': "False",
    # short loops, long ones, and those of unknown length have code of their own
    '["llvm.licm.disable" in llir(True, rounds) for rounds in (0, 3, 10**6)]': "[True] * 3",
    '["llvm.licm.disable" in llir(False, rounds) for rounds in (0, 3, 10**6)]': "[False] * 3",
    'sorted(set("load store arange constexpr dtype float32 jit Any import_module".split()) & set(tl.__all__))': (
        'sorted("load store arange constexpr dtype float32".split())'
    ),
    "[name for name in tl.__all__ if not hasattr(tl, name)]": "[]",
    # what `from MODULE import *` gives; modules inside of the language would hide Python's
    'starred("compiler", "max_shared_mem compile Launch")': '["compile", "max_shared_mem"]',
    'starred("runtime", "driver autotune reinterpret Config jit")': '["Config", "autotune", "driver", "reinterpret"]',
    'starred("language", "extra math target_info random typing core fp32 load")': (
        '["extra", "load", "math", "target_info"]'
    ),
    "driver.active._obj is driver.active": "True",
    "driver._create_driver().get_current_target() == driver.active.get_current_target()": "True",
    "__import__('triton.runtime.driver', fromlist=['x'])._create_driver().get_current_target().backend": '"cpu"',
    'llir() and loops.device_caches["cpu"] is loops.device_caches[0]': "True",
    "list(loops.device_caches)": "[0]",
    'refused(lambda: loops.device_caches["nothing"])': "\"KeyError: 'nothing'\"",
    "triton.testing.runtime is triton.runtime": "True",
    'triton.testing._summarize_statistics(np.arange(5.0), [0.5], "mean")': "2.0",
    'triton.testing._summarize_statistics(np.arange(5.0), [0.25, 0.5], "mean")': "[1.0, 2.0]",
    '[triton.testing._summarize_statistics([3, 1, 2], None, mode) for mode in ("min", "max", "mean", "median")]': (
        "[1.0, 3.0, 2.0, 2.0]"
    ),
    'get_min_dot_size(GPUTarget("hip", "gfx942", 64))(tl.float16, tl.float16)': "(1, 1, 1)",
    "passes()": (
        '["tritonamdgpu-accelerate-matmul{arch-generation-name=gfx942 matrix-instruction-size=16 kPack=2}", '
        '"tritonamdgpu-pipeline{use-async-copy=true}",'
        ' "tritonamdgpu-convert-buffer-ops{arch-generation-name=gfx942 allow-buffer-atomics=true'
        ' analyze-small-tensor-ofst=false}"]'
    ),
    "swizzle((64, 64), tl.float16)": "(128, 2)",
    "swizzle((64, 32), tl.float16)": "(64, 2)",
    "swizzle((64, 16), tl.float16)": "(32, 2)",
    "swizzle((64, 8), tl.float16)": "(0, 2)",
    "swizzle((4, 64), tl.float16)": "(0, 2)",
    "swizzle((64,), tl.float16)": "(0, 1)",
    "swizzle((64, 128), tl.float8e5, transposed=True)": "(64, 2)",
    "swizzle((128, 64), tl.uint8, fp4_padded=True)": "(128, 2)",
    "swizzle((2, 64, 64), tl.float32)": "(128, 3)",
    "swizzle((64, 64), tl.float16, cga_layout=[[0, 1]])": "(64, 2)",
    "refused(lambda: default((64, 3), tl.float16, cga_layout=[[0, 1]]))": (
        '"AssertionError: Shape [64, 3] is not divisible by CGA layout [[0, 1]]"'
    ),
}


def test_what_projects_rely_on(triton_program) -> None:
    """Names and small behaviours of Triton, a row each: an expression and what it gives."""
    checks = "".join(
        f"found, wanted = {said}, {wanted}\nif found != wanted: print({said!r}, found, wanted)\n"
        for said, wanted in ROWS.items()
    )
    assert triton_program(HABITS + checks, TILEWORK_DEVICE="native") == ""


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # so that an import of it fails
import numpy as np, triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], ["n"],
                 do_bench=lambda call, quantiles: call() or [1.0])
@triton.jit
def ramp(out, one, n, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, 16), tl.arange(0, 16), mask=tl.arange(0, 16) < n)
    for i in range(tl.sum(tl.load(one + tl.arange(0, 1)))):  # a block of one number is a number
        tl.store(out + i, BLOCK)

for _ in range(2):
    out = np.zeros(16, np.int32)
    ramp[(1,)](out, np.array([3], np.int32), 12)
    assert out.tolist() == [*[ramp.best_config.kwargs["BLOCK"]] * 3, *range(3, 12), 0, 0, 0, 0], out
if not triton.knobs.runtime.interpret:
    assert ramp.fn.warmup(out, out, 12, 8, grid=(1,)).asm["ttir"]
"""


@pytest.mark.parametrize("interpret", ["0", "1"])
def test_dispatch_and_launch_without_torch(triton_program_alone, interpret: str) -> None:
    """Triton 3.8 promises it."""
    triton_program_alone(WITHOUT_TORCH, TRITON_INTERPRET=interpret, TILEWORK_DEVICE="native")
