"""Matrix instructions: ldmatrix, stmatrix, movmatrix, mma.sync in every type of sm_90, and wgmma.

    ldmatrix.sync.aligned.m8n8.x4.shared.b16  {%r1, %r2, %r3, %r4}, [%r5];
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32  {%f1, ...}, {%r1, ...}, {%r5, %r6}, {%f1, ...};

All warps of a block execute an instruction together. The layouts and the arithmetic are in `tensor_cores`. fp8 in
mma.sync is computed as by the code that ptxas generates for Hopper: the operands become f16 and are multiplied in two
f16 steps, the first two of every four k and then the others, without the accumulator, which is then added in f32 (or
f16) as `add` does.

wgmma multiplies matrices in shared memory by a warpgroup, four consecutive warps. Each warp has 16 of the 64 rows:

    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16  {%f1, ...}, %rd1, %rd2, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;

A descriptor gives the start, two strides and the swizzle of a matrix in shared memory (`Descriptor`). wgmma computes
when it is issued, and is listed in `async_operations` until a thread waits for it.

"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.oracles.emulator import tensor_cores
from tilework.oracles.emulator.async_operations import Access, operations
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.rules.load_store import space_of
from tilework.oracles.emulator.syntax import EmulatorError, Imm, Instruction, Operand, Reg, Vector, items
from tilework.oracles.emulator.tensor_cores import accumulator, operand_a, operand_b
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


Warps = Any  # indices of warps, or a slice of them all


def whole_warps(t: Translator, mask: Mask, ins: Instruction) -> Warps:
    """Return the indices of the warps that execute; all their lanes must be active."""
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
    """Return the indices of the first `count` threads of each warp."""
    return t.block.everyone.reshape(-1, WARP)[warps, :count].reshape(-1)


def reader(t: Translator, operand: Operand, dtype: type = np.uint32) -> Callable[[Warps], Array]:
    """Return a function that reads the registers of a vector as bits: from warps to (warps, 32, registers). Its next
    call overwrites the result."""
    registers = [np.broadcast_to(t.read(item, dtype), (t.threads,)).reshape(-1, WARP) for item in items(operand)]
    together = np.empty((t.threads // WARP, WARP, len(registers)), dtype)

    def get(warps: Warps) -> Array:
        for index, register in enumerate(registers):
            together[:, :, index] = register
        return together[warps]

    return get


def writer(t: Translator, operand: Operand, dtype: type = np.uint32) -> Callable[[Array, Warps], None]:
    """Return a function that writes (warps, 32, registers) of bits to the registers of a vector."""
    registers = [t.write(item, dtype).reshape(-1, WARP) for item in items(operand)]

    def put(values: Array, warps: Warps) -> None:
        for index, register in enumerate(registers):
            register[warps] = values[:, :, index]

    return put


def tiles(ins: Instruction, registers: Operand) -> int:
    """Return the number of 8 x 8 matrices that ldmatrix or stmatrix moves."""
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
    """Row r of matrix j is the 16 bytes at the address in lane 8j + r; a lane gets two neighbours of row lane/4, or of
    a column."""
    count = tiles(ins, ins.operands[0])
    put, where, port = writer(t, ins.operands[0]), t.address(ins.operands[1]), t.port(space_of(ins))
    transposed = "trans" in ins.modifiers

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        threads = first_lanes(t, warps, 8 * count)
        rows = port.read(where(threads), np.uint16, 8, threads, ins).reshape(-1, 8, 8)
        if transposed:
            rows = rows.swapaxes(1, 2)
        registers = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, count, WARP)
        put(registers.swapaxes(1, 2), warps)

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
    layout_a, layout_b = operand_a(rows, depth, tensor_cores.bits_of(a)), operand_b(depth, tensor_cores.bits_of(b))
    layout_c, type_c, type_d = accumulator(rows), np.dtype(ACCUMULATORS[c]), np.dtype(ACCUMULATORS[d])
    bits_c, bits_d = (np.uint64 if type.itemsize == 8 else np.uint32 for type in (type_c, type_d))
    get_c, put = reader(t, ins.operands[3], bits_c), writer(t, ins.operands[0], bits_d)
    counts = [len(items(operand)) for operand in ins.operands[:4]]
    wanted = [max(1, layout_c.count * type_d.itemsize // np.dtype(bits_d).itemsize), registers(layout_a.count, a)]
    wanted += [registers(layout_b.count, b), max(1, layout_c.count * type_c.itemsize // np.dtype(bits_c).itemsize)]
    if counts != wanted:
        raise Unsupported(ins, f"its operands have {counts} registers, not {wanted}")
    prepare, compute = multiplier(ins, a, b, d)
    prepare_a = remembered(
        t,
        f"{ins.operands[1]} {shape} A {a}",
        lambda bits: prepare(layout_a.matrix(tensor_cores.elements_of(bits, a)), a),
    )
    prepare_b = remembered(
        t,
        f"{ins.operands[2]} {shape} B {b}",
        lambda bits: prepare(layout_b.matrix(tensor_cores.elements_of(bits, b)).swapaxes(1, 2), b),
    )

    def op(mask: Mask) -> None:
        warps = whole_warps(t, mask, ins)
        added = layout_c.matrix(get_c(warps).view(type_c))
        found = compute(prepare_a(get_a(warps)), prepare_b(get_b(warps)), added)
        put(layout_c.fragment(np.ascontiguousarray(found)).view(bits_d), warps)

    return op


def remembered(t: Translator, key: str, prepare: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Memoise `prepare` while the bits are the same, because several consecutive instructions use a fragment. `key` is
    the rest of the memo's key."""

    def find(bits: Array) -> Any:
        known = t.block.state.get(key)
        if known is not None and known[0].shape == bits.shape and np.array_equal(known[0], bits):
            return known[1]
        found = prepare(bits)
        t.block.state[key] = bits.copy(), found
        return found

    return find


