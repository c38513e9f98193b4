"""Inductor's code for NVIDIA GPUs on a machine without one: generated for a device that is only described, compiled by
tilework to PTX, and run in the emulator.

    program = generate(lambda x: (x.softmax(-1),), (torch.randn(64, 256),))
    program.kernels["triton_per_fused_..."]             # the text of a kernel, as Inductor writes it
    run_emulated(program, [torch.randn(64, 256)])       # what the program returns

The wrapper that Inductor generates around the kernels runs as it is, on tensors in host memory; only what it asks of
CUDA (the current stream, memory) is answered here. Blocks run one after the other: no kernel may wait for a later one.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch._dynamo import device_interface
from torch._inductor import config as inductor_config
from torch._inductor import select_algorithm
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map

from tilework.compiler import ASTSource, CompiledKernel, compile
from tilework.oracles.emulator.device import Device
from tilework.targets.base import GPUTarget

HOPPER = GPUTarget("cuda", 90, 32)
H200 = SimpleNamespace(
    name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32, regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048, max_threads_per_block=1024, shared_memory_per_block_optin=232448,
    shared_memory_per_block=49152, total_memory=141 << 30, L2_cache_size=50 << 20, gcnArchName="",
)  # fmt: skip
SWITCHES = {"fx_graph_cache": False, "compile_threads": 1, "force_disable_caches": True}


class DescribedGPU(device_interface.DeviceInterface):
    """The device properties that Inductor queries for the device it generates code for."""

    device = contextlib.nullcontext  # pyright: ignore[reportAssignmentType]

    class Worker:
        @staticmethod
        def set_device(device: int) -> None: ...

        @staticmethod
        def current_device() -> int:
            return 0

        @staticmethod
        def get_device_properties(device: Any = None) -> Any:
            return H200

    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: 1)
    is_available = staticmethod(lambda: True)
    exchange_device = maybe_exchange_device = staticmethod(lambda device: 0)
    set_device = synchronize = staticmethod(lambda device=None: None)
    get_device_properties = staticmethod(lambda device=None: H200)
    get_raw_stream = staticmethod(lambda device: 0)
    get_compute_capability = staticmethod(lambda device=None: 90)
    is_triton_capable = is_bf16_supported = staticmethod(lambda *args, **kwargs: True)
    raise_if_triton_unavailable = staticmethod(lambda device=None: None)


class Generated(Exception):
    """The text of the wrapper is there; what would come next needs a GPU."""


@dataclass
class Program:
    """The code that Inductor wrote."""

    wrapper: str
    kernels: dict[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def described_gpu() -> Iterator[None]:
    """Inductor finds a GPU in the block; nothing can run on it."""
    device_interface.get_interface_for_device("cpu")  # registers the real ones, which may not come later
    before = dict(device_interface.device_interfaces)
    answers = {
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda device=None: H200,
        "current_device": lambda: 0,
    }
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        # copies, which a torch without CUDA refuses for tensors that only stand for some on a GPU; ours are contiguous
        stack.enter_context(
            mock.patch("torch._higher_order_ops.flex_attention._permute_strides", lambda out, strides: out)
        )
        for name in ("cuda", "cuda:0"):
            device_interface.register_interface_for_device(name, DescribedGPU)
        try:
            yield
        finally:
            device_interface.device_interfaces.clear()
            device_interface.device_interfaces.update(before)


@contextlib.contextmanager
def one_choice(number: int) -> Iterator[None]:
    """Of the templates that Inductor would time on the GPU, take one."""
    select_algorithm.add_preprocessing_fn(lambda choices: [choices[number % len(choices)]])
    try:
        yield
    finally:
        select_algorithm.clear_preprocessing_fns(clear_defaults=False)


def generate(function: Callable[..., Any], args: tuple[torch.Tensor, ...], choice: int = 0, **settings: Any) -> Program:
    """Inductor's program for a function that returns a tuple, if its arguments were on a GPU; `choice` selects a
    template."""
    written: list[str] = []

    def save(text: str) -> None:
        written.append(text)
        raise Generated

    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with (
        described_gpu(),
        one_choice(choice),
        torch.no_grad(),
        fake,
        mock.patch.object(GraphLowering, "save_output_code", staticmethod(save)),
    ):
        on_host = [torch.empty_strided(a.shape, a.stride(), dtype=a.dtype) for a in args]
        graph = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="fake")(*on_host)
        on_gpu = [moved_to_gpu(arg) for arg in on_host]
        move_to_gpu(graph)
        with inductor_config.patch({**SWITCHES, **settings}), contextlib.suppress(Generated):
            try:
                compile_fx_inner(graph, on_gpu)
            except Exception as error:
                if not written:
                    raise
                assert "Generated" in repr(error), error
    return Program(written[0], dict(re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", written[0], re.DOTALL)))


def moved_to_gpu(value: Any) -> Any:
    """A tensor that is not there, as if it were on the GPU; torch without CUDA cannot make many of them there."""
    if isinstance(value, FakeTensor):
        value.fake_device = torch.device("cuda", 0)
    return value


def move_to_gpu(graph: torch.fx.GraphModule) -> None:
    """Everything in a graph that was traced on the CPU."""
    for node in graph.graph.nodes:
        tree_map(moved_to_gpu, node.meta.get("val"))
        if node.kwargs.get("device") == torch.device("cpu"):
            node.kwargs = {**node.kwargs, "device": torch.device("cuda", 0)}
    graph.recompile()


class EmulatedKernel:
    """Stands for what `async_compile.triton` gives: a kernel that can be run, here by the emulator."""

    def __init__(self, name: str, text: str, folder: Path) -> None:
        self.name = name
        path = folder / f"{name}.py"
        path.write_text(text.replace("triton_helpers.set_driver_to_gpu()\n", ""))
        module = ModuleType(name)
        module.__file__ = str(path)
        exec(compile_python(path), vars(module))
        self.tuner = getattr(module, name)

    def compiled(self, choice: int = 0) -> CompiledKernel:
        """The kernel for one of the configurations that Inductor would try, down to PTX and, with ptxas, to a cubin."""
        with described_gpu():
            chosen = self.tuner.configs[choice % len(self.tuner.configs)]
            meta = self.tuner._create_compile_meta(chosen)
            options = self.tuner._create_compile_options(chosen, meta)
        source = ASTSource(self.tuner.fn, meta["signature"], meta["constants"], meta["configs"][0])
        return compile(source, target=HOPPER, options=options)

    def run(self, *args: Any, stream: int) -> None:
        from torch._inductor.runtime.triton_heuristics import GridExpr

        kernel, tuner = self.compiled(), self.tuner
        extra = tuner.inductor_meta.get("extra_launcher_args", ())
        names = [param.name for param in tuner.fn.params if not param.is_constexpr]
        assert len(args) == len(names) + len(extra), (self.name, names, extra, len(args))
        by_name = dict(zip([*names, *extra], args, strict=True))
        grid = GridExpr.from_meta(tuner.inductor_meta, tuner.configs[0]).eval_slow(by_name)
        given = [by_name[name] for name in names if kernel.src.signature[name] != "constexpr"]
        device = Device()
        uploaded = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in given if isinstance(t, torch.Tensor)}
        views = {
            address: np.array(torch.tensor([], dtype=torch.uint8).set_(storage).numpy())
            for address, storage in uploaded.items()
        }  # pyright: ignore[reportArgumentType]
        addresses = {address: device.upload(view) for address, view in views.items()}

        def value(arg: Any) -> Any:
            if not isinstance(arg, torch.Tensor):
                return arg
            start = arg.untyped_storage().data_ptr()
            return addresses[start] + arg.data_ptr() - start

        function = device.load(kernel.asm["ptx"]).function(kernel.metadata.name)
        scratch = device.allocate(max(16, kernel.metadata.global_scratch_size * int(np.prod(grid))))
        device.launch(
            function, grid, 32 * kernel.metadata.num_warps, [*map(value, given), scratch, 0], kernel.metadata.shared
        )
        for address, storage in uploaded.items():
            torch.tensor([], dtype=torch.uint8).set_(storage).copy_(
                torch.from_numpy(device.download(addresses[address], views[address]))
            )  # pyright: ignore[reportArgumentType]


def compile_python(path: Path) -> Any:
    """The code of a file; what is called `compile` here is something else."""
    import builtins

    return builtins.compile(path.read_text(), str(path), "exec")


def run_emulated(program: Program, args: list[torch.Tensor], folder: Path) -> list[torch.Tensor]:
    """Run the wrapper on tensors in host memory, its kernels in the emulator."""
    text = program.wrapper.replace(
        "from torch._C import _cuda_getCurrentRawStream as get_raw_stream", "get_raw_stream = int"
    )
    text = text.replace("torch._C._dynamo.guards._empty_strided_cuda", "torch._C._dynamo.guards._empty_strided_cpu")
    text = re.sub(r"with torch\.cuda\._DeviceGuard\(\d+\):", "if True:", text)
    text = re.sub(r"^ +torch\.cuda\.set_device\(\d+\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"device\(type='cuda', index=0\)|'cuda:0'", "'cpu'", text)
    path = folder / "wrapper.py"
    path.write_text(text)
    module = ModuleType("wrapper")
    module.__file__ = str(path)
    triton = lambda self, name, source, device_str="cuda": EmulatedKernel(name, source, folder)  # noqa: E731
    with mock.patch.object(AsyncCompile, "triton", triton):
        exec(compile_python(path), vars(module))
    return list(module.call(list(args)))
