"""One process of `gpu_compile --base`: what the rows of `gpu_kernels.py` take to compile for sm_90, from Python to PTX
and by ptxas.

    PYTHONPATH=TREE python benchmarks/gpu_rows_process.py ROUNDS  # TREE has a tilework, of today or of another day

Prints JSON: for each row the least CPU milliseconds of each stage; `cubin` is ptxas, in a few of the rounds, where
there is one.
"""

import importlib.util
import json
import resource
import sys
from pathlib import Path
from typing import Any

from tilework.compiler import ASTSource
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget, find_backend

TARGET = GPUTarget("cuda", 90, 32)
ASSEMBLED = 2  # rounds
ATTENTION = "*fp16 *fp16 *fp16 *fp16 i32 fp32"
NUMBERS = "i32 i32 i32 i32 i32 i32"


def attention(depth: int, causal: bool, keys: int, warps: int, stages: int) -> tuple[Any, ...]:
    constants = {"BM": 128, "BN": keys, "D": depth, "CAUSAL": causal, "SPECIALIZE": False}
    return ("attention", ATTENTION, constants, warps, stages)


def matmul(types: str, columns: int, depth: int) -> tuple[Any, ...]:
    constants = {"BM": 128, "BN": columns, "BK": depth, "GROUP": 8, "SPECIALIZE": False}
    return ("matmul", f"{types} {NUMBERS}", constants, 8, 3)


# kernel, types of what is no constant, constants, warps, stages
ROWS: dict[str, tuple[Any, ...]] = {
    "attention D64": attention(64, False, 64, 4, 3),
    "attention D64 causal": attention(64, True, 64, 4, 3),
    "attention D128": attention(128, False, 128, 8, 2),
    "attention D128 causal": attention(128, True, 128, 8, 2),
    "attention D128, 64 keys": attention(128, False, 64, 8, 3),
    "matmul f16": matmul("*fp16 *fp16 *fp16", 256, 64),
    "matmul fp8": matmul("*fp8e4nv *fp8e4nv *fp16", 256, 128),
    "matmul f32": matmul("*fp32 *fp32 *fp32", 128, 32),
    "add": ("add", "*fp32 *fp32 *fp32 i32", {"BLOCK": 1024}, 4, 3),
    "softmax": ("softmax", "*fp32 *fp32 i32", {"BLOCK": 4096}, 8, 3),
    "layernorm": ("layernorm", "*fp32 *fp32 *fp32 *fp32 i32 fp32", {"BLOCK": 4096}, 8, 3),
    "transpose": ("transpose", "*fp16 *fp16 i32 i32", {"BM": 64, "BN": 64}, 4, 3),
    "cumsum": ("cumsum", "*fp32 *fp32 i32", {"BLOCK": 1024}, 4, 3),
    "sort": ("sort", "*fp32 *fp32", {"BLOCK": 1024}, 4, 3),
    "histogram": ("histogram", "*i32 *i32 i32", {"BLOCK": 1024}, 4, 3),
}


def kernels() -> Any:
    """`gpu_kernels.py` of this folder, whichever tilework is imported."""
    spec = importlib.util.spec_from_file_location("gpu_kernels", Path(__file__).with_name("gpu_kernels.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def source_of(kernel: Any, types: str, constants: dict[str, Any]) -> ASTSource:
    """The kernel with pointers and integers that are multiples of 16."""
    rest = iter(types.split())
    signature = {name: "constexpr" if name in constants else next(rest) for name in kernel.arg_names}
    multiples = [index for index, type in enumerate(signature.values()) if type not in ("constexpr", "fp32")]
    return ASTSource(kernel, signature, constants, {(index,): [["tt.divisibility", 16]] for index in multiples})


def spent() -> float:
    """CPU milliseconds of this process and of those that it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who)) * 1e3


def stage_times(source: ASTSource, warps: int, stages: int, assembles: bool) -> dict[str, float]:
    """CPU milliseconds of each stage of what a launch compiles."""
    backend: Any = find_backend(TARGET)
    defaults = backend.launch_defaults() if hasattr(backend, "launch_defaults") else {}
    options = backend.parse_options({**source.parse_options(), **defaults, "num_warps": warps, "num_stages": stages})
    times: dict[str, float] = {}
    start = spent()
    product: Any = source.stage_input(frontend_options(TARGET, options))
    times["frontend"] = spent() - start
    for name, stage in backend.stages(options).items():
        if name == "cubin" and not assembles:
            break
        start = spent()
        product = stage(product)
        times[name] = spent() - start
    return times


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    module = kernels()
    for row, (kernel, types, constants, warps, stages) in ROWS.items():
        source = source_of(getattr(module, kernel), types, constants)
        rounds = [stage_times(source, warps, stages, number <= ASSEMBLED) for number in range(int(sys.argv[1]) + 1)][1:]
        found[row] = {stage: min(times[stage] for times in rounds if stage in times) for stage in rounds[0]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
