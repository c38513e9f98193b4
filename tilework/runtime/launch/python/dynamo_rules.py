"""Keep torch.compile out of the launcher.

Dynamo, the tracer of torch.compile, compiles every Python frame below a compiled function that has tensors in it. A
launch that it cannot put into its graph runs below one, and Dynamo would compile the launcher, function by function,
again for each shape. It skips frames by the path of their file (`torch._dynamo.trace_rules`), so the rules get the path
of this package; what functions marked `untraced` call, generated code and other packages included, is not offered to
Dynamo at all. Functions that traced code calls itself, such as `cdiv`, are still traced through.

Nothing here imports torch. Dynamo has no hook for packages, so the rules are added when a kernel is defined or launched
after a program has loaded it.
"""

import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

PACKAGE = os.path.abspath(f"{__file__}/../../../..").replace(os.sep, "/")
TRACED = ("language", "runtime/tuning", "tools")  # cdiv, dtypes; methods of Config; TensorDescriptor
UNTRACED: set[CodeType] = set()  # and not marked yet

Function = TypeVar("Function", bound=Callable[..., Any])


def untraced(function: Function) -> Function:
    """Let Dynamo trace neither this function nor what it calls; the function itself is unchanged."""
    UNTRACED.add(function.__code__)  # pyright: ignore[reportFunctionMemberAccess]
    add_rules()
    return function


def add_rules() -> bool:
    """Add the rules that Dynamo lacks; return False if there are none, or if it is not completely loaded."""
    rules: Any = sys.modules.get("torch._dynamo.trace_rules")
    frames: Any = sys.modules.get("torch._dynamo.eval_frame")
    if not hasattr(rules, "is_torch_inline_allowed") or not hasattr(frames, "skip_code"):
        return False
    if (folder := f"{PACKAGE}/") not in rules.SKIP_DIRS and hasattr(rules, "BUILTIN_INLINE_WHEN_CALLED"):
        rules.BUILTIN_INLINE_WHEN_CALLED.update(f"{folder}{traced}/" for traced in TRACED)
        rules.SKIP_DIRS.append(folder)
        rules._recompile_re()
    is_new, skip = bool(UNTRACED), frames.FrameAction.SKIP
    while UNTRACED:
        frames.set_code_exec_strategy(UNTRACED.pop(), frames.FrameExecStrategy(skip, skip))
    return is_new
