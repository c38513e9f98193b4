"""Load the operands of dots through tensor descriptors that the launch makes, where pointers would read the same.

    tt.func @k(%a: !tt.ptr<f16>, %M: i32, ...)               tt.func @k(%a: !tt.ptr<f16>, %M: i32, ..., %d: !tt.tensordesc<tensor<128x64xf16>>)
      %p = tt.addptr ... : tensor<128x64x!tt.ptr<f16>>   ==>   %row = arith.muli %pid, %c128
      %x = tt.load %p, %mask, %zero                            %x = tt.descriptor_load %d[%row, %column]
      tt.dot %x, ...                                           tt.dot %x, ...

Which loads read rectangles `analysis/rectangles.py` decides. The kernel gets a hidden argument for each array, behind those of the user; the attribute
`tilework.rectangles` of the module tells the launcher, as JSON, how to make it from the others, and what must hold for these: otherwise it
launches a kernel that was compiled without this pass. A tile whose first dimension is contiguous is loaded transposed, and turned.

Left as they are: loads of anything else than operands of dots, operands of one byte or four in the order that tensor cores do not read,
and loads that something written by this kernel may reach (another proxy of the GPU does the copies, and sees it later), or after one that waits.
Stage: TTIR to TTIR, targets with TMA. Cost: one walk, and what the addresses of candidates are computed from.
"""

import json
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.index_forms import IndexForms, Poly, Wrapped
from tilework.analysis.launch_numbers import LaunchNumbers
from tilework.analysis.rectangles import Rectangle, rectangle_of
from tilework.ir import tt
from tilework.ir.arith_ext import convert
from tilework.ir.create import create_op
from tilework.ir.effects import is_pure, is_terminator, writes
from tilework.ir.functions import has_body, is_private, ops_in_order
from tilework.ir.module_facts import RECTANGLES
from tilework.ir.nesting import LOOPS, body_of, end_of, loop_around, ops_around
from tilework.ir.rewrite import erase_op, replace_all_uses
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.types import bit_width, element_type, i32, i32_array, string_attr, tensor_type, tensordesc_type
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass

TURNED = i32_array(1, 0)


class RectanglesToDescriptorsPass(Pass):
    name = "tt-rectangles-to-descriptors"

    def run(self, module: ModuleOp) -> None:
        kernels = [op for op in module.ops if type(op) is tt.FuncOp and has_body(op) and not is_private(op)]
        if len(kernels) != 1 or RECTANGLES in module.attributes:
            return
        rewrite = Rewrite(kernels[0])
        for load in candidates(kernels[0]):
            rewrite.load(load)
        if rewrite.made:
            rewrite.finish()
            told = {"nodes": rewrite.numbers.nodes, "fits": list(rewrite.fits), "maps": list(rewrite.made.values())}
            module.attributes[RECTANGLES] = string_attr(json.dumps(told))


def candidates(kernel: tt.FuncOp) -> list[tt.LoadOp]:
    """Loads that only dots use, and that nothing written before can reach."""
    ops = ops_in_order(*kernel.regions)
    loads: list[tt.LoadOp] = []
    writing: set[Operation] = set()  # loops that hold something that writes
    has_written = False
    for op in ops:
        if not op.regions and not is_terminator(op) and writes(op):
            writing.update(outer for outer in ops_around(op) if type(outer) in LOOPS)
    for op in ops:
        if isinstance(op, tt.LoadOp):
            if has_written or writing.intersection(ops_around(op)):
                continue
            if bit_width(op.result.type) <= 32 and dot_operands(op.result):
                loads.append(op)
        elif not op.regions and not is_terminator(op) and writes(op):
            has_written = True
    return loads


def dot_operands(value: SSAValue, turned: bool = False) -> list[tuple[int, bool]]:
    """(operand, whether it is turned before) of each dot that uses a tile; empty if anything else uses it."""
    found: list[tuple[int, bool]] = []
    for use in value.uses:
        if type(use.operation) is tt.DotOp and use.index < 2:
            found.append((use.index, turned))
        elif type(use.operation) is tt.TransOp and (more := dot_operands(use.operation.results[0], not turned)):
            found += more
        else:
            return []
    return found


def is_readable(load: tt.LoadOp, found: Rectangle) -> bool:
    """Whether tensor cores read the rows of the array as the dot wants them: two bytes any way, others along k."""
    along_k = {(0, False): False, (0, True): True, (1, False): True, (1, True): False}
    uses = dot_operands(load.result)
    return bit_width(load.result.type) == 16 or all(along_k[use] == found.is_transposed for use in uses)


