"""The matrix instruction of each dot, and the layout of its operands, as Triton decides it (`amd/dots.txt`)."""

import ast
import re
from pathlib import Path

from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.target import Target
from tilework.transforms.registry import parse_pipeline, run_pipeline
from tilework.transforms.remarks import listening

DECISIONS = [
    line.split(" | ")
    for line in (Path(__file__).parent / "amd" / "dots.txt").read_text().splitlines()
    if not line.startswith("#")
]
KINDS = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "i32": "i32", "i8": "i8", "bf16": "bf16"}
KINDS |= {"fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp8e4b8": "f8E4M3FNUZ", "fp8e5b16": "f8E5M2FNUZ"}
MODULE = """
#blocked = #ttg.blocked<{{sizePerThread = [1, 1], threadsPerWarp = [{lanes}, 4], warpsPerCTA = [{warps}, 1], order = [1, 0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "hip:{arch}",
                    "ttg.threads-per-warp" = {wave} : i32}} {{
  tt.func @f(%a: tensor<{m}x{k}x{a}, #ttg.dot_op<{{opIdx = 0, parent = #blocked}}>>,
             %b: tensor<{k}x{n}x{b}, #ttg.dot_op<{{opIdx = 1, parent = #blocked}}>>,
             %c: tensor<{m}x{n}x{c}, #blocked>) -> tensor<{m}x{n}x{c}, #blocked> {{
    %d = tt.dot %a, %b, %c{precision} : tensor<{m}x{k}x{a}, #ttg.dot_op<{{opIdx = 0, parent = #blocked}}>>
         * tensor<{k}x{n}x{b}, #ttg.dot_op<{{opIdx = 1, parent = #blocked}}>> -> tensor<{m}x{n}x{c}, #blocked>
    tt.return %d : tensor<{m}x{n}x{c}, #blocked>
  }}
}}
"""  # noqa: E501
DOT = re.compile(
    r"tt\.(\w+) .* : tensor<[\dx]+x(\w+), #ttg.dot_op<{opIdx = 0, parent = #(\w+)(?:, kWidth = (\d+))?}>> \*"
)
LAYOUT = re.compile(r"#mma = #ttg.amd_(\w+)<{(.*)}>")


def decided(given: str) -> str:
    """``mfma3 32x32x8 T warps 2x2 f16 kWidth 4``, or ``fma f32``."""
    arch, a, b, c, precision, shape, warps, side, kpack = given.split()
    m, n, k = shape.split("x")
    wave = Target.parse(f"hip:{arch}").warp_size
    settings = {"arch": arch, "a": KINDS[a], "b": KINDS[b], "c": KINDS[c], "m": m, "n": n, "k": k, "warps": warps}
    settings |= {"wave": wave, "lanes": wave // 4, "precision": ", inputPrecision = tf32" * (precision == "tf32")}
    module = parse_module(MODULE.format(**settings))
    kpack = "1" if arch == "gfx950" else kpack
    run_pipeline(
        module, parse_pipeline(f"tritonamdgpu-accelerate-matmul{{matrix-instruction-size={side} kpack={kpack}}}")
    )
    text = print_module(module)
    dot = DOT.search(text)
    assert dot is not None, text
    kind, element, parent, width = dot.groups()
    if parent != "mma":
        return f"fma {element}"
    layout = LAYOUT.search(text)
    assert layout is not None, text
    fields = dict(re.findall(r"(\w+) = (\[.*?\]|\w+)", layout[2]))
    tile, grid = ("x".join(re.findall(r"\d+", fields.get(name, "16x16x16"))) for name in ("instrShape", "warpsPerCTA"))
    if (bases := re.search(r"warp = \[(\[.*?\])\]", layout[2])) is not None:  # wmma
        rows, columns = (
            [value for value in found if value] for found in zip(*ast.literal_eval(f"[{bases[1]}]"), strict=True)
        )
        grid = f"{1 << len(rows)}x{1 << len(columns)}"
    elif "ctaLayout" in layout[2]:
        grid = "1x1"
    transposed = "T" if "true" in (fields.get("isTransposed"), fields.get("isTranspose")) else "-"
    reported = f"{layout[1]}{fields['version']} {tile} {transposed} warps {grid} {element} kWidth {width}"
    return reported + " scaled" * (kind == "dot_scaled")


def test_dots_are_as_tritons() -> None:
    found = {given: decided(given) for given, _ in DECISIONS}
    assert found == dict(DECISIONS)


def test_dots_without_wmma_are_reported() -> None:
    """With the version, the shape and the types; one with an instruction is not."""
    settings = {"arch": "gfx1100", "b": "f16", "c": "f32", "n": 64, "k": 32, "warps": 4, "wave": 32, "lanes": 8}
    reports = []
    for rows, element in ((8, "f16"), (64, "f16"), (64, "f32")):
        values = {**settings, "m": rows, "a": element, "b": element, "precision": ""}
        with listening() as remarks:
            run_pipeline(parse_module(MODULE.format(**values)), ["tritonamdgpu-accelerate-matmul"])
        reports.append([remark.text for remark in remarks])
    words = "no matching matrix core intrinsic for wmma version 1 with the shape"
    assert reports[1] == [] and reports[0][0].startswith(
        f"{words} [8, 64, 32] and element types A='f16', B='f16', C='f32'"
    )
    assert reports[2][0].startswith(f"{words} [64, 64, 32] and element types A='f32', B='f32', C='f32'")
