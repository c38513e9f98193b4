"""The count of instructions of a launch on an NVIDIA GPU, in the Python loop and the launcher without the driver:
nearly the same in every run.

    python -m benchmarks.launch_instructions

Needs neither a GPU nor torch, but Linux: a process launches on the emulated driver with stand-ins for tensors,
functions that do nothing in place of the driver's, and no stream but the default one; its parent lets it take one step
after the other, and counts. Times are in `cuda_launch`.
"""

import ctypes
import os
import signal
import struct
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

import tilework
from benchmarks.cuda_launch import loop_of, six, three, twelve, two_descriptors
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.stand_in_tensors import StandIn, stand_in_tensors
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.machine import machine
from tilework.targets.llvm.compile import jit_load, to_object
from tilework.tools.tensor_descriptor import TensorDescriptor

TRACE_ME, CONTINUE, STEP = 0, 7, 9  # of ptrace
MARK = signal.SIGUSR2
WARM, FEW, MANY = 60, 5, 15
DRIVER = """
@context = global i64 0
define i32 @launch(ptr %config, ptr %function, ptr %parameters, ptr %extra) { ret i32 0 }
define i32 @ask(ptr %place) {
  %value = load i64, ptr @context
  store i64 %value, ptr %place
  ret i32 0
}
define i32 @stream(i32 %kind, i32 %device, ptr %place) {
  store i64 0, ptr %place
  ret i32 0
}
"""


ROWS = ("bound()", "bound(x, y)", "bound(a=x, n=n)", "kernel[grid](...)")
CASES = ("3 arguments", "6 arguments", "12 arguments", "2 descriptors, 2 more")


def cases() -> list[tuple[Callable[..., Any], list[Any]]]:
    """The kernels and their arguments, as in `cuda_launch`."""
    tensors = [StandIn(1024) for _ in range(12)]
    described = [TensorDescriptor.from_tensor(StandIn(128, 64), [64, 32]) for _ in range(2)]
    return [
        (three, [*tensors[:2], 1000]),
        (six, [*tensors[:5], 1000]),
        (twelve, [*tensors[:11], 1000]),
        (two_descriptors, [*described, tensors[0], 1000]),
    ]


def rows(kernel: Any, args: list[Any], other: list[Any]) -> list[Callable[[int], None]]:
    """Loops of so many launches; what is given are other objects than are bound."""
    bound, count = kernel.bind(*args, grid=(1,)), len(args)
    named = f"launch({kernel.arg_names[0]}=x0, n=x{count - 1})"

    def looped(form: str, launch: Any, given: list[Any]) -> Callable[[int], None]:
        loop = loop_of(count, form)
        return lambda calls: loop(launch, calls, *given)

    return [
        looped("launch()", bound, args),
        looped("launch(x0, x1)", bound, other),
        looped(named, bound, other),
        looped("launch[(1,)]({})", kernel, other),
    ]


def without_driver(kernel: Any) -> Any:
    """Let a kernel call functions that do nothing; what to keep alive."""
    code = jit_load(to_object(DRIVER), ["launch", "ask", "stream", "context"])
    record = kernel[(1,)].__self__[0][native.FIRST_ENTRY][native.RECORD]
    ctypes.c_int64.from_address(code["context"]).value = struct.unpack_from("<q", record, native.DEVICE_CONTEXT)[0]
    for at, name in ((native.LAUNCH_CALL, "launch"), (native.GET_CONTEXT, "ask"), (native.GET_STREAM, "stream")):
        struct.pack_into("<q", record, at, code[name])
    return code


def launch_all() -> None:
    """The process that is counted: each loop twice, between marks."""
    kept = []
    with (
        pytest.MonkeyPatch.context() as patch,
        knobs.cache.scope(),
        tempfile.TemporaryDirectory() as cache,
        emulated_cuda(),
    ):
        patch.setattr(cuda_tools, "find_tool", lambda *args: None)
        knobs.cache.dir = cache
        assert machine() is not None, "this Python has no native launcher"
        with stand_in_tensors(patch):
            for (function, args), (_, other) in zip(cases(), cases(), strict=True):
                kernel = tilework.jit(function)
                kernel[(1,)](*args)
                kept.append(without_driver(kernel))
                for run in rows(kernel, args, [*other[:-1], 1002]):
                    run(WARM)
                    for calls in (FEW, MANY):
                        os.kill(os.getpid(), MARK)
                        run(calls)
                        os.kill(os.getpid(), MARK)


def counted(child: int) -> list[int]:
    """Count the steps between each two marks."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    found, is_counting, passed = list[int](), False, 0
    while True:
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0, "the process failed"
            return found
        stopped, passed = os.WSTOPSIG(status), 0
        if stopped == MARK:
            is_counting = not is_counting
            found += [0] if is_counting else []
        elif stopped == signal.SIGTRAP:
            found[-1] += 1
        elif stopped != signal.SIGSTOP:
            passed = stopped
        ptrace(STEP if is_counting else CONTINUE, child, None, passed)


def main() -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            ctypes.CDLL(None).ptrace(TRACE_ME, 0, None, None)
            signal.raise_signal(signal.SIGSTOP)
            launch_all()
            code = 0
        finally:
            os._exit(code)
    counts = counted(child)
    each = iter([(many - few) / (MANY - FEW) for few, many in zip(counts[::2], counts[1::2], strict=True)])
    print(f"{'instructions of one launch':26}" + "".join(f"{row:>20}" for row in ROWS))
    for case in CASES:
        print(f"{case:26}" + "".join(f"{next(each):20.0f}" for _ in ROWS))


if __name__ == "__main__":
    main()
