"""cp.async, wgmma and mbarriers: small kernels of TTGIR, run in the checking emulator and compared with NumPy.

kernel("x: f16, y: f16", body)      a module with one function; `pointers` and `loaded` write the common parts of bodies
"""

import re
import shutil
import subprocess
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.pipeline.gpu import Config
from tests.targets.gpu_run import CPU, VERSION, check, ptx_of
from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.oracles.emulator.device import Device
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.lower.wgmma_rules import form_of
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2, "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f8E4M3FN": 8, "f8E5M2": 8, "i8": 8, "i32": 32, "i64": 64}


def blocked(columns: int, each: int, warps: int) -> str:
    lanes = min(32, max(1, columns // each))
    return (
        f"#ttg.blocked<{{sizePerThread = [1, {each}], threadsPerWarp = [{32 // lanes}, {lanes}], "
        f"warpsPerCTA = [{warps}, 1], order = [1, 0]}}>"
    )


def swizzled(vec: int, per_phase: int, max_phase: int, order: str = "1, 0") -> str:
    return f"#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = [{order}]}}>"


def nvmma(span: int, bits: int, transposed: bool = False) -> str:
    form = f"swizzlingByteWidth = {span}, transposed = {str(transposed).lower()}, elementBitWidth = {bits}"
    return f"#ttg.nvmma_shared<{{{form}}}>"


def memory(rows: int, columns: int, element: str, encoding: str) -> str:
    return f"!ttg.memdesc<{rows}x{columns}x{element}, {encoding}, #smem, mutable>"


def pointers(name: str, rows: int, columns: int, element: str, encoding: str) -> str:
    """Pointers %NAMEp to a row-major matrix that the argument %NAME points to."""
    shape, r, c = f"{rows}x{columns}", f"%{name}r", f"%{name}c"
    row, column = (f"#ttg.slice<{{dim = {dim}, parent = {encoding}}}>" for dim in (1, 0))
    return f"""
    {r} = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32, {row}>
    {c} = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32, {column}>
    {r}1 = tt.expand_dims {r} {{axis = 1 : i32}} : tensor<{rows}xi32, {row}> -> tensor<{rows}x1xi32, {encoding}>
    {c}1 = tt.expand_dims {c} {{axis = 0 : i32}} : tensor<{columns}xi32, {column}> -> tensor<1x{columns}xi32, {encoding}>
    {r}2 = arith.constant dense<{columns}> : tensor<{rows}x1xi32, {encoding}>
    {r}3 = arith.muli {r}1, {r}2 : tensor<{rows}x1xi32, {encoding}>
    {r}4 = tt.broadcast {r}3 : tensor<{rows}x1xi32, {encoding}> -> tensor<{shape}xi32, {encoding}>
    {c}4 = tt.broadcast {c}1 : tensor<1x{columns}xi32, {encoding}> -> tensor<{shape}xi32, {encoding}>
    %{name}o = arith.addi {r}4, {c}4 : tensor<{shape}xi32, {encoding}>
    %{name}s = tt.splat %{name} : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>, {encoding}>
    %{name}p = tt.addptr %{name}s, %{name}o : tensor<{shape}x!tt.ptr<{element}>, {encoding}>, tensor<{shape}xi32, {encoding}>"""  # noqa: E501


def loaded(name: str, rows: int, columns: int, element: str, encoding: str) -> str:
    """A matrix %NAMEv from the argument %NAME."""
    type = f"tensor<{rows}x{columns}x!tt.ptr<{element}>, {encoding}>"
    return f"{pointers(name, rows, columns, element, encoding)}\n    %{name}v = tt.load %{name}p : {type}"


def stored(name: str, value: str, rows: int, columns: int, element: str, encoding: str) -> str:
    type = f"tensor<{rows}x{columns}x!tt.ptr<{element}>, {encoding}>"
    return f"{pointers(name, rows, columns, element, encoding)}\n    tt.store %{name}p, {value} : {type}"


def kernel(arguments: str, body: str, warps: int = 4, divisible: int = 16) -> str:
    """A module; arguments are ``name: element`` for pointers, ``name: i32!`` for numbers."""
    written = []
    for name, type in (part.split(": ") for part in arguments.split(", ")):
        fact = f"{{tt.divisibility = {divisible} : i32}}"
        written.append(f"%{name}: {type[:-1]}" if type.endswith("!") else f"%{name}: !tt.ptr<{type}> {fact}")
    return f"""
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @k({", ".join(written)}) {{
{body}
    tt.return
  }}
}}
"""


def compiled(text: str, arch: int = 90) -> str:
    module = parse_module(text)
    verify(module)
    return to_ptx(emit_module(module, arch, lines=False), PtxSettings(CPU[arch], VERSION))


def launched(ptx: str, args: list[Any], warps: int = 4) -> None:
    """Run a kernel on arrays, which are changed, and numbers."""
    device = Device(check=True, together=True)
    uploaded = [(arg, device.upload(arg)) if isinstance(arg, np.ndarray) else (arg, arg) for arg in args]
    function = device.load(ptx).function("k")
    numbers = [number for _, number in uploaded]
    device.launch(function, (1, 1, 1), 32 * warps, [*numbers, 0, 0], ptx_text.metadata(ptx).get("shared", 0))
    device.synchronize()
    for array, address in uploaded:
        if isinstance(array, np.ndarray):
            array[...] = device.download(address, array)


def generated(shape: tuple[int, ...], element: str, seed: int = 0) -> Array:
    """Small whole numbers: their products and sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(DTYPES[element])


# Copies in the background


def copy_text(
    element: str, rows: int, columns: int, shared: str, each: int, masked: bool, divisible: int, declared: int
) -> str:
    encoding = blocked(columns, each, 4)
    shape = f"{rows}x{columns}"
    types = f"tensor<{shape}x!tt.ptr<{element}>, {encoding}> -> <{shape}x{element}, {shared}, #smem, mutable>"
    mask = (
        f"""
    %lim = tt.splat %n : i32 -> tensor<1x{columns}xi32, {encoding}>
    %m1 = arith.cmpi slt, %xc1, %lim : tensor<1x{columns}xi32, {encoding}>
    %mask = tt.broadcast %m1 : tensor<1x{columns}xi1, {encoding}> -> tensor<{shape}xi1, {encoding}>"""
        if masked
        else ""
    )
    body = f"""{pointers("x", rows, columns, element, encoding)}{mask}
    %m = ttg.local_alloc : () -> {memory(rows, columns, element, shared)}
    %t = ttg.async_copy_global_to_local %xp, %m {"mask %mask" if masked else ""}
        {{contiguity = {declared} : i32}} : {types}
    %g = ttg.async_commit_group tokens %t
    %u = ttg.async_wait %g {{num = 0 : i32}}
    %v = ttg.local_load %m token %u : {memory(rows, columns, element, shared)} -> tensor<{shape}x{element}, {encoding}>
    {stored("y", "%v", rows, columns, element, encoding)}"""
    return kernel(f"x: {element}, y: {element}, n: i32!", body, divisible=divisible)


COPIES = [
    ("f16", (32, 64), swizzled(8, 1, 8), 8, False, 16, 1, "cg 16"),
    ("f16", (32, 64), nvmma(128, 16), 8, False, 16, 1, "cg 16"),
    ("f16", (32, 64), swizzled(4, 1, 8), 8, False, 16, 1, "ca 8"),  # pieces of 4 in shared memory
    ("f16", (32, 64), swizzled(8, 1, 8), 8, False, 4, 1, "ca 4"),  # pointers of which so much is known
    ("f16", (32, 64), swizzled(8, 1, 8), 8, False, 2, 1, ""),  # too narrow: loaded and stored
    ("f16", (32, 64), swizzled(8, 1, 8), 8, True, 16, 4, "ca 8"),  # so wide as the op promises of its mask
    ("f32", (64, 32), swizzled(4, 1, 8), 4, True, 16, 1, "ca 4"),
    ("f16", (8, 64), swizzled(1, 1, 8), 8, True, 16, 1, ""),
    ("f16", (4, 64), swizzled(8, 1, 4), 8, True, 16, 4, "ca 8"),  # half of the threads hold copies
    ("i8", (32, 64), swizzled(1, 1, 4), 8, False, 16, 1, ""),
    ("i64", (8, 16), swizzled(2, 1, 8), 2, True, 16, 1, "ca 8"),
]


@pytest.mark.parametrize("element, shape, shared, each, masked, divisible, declared, form", COPIES)
def test_copies(
    element: str,
    shape: tuple[int, int],
    shared: str,
    each: int,
    masked: bool,
    divisible: int,
    declared: int,
    form: str,
) -> None:
    """Code that is the same for both GPUs is run once."""
    x, n = generated(shape, element), 20 if masked else 1000
    text, run = copy_text(element, *shape, shared, each, masked, divisible, declared), set[str]()
    for arch in (80, 90):
        y, ptx = np.ones_like(x), compiled(text, arch)
        if (code := re.sub(r"^(\.version|\.target|//).*$", "", ptx, flags=re.MULTILINE)) not in run:
            launched(ptx, [x, y, n])
            assert np.array_equal(y, np.where(np.arange(shape[1]) < n, x, 0)), arch
            run.add(code)
        found = set(re.findall(r"cp\.async\.(c[ag]).*?, (\d+)[,;]", ptx))
        assert found == ({tuple(form.split())} if form else set()), arch


# Products of warp groups


def mma(n: int, element: str, warps: tuple[int, int] = (4, 1)) -> str:
    shape = f"[16, {n}, {256 // BITS[element]}]"
    version = "versionMajor = 3, versionMinor = 0"
    return f"#ttg.nvidia_mma<{{{version}, warpsPerCTA = [{warps[0]}, {warps[1]}], instrShape = {shape}}}>"


def factor(name: str, rows: int, columns: int, element: str, shared: str, warps: int) -> str:
    """A matrix %NAMEm in shared memory, from the argument %NAME."""
    encoding = blocked(columns, 4, warps)
    type = f"tensor<{rows}x{columns}x{element}, {encoding}>"
    return f"""{loaded(name, rows, columns, element, encoding)}
    %{name}m = ttg.local_alloc %{name}v : ({type}) -> {memory(rows, columns, element, shared)}"""


USED = """
    %none = arith.constant 0 : i32
    %use = arith.cmpi ne, %n, %none : i32"""


def dot_text(
    shape: tuple[int, int, int], element: str, a: str, b: str, n: int = 0, sums: str = "f32",
    warps: tuple[int, int] = (4, 1),
    given: str = "constant", extra: str = "",
) -> str:  # fmt: skip
    """c + a @ b; `a` is an encoding of shared memory, or ``registers``; `given`: constant, loaded, or used (if %n says
    so)."""
    rows, columns, depth = shape
    result, count = mma(n or columns, element, warps), warps[0] * warps[1]
    total = f"tensor<{rows}x{columns}x{sums}, {result}>"
    if a == "registers":
        plain = blocked(depth, 4, count)
        operand = f"#ttg.dot_op<{{opIdx = 0, parent = {result}, kWidth = {32 // BITS[element]}}}>"
        wanted = f"tensor<{rows}x{depth}x{element}, {operand}>"
        left = f"""{loaded("a", rows, depth, element, plain)}
    %am = ttg.convert_layout %av : tensor<{rows}x{depth}x{element}, {plain}> -> {wanted}"""
    else:
        left, wanted = factor("a", rows, depth, element, a, count), memory(rows, depth, element, a)
    right = memory(depth, columns, element, b)
    zero = "0" if sums == "i32" else "0.000000e+00"
    start = loaded("c", rows, columns, sums, result) if given != "constant" else ""
    start += "" if given != "constant" else f"\n    %cv = arith.constant dense<{zero}> : {total}"
    use, flag = ("", "") if given != "used" else (", %use", USED)
    body = f"""{left}{factor("b", depth, columns, element, b, count)}{start}{flag}
    ttng.fence_async_shared {{bCluster = false}}
    %made = ttng.warp_group_dot %am, %bm, %cv{use} {{inputPrecision = 0 : i32{extra}}} : {wanted} * {right} -> {total}
    {stored("d", "%made", rows, columns, sums, result)}"""
    return kernel(f"a: {element}, b: {element}, c: {sums}, d: {sums}, n: i32!", body, count)


def check_dot(shape: tuple[int, int, int], element: str, a: str, b: str, **options: Any) -> str:
    """The PTX of a dot that computes what it should."""
    rows, columns, depth = shape
    sums, warps = options.get("sums", "f32"), options.get("warps", (4, 1))
    x, y, c = (
        generated((rows, depth), element),
        generated((depth, columns), element, 1),
        generated((rows, columns), sums, 2),
    )
    ptx = compiled(dot_text(shape, element, a, b, **options))
    product = x.astype("f8") @ y.astype("f8")
    for n in (0, 1) if options.get("given") == "used" else (1,):
        d = np.ones_like(c)
        launched(ptx, [x, y, c, d, n], warps[0] * warps[1])
        more = c.astype("f8") if n and options.get("given") else 0
        assert np.array_equal(d.astype("f8"), product + more)
    return ptx


@pytest.mark.parametrize("span", (128, 64, 32))
@pytest.mark.parametrize("a_transposed", (False, True))
@pytest.mark.parametrize("b_transposed", (False, True))
def test_majors(span: int, a_transposed: bool, b_transposed: bool) -> None:
    """Both factors along K and across it, in one panel or several."""
    shape = (64, 64, 64) if span == 128 else (64, 32, 32)
    ptx = check_dot(shape, "f16", nvmma(span, 16, a_transposed), nvmma(span, 16, b_transposed))
    assert f"1, 1, {int(a_transposed)}, {int(not b_transposed)};" in ptx


LINEAR = {  # 8x8 blocks of 128 bytes, one below the other, then to the right
    True: "[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16]",
    False: "[1, 0], [2, 0], [4, 0], [0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0], [16, 0], [32, 0]",
}


@pytest.mark.parametrize("k_major", (True, False))
def test_without_swizzle(k_major: bool) -> None:
    a = f"#ttg.shared_linear<{{offset = [{LINEAR[k_major]}]}}, alignment = 128>"
    check_dot((64, 32, 32), "f16", a, nvmma(64, 16))


@pytest.mark.parametrize(
    "element, sums",
    [("bf16", "f32"), ("f32", "f32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f16"), ("i8", "i32"), ("f16", "f16")],
)
@pytest.mark.parametrize("in_registers", (False, True))
def test_types(element: str, sums: str, in_registers: bool) -> None:
    bits = BITS[element]
    extra = ", maxNumImpreciseAcc = 1073741824 : i32" if bits == 8 and sums == "f32" else ""
    a = "registers" if in_registers else nvmma(64, bits)
    check_dot((64, 32, 512 // bits), element, a, nvmma(64, bits, True), sums=sums, extra=extra, given="loaded")


@pytest.mark.parametrize(
    "rows, columns, n, warps",
    [
        (64, 8, 8, (4, 1)),
        (128, 32, 16, (4, 1)),
        (128, 32, 32, (8, 1)),
        (64, 64, 32, (4, 2)),
        (64, 16, 16, (8, 1)),
        (64, 128, 128, (4, 1)),
    ],
)
@pytest.mark.parametrize("a", ("memory", "registers"))
def test_tiles(rows: int, columns: int, n: int, warps: tuple[int, int], a: str) -> None:
    """Several tiles in a group, several groups, groups that do the same."""
    encoding = nvmma(64, 16) if a == "memory" else a
    check_dot((rows, columns, 32), "f16", encoding, nvmma(64, 16, True), n=n, warps=warps, given="loaded")


def test_accumulator_that_may_not_count() -> None:
    check_dot((64, 32, 32), "f16", nvmma(64, 16), nvmma(64, 16), given="used")


def test_constant_zero_is_not_written() -> None:
    """No accumulator goes in: the first instruction does not read it."""
    ptx = check_dot((64, 32, 32), "f16", nvmma(64, 16), nvmma(64, 16))
    (uses,) = [
        re.findall(r"([01]), 1, 1, 0, 1;", block)
        for block in re.findall(r"wgmma\.fence.*?wgmma\.commit", ptx, re.DOTALL)
    ]
    assert uses == ["0", "1"]
    assert "0f00000000" not in ptx and not re.search(r"mov\.b32\s+%r\d+, 0;", ptx)


@pytest.mark.parametrize("limit, is_exact", [(32, True), (128, True), (1 << 30, False)])
def test_sums_of_narrow_floats(limit: int, is_exact: bool) -> None:
    """Tensor cores keep 14 bits of a sum of 8-bit floats; parts that are added in f32 keep all."""
    element, shape = "f8E4M3FN", (64, 8, 128)
    extra = f", maxNumImpreciseAcc = {limit} : i32"
    text = dot_text(shape, element, nvmma(128, 8), nvmma(128, 8, True), given="loaded", extra=extra)
    a, b = (np.zeros(size, DTYPES[element]) for size in ((64, 128), (128, 8)))
    a[:, ::32], b[::32] = 2.0**-4, 2.0**-4
    c = np.full((64, 8), 64.0, np.float32)
    d = np.zeros_like(c)
    launched(compiled(text), [a, b, c, d, 1])
    assert np.array_equal(d, np.full_like(c, 64 + 4 * 2.0**-8)) == is_exact


CHAIN = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %f = arith.constant false
    ttng.fence_async_shared {bCluster = false}
    %a2 = ttg.memdesc_subslice %am[0, 16] : MEM64 -> SLICE
    %b1 = ttg.memdesc_trans %bm {order = array<i32: 1, 0>} : BMEM -> BT
    %b2 = ttg.memdesc_subslice %b1[16, 0] : BT -> BSLICE
    %d0 = ttng.warp_group_dot %a2, %b2, %zero, %f {inputPrecision = 0 : i32, isAsync = true} : SLICE * BSLICE -> TOTAL
    %d1 = ttng.warp_group_dot %am, %b1, %d0 {inputPrecision = 0 : i32, isAsync = true} : MEM64 * BT -> TOTAL
    %e1 = ttng.warp_group_dot %am, %b1, %zero {inputPrecision = 0 : i32, isAsync = true} : MEM64 * BT -> TOTAL
    %d2 = ttng.warp_group_dot_wait %d1 {pendings = 1 : i32} : TOTAL
    %e2:2 = ttng.warp_group_dot_wait %e1, %am {pendings = 0 : i32} : TOTAL, MEM64
    %d3 = arith.subf %d2, %e2#0 : TOTAL
"""


def test_asynchronous_products_and_views() -> None:
    """Products wait for each other's accumulators, not for themselves; parts and transposed matrices are the same
    memory."""
    result, shared = mma(32, "f16"), nvmma(128, 16)
    names = {
        "MEM64": memory(64, 64, "f16", shared), "TOTAL": f"tensor<64x32xf32, {result}>",
        "BSLICE": f"!ttg.memdesc<16x32xf16, {nvmma(128, 16, True)}, #smem, mutable, 64x32>",
        "SLICE": f"!ttg.memdesc<64x16xf16, {shared}, #smem, mutable, 64x64>",
        "BT": memory(64, 32, "f16", nvmma(128, 16, True)), "BMEM": memory(32, 64, "f16", shared),
    }  # fmt: skip
    chain = re.sub("|".join(names), lambda found: names[found[0]], CHAIN)
    body = f"""{factor("a", 64, 64, "f16", shared, 4)}{factor("b", 32, 64, "f16", shared, 4)}
    %zero = arith.constant dense<0.000000e+00> : tensor<64x32xf32, {result}>{chain}
    {stored("d", "%d3", 64, 32, "f32", result)}"""
    a, b, d = generated((64, 64), "f16"), generated((32, 64), "f16", 1), np.zeros((64, 32), np.float32)
    launched(compiled(kernel("a: f16, b: f16, d: f32", body)), [a, b, d])
    assert np.array_equal(d, a[:, 16:32].astype("f4") @ b.T[16:32].astype("f4"))


def test_refused() -> None:
    with pytest.raises(PassError, match="a dot of 16 elements along K, fewer than the 32 of an instruction, cannot"):
        compiled(dot_text((64, 32, 16), "i8", "registers", nvmma(32, 8), sums="i32"))
    with pytest.raises(PassError, match="a warp-group dot of a matrix with the layout"):
        compiled(dot_text((64, 32, 32), "f16", nvmma(0, 16), nvmma(64, 16)))
    text = dot_text((64, 32, 32), "f16", nvmma(64, 16), nvmma(64, 16)).replace(
        "ttng.fence_async_shared {bCluster = false}", ""
    )
    with pytest.raises(PassError, match="a warp-group dot cannot be compiled for cuda:80"):
        compiled(text, 80)


def test_forms() -> None:
    """8-bit elements cannot be MN-major, nor rows anywhere."""
    assert form_of([1, 2, 4, 8, 16, 32], [64, 128, 256, 512, 1024], 1) is None
    assert form_of([64, 128, 256, 512], [2, 4, 8, 16], 2) is None


# Barriers


def barrier_text(body: str) -> str:
    """A kernel that copies %x to %y with what `body` says, which knows %xp, and the types by short names."""
    encoding, shared = blocked(32, 1, 4), swizzled(1, 1, 1)
    names = {
        "ONE": f"!ttg.memdesc<1xi64, {swizzled(1, 1, 1, '0')}, #smem, mutable>",
        "MEM": memory(4, 32, "f32", shared),
        "PTRS": f"tensor<4x32x!tt.ptr<f32>, {encoding}>",
        "TENSOR": f"tensor<4x32xf32, {encoding}>",
        "BODY": f"<4x32xf32, {shared}, #smem, mutable>",
    }
    written = re.sub("|".join(names), lambda found: names[found[0]], body)
    source, target = pointers("x", 4, 32, "f32", encoding), stored("y", "%v", 4, 32, "f32", encoding)
    return kernel("x: f32, y: f32, n: i32!", source + written + target)


COPIED = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %no = arith.cmpi eq, %n, %c0 : i32
    %m = ttg.local_alloc : () -> MEM
    %bar = ttg.local_alloc : () -> ONE
    ttng.init_barrier %bar, 128 : ONE
    %t = ttg.async_copy_global_to_local %xp, %m : PTRS -> BODY
    ttng.async_copy_mbarrier_arrive %bar {noIncrement} : ONE
    ttng.wait_barrier %bar, %c0 : ONE
    ttng.wait_barrier %bar, %c1, %no : ONE
    ttg.barrier all
    %v = ttg.local_load %m : MEM -> TENSOR
    ttng.inval_barrier %bar : ONE
"""


@pytest.mark.parametrize("arch", (80, 90))
def test_copies_that_arrive(arch: int) -> None:
    """Every thread arrives with its copies; a wait whose predicate is false does not happen."""
    x, y = generated((4, 32), "f32"), np.zeros((4, 32), np.float32)
    launched(compiled(barrier_text(COPIED), arch), [x, y, 1])
    assert np.array_equal(x, y)


PHASES = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %true = arith.constant true
    %go = arith.cmpi ne, %n, %c0 : i32
    %no = arith.cmpi eq, %n, %c0 : i32
    %bar = ttg.local_alloc : () -> ONE
    ttng.init_barrier %bar, 2 : ONE
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%phase = %c0) -> (i32) : i32 {
      ttng.arrive_barrier %bar, 1, %go : ONE
      ttng.arrive_barrier %bar, 2, %no : ONE
      ttng.barrier_expect %bar, 0, %true : ONE
      ttng.wait_barrier %bar, %phase : ONE
      %next = arith.xori %phase, %c1 : i32
      scf.yield %next : i32
    }
    ttng.inval_barrier %bar : ONE
    %v = tt.load %xp : PTRS
"""


def test_phases() -> None:
    """Phases follow each other; one thread arrives for all, if the predicate says so."""
    x, y = generated((4, 32), "f32"), np.zeros((4, 32), np.float32)
    launched(compiled(barrier_text(PHASES)), [x, y, 1])
    assert np.array_equal(x, y)


def test_barriers_that_old_machines_lack() -> None:
    with pytest.raises(PassError, match="an arrival that counts more than once"):
        compiled(barrier_text(PHASES), 80)


# Whole kernels


def test_loop() -> None:
    """Copies and products of a pipelined loop."""
    assert check(Config("chained", 90)) is None


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
def test_products_stay_in_the_background() -> None:
    """ptxas warns (C7510 and its neighbours) where it has to wait for each product."""
    text = ptx_of(Config("matmul_fp16_128x128x64", 90))
    found = subprocess.run(
        ["ptxas", "-v", "-arch=sm_90a", "-o", "/dev/null", "-"], input=text, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert "C75" not in found.stderr and "0 bytes spill stores" in found.stderr
