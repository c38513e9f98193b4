"""Dots on wmma whose warps have their tiles in any arrangement: the emulated GPU gives NumPy's product."""

import re

import numpy as np
import pytest

from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.target import Target
from tilework.targets.amd.code_object import metadata
from tilework.targets.amd.lower.emit import emit_module

MODULE = """
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_wmma<{version = VERSION, isTranspose = TRANSPOSED, ctaLayout = TILES}>
#x = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = WIDTH}>
#y = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = WIDTH}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:ARCH", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {
    LOAD(%a, x, M, K, f16)
    LOAD(%b, y, K, N, f16)
    %zero = arith.constant dense<0.0> : tensor<MxNxf32, #mma>
    %d = tt.dot %x, %y, %zero : tensor<MxKxf16, #x> * tensor<KxNxf16, #y> -> tensor<MxNxf32, #mma>
    %r = ttg.convert_layout %d : tensor<MxNxf32, #mma> -> tensor<MxNxf32, #b>
    POINTERS(%c, M, N, f32)
    tt.store %c_p, %r : tensor<MxNx!tt.ptr<f32>, #b>
    tt.return
  }
}
"""  # noqa: E501


def pointers(base: str, rows: int, columns: int, element: str) -> str:
    name, shape = f"{base}_", f"{rows}x{columns}x"
    return f"""
    {name}i = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32, #ttg.slice<{{dim = 1, parent = #b}}>>
    {name}j = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #b}}>>
    {name}e = tt.expand_dims {name}i {{axis = 1 : i32}} : tensor<{rows}xi32, #ttg.slice<{{dim = 1, parent = #b}}>> -> tensor<{rows}x1xi32, #b>
    {name}f = tt.expand_dims {name}j {{axis = 0 : i32}} : tensor<{columns}xi32, #ttg.slice<{{dim = 0, parent = #b}}>> -> tensor<1x{columns}xi32, #b>
    {name}s = arith.constant dense<{columns}> : tensor<{rows}x1xi32, #b>
    {name}m = arith.muli {name}e, {name}s : tensor<{rows}x1xi32, #b>
    {name}g = tt.broadcast {name}m : tensor<{rows}x1xi32, #b> -> tensor<{shape}i32, #b>
    {name}h = tt.broadcast {name}f : tensor<1x{columns}xi32, #b> -> tensor<{shape}i32, #b>
    {name}o = arith.addi {name}g, {name}h : tensor<{shape}i32, #b>
    {name}q = tt.splat {base} : !tt.ptr<{element}> -> tensor<{shape}!tt.ptr<{element}>, #b>
    {name}p = tt.addptr {name}q, {name}o : tensor<{shape}!tt.ptr<{element}>, #b>, tensor<{shape}i32, #b>"""  # noqa: E501


def load(base: str, to: str, rows: int, columns: int) -> str:
    shape = f"{rows}x{columns}x"
    return f"""{pointers(base, rows, columns, "f16")}
    {base}_v = tt.load {base}_p : tensor<{shape}!tt.ptr<f16>, #b>
    %{to} = ttg.convert_layout {base}_v : tensor<{shape}f16, #b> -> tensor<{shape}f16, #{to}>"""


TILES = [
    "{warp = [[0, 1], [1, 0]]}",
    "{warp = [[1, 0], [2, 0]]}",
    "{register = [[0, 1], [1, 0]], warp = [[0, 2], [2, 0]]}",
    "{register = [[1, 0]], warp = [[0, 1], [2, 0]]}",  # rows of tiles before columns repeat
    "{register = [[1, 0], [0, 1]], warp = [[2, 0], [0, 2]]}",
    "{register = [[2, 0]], warp = [[1, 0], [0, 1]]}",  # a warp has every other row of tiles
]


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("shape", [(64, 64, 32), (32, 128, 16), (16, 16, 32)])
@pytest.mark.parametrize("tiles", TILES)
def test_tiles_in_any_arrangement(tiles: str, shape: tuple[int, int, int], arch: str) -> None:
    (m, n, k), target = shape, Target.parse(f"hip:{arch}")
    version, width = (1, 16) if arch == "gfx1100" else (2, 8)
    text = MODULE.replace("LOAD(%a, x, M, K, f16)", load("%a", "x", m, k))
    text = text.replace("LOAD(%b, y, K, N, f16)", load("%b", "y", k, n))
    text = text.replace("POINTERS(%c, M, N, f32)", pointers("%c", m, n, "f32"))
    text = text.replace("MxN", f"{m}x{n}").replace("MxK", f"{m}x{k}").replace("KxN", f"{k}x{n}")
    text = text.replace("VERSION", str(version)).replace("WIDTH", str(width)).replace("ARCH", arch)
    for transposed in ("true", "false"):
        module = parse_module(text.replace("TILES", tiles).replace("TRANSPOSED", transposed))
        verify(module)
        code = emit_module(module, target)
        random = np.random.default_rng(3)
        a, b = (random.integers(-4, 5, size).astype(np.float16) for size in ((m, k), (k, n)))
        out = np.zeros((m, n), np.float32)
        run(code, [a, b, out, 0, 0], grid=1, threads=128, lds_bytes=metadata(code)["shared"], arch=arch)
        assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("version", "arch"), [(3, "gfx1201"), (1, "gfx1201"), (2, "gfx1100"), (2, "gfx942")])
