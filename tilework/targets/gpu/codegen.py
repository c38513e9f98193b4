"""TTGIR to LLVM text: one module, with a kernel for each public function.

    ; tilework: {"fp_contract": "explicit", "shared": 16384}
    define KERNEL_CONVENTION void @NAME(ARGUMENTS, ptr addrspace(1) %scratch, ptr addrspace(1) %profile)

Shared memory is one dynamic array, planned by `analysis/allocation.py`; barriers are inserted where
`analysis/membar.py` requires them. Functions that are not inlined take their frames of shared memory and of global
scratch memory as extra arguments, one frame per call.

This file also lowers program ids, grid sizes, calls and barriers.

`sweep` drops instructions without used results before a function is printed. A rule that lowers one register of a tile
does not know that only every eighth pointer will be used, nor that a loop carries the others for nothing. LLVM would
remove them, but its time for such phis and addresses is superlinear: a matmul compiles three times as fast without
them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from tilework.analysis.allocation import global_scratch, module_allocation, public_functions
from tilework.analysis.axis_info import axis_info
from tilework.analysis.membar import barriers, ordered_by_mbarrier
from tilework.errors import PassError
from tilework.ir import tt, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.enums import AddrSpace
from tilework.ir.functions import has_body, is_private, ops_in_order, symbol_of
from tilework.ir.llvm import LLVMFuncOp
from tilework.ir.module_facts import (
    DESCRIBED,
    LONGEST_FIRST,
    MAX_REGISTERS,
    RECTANGLES,
    SANITIZER_FACTS,
    TENSOR_MAP,
    TOTAL_WARPS,
    integer,
    is_reproducible,
    num_ctas,
    num_warps,
)
from tilework.ir.tt.function_ops import dictionaries
from tilework.ir.types import TensorDescType, int_property
from tilework.target import Feature
from tilework.targets.gpu import arithmetic, carried_pointers, global_access, views
from tilework.targets.gpu.device import Gpu, Warps
from tilework.targets.gpu.lowering import SHARED_SPACE, SMEM, Facts, Lowering, Registers, lowers
from tilework.targets.gpu.sink import sink_past_loops
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.control_rules import call, check_parameters, lower_body
from tilework.targets.llvm.debug import LineTable
from tilework.targets.llvm.module import Function, Module, plain_symbol
from tilework.targets.llvm.rules import load_rules
from tilework.targets.llvm.types import Type, array, i8, i32, i64, pointer, ptr, result_of, void
from tilework.targets.llvm.values import Value, constant
from tilework.transforms.ttg.dots_from_memory import with_dots_from_memory

TOGETHER = 8  # programs along y that share a column of the reordered grid; a power of two


@lowers(tt.GetProgramIdOp)
def lower_program_id(low: Lowering, op: Operation) -> Registers:
    """Return the id of a block, or of a cluster: a cluster runs one program, in blocks that are adjacent along x."""
    axis = int_property(op, "axis")
    found = low.gpu.program_id(low.builder, axis, low.facts.num_ctas > 1)
    first = low.facts.longest_first
    if first == 0 and axis < len("xy"):
        return (reordered(low, found, axis),)
    if first == axis and axis > 0:
        b = low.builder
        return (b.sub(b.sub(low.gpu.num_programs(b, axis, clusters=False), 1), found),)
    return (found,)


def reordered(low: Lowering, found: Value, axis: int) -> Value:
    """Run the programs of `TOGETHER` rows column by column, the last column first; a huge grid keeps its order."""
    b, gpu = low.builder, low.gpu
    x, y = (gpu.program_id(b, dim, clusters=False) for dim in range(2))
    columns, rows = (gpu.num_programs(b, dim, clusters=False) for dim in range(2))
    first = b.and_(y, -TOGETHER)
    height = b.intrinsic("umin", i32, b.sub(rows, first), constant(i32, TOGETHER))
    linear = b.add(x, b.mul(columns, b.sub(y, first)))
    column = b.binary("udiv", linear, height)
    made = b.add(first, b.sub(linear, b.mul(column, height))) if axis else b.sub(b.sub(columns, 1), column)
    is_small = b.icmp("ult", columns, (1 << 32) // TOGETHER)
    return gpu.shuffle(b, b.select(is_small, made, found), constant(i32, 0))


@lowers(tt.GetNumProgramsOp)
def lower_num_programs(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.num_programs(low.builder, int_property(op, "axis"), low.facts.num_ctas > 1),)


@lowers(tt.CallOp)
def lower_call(low: Lowering, op: Operation) -> list[Any]:
    """Pass the addresses of the callee's shared-memory and scratch frames after its arguments."""
    if low.warps.first:
        raise low.refuse(op, "a function that is not inlined, called in a partition of warps,")
    frame = low.allocation.scratch.get(op)
    shared = low.builder.gep(low.smem, frame.offset if frame is not None else 0)
    scratch = low.builder.gep(low.scratch, low.scratch_offsets.get(op, 0))
    return call(low, op, [shared, scratch], "convergent")


