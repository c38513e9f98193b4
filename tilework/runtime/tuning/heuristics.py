"""Compile-time parameters computed from the arguments of each launch."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn

from tilework.language.function import FunctionSignature
from tilework.language.parameters import signature_of
from tilework.runtime.launch.python.dynamo_rules import untraced
from tilework.runtime.launch.python.jit import JITFunction, KernelInterface


class Wrapper(KernelInterface):
    """Something around a kernel that is launched as the kernel is, and has its name."""

    def __init__(self, fn: KernelInterface, arg_names: Sequence[str]) -> None:
        self.fn = fn
        self.base_fn = base_function(fn)
        self.__name__, self.__doc__ = self.base_fn.__name__, self.base_fn.__doc__
        self.__module__ = self.base_fn.__module__
        self.arg_names = list(arg_names)

    @property
    def signature(self) -> inspect.Signature:
        """That of the Python function, as `inspect.signature` finds it here too."""
        return signature_of(self.base_fn)

    __signature__ = FunctionSignature()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"launch `{self.__name__}` over a grid: `{self.__name__}[grid](...)`")

    def __repr__(self) -> str:
        from tilework.language.notebook import wrapper_text  # lazily: few look at it

        return wrapper_text(self)

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from tilework.language.notebook import wrapper_html  # lazily: only notebooks need it

        return wrapper_html(self)


class Heuristics(Wrapper):
    """A kernel with parameters that `heuristics` compute from the others; it is launched as the kernel is.

    Example:
        @tilework.heuristics({"N": lambda args: len(args["x"])})
        @tilework.jit
        def kernel(x, N: tl.constexpr):
            tl.store(x + tl.arange(0, N), N)

        assert isinstance(kernel, tilework.Heuristics) and kernel.arg_names == ["x", "N"]
    """

    def __init__(
        self, fn: KernelInterface, arg_names: Sequence[str], values: Mapping[str, Callable[[dict[str, Any]], object]]
    ) -> None:
        super().__init__(fn, arg_names)
        self.values = values

    def extend(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """The keyword arguments with the computed ones; each rule sees what the rules before it gave."""
        named = dict(zip(self.arg_names, args, strict=False))
        extended = dict(kwargs)
        for name, rule in self.values.items():
            extended[name] = rule({**named, **extended})
        return extended

    @untraced
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the computed parameters."""
        return launch_inside(self.fn, args, self.extend(args, kwargs))

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compile with the computed parameters."""
        return self.fn.warmup(*args, **self.extend(args, kwargs))


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], object]]) -> Callable[[Any], Heuristics]:
    """Compute compile-time parameters from the arguments of each launch.

    `values` maps names of parameters to functions of the arguments (by name); each sees what those before it gave. A
    decorator above `jit`, and below or above `autotune`.

    Example:
        @tilework.heuristics({"BLOCK": lambda args: tilework.next_power_of_2(args["n"])})
        @tilework.jit
        def total(x, out, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(out, tl.sum(tl.load(x + i, mask=i < n, other=0)))

        x, out = np.arange(100), np.zeros(1, np.int64)
        total[(1,)](x, out, 100)  # BLOCK is 128
        assert out[0] == x.sum()
    """
    return lambda fn: Heuristics(fn, fn.arg_names, values)


def launch_inside(fn: KernelInterface, args: Sequence[object], kwargs: dict[str, Any]) -> Any:
    """Run ``fn.run(*args, **kwargs)``, in machine code if possible (`launch/native/kernel_launch.py`)."""
    if kwargs.get("warmup") or "grid" not in kwargs:
        return fn.run(*args, **kwargs)
    kwargs.pop("warmup", None)
    return fn[kwargs.pop("grid")](*args, **kwargs)


def base_function(fn: Any) -> FunctionType:
    """The Python function inside all wrappers."""
    while not inspect.isfunction(fn):
        fn = fn.fn
    return fn


def jit_function(fn: Any) -> JITFunction | None:
    """The kernel inside all wrappers; None if it is interpreted."""
    while not isinstance(fn, JITFunction) and hasattr(fn, "fn"):
        fn = fn.fn
    return fn if isinstance(fn, JITFunction) else None
