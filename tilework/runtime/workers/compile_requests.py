"""A compilation as a message: everything another process needs to repeat it.

    client                                             worker
    request = request_for(kernel, args, kwargs)  ──▶   make the kernel again, or load what defines it, check its hash,
                                                       compile into the disk cache
    kernel[grid](...) finds the product there    ◀──   "compiled"

A kernel is sent as its text (`sent_kernel.py`), or, if that refers to what cannot be sent, only named by module, file and
qualified name. Who has the text need not import anything: of libraries that take seconds to load, like torch, a kernel often
needs a constant or the name of a function. Both sides compute the hash of the kernel and the key
of the cache entry; if they differ (a global was changed after import, a module was edited) the worker refuses, and the
client compiles for itself. Kernels defined inside functions, in notebooks or typed at a prompt are not sent at all.
"""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.errors import DoesNotFit
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars
from tilework.runtime.launch.python.jit import JITFunction
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.launch.python.wrappers import MockTensor
from tilework.runtime.workers.line_channel import Message
from tilework.runtime.workers.module_slice import load_slice
from tilework.runtime.workers.process_context import Context, is_as_written
from tilework.runtime.workers.sent_kernel import NotSendable, Receiver, Sender
from tilework.targets.base import GPUTarget

PARTS: dict[tuple[str, str], ModuleType] = {}  # of a worker: what it has loaded, by file and kernel
MADE: dict[str, JITFunction] = {}  # ... and what it has made of texts, by the hash
NOT_SENDABLE = (TypeError, ValueError, OverflowError, AssertionError, KeyError, AttributeError, DoesNotFit)


class Refused(Exception):
    """This process cannot repeat the compilation; the message says why."""


@dataclass(frozen=True)
class Request:
    """One compilation. All fields are JSON."""

    module: str
    file: str
    qualname: str
    fn_key: str
    entry_key: str
    data: str
    target: tuple[str, int | str, int]
    properties: dict[str, Any]
    text: Message | None = None


def request_for(kernel: JITFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Request | None:
    """The compilation that this launch needs; None if there is nothing to do, or if it cannot be sent."""
    file = importable_file(kernel)
    if file is None:
        return None
    device = driver.active.get_current_device()
    kernels, _, target, backend, bind = kernel.device_caches[driver.cache_key(driver.active)]
    if not is_as_written(type(backend)):
        return None
    try:
        values, specs, _, options = bind(*map(MockTensor.wrap_dtype, args), **kwargs)
        specialization = Specialization.of(kernel, values, specs, kernel.full_options(options, backend))
        if specialization.key in kernels:
            return None
        parsed = backend.parse_options(specialization.options)
        source = specialization.source()
        key = cache.get_cache_key(source, backend, parsed, cache_invalidating_env_vars())
        data = specialization.to_data(parsed)
    except NOT_SENDABLE:  # the launch itself will raise it, where the user can see which one
        return None
    if cache.load_entry(key, source.name) is not None:
        return None
    return Request(
        module=kernel.fn.__module__,
        file=file,
        qualname=kernel.fn.__qualname__,
        fn_key=kernel.cache_key,
        entry_key=key,
        data=data,
        target=(target.backend, target.arch, target.warp_size),
        properties=driver.active.utils.get_device_properties(device),
        text=text_of(kernel),
    )


def text_of(kernel: JITFunction) -> Message | None:
    """What `made_again` needs; None if the kernel refers to something that is only in this process."""
    sender = Sender()
    try:
        return {"fn": sender.value(kernel), "functions": sender.functions}
    except NotSendable:
        return None


def importable_file(kernel: JITFunction) -> str | None:
    """The file that defines a kernel under its own name; None if no other process could get it from there."""
    file = kernel.fn.__code__.co_filename
    if "<locals>" in kernel.fn.__qualname__ or kernel.fn.__closure__ or not os.path.isfile(file):
        return None
    if kernel.fn.__module__ == "__main__" and "." in kernel.fn.__qualname__:
        return None
    return os.path.abspath(file)


class TargetOnly:
    """A driver that knows what to compile for and nothing else: workers never touch a GPU."""

    def __init__(self, target: GPUTarget, properties: dict[str, Any]) -> None:
        self.target = target
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(properties))

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch  # lazily: torch is optional

        return torch.device(self.target.backend, 0) if self.target.backend != "cpu" else torch.device("cpu")


