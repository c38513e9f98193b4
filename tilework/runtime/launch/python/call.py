"""One function of the language, tried from Python: arrays become blocks, and what it returns becomes arrays again.

    >>> call(tl.cumsum, np.array([1, 2, 3, 4]), axis=0)
    array([ 1,  3,  6, 10])

The kernel around the function is written as text, because its parameters are those of the call. What the function
returns is known only once it has been called: a first kernel calls it and keeps the types (the frontend runs, nothing
is compiled), a second one stores the results.
"""

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tilework import knobs
from tilework.language import core as tl
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.jit import JITFunction, jit
from tilework.runtime.launch.python.specialization import Specialization

FILES = (f"<call {index}>" for index in count())  # names of the texts, for tracebacks


def call(fn: object, /, *args: object, **kwargs: object) -> Any:
    """Call a function of the language on blocks with the given values, and return the results as NumPy arrays.

    `fn` is a function of `tl` or a jit function. A NumPy array (or a torch tensor) is passed as a block of its shape, a
    NumPy scalar or an array of rank 0 as a run-time scalar, and a tuple of arrays as a tuple of blocks. All other
    arguments (Python scalars, shapes, dtypes, functions) are constants of the kernel. A tuple of results gives a tuple
    of arrays. NumPy has no bfloat16 and no float8: results of these types are returned as float32, which can represent
    all their values.

    The kernel runs as one program, as any other kernel would: compiled for the active device, or interpreted with
    ``TRITON_INTERPRET=1``.

    Example:
        x = np.array([1.0, 4.0, 9.0, 16.0], np.float32)
        assert_close(call(tl.sqrt, x), [1, 2, 3, 4])

        @tilework.jit
        def scaled(x, factor):
            return x * factor

        assert_close(call(scaled, x, np.float32(0.5)), x / 2)
    """
    written = Call(fn)
    passed = [written.parameter(value) for value in args]
    named = [f"{name}={written.parameter(value)}" for name, value in kwargs.items()]
    return written.results(f"fn({', '.join([*passed, *named])})")


@dataclass
class Call:
    """A call that is being written: the parameters of its kernel and what is passed for them."""

    fn: Any
    declared: list[str] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)

    def parameter(self, value: Any) -> str:
        """The expression of a value of the call in the kernel."""
        name = f"a{len(self.declared)}"
        if type(value).__module__ == "torch" and hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        if not is_array(value):
            if isinstance(value, tuple) and any(map(is_array, value)):
                return f"({', '.join(self.parameter(part) for part in value)},)"
            self.declare(f"{name}: tl.constexpr", value)
            return name
        import numpy as np  # lazily: kernels do not need it

        self.declare(name, np.ascontiguousarray(value))  # also a scalar, which would lose its dtype as an argument
        if not value.ndim:
            return f"tl.load({name})"
        if not value.size:
            raise ValueError(f"{self.name}: blocks have elements, and this array has none: its shape is {value.shape}")
        return f"tl.load({name} + tl.arange(0, {value.size})).reshape({tuple(value.shape)})"

    def declare(self, parameter: str, value: object) -> None:
        self.declared.append(parameter)
        self.given.append(value)

    def results(self, text: str) -> Any:
        """The values of the expression `text`."""
        import numpy as np  # lazily: kernels do not need it

        types: list[Any] = []
        several = self.find_types(text, types)
        if not types:
            self.run([f"    {text}"], [])
            return None
        stored = [storable(type.scalar) for type in types]
        outputs = [np.empty(type.sizes or (1,), numpy_name(dtype)) for type, dtype in zip(types, stored, strict=True)]
        body = [f"    value = {text}"]
        for index, (type, dtype, output) in enumerate(zip(types, stored, outputs, strict=True)):
            part = f"value[{index}]" if several else "value"
            where = f"out{index} + tl.arange(0, {output.size})" if type.sizes else f"out{index}"
            shaped = f".reshape([{output.size}])" if type.sizes else ""
            body.append(f"    tl.store({where}, tl.cast({part}, tl.{dtype.codegen_name()}){shaped})")
        self.run(body, outputs)
        arrays = [output if type.sizes else output[0] for type, output in zip(types, outputs, strict=True)]
        return tuple(arrays) if several else arrays[0]

    def find_types(self, text: str, types: list[Any]) -> bool:
        """Append the types of the results to `types`; return True if they are in a tuple."""
        returned: list[Any] = []

        def keep(value: object, _semantic: Any = None) -> None:
            returned.append(tl._unwrap_if_constexpr(value))
            for part in returned[0] if isinstance(returned[0], tl.tuple) else returned:
                if part is None and part is returned[0]:
                    return
                type = _semantic.to_tensor(part).type if isinstance(part, tl.tensor | int | float) else None
                if type == tl.void:
                    return
                if type is None or type.scalar.is_ptr():
                    raise TypeError(f"{self.name} returns {part}, which cannot become an array: call it in a kernel")
                types.append(type)

        kernel = self.kernel([f"    keep({text})"], 0, tl.builtin(keep))
        if isinstance(kernel, JITFunction):
            only_frontend(kernel, [*self.given, self.fn])
        else:
            kernel[(1,)](*self.given, self.fn)
        return isinstance(returned[0], tl.tuple)

    def run(self, body: Sequence[str], outputs: Sequence[object]) -> None:
        self.kernel(body, len(outputs))[(1,)](*self.given, self.fn, *outputs)

    def kernel(self, body: Sequence[str], outputs: int, keep: object = None) -> Any:
        """The kernel with this body, to be compiled or interpreted as `fn` is."""
        parameters = [*self.declared, "fn: tl.constexpr", *(f"out{index}" for index in range(outputs))]
        text = "\n".join([f"def call_{self.name}({', '.join(parameters)}):", *body, ""])
        file = next(FILES)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        namespace = {"tl": tl, "keep": keep, "__name__": __name__}
        exec(compile(text, file, "exec"), namespace)
        needs_source = getattr(self.fn, "needs_source", True)  # what is interpreted does not
        return jit(namespace[f"call_{self.name}"], interpret=knobs.runtime.interpret or not needs_source)

    @property
    def name(self) -> str:
        name = getattr(self.fn, "__name__", type(self.fn).__name__)
        return name if name.isidentifier() else "function"  # a lambda, which the compiler will refuse


def is_array(value: object) -> bool:
    """Return True for an array or a scalar of NumPy."""
    return type(value).__module__ == "numpy" and hasattr(value, "ndim")


def storable(dtype: Any) -> Any:
    """The type in which NumPy can hold the values of a type."""
    return tl.float32 if dtype.is_fp8() or dtype.is_bf16() else dtype


def numpy_name(dtype: Any) -> str:
    """``float32``, ``uint8``, ``bool``."""
    return "bool" if dtype.is_int1() else dtype.codegen_name()


def only_frontend(kernel: JITFunction, args: Sequence[object]) -> None:
    """Run the frontend on a launch; nothing is compiled, and no cache remembers it."""
    from tilework.runtime.compile.sources import frontend_options  # lazily: the compiler loads when it is needed

    _, _, target, backend, bind = kernel.device_caches[driver.cache_key(driver.active)]
    values, specs, _, _ = bind(*args)
    options = kernel.full_options({}, backend)
    specialization = Specialization.of(kernel, values, specs, options)
    specialization.source().stage_input(frontend_options(target, backend.parse_options(options)))
