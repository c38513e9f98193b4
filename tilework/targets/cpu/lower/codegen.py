"""Tile loops to LLVM text: one module, three exported functions per kernel.

    void @NAME(ptr %args, i32 %pid0, i32 %pid1, i32 %pid2, i32 %np0, i32 %np1, i32 %np2, ptr %arena)
    i32  @NAME_range(ptr %args, i64 %first, i64 %last, i32 %np0, i32 %np1, i32 %np2, ptr %arena)
    i32  @NAME_work(ptr %args, ptr %next, i64 %total, i64 %chunk, i32 %np0, i32 %np1, i32 %np2, ptr %arena)

`%args` holds one 8-byte slot per parameter of the kernel, in order; a value sits in the low bytes of its slot. The
second function runs the programs `first` to `last - 1`, counted with axis 0 fastest, and returns 0 or the fault code
that a program has stored at the start of the arena; then the linear id of that program is there too (interface.py).
Functions that are not inlined become internal ones, which take their own arguments, then the program ids, the grid and
the arena; each has a part of the arena for itself.

`emit_module` leaves the size of the arena on the module, as the attribute ``ttc.arena_bytes``; `arena_size` reads it.
"""

from collections.abc import Callable

from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.functions import is_private, symbol_of
from tilework.ir.module_facts import is_reproducible
from tilework.ir.ttc import SANITIZED
from tilework.ir.types import i64 as i64_type
from tilework.ir.types import int_attr
from tilework.targets.cpu.lower import checks, control_rules, fork
from tilework.targets.cpu.lower.control_rules import (
    COSTLY,
    LEAST,
    PROGRAMS,
    RARE,
    call_poll,
    cost_of,
    fuel_of,
    is_empty,
)
from tilework.targets.cpu.lower.lowering import Lowering, aligned, lowers, plan
from tilework.targets.cpu.lower.nest_access import streamed_stores
from tilework.targets.cpu.run.interface import CONTROL, COUNT, LAUNCH_OFFSETS, PROGRAM
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import data_layout, host_target_machine
from tilework.targets.llvm.control_rules import call, check_parameters, lower_body
from tilework.targets.llvm.module import Module, plain_symbol
from tilework.targets.llvm.rules import load_rules
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import narrow_bfloat, narrow_half, widen_half
from tilework.targets.llvm.split_functions import split_long_functions
from tilework.targets.llvm.types import Type, bf16, f16, f32, i1, i32, i64, ptr, result_of, void
from tilework.targets.llvm.values import Value, constant

RULES = (checks, control_rules, fork)  # importing these fills the table of rules
MORE_RULES = {  # files, and how the names of the ops begin that they have rules of
    "tilework.targets.cpu.lower.atomic_rules": "tt.atomic_ tt.ordered_",
    "tilework.targets.cpu.lower.dot_rules": "ttc.dot",
    "tilework.targets.cpu.lower.gather": "ttc.gather ttc.histogram",
    "tilework.targets.cpu.lower.scan": "ttc.scan",
    "tilework.targets.cpu.lower.sort_runs": "ttc.sort_runs",
}

CONTEXT = [(i32, "pid0"), (i32, "pid1"), (i32, "pid2"), (i32, "np0"), (i32, "np1"), (i32, "np2"), (ptr, "arena")]
ARENA_BYTES = "ttc.arena_bytes"
# conversions that LLVM calls by the names of the compiler's run-time library, which need not be in the process: they
# come with the text
ROUND_TO_BFLOAT, ROUND_TO_HALF, WIDEN_HALF = "__truncsfbf2", "__truncsfhf2", "__extendhfsf2"


