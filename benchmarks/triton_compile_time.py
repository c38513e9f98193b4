"""Run under an interpreter that has Triton: how long its AST walk and TTIR passes take. Called by `compile_time`.

The kernels are ours: the example file is executed with `tilework` standing for `triton`.
"""

import json
import statistics
import sys
import tempfile
import types
from pathlib import Path

import triton
import triton.language
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ROUNDS = 4  # Triton goes on to machine code each time


def load(file: str, kernel: str) -> object:
    """Import an example with Triton under our names."""
    stand_in = types.ModuleType("tilework")
    stand_in.__dict__.update({name: getattr(triton, name) for name in dir(triton) if not name.startswith("__")})
    sys.modules["tilework"] = stand_in
    sys.modules["tilework.language"] = triton.language
    stand_in.language = triton.language  # pyright: ignore[reportAttributeAccessIssue]
    root = str(Path(file).parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    module = __import__(f"examples.{Path(file).stem}", fromlist=[kernel])
    return getattr(module, kernel)


def measure(entry: dict) -> float:
    """Median milliseconds to TTIR, from Triton's own compile-time listener."""
    kernel = load(entry["file"], entry["kernel"])
    attrs = {tuple(path): facts for path, facts in entry["attrs"]}
    seen: list[float] = []

    def listener(**event: object) -> None:
        times = event["times"]
        stages = dict(times.lowering_stages)  # pyright: ignore[reportAttributeAccessIssue]
        seen.append((times.ir_initialization + stages["ttir"]) / 1e3)  # pyright: ignore[reportAttributeAccessIssue]

    knobs.compilation.listener = listener
    for _ in range(ROUNDS + 2):
        source = ASTSource(kernel, entry["signature"], entry["constexprs"], attrs)
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
    return statistics.median(seen[2:])


def main() -> None:
    knobs.compilation.always_compile = True
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        results = {}
        for entry in json.load(sys.stdin):
            try:
                results[entry["name"]] = measure(entry)
            except Exception as error:
                print(f"{entry['name']}: {type(error).__name__}: {error}", file=sys.stderr)
        print(json.dumps(results))


if __name__ == "__main__":
    main()
