"""The backends with Triton's names and interface: `BaseBackend`, and the compilers for CUDA, HIP and the host.

`BaseBackend` is Triton's interface of a backend, for packages that add one and programs that query one about arguments.
It is a `Backend` of tilework: the entries of `add_stages` are its stages, and what they write into the metadata are its
facts.

    >>> BaseBackend.get_int_specialization(1024, align=True), HIPBackend.parse_attr("DS")
    ('D', [['tt.divisibility', 16], ['tt.pointer_range', 32]])
    >>> CUDABackend(GPUTarget("cuda", 90, 32)).parse_options({"num_warps": 8}).default_dot_input_precision
    'tf32'
    >>> backends["nvidia"].compiler, backends["cpu"].driver
    (<class 'tilework.triton.backends.CUDABackend'>, <class 'tilework.runtime.devices.host.driver.CpuDriver'>)

The stages can be run by hand; each adds its facts about the kernel to `metadata`:

    backend, options, metadata = CUDABackend(target), backend.parse_options({}), {}
    codegen = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, codegen, backend.get_module_map(), context)
    module = backend.make_ttgir(backend.make_ttir(module, metadata, options, 90), metadata, options, 90)
    ptx = backend.make_ptx(backend.make_llir(module, metadata, options, 90), metadata, options, 90)

Backends that other packages register (entry points `tilework.backends` and `tilework.drivers`) are in `backends` too,
if they register both.

On the host, kernels are also shared libraries, which the C++ code of torch's `cpp_wrapper` and AOTInductor loads.

    kernel.asm["so"]             exports the kernel, under its name
    kernel.asm["launcher.so"]    exports run_from_nativert(gx, gy, gz, threads, args, kernel)

`args` has an entry for each parameter in the kernel's signature: the address of a tensor's memory, the address of a
scalar, NULL for a constant. Both libraries are compiled from C++ when torch requests them; the kernel itself is the
object file that C programs link (`targets/cpu/standalone.py`). A kernel that fails throws `std::runtime_error`.
"""

import functools
import hashlib
import inspect
import shutil
import subprocess
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.language.extra import cuda
from tilework.light_dataclass import light_dataclass
from tilework.process.plugins import plugins
from tilework.runtime.compile.sources import ASTSource, IRSource, frontend_options
from tilework.runtime.devices.active_driver import GROUP as DRIVERS
from tilework.runtime.devices.conditional_launch import unconditional
from tilework.runtime.launch.python.specialize import is_small, parse_attr
from tilework.target import Feature, GPUTarget, Target
from tilework.targets.amd.pipeline import HipBackend
from tilework.targets.amd.pipeline import HipOptions as HIPOptions
from tilework.targets.base import GROUP, Stage, run_passes
from tilework.targets.base import Backend as StageList
from tilework.targets.cpu.pipeline import CpuBackend
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.arch import capability_of, target_of
from tilework.targets.nvidia.pipeline import CudaBackend, looks, ttgir_pipeline
from tilework.targets.nvidia.ptx_text import cpu_name, ptx_of_cuda
from tilework.targets.options import NAMES, CompileOptions, refuse_others, without_foreign
from tilework.transforms.registry import ttir_pipeline

COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC")
LAUNCHER = """#include <cstdint>

typedef void Kernel(uint32_t, uint32_t, uint32_t, int, void **);

extern "C" void run_from_nativert(uint32_t x, uint32_t y, uint32_t z, int threads, void **args, void *kernel) {
  ((Kernel *)kernel)(x, y, z, threads, args);
}
"""
KERNEL = """#define TT_PTHREADS
{includes}
#include <stdexcept>

extern "C" {{
TTresult {entry}(TTstream threads, {parameters});
const char *{entry}_error_string(TTresult code);

void {name}(uint32_t x, uint32_t y, uint32_t z, int threads, void **args) {{
  TTthreads started = {{threads, 0, tt_pthreads_run}};
  TTresult code = {entry}(threads > 1 ? &started : nullptr, {arguments});
  if (code != TT_SUCCESS)
    throw std::runtime_error({entry}_error_string(code));
}}
}}
"""
C_TYPES = {"ptr": "void *", "f32": "float", "f64": "double", "i1": "int8_t"}
C_TYPES |= {f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}
AXES = ("x", "y", "z")


