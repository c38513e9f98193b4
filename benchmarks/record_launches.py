"""Records the launches of programs that use Triton, on a machine without a GPU.

`Recorder` takes the place of the launches of whatever `import triton` gives: a kernel does not run, its arguments, grid
and options are written down. `pretend_cuda` lets libraries believe in an H200; tensors are on the CPU. Memory of inputs
is never written, and large computations of torch between launches are left out, so recording at real sizes is quick.

Contents of tensors are recorded as a recipe: inputs that a program made with `Recorder.normal` and the like, and zeros,
are known; other floating-point tensors get positive random numbers. Integers (indices, lengths) are kept as they are.
"""

# pyright: basic, reportMissingImports=false

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, KernelInterface

from benchmarks.corpus import DTYPE_CODES, Descriptor, DType, Function, Launch, Parameter, Storage, Tensor, Writer
from benchmarks.kernel_source import CannotExtract, is_function, is_of_compiler, module_text, unwrapped

STORED_BYTES = 1 << 16  # of an integer tensor that is kept as it is
LARGE = 1 << 20  # elements of a tensor that torch need not compute
UNKNOWN = ["uniform", 0.05, 1.0]
MOST_CONFIGS = 2
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_pdl",
           "launch_cooperative_grid", "allow_flush_denorm")  # fmt: skip
H200 = {
    "name": "NVIDIA H200", "major": 9, "minor": 0, "multi_processor_count": 132, "total_memory": 150 << 30,
    "shared_memory_per_block": 49152, "shared_memory_per_block_optin": 232448,
    "shared_memory_per_multiprocessor": 233472, "warp_size": 32, "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048, "L2_cache_size": 60 << 20, "gcnArchName": "", "is_integrated": 0,
}  # fmt: skip