def test_a_dot_for_the_unit_of_another_gpu_is_refused(version: int, arch: str) -> None:
    text = MODULE.replace("VERSION", str(version)).replace("ARCH", arch).replace("TILES", TILES[0])
    text = text.replace("WIDTH", "16" if version == 1 else "8").replace("TRANSPOSED", "true")
    dot = text.index("    %d = tt.dot")
    zeros = "\n".join(f"    %{name} = arith.constant dense<0.0> : tensor<32x32xf16, #{name}>\n" for name in "xy")
    text = text[: text.index("    LOAD")] + zeros + text[text.index("    %zero") : text.index("\n", dot)]
    text = re.sub("MxK|KxN|MxN", "32x32", text) + "\n    tt.return\n  }\n}\n"
    with pytest.raises(PassError, match=f"a dot in the layout of wmma 16x16x16, version {version}, cannot be compiled"):
        emit_module(parse_module(text), Target.parse(f"hip:{arch}"))


MFMA = "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [INSTRUCTION], isTransposed = true}>"
WMMA = "#ttg.amd_wmma<{version = VERSION, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>"
SMALL_K = [
    *(("gfx1201", WMMA.replace("VERSION", "2"), width, k) for width, k in ((4, 8), (8, 8), (8, 1), (16, 16))),
    *(("gfx1100", WMMA.replace("VERSION", "1"), 16, k) for k in (8, 2)),
    ("gfx942", MFMA.replace("INSTRUCTION", "32, 32, 8"), 8, 8),
    ("gfx942", MFMA.replace("INSTRUCTION", "16, 16, 16"), 4, 8),
    ("gfx942", MFMA.replace("INSTRUCTION", "16, 16, 16"), 4, 2),
]


@pytest.mark.parametrize(("arch", "layout", "width", "k"), SMALL_K)
def test_copies_along_a_small_k_are_not_added(arch: str, layout: str, width: int, k: int) -> None:
    """Registers and lanes beyond K hold copies; infinities among them are not multiplied with zeros."""
    target, (m, n) = Target.parse(f"hip:{arch}"), (64, 64)
    text = MODULE.replace("LOAD(%a, x, M, K, f16)", load("%a", "x", m, k))
    text = text.replace("LOAD(%b, y, K, N, f16)", load("%b", "y", k, n))
    text = text.replace("POINTERS(%c, M, N, f32)", pointers("%c", m, n, "f32"))
    text = text.replace("MxN", f"{m}x{n}").replace("MxK", f"{m}x{k}").replace("KxN", f"{k}x{n}")
    text = re.sub("#mma = .*", f"#mma = {layout}", text).replace("WIDTH", str(width)).replace("ARCH", arch)
    if target.warp_size == 64:
        text = text.replace("[4, 8]", "[8, 8]").replace('per-warp" = 32', 'per-warp" = 64')
    code = emit_module(parse_module(text), target)
    random = np.random.default_rng(3)
    a, b = (random.integers(1, 5, size).astype(np.float16) for size in ((m, k), (k, n)))
    a[3], b[:, 5] = np.inf, -np.inf
    out = np.zeros((m, n), np.float32)
    threads = 4 * target.warp_size
    run(code, [a, b, out, 0, 0], grid=1, threads=threads, lds_bytes=metadata(code)["shared"], arch=arch)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
