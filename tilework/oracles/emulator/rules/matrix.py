"""Matrices in the registers of a warp: ldmatrix, stmatrix, movmatrix, and mma.sync in every type of sm_90.

    ldmatrix.sync.aligned.m8n8.x4.shared.b16  {%r1, %r2, %r3, %r4}, [%r5];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32  {%f1, ...}, {%r1, ...}, {%r5, %r6}, {%f1, ...};

All warps of a block go through an instruction together. The layouts are in `fragments`, the arithmetic is in `dots`. fp8 in
mma.sync is what ptxas makes of it on Hopper: the numbers become f16 and go through two f16 steps, the first two of every four k and
then the others, without the accumulator, which is then added in f32 (or f16) as `add` does.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.oracles.emulator import dots
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.fragments import accumulator, operand_a, operand_b
from tilework.oracles.emulator.rules.ld_st import space_of
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Operand, items
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator, Unsupported, rule

NEWER = "this form needs sm_100 or newer"
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
# (type of A and B, their shapes)
SHAPES: dict[str, set[str]] = {
    "f16": {"m16n8k8", "m16n8k16"}, "bf16": {"m16n8k8", "m16n8k16"}, "tf32": {"m16n8k4", "m16n8k8"},
    "f64": {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"},
    **{fp8: {"m16n8k16", "m16n8k32"} for fp8 in ("e4m3", "e5m2")},
    **{byte: {"m8n8k16", "m16n8k16", "m16n8k32"} for byte in ("s8", "u8")},
    **{nibble: {"m8n8k32", "m16n8k32", "m16n8k64"} for nibble in ("s4", "u4")},
    "b1": {"m8n8k128", "m16n8k128", "m16n8k256"},
}  # fmt: skip
ACCUMULATORS = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "s32": np.int32}


Warps = Any  # numbers of warps, or a slice of them all


def whole_warps(t: Translator, mask: Mask, ins: Instruction) -> Warps:
    """The numbers of the warps that execute; all their lanes must be here."""
    if mask is True:
        return slice(None)
    lanes = mask.reshape(-1, WARP)
    some = lanes.any(axis=1)
    if not lanes[some].all():
        warp = int(np.flatnonzero(some & ~lanes.all(axis=1))[0])
        missing = int(np.flatnonzero(~lanes[warp])[0])
        raise EmulatorError(
            f"{ins.opcode}.sync.aligned needs all lanes of a warp; lane {missing} of warp {warp} is not here"
        )
    return np.flatnonzero(some)


def first_lanes(t: Translator, warps: Warps, count: int) -> Array:
    """The numbers of the first `count` threads of each warp."""
    return t.block.everyone.reshape(-1, WARP)[warps, :count].reshape(-1)


def reader(t: Translator, operand: Operand, dtype: type = np.uint32) -> Callable[[Warps], Array]:
    """The registers of a vector as bits: from warps to (warps, 32, registers). What it gives is overwritten by its next call."""
    registers = [np.broadcast_to(t.read(item, dtype), (t.threads,)).reshape(-1, WARP) for item in items(operand)]
    together = np.empty((t.threads // WARP, WARP, len(registers)), dtype)

    def get(warps: Warps) -> Array:
        for index, register in enumerate(registers):
            together[:, :, index] = register
        return together[warps]

    return get


def writer(t: Translator, operand: Operand, dtype: type = np.uint32) -> Callable[[Array, Warps], None]:
    """Puts (warps, 32, registers) of bits into the registers of a vector."""
    registers = [t.write(item, dtype).reshape(-1, WARP) for item in items(operand)]

    def put(values: Array, warps: Warps) -> None:
        for index, register in enumerate(registers):
            register[warps] = values[:, :, index]

    return put


def tiles(ins: Instruction, registers: Operand) -> int:
    """How many 8 x 8 matrices ldmatrix or stmatrix moves."""
    if "b16" not in ins.modifiers or "m8n8" not in ins.modifiers:
        raise Unsupported(ins, NEWER)
    count = next((int(modifier[1]) for modifier in ins.modifiers if modifier in ("x1", "x2", "x4")), 0)
    if not count:
        raise Unsupported(ins, "it moves 1, 2 or 4 matrices")
    if len(items(registers)) != count:
        raise Unsupported(ins, f"{count} matrices and {len(items(registers))} registers")
    return count


@rule("ldmatrix", collective=True)
def ldmatrix(ins: Instruction, t: Translator) -> Op:
    """Row r of matrix j is the 16 bytes at the address in lane 8j + r; a lane gets two neighbours of row lane/4, or of a column."""
    count = tiles(ins, ins.operands[0])
    put, where, port = writer(t, ins.operands[0]), t.address(ins.operands[1]), t.port(space_of(ins))
    transposed = "trans" in ins.modifiers

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        threads = first_lanes(t, warps, 8 * count)
        rows = port.read(where(threads), np.uint16, 8, threads, ins).reshape(-1, 8, 8)
        if transposed:
            rows = rows.swapaxes(1, 2)
        words = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, count, WARP)
        put(words.swapaxes(1, 2), warps)

    return op


@rule("stmatrix", collective=True)
def stmatrix(ins: Instruction, t: Translator) -> Op:
    count = tiles(ins, ins.operands[1])
    get, where, port = reader(t, ins.operands[1]), t.address(ins.operands[0]), t.port(space_of(ins))
    transposed = "trans" in ins.modifiers

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        threads = first_lanes(t, warps, 8 * count)
        rows = np.ascontiguousarray(get(warps).swapaxes(1, 2)).view(np.uint16).reshape(-1, 8, 8)
        if transposed:
            rows = np.ascontiguousarray(rows.swapaxes(1, 2))
        port.write(where(threads), rows.reshape(-1, 8), threads, ins)
        t.machine.progress += 1

    return op


@rule("movmatrix", collective=True)
def movmatrix(ins: Instruction, t: Translator) -> Op:
    """The transpose of an 8 x 8 matrix of 16-bit elements."""
    if ins.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise Unsupported(ins)
    put, get = writer(t, ins.operands[0]), reader(t, ins.operands[1])

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        rows = np.ascontiguousarray(get(warps)).view(np.uint16).reshape(-1, 8, 8)
        put(np.ascontiguousarray(rows.swapaxes(1, 2)).view(np.uint32).reshape(-1, WARP, 1), warps)

    return op


@rule("mma", collective=True)
def mma(ins: Instruction, t: Translator) -> Op:
    if "sp" in ins.modifiers or any(modifier.startswith("sp::") for modifier in ins.modifiers):
        raise Unsupported(ins, "sparse matrices")
    shape = next((modifier for modifier in ins.modifiers if SHAPE.match(modifier)), "")
    types = [modifier for modifier in ins.modifiers if modifier in SHAPES or modifier in ACCUMULATORS]
    if len(types) != 4 or any(modifier.startswith(("kind::", "block_scale")) for modifier in ins.modifiers):
        raise Unsupported(
            ins, NEWER if any("::" in modifier for modifier in ins.modifiers) else "its types are not known"
        )
    d, a, b, c = types
    check_types(ins, shape, d, a, b, c)
    rows, _, depth = (int(part) for part in SHAPE.match(shape).groups())  # type: ignore[union-attr]
    register = np.uint64 if a == "f64" else np.uint32
    get_a, get_b = reader(t, ins.operands[1], register), reader(t, ins.operands[2], register)
    layout_a, layout_b = operand_a(rows, depth, dots.bits_of(a)), operand_b(depth, dots.bits_of(b))
    layout_c, type_c, type_d = accumulator(rows), np.dtype(ACCUMULATORS[c]), np.dtype(ACCUMULATORS[d])
    word_c, word_d = (np.uint64 if type.itemsize == 8 else np.uint32 for type in (type_c, type_d))
    get_c, put = reader(t, ins.operands[3], word_c), writer(t, ins.operands[0], word_d)
    counts = [len(items(operand)) for operand in ins.operands[:4]]
    wanted = [max(1, layout_c.count * type_d.itemsize // np.dtype(word_d).itemsize), registers(layout_a.count, a)]
    wanted += [registers(layout_b.count, b), max(1, layout_c.count * type_c.itemsize // np.dtype(word_c).itemsize)]
    if counts != wanted:
        raise Unsupported(ins, f"its operands have {counts} registers, not {wanted}")
    prepare, compute = product(ins, a, b, d)
    prepare_a = remembered(
        t, f"{ins.operands[1]} {shape} A {a}", lambda bits: prepare(layout_a.matrix(dots.numbers(bits, a)), a)
    )
    prepare_b = remembered(
        t,
        f"{ins.operands[2]} {shape} B {b}",
        lambda bits: prepare(layout_b.matrix(dots.numbers(bits, b)).swapaxes(1, 2), b),
    )

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        added = layout_c.matrix(get_c(warps).view(type_c))
        found = compute(prepare_a(get_a(warps)), prepare_b(get_b(warps)), added)
        put(layout_c.fragment(np.ascontiguousarray(found)).view(word_d), warps)

    return op


def remembered(t: Translator, key: str, prepare: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """`prepare`, done once while the bits stay the same: a fragment is used by several instructions in a row. `key` is what else
    decides about the result."""

    def find(bits: Array) -> Any:
        known = t.block.state.get(key)
        if known is not None and known[0].shape == bits.shape and np.array_equal(known[0], bits):
            return known[1]
        found = prepare(bits)
        t.block.state[key] = bits.copy(), found
        return found

    return find


def registers(elements: int, type: str) -> int:
    return elements if type == "f64" else max(1, elements * dots.bits_of(type) // 32)


def check_types(ins: Instruction, shape: str, d: str, a: str, b: str, c: str) -> None:
    """`Unsupported` unless sm_90 has this instruction."""
    if not dots.are_multiplied(a, b):
        raise Unsupported(ins, f"A of {a} and B of {b}")
    if shape not in SHAPES[a]:
        raise Unsupported(ins, f"the shape {shape or '(none)'} for {a}; known are {', '.join(sorted(SHAPES[a]))}")
    if d != c or d not in dots.results(a):
        raise Unsupported(ins, f"A and B of {a} with C of {c} and D of {d}")
    if "row" not in ins.modifiers or "col" not in ins.modifiers:
        raise Unsupported(ins, "A is by rows and B by columns")
    if a == "b1" and not {"xor", "and"} & set(ins.modifiers):
        raise Unsupported(ins, "bits are combined by .xor.popc or .and.popc")


def product(
    ins: Instruction, a: str, b: str, d: str
) -> tuple[Callable[[Array, str], Any], Callable[[Any, Any, Array], Array]]:
    """(makes a factor of A (any, rows, k), or of the transpose of B; multiplies two of them and adds C in its own type)."""
    plain: Callable[[Array, str], Any] = lambda matrix, type: matrix  # noqa: E731
    if a == "f64":
        return plain, lambda left, right, added: dots.chained(left, right.swapaxes(1, 2), added)
    if a in dots.INTEGERS:
        saturate = "satfinite" in ins.modifiers
        bitwise = next((name for name in ("xor", "and") if name in ins.modifiers), "")
        return plain, lambda left, right, added: dots.integral(left, right.swapaxes(1, 2), added, saturate, bitwise)
    if a in ("e4m3", "e5m2"):
        return halves, lambda left, right, added: small_floats(left, right, added, d)
    make: Callable[[Array, str], Any] = lambda matrix, type: dots.Factor.of(matrix, dots.FLOATS[type])  # noqa: E731
    return make, lambda left, right, added: dots.fused(left, right, added, d)


def halves(matrix: Array, type: str) -> tuple[dots.Factor, dots.Factor]:
    """fp8 as f16: the first two of every four k, and the others."""
    first = np.arange(matrix.shape[-1]) % 4 < 2
    return dots.Factor.of(matrix[..., first], dots.F16), dots.Factor.of(matrix[..., ~first], dots.F16)


def small_floats(
    a: tuple[dots.Factor, dots.Factor], b: tuple[dots.Factor, dots.Factor], c: Array, result: str
) -> Array:
    products = np.zeros(c.shape)
    for left, right in zip(a, b, strict=True):
        products = dots.fused(left, right, products, result)
    with np.errstate(all="ignore"):
        found = products + c.astype(products.dtype)
    nan = np.uint16(0x7FFF).view(np.float16) if result == "f16" else np.uint32(0x7FFFFFFF).view(np.float32)
    return np.where(np.isnan(found), nan, found)
