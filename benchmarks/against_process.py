"""One new process of `against`: one group of rows, with the tilework that PYTHONPATH has.

    python -P benchmarks/against_process.py GROUP ROUNDS      GROUP: import, launch, launch cuda, or a target such as
                                                              cuda:90

Prints JSON: {row: [[seconds of each round], [CPU seconds of each round]]}, in the order of the table. It asks for
nothing that older commits do not have. The examples are those of the older commit, which both can compile; nothing is
cached.
"""

import gc
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

Seconds = tuple[list[float], list[float]]
CALLS = {"cpu": 2000, "cuda": 500}  # launches in a round: fewer than a GPU's queue holds
ASSEMBLER = "cubin"  # the stage whose time is ptxas'


def cpu_seconds() -> float:
    """Of this process, all its threads, and its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Clock:
    """Wall and CPU time since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def add_to(self, seconds: Seconds, calls: int = 1) -> None:
        """Note what has passed, for each of `calls`."""
        wall, cpu = time.perf_counter() - self.wall, cpu_seconds() - self.cpu
        seconds[0].append(wall / calls)
        seconds[1].append(cpu / calls)


def import_rows(rounds: int) -> dict[str, Seconds]:
    """There is one import in a process."""
    found: Seconds = ([], [])
    if rounds:
        clock = Clock()
        importlib.import_module("tilework")
        clock.add_to(found)
    return {"import tilework": found}


def compile_rows(target: str, rounds: int) -> dict[str, Seconds]:
    """Each example from its source to what the driver loads; for NVIDIA also without ptxas. The first one of all loads
    the compiler."""
    clock = Clock()
    demo = importlib.import_module("examples.demo")
    rows: dict[str, Seconds] = {}
    for case in demo.all_cases():
        compiled = compiler_of(case, target)
        if not rows:
            compiled(([], []), ([], []))
            clock.add_to(rows.setdefault(f"{target}, the first kernel", ([], [])))
        all_of_it, before_assembler = ([], []), ([], [])
        compiled(all_of_it, before_assembler)  # once without counting: what this kernel is the first to load
        for seconds in (*all_of_it, *before_assembler):
            seconds.clear()
        for _ in range(rounds):
            gc.collect()
            compiled(all_of_it, before_assembler)
        if before_assembler[0]:
            rows[f"{target} {case.name}"] = before_assembler
            rows[f"{target} {case.name}, ptxas"] = all_of_it
        else:
            rows[f"{target} {case.name}"] = all_of_it
    return rows


def compiler_of(case: Any, target: str) -> Callable[[Seconds, Seconds], None]:
    """Compiles a case once, and notes what that took, in all and up to ptxas."""
    from tilework.compiler import ASTSource
    from tilework.runtime.compile.sources import frontend_options
    from tilework.target import GPUTarget
    from tilework.targets.base import find_backend

    goal = GPUTarget.parse(target)
    backend = find_backend(goal)

    def compiled(all_of_it: Seconds, before_assembler: Seconds) -> None:
        clock = Clock()
        product = ASTSource(case.kernel, case.types, case.constexprs, case.attrs).module(frontend_options(goal, {}))
        for name, stage in backend.stages(backend.parse_options({})).items():
            if name == ASSEMBLER:
                clock.add_to(before_assembler)
            product = stage(product)
        clock.add_to(all_of_it)

    return compiled


def launch_rows(device: str, rounds: int) -> dict[str, Seconds]:
    """The cost of a launch of a kernel without work, by `kernel[grid](...)` and by a bound one, with few and many
    arguments."""
    from against_kernels import KERNELS  # beside this file

    if device == "cuda":
        torch = importlib.import_module("torch")
        array = torch.zeros(1024, device="cuda")
        end = torch.cuda.synchronize
    else:
        array = importlib.import_module("numpy").zeros(1024, "f4")
        end = int
    rows: dict[str, Seconds] = {}
    for count, kernel in KERNELS.items():
        arguments = [*[array] * 3, *(1024, 17, 0.5)][:count] if count <= 6 else [array] * 6 + [1024, 17, 0.5] * 2
        calls = {f"{device} launch, {count} arguments": lambda kernel=kernel, a=arguments: kernel[(1,)](*a, BLOCK=64)}
        if hasattr(kernel, "bind"):  # older commits have no bound launches
            calls[f"{device} bound launch, {count}"] = kernel.bind(*arguments, BLOCK=64, grid=(1,))
        for name, call in calls.items():
            for _ in range(3):  # launches are in machine code from the second on
                call()
            end()
            seconds = rows.setdefault(name, ([], []))
            for _ in range(rounds):
                clock = Clock()
                for _ in range(CALLS[device]):
                    call()
                clock.add_to(seconds, CALLS[device])
                end()
    return rows


def main() -> None:
    group, rounds = sys.argv[1], int(sys.argv[2])
    if group == "import":
        rows = import_rows(rounds)
    elif group.startswith("launch"):
        sys.path.append(os.path.dirname(__file__))
        rows = launch_rows("cuda" if group.endswith("cuda") else "cpu", rounds)
    else:
        rows = compile_rows(group, rounds)
    print(json.dumps({"file": sys.modules["tilework"].__file__ if "tilework" in sys.modules else None, "rows": rows}))


if __name__ == "__main__":
    main()
