"""The machine: executes one program of the grid at a time, one op at a time, one array per SSA value.

`evaluate` is the whole interface. The pointers of a kernel are real, so its results are in the arrays it was given:

    x, out = np.arange(1024, dtype=np.float32), np.empty(1024, np.float32)
    evaluate(module, "double", [x, out, 1024], grid=(4,))

The values that a function returns are the result:

    evaluate(module, "square", [3.0])    # [array(9., dtype=float32)]

A block is compiled to a list of (op, rule, operands, results) the first time it runs; loops and the other programs of
the grid only walk that list. Programs run in order, x fastest, and see each other's stores.

A tensor descriptor is passed as (array, shape, strides), followed by "nan" if it pads with NaN and "tf32" if it rounds
what is loaded, and provides all parameters that it becomes: the descriptor with its sizes and strides
(`!tt.tensordesc, i32, i32, i64, i64`), or, after `triton-rewrite-tensor-descriptor-to-pointer`, a pointer with sizes,
strides and the two flags before those.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilework.ir import cf, tt, ttg
from tilework.ir.effects import TERMINATORS
from tilework.ir.locations import name_of
from tilework.ir.module_facts import integer, is_reproducible, num_ctas
from tilework.ir.types import (
    PointerType,
    TensorDescType,
    element_type,
    f32,
    i1,
    i32,
    i64,
    is_float,
    is_integer,
    shape_of,
)
from tilework.numerics.rounding import Array, narrow
from tilework.oracles.evaluator.arith_rules import EXACT
from tilework.oracles.evaluator.global_memory import ACCESSES, Memory, RaceMemory
from tilework.oracles.evaluator.gpu_rules import (
    CARRIERS,
    Key,
    Mbarrier,
    Strand,
    end_program,
    guarded,
    has_background_dots,
)
from tilework.oracles.evaluator.shared_memory import Copy, Reader, SharedMemory, uses_scratch, with_scratch
from tilework.oracles.evaluator.values import (
    INT64,
    RULES,
    BlockView,
    Dot,
    EvaluationError,
    Fault,
    Rule,
    Tensormap,
    fault_at,
    fit,
    storage,
)

MAX_STEPS = 5_000_000
FAMILIES = ("access", "amd", "arith", "control", "gpu", "tensor")
for family in FAMILIES:
    import_module(f"tilework.oracles.evaluator.{family}_rules")
LEAVE = (tt.ReturnOp, ttg.WarpYieldOp, ttg.WarpReturnOp)
Program = tuple[int, int, int]
Step = tuple[Operation, Rule, tuple[SSAValue, ...], tuple[SSAValue, ...]]


def evaluate(
    module: ModuleOp | tt.FuncOp,
    name: str | None = None,
    args: Sequence[Any] = (),
    grid: Sequence[int] = (1,),
    *,
    program_ids: Iterable[Sequence[int]] | None = None,
    memory: Sequence[np.ndarray[Any, Any]] = (),
    max_steps: int = MAX_STEPS,
    on_print: Callable[[str], None] | None = None,
    truncate_tf32: bool = False,
    foreign: bool = False,
    barriers: bool = False,
    fences: bool = False,
    races: RaceMemory | None = None,
    watched: Callable[[Operation, Rule], Rule] | None = None,
) -> list[Any]:
    """Run the function `name` of `module` for every program of `grid`; return the values of the last program.

    `args` are arrays for pointers (or addresses, or None), scalars, arrays for tensors, and (array, shape, strides) for
    tensor descriptors, whose shape and stride parameters are then filled in. `program_ids` runs only these programs.
    `memory` lists further arrays that pointers may point into. `max_steps` bounds the ops of one program. `on_print`
    receives each line of `tt.print` instead of standard output. `truncate_tf32` truncates the operands of tf32 dots to
    10 bits, as the hardware does; without it they are exact. `foreign` lets pointers that came from integers access any
    mapped memory of this process. `barriers` and `fences` make a missing one an error, for code that is finished; see
    `oracles/evaluator/shared_memory.py`. `races` is memory that detects races between programs (`RaceMemory`).
    `watched` returns for each op the rule that executes it, given the usual one.
    """
    functions = collect_functions(module)
    function = find_function(functions, name)
    space = races if races is not None else Memory(foreign)
    for position, array in enumerate(memory):
        space.register(f"memory[{position}]", array)
    extent = (*grid, 1, 1)[:3]
    machine = Machine(functions, space, extent, max_steps, on_print or print, truncate_tf32)
    machine.has_background_dots, machine.watched = has_background_dots(module), watched
    if is_reproducible(module):
        machine.rules = RULES | EXACT
    shared, blocks = integer(module.attributes, "ttg.shared"), num_ctas(module)
    returned: list[Any] = []
    with np.errstate(all="ignore"):
        try:
            values = bind(function, args, space)
        except Fault as fault:
            raise fault_at(fault, function, (0, 0, 0)) from None
        for program in programs(extent, program_ids):
            machine.program, machine.steps = program, 0
            if races is not None:
                races.begin(program[0] + extent[0] * (program[1] + extent[1] * program[2]))
            machine.values.clear()
            machine.begin(SharedMemory(shared, blocks, barriers, fences))
            returned = machine.call(function, values)
            try:
                end_program(machine, returned)
            except Fault as fault:
                raise fault_at(fault, function, program) from None
    return returned


def programs(grid: tuple[int, ...], chosen: Iterable[Sequence[int]] | None) -> Iterable[Program]:
    """Return the programs to run, x fastest."""
    if chosen is not None:
        return [(x, y, z) for x, y, z in ((*program, 0, 0)[:3] for program in chosen)]
    return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))


def collect_functions(root: Operation) -> dict[str, tt.FuncOp]:
    """Return the functions of a module by name; a function is replaced by the module around it."""
    if isinstance(root, tt.FuncOp) and root.parent_op() is not None:
        parent = root.parent_op()
        assert parent is not None
        return {symbol(root): root} | collect_functions(parent)
    found = [root] if isinstance(root, tt.FuncOp) else [op for op in root.walk() if isinstance(op, tt.FuncOp)]
    return {symbol(function): function for function in found}


def find_function(functions: dict[str, tt.FuncOp], name: str | None) -> tt.FuncOp:
    """Return the function called `name`; without a name, the first one."""
    if name is None and functions:
        return next(iter(functions.values()))
    if name not in functions:
        known = ", ".join(functions) or "none"
        raise EvaluationError(f"has no function '{name}'; its functions: {known}", "module", "<module>", (0, 0, 0))
    return functions[name]


def symbol(function: tt.FuncOp) -> str:
    return function.properties["sym_name"].data  # pyright: ignore[reportAttributeAccessIssue]


@dataclass(eq=False)
class Machine:
    """The state of the running program, and the walk over its ops."""

    functions: dict[str, tt.FuncOp]
    memory: Memory
    grid: tuple[int, ...]
    max_steps: int = MAX_STEPS
    on_print: Callable[[str], None] = print
    truncate_tf32: bool = False
    program: Program = (0, 0, 0)
    steps: int = 0
    values: dict[SSAValue, Any] = field(default_factory=dict)
    plans: dict[Block, list[Step]] = field(default_factory=dict)
    vectorises: dict[Region, bool] = field(default_factory=dict)
    lanes: tuple[int, ...] = ()  # the shape of the indices that a nest runs at once
    folds: dict[Operation, list[list[Any]]] = field(default_factory=dict)  # operands of the reductions of a nest
    has_background_dots: bool = False
    watched: Callable[[Operation, Rule], Rule] | None = None
    rules: dict[type[Operation], Rule] = field(default_factory=lambda: RULES)

    def __post_init__(self) -> None:
        self.begin(SharedMemory())

    def begin(self, shared: SharedMemory) -> None:
        """Begin a new program, with its shared memory and nothing in flight."""
        self.shared = shared
        self.begin_warps()
        self.mbarriers: dict[Key, Mbarrier] = {}
        self.tensormaps: dict[int, Tensormap] = {}
        self.calls: tuple[Operation, ...] = ()  # that are being executed, outermost first
        self.scratch: dict[tuple[Operation, ...], int] = {}  # by calls and allocation
        self.scratch_memory: list[np.ndarray[Any, Any]] = []
        self.strand: Strand | None = None  # the region that runs concurrently with others

    def begin_warps(self) -> None:
        """Begin new warps, with nothing in flight."""
        self.open_copies: list[Copy] = []  # started, in no group yet
        self.groups: list[list[Copy]] = []
        self.dots: list[tuple[Dot, Reader]] = []
        self.tma_stores: list[Reader] = []

    def call(self, function: tt.FuncOp, args: Sequence[Any]) -> list[Any]:
        """Return the values of `function`. Its SSA values replace those of an outer call while it runs."""
        outer, self.values = self.values, {}
        _, values = self.run_blocks(function.regions[0].blocks[0], args)
        self.values = outer
        return values

    def run_blocks(self, block: Block, args: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """Execute a region from `block` on; return the terminator that leaves it and that op's operands."""
        while True:
            terminator, values = self.run_block(block, args)
            if type(terminator) in LEAVE:
                return terminator, values
            block, args = self.next_block(terminator, values)

    def next_block(self, terminator: Operation, values: Sequence[Any]) -> tuple[Block, list[Any]]:
        """Return the target of a branch and its block arguments."""
        if type(terminator) is cf.BranchOp:
            return terminator.successors[0], list(values)
        if type(terminator) is not cf.ConditionalBranchOp:
            raise fault_at(Fault("cannot end a block of a function"), terminator, self.program)
        _, taken, _ = segments(terminator)
        condition, rest = values[0], values[1:]
        if condition:
            return terminator.successors[0], list(rest[:taken])
        return terminator.successors[1], list(rest[taken:])

    def run_region(self, region: Region, args: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """Execute the only block of `region`; return its terminator and that op's operands."""
        return self.run_block(region.blocks[0], args)

    def run_block(self, block: Block, args: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """Execute one block; return its terminator and that op's operands."""
        values = self.values
        for argument, value in zip(block.args, args, strict=True):
            values[argument] = value
        if (plan := self.plans.get(block)) is None:
            plan = self.plans[block] = self.prepare(block)
        self.steps += len(plan)
        op = plan[-1][0]
        try:
            if self.steps > self.max_steps:
                raise Fault(f"did not end within {self.max_steps} steps: the program may not terminate")
            for op, rule, operands, results in plan[:-1]:
                answer = rule(self, op, *[values[operand] for operand in operands])
                if answer.__class__ is list:
                    values.update(zip(results, answer, strict=True))
                elif results:
                    values[results[0]] = answer
        except Fault as fault:
            raise fault_at(fault, op, self.program) from None
        op, _, operands, _ = plan[-1]
        return op, [values[operand] for operand in operands]

    def prepare(self, block: Block) -> list[Step]:
        """Return the ops of `block` with their rules."""
        plan: list[Step] = []
        for op in block.ops:
            rule = self.rules.get(type(op))
            if rule is None and type(op) not in TERMINATORS:
                raise fault_at(Fault("has no rule in the evaluator"), op, self.program)
            plan.append((op, self.checked(op, rule or unreachable), tuple(op.operands), tuple(op.results)))
        if not plan or type(plan[-1][0]) not in TERMINATORS:
            where = plan[-1][0] if plan else block.parent_op()
            assert where is not None, "a block outside any op cannot run"
            raise fault_at(Fault("ends a block without a terminator"), where, self.program)
        return plan

    def checked(self, op: Operation, rule: Rule) -> Rule:
        """Return `rule` with the checks for asynchronous ops, races and scratch memory."""
        if self.has_background_dots and type(op) not in CARRIERS:
            rule = guarded(rule)
        if isinstance(self.memory, RaceMemory) and type(op) in ACCESSES:
            rule = self.memory.watched(rule)
        rule = with_scratch(rule) if uses_scratch(op) else rule
        return rule if self.watched is None or type(op) in TERMINATORS else self.watched(op, rule)

    def spread(self, pointer: Any) -> np.ndarray[Any, Any]:
        """Return a pointer for each index: in a nest, a uniform pointer is repeated."""
        return np.broadcast_to(pointer, self.lanes) if self.lanes and np.ndim(pointer) == 0 else np.asarray(pointer)

    @staticmethod
    def integer(op: Operation, key: str, default: int = 0) -> int:
        """Return an integer property of `op`; enums and booleans are integers too."""
        attribute = op.properties.get(key)
        return attribute.value.data if isinstance(attribute, IntegerAttr) else default

    @staticmethod
    def integers(op: Operation, key: str) -> tuple[int, ...]:
        """Return an array property of `op` as a tuple; empty if it is absent."""
        match op.properties.get(key):
            case DenseArrayBase() as dense:
                return tuple(int(value) for value in dense.get_values())  # pyright: ignore[reportAttributeAccessIssue]
            case ArrayAttr(data=parts):
                return tuple(part.value.data for part in parts if isinstance(part, IntegerAttr))
            case _:
                return ()


def segments(op: Operation) -> tuple[int, ...]:
    """Return the sizes of the operand groups of `op`."""
    return Machine.integers(op, "operandSegmentSizes")


def unreachable(machine: Machine, op: Operation, *operands: Any) -> None:
    raise AssertionError(f"{op.name} ends its block and is not executed")


Host = tuple[Any, ...]


def bind(function: Operation, args: Sequence[Any], memory: Memory) -> list[Any]:
    """Return one value per parameter of `function`; arrays are registered in `memory`."""
    parameters = list(function.regions[0].blocks[0].args)
    values: list[Any] = []
    for position, arg in enumerate(args):
        if len(values) == len(parameters):
            raise Fault(f"takes {len(parameters)} arguments and was given {len(args)}")
        parameter = parameters[len(values)]
        if isinstance(arg, tuple):
            values += descriptor_values(arg, parameters[len(values) :], memory)
        else:
            values.append(convert(arg, parameter.type, parameter_name(parameter, position), memory))
    if len(values) != len(parameters):
        raise Fault(f"takes {len(parameters)} arguments and was given {len(args)}")
    return values


def parameter_name(parameter: BlockArgument, position: int) -> str:
    """Return the name of a parameter in errors: its name in the source, or its index."""
    return name_of(parameter.location) or parameter.name_hint or str(position)


def convert(arg: Any, type: Attribute, name: str, memory: Memory) -> Any:
    """Return one argument as a value of `type`."""
    shape, element = shape_of(type), element_type(type)
    if isinstance(element, PointerType):
        return pointer(arg, shape, name, memory)
    array = np.asarray(arg)
    if array.shape != shape:
        raise Fault(f"takes {type} as argument '{name}' and was given an array of shape {array.shape}")
    if is_float(element):
        return narrow(array if array.dtype.kind not in "biu" else array.astype(np.float64), storage(element))
    if is_integer(element) or storage(element) == INT64:
        if array.dtype.kind not in "biu":
            raise Fault(f"takes {type} as argument '{name}' and was given {arg!r}")
        return fit(array.astype(np.uint64).view(np.int64) if array.dtype == np.uint64 else array, element)
    raise Fault(f"takes {type} as argument '{name}', which cannot be given from outside")


def pointer(arg: Any, shape: tuple[int, ...], name: str, memory: Memory) -> Array:
    """Return the address of an array, an address as it is, or the null pointer for None."""
    if shape:
        return np.broadcast_to(np.asarray(arg, dtype=np.int64), shape)
    if isinstance(arg, np.ndarray):
        return np.asarray(memory.register(name, arg), dtype=np.int64)
    if arg is None or isinstance(arg, (int, np.integer)):
        return np.asarray(int(arg or 0), dtype=np.int64)
    raise Fault(f"takes a pointer as argument '{name}' and was given {arg!r}: pass a NumPy array")


def descriptor_values(host: Host, parameters: Sequence[BlockArgument], memory: Memory) -> list[Any]:
    """Return the values of all parameters of the host descriptor."""
    base, shape, strides, *flags = host
    pads_nan, rounds, rank = "nan" in flags, "tf32" in flags, len(shape)
    first, name = parameters[0].type, parameter_name(parameters[0], 0)
    address = np.asarray(pointer(base, (), name, memory))
    if isinstance(first, TensorDescType) and isinstance(first.block, TensorType):
        block = first.block
        view = BlockView(int(address), tuple(shape), tuple(strides), block.element_type, shape_of(block), (), pads_nan)
        values: list[Any] = [replace(view, round_to_tf32=rounds and block.element_type == f32)]
    elif isinstance(first, PointerType) and has_types(parameters[1:], (*[i64] * (2 * rank), i1, i1)):
        values = [address, *typed((*shape, *strides, pads_nan, rounds), parameters[1:])]
    else:
        raise Fault(f"takes {first} as argument '{name}' and was given a tensor descriptor")
    rest = parameters[len(values) :]
    if has_types(rest, (*[i32] * rank, *[i64] * rank)):
        values += typed((*shape, *strides), rest)
    return values


def has_types(parameters: Sequence[BlockArgument], types: Sequence[Attribute]) -> bool:
    """Return True if `parameters` begin with `types`."""
    return [parameter.type for parameter in parameters[: len(types)]] == list(types)


def typed(integers: Sequence[int], parameters: Sequence[BlockArgument]) -> list[Array]:
    """Return `integers` in the integer types of the first parameters."""
    return [fit(np.asarray(n, dtype=np.int64), p.type) for n, p in zip(integers, parameters, strict=False)]
