"""A compiled kernel: the output of every stage, the metadata of the launch, and the loaded binary.

    kernel = add[grid](x, y, out, n, BLOCK=1024)
    kernel.asm["ttir"], kernel.metadata.num_warps, kernel.hash

It holds text and bytes only until its first launch; then the driver loads the binary.
"""

import json
import os
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import OutOfResources
from tilework.process.events import above
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.launcher import Launcher
from tilework.runtime.launch.python.dynamo_rules import untraced

if TYPE_CHECKING:
    from tilework.target import GPUTarget
    from tilework.targets.base import Library, View


class LazyDict:
    """A dictionary with entries that are computed when it is read, so that launch hooks that do not read it cost
    nothing.

    Example:
        from tilework.compiler import LazyDict

        metadata = LazyDict({"name": "add"})
        metadata.add(lambda n: {"bytes": 12 * n}, (100,))
        assert metadata.get() == {"name": "add", "bytes": 1200}
    """

    launch: "tuple[CompiledKernel, Sequence[int], Sequence[Any]] | None" = (
        None  # of this launch: kernel, grid, arguments
    )

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def get(self) -> dict[str, Any]:
        """The whole dictionary."""
        for compute, args in self.extras:
            self.data |= compute(*args)
        self.extras.clear()
        return self.data

    def add(self, func: Callable[..., object], args: tuple[object, ...]) -> None:
        """Merge the result of `func(*args)` in when the dictionary is needed."""
        self.extras.append((func, args))