class Rewrite:
    """The loads of a kernel: `made` is what the launcher is told about each hidden argument, by what it describes."""

    def __init__(self, kernel: tt.FuncOp) -> None:
        self.kernel, self.entry = kernel, body_of(kernel)
        self.count = len(self.entry.args)
        self.forms = IndexForms()
        self.numbers = LaunchNumbers(self.forms)
        self.made: dict[Any, dict[str, Any]] = {}
        self.fits: dict[tuple[int, int], None] = {}
        self.remainders: dict[tuple[int, Operation], SSAValue] = {}

    def load(self, load: tt.LoadOp) -> None:
        """Replace one load, if it reads a rectangle and a launch can see that."""
        if load.is_volatile.value.data or (found := rectangle_of(load, self.forms)) is None:
            return
        told, fits = self.told(found, load), self.numbers.fits(*(root for root in (load.ptr, load.mask) if root))
        if told is None or fits is None or not is_readable(load, found):
            return
        self.fits |= dict.fromkeys(fits)
        key = repr(
            {**told, "axes": [[axis[0], axis[2] if axis[2] is not None else axis, axis[4]] for axis in told["axes"]]}
        )
        if key not in self.made:
            block = tensor_type(tuple(axis.block for axis in found.axes), element_type(load.result.type))
            argument = self.entry.insert_arg(tensordesc_type(block), len(self.entry.args))
            argument.location = load.location
            self.made[key] = told
        argument = self.entry.args[self.count + list(self.made).index(key)]
        code = Emitter(load.location)
        starts = [self.emit(code, axis.start, load) for axis in found.axes]
        tile = tensor_type(tuple(axis.block for axis in found.axes[-2:]), element_type(load.result.type))
        properties = {name: load.properties[name] for name in ("cache", "evict") if name in load.properties}
        value = code.append(create_op(tt.DescriptorLoadOp, (argument, *starts), (tile,), load.location, properties))
        if found.is_transposed:
            value = code.append(create_op(tt.TransOp, (value,), (load.result.type,), load.location, {"order": TURNED}))
        code.insert_before(load)
        replace_all_uses(load.result, value)
        erase_op(load)

    def told(self, found: Rectangle, load: tt.LoadOp) -> dict[str, Any] | None:
        """What the launcher must know about a hidden argument; None if it cannot know it."""
        axes = [
            [self.numbers.of(axis.stride), self.numbers.of(axis.start), axis.size and self.numbers.of(axis.size), axis.starts_masked, axis.block]
            for axis in found.axes
        ]  # fmt: skip
        offset = self.numbers.of(found.offset)
        if offset is None or any(axis[0] is None or axis[1] is None for axis in axes):
            return None
        return {"base": found.base.index, "offset": offset, "bytes": bit_width(load.result.type) // 8, "axes": axes}

    def emit(self, code: Emitter, poly: Poly, load: Operation) -> SSAValue:
        """A polynomial as 32 bits, what changes in the loop around `load` last."""
        loop = loop_around(load)
        inside = [
            monomial for monomial in sorted(poly) if loop and not all(self.forms.is_outside(n, loop) for n in monomial)
        ]
        total: SSAValue | None = None
        for monomial in [*(monomial for monomial in sorted(poly) if monomial not in inside), *inside]:
            term = self.product(code, monomial, poly[monomial], load)
            total = term if total is None else code.binary(arith.AddiOp, total, term)
        return code.constant(0, i32) if total is None else total

    def product(self, code: Emitter, monomial: tuple[int, ...], coefficient: int, load: Operation) -> SSAValue:
        factors = [self.atom(code, number, load) for number in monomial]
        if coefficient != 1 or not factors:
            factors.append(code.constant(coefficient, i32))
        value, *more = factors
        for factor in more:
            value = code.binary(arith.MuliOp, value, factor)
        return value

    def atom(self, code: Emitter, number: int, load: Operation) -> SSAValue:
        atom = self.forms.atoms[number]
        if isinstance(atom, Wrapped):
            return self.wrapped(number, atom, load)
        return atom if atom.type == i32 else code.append(convert(arith.TruncIOp, atom, i32, code.loc))

    def wrapped(self, number: int, atom: Wrapped, load: Operation) -> SSAValue:
        """A remainder, in front of the loops that it does not change in."""
        outside: Operation = load
        while (loop := loop_around(outside)) is not None and self.forms.is_outside(number, loop):
            outside = loop
        if (number, outside) not in self.remainders:
            code = Emitter(load.location)
            start, size = (self.emit(code, dict(part), outside) for part in (atom.start, atom.size))
            self.remainders[number, outside] = code.binary(arith.RemSIOp, start, size)
            code.insert_before(outside)
        return self.remainders[number, outside]

    def finish(self) -> None:
        """The signature of the kernel follows its new arguments; loops no longer move what they carried for the loads."""
        for loop in [op for op in ops_in_order(*self.kernel.regions) if type(op) is scf.ForOp]:
            rest_carried(loop)
        inputs = tuple(argument.type for argument in self.entry.args)
        self.kernel.properties["function_type"] = function_type(inputs, tuple(function_type_of(self.kernel).outputs))
        if isinstance(attributes := self.kernel.properties.get("arg_attrs"), ArrayAttr):
            more = [DictionaryAttr({})] * (len(inputs) - len(attributes))
            self.kernel.properties["arg_attrs"] = ArrayAttr([*attributes, *more])


def rest_carried(loop: Operation) -> None:
    """What only the next iteration's value depends on stays as it is: `canonicalize` takes it out of the loop."""
    block, end = body_of(loop), end_of(body_of(loop))
    for place, result in enumerate(loop.results):
        argument = block.args[1 + place]
        if end.operands[place] is not argument and result.first_use is None and feeds_only(argument, end, place):
            end.operands[place] = argument


def feeds_only(value: SSAValue, end: Operation, place: int) -> bool:
    """Whether nothing depends on `value` but what `end` passes on at `place`."""
    for use in value.uses:
        op = use.operation
        if op is end:
            if use.index != place:
                return False
        elif op.regions or not is_pure(op) or not all(feeds_only(result, end, place) for result in op.results):
            return False
    return True
