"""Names that programs written for Triton use, under `as_triton`: what they are, and what they do."""

import ctypes
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.python_programs import run_python
from tests.runtime.forked_script import run_forked

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path):
    """Run a program that says `import triton`; what it printed."""
    script = tmp_path_factory.mktemp("names") / "program.py"

    def runner(text: str, **environment: str) -> str:
        script.write_text(text)
        settings = {"TRITON_CACHE_DIR": str(warm_cache), "TRITON_INTERPRET": "0", **environment}
        code, printed, error = run_forked(script, settings, says_triton=True)
        assert code == 0, error
        return printed

    return runner


@pytest.fixture(scope="module")
def run_alone(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path):
    """The same in a process of its own, in which nothing of tilework has been imported."""
    folder = tmp_path_factory.mktemp("names")

    def runner(script: str, **environment: str) -> str:
        (folder / "program.py").write_text(script)
        settings = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRITON_CACHE_DIR": str(warm_cache),
            "TRITON_INTERPRET": "0",
        }
        done = run_python("-m", "tilework.as_triton", "program.py", cwd=folder, env=settings | environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return runner


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


def test_backends_by_name(run) -> None:
    first = "import triton.runtime.driver\n"  # must not replace the driver of that name
    assert run(first + BACKENDS, TILEWORK_DEVICE="native") == "ttir ttcir llir obj\nttir ttgir llir ptx cubin\n"


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
def test_names_without_their_own_import(run_alone, first: str) -> None:
    """Attributes are there after `import triton` alone, whatever was imported before."""
    run_alone(first + LATE)


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


def test_an_autotuner_of_ones_own(run) -> None:
    """Inductor's pruning: `prune_configs(kwargs)` finds the positional arguments in `nargs`."""
    run(PRUNING, TILEWORK_COMPILE_WORKERS="1")


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


STAGES = """
import os
import triton, triton.language as tl
from triton._C.libtriton import ir, llvm, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, CompiledKernel, IRSource, make_backend

@triton.jit
def helper(x):
    return tl.exp(x)

@triton.jit
def kernel(x, n, B: tl.constexpr):
    for i in range(n):
        p = x + i * B + tl.arange(0, B)
        tl.store(p, helper(tl.load(p)))

target = GPUTarget("cuda", 90, 32)
backend = make_backend(target)
options = backend.parse_options({"num_warps": 2})
context = ir.context()
ir.load_dialects(context)
backend.load_dialects(context)
source = ASTSource(kernel, {"x": "*fp32", "n": "i32", "B": "constexpr"}, {"B": 128}, {(0,): [["tt.divisibility", 16]]})
codegen = backend.get_codegen_implementation(options)
make = lambda: source.make_ir(target, options, codegen, backend.get_module_map(), context)
module = make()
assert isinstance(module, ir.module) and module.verify() and module.context is context
assert module.get_entry_func_name() == "kernel" and not module.has_function("other")
assert module.get_function_signature(module.get_function("kernel")) == ["*f32", "i32"]

seen, names = {}, []
def walk(op):
    names.append(op.get_name())
    seen[op.get_name()] = op
module.walk(walk)
assert names[-2:] == ["tt.func", "builtin.module"] and names.index("scf.yield") < names.index("scf.for")
assert "helper" in seen["tt.call"].get_flat_symbol_ref_attr("callee")
load, store = seen["tt.load"], seen["tt.store"]
assert load.get_bool_attr("isVolatile") is False and load.get_str_attr("absent") is None
assert seen["tt.call"].get_operand(0).id() == load.get_result(0).id()
assert str(load.get_result(0).get_type()) == "tensor<128xf32>"
body = store.get_block()
assert body.id() == load.get_block().id() and body.has_terminator() and body.get_num_arguments() == 1
assert body.get_parent().id() == seen["scf.for"].get_region(0).id() and seen["builtin.module"].get_block() is None
assert "loc(" in str(module) and "loc(" not in module.str_nodebug() and "%arg0" in module.str_nodebug()

metadata = {}
ttgir = backend.make_ttgir(backend.make_ttir(module, metadata, options, 90), metadata, options, 90)
assert ttgir.get_int_attr("ttg.num-warps") == 2 and "#blocked" in str(ttgir)
types = []
ttgir.walk(lambda op: types.append(str(op.get_result(0).get_type())) if op.get_name() == "tt.load" else None)
assert types[0].startswith("tensor<128xf32, #ttg.blocked<{sizePerThread"), types
llir = backend.make_llir(ttgir, metadata, options, 90)
ptx = backend.make_ptx(llir, metadata, options, 90)
assert metadata["shared"] == 0 and metadata["num_warps"] == 2 and metadata["name"] == "kernel"
assert ".target sm_90a" in ptx
assert ".target sm_80" in backend.make_ptx(backend.make_llir(ttgir, {}, options, 80), {}, options, 80)

other, pm = make(), ir.pass_manager(context)
passes.common.add_inliner(pm)
passes.ttir.add_convert_to_ttgpuir(pm, "cuda:90", 2, 32, 1)
passes.ttgpuir.add_coalesce(pm)
passes.ttgpuir.add_pipeline(pm, 3, False)
pm.run(other, "mine")
assert "#blocked" in str(other) and "tritongpu-coalesce" in pm.get_pipeline_str()
try:
    passes.ttgpuir.add_hoist_tmem_alloc(pm, True)
except NotImplementedError as error:
    assert "tritongpu-hoist-tmem-alloc" in str(error)

linked = llvm.to_module(ttgir, llvm.context())
linked.text += "declare i32 @answer()\\n"
assert nvidia.has_extern_deps(linked)
call = "%a = call i32 @answer()\\n  store volatile i32 %a, ptr null\\n  ret void"
linked.text = linked.text.replace("ret void", call, 1)
open("library.ll", "w").write("define i32 @answer() { ret i32 42 }\\n")
llvm.link_extern_libs(linked, ["library.ll"])
llvm.optimize_module(linked, llvm.OPTIMIZE_O3)
assert "ptx_kernel" in str(linked) and "store volatile i32 42" in str(linked), str(linked)
assert not nvidia.has_extern_deps(linked), str(linked)
ptx = llvm.translate_to_asm(str(linked), "nvptx64-nvidia-cuda", "sm_90", "+ptx80", [], True, False)
assert ".visible .entry kernel" in ptx

amd = make_backend(GPUTarget("hip", "gfx942", 64))
listed, settings = {}, amd.parse_options({})
amd.add_stages(listed, settings, source.language)
assert list(listed)[:3] == ["ttir", "ttgir", "llir"] and amd.supports_target(amd.target)
assert not amd.supports_target(target)
made = source.make_ir(amd.target, settings, amd.get_codegen_implementation(settings), amd.get_module_map(), context)
assert "threadsPerWarp = [64]" in str(listed["ttgir"](listed["ttir"](made, {}), {}))
compiled = triton.compile(source, target=target)
again = CompiledKernel(source, compiled.metadata_group, compiled.hash)
assert again.asm["ttir"] == compiled.asm["ttir"] and again.metadata == compiled.metadata and again.name == "kernel"
file = next(path for name, path in compiled.metadata_group.items() if name.endswith(".ttgir"))
read = IRSource(file, context, backend)
assert (read.name, read.signature) == ("@kernel", {0: "*f32", 1: "i32"})
assert read.parse_options() == {"num_ctas": 1, "num_warps": 4}
marked = os.path.join(os.path.dirname(file), "marked.ttir")
with open(marked, "w") as out:
    arguments = "%a: !tt.ptr<i8, 0> {tt.nv_tma_desc = 1 : i32}, %b: !tt.ptr<i8>, %n: i32"
    out.write(f"tt.func public @k({arguments}) {{ tt.return }}")
assert IRSource(marked, context, backend).signature == {0: "nvTmaDesc", 1: "*i8", 2: "i32"}
assert read.make_ir(target, options, None, None, context).get_entry_func_name() == "kernel"
assert ir.parse_mlir_module(file, context).get_int_attr("ttg.num-warps") == 4
assert (int(ir.MEM_SEMANTIC.ACQUIRE_RELEASE), int(ir.EVICT_LAST)) == (4, 3)
assert (ir.CACHE_MODIFIER.CG.name, ir.NONE) == ("CG", ir.CACHE_MODIFIER.NONE)
"""


def test_the_compiler_driven_by_hand(run) -> None:
    """Sources make modules, backends have their stages as methods, passes can be run one by one."""
    run(STAGES)


HOOK = """
import numpy as np, triton, triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget, Language

@triton.jit
def kernel(x):
    tl.store(x, tl.load(x) + 1)

log = []
def hook(self=None, stages=None, options=None, language=None, capability=None):
    if stages is None:
        return "key", "hash"
    backend = self
    log.append((list(stages), language is Language.TRITON, capability))
    ttir, ptx = stages["ttir"], stages["ptx"]
    def mine(module, metadata):
        module = backend.make_ttir(module, metadata, options, capability)
        log.append(type(module).__name__)
        return module
    stages["ttir"] = mine
    stages["ptx"] = lambda text, metadata: log.append(sorted(metadata)) or ptx(text, metadata) + "// mine\\n"

knobs.runtime.add_stages_inspection_hook = hook
source = triton.compiler.ASTSource(kernel, {"x": "*fp32"})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
assert log[0] == (["ttir", "ttgir", "llir", "ptx", "cubin"], True, 90) and log[1] == "module" and "name" in log[2]
assert compiled.asm["ptx"].endswith("// mine\\n") and compiled.asm["cubin"]
"""


def test_the_stages_hook_gets_functions_of_product_and_metadata(run) -> None:
    run(HOOK)


def test_linear_layouts_as_tritons_class() -> None:
    from tilework.triton.linear_layout import LinearLayout

    layout = LinearLayout.from_bases(
        [("register", [[0, 1], [0, 2]]), ("lane", [[1, 0]]), ("block", [])], ["dim0", "dim1"]
    )
    assert (
        str(layout)
        == repr(layout)
        == (
            "\n - register=1 -> (0, 1)\n   register=2 -> (0, 2)\n - lane=1 -> (1, 0)\n - block is a size 1 dimension\n"
            "where out dims are: [dim0 (size 2), dim1 (size 4)]"
        )
    )
    assert str(LinearLayout()) == "\n(empty layout)" and LinearLayout().bases == [] and LinearLayout().apply({}) == {}
    assert layout.bases == [("register", [[0, 1], [0, 2]]), ("lane", [[1, 0]]), ("block", [])]
    assert layout.out_dims == [("dim0", 2), ("dim1", 4)] and (layout.num_in_dims, layout.num_out_dims) == (3, 2)
    assert (layout.get_in_dim_names(), layout.get_out_dim_names()) == (["register", "lane", "block"], ["dim0", "dim1"])
    assert layout.is_surjective() and layout.is_injective() and layout.is_invertible()
    assert layout.apply({"register": 3, "lane": 1, "block": 0}) == {"dim0": 1, "dim1": 3}
    assert layout.get_matrix_view() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert layout.invert() == layout.pseudoinvert() and layout.invert().out_dims == [
        ("register", 4),
        ("lane", 2),
        ("block", 1),
    ]
    lanes, warps = (
        LinearLayout.identity_1d(4, "lane", "dim0"),
        LinearLayout.identity_1d(size=2, inDim="warp", outDim="dim0"),
    )
    product = lanes * warps
    lanes *= warps
    assert lanes == product and product != warps and product.bases == [("lane", [[1], [2]]), ("warp", [[4]])]
    assert LinearLayout.strided_1d(4, 2, "r", "d").bases == [("r", [[2], [4]])]
    assert LinearLayout.strided_1d(4, 2, "r", "d").out_dims == [("d", 8)] and LinearLayout.zeros_1d(
        4, "r", "d", 8
    ).out_dims == [("d", 8)]
    assert LinearLayout.identity_1d(4, "r", "d").compose(LinearLayout.strided_1d(4, 2, "d", "e")).bases == [
        ("r", [[2], [4]])
    ]
    assert product.invert_and_compose(product).apply({"lane": 3, "warp": 1}) == {"lane": 3, "warp": 1}
    shared = LinearLayout.from_bases([("offset", [[0, 1], [1, 0]]), ("block", [])], ["dim0", "dim1"])
    assert shared.get_shared_view(
        False
    ) == "[[(0:0),(0:1)]\n[ (1:0),(1:1)]]\n" and "Offset: 3 -> (1,1)" in shared.get_shared_view(True)
    threads = LinearLayout.from_bases(
        [("register", []), ("lane", [[0, 1]]), ("warp", [[1, 0]]), ("block", [])], ["dim0", "dim1"]
    )
    assert threads.get_distributed_view(False) == "[[T0:0, T1:0]\n[ T2:0, T3:0]]\n" and threads.get_distributed_view(
        True
    ).startswith("Warp0:\n")
    wide = LinearLayout.from_bases([("r", [[1], [2]])], ["d"], [8], require_surjective=False)
    assert not wide.is_surjective() and not LinearLayout.from_bases([("r", [[2]])], ["d"]).is_surjective()
    for wrong, message in [
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], None, False), "must be provided"),
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], [2, 2]), "the same length"),
        (lambda: LinearLayout.from_bases([("r", [[1]])], ["d"], [8]), "require_surjective"),
        (lambda: LinearLayout.identity_1d(3, "r", "d"), "power"),
        (lambda: layout.apply({"register": 1}), "all ins"),
        (lambda: wide.invert(), "inverse"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong()
    for wrong in (
        lambda: product == 3,
        lambda: product * 3,  # pyright: ignore[reportOperatorIssue]
        lambda: hash(product),
        lambda: LinearLayout.from_bases({"r": [[1]]}, ["d"]),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(TypeError):
            wrong()


SASS = """
	code for sm_90
		Function : loop
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;                       /* 0x0000000102027810 */
                                                                                 /* 0x004fc80007ffe0ff */
        /*0020*/              @P0  BRA 0x10 ;                                    /* 0xfffffffc00f80947 */
                                                                                 /* 0x000fea000383ffff */
        /*0030*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
		Function : other
        /*0000*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
"""


def test_disassembly_shows_the_first_function_with_labels() -> None:
    from tilework import knobs
    from tilework.triton import disasm

    assert disasm.shown(SASS) == (
        "Function:loop\n--:-:-:-:1\tLDC R1, c[0x0][0x28];\nLBB0:\n04:-:-:Y:4\tIADD3 R2, R2, 0x1, RZ;\n"
        "--:-:-:-:5\t@P0  BRA LBB0;\n--:-:-:-:5\tEXIT;\n"
    )
    assert disasm.shown("no kernels\n") == ""
    if knobs.nvidia.find_tool("cuobjdump") is None:
        with pytest.raises(RuntimeError, match="Cannot find cuobjdump"):
            disasm.path_to_cuobjdump()


def test_cublas_says_what_is_missing() -> None:
    torch = pytest.importorskip("torch")
    from tilework.triton.cublas import CublasLt

    with pytest.raises(RuntimeError, match="a tensor on a CUDA device"):
        CublasLt(torch.empty(16))


class FakeCublas:
    """Records the attributes of products; all calls succeed, and there is an algorithm for everything."""

    def __init__(self) -> None:
        self.attributes: dict[int, tuple[int, int]] = {}  # by number: bytes, value
        self.products = 0

    def cublasLtMatmulDescSetAttribute(self, operation: Any, attribute: int, value: Any, size: Any) -> int:
        held = value._obj
        assert ctypes.sizeof(held) == size.value
        self.attributes[attribute] = size.value, held.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:
        arguments[-1]._obj.value = 1
        return 0

    def cublasLtMatmul(self, *arguments: Any) -> int:
        self.products += 1
        return 0

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: 0


class FakeMatrix:
    device, ndim = SimpleNamespace(type="cuda"), 2

    def __init__(self, shape: tuple[int, int], dtype: str) -> None:
        self.shape, self.dtype = shape, f"torch.{dtype}"

    def is_contiguous(self) -> bool:
        return True

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return 1

    def data_ptr(self) -> int:
        return 4096


@pytest.mark.parametrize(
    ("operands", "result"),
    [("float16", "float16"), ("float32", "float32"), ("float8_e4m3fn", "float16"), ("float8_e4m3fn", "float8_e4m3fn")],
)
def test_cublas_accumulates_fp8_fast(monkeypatch: pytest.MonkeyPatch, operands: str, result: str) -> None:
    """CUBLASLT_MATMUL_DESC_TRANSA and TRANSB are 3 and 4, of 32 bits, FAST_ACCUM is 25, of 8."""
    from tilework.triton import cublas

    fake = FakeCublas()
    monkeypatch.setattr(cublas, "library", lambda: fake)
    monkeypatch.setattr(cublas, "current_stream", lambda tensor: 0)
    blas = cublas.CublasLt(FakeMatrix((1, 64), "uint8"))
    blas.matmul(*(FakeMatrix((16, 16), kind) for kind in (operands, operands, result)))
    assert fake.products == 1
    assert fake.attributes == {3: (4, 1), 4: (4, 0)} | ({25: (1, 1)} if "float8" in operands else {})


@pytest.mark.parametrize(
    ("name", "dtype", "per_byte", "block", "mode"),
    [
        ("mxfp8", "float8_e4m3fn", 1, 32, 2),
        ("nvfp4", "uint8", 2, 16, 1),
    ],
)
def test_cublas_multiplies_blocks_with_scales(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str, per_byte: int, block: int, mode: int
) -> None:
    """CUBLASLT_MATMUL_DESC_A_SCALE_POINTER and B_SCALE_POINTER are 17 and 18, the modes 31 and 32: 1 is a fp8 for 16
    elements, 2 an e8m0 for 32. The first operand of cuBLAS is B."""
    from tilework.triton import cublas

    fake, layouts = FakeCublas(), []
    fake.cublasLtMatrixLayoutCreate = lambda layout, *facts: layouts.append([getattr(f, "value", f) for f in facts])  # pyright: ignore
    monkeypatch.setattr(cublas, "library", lambda: fake)
    monkeypatch.setattr(cublas, "check", lambda name, status: None)
    monkeypatch.setattr(cublas, "current_stream", lambda tensor: 0)
    monkeypatch.setattr(cublas, "capability", lambda tensor: (10, 0))
    blas = cublas.CublasLt(FakeMatrix((1, 64), "uint8"))
    multiply = getattr(blas, f"block_scaled_matmul_{name}")
    k = 256
    a, b = (FakeMatrix((rows, k // per_byte), dtype) for rows in (128, 384))
    scales = [FakeMatrix((rows, k // block), "uint8") for rows in (128, 384)]
    for address, scale in enumerate(scales):
        scale.data_ptr = lambda address=address: 64 * address + 64  # pyright: ignore
    c = FakeMatrix((128, 384), "float16")
    multiply(a, b, c, *scales)
    assert fake.products == 1 and [layout[1:] for layout in layouts[:2]] == [[k, 384, k], [k, 128, k]]
    kind = {"mxfp8": 28, "nvfp4": 33}[name]
    assert [layout[0] for layout in layouts] == [kind, kind, 2, 2]
    wanted = {17: (8, 128), 18: (8, 64), 31: (4, mode), 32: (4, mode)}
    assert {number: fake.attributes[number] for number in wanted} == wanted
    for wrong, words in [
        ((b, a, c, *scales), "the shapes of A, B and C are"),
        ((c, b, c, *scales), f"A is a matrix of {dtype}, not torch.float16"),
        ((a, b, a, *scales), "C is A @ B.T" if per_byte == 2 else "the shapes of A, B and C"),
        (
            (a, b, c, scales[0], scales[0]),
            f"B has 384 rows of {k // block} blocks.* reads {384 * k // block} scales.* are {128 * k // block}",
        ),
        ((a, b, FakeMatrix((128, 384), dtype), *scales), "C is float16, bfloat16 or float32"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            multiply(*wrong)
    monkeypatch.setattr(cublas, "capability", lambda tensor: (9, 0))
    with pytest.raises(RuntimeError, match=rf"block_scaled_matmul_{name} needs a GPU of compute capability 10\.0"):
        multiply(a, b, c, *scales)


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
def test_private_helpers_work_in_kernels(run, interpret: str) -> None:
    script = KERNEL_NAMES
    if interpret == "1":  # functions of the library are then interpreted, and have no signature of their own
        script = script.partition("assert list(inspect")[0]
    run(script, TRITON_INTERPRET=interpret, TILEWORK_DEVICE="native")


def test_arity_of_libdevice_is_checked(run) -> None:
    run(
        "import triton, triton.language as tl\n"
        "from triton.language.extra import libdevice\n"
        "from triton.backends.compiler import GPUTarget\n"
        "@triton.jit\ndef kernel(x):\n    tl.store(x, libdevice.exp(tl.load(x), 1.0))\n"
        "try:\n    triton.compile(triton.compiler.ASTSource(kernel, {'x': '*fp32'}), target=GPUTarget('cuda', 90, "
        "32))\n"
        "    raise SystemExit('compiled')\n"
        "except triton.CompilationError as error:\n    assert 'exp() takes at most 1 argument' in str(error), error\n"
    )


def test_torch_finds_what_a_kernel_writes(run) -> None:
    """torch.compile finds the outputs of a user's kernel through make_ir and the walk over the module."""
    pytest.importorskip("torch")
    printed = run(
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


def test_what_projects_rely_on(run) -> None:
    """Names and small behaviours of Triton, a row each: an expression and what it gives."""
    checks = "".join(
        f"found, wanted = {said}, {wanted}\nif found != wanted: print({said!r}, found, wanted)\n"
        for said, wanted in ROWS.items()
    )
    assert run(HABITS + checks, TILEWORK_DEVICE="native") == ""
