"""Float conversions by instructions of AMD GPUs, two at a time.

    tt.fp_to_fp : f32 -> f8E4M3FNUZ     cvt.pk.fp8.f32     on gfx942; on gfx950 and gfx12 it converts to f8E4M3FN
    arith.truncf : f32 -> bf16          fptrunc            on gfx950; elsewhere our own expansion is shorter
    tt.fp_to_fp : f32 -> f16, rtz       cvt.pkrtz

Values beyond the largest 8-bit float are clamped before the conversion: the hardware saturates only in a mode that
would affect f16 additions too. The other family of 8-bit floats, and other conversions without an instruction, use the
code of all targets (`targets/llvm/scalars.py`), with the same results.
"""

from functools import partial

from xdsl.ir import Attribute, Operation

from tilework.ir import arith, tt
from tilework.ir.enums import RoundingMode
from tilework.ir.types import f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, int_property
from tilework.targets.amd.arch import AmdFeature
from tilework.targets.amd.lower import lowers
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.packing import convert_packed, pack_registers, unpack_register
from tilework.targets.llvm.rules import SCALARS, operand_type, result_type
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import FORMATS, to_odd, upper_half, widen
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i8, i32, vector
from tilework.targets.llvm.values import Value, constant

TINY: dict[str, dict[Attribute, str]] = {
    AmdFeature.FP8_FNUZ: {f8E4M3FNUZ: "fp8", f8E5M2FNUZ: "bf8"},
    AmdFeature.FP8_OCP: {f8E4M3FN: "fp8", f8E5M2: "bf8"},
}
WIDE = (f16, bf16, f32, f64)


@lowers(arith.ExtFOp, arith.TruncFOp, tt.FpToFpOp, overrides=True)
def lower_float_cast(low: Lowering, op: Operation) -> Registers:
    return convert_packed(low, op, partial(cast, low, op))


def cast(low: Lowering, op: Operation, values: list[Value]) -> list[Value]:
    """Convert a group of floats to another format."""
    source, target = operand_type(op), result_type(op)
    wanted, given = register_type(target), values[0].type
    tiny = next((names for feature, names in TINY.items() if low.gpu.has(feature)), {})
    to_zero = int_property(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ
    if source in tiny and wanted in WIDE:
        return [exactly(low, value, wanted) for value in from_tiny(low, values, tiny[source])]
    if target in tiny and given in WIDE and type(op) is tt.FpToFpOp and not to_zero:
        return to_tiny(low, [single(low, value, source) for value in values], target, tiny[target])
    if wanted is f16 and given in (bf16, f32) and to_zero:
        pair = [*(widen(low.builder, value, source) for value in values), constant(f32, 0.0)][:2]
        return low.builder.lanes(low.builder.call("llvm.amdgcn.cvt.pkrtz", vector(f16, 2), pair, is_pure=True))[
            : len(values)
        ]
    if wanted is bf16 and given in (f16, f32, f64) and not to_zero and low.gpu.has(AmdFeature.PACKED_BF16):
        wide = [single(low, value, source) for value in values]
        return low.builder.lanes(low.builder.fptrunc(low.builder.build_vector(wide), vector(bf16, len(wide))))
    return [SCALARS[type(op)](low, op, value) for value in values]


def single(low: Lowering, value: Value, source: Attribute) -> Value:
    """Convert to f32 such that rounding to a narrower format gives the same result."""
    return to_odd(low.builder, value) if value.type is f64 else widen(low.builder, value, source)


def exactly(low: Lowering, value: Value, wanted: Type) -> Value:
    """Convert an f32 that holds an 8-bit float to another format, exactly."""
    b = low.builder
    if wanted is bf16:
        return upper_half(b, value)
    return b.fptrunc(value, f16) if wanted is f16 else b.fpext(value, f64) if wanted is f64 else value


def from_tiny(low: Lowering, values: list[Value], name: str) -> list[Value]:
    (packed,) = pack_registers(low, values)
    halves = [constant(i1, half) for half in range((len(values) + 1) // 2)]
    call, pair = low.builder.call, vector(f32, 2)
    found = [call(f"llvm.amdgcn.cvt.pk.f32.{name}", pair, [packed, half], is_pure=True) for half in halves]
    return [value for pair in found for value in low.builder.lanes(pair)][: len(values)]


def to_tiny(low: Lowering, values: list[Value], target: Attribute, name: str) -> list[Value]:
    b, limit = low.builder, FORMATS[target].limit
    inside = [limited(low, value, limit) for value in values]
    packed = constant(i32, 0)
    for half in range((len(values) + 1) // 2):
        pair = [*inside[2 * half :], constant(f32, 0.0)][:2]
        packed = b.call(f"llvm.amdgcn.cvt.pk.{name}.f32", i32, [*pair, packed, constant(i1, half)], is_pure=True)
    return unpack_register(low, packed, i8)[: len(values)]


def limited(low: Lowering, value: Value, limit: float) -> Value:
    """Clamp to the finite range; NaN is kept."""
    b = low.builder
    bounds = [constant(f32, -limit), constant(f32, limit)]
    between = b.call("llvm.amdgcn.fmed3.f32", f32, [value, *bounds], is_pure=True)
    return b.select(b.fcmp("uno", value, value), value, between)
