"""Every function of the language has a differential test, and so has every parameter of it.

The kernels of this folder are read as syntax trees: only what is called in a function under `@jit` counts, and those
functions run on every device of the harness. `FUNCTIONS` lists them by subject.
"""

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tilework.language as tl
from tests.differential.devices import run_interpreter
from tests.differential.harness import CELL_RESULTS, Cell, agree_in_one, sample
from tilework.language.function import JITCallable, jit

FUNCTIONS = {
    "programs": "program_id num_programs debug_barrier target_info.current_target target_info.is_cuda "
    "target_info.is_hip"
    " target_info.is_hip_cdna3 target_info.is_hip_cdna4 target_info.is_hip_gfx1250 target_info.cuda_capability_geq",
    "creation": "arange full zeros zeros_like tuple",
    "memory": "load store make_block_ptr advance make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor",
    "atomics": "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas atomic_poll",
    "dots": "dot dot_scaled",
    "math": "exp exp2 log log2 sin cos erf sqrt sqrt_rn rsqrt floor ceil abs fdiv div_rn fma umulhi sigmoid "
    "softmax cdiv"
    " add sub mul",
    "reductions": "reduce sum max min argmax argmin xor_sum reduce_or",
    "scans": "associative_scan cumsum cumprod",
    "sorting": "sort topk bitonic_merge flip",
    "random numbers": (
        "philox_impl philox randint4x randint uint_to_uniform_float rand rand4x pair_uniform_to_normal randn randn4x"
    ),
    "loops": "range static_range condition",
    "hints": "multiple_of max_contiguous max_constancy assume",
    "printing and asserting": "static_print static_assert device_print device_assert expect_zero",
    "code in other languages": "inline_asm_elementwise map_elementwise core.extern_elementwise",
    "CUDA": "extra.cuda.globaltimer extra.cuda.smid extra.cuda.num_threads extra.cuda.num_warps extra.cuda.gdc_wait"
    " extra.cuda.gdc_launch_dependents extra.cuda.convert_custom_float8_sm70 extra.cuda.convert_custom_float8_sm80",
    "order of programs": "swizzle2d",
    "aggregates": "aggregate_replace",
    "shapes and types": "broadcast broadcast_to cat cast clamp expand_dims gather histogram interleave join "
    "maximum minimum permute"
    " ravel reshape split squeeze to_tensor trans unsqueeze view where",
}
METHODS = {
    "tensor": "to advance view reshape trans permute sum max min argmax argmin cumsum cumprod reduce "
    "associative_scan sort"
    " atomic_add atomic_cas atomic_xchg exp log sqrt abs sigmoid softmax split flip ravel gather histogram store "
    "xor_sum",
    "tensor_descriptor": "load store atomic_add atomic_min atomic_max atomic_and atomic_or atomic_xor gather scatter",
}
REMOVED = {"_experimental_descriptor_load", "_experimental_descriptor_store"}  # names of 3.0.0


@cache
def calls() -> dict[str, set[str | int]]:
    """For each name that a kernel here calls or mentions: the keywords given, and how many positional arguments."""
    found: dict[str, set[str | int]] = {}
    for path in Path(__file__).parent.glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any("jit" in ast.unparse(d) for d in function.decorator_list):
                for node in ast.walk(function):
                    note(node, found)
    return found


def note(node: ast.AST, found: dict[str, set[str | int]]) -> None:
    if isinstance(node, ast.Attribute):
        found.setdefault(node.attr, set())
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_method = not ast.unparse(node.func.value).startswith(("tl", "cuda", "libdevice"))
        given = found.setdefault(node.func.attr, set())
        given |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
        given.add(len(node.args) + is_method)


def listed() -> list[str]:
    return [name for names in FUNCTIONS.values() for name in names.split()]


@pytest.mark.parametrize("subject", FUNCTIONS)
def test_functions_are_compared(subject: str) -> None:
    for name in FUNCTIONS[subject].split():
        check_function(name)


def check_function(name: str) -> None:
    value: Any = tl
    for part in name.split("."):
        value = getattr(value, part)
    assert callable(value)
    given = calls().get(name.rpartition(".")[2])
    assert given is not None, f"no differential test calls tl.{name}"
    if inspect.isclass(value):
        return
    parameters = [
        parameter
        for parameter in inspect.signature(getattr(value, "fn", value)).parameters.values()
        if parameter.name not in ("_semantic", "_generator", "self")
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    most = max((count for count in given if isinstance(count, int)), default=0)
    missing = [p.name for index, p in enumerate(parameters) if index >= most and p.name not in given]
    assert not missing, f"no differential test gives tl.{name} its {missing}"


@pytest.mark.parametrize("owner", METHODS)
def test_methods_are_compared(owner: str) -> None:
    for method in METHODS[owner].split():
        assert callable(getattr(getattr(tl, owner), method)) and method in calls(), method


def test_the_list_is_complete() -> None:
    """Nothing callable in `tl`, `tl.math`, `tl.random` or `tl.standard` is missing from the list above."""
    known = {name.rpartition(".")[2] for name in listed()}
    for module in (tl, tl.math, tl.random, tl.standard):
        for name, value in vars(module).items():
            if not name.startswith("__") and not inspect.isclass(value) and not inspect.ismodule(value):
                if tl.core.is_builtin(value) or isinstance(value, JITCallable):
                    public = not name.startswith("_") or name in REMOVED
                    assert not public or name in known | REMOVED, f"tl.{name} stands under no subject of the list"


def test_a_device_that_differs_is_named() -> None:
    def wrong(kernel: Any, args: Any, constants: Any, grid: Any) -> None:
        run_interpreter(kernel, args, constants, grid)
        args["out"][4 * CELL_RESULTS.value] ^= 1  # the first result of the second cell, of four elements

    cells = [Cell(difference, [sample(code, (4,), 1), sample("i8", (4,), 2)]) for code in ("i32", "i64")]
    with pytest.raises(
        AssertionError, match=r"^result 0 of difference\(i64, i8\)\[\]: interpreter and wrong differ at 1 of 4"
    ):
        agree_in_one(cells, devices={"interpreter": run_interpreter, "wrong": wrong})


@jit
def difference(a, b):
    both = a - b, b - a
    tl.static_assert(isinstance(both, tl.tuple))
    return both