@lowers(ttg.BarrierOp)
def lower_barrier(low: Lowering, op: ttg.BarrierOp) -> None:
    low.barrier(all_memory=op.makes_visible(AddrSpace.ALL - AddrSpace.LOCAL))


NAME = re.compile(r"%[-\w.$]+")
REMOVABLE = frozenset(
    """add sub mul and or xor shl lshr ashr sdiv udiv srem urem fadd fsub fmul fdiv fneg icmp fcmp select zext sext
    trunc fpext fptrunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr addrspacecast getelementptr
    extractelement insertelement shufflevector extractvalue insertvalue phi freeze""".split()
)


LONG = 256  # lines of a block whose tiles may have many registers
MANY = 32  # live values: the registers of a thread on a multiprocessor full of warps
FEW = 12  # values besides tiles: addresses, counters, sums
IS_CONDITION = re.compile(r" = [if]cmp ").search


def is_removable(text: str) -> bool:
    """Return True if an instruction (the text after ``%x = ``) has no effect but its result."""
    opcode = text[: text.find(" ")]
    if opcode in REMOVABLE:
        return True
    if opcode == "load":
        return not text.startswith(("load volatile", "load atomic"))
    return opcode == "call" and ' asm "' in text


def sweep(function: Function) -> None:
    """Remove instructions on which no side effect depends, including cycles through phis."""
    made: dict[str, str] = {}
    waiting: list[str] = []
    names: list[list[str]] = []  # for each line of a block, the name it defines if it is removable
    for block in function.blocks:
        names.append(own := [])
        for line in block.lines:
            head, equals, text = line.partition(" = ")
            if equals and is_removable(text):
                own.append(name := head.strip())
                made[name] = text
            else:
                own.append("")
                waiting.append(text if equals else line)
    needed: set[str] = {""}
    while waiting:
        for name in NAME.findall(waiting.pop()):
            if name not in needed and (text := made.get(name)) is not None:
                needed.add(name)
                waiting.append(text)
    if len(needed) - 1 == len(made):
        return
    for block, own in zip(function.blocks, names, strict=True):
        block.lines = [line for line, name in zip(block.lines, own, strict=True) if name in needed]


class Line(NamedTuple):
    """A line of a block: the value that it makes, or "", and the values of this block that it uses."""

    text: str
    name: str
    uses: list[str]
    is_pure: bool


def order_by_use(function: Function, exchanges: Sequence[str]) -> None:
    """Move the pure instructions of a block down to their first use, where fewer values are live at once then and tiles
    end in stores or in one reduction.

        %a0 = load, %a1 = load                          %a0 = load, %a1 = load
        %b0 = f(%a0), %b1 = f(%a1)              ==>     %b0 = f(%a0), %c0 = g(%b0)
        %c0 = g(%b0), %c1 = g(%b1)                      %b1 = f(%a1), %c1 = g(%b1)
        %d = %c0 + %c1                                  %d = %c0 + %c1

    Rules write a tile operation by operation. ptxas starts from that order, and may need twice the registers. Values
    that are needed after an exchange between lanes are live anyway; there it does better on its own. `exchanges` are
    parts of the text of exchanges and barriers.
    """
    for block in function.blocks:
        if len(block.lines) >= LONG:
            rest = [line for line in block.lines if " = phi " in line]
            rest += [line for other in function.blocks if other is not block for line in other.lines]
            outside = set(NAME.findall("\n".join(rest)))
            lines = parsed(block.lines, function.effects)
            before = live(lines, outside, exchanges)
            if before.most > MANY:
                ordered = ordered_by_use(lines)
                after = live(ordered, outside, exchanges)
                if after.most < before.most and after.later <= FEW:
                    block.lines = [line.text for line in ordered]


def parsed(lines: Sequence[str], effects: Collection[str]) -> list[Line]:
    """Return the lines of a block; first of the operands are those with the longest computations in this block."""
    depth: dict[str, int] = {}
    found: list[Line] = []
    for text in lines:
        name = text[2 : text.index(" = ")] if text[2] == "%" else ""
        is_pure = bool(name) and name not in effects and " = alloca " not in text
        uses = [used for used in NAME.findall(text, len(name) + 2) if used in depth]
        if is_pure:
            uses.sort(key=depth.__getitem__, reverse=True)
            depth[name] = 1 + depth[uses[0]] if uses else 0
        elif name:
            depth[name] = 0
            if " = phi " in text:
                uses = []
        found.append(Line(text, name, uses, is_pure))
    return found


