"""The reference of the language and of the runtime: every public name, with what its docstring says and its example.

    >>> for entry in entries():
    ...     print(entry.name, entry.signature, entry.summary)
    tl.program_id (axis) The index of this program along a grid axis (0, 1 or 2), an int32.
    ...

A docstring ends with its example, plain Python that runs after `PROLOGUE`:

    def double(x):
        \"\"\"Twice `x`.

        Example:
            assert_close(call(double, np.arange(4)), [0, 2, 4, 6])
        \"\"\"

A value without a docstring in Python (a dtype, an integer) has a string after its assignment, which is found in the
source. Pages and tests are made from this list; a new public name belongs into one of `FAMILIES`.
"""

import ast
import enum
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import FunctionType
from typing import Any

import tilework.language as tl

PROLOGUE = """\
import numpy as np
import tilework
import tilework.language as tl
from tilework.testing import assert_close, call
"""
HEADING = "Example:"
HIDDEN = ("_semantic", "_generator")  # parameters that the compiler passes


@dataclass(frozen=True)
class Family:
    """The names of one page."""

    title: str
    part: str  # "language" or "runtime"
    names: tuple[str, ...]


def family(part: str, title: str, prefix: str, names: str) -> Family:
    return Family(title, part, tuple(prefix + name for name in names.split(" ")))