def adopt(context: Context, target: Sequence[Any], properties: dict[str, Any]) -> None:
    """Make this process look like the one that asks: folder, import path, names, environment and target."""
    if cache.triton_key() != context.package:
        raise Refused("the files of tilework changed after the process that asks was started")
    os.chdir(context.folder)
    sys.path[:] = context.path
    knobs.replace_environment({**context.environment, "TILEWORK_COMPILE_WORKERS": "0"})  # workers have no workers
    if context.as_triton:
        importlib.import_module("tilework.as_triton").as_triton()
    driver.set_active(TargetOnly(GPUTarget(*target), properties))


def find_kernel(request: Request) -> JITFunction:
    """The kernel in this process, the same as in the one that asked; otherwise `Refused`."""
    if request.text is not None and (made := made_again(request.text, request.fn_key)) is not None:
        return made
    refusal = Refused(f"{request.file} is not a Python module")
    for load in (load_part, load_module) if request.module != "__main__" else (load_part,):
        try:
            return kernel_in(load(request), request)
        except Refused as error:
            refusal = error
        except Exception as error:  # what a part lacks the module may have
            refusal = Refused(f"{type(error).__name__}: {error}")
    raise refusal


def made_again(text: Message, key: str) -> JITFunction | None:
    """The kernel of a text; None if it is another one here."""
    if key not in MADE:
        kernel = Receiver(text["functions"]).value(text["fn"])
        if kernel.cache_key != key:
            return None
        MADE[key] = kernel
    return MADE[key]


def kernel_in(module: ModuleType, request: Request) -> JITFunction:
    """The kernel that a module defines, if it is the one that was asked for."""
    found: Any = module
    for part in request.qualname.split("."):
        if not hasattr(found, part):
            raise Refused(f"{request.module} does not define {request.qualname}")
        found = getattr(found, part)
    while not isinstance(found, JITFunction):
        if not hasattr(found, "fn"):
            raise Refused(f"{request.module}.{request.qualname} is not a kernel")
        found = found.fn
    if found.cache_key != request.fn_key:
        raise Refused(f"{request.module}.{request.qualname} is another kernel after importing it again")
    return found


def load_part(request: Request) -> ModuleType:
    """The part of the kernel's file that the kernel needs: a script is not run again, and torch not loaded for a constant."""
    known = PARTS.get((request.file, request.qualname))
    if known is None:
        known = PARTS[request.file, request.qualname] = load_slice(request.file, request.module, request.qualname)
    if request.module == "__main__":
        sys.modules["__main__"] = known
    return known


def load_module(request: Request) -> ModuleType:
    """The module that defines the kernel, all of it."""
    try:
        found = importlib.import_module(request.module)
    except ImportError:
        found = None
    if found is not None and same_file(getattr(found, "__file__", None), request.file):
        return found
    spec = importlib.util.spec_from_file_location(request.module, request.file)
    if spec is None or spec.loader is None:
        raise Refused(f"{request.file} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_file(one: str | None, other: str) -> bool:
    """Whether two paths are one file."""
    return one is not None and os.path.exists(one) and os.path.samefile(one, other)


def specialization_of(request: Request) -> Specialization:
    """The specialisation of this process's kernel that was asked for."""
    return Specialization.from_data(find_kernel(request), json.loads(request.data))


def compile_into_cache(request: Request, specialization: Specialization) -> None:
    """Compile; the product goes to the disk cache, under the key that the other process expects."""
    from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled
    from tilework.runtime.compile.stages import device_limits

    device_limits.set(request.properties)
    kernel = compile(specialization.source(), GPUTarget(*request.target), specialization.options)
    if kernel.hash != request.entry_key:
        raise Refused("the specialisation did not survive the way here")


# ---- what was sent as what it is: kernels (`sent_kernel.py`), and machine code of the runtime by its name


def described_work(request: Message) -> Callable[[], str]:
    """Such a compilation, into the disk cache; it returns the key that its product has there."""
    # lazily: the compiler loads when something is compiled
    from tilework.runtime.compile.cached import compile
    from tilework.runtime.compile.sources import ASTSource

    receiver, sent = Receiver(request["functions"]), request["source"]
    kernel = receiver.value(sent["fn"])
    if kernel.cache_key != request["fn_key"]:
        raise Refused(f"{kernel} is another kernel here")
    constants, attrs = (dict(receiver.value(item) for item in sent[part]) for part in ("constants", "attrs"))
    source = ASTSource(kernel, receiver.value(sent["signature"]), constants, attrs)
    target, options = GPUTarget(*request["target"]), receiver.value(request["options"])
    return lambda: compile(source, target, options).hash


def compile_described(work: Callable[[], str], request: Message) -> None:
    """Compile under the key that the other process expects."""
    if work() != request["entry_key"]:
        raise Refused("the specialisation did not survive the way here")