def ordered_by_use(lines: Sequence[Line]) -> list[Line]:
    left, ordered = {line.name: line for line in lines if line.is_pure}, list[Line]()

    def demand(names: Iterable[str]) -> None:
        """Write the instructions that make values and are not written yet, operands first."""
        stack: list[tuple[Iterator[str], Line | None]] = [(iter(names), None)]
        while stack:
            for name in stack[-1][0]:
                if (line := left.pop(name, None)) is not None:
                    stack.append((iter(line.uses), line))
                    break
            else:
                if (line := stack.pop()[1]) is not None:
                    ordered.append(line)

    for line in lines[:-1]:
        if not line.is_pure:
            demand(line.uses)
            ordered.append(line)
        elif " = extractvalue " in line.text:  # a part of the result of a load: no instruction
            demand([line.name])
    demand(list(left))
    return [*ordered, lines[-1]]


class Live(NamedTuple):
    """Numbers of values, except conditions, that are live at once."""

    most: int
    later: int  # computed values that are live at an exchange between lanes, or after the block


def live(lines: Sequence[Line], outside: Collection[str], exchanges: Sequence[str]) -> Live:
    """Count the live values of a block; `outside` are those that other blocks use."""
    uses = dict.fromkeys(outside, 1)
    for line in lines:
        for name in line.uses:
            uses[name] = uses.get(name, 0) + 1
    held: dict[str, bool] = {}  # live values; True: computed, not loaded
    most, later, computed = 0, sum(line.is_pure and line.name in outside for line in lines), 0
    for line in lines:
        for name in line.uses:
            uses[name] -= 1
            if not uses[name]:
                computed -= held.pop(name, False)
        if line.name and uses.get(line.name) and not IS_CONDITION(line.text):
            held[line.name] = line.is_pure and " = extractvalue " not in line.text
            computed += held[line.name]
            most = max(most, len(held))
        if not line.is_pure and any(part in line.text for part in exchanges):
            later = max(later, computed)
    return Live(most, later)


RULES = (arithmetic, carried_pointers, global_access, views)  # importing these fills the table of rules
MORE_RULES = {  # modules, and the prefixes of the op names that they lower
    "tilework.targets.gpu.atomic_rules": "tt.atomic_ tt.ordered_begin tt.ordered_end",
    "tilework.targets.gpu.convert": "ttg.convert_layout",
    "tilework.targets.gpu.debug": "tt.print tt.assert",
    "tilework.targets.gpu.dot_rules": "tt.dot ttg.local_dot",
    "tilework.targets.gpu.foreign": "tt.elementwise_inline_asm tt.extern_elementwise tt.map_elementwise",
    "tilework.targets.gpu.gather": "tt.gather tt.histogram ttg.local_gather ttg.local_scatter",
    "tilework.targets.gpu.reduce_rules": "tt.reduce",
    "tilework.targets.gpu.scan": "tt.scan",
    "tilework.targets.gpu.shared_access": "ttg.async_ ttg.local_ ttg.memdesc_ ttg.global_scratch_alloc",
    "tilework.targets.gpu.sort_runs": "tt.sort_runs",
    "tilework.targets.gpu.warp_specialize_rules": "ttg.warp_specialize",
}


def emit_module(module: ModuleOp, gpu: Gpu, *, fuses: bool = True, lines: bool = True, by_use: bool = True) -> str:
    """Return the LLVM text of all functions of a TTGIR module, with instructions ordered by use where that seems better
    (`order_by_use`), or in the order of the rules.
    """
    longest_first = integer(module.attributes, LONGEST_FIRST)
    for op in module.ops:
        if type(op) is LLVMFuncOp:
            raise PassError(f"llvm.func cannot be compiled for {gpu.name}: only functions of tiles are", op.location)
    module = with_dots_from_memory(module, gpu.target)
    by_groups = "ttng.warp_group_dot" in load_rules(MORE_RULES, module)
    facts = Facts(num_warps(module), num_ctas(module), fuses, longest_first, by_groups)
    return Emitter(module, gpu, facts, lines, by_use).text()


