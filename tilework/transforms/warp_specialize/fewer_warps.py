"""The layouts of a program for eight warps that four will run.

    #blocked<{..., warpsPerCTA = [8, 1]}>  ==>  [4, 1]        #mma<{warpsPerCTA = [8, 1], instrShape = [16, 256, 16]}>  ==>  [4, 1]

Every layout becomes one for half of the warps, the same one everywhere, so that what belonged together still does. A
product whose columns were cut has no more columns for an instruction than are left.
"""

from collections.abc import Container

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Region, SSAValue

from tilework.ir import ttng
from tilework.ir.create import set_type
from tilework.ir.encodings import distributed_of, encoding_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import values_of
from tilework.ir.rewrite import attr_value, splat_attr
from tilework.ir.types import is_tensor, shape_of
from tilework.layouts.encodings import Encoding
from tilework.transforms.warp_specialize.slicing import Uncut


def run_on(region: Region, warps: int, parts: int, needed: Container[SSAValue] | None = None) -> None:
    """Give the tensors in `region` layouts for `warps` warps; the columns of products will be cut into `parts`.

    Only `needed` ones, if these are known: the others go.
    """
    ops = ops_in_order(region)
    columns: dict[Encoding, int] = {}
    for result in (op.results[0].type for op in ops if type(op) is ttng.WarpGroupDotOp):
        encoding = encoding_of(result)
        assert encoding is not None, result
        columns[encoding] = min(shape_of(result)[1] // parts, columns.get(encoding, 256))
    known: dict[Attribute, Attribute] = {}

    def visit(value: SSAValue) -> None:
        if needed is not None and value not in needed:
            return
        if is_tensor(value.type) and (encoding := distributed_of(value.type)) is not None:
            if value.type not in known:
                root = encoding.root
                fewer = root.on_warps(warps, columns.get(root, 256))
                if fewer is None:
                    raise Uncut(f"the layout of a tensor has no form for {warps} warps")
                known[value.type] = with_encoding(value.type, encoding.with_root(fewer))
            set_type(value, known[value.type])

    for op in ops:
        for value in values_of(op):
            visit(value)
        if needed is not None and not any(result in needed for result in op.results):
            continue
        if isinstance(op, arith.ConstantOp) and isinstance(dense := op.properties["value"], DenseIntOrFPElementsAttr):
            number = attr_value(dense)
            if number is None:
                raise Uncut("a constant tensor has different elements")
            op.properties["value"] = splat_attr(number, op.results[0].type)
