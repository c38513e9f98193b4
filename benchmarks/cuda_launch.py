"""The cost of a launch on an NVIDIA GPU for its caller, beside the driver's own call and Triton in the same run (`make
bench-launch`).

    python -m benchmarks.cuda_launch

The kernels do nothing, but for those whose tiles TMA copies though they load them by pointers: one is launched with
arguments that justify that, and with others, for which the kernel that loads is launched. `driver` is
`cuLaunchKernelEx` with parameters that stay as they are, called by a function of machine code in a Python loop, as
launches are; then the same in a loop of machine code, so that nothing can be faster, and there with the GIL released,
the context and the stream asked for. The driver's time drifts by more than what is measured, within a run also for
seconds: all kernels are measured in several sweeps, each turn of a row comes between two of the driver, and what is in
brackets is the median of the differences to their mean, with the standard error of that median. The rows `without
driver` launch through a function that returns at once: they are our own part, whole. A time is the median of many
turns; a turn is short enough for the stream to take it without waiting, and the GPU is idle when it begins. Needs
torch.
"""

import ctypes
import importlib
import importlib.util
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import tilework
import tilework.language as tl
from tilework.runtime.devices.cuda.driver import CudaFrame
from tilework.runtime.devices.dlpack import CUDA, exchange_api
from tilework.runtime.launch.native import layout as native
from tilework.targets.nvidia.libcuda import library
from tilework.tools.tensor_descriptor import TensorDescriptor

SWEEPS, ROUNDS, CALLS = 4, 15, 200
WITHOUT = ", without driver"
COPIES = "2 copies, 2 more"  # of ours: Triton has none
BUDGET_US, BOUND_BUDGET_US = 1.5, 0.8  # above the driver

LOOP = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define void @repeat(ptr %call, ptr %config, ptr %function, ptr %parameters, i64 %count, ptr %context, ptr %current) {
entry:
  %place = alloca i64
  %stream = alloca ptr
  br label %again
again:
  %done = phi i64 [ 0, %entry ], [ %next, %again ]
PARTS
  %next = add i64 %done, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %again, label %end
end:
  ret void
}
"""
ONCE = """
declare void @Py_IncRef(ptr)

