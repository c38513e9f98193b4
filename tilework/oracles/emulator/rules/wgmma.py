"""wgmma: products of matrices in shared memory by a warpgroup, four warps in a row. Each warp has 16 of the 64 rows.

    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16  {%f1, ...}, %rd1, %rd2, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;

A matrix in shared memory is given by a descriptor: where it starts, two strides and a swizzle (`Descriptor`). It is computed when
it is issued, with the arithmetic of `dots`, and stays listed in `pending` until it is waited for.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.oracles.emulator import dots
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.fragments import accumulator, operand_a
from tilework.oracles.emulator.pending import Access, operations
from tilework.oracles.emulator.rules.matrix import reader, whole_warps, writer
from tilework.oracles.emulator.syntax import EmulatorError, Imm, Instruction, Operand, Reg, Vector, items
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator, Unsupported, rule

GROUP = 4  # warps
ROWS = 64
PIECE = 16  # bytes that lie side by side in every layout
STEP = 32  # bytes of k that one instruction takes
SPANS = {0: 0, 1: 128, 2: 64, 3: 32}  # of a swizzle, in bytes, by its number in a descriptor
RESERVED = ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 7 << 49 | 3 << 62) & 0xFFFF_FFFF_FFFF_FFFF
SHAPE = re.compile(r"m64n(\d+)k(\d+)$")
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
        """The shared addresses of the 16-byte pieces of `rows` rows from row `first` on. By k: (rows, 2 pieces of k). Else, for 16-bit elements:
        (16 of k, rows / 8)."""
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
    raise Unsupported(ins, "sparse matrices" if "sp" in ins.modifiers else "")


@dataclass(frozen=True)
class Form:
    """What the modifiers and constants of an instruction say."""

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
    shape = next((match for modifier in ins.modifiers if (match := SHAPE.match(modifier))), None)
    if shape is None:
        raise Unsupported(ins, "its shape is not known")
    columns, depth = int(shape[1]), int(shape[2])
    types = [modifier for modifier in ins.modifiers if modifier in DEPTHS or modifier in ("f32", "s32")]
    if len(types) != 3:
        raise Unsupported(ins, "its types are not known")
    d, a, b = types
    if not dots.are_multiplied(a, b):
        raise Unsupported(ins, f"A of {a} and B of {b}")
    if d not in dots.results(a) or depth != DEPTHS[a]:
        raise Unsupported(ins, f"{ins.modifiers[3]} of {a} with D of {d}")
    integral = a in dots.INTEGERS
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
                    f"wgmma needs four whole warps; the block has {t.threads // WARP - group * GROUP} in warpgroup {group}"
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
    """The descriptor that all threads of these warps give."""
    values = np.broadcast_to(t.read(operand, np.uint64), (t.threads,)).reshape(-1, WARP)

    def get(warps: Array) -> Descriptor:
        found = values[warps]
        if (found != found[0, 0]).any():
            raise EmulatorError("the threads of a warpgroup give different matrix descriptors")
        return Descriptor.unpack(int(found[0, 0]))

    return get


Loaded = tuple[Array, tuple[Access, ...]]


def operand_of(ins: Instruction, t: Translator, operand: Operand) -> Callable[[Array, Form], Loaded]:
    """A, from registers or shared memory: (warps, 16, k) and what was read."""
    if isinstance(operand, Vector):
        if len(operand.items) != 4:
            raise Unsupported(ins, f"{len(operand.items)} registers for A, not 4")
        get = reader(t, operand)
        return lambda warps, form: (
            operand_a(16, form.depth, dots.bits_of(form.a)).matrix(dots.numbers(get(warps), form.a)),
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
    """Rows of a matrix in shared memory: (rows, k). It is read once for all `warps`, by the first of their threads."""
    addresses = found.pieces(rows, first, by_k).reshape(-1) + t.block.windows[warps[0] * WARP]
    threads = np.full(len(addresses), warps[0] * WARP)
    data = t.port("shared").read(addresses, np.uint64, 2, threads, ins, "async load")
    access = (Access("shared", addresses, PIECE),)
    if by_k:
        return dots.numbers(data.reshape(rows, -1), type), access
    return dots.numbers(data.reshape(16, -1), type).T, access


def compute(form: Form, a: Array, b: Array, c: Array) -> Array:
    """(warps, 16, k) times (columns, k) plus (warps, 16, columns)."""
    a, b = -a if form.negate_a else a, -b if form.negate_b else b
    if form.a in dots.INTEGERS:
        return dots.integral(a, b.T[None], c.astype(np.int64), form.saturate, form.bitwise)
    return dots.fused(dots.Factor.of(a, dots.FLOATS[form.a]), dots.Factor.of(b[None], dots.FLOATS[form.b]), c, form.d)