def registers(elements: int, type: str) -> int:
    return elements if type == "f64" else max(1, elements * tensor_cores.bits_of(type) // 32)


def check_types(ins: Instruction, shape: str, d: str, a: str, b: str, c: str) -> None:
    """Raise `Unsupported` unless sm_90 has this instruction."""
    if not tensor_cores.are_multiplied(a, b):
        raise Unsupported(ins, f"A of {a} and B of {b}")
    if shape not in SHAPES[a]:
        raise Unsupported(ins, f"the shape {shape or '(none)'} for {a}; known are {', '.join(sorted(SHAPES[a]))}")
    if d != c or d not in tensor_cores.results(a):
        raise Unsupported(ins, f"A and B of {a} with C of {c} and D of {d}")
    if "row" not in ins.modifiers or "col" not in ins.modifiers:
        raise Unsupported(ins, "A is by rows and B by columns")
    if a == "b1" and not {"xor", "and"} & set(ins.modifiers):
        raise Unsupported(ins, "bits are combined by .xor.popc or .and.popc")


def multiplier(
    ins: Instruction, a: str, b: str, d: str
) -> tuple[Callable[[Array, str], Any], Callable[[Any, Any, Array], Array]]:
    """Return (a function that prepares A (any, rows, k), or the transpose of B; a function that multiplies two of them
    and adds C in its own type)."""
    plain: Callable[[Array, str], Any] = lambda matrix, type: matrix  # noqa: E731
    if a == "f64":
        return plain, lambda left, right, added: tensor_cores.chained(left, right.swapaxes(1, 2), added)
    if a in tensor_cores.INTEGERS:
        saturate = "satfinite" in ins.modifiers
        bitwise = next((name for name in ("xor", "and") if name in ins.modifiers), "")
        return plain, lambda left, right, added: tensor_cores.integral(
            left, right.swapaxes(1, 2), added, saturate, bitwise
        )
    if a in ("e4m3", "e5m2"):
        return halves, lambda left, right, added: small_floats(left, right, added, d)

    def make(matrix: Array, type: str) -> Any:
        return tensor_cores.Factor.of(matrix, tensor_cores.FLOATS[type])

    return make, lambda left, right, added: tensor_cores.fused(left, right, added, d)


def halves(matrix: Array, type: str) -> tuple[tensor_cores.Factor, tensor_cores.Factor]:
    """Return fp8 as f16: the first two of every four k, and the others."""
    first = np.arange(matrix.shape[-1]) % 4 < 2
    return tensor_cores.Factor.of(matrix[..., first], tensor_cores.F16), tensor_cores.Factor.of(
        matrix[..., ~first], tensor_cores.F16
    )


def small_floats(
    a: tuple[tensor_cores.Factor, tensor_cores.Factor],
    b: tuple[tensor_cores.Factor, tensor_cores.Factor],
    c: Array,
    result: str,
) -> Array:
    total = np.zeros(c.shape)
    for left, right in zip(a, b, strict=True):
        total = tensor_cores.fused(left, right, total, result)
    with np.errstate(all="ignore"):
        found = total + c.astype(total.dtype)
    nan = np.uint16(0x7FFF).view(np.float16) if result == "f16" else np.uint32(0x7FFFFFFF).view(np.float32)
    return np.where(np.isnan(found), nan, found)


GROUP = 4  # warps
ROWS = 64
PIECE = 16  # bytes that are contiguous in every layout
STEP = 32  # bytes of k that one instruction takes
SPANS = {0: 0, 1: 128, 2: 64, 3: 32}  # bytes of a swizzle, by its code in a descriptor
RESERVED = ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 7 << 49 | 3 << 62) & 0xFFFF_FFFF_FFFF_FFFF
WGMMA_SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}


