"""The cost of the LLVM text builder and of the steps after it.

    python -m benchmarks.llvm_builder

Microseconds per instruction for 10 000 instructions of three kinds; then each step from text to a loaded function for a
vector add, warm, and the load of its object in a new process. The best of several runs, in processor time of one thread
(wall time in the new process).
"""

import subprocess
import sys
import time
from collections.abc import Callable

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import check, data_layout, host_target_machine, jit_load, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import Type, f32, i32, i64, ptr, vector, void

COUNT = 2500


def integers(b: Builder) -> None:
    x, y = b.function.args
    for step in range(COUNT):
        x = b.add(x, y)
        y = b.xor(y, x)
        x = b.mul(x, 3 + step % 64)
        y = b.sub(y, x)


def floats(b: Builder) -> None:
    x, y = b.function.args
    for _ in range(COUNT):
        x = b.fadd(x, y)
        y = b.fma(y, x, 1.5)
        x = b.fmul(x, 0.75)
        y = b.fsub(y, x)


def shared(b: Builder) -> None:
    """Everything is known already after the first round."""
    x, y = b.function.args
    for _ in range(COUNT):
        z = b.add(x, y)
        w = b.mul(z, 12)
        b.add(w, 4)
        b.add(w, 0)


def best(run: Callable[[], object], times: int = 7) -> float:
    shortest = float("inf")
    for _ in range(times):
        started = time.process_time()
        run()
        shortest = min(shortest, time.process_time() - started)
    return shortest


def written(type: Type, body: Callable[[Builder], None]) -> str:
    module = Module()
    b = Builder(module.function("f", void, [(type, "x"), (type, "y")]))
    body(b)
    b.ret()
    return module.text()


def vector_add() -> Module:
    machine = host_target_machine()
    module = Module("add", data_layout=data_layout(machine))
    function = module.function("add", void, [(ptr, "x"), (ptr, "y"), (ptr, "z"), (i64, "n")])
    b = Builder(function)
    x, y, z, count = function.args
    wide = vector(f32, 8)
    with b.loop(0, count, 8) as i:
        total = b.fadd(b.load(wide, b.gep(x, i, f32), align=4), b.load(wide, b.gep(y, i, f32), align=4))
        b.store(total, b.gep(z, i, f32), align=4)
    b.ret()
    return module


NEW_PROCESS = """
import sys, time
data = bytes.fromhex(sys.stdin.read())
a = time.perf_counter()
import llvmlite.binding
b = time.perf_counter()
from tilework.targets.llvm.compile import jit_load, host_jit
c = time.perf_counter()
host_jit()
d = time.perf_counter()
jit_load(data, ["add"])
e = time.perf_counter()
print(b - a, c - b, d - c, e - d)
"""


def main() -> None:
    for name, type, body in (("integer", i32, integers), ("float", f32, floats), ("shared", i32, shared)):
        seconds = best(lambda type=type, body=body: written(type, body))
        print(f"{name:10s}{seconds / (4 * COUNT) * 1e6:6.2f} us per instruction")
    text = vector_add().text()
    data = to_object(text, 1)
    steps: dict[str, Callable[[], object]] = {
        "build text": lambda: vector_add().text(),
        "parse": lambda: check(text),
        "object": lambda: to_object(text),
        "optimise 1, object": lambda: to_object(text, 1),
        "optimise 2, object": lambda: to_object(text, 2),
        "load": lambda: jit_load(data, ["add"]),
    }
    for name, step in steps.items():
        print(f"{name:20s}{1e3 * best(step):7.2f} ms")
    runs = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", NEW_PROCESS], input=data.hex(), capture_output=True, text=True, check=True
        )
        runs.append([float(word) for word in done.stdout.split()])
    for name, column in zip(("import llvmlite", "import compile.py", "make the JIT", "load the object"), zip(*runs)):
        print(f"new process: {name:20s}{1e3 * min(column):7.2f} ms")


if __name__ == "__main__":
    main()
