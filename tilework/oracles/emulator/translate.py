"""The translation of one function for one block size into closures over NumPy arrays; rules for instructions are
written against it.

A register is an array with one element per thread of the block, padded to whole warps. It holds raw bits (bool for
predicates) and keeps its memory as long as the translation lives, so a rule takes typed views of its operands once:

    @rule("add")
    def add(ins: Instruction, t: Translator) -> Op:
        dtype = t.type_of(ins.modifiers[-1])                       # "s32" is np.int32
        out, (a, b) = t.write(ins.operands[0], dtype), (t.read(x, dtype) for x in ins.operands[1:])
        return lambda mask: np.add(a, b, out=out, where=mask)

`mask` is True if every thread is active, else an array of bools, as for NumPy's `where=`. An operation that cannot be
written with `where=` computes all threads and ends in `np.copyto(out, values, where=mask)`, or works on
`t.active(mask)`, the indices of the active threads. A rule that does not implement a form of its instruction raises
`Unsupported`.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import Any

import numpy as np

from tilework.oracles.emulator.memory import (
    BLOCK_BITS,
    ArenaPort,
    Array,
    Bytes,
    ClusterPort,
    GenericPort,
    LocalPort,
    Port,
    inside,
)
from tilework.oracles.emulator.syntax import (
    Address,
    EmulatorError,
    Function,
    Imm,
    Instruction,
    Not,
    Operand,
    Reg,
    Sink,
    Special,
    Symbol,
    Unsupported,
    items,
)

WARP = 32
Mask = Any  # True, or one bool per thread
Op = Callable[[Mask], Any]
Rule = Callable[[Instruction, "Translator"], Op]

# raised by NumPy and Python for operands of invalid PTX
MISTAKES = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError)

RULES: dict[str, Rule] = {}
COLLECTIVE: set[str] = set()
FAMILIES = ("integer", "floating", "moves", "load_store", "warp", "matrix", "mbarrier", "async_copy")

TYPES: dict[str, Any] = {
    **{f"b{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "pred": np.dtype(bool)},
    **dict.fromkeys(("f16x2", "bf16x2", "tf32"), np.dtype(np.uint32)),
    "bf16": np.dtype(np.uint16),
}


def rule(*opcodes: str, collective: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule. The lanes of a warp that execute a `collective` instruction wait for one another first."""

    def register(function: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = function
            if collective:
                COLLECTIVE.add(opcode)
        return function

    return register


def elementwise(
    *opcodes: str, result: Any = None, types: tuple[Any, ...] = ()
) -> Callable[[Callable[..., Array]], Rule]:
    """Register a rule that writes the value of a function of an instruction and its operands, truncated to the width of
    the result. `result` and `types` are the types of the result and of the operands; the default is the instruction's
    own type."""

    def register(function: Callable[..., Array]) -> Rule:
        def made(ins: Instruction, t: "Translator") -> Op:
            assert len(ins.operands) == function.__code__.co_argcount
            is_typed = result is None or len(types) < len(ins.operands) - 1
            own = t.type_of(ins.modifiers[-1], ins) if is_typed else None
            out = t.write(ins.operands[0], result or own)
            sources = [t.read(x, type or own) for x, type in zip_longest(ins.operands[1:], types)]
            return lambda mask: np.copyto(out, function(ins, *sources), casting="unsafe", where=mask)

        return rule(*opcodes)(made)

    return register


def named(ins: Instruction) -> tuple[str, ...]:
    """Return the names under which an instruction's rule may be registered: a variant may have its own, ``st.async``,
    ``cp.tensor``."""
    return (*(f"{ins.opcode}.{modifier}" for modifier in ins.modifiers), ins.opcode)


@cache
def load_rules() -> None:
    for family in FAMILIES:
        import_module(f"tilework.oracles.emulator.rules.{family}")


class Block:
    """The state that the instructions of one block share: its shape, memory, and special registers. It is reused for
    every block of a launch.

    The blocks of a cluster are one `Block` with the threads of all of them (`memory.ClusterPort`).
    """

    def __init__(
        self, shape: tuple[int, int, int], shared_size: int, local_size: int, arena: ArenaPort, watcher: Any = None,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:  # fmt: skip
        self.shape, self.cluster = shape, cluster
        self.count = shape[0] * shape[1] * shape[2]
        self.blocks = cluster[0] * cluster[1] * cluster[2]
        self.width = (self.count + WARP - 1) // WARP * WARP  # threads of one block
        self.threads = self.blocks * self.width
        self.everyone = np.arange(self.threads)
        self.ranks = self.everyone // self.width
        self.windows = self.ranks.astype(np.uint64) << np.uint64(BLOCK_BITS)
        self.exists = self.everyone % self.width < self.count
        self.watcher = watcher
        self.arena = arena
        self.shared = (
            Port("shared", Bytes.zeros(shared_size), shared_size, watcher)
            if self.blocks == 1
            else ClusterPort(self.blocks, shared_size, watcher)
        )
        self.shared_names: set[str] = set()  # variables of each block
        self.local = LocalPort("local", Bytes.zeros(local_size * self.threads), local_size, watcher)
        self.ports: dict[str, Any] = {"shared": self.shared, "local": self.local}
        self.ports |= dict.fromkeys(("global", "const", "param"), arena)
        self.ports["generic"] = GenericPort(arena, self.shared, self.local)
        self.specials = special_registers(shape, self.width)
        if self.blocks > 1:
            for name, values in self.specials.items():
                if values.ndim:
                    self.specials[name] = np.tile(values, self.blocks)
                elif name.startswith(("%ctaid", "%cluster_cta")):
                    self.specials[name] = np.zeros(self.threads, values.dtype)
        # state of rule families, such as barriers and copy groups; cleared for each block
        self.state: dict[str, Any] = {}

    def start(self, ctaid: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        """Make this the block at `ctaid`, or the cluster that begins there."""
        rank = self.ranks if self.blocks > 1 else 0
        self.specials["%cluster_ctarank"][...] = rank
        for axis, name in enumerate("xyz"):
            size = self.cluster[axis]
            self.specials[f"%ctaid.{name}"][...] = ctaid[axis] + rank % size
            self.specials[f"%nctaid.{name}"][...] = grid[axis]
            self.specials[f"%clusterid.{name}"][...] = ctaid[axis] // size
            self.specials[f"%nclusterid.{name}"][...] = grid[axis] // size
            self.specials[f"%cluster_ctaid.{name}"][...] = rank % size
            self.specials[f"%cluster_nctaid.{name}"][...] = size
            rank = rank // size
        self.specials["%cluster_nctarank"][...] = self.blocks
        self.specials["%is_explicit_cluster"][...] = self.blocks > 1
        self.shared.data.data[:] = 0
        self.local.data.data[:] = 0
        self.state.clear()


def special_registers(shape: tuple[int, int, int], threads: int) -> dict[str, Array]:
    """Return the arrays of the special registers; those that depend on the block have no dimension and are filled in
    place."""
    indices = np.arange(threads, dtype=np.uint32)
    lanes = indices % np.uint32(WARP)
    one = np.uint32(1)
    below = (one << lanes) - one
    tid = (indices % shape[0], indices // shape[0] % shape[1], indices // (shape[0] * shape[1]))
    found: dict[str, Array] = {"%laneid": lanes, "%warpid": indices // WARP}
    found["%nwarpid"] = np.array(threads // WARP, np.uint32)
    found |= {"%lanemask_eq": one << lanes, "%lanemask_lt": below, "%lanemask_le": below | one << lanes}
    found |= {"%lanemask_gt": ~(below | one << lanes), "%lanemask_ge": ~below}
    for axis, name in enumerate("xyz"):
        found[f"%tid.{name}"] = tid[axis].astype(np.uint32)
        found[f"%ntid.{name}"] = np.array(shape[axis], np.uint32)
        for zero in ("%ctaid", "%clusterid", "%cluster_ctaid"):
            found[f"{zero}.{name}"] = np.array(0, np.uint32)
        for unit in ("%nctaid", "%nclusterid", "%cluster_nctaid"):
            found[f"{unit}.{name}"] = np.array(1, np.uint32)
    for zero in ("%cluster_ctarank", "%smid", "%gridid", "%is_explicit_cluster", "%reserved_smem_offset_begin"):
        found[zero] = np.array(0, np.uint64 if zero == "%gridid" else np.uint32)
    for unit in ("%cluster_nctarank", "%nsmid"):
        found[unit] = np.array(1, np.uint32)
    for size in ("%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size"):
        found[size] = np.array(0, np.uint32)
    return found


class Translator:
    """The registers and names of one function in one block. `symbols` are the addresses of module and shared variables;
    `params` the memory of parameter variables, an array (threads, bytes) for each."""

    def __init__(
        self, function: Function, block: Block, symbols: dict[str, int], params: dict[str, Array], machine: Any = None
    ) -> None:
        self.function, self.block, self.symbols, self.params, self.machine = function, block, symbols, params, machine
        self.threads = block.threads
        self.registers: dict[str, Array] = {}
        self.pools = list(params.values())  # cleared when a block starts
        for type, names in registers_by_type(function).items():
            pool = np.zeros((len(names), self.threads), unsigned(TYPES[type]) if type != "b128" else np.dtype("V16"))
            self.registers |= dict(zip(names, pool, strict=True))
            self.pools.append(pool.view(np.uint8))

    # operands

    def type_of(self, modifier: str, ins: Instruction | None = None) -> Any:
        """Return the NumPy type of a PTX type: ``s32``, ``f16``; bf16 and packed types are raw bits."""
        if modifier not in TYPES:
            what = f"the type .{modifier}"
            raise Unsupported(ins, what) if ins else EmulatorError(f"{what} is not known")
        return TYPES[modifier]

    def read(self, operand: Operand, dtype: Any) -> Array:
        """Return the operand as `dtype`: a view of a register (its low bits if it is wider), or an array without
        dimensions."""
        dtype = np.dtype(dtype)
        match operand:
            case Reg(name):
                return low_bits(self.registers[name], dtype)
            case Imm():
                return immediate(operand, dtype)
            case Special(name):
                if name not in self.block.specials:
                    raise EmulatorError(f"the special register {name} is not supported")
                return low_bits(self.block.specials[name], dtype)
            case Symbol(name, offset):
                address = np.array(self.symbol(name) + offset, np.uint64)
                if self.block.blocks > 1 and not self.block.shared_names.isdisjoint(
                    (name, inside(self.function, name))
                ):
                    address = address + self.block.windows
                return address.astype(f"u{dtype.itemsize}").view(dtype)
            case Sink():
                return np.zeros((), dtype)
            case _:
                raise EmulatorError(f"{operand} is not a value")

    def predicate(self, operand: Operand) -> Callable[[], Any]:
        """Return a function that reads a predicate operand, which may be negated."""
        if isinstance(operand, Not):
            register = self.registers[operand.operand.name]
            return lambda: ~register
        if isinstance(operand, Reg):
            register = self.registers[operand.name]
            return lambda: register
        if isinstance(operand, Imm):
            value = np.array(operand.value != 0)
            return lambda: value
        raise EmulatorError(f"{operand} is not a predicate")

    def write(self, operand: Operand, dtype: Any) -> Array:
        """Return a view of the register to write, which has the width of `dtype`; `_` gives a scratch array."""
        if isinstance(operand, Sink):
            return np.zeros(self.threads, dtype)
        if not isinstance(operand, Reg):
            raise EmulatorError(f"{operand} cannot be written")
        array = self.registers[operand.name]
        if array.dtype.itemsize != np.dtype(dtype).itemsize:
            raise EmulatorError(
                f"the register {operand.name} has {8 * array.dtype.itemsize} bits, not {8 * np.dtype(dtype).itemsize}"
            )
        return array.view(dtype)

    def assign(self, operand: Operand, dtype: Any) -> Callable[[Array, Mask], None]:
        """Return a function that writes values of `dtype`, one per thread, to a register that may be wider (the values
        are extended)."""
        if isinstance(operand, Sink):
            return lambda values, mask: None
        if not isinstance(operand, Reg):
            raise EmulatorError(f"{operand} cannot be written")
        array = self.registers[operand.name]
        dtype = np.dtype(dtype)
        wide = (
            dtype
            if array.dtype.kind == "b" or array.dtype.itemsize == dtype.itemsize
            else np.dtype(f"{'i' if dtype.kind == 'i' else 'u'}{array.dtype.itemsize}")
        )
        out = array.view(wide)
        if wide.itemsize < dtype.itemsize:
            raise EmulatorError(f"the register {operand.name} is too narrow for {8 * dtype.itemsize} bits")
        same = wide == dtype

        def put(values: Array, mask: Mask) -> None:
            if not same:
                values = (values if dtype.kind in "iu" else values.view(f"u{dtype.itemsize}")).astype(wide)
            np.copyto(out, values, where=mask)

        return put

    def scatter(self, operand: Operand, dtype: Any) -> Callable[[Array, Array], None]:
        """Like `assign`, for the values of some threads only: ``put(values, threads)``."""
        if isinstance(operand, Sink):
            return lambda values, threads: None
        assert isinstance(operand, Reg)
        array = self.registers[operand.name]
        dtype = np.dtype(dtype)
        bits = f"{'i' if dtype.kind == 'i' else 'u'}{dtype.itemsize}"
        wide = array.dtype if array.dtype.kind == "b" or dtype.kind != "i" else np.dtype(f"i{array.dtype.itemsize}")
        out = array.view(wide)
        if array.dtype.kind == "b":
            bits = "?"

        everyone = self.block.everyone

        def put(values: Array, threads: Array) -> None:
            if threads is everyone:
                out[:] = values.view(bits)
            else:
                out[threads] = values.view(bits)

        return put

    def active(self, mask: Mask) -> Array:
        """Return the indices of the active threads."""
        return self.block.everyone if mask is True else mask.nonzero()[0]

    # memory

    def symbol(self, name: str) -> int:
        """Return the address of a variable in its own space."""
        if name not in self.symbols:
            raise EmulatorError(f"{name} is not declared")
        return self.symbols[name]

    def port(self, space: str) -> Any:
        """Return the port of a space: "global", "shared", "local", "const", "generic"."""
        return self.block.ports[space]

    def address(self, operand: Operand) -> Callable[[Array], Array]:
        """Return a function from thread indices to their addresses, uint64."""
        assert isinstance(operand, Address)
        offset = np.uint64(operand.offset & 0xFFFF_FFFF_FFFF_FFFF)
        if not isinstance(operand.base, Reg):
            constant = self.read(operand.base, np.uint64) + offset
            if constant.ndim:
                return lambda threads: constant[threads]
            return lambda threads: np.full(len(threads), constant)
        register, everyone = self.registers[operand.base.name], self.block.everyone
        if register.dtype.itemsize == 4:
            low = np.uint32(operand.offset & 0xFFFF_FFFF)
            return lambda threads: ((register if threads is everyone else register[threads]) + low).astype(np.uint64)
        if register.dtype != np.uint64:
            raise EmulatorError(
                f"the register {operand.base.name} of an address has {8 * register.dtype.itemsize} bits"
            )
        return lambda threads: (register if threads is everyone else register[threads]) + offset

    def translate(self, ins: Instruction) -> Op:
        """Return the operation of an instruction, under its predicate."""
        load_rules()
        rule = next((RULES[name] for name in named(ins) if name in RULES), None)
        if rule is None:
            raise Unsupported(ins)
        try:
            op = rule(ins, self)
        except Unsupported:
            raise
        except (EmulatorError, *MISTAKES) as error:
            raise Unsupported(
                ins, str(error) if isinstance(error, EmulatorError) else "its operands do not fit it"
            ) from error
        if ins.predicate is None:
            return op
        register, negated, threads = self.registers[ins.predicate.name], ins.negated, self.threads
        rewrites = any(ins.predicate in items(operand) for operand in ins.operands)

        def predicated(mask: Mask) -> None:
            mine = ~register if negated else register.copy() if rewrites else register
            if mask is not True:
                mine = mine & mask
            if count := np.count_nonzero(mine):
                op(True if count == threads else mine)

        return predicated


def registers_by_type(function: Function) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, type in function.registers.items():
        if type not in TYPES and type != "b128":
            raise EmulatorError(
                f"PTX line {function.line}: the register {name} of {function.name} has the type .{type}, "
                "which is not supported"
            )
        found.setdefault(type, []).append(name)
    return found


def unsigned(dtype: Any) -> Any:
    return dtype if dtype.kind in "bV" else np.dtype(f"u{dtype.itemsize}")


def low_bits(array: Array, dtype: Any) -> Array:
    """View an array of bits as a type that may be narrower: the low bits of every element."""
    width, wanted = array.dtype.itemsize, dtype.itemsize
    if width == wanted:
        return array.view(dtype)
    if width < wanted:
        raise EmulatorError(f"a register of {8 * width} bits is read as {8 * wanted} bits")
    if array.ndim == 0:
        return array.reshape(1).view(dtype)[:1].reshape(())
    return array.view(dtype)[:: width // wanted]


def immediate(operand: Imm, dtype: Any) -> Array:
    """Return an immediate as `dtype`: bits for integers and for floats of the same width, else converted."""
    bits = np.array(operand.value & ((1 << 64) - 1), np.uint64)
    if operand.kind == "int":
        if dtype.kind == "f":
            return np.array(operand.value, dtype)
        if dtype.kind == "b":
            return np.array(operand.value != 0)
        return bits.astype(f"u{dtype.itemsize}").view(dtype)
    own = np.dtype(np.float32 if operand.kind == "f32" else np.float64)
    value = bits.astype(f"u{own.itemsize}").view(own)
    if dtype.kind == "f":
        return value.astype(dtype)
    return value.view(f"u{own.itemsize}").astype(f"u{dtype.itemsize}").view(dtype)
