"""Load dot operands through tensor descriptors that the launcher makes, where pointers would read the same elements.

    tt.func @k(%a: !tt.ptr<f16>, %M: i32, ...)               tt.func @k(..., %d: !tt.tensordesc<tensor<128x64xf16>>)
      %p = tt.addptr ... : tensor<128x64x!tt.ptr<f16>>   ==>   %row = arith.muli %pid, %c128
      %x = tt.load %p, %mask, %zero                            %x = tt.descriptor_load %d[%row, %column]
      tt.dot %x, ...                                           tt.dot %x, ...

`analysis/rectangles.py` decides which loads read rectangles. The kernel gets a hidden argument for each array, after
those of the user. The attribute `tilework.rectangles` of the module describes for the launcher, as JSON, how to make it
from the other arguments, and the preconditions: if they do not hold, the launcher uses a kernel that was compiled
without this pass. A tile whose first dimension is contiguous is loaded transposed, and transposed again.

Not rewritten: loads that do not feed dots, operands of one or four bytes in an order that tensor cores do not read, and
loads after an op that may wait for another program. After a store the launcher must check that it writes elsewhere,
because TMA copies use another proxy, which sees the store later. Descriptors that a kernel makes from its arguments
also come from the launcher.
Stage: TTIR to TTIR, targets with TMA. Cost: one walk, and the address computations of candidates.
"""

import json
from typing import Any, NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.index_forms import IndexForms, LaunchExpressions, Poly, Wrapped
from tilework.analysis.rectangles import (
    Rectangle,
    based,
    is_candidate,
    is_likely,
    loops_of_dots,
    rectangle_of,
    worth_copying,
)
from tilework.ir import arith, llvm, scf, tt, ttg
from tilework.ir.create import create_op
from tilework.ir.effects import is_terminator, reads, writes
from tilework.ir.enums import PaddingOption
from tilework.ir.functions import has_body, is_private, ops_in_order
from tilework.ir.module_facts import RECTANGLES
from tilework.ir.nesting import body_of, ops_around
from tilework.ir.rewrite import erase_op, replace_all_uses
from tilework.ir.scf import LOOPS, loop_around
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.tt.memory_ops import block_type
from tilework.ir.types import (
    bit_width,
    element_type,
    i32,
    i32_array,
    shape_of,
    string_attr,
    tensor_type,
    tensordesc_type,
)
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.dce import cut_dead_loop_arguments
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark

TRANSPOSED = i32_array(1, 0)
HARMLESS = frozenset({llvm.AssumeOp, ttg.BarrierOp, tt.AssertOp, tt.PrintOp})  # effects that no load sees
NOT_COPIED = "this operand of a dot is not copied by TMA:"


class RectanglesToDescriptorsPass(Pass):
    name = "tt-rectangles-to-descriptors"
    when: str = "always"  # or "pays": only loads for which `analysis/rectangles.py` expects copies to be faster
    num_warps: int = 4

    def run(self, module: ModuleOp) -> None:
        kernels = [op for op in module.ops if type(op) is tt.FuncOp and has_body(op) and not is_private(op)]
        if len(kernels) != 1 or RECTANGLES in module.attributes:
            return
        ops = list(ops_in_order(*kernels[0].regions))
        pays = self.when == "pays"
        loops = loops_of_dots(ops, self.num_warps) if pays else {}
        if pays and not loops:
            return
        rewrite = Rewrite(kernels[0], pays)
        candidates = worth_copying(loops, rewrite.is_copyable) if pays else filter(is_candidate, ops)
        chosen = dict.fromkeys(load for load in candidates if rewrite.is_copyable(load))
        rewrite.expressions = LaunchExpressions(
            rewrite.forms
        )  # of these loads only: the launcher evaluates all of them
        for load in chosen:
            rewrite.load(load)
        for op in [] if pays else ops:
            if isinstance(op, tt.MakeTensorDescOp):
                rewrite.descriptor(op)
        if rewrite.made:
            rewrite.finish()
            lists = {"fits": rewrite.fits, "written": rewrite.written, "maps": rewrite.made.values()}
            description = {"nodes": rewrite.expressions.nodes, **{name: list(found) for name, found in lists.items()}}
            module.attributes[RECTANGLES] = string_attr(json.dumps(description))


class Copy(NamedTuple):
    """A load as a copy: the rectangle, its description for the launcher, the values that must fit, and the pointers
    written before it."""

    reads: Rectangle
    description: dict[str, Any]
    fits: dict[tuple[int, int], None]
    written: dict[tuple[int, int, int], None]