class Recorder:
    """Writes launches into a corpus; a program labels what it does with `label`."""

    def __init__(self, writer: Writer, library: str, most: int = 4) -> None:
        self.writer, self.library, self.most = writer, library, most
        self.label = ""
        self.config = ""
        self.fills: dict[int, list[Any]] = {}
        self.counts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.texts: dict[Any, tuple[str, dict[int, str]]] = {}

    # What programs call --------------------------------------------------------------------------------------------

    def made(self, shape: tuple[int, ...], dtype: torch.dtype, fill: list[Any], grad: bool) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=dtype)
        self.fills[tensor.untyped_storage().data_ptr()] = fill
        return tensor.requires_grad_(grad)

    def normal(self, *shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0,
               grad: bool = False) -> torch.Tensor:  # fmt: skip
        """Return a tensor that the replay of a launch fills with normally distributed values."""
        return self.made(shape, dtype, ["normal", scale], grad)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.bfloat16,
                grad: bool = False) -> torch.Tensor:  # fmt: skip
        """Return a tensor of evenly distributed numbers."""
        return self.made(shape, dtype, ["uniform", low, high], grad)

    def integers(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Return integers from `low` up to `high`, exclusive, as torch has them."""
        return torch.randint(low, high, shape, dtype=dtype, generator=torch.Generator().manual_seed(7))

    def backward(self, out: torch.Tensor) -> None:
        """Run the backward pass with a gradient of normal numbers."""
        out.backward(self.normal(*out.shape, dtype=out.dtype))

    # Launches ------------------------------------------------------------------------------------------------------

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> None:
        """Record one launch, unless enough launches of the kernel are known."""
        name = f"{kernel.fn.__module__}.{kernel.fn.__name__}"
        if self.counts[name] >= self.most:
            return
        try:
            found = self.described(kernel, args, kwargs, grid)
        except (CannotExtract, TypeError, KeyError, RuntimeError) as error:
            self.failures[f"{name}: {type(error).__name__}: {str(error)[:150]}"] += 1
            return
        if 0 not in found.grid and self.writer.add(found):
            self.counts[name] += 1

    def described(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any) -> Launch:
        bound = bind(kernel, args, kwargs)
        options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
        meta = {**bound, **options}
        sizes: Any = grid(meta) if callable(grid) else grid
        functions = tuple(unwrapped(value) for value in bound.values() if is_function(value))
        key = (id(kernel), *map(id, functions))
        if key not in self.texts:
            self.texts[key] = module_text(kernel, functions)
        text, names = self.texts[key]
        storages = Storages(self)
        arguments = {name: storages.encode(value, names) for name, value in bound.items()}
        name = kernel.fn.__name__
        return Launch(
            self.library, f"{self.label}: {name}{self.config}", self.writer.add_module(name, text), names[id(kernel)],
            [parameter(one) for one in kernel.params], arguments, storages.found,
            [int(size) for size in (sizes if isinstance(sizes, tuple | list) else (sizes,))], options,
        )  # fmt: skip

    def tuned(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Launch a tuned kernel with two configurations that pruning leaves: the ends of a list are rarely the best."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        try:
            configs = list(tuner.prune_configs(kwargs)) or list(tuner.configs)
        except Exception:  # a library's own function: anything can happen in it
            configs = list(tuner.configs)
        chosen = list(dict.fromkeys([len(configs) // 2, len(configs) // 3]))[:MOST_CONFIGS]
        tuner.best_config = configs[0]
        for index in chosen:
            settings = configs[index].all_kwargs()
            if configs[index].pre_hook is not None:
                configs[index].pre_hook({**tuner.nargs, **kwargs, **settings})
            shown = ",".join(str(value) for value in settings.values() if value is not None)
            with self.named(f"[{shown}]"):
                tuner.fn.run(*args, **{**kwargs, **settings})

    @contextlib.contextmanager
    def named(self, config: str) -> Iterator[None]:
        before, self.config = self.config, self.config + config
        try:
            yield
        finally:
            self.config = before

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Take the place of all launches."""
        launches, tuning = JITFunction.run, Autotuner.run

        def launch(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
            self.launch(kernel, args, kwargs, grid)
            return FakeKernel()

        def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            self.tuned(tuner, args, kwargs)

        def pass_on(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
            return wrapper.fn.run(*args, **kwargs)

        JITFunction.run, Autotuner.run = launch, tune
        for made in list(subclasses(KernelInterface)):
            if "run" in vars(made) and not made.__module__.startswith(
                "triton."
            ):  # of a library: it measures and caches
                made.run = tune if issubclass(made, Autotuner) else pass_on
        try:
            with Watching(self), OnCpu():
                yield
        finally:
            JITFunction.run, Autotuner.run = launches, tuning


def subclasses(made: type) -> Iterator[Any]:
    """Yield the classes that inherit from one, directly or not."""
    for one in made.__subclasses__():
        yield one
        yield from subclasses(one)


class FakeKernel:
    """The compiled kernel that a launch returns."""

    n_regs, n_spills, shared = 32, 0, 0
    metadata = SimpleNamespace(shared=0, num_warps=4, num_ctas=1)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, **kwargs: None


def bind(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a launch by parameter, in order."""
    names = [one.name for one in kernel.params]
    given = {**dict(zip(names, args, strict=False)), **{name: kwargs[name] for name in names if name in kwargs}}
    for one in kernel.params:
        if one.name not in given and one.default is inspect.Parameter.empty:
            raise TypeError(f"no argument {one.name}")
        given.setdefault(one.name, one.default)
    return {name: given[name] for name in names}


def parameter(one: Any) -> Parameter:
    return Parameter(one.name, bool(one.is_constexpr), not one.do_not_specialize,
                     not one.do_not_specialize_on_alignment, one.annotation_type or "")  # fmt: skip


class Storages:
    """The storages of one launch, as its tensors need them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.found: list[Storage] = []
        self.indices: dict[int, int] = {}

    def encode(self, value: Any, functions: dict[int, str]) -> Any:
        """Return an argument as the corpus has it."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if is_of_compiler(value, "constexpr"):
            return self.encode(value.value, functions)
        if is_of_compiler(value, "pointer_type"):
            return DType(value.element_ty.name, is_pointer=True)
        if is_of_compiler(value, "dtype"):
            return DType(value.name)
        if is_function(value):
            return Function(functions[id(unwrapped(value))])
        if type(value).__name__ == "TensorDescriptor":
            return Descriptor(self.tensor(value.base), list(value.shape), list(value.strides), list(value.block_shape),
                              getattr(value, "padding", "zero"))  # fmt: skip
        if hasattr(value, "data_ptr") and isinstance(getattr(value, "_base", None), torch.Tensor):
            return self.pointer(value)
        if type(value) in (tuple, list, torch.Size):
            return tuple(self.encode(item, functions) for item in value)
        for made in (bool, int, float, str):
            if isinstance(value, made):
                return made(value)
        if value is None or getattr(value, "is_stub", False) is True:  # a stub: a setting of a library that is off
            return None if value is None else False
        raise TypeError(f"an argument of type {type(value)}")

    def pointer(self, value: Any) -> Tensor:
        """Return an address in a tensor, of a library's own class."""
        base, dtype = self.tensor(value._base), DTYPE_CODES[str(value.dtype).removeprefix("torch.")]
        distance = value.data_ptr() - value._base.untyped_storage().data_ptr()
        return Tensor(base.storage, dtype, [1], [1], distance // value.dtype.itemsize)

    def tensor(self, value: torch.Tensor) -> Tensor:
        storage = value.untyped_storage()
        key, dtype = storage.data_ptr(), DTYPE_CODES[str(value.dtype).removeprefix("torch.")]
        if key not in self.indices or key == 0:
            self.indices[key] = len(self.found)
            self.found.append(self.storage(value))
        index = self.indices[key]
        return Tensor(index, dtype, list(value.shape), list(value.stride()), value.storage_offset())

    def storage(self, value: torch.Tensor) -> Storage:
        """Return a tensor's storage, with what it holds."""
        count = max(1, value.untyped_storage().nbytes() // value.element_size())
        dtype = DTYPE_CODES[str(value.dtype).removeprefix("torch.")]
        known = self.recorder.fills.get(value.untyped_storage().data_ptr(), UNKNOWN)
        if value.is_floating_point():
            return Storage(dtype, count, known)
        if known == ["empty"]:
            return Storage(dtype, count, ["constant", 0])
        flat = value.detach().as_strided((count,), (1,), 0)
        return Storage(dtype, count, self.contents(flat))

    def contents(self, flat: torch.Tensor) -> list[Any]:
        """Return what an integer tensor holds."""
        wide = flat.to(torch.int64) if flat.dtype != torch.uint64 else flat.view(torch.int64)
        low, high = int(wide.min()), int(wide.max())
        if low == high:
            return ["constant", low]
        if torch.equal(wide, torch.arange(flat.numel())):
            return ["range"]
        if flat.numel() * flat.element_size() <= STORED_BYTES:
            return ["stored", self.recorder.writer.add_data(bytes(flat.contiguous().view(torch.uint8).numpy()))]
        return ["sorted" if bool((wide.diff() >= 0).all()) else "integers", low, high]


# What happens between launches ----------------------------------------------------------------------------------------

ZEROS = ("zeros", "zeros_like", "new_zeros", "zero_", "zero")
EMPTIES = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
COPIES = ("clone", "_to_copy", "contiguous", "copy_", "_reshape_copy", "cat", "stack")


class Watching(TorchDispatchMode):
    """Notes how tensors are filled, and leaves out what torch would compute of large floating-point tensors."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if is_gpu(kwargs.get("device")):  # from a backward pass, which no function mode sees
            kwargs["device"] = torch.device("cpu")
        name = func.overloadpacket.__name__
        out = self.skipped(func, name, args, kwargs)
        out = func(*args, **kwargs) if out is NotImplemented else out
        if name in EMPTIES:
            self.mark(out, ["empty"])
        elif name in ZEROS or (name in ("fill_", "full", "full_like", "new_full", "ones", "ones_like")):
            value = 0 if name in ZEROS else next((one for one in args[1:] if isinstance(one, int | float)), 1)
            self.mark(out if name not in ("zero_", "fill_") else args[0], ["constant", value])
        elif isinstance(out, torch.Tensor) and not is_view(out, args):
            first = next((one for one in tensors_of(args) if one.is_floating_point()), None)
            fill = None if first is None else self.recorder.fills.get(first.untyped_storage().data_ptr())
            self.mark(out, fill if fill is not None and name in COPIES else None)
        return out

    def mark(self, out: Any, fill: list[Any] | None) -> None:
        if not isinstance(out, torch.Tensor):
            return
        key = out.untyped_storage().data_ptr()
        if fill is None or (fill == ["empty"] and out.is_floating_point()):
            self.recorder.fills.pop(key, None)
        else:
            self.recorder.fills[key] = fill

    def skipped(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return an empty result for a large computation, or NotImplemented."""
        given = list(tensors_of(args))
        is_large = any(one.numel() >= LARGE and one.is_floating_point() for one in given)
        if (
            not is_large
            or func.is_view
            or name in (*EMPTIES, *ZEROS, "detach", "set_", "resize_", "_local_scalar_dense")
        ):
            return NotImplemented
        if name.endswith("_") and not name.endswith("__"):
            return args[0]
        if isinstance(kwargs.get("out"), torch.Tensor):
            return kwargs["out"]
        try:
            with torch.utils._python_dispatch._disable_current_modes():
                meta = func(*tree_map_only(torch.Tensor, lambda one: one.to("meta"), args),
                            **tree_map_only(torch.Tensor, lambda one: one.to("meta"), kwargs))  # fmt: skip
                if not all(one.is_floating_point() for one in tensors_of([meta])):
                    return NotImplemented
                return tree_map_only(torch.Tensor, lambda one: torch.empty_strided(one.shape, one.stride(),
                                                                                  dtype=one.dtype), meta)  # fmt: skip
        except (NotImplementedError, RuntimeError):  # an op without a meta kernel: it runs on the host tensors
            return NotImplemented


def tensors_of(args: Any) -> Iterator[torch.Tensor]:
    for one in args:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, tuple | list):
            yield from tensors_of(one)


def is_view(out: torch.Tensor, args: Any) -> bool:
    key = out.untyped_storage().data_ptr()
    return any(one.untyped_storage().data_ptr() == key for one in tensors_of(args))


class OnCpu(TorchFunctionMode):
    """Makes tensors for a GPU on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if is_gpu(kwargs.get("device")):
            kwargs["device"] = "cpu"
        kwargs.pop("pin_memory", None)
        if func is torch.Tensor.to:
            args = tuple("cpu" if is_gpu(one) else one for one in args)
        return func(*args, **kwargs)


def is_gpu(device: Any) -> bool:
    if isinstance(device, str):
        return device.startswith("cuda")
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


class FakeDriver:
    """The driver of a GPU that is not there."""

    utils = SimpleNamespace(
        get_device_properties=lambda device: {
            "max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32,
            "sm_clock_rate": 1980000, "mem_clock_rate": 3201000, "mem_bus_width": 6144,
        },
        set_printf_fifo_size=lambda size: None,
    )  # fmt: skip

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return 9, 0

    def get_benchmarker(self) -> Any:
        return lambda *args, **kwargs: [1.0]

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        pass

    def set_current_device(self, device: Any) -> None:
        pass

    @classmethod
    def is_active(cls) -> bool:
        return True


class NoContext:
    """A context manager of torch.cuda that does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cuda_stream = 0

    def __enter__(self) -> "NoContext":
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class Philox:
    """The random numbers of a GPU: a seed and an offset."""

    def get_state(self) -> torch.Tensor:
        return torch.tensor([1, 0]).view(torch.uint8)

    def set_state(self, state: torch.Tensor) -> None:
        pass


class PlainOperator:
    """A custom operator of torch that is just its function: a registered one would look for its CUDA kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("register"):
            raise AttributeError(name)
        return lambda *args, **kwargs: args[0] if args and callable(args[0]) else (lambda function: function)


def plain_operator(name: str, function: Any = None, **kwargs: Any) -> Any:
    """Take the place of `torch.library.custom_op`."""
    return PlainOperator if function is None else PlainOperator(function)


def on_cpu(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that makes a tensor, without the device of a GPU."""
    return function(*args, **{name: value for name, value in kwargs.items() if name != "device" or not is_gpu(value)})


def pretend_cuda() -> None:
    """Let libraries find one H200 in this process."""
    for name in ("torch._dynamo", "torch.distributed.tensor", "torch._inductor.runtime.triton_heuristics",
                 "torch._inductor.inductor_prims", "torch._inductor.lowering", "torch._higher_order_ops"):  # fmt: skip
        with contextlib.suppress(ImportError):  # they would look for functions of a torch with CUDA later
            importlib.import_module(name)
    answers: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0, "synchronize": None,
        "get_device_name": "NVIDIA H200", "get_device_capability": (9, 0), "empty_cache": None, "_lazy_init": None,
        "get_device_properties": SimpleNamespace(**H200), "is_bf16_supported": True, "set_device": None,
        "is_current_stream_capturing": False, "mem_get_info": (140 << 30, 150 << 30), "max_memory_allocated": 0,
        "get_arch_list": ["sm_90"], "_is_compiled": True, "init": None,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, functools.partial(lambda answer, *args, **kwargs: answer, answer))
    for name in ("device", "device_of", "stream", "_DeviceGuard", "Stream", "Event", "current_stream"):
        setattr(torch.cuda, name, NoContext)
    for name in ("tensor", "as_tensor"):  # in a backward pass no mode sees them
        setattr(torch, name, functools.partial(on_cpu, getattr(torch, name)))
    torch.cuda.default_generators = (Philox(),)
    os.environ["GEMS_VENDOR"] = "nvidia"  # FlagGems would ask nvidia-smi
    torch.library.wrap_triton = lambda kernel: kernel
    torch.library.register_fake = lambda *args, **kwargs: lambda function: function
    torch.accelerator.device_index, torch.accelerator.current_device_index = NoContext, lambda: 0
    torch.get_device_module = lambda *args: torch.cuda
    torch.library.triton_op = torch.library.custom_op = plain_operator
    torch.version.cuda = "12.8"
    torch.Tensor.is_cuda = property(lambda tensor: True)  # type: ignore[assignment]
    torch.Tensor.device = property(lambda tensor: torch.device("cuda", 0))  # type: ignore[assignment]
    torch.Tensor.cuda = lambda tensor, *args, **kwargs: tensor  # type: ignore[assignment]
    torch.Tensor.get_device = lambda tensor: 0  # type: ignore[assignment]
    torch.Tensor.record_stream = lambda tensor, stream: None  # type: ignore[assignment]
    pretend_driver()


def pretend_driver() -> None:
    """Let Triton find a driver."""
    triton.runtime.driver.set_active(FakeDriver())


def record(library: str, programs: list[Callable[[Recorder], None]], writer: Writer, words: list[str]) -> Recorder:
    """Run programs and record their launches; one that fails is reported, and the next one runs."""
    recorder = Recorder(writer, library)
    for program in programs:
        if words and not any(word in program.__name__ for word in words):
            continue
        recorder.label = program.__name__
        before = sum(recorder.counts.values())
        try:
            with contextlib.nullcontext() if hasattr(program, "records_itself") else recorder.recording():
                program(recorder)
            failed = ""
        except Exception as error:  # a library's own code: anything can happen in it
            where = inspect.getinnerframes(error.__traceback__)[-1] if error.__traceback__ else None
            place = f"{where.filename.split('site-packages/')[-1]}:{where.lineno}" if where else ""
            failed = f"  {type(error).__name__}: {str(error)[:200]} ({place})"
        recorder.fills.clear()
        print(f"{library} {program.__name__}: {sum(recorder.counts.values()) - before} launches{failed}", flush=True)
    for failure, count in recorder.failures.items():
        print(f"    {count} x {failure}", file=sys.stderr)
    return recorder