def kernel_library(ttcir: bytes | str, metadata: Mapping[str, Any]) -> bytes:
    """The shared library of a kernel, from its loop nests; arrays of C++ have no sizes, so that any two may overlap."""
    # lazily: few programs use it
    from tilework.aot.c_files import grid_code, includes
    from tilework.compiler import compile
    from tilework.ir.parser import parse_module
    from tilework.targets.cpu.standalone import Argument, standalone_object

    compiler = cxx_compiler()
    if without := unconditional(SimpleNamespace(**metadata)):
        plain = compile(metadata["source"], metadata["target"], {**metadata["requested_options"], **without})
        return kernel_library(plain.asm["ttcir"], {**plain.metadata._asdict(), "source": plain.src})
    name, kinds = metadata["name"], metadata["interface"]["parameters"]
    passed = [index for index, type in enumerate(metadata["source"].signature.values()) if type != "constexpr"]
    if len(passed) != len(kinds) or not C_TYPES.keys() >= set(kinds):
        raise RuntimeError(
            f"{name}: torch passes tensors, integers and floats to kernels in C++, and this kernel takes others too"
        )
    types = [C_TYPES[kind] for kind in kinds]
    args = [Argument(f"a{index}", type) for index, type in enumerate(types)]
    args += [Argument(axis, "uint32_t", is_of_kernel=False) for axis in AXES]
    text = ttcir if isinstance(ttcir, str) else ttcir.decode()
    entry, module = f"{name}_on_threads", parse_module(text, "kernel.ttcir")
    fuses = metadata["enable_fp_fusion"]
    data, _ = standalone_object(module, entry, args, grid_code(AXES, args), "", 1, fuses)
    read = [argument(f"args[{at}]", type) for at, type in zip(passed, types, strict=True)]
    source = KERNEL.format(
        includes=includes(), entry=entry, name=name, parameters=", ".join(arg.c_type for arg in args),
        arguments=", ".join([*read, *AXES]),
    )  # fmt: skip
    return shared_library(compiler, source, data)


def argument(entry: str, type: str) -> str:
    """A C++ expression for an argument, from its entry in `args`. torch passes integers as int64_t, and floats as it
    declares them in its own code, whatever the kernel takes."""
    if type == "void *":
        return entry
    given = "int64_t" if "int" in type else float_type()
    return f"({type})*({given} *){entry}"


def float_type() -> str:
    """The type of torch's variables for floats: `float` in 2.13, also for kernels that take a double."""
    module = sys.modules.get("torch._inductor.codegen.cpp_wrapper_cpu")
    wrapper: Any = getattr(module, "DeferredCpuTritonCallWrapper", None)
    return "double" if wrapper is None else wrapper._get_cpp_param_type(None, "", float).strip()


def launcher_library(ttcir: bytes | str, metadata: Mapping[str, Any]) -> bytes:
    """The shared library that calls a kernel: the same for all."""
    return common_launcher(cxx_compiler())


@functools.cache
def common_launcher(compiler: str) -> bytes:
    return shared_library(compiler, LAUNCHER)


def cxx_compiler() -> str:
    """The C++ compiler: the knob `build.cxx` (CXX), else the first one on the PATH."""
    candidates = (knobs.build.cxx,) if knobs.build.cxx else COMPILERS
    if (found := next(filter(None, map(shutil.which, candidates)), None)) is None:
        raise RuntimeError(
            f"Failed to find a C++ compiler: none of {', '.join(candidates)} is on the PATH. torch's cpp_wrapper and"
            " AOTInductor"
            " call kernels from C++, so these two need one: install it, or name it with the environment variable CXX."
        )
    return found


