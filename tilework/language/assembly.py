"""Builtins that leave the language: inline assembly, and functions of device libraries."""

import builtins
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr, tuple


def inline_asm_elementwise(
    asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any, _semantic: Any = None
) -> Any:
    """Run a piece of assembly on every element, or on `pack` elements at once.

        popc = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)

    `asm` is in the language of the target, PTX on NVIDIA GPUs and amdgcn on AMD's. The CPU and the interpreter refuse it: a kernel
    that shall run everywhere asks `tl.target_info`. `constraints` are LLVM's: outputs first, then inputs. Elements
    narrower than 32 bits are packed into registers. A tuple of dtypes gives a tuple of results. What is not `is_pure` is neither
    removed nor repeated.

    Example:
        @tilework.jit
        def count_bits(x, out):
            value = tl.load(x + tl.arange(0, 4))
            if tl.target_info.is_cuda():
                bits = tl.inline_asm_elementwise(
                    "popc.b32 $0, $1;", "=r,r", [value], dtype=tl.int32, is_pure=True, pack=1
                )
            else:
                bits = tl.extra.libdevice.popc(value)
            tl.store(out + tl.arange(0, 4), bits)

        out = np.zeros(4, np.int32)
        count_bits[(1,)](np.array([0, 1, 7, 255], np.int32), out)
        assert out.tolist() == [0, 1, 3, 8]
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

    `tl.extra.libdevice` calls it for about two hundred functions, under symbols that all targets know: their code is generated, no
    library is needed. Other symbols come from a library of bitcode that the launch's option `extern_libs` names, on NVIDIA GPUs.

    Example:
        @tl.core.extern
        def hypotenuse(x, y, _semantic=None):
            symbols = {(tl.float32, tl.float32): ("__nv_hypotf", tl.float32)}
            return tl.core.extern_elementwise("", "", [x, y], symbols, is_pure=True, _semantic=_semantic)

        x, y = np.array([3.0, 5.0], np.float32), np.array([4.0, 12.0], np.float32)
        assert_close(call(hypotenuse, x, y), [5, 13])
    """
    return _semantic.extern_elementwise(
        _unwrap_if_constexpr(lib_name),
        _unwrap_if_constexpr(lib_path),
        list(args),
        _unwrap_if_constexpr(arg_type_symbol_dict),
        _unwrap_if_constexpr(is_pure),
    )
