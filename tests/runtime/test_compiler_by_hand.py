"""Under `as_triton`, programs drive the compiler by hand: sources, stages, passes, and a hook over the stages."""

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
before, pm = str(other), ir.pass_manager(context)
passes.ttgpuir.add_hoist_tmem_alloc(pm, True)
pm.run(other, "without tensor memory")
assert str(other) == before and "tritongpu-hoist-tmem-alloc" in pm.get_pipeline_str()

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


def test_the_compiler_driven_by_hand(triton_program) -> None:
    """Sources make modules, backends have their stages as methods, passes can be run one by one."""
    triton_program(STAGES)


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


def test_the_stages_hook_gets_functions_of_product_and_metadata(triton_program) -> None:
    triton_program(HOOK)
