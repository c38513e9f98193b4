"""Compile-time parameters computed from the arguments of each launch."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import FunctionType
from typing import Any, NoReturn, Self

from tilework.language.function import FunctionSignature
from tilework.language.parameters import signature_of
from tilework.runtime.launch.python.dynamo_rules import untraced
from tilework.runtime.launch.python.jit import JITFunction
from tilework.runtime.launch.python.kernel_interface import KernelInterface


class Wrapper(KernelInterface):
    """A wrapper of a kernel, which is launched like the kernel and has its name."""

    def __init__(self, fn: KernelInterface, arg_names: Sequence[str]) -> None:
        self.fn = fn
        self.base_fn = base_function(fn)
        self.__name__, self.__doc__ = self.base_fn.__name__, self.base_fn.__doc__
        self.__module__ = self.base_fn.__module__
        self.arg_names = list(arg_names)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the Python function, which `inspect.signature` finds here."""
        return signature_of(self.base_fn)

    __signature__ = FunctionSignature()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(f"launch `{self.__name__}` over a grid: `{self.__name__}[grid](...)`")

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the wrapper by name, as kernels are, if its module has it under that name."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.base_fn.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.base_fn.__qualname__ if found is self else super().__reduce_ex__(protocol)

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__getstate__())
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(deepcopy(self.__getstate__(), memo))
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which binds its own launches."""
        return {name: value for name, value in self.__dict__.items() if name != "_bind_grid"}

    def __repr__(self) -> str:
        from tilework.language.notebook import wrapper_text  # lazily: few look at it

        return wrapper_text(self)

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from tilework.language.notebook import wrapper_html  # lazily: only notebooks need it

        return wrapper_html(self)


class Heuristics(Wrapper):
    """A kernel with parameters that `heuristics` computes from the others; it is launched like the kernel.

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
        """Return the keyword arguments and the computed ones; each rule sees the values of the rules before it."""
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

    `values` maps parameter names to functions of the arguments (by name); each function also sees the values computed
    before it. Place the decorator above `jit`, and below or above `autotune`.

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
    for name, rule in values.items():
        if not callable(rule):
            raise TypeError(f"heuristics: the rule of {name!r} is a function, such as lambda args: 64, not {rule!r}")
    return lambda fn: Heuristics(fn, parameters_of(fn, "heuristics"), values)


def parameters_of(fn: Any, decorator: str) -> Sequence[str]:
    """The names of the parameters of a kernel that a decorator gets; a TypeError if it gets another function."""
    if inspect.isfunction(fn):
        raise TypeError(f"`{fn.__name__}` is no kernel yet: place @{decorator} above @jit, not below it")
    return fn.arg_names


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