FAMILIES = (
    family("language", "Programs", "tl.", "program_id num_programs debug_barrier"),
    family(
        "language",
        "Memory",
        "tl.",
        "load store make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor make_block_ptr advance",
    ),
    family(
        "language",
        "Atomics",
        "tl.",
        "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas atomic_poll",
    ),
    family(
        "language",
        "Shapes",
        "tl.",
        "arange full zeros zeros_like to_tensor broadcast broadcast_to expand_dims squeeze unsqueeze reshape ravel view"
        " permute trans join split cat interleave gather",
    ),
    family(
        "language",
        "Element by element",
        "tl.",
        "where cast minimum maximum clamp abs add sub mul fdiv div_rn fma umulhi cdiv exp exp2 log log2 sqrt"
        " sqrt_rn rsqrt sin cos erf floor ceil sigmoid softmax map_elementwise PropagateNan",
    ),
    family("language", "Matrix multiplication", "tl.", "dot dot_scaled"),
    family(
        "language",
        "Reductions and scans",
        "tl.",
        "sum max min argmax argmin xor_sum reduce_or reduce cumsum cumprod associative_scan histogram",
    ),
    family("language", "Sorting", "tl.", "sort topk bitonic_merge flip"),
    family(
        "language",
        "Random numbers",
        "tl.",
        "rand randn randint rand4x randn4x randint4x philox philox_impl uint_to_uniform_float pair_uniform_to_normal",
    ),
    family("language", "Loops", "tl.", "range static_range condition"),
    family("language", "Hints", "tl.", "assume multiple_of max_contiguous max_constancy swizzle2d"),
    family("language", "Debugging", "tl.", "static_print static_assert device_print device_assert expect_zero"),
    family("language", "Compile time", "tl.", "constexpr tuple slice constexpr_type tuple_type"),
    family(
        "language",
        "Types",
        "tl.",
        "dtype float16 bfloat16 float32 float64 int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8e4nv"
        " float8e5 float8e4b8 float8e5b16 float8e4b15 void pointer_type const_pointer_type const block_type"
        " tensor_descriptor_type function_type pi32_t str_to_ty TRITON_MAX_TENSOR_NUMEL",
    ),
    family("language", "Tensors", "tl.tensor", " .shape .numel .T .__getitem__ .to .item .logical_and .logical_or"),
    family(
        "language",
        "Descriptors",
        "tl.tensor_descriptor",
        " .load .store .gather .scatter .atomic_add .atomic_min .atomic_max .atomic_and .atomic_or .atomic_xor"
        " .dtype .block_shape .block_type",
    ),
    family(
        "language",
        "Targets",
        "tl.target_info.",
        "current_target is_cuda cuda_capability_geq is_hip is_hip_cdna3 is_hip_cdna4 is_hip_gfx1250",
    ),
    family(
        "language",
        "Assembly and libraries",
        "tl.",
        "inline_asm_elementwise core.extern_elementwise core.extern builtin core.is_builtin core.aggregate"
        " aggregate_replace"
        " core.to_tensor core.get_int_dtype",
    ),
    family(
        "language",
        "Modules",
        "tl.",
        "math random extra.libdevice extra.cuda extra.cuda.globaltimer extra.cuda.smid extra.cuda.num_threads"
        " extra.cuda.num_warps extra.cuda.gdc_wait extra.cuda.gdc_launch_dependents"
        " extra.cuda.convert_custom_float8_sm80 extra.cuda.convert_custom_float8_sm70 extra.hip"
        " extra.hip.memrealtime",
    ),
    family(
        "runtime",
        "Kernels",
        "tilework.",
        "jit JITFunction JITFunction.__getitem__ JITFunction.bind JITFunction.warmup JITFunction.explain"
        " JITFunction.explore JITFunction.run JITFunction.preload KernelInterface constexpr_function"
        " must_use_result cdiv next_power_of_2 reinterpret TensorWrapper MockTensor set_allocator"
        " tools.tensor_descriptor.TensorDescriptor tools.tensor_descriptor.TensorDescriptor.from_tensor"
        " tools.mxfp.MXFP4Tensor tools.mxfp.MXScaleTensor",
    ),
    family(
        "runtime",
        "Tuning",
        "tilework.",
        "autotune Autotuner Config Config.all_kwargs Space Search heuristics Heuristics",
    ),
    family(
        "runtime",
        "Testing and benchmarks",
        "tilework.testing.",
        "call assert_close do_bench do_bench_cudagraph do_bench_proton do_bench_cudagraph_proton"
        " cuda_graph_without_gc perf_report Benchmark Mark Mark.run get_dram_gbps"
        " get_max_tensorcore_tflops get_max_simd_tflops nvsmi set_gpu_clock cuda_memcheck",
    ),
    family(
        "runtime",
        "Compiling",
        "tilework.",
        "compile load compiler.lower ASTSource compiler.IRSource compiler.GPUTarget compiler.CompiledKernel"
        " compiler.CompiledKernel.run compiler.CompiledKernel.__getitem__ compiler.CompiledKernel.counters"
        " compiler.CompiledKernel.launch_metadata compiler.LazyDict compiler.make_backend compiler.get_cache_key"
        " AsyncCompileMode FutureKernel",
    ),
    family("runtime", "Metrics", "tilework.metrics.", "snapshot total prometheus subscribe reset"),
    family(
        "runtime",
        "Profiling",
        "tilework.profiler.",
        "start finalize activate deactivate profile scope cpu_timed_scope enter_scope exit_scope state"
        " metadata_state enter_state exit_state data.get data.get_msgpack data.advance_phase data.is_phase_complete"
        " data.clear DEFAULT_PROFILE_NAME",
    ),
    family(
        "runtime",
        "Errors and warnings",
        "tilework.",
        "TritonError CompilationError errors.CompileTimeAssertionFailure errors.UnsupportedLanguageConstruct"
        " errors.ArgumentError errors.OptionError InterpreterError errors.SanitizerError errors.SanitizerWarning"
        " errors.PerformanceWarning OutOfResources errors.AutotunerError errors.StageError errors.PTXASError"
        " errors.BundleError errors.NotRecorded",
    ),
    family(
        "runtime",
        "Devices, settings and plugins",
        "tilework.",
        "runtime.driver knobs as_triton plugins.find plugins.plugins plugins.prefer",
    ),
)


@dataclass(frozen=True)
class Entry:
    """One name of the reference."""

    name: str  # as programs write it: "tl.exp", "tilework.jit"
    family: Family
    value: Any
    signature: str  # "(x, axis=0)"; "" for what is not called
    text: str  # the docstring without its example; names are in `x`, code in ``x`` and in indented blocks
    example: str  # "" if there is none

    @property
    def summary(self) -> str:
        """The first paragraph, in one line."""
        return " ".join(self.text.split("\n\n")[0].split())