@dataclass(frozen=True)
class Descriptor:
    """A matrix in shared memory. `leading` and `stride` are bytes, named as in the PTX manual."""

    start: int
    leading: int
    stride: int
    offset: int  # of the pattern of the swizzle, in rows of 128 bytes
    mode: int

    @staticmethod
    @cache
    def unpack(bits: int) -> "Descriptor":
        if bits & RESERVED:
            raise EmulatorError(f"{bits:#018x} is no matrix descriptor: bits {bits & RESERVED:#x} must be zero")
        return Descriptor(
            (bits & 0x3FFF) << 4, (bits >> 16 & 0x3FFF) << 4, (bits >> 32 & 0x3FFF) << 4, bits >> 49 & 7, bits >> 62
        )

    def pieces(self, rows: int, first: int, by_k: bool) -> Array:
        """Return the shared addresses of the 16-byte pieces of `rows` rows from row `first` on. K-major: (rows, 2
        pieces of k). MN-major, for 16-bit elements: (16 of k, rows / 8)."""
        span, lead, stride = SPANS[self.mode], self.leading, self.stride
        if by_k:
            row, piece = (np.arange(rows) + first)[:, None], np.arange(STEP // PIECE)[None]
            across = row % 8 * (span or PIECE) + piece * (PIECE if span else lead)
            offset = row // 8 * stride + across
        else:
            depth, piece = np.arange(16)[:, None], (np.arange(rows // 8) + first // 8)[None]
            if span:
                per_span = span // PIECE
                offset = piece // per_span * lead + depth // 8 * stride + depth % 8 * span + piece % per_span * PIECE
            else:
                offset = piece * stride + depth // 8 * lead + depth % 8 * PIECE
        plain = (self.start + offset).astype(np.uint64) & np.uint64(0x3FFFF)
        if not span:
            return plain
        phase = ((plain >> np.uint64(7)) - np.uint64(self.offset)) & np.uint64(span // PIECE - 1)
        return plain ^ phase << np.uint64(4)


@rule("wgmma", collective=True)
def wgmma(ins: Instruction, t: Translator) -> Op:
    match ins.modifiers[0]:
        case "fence":
            return lambda mask: None
        case "commit_group":
            return lambda mask: operations(t).commit("wgmma", t.active(mask))
        case "wait_group" if isinstance(ins.operands[0], Imm):
            left = ins.operands[0].value
            return lambda mask: operations(t).wait("wgmma", t.active(mask), left)
        case "mma_async" if "sp" not in ins.modifiers:
            return multiply(ins, t)
        case _:
            raise Unsupported(ins, "sparse matrices" if "sp" in ins.modifiers else "")


@dataclass(frozen=True)
class Form:
    """The modifiers and constants of an instruction."""

    columns: int
    depth: int
    d: str
    a: str
    b: str
    negate_a: bool = False
    negate_b: bool = False
    by_k_a: bool = True
    by_k_b: bool = True
    saturate: bool = False
    bitwise: str = ""


def form_of(ins: Instruction) -> Form:
    shape = next((match for modifier in ins.modifiers if (match := WGMMA_SHAPE.match(modifier))), None)
    if shape is None:
        raise Unsupported(ins, "its shape is not known")
    columns, depth = int(shape[1]), int(shape[2])
    types = [modifier for modifier in ins.modifiers if modifier in DEPTHS or modifier in ("f32", "s32")]
    if len(types) != 3:
        raise Unsupported(ins, "its types are not known")
    d, a, b = types
    if not tensor_cores.are_multiplied(a, b):
        raise Unsupported(ins, f"A of {a} and B of {b}")
    if d not in tensor_cores.results(a) or depth != DEPTHS[a]:
        raise Unsupported(ins, f"{ins.modifiers[3]} of {a} with D of {d}")
    integral = a in tensor_cores.INTEGERS
    possible = [8, 16, 24, *range(32, 257, 16)] if integral else range(8, 257, 8)
    if columns not in possible:
        raise Unsupported(ins, f"n = {columns} for {a}")
    constants = [operand.value for operand in ins.operands[4:] if isinstance(operand, Imm)]
    if len(constants) != len(ins.operands) - 4:
        raise Unsupported(ins, "the operands after scale-d are constants")
    in_registers = isinstance(ins.operands[1], Vector)
    wanted = 0 if integral else {"f16": 4 - in_registers, "bf16": 4 - in_registers}.get(a, 2)
    if (
        len(constants) != wanted
        or any(value not in (1, -1) for value in constants[:2])
        or any(value not in (0, 1) for value in constants[2:])
    ):
        raise Unsupported(ins, f"it takes {wanted} constants: 1 or -1 for a and for b, then 0 or 1 for the transposes")
    negated, transposed = constants[:2] or [1, 1], constants[2:]
    by_k_a = in_registers or not transposed or transposed[0] == 0
    by_k_b = not transposed or transposed[-1] == 0
    bitwise = "and" if "and" in ins.modifiers else ""
    return Form(
        columns, depth, d, a, b, negated[0] < 0, negated[1] < 0, by_k_a, by_k_b, "satfinite" in ins.modifiers, bitwise
    )


def multiply(ins: Instruction, t: Translator) -> Op:
    form = form_of(ins)
    d_type: Any = np.dtype({"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.d])
    count = form.columns // 2 * d_type.itemsize // 4
    if len(items(ins.operands[0])) != count:
        raise Unsupported(ins, f"{len(items(ins.operands[0]))} registers for D, not {count}")
    get_d, put_d = reader(t, ins.operands[0]), writer(t, ins.operands[0])
    left, right = operand_of(ins, t, ins.operands[1]), descriptors(t, ins.operands[2])
    keeps = t.predicate(ins.operands[3])
    layout = accumulator(16)
    names = register_names(ins.operands[1]), register_names(ins.operands[0])

    def op(mask: Mask) -> None:
        warps = np.arange(t.threads // WARP)[whole_warps(t, mask, ins)]
        keep = np.broadcast_to(keeps(), (t.threads,)).reshape(-1, WARP)[warps]
        old = get_d(warps).view(d_type).reshape(len(warps), WARP, -1, 4)
        new = np.empty_like(old)
        for group in np.unique(warps // GROUP).tolist():
            mine = warps // GROUP == group
            if (group + 1) * GROUP * WARP > t.threads:
                raise EmulatorError(
                    f"wgmma needs four whole warps; "
                    f"the block has {t.threads // WARP - group * GROUP} in warpgroup {group}"
                )
            if keep[mine].any() != keep[mine].all():
                raise EmulatorError("scale-d differs between the threads of a warpgroup")
            a, reads_a = left(warps[mine], form)
            b, reads_b = matrix(ins, t, right(warps[mine]), form.columns, 0, form.b, form.by_k_b, warps[mine])
            blocks = old[mine].transpose(0, 2, 1, 3).reshape(-1, WARP, 4)  # 16 x 8 each
            c = (
                layout.matrix(blocks)
                .reshape(-1, form.columns // 8, 16, 8)
                .transpose(0, 2, 1, 3)
                .reshape(-1, 16, form.columns)
            )
            c = c if keep[mine].any() else np.zeros_like(c)
            found = compute(form, a, b, c).astype(d_type, copy=False)
            tiles = found.reshape(-1, 16, form.columns // 8, 8).transpose(0, 2, 1, 3).reshape(-1, 16, 8)
            new[mine] = layout.fragment(tiles).reshape(-1, form.columns // 8, WARP, 4).transpose(0, 2, 1, 3)
            threads = (warps[mine][:, None] * WARP + np.arange(WARP)).reshape(-1)
            operations(t).issue(ins, "wgmma", threads, (*reads_a, *reads_b), registers=names)
        put_d(np.ascontiguousarray(new.reshape(len(warps), WARP, -1)).view(np.uint32), warps)

    return op


def register_names(operand: Operand) -> frozenset[str]:
    names = [item.name for item in items(operand) if isinstance(item, Reg)]
    return frozenset(names if isinstance(operand, Vector) else ())


def descriptors(t: Translator, operand: Operand) -> Callable[[Array], Descriptor]:
    """Return the descriptor that all threads of these warps give."""
    values = np.broadcast_to(t.read(operand, np.uint64), (t.threads,)).reshape(-1, WARP)

    def get(warps: Array) -> Descriptor:
        found = values[warps]
        if (found != found[0, 0]).any():
            raise EmulatorError("the threads of a warpgroup give different matrix descriptors")
        return Descriptor.unpack(int(found[0, 0]))

    return get


Loaded = tuple[Array, tuple[Access, ...]]


def operand_of(ins: Instruction, t: Translator, operand: Operand) -> Callable[[Array, Form], Loaded]:
    """Return A, from registers or shared memory, (warps, 16, k), and its accesses."""
    if isinstance(operand, Vector):
        if len(operand.items) != 4:
            raise Unsupported(ins, f"{len(operand.items)} registers for A, not 4")
        get = reader(t, operand)
        return lambda warps, form: (
            operand_a(16, form.depth, tensor_cores.bits_of(form.a)).matrix(
                tensor_cores.elements_of(get(warps), form.a)
            ),
            (),
        )
    find = descriptors(t, operand)

    def load(warps: Array, form: Form) -> Loaded:
        parts, reads = [], []
        for warp in warps.tolist():
            values, read = matrix(ins, t, find(warps), 16, warp % GROUP * 16, form.a, form.by_k_a, np.array([warp]))
            parts.append(values)
            reads += read
        return np.stack(parts), tuple(reads)

    return load


def matrix(
    ins: Instruction, t: Translator, found: Descriptor, rows: int, first: int, type: str, by_k: bool, warps: Array
) -> Loaded:
    """Return rows of a matrix in shared memory, (rows, k). It is read once for all `warps`, by the first of their
    threads."""
    addresses = found.pieces(rows, first, by_k).reshape(-1) + t.block.windows[warps[0] * WARP]
    threads = np.full(len(addresses), warps[0] * WARP)
    data = t.port("shared").read(addresses, np.uint64, 2, threads, ins, "async load")
    access = (Access("shared", addresses, PIECE),)
    if by_k:
        return tensor_cores.elements_of(data.reshape(rows, -1), type), access
    return tensor_cores.elements_of(data.reshape(16, -1), type).T, access


def compute(form: Form, a: Array, b: Array, c: Array) -> Array:
    """Return (warps, 16, k) times (columns, k) plus (warps, 16, columns)."""
    a, b = -a if form.negate_a else a, -b if form.negate_b else b
    if form.a in tensor_cores.INTEGERS:
        return tensor_cores.integral(a, b.T[None], c.astype(np.int64), form.saturate, form.bitwise)
    return tensor_cores.fused(
        tensor_cores.Factor.of(a, tensor_cores.FLOATS[form.a]),
        tensor_cores.Factor.of(b[None], tensor_cores.FLOATS[form.b]),
        c,
        form.d,
    )