class AsmDict(Mapping[str, Any]):
    """The output of each stage by name: text for IR, bytes for binaries. Views (`sass`) are made when they are read."""

    def __init__(self, files: Mapping[str, bytes], metadata: Mapping[str, Any] | None = None) -> None:
        self._files, self._metadata = dict(files), metadata or {}
        self._read: dict[str, Any] = {}

    def __getitem__(self, stage: str) -> Any:
        if stage not in self._read:
            if stage not in self._files and (view := self._view(stage)) is not None:
                self._read[stage] = view[1](self._files[view[0]], self._metadata)
                return self._read[stage]
            # lazily: a program that imports tilework may compile nothing
            from tilework.targets.base import IR_STAGES, TEXT_STAGES

            data, is_text = self._files[stage], stage in ("source", *IR_STAGES, *TEXT_STAGES)
            self._read[stage] = data.decode() if is_text and isinstance(data, bytes) else data
        return self._read[stage]

    def _view(self, name: str) -> "View | Library | None":
        """Return the function that makes this view of a stage, if the backend has one."""
        from tilework.targets.base import backend_class  # lazily: a program that imports tilework may compile nothing

        target: GPUTarget | None = self._metadata.get("target")
        made = backend_class(target.backend) if target is not None else None
        view = made and (made.views.get(name) or made.libraries.get(name))
        return view if view is not None and view[0] in self._files else None

    def __contains__(self, stage: object) -> bool:
        return stage in self._files or (isinstance(stage, str) and self._view(stage) is not None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"AsmDict({', '.join(f'{stage}: {len(data)} bytes' for stage, data in self._files.items())})"


def make_metadata(data: Mapping[str, object]) -> Any:
    """Return a named tuple of the metadata, with the target as a `GPUTarget`."""
    from tilework.target import GPUTarget  # lazily: a program that imports tilework may compile nothing

    target = data["target"]
    values = {**data, "target": GPUTarget(**target) if isinstance(target, Mapping) else target}
    return metadata_class(tuple(sorted(values)))(**values)


@cache
def metadata_class(names: tuple[str, ...]) -> Any:
    """Return the named tuple class of these fields. It is cached: making one takes longer than loading a kernel."""
    return namedtuple("KernelMetadata", names)


class Loaded:
    """The state of a kernel in this process; it is not pickled with the kernel."""

    def __init__(self) -> None:
        self.launch: Any = None
        self.repeated: Any = None
        self.checked: Any = None
        self.plain: CompiledKernel | None = None
        self.failure: Exception | None = None
        self.process, self.lock = os.getpid(), threading.RLock()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Loaded, ()


def by_stage(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files by their extension."""
    return {file.rpartition(".")[2]: data for file, data in files.items() if not file.startswith("__grp__")}


def read(path: Any) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class CompiledKernel:
    """A compiled kernel, as launches return it: the output of every stage, the launch metadata, and the loaded binary.

    `asm` maps stages to their outputs: "ttir", then "ttgir" and "ptx" or "amdgcn" on a GPU, "ttcir" on the CPU, "llir",
    the binary, and its disassembly ("sass", "asm"), which is computed when it is read. `metadata` has the options and
    the values that the launcher needs (`name`, `num_warps`, `shared` and others). `n_regs` and `n_spills` are the
    registers and the bytes of spills per thread (placeholders on the CPU), `hash` is the key in the disk cache, and
    `src` is the source. The driver loads the binary at the first launch; until then, the object holds only text and
    bytes.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, 7)

        compiled = kernel[(1,)](np.zeros(1, np.int32))
        assert "tt.store" in compiled.asm["ttir"] and compiled.metadata.num_warps == 4
        assert compiled.name == compiled.metadata.name == "kernel"
    """

    has_copies = False  # through descriptors that launches make

    def __init__(
        self, src: Any, metadata_group: Mapping[str, Any], hash: str, _files: Mapping[str, bytes] | None = None
    ) -> None:
        """`metadata_group` has the path of each file of the cache entry; `_files` their contents by stage, if known."""
        self.src = src
        self.hash = hash
        self.metadata_group = dict(metadata_group)
        files = _files if _files is not None else by_stage({name: read(path) for name, path in metadata_group.items()})
        self.metadata = make_metadata(json.loads(files["json"]))
        self.name: str = self.metadata.name
        self.packed_metadata = (self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared)
        facts = {**self.metadata._asdict(), "source": src}
        self.asm = AsmDict({name: data for name, data in files.items() if name != "json"}, facts)
        self.kernel: Any = self.asm[self.metadata.binary_ext]
        self.module: Any = None
        self.function: Any = None
        self.n_regs: int | None = getattr(self.metadata, "n_regs", None)  # else known when it is loaded
        self.n_spills: int | None = getattr(self.metadata, "n_spills", None)
        self.n_max_threads: Any = None
        self._loaded = Loaded()
        self.has_copies = bool(getattr(self.metadata, "rectangles", None))

    def __getstate__(self) -> dict[str, Any]:
        """Return the outputs of the stages; the next process loads them again."""
        return {**self.__dict__, "metadata": self.metadata._asdict(), "module": None, "function": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.metadata = make_metadata(state["metadata"])

    def __repr__(self) -> str:
        from tilework.language.notebook import compiled_text  # lazily: few look at it

        return compiled_text(self)

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from tilework.language.notebook import compiled_html  # lazily: only notebooks need it

        return compiled_html(self)

    def _init_handles(self) -> None:
        """Load the binary; a kernel that needs too much fails here, and again at every further launch.

        Concurrent threads load it once: the code of a second copy would be freed under the first.
        """
        loaded = self._loaded
        if loaded.process != os.getpid():  # after a fork: a thread that is not there may hold it
            loaded.process, loaded.lock = os.getpid(), threading.RLock()
        with loaded.lock:
            if self.module is not None:
                return
            if loaded.failure is not None:
                raise copy(loaded.failure)
            try:
                self._load()
            except OutOfResources as error:
                loaded.failure = copy(error)  # the one that is raised holds on to the frames of the caller
                raise

    def _load(self) -> None:
        active = driver.for_target(self.metadata.target)
        device = active.get_current_device()
        limit = active.utils.get_device_properties(device)["max_shared_mem"]
        if self.metadata.shared > limit:
            raise OutOfResources(self.metadata.shared, limit, "shared memory")
        if self.metadata.tmem_size > 512:
            raise OutOfResources(self.metadata.tmem_size, 512, "tensor memory")
        start = time.perf_counter()
        loading = (self.module, self.function, self.name, self.metadata_group, self.hash)
        knobs.runtime.kernel_load_start_hook(*loading)
        loaded = active.load_binary(self.name, self.kernel, self.metadata.shared, device)
        threads, most_threads = self.metadata.num_warps * self.metadata.target.warp_size, loaded[-1]
        if threads > most_threads:
            raise OutOfResources(threads, most_threads, "threads")
        launch = active.launcher_cls(self.src, self.metadata)  # may fail, and then nothing is loaded
        self.module, self.function, self.n_regs, self.n_spills, self.n_max_threads = loaded
        self._loaded.launch = launch
        knobs.runtime.kernel_load_end_hook(self.module, self.function, self.name, self.metadata_group, self.hash)
        from tilework.process.metrics import count  # lazily: a program that imports tilework may load nothing

        labels = {"kernel": self.full_name, "target": str(self.metadata.target)}
        count("loads", 1, **labels)
        count("load_seconds", time.perf_counter() - start, **labels)

    @property
    def full_name(self) -> str:
        """The name with its module, of what has one."""
        return getattr(getattr(self.src, "fn", None), "_fn_name", self.name)

    def justified(self, grid: Sequence[int], args: Sequence[object]) -> "CompiledKernel":
        """Return the kernel to launch: this one, or the one without TMA copies if the arguments do not allow them."""
        if not self.has_copies:
            return self
        try:
            launcher = self.launcher
            if launcher.justifies(grid, args):
                return self
        except OutOfResources as error:
            launcher = driver.for_target(self.metadata.target).launcher_cls(self.src, self.metadata)
            if self._loaded.plain is None:
                report_fallback(error, kernel=self.full_name, target=str(self.metadata.target))
        plain = self._loaded.plain
        if plain is None:
            plain = self._loaded.plain = launcher.without()
        return plain

    @property
    def run(self) -> Any:
        """The launcher, a function of `(x, y, z, stream, function, packed_metadata, launch_metadata, enter_hook,
        exit_hook, *args)`.

        Example:
            @tilework.jit
            def kernel(out):
                tl.store(out, 7)

            out = np.zeros(1, np.int32)
            compiled = kernel.warmup(out, grid=(1,))
            compiled.run(1, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, out)
            assert out[0] == 7
        """
        loaded = self._loaded
        if loaded.repeated is None:
            launcher = self.launcher  # a driver of another package may give any function
            loaded.repeated = launcher.repeated(self.function) if isinstance(launcher, Launcher) else launcher
        return loaded.repeated

    @property
    def launcher(self) -> Any:
        """The launcher that the driver made, which performs every step of a launch each time."""
        if self._loaded.launch is None:
            self._init_handles()
        return self._loaded.launch

    def checked(self) -> Any:
        """The variant of `run` for arguments that are not checked yet; None if every launch needs Python."""
        launcher = self.launcher
        if isinstance(launcher, Launcher) and not self.has_copies:
            made = launcher.repeated(self.function, driver.for_target(self.metadata.target).check_arguments)
            self._loaded.checked = None if made is launcher else made
        return self._loaded.checked

    def explain(self, target: str | None = None) -> Any:
        """Explain why it is slow, on its own target or another (``"cuda:90"``): print the result (docs/explain.md)."""
        return above("explain").explain_compiled(self, target)

    @property
    def counters(self) -> Any:
        """The counters of the last launch by line, if the device counts (docs/emulator.md). `print` shows them as a
        table.

        Example:
            @tilework.jit
            def kernel(out):
                tl.store(out, 7)

            assert kernel[(1,)](np.zeros(1, np.int32)).counters is None  # the CPU does not count
        """
        return getattr(self.launcher, "counters", None)

    def explore(
        self, target: str | None = None, output: str | os.PathLike[str] | None = None, open: bool = True
    ) -> Any:
        """Open a page that shows the kernel from source to machine code (docs/explorer.md); return its path."""
        return above("explore").explore_compiled(self, target, output, open)

    def launch_metadata(self, grid: Sequence[int], stream: int, *args: object) -> LazyDict | None:
        """Return the dictionary that launch hooks receive, or None if there are no hooks.

        Example:
            @tilework.jit(launch_metadata=lambda grid, metadata, args: {"bytes": args["out"].nbytes})
            def kernel(out):
                tl.store(out, 7)

            out, seen = np.zeros(1, np.int32), []
            with tilework.knobs.runtime.scope():
                tilework.knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()))
                kernel[(1,)](out)
            assert seen[0]["name"] == "kernel" and seen[0]["bytes"] == 4
        """
        if not knobs.runtime.launch_enter_hook and not knobs.runtime.launch_exit_hook:
            return None
        self._init_handles()
        found = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        found.launch = self, (*grid, 1, 1)[:3], args
        fn = getattr(self.src, "fn", None)
        user = getattr(fn, "launch_metadata", None)
        if fn is not None and user is not None:
            named = dict(zip(fn.arg_names, args, strict=False))
            found.add(user, (grid, self.metadata, named))
        return found

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        """Return a launcher, ``kernel[grid](*args, stream=None)``; `args` are all parameters, constants included.

        Example:
            @tilework.jit
            def kernel(out, N: tl.constexpr):
                tl.store(out + tl.program_id(0), N)

            out = np.zeros(2, np.int32)
            compiled = kernel.warmup(out, N=5, grid=(1,))
            compiled[(2, 1, 1)](out, 5)
            assert out.tolist() == [5, 5]
        """
        direct, runtime, target = self._loaded.checked or self.checked(), knobs.runtime, self.metadata.target
        x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]

        def runner(*args: object, stream: int | None = None) -> None:
            active = driver.for_target(target)
            chosen = active.get_current_stream(active.get_current_device()) if stream is None else stream
            if direct is None or runtime.launch_enter_hook or runtime.launch_exit_hook:
                active.check_arguments(args)
                launch_kernel(self, grid, chosen, args)
            else:
                direct(x, y, z, chosen, self.function, None, None, None, None, *args)

        return runner


@untraced
def launch_kernel(
    kernel: CompiledKernel, grid: Sequence[int], stream: int, args: Sequence[object], given: object = None
) -> CompiledKernel:
    """Launch once, with hooks, which receive the grid as it was `given`; return the kernel that was launched."""
    x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]
    kernel = kernel.justified((x, y, z), args)
    metadata = kernel.launch_metadata(given if isinstance(given, tuple) else grid, stream, *args)
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    kernel.launcher(x, y, z, stream, kernel.function, kernel.packed_metadata, metadata, enter, leave, *args)
    return kernel


def report_fallback(error: OutOfResources, **labels: str) -> None:
    """Count and remark that a kernel runs without the TMA copies that the compiler chose for it."""
    # lazily: an exception
    from tilework.process.metrics import count
    from tilework.targets.observe import wanted

    count("fallbacks", 1, without="auto_tma", **labels)
    if (shown := wanted()) is not None and shown.remarks:
        text = "remark: it runs without copies by TMA (auto_tma=False), because with them it does not fit"
        print(f"{labels['kernel']}: {text}: {error}", file=sys.stderr)


class Timer:
    """Microseconds of the parts of one compilation."""

    def __init__(self, ir_initialization: int) -> None:
        self.ir_initialization = ir_initialization
        self.lowering_stages: list[tuple[str, int]] = []
        self.store_results = 0

    def times(self) -> knobs.CompileTimes:
        """Return the times that the compilation listener receives."""
        return knobs.CompileTimes(self.ir_initialization, self.lowering_stages, self.store_results)


def microseconds(start: float) -> int:
    """Whole microseconds since `start`, at least one."""
    return max(1, int((time.perf_counter() - start) * 1e6))
