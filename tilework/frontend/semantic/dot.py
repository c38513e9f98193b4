"""Matrix products as ops.

    c = tl.dot(a, b, acc)        tt.dot %a, %b, %acc, inputPrecision = tf32 : tensor<64x32xf16> * ... -> tensor<64x64xf32>

`tt.dot` has at most one batch dimension: further leading ones are merged into it and restored afterwards.
"""

from math import prod

from xdsl.ir import SSAValue

from tilework.frontend.semantic.load_store import handle_of
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.frontend.semantic.windows import Windows
from tilework.ir import tt
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.language.typing.carrier import Scaled
from tilework.language.typing.shapes import block, shape_of


class Dots(Windows):
    """What `dot` and `dot_scaled` build."""

    def product(
        self,
        lhs: tl.tensor,
        rhs: tl.tensor,
        acc: tl.tensor | None,
        type: dtype,
        precision: str,
        imprecise_limit: int,
    ) -> tl.tensor:
        shape = type.sizes
        flat = shape if len(shape) < 4 else (prod(shape[:-2]), *shape[-2:])
        if flat != shape:
            lhs, rhs = (self.reshape(value, (flat[0], *shape_of(value)[-2:])) for value in (lhs, rhs))
            acc = None if acc is None else self.reshape(acc, flat)
        result = block(type.scalar, flat)
        start = self._start(acc, result)
        precise = InputPrecision[precision.upper()]
        op = tt.DotOp.make(lhs.handle, rhs.handle, start, self.builder.loc, precise, imprecise_limit)
        return self.reshape(self._emit(op, result), shape)

    def _start(self, acc: tl.tensor | None, type: dtype) -> SSAValue:
        """What the product is added to."""
        if acc is not None:
            return acc.handle
        return self.builder.constant(0.0 if type.scalar.is_floating() else 0, ir_type(type))

    def scaled_product(
        self, lhs: Scaled, rhs: Scaled, acc: tl.tensor | None, type: dtype, fast_math: bool
    ) -> tl.tensor:
        left, left_scale, left_format, left_packed = lhs
        right, right_scale, right_format, right_packed = rhs
        op = tt.DotScaledOp.make(
            left.handle,
            right.handle,
            self._start(acc, type),
            handle_of(left_scale),
            handle_of(right_scale),
            ScaleDotElemType[left_format.upper()],
            ScaleDotElemType[right_format.upper()],
            fast_math,
            self.builder.loc,
            lhs_k_pack=left_packed,
            rhs_k_pack=right_packed,
        )
        return self._emit(op, type)
