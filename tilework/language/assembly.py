"""Builtins that leave the language: inline assembly, and functions of device libraries."""

import builtins
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, tuple


def inline_asm_elementwise(
    asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any, _semantic: Any = None
) -> Any:
    """Run a piece of assembly on every element, or on `pack` elements at once.

        popc = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)

    `constraints` are LLVM's: outputs first, then inputs. Elements narrower than 32 bits are packed into registers. A
    tuple of dtypes gives a tuple of results. What is not `is_pure` is neither removed nor repeated.
    """
    plain = _unwrap_if_constexpr(dtype)
    several = isinstance(plain, (tuple, builtins.tuple, list))
    results = _semantic.inline_asm_elementwise(
        _unwrap_if_constexpr(asm),
        _unwrap_if_constexpr(constraints),
        list(args),
        list(plain) if several else [plain],
        _unwrap_if_constexpr(is_pure),
        _unwrap_if_constexpr(pack),
    )
    return tuple(results) if several else results[0]


def extern_elementwise(
    lib_name: Any, lib_path: Any, args: Any, arg_type_symbol_dict: Any, is_pure: Any, _semantic: Any = None
) -> Any:
    """Call a function of a device library on every element; the dtypes of the arguments choose the symbol.

    symbols = {(tl.float32,): ("__nv_expf", tl.float32), (tl.float64,): ("__nv_exp", tl.float64)}
    y = tl.core.extern_elementwise("", "", [x], symbols, is_pure=True)
    """
    return _semantic.extern_elementwise(
        _unwrap_if_constexpr(lib_name),
        _unwrap_if_constexpr(lib_path),
        list(args),
        _unwrap_if_constexpr(arg_type_symbol_dict),
        _unwrap_if_constexpr(is_pure),
    )