define ptr @once(ptr %none, ptr %unused) {{
  %code = call i32 inttoptr (i64 {} to ptr)(ptr inttoptr (i64 {} to ptr), ptr inttoptr (i64 {} to ptr), ptr inttoptr (i64 {} to ptr), ptr null)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""  # noqa: E501
CALL = "  %code = call i32 %call(ptr %config, ptr %function, ptr %parameters, ptr null)\n"
NO_DRIVER = "define i32 @launch(ptr %config, ptr %function, ptr %parameters, ptr %extra) { ret i32 0 }"
WITHOUT_GIL = f"  %thread = call ptr @PyEval_SaveThread()\n{CALL}  call void @PyEval_RestoreThread(ptr %thread)\n"
IN_CONTEXT = "  %asked = call i32 %context(ptr %place)\n" + WITHOUT_GIL
IN_STREAM = f"  %streamed = call i32 %current(i32 {CUDA}, i32 0, ptr %stream)\n" + IN_CONTEXT


def three(a, b, n):
    pass


def six(a, b, c, d, e, n):
    pass


def twelve(a, b, c, d, e, f, g, h, i, j, k, n):
    pass


def two_descriptors(a, b, c, n):
    pass


def two_copies(a, b, c, n):
    """Tiles of arrays of 128 rows, of `n` columns each."""
    rows, columns = tl.arange(0, 128)[:, None], tl.arange(0, 64)[None, :]
    acc = tl.zeros((128, 128), tl.float32)
    for k in range(0, n, 64):
        x, y = tl.load(a + rows * n + k + columns), tl.load(b + rows * n + k + columns)
        acc = tl.dot(x, tl.trans(y), acc)
    tl.store(c + rows * 128 + tl.arange(0, 128)[None, :], acc)


def cases(torch: Any, descriptor: Any) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    """The kernels and their arguments."""
    tensors = [torch.zeros(1024, device="cuda") for _ in range(12)]
    square = [torch.zeros(128, 128, device="cuda", dtype=torch.float16) for _ in range(2)]
    described = [descriptor.from_tensor(tensor, [64, 64]) for tensor in square]
    return {
        "3 arguments": (three, [*tensors[:2], 1000]),
        "6 arguments": (six, [*tensors[:5], 1000]),
        "12 arguments": (twelve, [*tensors[:11], 1000]),
        "2 descriptors, 2 more": (two_descriptors, [*described, tensors[0], 1000]),
        COPIES: (two_copies, [*square, torch.zeros(128, 128, device="cuda"), 64]),
        f"{COPIES}, refused": (two_copies, [*square, torch.zeros(128, 128, device="cuda"), 48]),  # rows overlap
    }


def loop_of(count: int, form: str) -> Callable[..., None]:
    """A Python loop around a call with so many arguments, written out as programs write it."""
    names = ", ".join(f"x{index}" for index in range(count))
    scope: dict[str, Any] = {}
    source = f"def loop(launch, calls, {names}):\n    for _ in range(calls):\n        {form.format(names)}\n"
    exec(compile(source, "<loop>", "exec"), scope)
    return scope["loop"]


class Method(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METH_NOARGS = 4
make_function = ctypes.pythonapi.PyCFunction_NewEx
make_function.restype = ctypes.py_object
make_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]


def driver_loops(kernel: Any, args: list[Any]) -> dict[str, Callable[[], None]]:
    """The driver's call with what our launcher would pass, alone and with what no launcher can leave out."""
    from tilework.targets.llvm.compile import jit_load, to_object  # loads LLVM

    launcher = kernel.launcher
    if kernel.has_copies:
        args, launcher = [*args, *launcher.maps(launcher.values(args), (1, 1, 1))], launcher.inner
    packer, _ = launcher.plans[len(args)]
    frame = CudaFrame(packer, launcher.attributes, launcher.block, launcher.shared)
    packer.pack(frame.buffer, args, (None, None))
    frame.grid[:] = (1, 1, 1)
    frame.config.stream = 0
    api = exchange_api(sys.modules["torch"].Tensor)
    current = 0 if api is None else api.current_stream
    given = (library().address("cuLaunchKernelEx"), ctypes.addressof(frame.config), kernel.function)
    given += (ctypes.addressof(frame.addresses), CALLS, library().address("cuCtxGetCurrent"), current)
    parts = {"no Python": CALL, "no Python, GIL": WITHOUT_GIL, "no Python, GIL, context": IN_CONTEXT}
    if current:
        parts["no Python, GIL, context, stream"] = IN_STREAM
    code = jit_load(to_object(ONCE.format(*given[:4])), ["once"])
    method = Method(b"once", code["once"], METH_NOARGS, None)
    once = make_function(ctypes.byref(method), None, None)
    loop = loop_of(0, "launch()")
    rows: dict[str, Callable[[], None]] = {"driver": lambda keep=(frame, code, method): loop(once, CALLS)}
    for name, text in parts.items():
        code = jit_load(to_object(LOOP.replace("PARTS\n", text)), ["repeat"])
        types = [ctypes.c_void_p] * 4 + [ctypes.c_int64] + [ctypes.c_void_p] * 2
        repeat = ctypes.PYFUNCTYPE(None, *types)(code["repeat"])  # keeps the GIL
        rows[f"driver, {name}"] = lambda repeat=repeat, keep=(frame, code): repeat(*given)
    return rows


def measured(torch: Any, rows: dict[str, Callable[[], None]]) -> dict[str, list[tuple[float, float]]]:
    """The microseconds of a call of each row, and how many more they are than the driver's around it, turn by turn."""

    def turn(run: Callable[[], None]) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) / CALLS * 1e6

    def driver(row: str) -> float:
        return 0.0 if row.endswith(WITHOUT) else turn(rows["driver"])

    found: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for _ in range(ROUNDS):
        for name, run in rows.items():
            before, mine, after = driver(name), turn(run), driver(name)
            found[name].append((mine, mine - (before + after) / 2))
    return found


def middle(values: Iterable[float]) -> tuple[float, float]:
    """The median, and its standard error as the spread of the middle half tells it."""
    low, median, high = statistics.quantiles(ordered := sorted(values), n=4)
    return median, 0.93 * (high - low) / len(ordered) ** 0.5  # 1.2533 * sigma / sqrt(n), sigma = spread / 1.349


def without_driver(kernel: Any) -> Any:
    """Let launches of a kernel that was launched already call a function that does nothing; what to keep alive."""
    from tilework.targets.llvm.compile import jit_load, to_object  # loads LLVM

    code = jit_load(to_object(NO_DRIVER), ["launch"])
    for entry in kernel[(1,)].__self__[0][native.FIRST_ENTRY :]:
        struct.pack_into("<q", entry[native.RECORD], native.LAUNCH_CALL, code["launch"])
    return code


def own_rows(function: Callable[..., Any], args: list[Any]) -> dict[str, Callable[[], None]]:
    """Our launches, with and without the driver."""
    rows: dict[str, Callable[[], None]] = {}
    for words, prepare in (("", lambda kernel: None), (WITHOUT, without_driver)):
        kernel = tilework.jit(function)
        kernel[(1,)](*args)
        keep = prepare(kernel)
        rows |= {row + words: run for row, run in launches_of(kernel, args, keep).items()}
        if function is two_copies:
            rows["kernel[grid](another a, ...)" + words] = with_others(kernel, args)
    return rows


def with_others(kernel: Any, args: list[Any]) -> Callable[[], None]:
    """Launches with as many arrays in turn: what is known of some of them is forgotten before they come again."""
    first, *rest = args
    others = [first.clone() for _ in range(CALLS)]

    def launch() -> None:
        for other in others:
            kernel[(1,)](other, *rest)

    return launch


def launches_of(kernel: Any, args: list[Any], keep: Any) -> dict[str, Callable[[], None]]:
    """The ways to launch a kernel."""
    launch = kernel[(1,)]
    plain, indexed = loop_of(len(args), "launch({})"), loop_of(len(args), "launch[(1,)]({})")
    bound, nothing = kernel.bind(*args, grid=(1,)), loop_of(len(args), "launch()")
    changed, first = loop_of(len(args), "launch(x0, x1)"), next(iter(kernel.arg_names))
    named = loop_of(len(args), f"launch({first}=x0, n=x{len(args) - 1})")
    return {
        "kernel[grid](...)": lambda keep=keep: indexed(kernel, CALLS, *args),
        "launch(...)": lambda: plain(launch, CALLS, *args),
        "bound()": lambda: nothing(bound, CALLS, *args),
        "bound(x, y)": lambda: changed(bound, CALLS, *args),
        "bound(a=x, n=n)": lambda: named(bound, CALLS, *args),
    }


def main() -> None:
    if importlib.util.find_spec("torch") is None or not (torch := importlib.import_module("torch")).cuda.is_available():
        print("the cost of a launch on a GPU is measured with torch on a GPU, which is not here")
        return
    triton = importlib.import_module("triton") if importlib.util.find_spec("triton") is not None else None
    theirs: dict[str, Any] = {}
    if triton is not None:
        theirs = cases(torch, importlib.import_module("triton.tools.tensor_descriptor").TensorDescriptor)
    print(f"{torch.cuda.get_device_name()}, microseconds of one launch; in brackets above the driver")
    table: dict[str, dict[str, Callable[[], None]]] = {}
    for name, (function, args) in cases(torch, TensorDescriptor).items():
        rows = table[name] = {**driver_loops(tilework.jit(function)[(1,)](*args), args), **own_rows(function, args)}
        if triton is not None and not name.startswith(COPIES):
            kernel, given = triton.jit(function), theirs[name][1]
            kernel[(1,)](*given)
            loop = loop_of(len(given), "launch[(1,)]({})")
            rows["Triton"] = lambda kernel=kernel, given=given, loop=loop: loop(kernel, CALLS, *given)
    sweeps = [{name: measured(torch, rows) for name, rows in table.items()} for _ in range(SWEEPS)]
    for name, rows in table.items():
        for row in rows:
            turns = [turn for sweep in sweeps for turn in sweep[name][row]]
            (microseconds, _), (above, error) = (middle(column) for column in zip(*turns, strict=True))
            budget = BOUND_BUDGET_US if row.startswith("bound") else BUDGET_US
            verdict = (
                "" if row in ("driver", "Triton") else " ok" if above <= budget else f" over the budget of {budget}"
            )
            print(f"{name:26}{row:46}{microseconds:6.2f}  [{above:+.2f} ±{error:.2f}]{verdict}")


if __name__ == "__main__":
    main()