def shared_library(compiler: str, source: str, object_code: bytes = b"") -> bytes:
    """Compile C++, and link it with an object file."""
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder, "source.cpp"), Path(folder, "made.so")
        file.write_text(source)
        inputs = [str(file)]
        if object_code:
            inputs.append(str(Path(folder, "kernel.o")))
            Path(inputs[-1]).write_bytes(object_code)
        command = [compiler, *FLAGS, *inputs, "-o", str(made), "-lm", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stderr}")
        return made.read_bytes()


ALIGNMENT = 16


class Language(Enum):
    """The language of a source."""

    TRITON = 0
    GLUON = 1


def plain(module: Any) -> Any:
    """Return the xDSL module behind the handle that programs hold (`_C.libtriton.ir.module`); text and bytes
    unchanged."""
    return getattr(module, "wrapped", module)


def shown(result: Any) -> Any:
    """Return the result of a stage as programs see it: modules as handles, text and bytes unchanged."""
    if isinstance(result, str | bytes) or hasattr(result, "wrapped"):
        return result
    from tilework.triton import libtriton_ir  # lazily: most programs never see a module

    return libtriton_ir.context().adopt(result)


def one_argument(stage: Callable[..., Any], metadata: dict[str, Any]) -> Stage:
    """Return a stage of another package, which may take no metadata, as the function of one argument that tilework
    calls."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(stage).parameters.values()
    wants = sum(param.kind in kinds for param in parameters) >= 2 or any(
        param.kind is param.VAR_POSITIONAL for param in parameters
    )
    return lambda source: plain(stage(shown(source), *([metadata] if wants else [])))


class BaseBackend(StageList):
    """The compiler of one kind of target."""

    supports_native_tensor_specialization = True

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.metadata: dict[str, Any] = {}  # that the stages of `add_stages` write into
        assert self.supports_target(target), f"{type(self).__name__} does not compile for {target}"

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Return True if it compiles for `target`."""

    @abstractmethod
    def parse_options(self, options: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # Triton's name
        """Return the options of launch keywords."""

    def launch_options(self, settings: Mapping[str, Any]) -> Any:
        own = without_foreign(settings, self.target.backend)
        options = self.parse_options(own)
        refuse_others(own, (*NAMES, *vars(options)))  # every target takes the options of tilework
        return options

    @abstractmethod
    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        """Add functions of (result of the stage before, metadata) to `stages`, in order."""

    @abstractmethod
    def load_dialects(self, context: Any) -> None:
        """Register the backend's own dialects."""

    @abstractmethod
    def get_module_map(self) -> dict[str, ModuleType]:
        """Return the modules that replace others in kernels, such as libdevice."""

    def stages(self, options: Any) -> dict[str, Stage]:
        listed: dict[str, Any] = {}
        takes_language = len(inspect.signature(self.add_stages).parameters) > 2
        self.add_stages(listed, options, *([Language.TRITON] if takes_language else []))
        return {name: one_argument(stage, self.metadata) for name, stage in listed.items()}

    def kernel_facts(self, stage: str, product: Any, name: str, options: Any, given: Collection[str]) -> dict[str, Any]:
        return dict(self.metadata)

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """Return the argument attributes that a specialization key means."""
        return [["tt.divisibility", ALIGNMENT]] if "D" in desc else []

    @staticmethod
    def get_int_specialization(arg: int, **kwargs: Any) -> str:
        """Return the specialization key of an integer."""
        return "D" if kwargs.get("align", False) and arg % ALIGNMENT == 0 else ""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """Return the specialization key of a pointer."""
        return "D" if kwargs.get("align", False) and arg.data_ptr() % ALIGNMENT == 0 else ""


def known(opts: Mapping[str, Any], options: type[CompileOptions]) -> dict[str, Any]:
    """Return the entries of `opts` that are options. Triton's backends ignore the others, launches refuse them
    (`launch_options`)."""
    names = {field.name for field in fields(options)}
    return {name: value for name, value in opts.items() if name in names}


class ListedBackend(BaseBackend):
    """Triton's interface over a backend of tilework: a stage takes (result of the stage before, metadata), where
    tilework's take the result alone."""

    instrumentation = None

    def run_stage(
        self, stage: Callable[[Any], Any], name: str, source: Any, metadata: dict[str, Any], options: Any
    ) -> Any:
        """Run one of tilework's stages, and add to `metadata` what the launcher needs."""
        found = stage(plain(source))
        metadata |= self.kernel_facts(name, found, metadata.get("name", ""), options, ())
        return shown(found)

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        if language is not Language.TRITON:
            raise ValueError("tilework compiles kernels of the tile language, not Gluon")
        for name, stage in self.separate_stages(options).items():  # of the backend that is the other base class
            stages[name] = self.two_arguments(name, stage, options)

    def two_arguments(self, name: str, stage: Callable[[Any], Any], options: Any) -> Callable[..., Any]:
        """Return a stage as a function of the result before it and the metadata."""
        return lambda source, metadata=None: self.run_stage(
            stage, name, source, metadata if metadata is not None else {}, options
        )

    def inspected(
        self, hook: Callable[..., Any], stages: dict[str, Stage], options: Any, facts: dict[str, Any]
    ) -> dict[str, Stage]:
        offered = {name: self.two_arguments(name, stage, options) for name, stage in stages.items()}
        ours = dict(offered)
        hook(self, offered, options, Language.TRITON, self.capability)
        return {
            name: stages[name] if offered[name] is ours.get(name) else one_argument(offered[name], facts)
            for name in offered
        }

    def load_dialects(self, ctx: Any) -> None:
        """Nothing to do: a context has every dialect."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """Nothing is replaced: `tl.extra.libdevice` resolves by target in the compiler."""
        return {}

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Return the properties of the target that the frontend needs: the smallest dot."""
        return {"min_dot_size": frontend_options(self.target, options).min_dot_size}

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        """Return the fields that every launch passes to the launcher."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared


BLACKWELL = 100
NO_SCRATCH = {
    "shared": 0,
    "tmem_size": 0,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
}


@light_dataclass
class CUDAOptions(CompileOptions):
    """Compile options with the defaults of the oldest supported GPU."""

    warp_size: int = 32
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4b15")
    default_dot_input_precision: str = "tf32"
    max_num_imprecise_acc_default: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    extern_libs: tuple[tuple[str, str], ...] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    backend_name: str = "cuda"

    def __post_init__(self) -> None:
        if self.extern_libs is None:
            path = knobs.nvidia.find_libdevice()
            object.__setattr__(self, "extern_libs", () if path is None else (("libdevice", path),))
        super().__post_init__()

    @property
    def enable_iisan(self) -> bool:
        """True with checks for illegal instructions."""
        return "iisan" in self.instrumentation_mode


class CUDABackend(CudaBackend, ListedBackend):
    """The CUDA backend as a `BaseBackend`."""

    def __init__(self, target: GPUTarget) -> None:
        ListedBackend.__init__(self, target)
        CudaBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def parse_options(self, opts: Any) -> CUDAOptions:
        options = super().parse_options(known(opts, CUDAOptions))
        return CUDAOptions(**{field.name: getattr(options, field.name) for field in fields(options)})

    def _parse_arch(self, arch: str) -> int:
        return capability_of(arch)

    def get_target_name(self, options: Any) -> str:
        """``cuda:90``."""
        return f"cuda:{capability_of(options.arch)}"

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """Return the properties of the target that the frontend needs: the smallest dot, and the conversion of old
        8-bit floats."""
        has_pairs = Feature.CONVERT_PAIRS in target_of(options.arch).features
        convert = cuda.convert_custom_float8_sm80 if has_pairs else cuda.convert_custom_float8_sm70
        return {"convert_custom_types": convert, "min_dot_size": min_dot_size(self.target)}

    @staticmethod
    def make_ttir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> Any:
        """Optimise the TTIR of the frontend, in place."""
        run_passes(plain(mod), ttir_pipeline(target_of(f"sm{capability}")), "make_ttir")
        return mod

    @staticmethod
    def make_ttgir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> Any:
        """Convert TTIR to TTGIR, in place."""
        passes = ttgir_pipeline(target_of(f"sm{capability}"), opt.num_warps, opt.num_stages, opt.num_ctas)
        run_passes(plain(mod), [*passes, *looks()], "make_ttgir")
        metadata["tensordesc_meta"] = []
        return mod

    def gluon_to_ttgir(self, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> Any:
        raise ValueError("tilework compiles kernels of the tile language, not Gluon")

    def make_llir(self, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> str:
        """Return the LLVM text of TTGIR."""
        text = self.later("llir", src, options, capability)
        facts = ptx_text.metadata(text)
        scratch = {name: facts[name] for name in NO_SCRATCH if name in facts}
        metadata |= {"num_warps": facts.get("num_warps", options.num_warps), **NO_SCRATCH, **scratch}
        return text

    def make_ptx(self, src: str, metadata: dict[str, Any], opt: Any, capability: int) -> str:
        """Return the PTX of LLVM text."""
        text = self.later("ptx", src, opt, capability)
        metadata["name"] = next(iter(ptx_text.entries(text)))
        return text

    def make_cubin(self, src: str, metadata: dict[str, Any], opt: Any, capability: int) -> bytes:
        """Return the machine code of PTX, by ptxas."""
        return self.later("cubin", src, opt, capability)

    def later(self, stage: str, source: Any, options: Any, capability: int) -> Any:
        """Run one of the stages after TTGIR, for a GPU of `capability`."""
        if capability != capability_of(options.arch):
            options = replace(options, arch=f"sm{capability}")
        return self.stages(options)[stage](plain(source))


def min_dot_size(target: GPUTarget) -> Any:
    """Return the function from two operand types to the smallest dot (m, n, k) of a target."""
    return Target.of(target).min_dot_size


def get_ptxas(arch: int) -> Any:
    """Return the assembler for a GPU, with path and version."""
    return knobs.nvidia.ptxas_blackwell if arch >= BLACKWELL else knobs.nvidia.ptxas


@cache
def get_ptxas_version(arch: int = 80) -> str:
    """Return what ``ptxas --version`` prints."""
    if (mock := knobs.nvidia.mock_ptx_version) is not None:
        return mock
    return subprocess.check_output([get_ptxas(arch).path, "--version"]).decode()


def ptx_get_version(cuda_version: str) -> int:
    """Return the newest PTX version that a release of CUDA reads: ``"12.8"`` -> 87."""
    if int(cuda_version.partition(".")[0]) < 10:
        raise RuntimeError(f"Triton only support CUDA 10.0 or higher, but got CUDA version: {cuda_version}")
    return ptx_of_cuda(cuda_version)


def get_ptx_version_from_options(options: Any, arch: int) -> int:
    """Return the PTX version of kernels: the option, or the newest one that the assembler reads."""
    return options.ptx_version or ptx_get_version(get_ptxas(arch).version)


def get_features(options: Any, arch: int) -> str:
    """Return the feature string for LLVM's code generator: ``+ptx88``; its newest is ``+ptx90``."""
    return f"+ptx{min(90, get_ptx_version_from_options(options, arch))}"


def sm_arch_from_capability(capability: int) -> str:
    """90 -> ``sm_90a``."""
    return cpu_name(f"sm{capability}")


def file_hash(path: str) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class HIPBackend(HipBackend, ListedBackend):
    """The HIP backend as a `BaseBackend`. It specializes on tensors below 2 GiB, whose elements 32-bit offsets
    reach."""

    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "hip"

    def parse_options(self, opts: Any) -> CompileOptions:
        return super().parse_options(known(opts, HIPOptions))

    @staticmethod
    def make_ttir(mod: Any, metadata: dict[str, Any], options: Any) -> Any:
        """Optimise the TTIR of the frontend, in place."""
        return run_named("ttir", mod, metadata, options)

    @staticmethod
    def make_ttgir(mod: Any, metadata: dict[str, Any], options: Any) -> Any:
        """Convert TTIR to TTGIR, in place."""
        return run_named("ttgir", mod, metadata, options)

    @staticmethod
    def gluon_to_ttgir(src: Any, metadata: dict[str, Any], options: Any) -> Any:
        raise ValueError("tilework compiles kernels of the tile language, not Gluon")

    @staticmethod
    def make_llir(src: Any, metadata: dict[str, Any], options: Any) -> str:
        """Return the LLVM text of TTGIR."""
        return run_named("llir", src, metadata, options)

    @staticmethod
    def make_amdgcn(src: str, metadata: dict[str, Any], options: Any) -> str:
        """Return the assembly of LLVM text."""
        return run_named("amdgcn", src, metadata, options)

    @staticmethod
    def make_hsaco(src: str, metadata: dict[str, Any], options: Any) -> bytes:
        """Return the code object of assembly."""
        return run_named("hsaco", src, metadata, options)

    is_within_2gb = staticmethod(is_small)

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        return parse_attr(desc)

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        key = BaseBackend.get_tensor_specialization(arg, **kwargs)
        return key + "S" if knobs.amd.use_buffer_ops and is_small(arg) else key


def run_named(stage: str, source: Any, metadata: dict[str, Any], options: Any) -> Any:
    """Run a stage for an AMD GPU that is known by the options."""
    backend = HIPBackend(GPUTarget("hip", options.arch, options.warp_size))
    return backend.two_arguments(stage, backend.separate_stages(options)[stage], options)(source, metadata)


def get_min_dot_size(target: GPUTarget) -> Any:
    """Return the function from two operand types to the smallest dot (m, n, k) of a target."""
    return Target.of(target).min_dot_size


class CPUBackend(CpuBackend, ListedBackend):
    """The host's compiler as a `BaseBackend`."""

    libraries = {"so": ("ttcir", kernel_library), "launcher.so": ("ttcir", launcher_library)}

    def __init__(self, target: GPUTarget) -> None:
        ListedBackend.__init__(self, target)
        CpuBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def parse_options(self, opts: Mapping[str, Any]) -> CompileOptions:
        return super().parse_options(known(opts, CompileOptions))


BUILT_IN = {
    "cuda": ("nvidia", CUDABackend),
    "hip": ("amd", HIPBackend),
    "cpu": ("cpu", CPUBackend),
}  # target: (Triton's name of the backend, compiler)


@light_dataclass
class Backend:
    """The compiler class and the driver class of a backend."""

    compiler: Any = None
    driver: Any = None


@cache
def discovered() -> dict[str, Backend]:
    """Return tilework's backends, and those of packages that register a compiler and a driver under one name."""
    drivers = {plugin.name: plugin.load() for plugin in plugins(DRIVERS)}
    found = {name: Backend(cls, drivers[target]) for target, (name, cls) in BUILT_IN.items()}
    others = (plugin for plugin in plugins(GROUP) if plugin.name in drivers and plugin.name not in BUILT_IN)
    return found | {plugin.name: Backend(plugin.load(), drivers[plugin.name]) for plugin in others}


def __getattr__(name: str) -> Any:
    """Build `backends` on first use: the packages that it loads import this module."""
    if name != "backends":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return discovered()


def __dir__() -> list[str]:
    return sorted({*globals(), "backends"})


def signature_of(source: IRSource) -> dict[int, str]:
    """Return the parameter types of an IR file's kernel: ``{0: "*f32", 1: "i32"}``."""
    from tilework.triton import libtriton_ir as ir  # lazily: most programs never parse a module

    module = ir.parse_mlir_module(str(source.path), ir.context())
    return dict(enumerate(module.get_function_signature(module.get_function(module.get_entry_func_name()))))


# the attributes that Triton's sources have beside tilework's
ASTSource.language = IRSource.language = Language.TRITON  # pyright: ignore[reportAttributeAccessIssue]
IRSource.signature = property(signature_of)  # pyright: ignore[reportAttributeAccessIssue]