def writers(kernel: tt.FuncOp) -> list[tuple[Operation, set[Operation]]]:
    """The ops that write memory or may wait for another program, with the loops around them, in program order."""
    ops = list(ops_in_order(*kernel.regions))
    found = [op for op in ops if (not op.regions and type(op) not in HARMLESS and writes(op)) or is_waiting(op)]
    return [(op, {outer for outer in ops_around(op) if type(outer) in LOOPS}) for op in found if not is_terminator(op)]


def is_waiting(op: Operation) -> bool:
    """Return True if an op may wait for what another program writes."""
    return type(op) is scf.WhileOp and reads(op)


class Rewrite:
    """The loads of a kernel; `made` maps each described array to its hidden argument's description for the launcher."""

    def __init__(self, kernel: tt.FuncOp, only_likely: bool) -> None:
        self.kernel, self.entry, self.only_likely = kernel, body_of(kernel), only_likely
        self.count = len(self.entry.args)
        self.forms = IndexForms()
        self.expressions = LaunchExpressions(self.forms)
        self.made: dict[Any, dict[str, Any]] = {}
        self.fits: dict[tuple[int, int], None] = {}
        self.remainders: dict[tuple[int, Operation], SSAValue] = {}
        self.positions = {op: position for position, op in enumerate(ops_in_order(*kernel.regions))}
        self.writers = writers(kernel)
        self.written: dict[tuple[int, int, int], None] = {}  # base, elements from there, bytes of one

    def find(self, load: tt.LoadOp) -> Copy | None:
        """The copy that may replace a load, if the load reads a rectangle that the launcher can compute."""
        if (found := rectangle_of(load, self.forms)) is None:
            return remark(
                load, f"{NOT_COPIED} it reads no rectangle of an array that is bounded by its mask, or pads not with 0"
            )
        if self.only_likely and not is_likely(found, self.forms, bit_width(load.result.type) // 8):
            return remark(
                load,
                f"{NOT_COPIED} its array, a stride or a size that wraps around is not known to be a multiple of 16",
            )
        if (before := self.written_before(load)) is None:
            return remark(
                load, f"{NOT_COPIED} an op before it writes to unknown addresses, or may wait for another program"
            )
        description = self.description(found, load)
        fits = self.expressions.fits(*(root for root in (load.ptr, load.mask) if root))
        if description is None or fits is None:
            return remark(load, f"{NOT_COPIED} its address depends on values that a launch does not know")
        written, more = before
        return Copy(found, description, dict.fromkeys([*fits, *more]), written)

    def is_copyable(self, load: tt.LoadOp) -> bool:
        return self.find(load) is not None

    def load(self, load: tt.LoadOp) -> None:
        """Replace a load by its copy."""
        copy = self.find(load)
        assert copy is not None
        found, description, fits, written = copy
        self.fits |= fits
        self.written |= written
        block = tensor_type(tuple(axis.block for axis in found.axes), element_type(load.result.type))
        parts = [[axis[0], axis[2] if axis[2] is not None else axis, axis[4]] for axis in description["axes"]]
        argument = self.argument(repr({**description, "axes": parts}), description, tensordesc_type(block), load)
        code = Emitter(load.location)
        starts = [self.emit(code, axis.start, load) for axis in found.axes]
        tile = tensor_type(tuple(axis.block for axis in found.axes[-2:]), element_type(load.result.type))
        properties = {name: load.properties[name] for name in ("cache", "evict") if name in load.properties}
        value = code.append(create_op(tt.DescriptorLoadOp, (argument, *starts), (tile,), load.location, properties))
        if found.is_transposed:
            value = code.append(
                create_op(tt.TransOp, (value,), (load.result.type,), load.location, {"order": TRANSPOSED})
            )
        code.insert_before(load)
        replace_all_uses(load.result, value)
        erase_op(load)

    def descriptor(self, make: tt.MakeTensorDescOp) -> None:
        """Let the launcher make a descriptor that the kernel would make from its arguments, and write to memory."""
        base, *sizes = map(self.forms.of, make.operands)
        array = None if base is None else based(base, self.forms)
        if array is None or not all(map(self.forms.is_constant, (array[1], *sizes))):
            return
        nodes, fits = (
            [self.expressions.of(atom_id) for atom_id in (array[1], *sizes)],
            self.expressions.fits(*make.operands),
        )
        if None in nodes or fits is None:
            return
        self.fits |= dict.fromkeys(fits)
        rank = len(make.shape)
        axes = [[nodes[1 + rank + dim], self.expressions.of({}), nodes[1 + dim], False, 1] for dim in range(rank)]
        size = bit_width(block_type(make.result.type)) // 8
        pads_nan = make.padding.value.data == PaddingOption.NAN
        description = {"base": array[0].index, "offset": nodes[0], "bytes": size, "axes": axes, "padding": pads_nan}
        argument = self.argument(repr((description, make.result.type)), description, make.result.type, make)
        replace_all_uses(make.result, argument)
        erase_op(make)

    def argument(self, key: str, description: dict[str, Any], type_: Attribute, op: Operation) -> SSAValue:
        """The hidden argument with this description; a new one if there is none."""
        if key not in self.made:
            self.made[key] = description
            new = self.entry.insert_arg(type_, len(self.entry.args))
            new.location = op.location
        return self.entry.args[self.count + list(self.made).index(key)]

    def written_before(self, load: Operation) -> tuple[dict[tuple[int, int, int], None], list[tuple[int, int]]] | None:
        """(the pointers that stores before a load may write, the values that must fit); None if other ops may write, or
        the address is unknown."""
        found: dict[tuple[int, int, int], None] = {}
        fitting: list[tuple[int, int]] = []
        for op, loops in self.writers:
            if self.positions[op] > self.positions[load] and loops.isdisjoint(ops_around(load)):
                continue
            address = self.forms.of(op.operands[0]) if isinstance(op, tt.StoreOp) else None
            array = None if address is None else based(address, self.forms)
            node = None if array is None else self.expressions.of(array[1], shape_of(op.operands[0].type))
            if array is None or node is None or (fits := self.expressions.fits(op.operands[0])) is None:
                return None
            fitting += fits
            found[array[0].index, node, max(bit_width(op.operands[1].type) // 8, 1)] = None
        return found, fitting

    def description(self, found: Rectangle, load: tt.LoadOp) -> dict[str, Any] | None:
        """The description of a hidden argument for the launcher; None if the launcher cannot compute it."""
        axes: list[list[Any]] = []
        for axis in found.axes:
            parts = [self.expressions.of(axis.stride), self.expressions.of(axis.start)]
            parts += [] if axis.size is None else [self.expressions.of(axis.size)]
            if None in parts:
                return None
            axes.append([*parts[:2], *(parts[2:] or [None]), axis.starts_masked, axis.block])
        if (offset := self.expressions.of(found.offset)) is None:
            return None
        size = bit_width(load.result.type) // 8
        return {"base": found.base.index, "offset": offset, "bytes": size, "axes": axes, "padding": False}

    def emit(self, code: Emitter, poly: Poly, load: Operation) -> SSAValue:
        """Compute a polynomial in 32 bits; terms that change in the loop around `load` come last."""
        loop = loop_around(load)
        inside = [
            monomial for monomial in sorted(poly) if loop and not all(self.forms.is_outside(n, loop) for n in monomial)
        ]
        total: SSAValue | None = None
        for monomial in [*(monomial for monomial in sorted(poly) if monomial not in inside), *inside]:
            term = self.term(code, monomial, poly[monomial], load)
            total = term if total is None else code.binary(arith.AddiOp, total, term)
        return code.constant(0, i32) if total is None else total

    def term(self, code: Emitter, monomial: tuple[int, ...], coefficient: int, load: Operation) -> SSAValue:
        factors = [self.atom(code, atom_id, load) for atom_id in monomial]
        if coefficient != 1 or not factors:
            factors.append(code.constant(coefficient, i32))
        value, *more = factors
        for factor in more:
            value = code.binary(arith.MuliOp, value, factor)
        return value

    def atom(self, code: Emitter, atom_id: int, load: Operation) -> SSAValue:
        atom = self.forms.atoms[atom_id]
        if isinstance(atom, Wrapped):
            return self.wrapped(atom_id, atom, load)
        if atom.type == i32:
            return atom
        return code.convert(arith.ExtSIOp if bit_width(atom.type) < 32 else arith.TruncIOp, atom, i32)

    def wrapped(self, atom_id: int, atom: Wrapped, load: Operation) -> SSAValue:
        """A remainder, in front of the loops in which it is invariant."""
        outside: Operation = load
        while (loop := loop_around(outside)) is not None and self.forms.is_outside(atom_id, loop):
            outside = loop
        if (atom_id, outside) not in self.remainders:
            code = Emitter(load.location)
            value = self.emit(code, dict(atom.start), outside)
            if atom.way == "wrapped":
                value = code.binary(arith.RemSIOp, value, self.emit(code, dict(atom.size), outside))
            self.remainders[atom_id, outside] = value
            code.insert_before(outside)
        return self.remainders[atom_id, outside]

    def finish(self) -> None:
        """Update the signature of the kernel, and drop what loops carried for the replaced loads."""
        cut_dead_loop_arguments(self.kernel)
        inputs = tuple(argument.type for argument in self.entry.args)
        self.kernel.properties["function_type"] = function_type(inputs, tuple(function_type_of(self.kernel).outputs))
        if isinstance(attributes := self.kernel.properties.get("arg_attrs"), ArrayAttr):
            more = [DictionaryAttr({})] * (len(inputs) - len(attributes))
            self.kernel.properties["arg_attrs"] = ArrayAttr([*attributes, *more])