class Emitter:
    """Writes one LLVM module."""

    def __init__(self, source: ModuleOp, gpu: Gpu, facts: Facts, lines: bool, by_use: bool) -> None:
        self.source, self.gpu, self.facts, self.by_use = source, gpu, facts, by_use
        self.module = Module("tilework")
        self.module.exact = is_reproducible(source)
        if not self.module.exact:
            self.module.approximations = gpu.approximations
        self.lines = LineTable(self.module, gpu.line_tables) if lines else None
        self.allocation = module_allocation(source, gpu.target)
        self.barriers = barriers(source, gpu.target, ordered_by_mbarrier, self.allocation)
        self.alone = self.barriers.alone
        self.around = gpu.around(source, self.allocation)
        if self.around is not None:
            self.alone.drop_runs(self.around.concerns)
        self.axis = axis_info(source)
        self.scratch = global_scratch(source)
        self.orders_programs = False  # the launcher must pass a ticket counter
        self.shows_locations = False  # in messages that the code prints
        self.program = self.scratch.whole(public_functions(source))  # the scratch memory of a program
        self.total_warps = integer(source.attributes, TOTAL_WARPS) or facts.num_warps
        self.registers = integer(source.attributes, MAX_REGISTERS)
        # For each descriptor argument, its metadata for the launcher; None where the launcher passes base, shape and
        # strides instead.
        self.descriptors: list[dict[str, Any] | None] = []
        self.smem: Value = constant(pointer(SHARED_SPACE), 0)
        if self.shared_bytes():  # a declaration takes as much shared memory as its alignment
            self.smem = self.module.global_variable(
                SMEM, array(i8, 0), None, space=SHARED_SPACE, align=gpu.shared_alignment
            )

    def text(self) -> str:
        for op in self.source.body.block.ops:
            if isinstance(op, tt.FuncOp) and has_body(op):
                self.function(op)
        metadata: dict[str, Any] = {
            "fp_contract": "explicit",
            "shared": max(self.shared_bytes(), self.gpu.least_shared),
        }
        if self.program.size:
            metadata |= {"global_scratch_size": self.program.size, "global_scratch_align": self.program.alignment}
        if self.total_warps != self.facts.num_warps:  # partitions run on further warps
            metadata["num_warps"] = self.total_warps
        if self.orders_programs:
            metadata["orders_programs"] = True
        if self.shows_locations:
            metadata["shows_locations"] = True
        if any(self.descriptors):
            metadata["tensordesc_meta"] = self.descriptors
        for name, attribute in (("sanitizer", SANITIZER_FACTS), ("rectangles", RECTANGLES)):
            if isinstance(facts := self.source.attributes.get(attribute), StringAttr):
                metadata[name] = json.loads(facts.data)
        return f"; tilework: {json.dumps(metadata)}\n{self.module.text()}"

    def shared_bytes(self) -> int:
        """Return the bytes of shared memory of the kernel and the functions it calls."""
        return max((allocation.size for allocation in self.allocation.values()), default=0)

    def function(self, op: tt.FuncOp) -> None:
        name, type = symbol_of(op), op.properties["function_type"]
        assert isinstance(type, FunctionType)
        low = self.internal(name, op, type) if is_private(op) else self.kernel(name, op)
        low.allocation, low.barriers, low.axis = self.allocation[name], self.barriers, self.axis
        low.around, low.scratch_offsets, low.alone = self.around, self.scratch.offsets, self.alone
        if self.lines is not None:
            low.describe(self.lines, op)
        if not low.warps.are_all and not is_private(op):
            from tilework.targets.gpu.warp_specialize_rules import Specialised  # lazily: few kernels have partitions

            low.specialised = Specialised(low, op, self.total_warps, self.registers)
            low.specialised.workers()
        lower_body(low, op.regions[0])
        self.orders_programs |= low.orders_programs
        self.shows_locations |= low.shows_locations
        sweep(low.builder.function)
        if self.gpu.exchange_texts and not has_op(op, self.gpu.pipelined_ops):
            sink_past_loops(low.builder.function)
            if self.by_use:
                order_by_use(low.builder.function, self.gpu.exchange_texts)

    def kernel(self, name: str, op: tt.FuncOp) -> Lowering:
        check_parameters(op, self.gpu.name)
        if self.facts.num_ctas > 1 and not self.gpu.has(Feature.CLUSTERS):
            raise PassError(
                f"a cluster of {self.facts.num_ctas} blocks cannot be compiled for {self.gpu.name}", op.location
            )
        args = op.regions[0].blocks[0].args
        given = dictionaries(op.properties.get("arg_attrs"), len(args))
        params: list[tuple[Type, str]] = []
        by_value: dict[int, str] = {}
        for position, arg in enumerate(args):
            if isinstance(arg.type, TensorDescType):
                if (found := self.gpu.descriptor_parameter(arg.type, self.barriers.stores.rows.get(arg))) is None:
                    raise PassError(
                        f"a tensor descriptor as argument cannot be compiled for {self.gpu.name}", op.location
                    )
                by_value[position], metadata = found
                self.descriptors.append(metadata)
                params.append((ptr, f"a{position}"))
            elif is_true(given[position].get(TENSOR_MAP)):
                if self.gpu.map_parameter is None:
                    raise PassError(f"a tensor map as argument cannot be compiled for {self.gpu.name}", op.location)
                by_value[position] = self.gpu.map_parameter
                params.append((ptr, f"a{position}"))
            else:
                if DESCRIBED in given[position]:
                    self.descriptors.append(None)
                params.append((parameter_type(arg.type, self.gpu), f"a{position}"))
        params += [(pointer(1), "scratch"), (pointer(1), "profile")]
        warps = self.warps_of(op)
        count = warps.count if warps.are_all else self.total_warps
        words = dict.fromkeys(range(len(params)), self.gpu.parameter_word) if self.gpu.parameter_word else {}
        attributes = self.gpu.kernel_attributes(self.gpu.warp_size * count, self.facts.num_ctas, self.registers)
        function = self.module.function(
            name, void, params, convention=self.gpu.kernel_convention, attributes=["nounwind", *attributes],
            param_attributes=words | by_value,
        )  # fmt: skip
        low = Lowering(self.module, Builder(function), self.facts, self.gpu, warps)
        flat = [from_parameter(low, arg.type, value) for arg, value in zip(args, function.args, strict=False)]
        low.values.update(zip(args, low.held([arg.type for arg in args], flat), strict=True))
        low.smem = self.smem
        low.scratch = self.program_scratch(low, function.args[len(args)])
        low.ticket_counter = function.args[len(args) + 1]
        return low

    def warps_of(self, root: Operation) -> Warps:
        """Return the warps that run a function: not all of the block if an op under `root` has partitions."""
        are_all = not any(isinstance(op, ttg.WarpSpecializeOp) for op in root.walk())
        return Warps(self.facts.num_warps, are_all=are_all)

    def program_scratch(self, low: Lowering, whole: Value) -> Value:
        """Return the address of this block's part of the scratch memory."""
        if not self.program.size:
            return whole
        b = low.builder
        x, y, z = (self.gpu.program_id(b, axis, clusters=False) for axis in range(3))
        width, height = (self.gpu.num_programs(b, axis, clusters=False) for axis in range(2))
        linear = b.add(b.mul(b.add(b.mul(z, height), y), width), x)
        return b.gep(whole, b.mul(b.zext(linear, i64), self.program.size))

    def internal(self, name: str, op: tt.FuncOp, type: FunctionType) -> Lowering:
        inputs, outputs = (
            [made for type in types for made in Lowering.types_of(type)] for types in (type.inputs, type.outputs)
        )
        params = [*((param, f"a{position}") for position, param in enumerate(inputs)), *FRAME]
        function = self.module.function(
            plain_symbol(name), result_of(outputs), params, linkage="internal",
            attributes=("nounwind", "noinline", "convergent"),
        )  # fmt: skip
        low = Lowering(self.module, Builder(function), self.facts, self.gpu, self.warps_of(self.source))
        *flat, low.smem, low.scratch = function.args
        args = op.regions[0].blocks[0].args
        low.values.update(zip(args, low.held([arg.type for arg in args], flat), strict=True))
        return low


FRAME: Sequence[tuple[Type, str]] = ((pointer(SHARED_SPACE), "smem"), (pointer(1), "scratch"))


def has_op(function: tt.FuncOp, prefixes: tuple[str, ...]) -> bool:
    return any(op.name.startswith(prefixes) for op in ops_in_order(*function.regions))


def parameter_type(type: Attribute, gpu: Gpu) -> Type:
    """Return the type in which a scalar is passed: i8 for an i1, and for a pointer one in the GPU's argument space."""
    (made,) = Lowering.types_of(type)
    return i8 if made.bits == 1 else pointer(gpu.argument_space) if made is ptr else made


def from_parameter(low: Lowering, type: Attribute, value: Value) -> Value:
    """Convert a parameter to the register type that the rules expect."""
    if isinstance(type, TensorDescType):
        return value
    (wanted,) = Lowering.types_of(type)
    if value.type is wanted:
        return value
    return low.builder.addrspacecast(value, wanted) if wanted is ptr else low.builder.icmp("ne", value, 0)