def entries() -> Iterator[Entry]:
    """The whole reference, family by family."""
    for family in FAMILIES:
        for name in family.names:
            yield entry(name, family)


def entry(name: str, family: Family) -> Entry:
    value, doc = documented(name)
    text, example = split_example(doc)
    return Entry(name, family, value, signature(value), text, example)


def split_example(doc: str) -> tuple[str, str]:
    """The text of a docstring and its example, both without indentation."""
    lines = inspect.cleandoc(doc).splitlines()
    if HEADING not in lines:
        return "\n".join(lines), ""
    at = lines.index(HEADING)
    return "\n".join(lines[:at]).rstrip(), textwrap.dedent("\n".join(lines[at + 1 :])).strip() + "\n"


def run_example(entry: Entry) -> None:
    """Run the example of an entry; its kernels find their source, and a traceback shows its lines."""
    file, text = f"<example of {entry.name}>", PROLOGUE + entry.example
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), {"__name__": "example"})


def documented(name: str) -> tuple[Any, str]:
    """Return the value of a name and its docstring: its own, the string after its assignment, that of its class, or
    ""."""
    first, *path = name.split(".")
    owner: Any = import_module({"tl": "tilework.language"}.get(first, first))
    for part in path[:-1]:
        owner = member(owner, part)
    value = member(owner, path[-1]) if path else owner
    if is_function(value) or inspect.ismodule(value) or inspect.isclass(value) or isinstance(value, property):
        return value, value.__doc__ or ""
    home = owner.__name__ if inspect.ismodule(owner) else getattr(owner, "__module__", "")
    return value, assigned(home, path[-1]) or (
        "" if isinstance(value, int | str | tuple) else type(value).__doc__ or ""
    )


def is_function(value: Any) -> bool:
    """Functions of Python, and jit functions, which have the docstrings of theirs."""
    return inspect.isroutine(value) or inspect.isfunction(getattr(value, "fn", None))


def member(owner: Any, name: str) -> Any:
    """An attribute of a class as it is declared, of anything else as it is; modules are imported."""
    found = inspect.getattr_static(owner, name, None) if inspect.isclass(owner) else None
    if isinstance(found, property):
        return found
    if inspect.ismodule(owner) and not hasattr(owner, name):
        return import_module(f"{owner.__name__}.{name}")
    return getattr(owner, name)


def assigned(module: str, name: str) -> str:
    """The string after the assignment of a name, in its module or in the one it was imported from."""
    body = parsed(module)
    for node, after in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        match target, after:
            case ast.Name(id=found), ast.Expr(value=ast.Constant(value=str(text))) if found == name:
                return text
            case _:
                continue
    for node in body:
        if isinstance(node, ast.ImportFrom) and {"*", name} & {alias.asname or alias.name for alias in node.names}:
            if node.module and hasattr(import_module(node.module), name):
                return assigned(node.module, name)
    return ""


@cache
def parsed(module: str) -> list[ast.stmt]:
    """The statements of a module."""
    file = getattr(import_module(module), "__file__", None)
    return ast.parse("".join(linecache.getlines(file))).body if file else []


def signature(value: Any) -> str:
    """The call signature of a function or a class, without annotations that carry no information."""
    if isinstance(value, property) or not callable(value) or inspect.ismodule(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown = [
        p.replace(annotation=p.empty, default=AsWritten(p.default) if p.default is not p.empty else p.empty)
        for p in found.parameters.values()
        if p.name not in (*HIDDEN, "self")
    ]
    return str(inspect.Signature(shown))


class AsWritten:
    """A default, shown as programs write it: ``tl.float32``, ``10`` for a constexpr."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        match self.value:
            case tl.constexpr():
                return repr(AsWritten(self.value.value))
            case tl.dtype():
                return f"tl.{self.value!r}".replace("triton.language.", "")
            case enum.Enum():
                return f"tl.{type(self.value).__name__}.{self.value.name}"
            case type() | FunctionType():
                return self.value.__qualname__
            case _:
                return repr(self.value)
