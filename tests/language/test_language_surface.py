"""Every name of the language exists, is documented, and importing it is cheap."""

import ast
import copy
import inspect
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

import tilework.language as tl
from tilework.language.function import JITFunction

FUNCTIONS = [
    *("program_id", "num_programs", "debug_barrier", "arange", "full", "zeros", "zeros_like", "load", "store"),
    *("make_block_ptr", "advance", "make_tensor_descriptor", "load_tensor_descriptor", "store_tensor_descriptor"),
    *("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg"),
    *("atomic_cas", "dot", "dot_scaled", "exp", "exp2", "log", "log2", "sin", "cos", "erf", "sqrt", "sqrt_rn"),
    *("rsqrt", "floor", "ceil", "abs", "fdiv", "div_rn", "fma", "umulhi", "sigmoid", "softmax", "cdiv", "add"),
    *("sub", "mul", "where", "minimum", "maximum", "clamp", "cast", "reduce", "sum", "max", "min", "argmax"),
    *("argmin", "xor_sum", "reduce_or", "associative_scan", "cumsum", "cumprod", "sort", "topk", "bitonic_merge"),
    *("flip", "philox_impl", "philox", "randint4x", "randint", "uint_to_uniform_float", "rand", "rand4x"),
    *("pair_uniform_to_normal", "randn", "randn4x", "range", "static_range", "condition", "multiple_of"),
    *("max_contiguous", "max_constancy", "assume", "static_print", "static_assert", "device_print"),
    *("device_assert", "inline_asm_elementwise", "map_elementwise", "swizzle2d", "broadcast", "broadcast_to"),
    *("expand_dims", "reshape", "view", "ravel", "permute", "trans", "cat", "join", "split", "interleave"),
    *("squeeze", "unsqueeze", "to_tensor"),
    *("gather", "histogram", "builtin", "const_pointer_type", "function_type", "_experimental_descriptor_load"),
    *("_experimental_descriptor_store", "str_to_ty"),
]
OBJECTS = [
    *("dtype", "block_type", "pointer_type", "void", "const", "constexpr", "constexpr_type", "slice", "tensor"),
    *("tensor_descriptor", "tuple", "PropagateNan", "TRITON_MAX_TENSOR_NUMEL", "pi32_t", "tuple_type"),
    *("tensor_descriptor_type", "core", "math", "standard", "random", "semantic", "extra", "target_info"),
]
CORE = [
    *("builtin", "extern", "is_builtin", "_aggregate", "base_value", "base_type", "constexpr_type"),
    *("_unwrap_if_constexpr", "get_int_dtype", "to_tensor", "extern_elementwise", "inline_asm_elementwise"),
    *("must_use_result", "slice_type"),
]
METHODS = [
    *("to", "item", "logical_and", "logical_or", "abs", "advance", "argmax", "argmin", "associative_scan"),
    *("atomic_add", "atomic_and", "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg"),
    *("atomic_xor", "broadcast_to", "cast", "cdiv", "ceil", "cos", "cumprod", "cumsum", "erf", "exp", "exp2"),
    *("expand_dims", "flip", "floor", "gather", "histogram", "log", "log2", "max", "min", "permute", "ravel"),
    *("reduce", "reduce_or", "reshape", "rsqrt", "sigmoid", "sin", "softmax", "sort", "split", "sqrt", "sqrt_rn"),
    *("store", "sum", "trans", "view", "xor_sum"),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_exist_and_are_documented(name: str) -> None:
    function = getattr(tl, name)
    assert callable(function) and function.__doc__ and len(function.__doc__) > 20


def test_objects_and_modules_exist() -> None:
    assert [name for name in OBJECTS if not hasattr(tl, name)] == []
    assert [name for name in CORE if not hasattr(tl.core, name)] == []
    assert tl.TRITON_MAX_TENSOR_NUMEL == 1048576 and (tl.PropagateNan.NONE, tl.PropagateNan.ALL) == (0, 0xFFFF)


def declared_methods() -> dict[str, list[tuple[str, object]]]:
    """The methods that class `tensor` declares for type checkers only: names and defaults of their parameters."""
    (cls,) = ast.parse(inspect.getsource(tl.tensor)).body
    assert isinstance(cls, ast.ClassDef)
    (block,) = (node for node in cls.body if isinstance(node, ast.If))
    found: dict[str, list[tuple[str, object]]] = {}
    for node in block.body:
        if isinstance(node, ast.Assign):
            assert isinstance(node.value, ast.Name)
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            found |= dict.fromkeys(names, found[node.value.id])
        elif isinstance(node, ast.FunctionDef):
            scope: dict[str, object] = {}
            node.returns = None
            for arg in ast.walk(node.args):
                if isinstance(arg, ast.arg):
                    arg.annotation = None
            exec(ast.unparse(node), scope)
            found[node.name] = parameters(scope[node.name])
    return found


def parameters(function: object) -> list[tuple[str, object]]:
    """Names and defaults of the parameters that callers pass, without the tensor itself."""
    assert callable(function)
    every = list(inspect.signature(function).parameters.values())[1:]
    return [(param.name, param.default) for param in every if not param.name.startswith("_")]


def test_methods_for_type_checkers_are_those_that_are_attached() -> None:
    written = {"to", "item", "logical_and", "logical_or"}  # in the class itself
    attached = {name: parameters(getattr(tl.tensor, name)) for name in {*METHODS, "topk", "atomic_poll"} - written}
    assert declared_methods() == attached


def test_methods_exist_and_are_builtins() -> None:
    assert [name for name in METHODS if not tl.core.is_builtin(getattr(tl.tensor, name, None))] == []


@pytest.mark.parametrize("module", ["math", "standard", "random"])
def test_submodules_share_the_functions(module: str) -> None:
    own = import_module(f"tilework.language.{module}")
    names = [name for name in dir(own) if name in FUNCTIONS]
    assert names and all(getattr(own, name) is getattr(tl, name) for name in names)


def test_the_library_is_written_in_the_language() -> None:
    for name in (
        "cdiv",
        "softmax",
        "sum",
        "max",
        "argmin",
        "cumsum",
        "sort",
        "topk",
        "flip",
        "philox",
        "randn",
        "zeros",
    ):
        assert isinstance(getattr(tl, name), JITFunction)
        assert len(getattr(tl, name).cache_key) == 64


def test_jit_functions_do_not_run_on_the_host() -> None:
    with pytest.raises(RuntimeError):
        tl.sum(tl.tensor("x", tl.int32))


def test_target_info_follows_the_target() -> None:
    class H100:
        backend, arch, warp_size = "cuda", 90, 32

    info = tl.target_info
    assert info.current_target() is not H100 and not info.is_cuda() and not info.cuda_capability_geq(7)
    token = info.TARGET.set(H100)
    try:
        assert info.current_target() is H100 and info.is_cuda() and not info.is_hip() and not info.is_hip_cdna3()
        assert info.cuda_capability_geq(9) and info.cuda_capability_geq(8, 9) and not info.cuda_capability_geq(9, 1)
    finally:
        info.TARGET.reset(token)


def test_importing_the_language_loads_no_compiler() -> None:
    code = (
        "import sys, tilework.language;"
        "print([m for m in sys.modules if m.split('.')[0] in ('xdsl', 'llvmlite', 'numpy', 'torch', 'ml_dtypes')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_signatures_of_builtins() -> None:
    """Builtins have a `signature`, as in Triton; it is found when it is read."""
    builtins = [fn for fn in vars(tl).values() if tl.core.is_builtin(fn)]
    members = [fn for fn in vars(tl.tensor).values() if tl.core.is_builtin(fn)]
    assert len(builtins) > 70 and len(members) > 60
    for fn in (*builtins, *members):
        assert fn.signature == inspect.signature(fn) and str(fn.signature) == str(inspect.signature(fn))
        assert hash(fn.signature) == hash(inspect.signature(fn))
    cat: Any = tl.cat
    signature = cat.signature
    names = ("input", "other", "can_reorder", "dim")
    assert isinstance(signature, inspect.Signature) and tuple(signature.parameters)[:4] == names
    assert signature.bind(1, 2, dim=1).arguments == {"input": 1, "other": 2, "dim": 1}
    assert tuple(signature.replace(parameters=[]).parameters) == () and copy.copy(signature) == signature