def emit_module(
    module: ModuleOp,
    target: HostTarget,
    *,
    fuses: bool = True,
    lines: bool = False,
    layout: str = "",
    ticket: int = LAUNCH_OFFSETS["ticket"],
) -> str:
    """LLVM text of every function of a module in the stage `ttcir`.

    `fuses` allows fused multiply-adds (the option enable_fp_fusion), `lines` adds a line table. `layout` is that of
    data on another machine than this one. `ticket` is the offset of the next program at ordered atomics in the record
    of a launch.
    """
    load_rules(MORE_RULES, module)
    emitter = Emitter(target, fuses, lines, layout)
    emitter.ticket = ticket
    emitter.sanitizes = SANITIZED in module.attributes
    emitter.module.exact = is_reproducible(module)
    functions = [op for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
    for name, slots, cost in [kernel for op in functions for kernel in emitter.function(op)]:
        emitter.range(name, slots, cost)
        emitter.work(name)
    split_long_functions(emitter.module)
    module.attributes[ARENA_BYTES] = int_attr(emitter.arena_bytes, i64_type)
    return with_conversions(emitter.module.text(), target)


def with_conversions(text: str, target: HostTarget) -> str:
    """`text` with the functions that LLVM calls on x86 to convert floats.

    Where paths join, a bfloat is carried as a float and rounded back. Without F16C, all conversions of halves are
    calls.
    """
    if target.arch != "x86_64":
        return text
    if " bfloat" in text:
        text += conversion(ROUND_TO_BFLOAT, f32, bf16, narrow_bfloat)
    if " half" in text and "f16c" not in target.features:
        text += conversion(WIDEN_HALF, f16, f32, widen_half) + conversion(ROUND_TO_HALF, f32, f16, narrow_half)
    return text


def conversion(name: str, source: Type, result: Type, convert: Callable[[Builder, Value], Value]) -> str:
    """The text of a function that converts one scalar."""
    function = Module().function(name, result, [(source, "x")], linkage="hidden", attributes=())
    b = Builder(function)
    b.ret(convert(b, function.args[0]))
    return f"{function.text()}\n"


def arena_size(module: ModuleOp) -> int:
    """Bytes of scratch memory that one program needs; known once the module has been emitted."""
    size = module.attributes.get(ARENA_BYTES)
    assert isinstance(size, IntegerAttr), "emit_module comes before arena_size"
    return size.value.data


class Emitter:
    """The module being written."""

    def __init__(self, target: HostTarget, fuses: bool, lines: bool, layout: str) -> None:
        self.target, self.fuses = target, fuses
        self.module = Module("tilework", data_layout=layout or data_layout(host_target_machine()))
        self.module.scales = "avx512f" in target.features
        self.lines = None
        if lines:
            from tilework.targets.llvm.debug import LineTable  # lazily: few compilations want lines

            self.lines = LineTable(self.module)
        self.arena_bytes = CONTROL
        self.uses_faults = False
        self.sanitizes = self.uses_checks = False
        self.ticket = 0

    def function(self, op: tt.FuncOp) -> list[tuple[str, int, float]]:
        """Emit one function; return its name, parameter count and signature, if it is a kernel."""
        name, type_, is_kernel = symbol_of(op), op.properties["function_type"], not is_private(op)
        assert isinstance(type_, FunctionType)
        low = self.kernel(name, op) if is_kernel else self.internal(name, op, type_)
        if is_kernel and self.target.streams_from:
            low.streamed = streamed_stores(op)
        low.fuses, low.sanitizes, low.ticket = self.fuses, self.sanitizes, self.ticket
        if self.lines is not None:
            low.describe(self.lines, op)
        placed = plan(op, self.arena_bytes)
        low.offsets, low.scratch_offset = placed.offsets, placed.end
        lower_body(low, op.regions[0])
        self.arena_bytes = placed.end + aligned(low.scratch_bytes)
        self.uses_faults |= low.uses_faults
        self.uses_checks |= low.uses_checks
        cost = sum(cost_of(block.ops) for block in op.regions[0].blocks)
        return [(name, len(type_.inputs), cost)] if is_kernel else []

    def kernel(self, name: str, op: tt.FuncOp) -> Lowering:
        """The head of a kernel: parameters are read from their slots."""
        check_parameters(op, "the CPU")
        quiet = {0: "noalias readonly", len(CONTEXT): "noalias"}
        function = self.module.function(
            name, void, [(ptr, "args"), *CONTEXT], attributes=("nounwind",), param_attributes=quiet
        )
        low = Lowering(self.module, Builder(function), self.target)
        args, *context = function.args
        self.bind(low, context)
        for slot, parameter in enumerate(op.regions[0].blocks[0].args):
            low[parameter] = low.read(parameter.type, low.builder.gep(args, 8 * slot))
        return low

    def internal(self, name: str, op: tt.FuncOp, type: FunctionType) -> Lowering:
        """The head of a function that kernels call."""
        params = [(register_type(param), f"a{position}") for position, param in enumerate(type.inputs)]
        function = self.module.function(
            plain_symbol(name),
            result_of([register_type(result) for result in type.outputs]),
            [*params, *CONTEXT],
            linkage="internal",
            attributes=("nounwind",),
        )
        low = Lowering(self.module, Builder(function), self.target)
        self.bind(low, function.args[len(params) :])
        blocks = op.regions[0].blocks
        low.values.update(zip(blocks[0].args, function.args))
        return low

    def bind(self, low: Lowering, context: "list[Value] | tuple[Value, ...]") -> None:
        x, y, z, width, height, depth, low.arena = context
        low.program, low.grid = (x, y, z), (width, height, depth)

    def range(self, name: str, slots: int, cost: float) -> None:
        """Programs one after the other; each may be the last."""
        params = [(ptr, "args"), (i64, "first"), (i64, "last"), *CONTEXT[3:]]
        function = self.module.function(f"{name}_range", i32, params, attributes=("nounwind",))
        b = Builder(function)
        args, first, last, width, height, depth, arena = function.args
        b.store(constant(i32, 0), arena, align=4)
        table = checks.begin_range(b, args, slots, arena) if self.uses_checks else None

        def leave_if_over(program: Value) -> None:
            code = b.load(i32, arena, align=4)
            with b.if_(b.icmp("ne", code, 0), weights=RARE):
                b.store(program, b.gep(arena, PROGRAM), align=8)
                b.ret(code)

        at_once = 1 if cost >= COSTLY else PROGRAMS
        with b.loop(first, last, at_once) as portion:
            with b.if_(is_empty(b, arena, fuel_of(max(LEAST, cost) * at_once)), weights=RARE):
                call_poll(b, self.module, arena)
                leave_if_over(portion)
            behind = b.smin(b.add(portion, at_once), last)
            with b.loop_carrying(portion, behind, 1, [], runs=True) as loop:
                if table is not None:
                    checks.leave_if_stopped(b, table)
                row, x = split(b, loop.index, width)
                z, y = split(b, row, height)
                ids = [b.trunc(value, i32) for value in (x, y, z)]
                b.call(name, void, [args, *ids, width, height, depth, arena])
                if self.uses_faults:
                    leave_if_over(loop.index)
        b.ret(constant(i32, 0))

    def work(self, name: str) -> None:
        """``NAME_work``: chunks of programs, from a counter that threads share, until none are left; a fault ends the
        work of all.
        """
        params = [(ptr, "args"), (ptr, "next"), (i64, "total"), (i64, "chunk"), *CONTEXT[3:]]
        b = Builder(self.module.function(f"{name}_work", i32, params))
        args, following, total, chunk, *context = b.function.args
        count = b.gep(context[-1], COUNT)

        def take(ran: Value) -> tuple[Value, Value]:
            first = b.atomic_rmw("add", following, chunk, align=8)
            with b.if_(b.icmp("sge", first, total)):
                b.store(ran, count, align=8)
                b.ret(constant(i32, 0))
            last = b.smin(b.add(first, chunk), total)
            code = b.call(f"{name}_range", i32, [args, first, last, *context])
            programs = b.add(ran, b.sub(last, first))
            with b.if_(b.icmp("ne", code, 0)):
                b.store(total, following, ordering="monotonic", align=8)
                b.store(programs, count, align=8)
                b.ret(code)
            return programs, constant(i1, 0)

        b.until(constant(i64, 0), take)
        b.ret(constant(i32, 0))  # unreachable


def split(b: Builder, linear: Value, size: Value) -> tuple[Value, Value]:
    """(linear // size, linear % size); a grid in which a program runs has no size of 0."""
    wide = b.zext(size, i64)
    quotient = b.udiv(linear, wide)
    return quotient, b.sub(linear, b.mul(quotient, wide))


@lowers(tt.CallOp)
def lower_call(low: Lowering, op: Operation) -> list[Value]:
    made = call(low, op, [*low.program, *low.grid, low.arena])
    checks.stop_with_callee(low)
    return made
