"""Run under an interpreter that has Triton: seconds to PTX for kernels in files. Called by `growth`.

Standard input lists them as JSON: files with a function `kernel`, and the types of its parameters.
"""

import importlib.util
import json
import sys
import tempfile
import types

import triton
import triton.language
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

STAGES = ("ttir", "ttgir", "llir", "ptx")


def measure(file: str, signature: dict[str, str], target: GPUTarget) -> float:
    """Seconds of the frontend and the stages to PTX, from Triton's own compile-time listener."""
    spec = importlib.util.spec_from_file_location("growing", file)
    module = importlib.util.module_from_spec(spec)  # pyright: ignore[reportArgumentType]
    spec.loader.exec_module(module)  # pyright: ignore[reportOptionalMemberAccess]
    seen: list[float] = []

    def listener(**event: object) -> None:
        times = event["times"]
        stages = dict(times.lowering_stages)  # pyright: ignore[reportAttributeAccessIssue]
        front = times.ir_initialization  # pyright: ignore[reportAttributeAccessIssue]
        seen.append((front + sum(stages[name] for name in STAGES)) / 1e6)

    knobs.compilation.listener = listener
    attrs = {(k,): [["tt.divisibility", 16]] for k in range(2)}
    triton.compile(ASTSource(module.kernel, signature, {"BLOCK": 1024}, attrs), target=target)
    return seen[0]


def main() -> None:
    stand_in = types.ModuleType("tilework")
    stand_in.__dict__.update({name: getattr(triton, name) for name in dir(triton) if not name.startswith("__")})
    sys.modules["tilework"] = stand_in
    sys.modules["tilework.language"] = stand_in.language = triton.language  # pyright: ignore
    backend, arch = sys.argv[1].split(":")
    knobs.compilation.always_compile = True
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        target = GPUTarget(backend, int(arch), 32)
        print(json.dumps([measure(entry["file"], entry["signature"], target) for entry in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
