"""Exceptions from outside while LLVM works, with their frames kept in a cycle: the process lives, and LLVM still
works."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.compile import check, host_target_machine, jit_load, to_object

PROGRAM = """
import gc, random, signal, sys, time
import tilework, tilework.language as tl
from tilework.targets.base import GPUTarget, find_backend
from tilework.targets.cpu.run.interface import load
from tilework.targets.nvidia import ptx
from tilework.compiler import ASTSource, lower

@tilework.jit
def kernel(x, y, B: tl.constexpr, LIBRARY: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(y + i, tl.erf(v) if LIBRARY else v * 2)

class Interrupted(BaseException):
    pass

target, way, times = GPUTarget.parse(sys.argv[1]), sys.argv[2], int(sys.argv[3])
source = ASTSource(kernel, {"x": "*fp32", "y": "*fp32"}, {"B": 16, "LIBRARY": target.backend == "cuda"})
text = lower(source, target, ["llir"])["llir"]
backend = find_backend(target)
stages = backend.stages(backend.parse_options({}))

def job():
    # all that a compilation does with LLVM
    ptx.cut_out.cache_clear()
    if target.backend == "cpu":
        load(stages["obj"](text), "kernel")
    else:
        assert "__nv_erff" not in stages["ptx"](text)

def is_ours(frame):
    name = frame.f_code.co_filename
    return "llvmlite" in name or "targets" in name and ("llvm" in name or "nvidia" in name or "library" in name)

def trace(frame, event, arg):
    global seen
    if is_ours(frame):
        frame.f_trace_opcodes = True
        seen += event == "opcode"
        if seen == moment:
            raise Interrupted
    return trace

def strike(*_):
    raise Interrupted

signal.signal(signal.SIGALRM, strike)
seen, moment = 0, -1
job()
start = time.perf_counter()
job()
cost = time.perf_counter() - start
sys.settrace(trace)
job()
sys.settrace(None)
total, rng, struck = seen, random.Random(7), 0
for number in range(times):
    try:
        seen, moment = 0, rng.randrange(1, total) if way == "trace" else -1
        if way == "trace":
            sys.settrace(trace)
        else:
            signal.setitimer(signal.ITIMER_REAL, rng.random() * cost + 1e-5)
        job()
    except Interrupted as error:
        error.itself = error
        struck += 1
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
    if number % 3 == 0:
        gc.collect()
gc.collect()
job()
print("alive", struck > 0)
"""


@pytest.mark.parametrize("way", ["trace", "signal"])
@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_interrupted_at_random_moments(target: str, way: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    from tilework import knobs

    if target != "cpu" and knobs.nvidia.find_libdevice() is None:
        pytest.skip("there is no libdevice on this machine")
    file = tmp_path_factory.mktemp("interrupts") / "program.py"
    file.write_text(PROGRAM)
    moments = os.environ.get("INTERRUPTED_COMPILES") or ("16" if way == "trace" else "8")
    command = [sys.executable, "-X", "faulthandler", str(file), target, way, moments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 5 * int(moments), check=False)
    assert done.returncode == 0 and done.stdout == "alive True\n", done.stderr[-3000:]


def test_errors_come_from_the_other_thread() -> None:
    here = threading.current_thread()

    @apart
    def fail() -> None:
        assert threading.current_thread() is not here
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        fail()


def test_what_is_apart_stays_in_its_thread() -> None:
    inner = apart(threading.current_thread)
    outer = apart(lambda: (threading.current_thread(), inner()))
    assert len({*outer()}) == 1 and inner() is not threading.current_thread()


def test_nothing_of_llvm_is_left_to_the_collector() -> None:
    """Every context and module that was opened is closed when the call returns, also by an error."""
    import llvmlite.binding as llvm

    made: list[weakref.ref[llvm.ffi.ObjectRef]] = []
    kinds = (llvm.context.ContextRef, llvm.module.ModuleRef)
    plain = llvm.ffi.ObjectRef.__init__

    def remember(self: llvm.ffi.ObjectRef, ptr: object) -> None:
        plain(self, ptr)
        if isinstance(self, kinds):
            made.append(weakref.ref(self))

    def still_open() -> int:
        return sum(1 for ref in made if (item := ref()) is not None and not item.closed)

    host_target_machine()
    gc.disable()
    llvm.ffi.ObjectRef.__init__ = remember
    kept = []
    try:
        for text in ("define i32 @f( {", "define i32 @f() {\n  ret i32 1\n}\n", "define i32 @f() {\n  ret i64 1\n}\n"):
            for call in (check, lambda text: jit_load(to_object(text, 2), ["f"]), lambda text: to_object(text, 1)):
                try:
                    call(text)
                except RuntimeError as error:
                    kept.append(error)  # and with it the frames
        assert len(made) > 10 and len(kept) > 3 and still_open() == 0
    finally:
        llvm.ffi.ObjectRef.__init__ = plain
        gc.enable()


def test_without_threads_it_works_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with contextlib.suppress(RuntimeError):
        check("define")
    assert to_object("define i32 @f() {\n  ret i32 1\n}\n")
