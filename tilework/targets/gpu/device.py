"""The interface of a GPU, as the rules of this folder use it: a vendor implements `Gpu` once, and adds rules of its
own.

    class ToyGpu(Gpu):
        rules = Rules(NEUTRAL)

        def shuffle(self, b: Builder, word: Value, lane: Value) -> Value:
            return b.call("toy.read_lane", i32, [word, lane], attributes="convergent")

Methods emit code with the builder `b` they are given. What is abstract every GPU has. The rest has a default that is
right on any GPU: an instruction that is missing (a reduction of a warp, an asynchronous copy, matrices from shared
memory), and the rules do without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilework.ir.enums import CacheModifier, EvictionPolicy, MemSemantic, MemSyncScope, RMWOp
from tilework.layouts.linear import LinearLayout
from tilework.target import Target
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.rules import Rules
from tilework.targets.llvm.types import Type, f32, f64, i1, i8, i32, vector
from tilework.targets.llvm.values import Value, constant

Function = Callable[..., Value]  # of a `Lowering` and arguments


class Words(NamedTuple):
    """The registers that one memory access moves: `count` of a type, each with `size` bits in memory."""

    type: Type
    count: int
    size: int


class Hints(NamedTuple):
    """The cache hints of a load or store; a volatile access is never merged or removed."""

    cache: CacheModifier = CacheModifier.NONE
    evict: EvictionPolicy = EvictionPolicy.NORMAL
    is_volatile: bool = False
    in_l1: bool = False  # whether the wish is about the cache of the multiprocessor only


class Access(NamedTuple):
    """A load or store of one thread, done where the predicate holds, or everywhere without one."""

    address: Value
    words: Words
    predicate: Value | None = None
    hints: Hints = Hints()


class Atomic(NamedTuple):
    """A change of global memory, done where `may` holds: its ordering, who sees that, and whether the old value is
    read.

    One of a tile may be forgotten as soon as it is on its way.
    """

    address: Value
    may: Value | None
    sem: MemSemantic
    scope: MemSyncScope
    is_used: bool
    is_of_tile: bool = False


class Copy(NamedTuple):
    """Bytes from global memory to `target + apart` in shared memory: zeros where the mask is 0, nothing without the
    predicate.
    """

    target: Value
    apart: int
    source: Value
    bytes: int
    mask: Value | None
    predicate: Value | None


class Warps(NamedTuple):
    """Warps of a block that run the same code: how many, which is the first, and the barrier at which they meet."""

    count: int
    first: int = 0
    barrier: int = 0
    are_all: bool = True  # whether the block has no others
    are_apart: bool = False  # whether they come to the barrier from different places of the code


class Emission(Protocol):
    """The part of a `Lowering` that packing elements needs."""

    builder: Builder
    gpu: "Gpu"
    words: dict[tuple[str, ...], Value]
    bytes: dict[str, tuple[Value, int]]


class MatrixForm(Protocol):
    """A way in which a warp moves matrices between shared memory and registers; `move` is a `shared_access.Move`."""

    @property
    def bytes(self) -> int:
        """The bytes that a thread moves at a time."""
        ...

    def addresses(self, offsets: LinearLayout) -> LinearLayout:
        """The layout that says where the address of each lane is."""
        ...

    def prepare(self, low: Any) -> None:
        """Compute here what depends on the thread alone; `low` is the `Lowering`."""
        ...

    def load(self, move: Any, turn: int) -> dict[int, Value]: ...

    def store(self, move: Any, registers: Sequence[Value], turn: int) -> None: ...


class Around(Protocol):
    """Code that a vendor wants before and behind ops, beside barriers; `low` is the `Lowering`."""

    def before(self, low: Any, op: Operation) -> None: ...

    def after(self, low: Any, op: Operation) -> None: ...

    def concerns(self, op: Operation) -> bool: ...


class Gpu(ABC):
    """One kind of GPU, with the options that decide its code."""

    rules: ClassVar[Rules]

    def __init__(self, target: Target) -> None:
        self.target, self.name, self.warp_size = target, str(target), target.warp_size

    def has(self, feature: str) -> bool:
        return feature in self.target.features

    # The kernel

    kernel_convention: ClassVar[str]
    line_tables: ClassVar[str] = "LineTablesOnly"  # what LLVM is told about source lines
    shared_alignment: ClassVar[int] = 16  # of the start of shared memory
    argument_space: ClassVar[int] = 0  # the address space of pointers that are arguments
    map_parameter: ClassVar[str | None] = None  # the attributes of a parameter that is a tensor map, if there are such

    @abstractmethod
    def kernel_attributes(self, threads: int, blocks: int, registers: int | None) -> Sequence[str]:
        """Of a kernel with so many threads in a block, blocks in a cluster, and registers of a thread, if that is
        said.
        """

    def descriptor_parameter(self, type: Attribute, rows: int | None) -> tuple[str, dict[str, Any]] | None:
        """The attributes of a parameter that is a tensor descriptor, and what the launcher must know; None: there are
        none.

        Blocks are copied so many `rows` at a time, if that is said.
        """
        return None

    def around(self, module: ModuleOp) -> Around | None:
        """Code around ops that the module needs on this GPU."""
        return None

    # Ids

    @abstractmethod
    def thread_id(self, b: Builder) -> Value:
        """The number of this thread in its block."""

    def block_id(self, b: Builder) -> Value:
        """The number of this block in its cluster; without `Feature.CLUSTERS` each is alone."""
        return constant(i32, 0)

    @abstractmethod
    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        """The place in the grid of this block, or of its cluster."""

    @abstractmethod
    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        """The size of the grid, in blocks or in clusters."""

    # Threads together

    @abstractmethod
    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        """All threads of these warps come here, and see what they wrote to shared memory, or to `all_memory`."""

    def cluster_barrier(self, b: Builder) -> None:
        """All threads of a cluster come here, and see what they wrote to all memory; only with `Feature.CLUSTERS`."""
        raise NotImplementedError

    @abstractmethod
    def warp_barrier(self, b: Builder) -> None:
        """The same within each warp."""

    def set_registers(self, b: Builder, count: int, before: int) -> None:  # noqa: B027
        """Threads of these warps have `count` registers from here on, and had so many before; the block's sum stays."""

    @abstractmethod
    def shuffle(self, b: Builder, word: Value, lane: Value) -> Value:
        """The i32 that another lane has."""

    def shuffle_xor(self, b: Builder, word: Value, mask: int) -> Value:
        """The i32 of the lane whose number differs in the bits of `mask`."""
        return self.shuffle(b, word, b.xor(b.and_(self.thread_id(b), self.warp_size - 1), mask))

    def uniform(self, b: Builder, word: Value) -> Value:
        """An i32 that all lanes of a warp have alike, so that the assembler can see it."""
        return self.shuffle(b, word, constant(i32, 0))

    def exchanges(self, mask: int) -> bool:
        """Return True if `exchange` is fast between lanes whose numbers differ in `mask`."""
        return False

    def exchange(self, b: Builder, first: Value, second: Value, mask: int) -> Sequence[Value]:
        """Lanes with `mask` in their number change their `first` i32 for the `second` of their neighbour without."""
        raise NotImplementedError

    def reduce_warp(self, b: Builder, name: str, word: Value) -> Value | None:
        """An i32 of all lanes by add, and, or, xor, max, min, umax or umin, where that is one instruction."""
        return None

    def maxima(self, b: Builder, rows: Sequence[Sequence[Value]]) -> Sequence[Value] | None:
        """The largest number of each row of f32, where that is faster than by pairs; NaN only where all are NaN."""
        return None

    # Global memory

    @abstractmethod
    def load(self, b: Builder, at: Access, other: Sequence[Value] | None) -> Sequence[Value]:
        """Words of global memory; where the predicate is false `other`, or zeros."""

    @abstractmethod
    def store(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Words to global memory."""

    def fetch(self, b: Builder, address: Value, predicate: Value) -> None:  # noqa: B027
        """Ask for the line of an address, which comes into the cache of all multiprocessors; nothing, where that cannot
        be asked for.
        """

    def advance(self, b: Builder, pointer: Value, bytes: Value) -> Value:
        """A pointer that a loop moves on, in a way that LLVM does not make several of: one base, and offsets from
        it.
        """
        return b.gep(pointer, bytes)

    def hidden_zero(self, b: Builder, loop: Operation) -> Value | None:
        """A 0 that hides from the assembler how far the addresses of copies are apart in `loop`; None: it shall see."""
        return None

    def atomic_width(self, kind: RMWOp, held: Type, most: int) -> int:
        """The number of adjacent elements, at most `most`, that one instruction changes."""
        return 1

    @abstractmethod
    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        """Return True if values that memory holds so can be changed; without a `kind`, compared and exchanged."""

    @abstractmethod
    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        """Change as many neighbours as there are values; what was there, or 0 where nothing was done.

        Values are as memory holds them. The old value may be left out if it has no use.
        """

    @abstractmethod
    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        """Put `value` where `compared` was; what was there."""

    @abstractmethod
    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        """Load with an ordering."""

    @abstractmethod
    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        """Order this thread's accesses before the fence with those behind it, for all threads of `scope`."""

    # Shared memory; plain loads and stores are LLVM's

    @abstractmethod
    def store_shared(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Words to shared memory; all threads of the warp go on together."""

    @abstractmethod
    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        """Change an integer in shared memory atomically, where `may` holds."""

    stores_matrices: bool = False  # whether matrices also go from registers to memory

    def matrix_form(self, offsets: LinearLayout, bits: int, limit: int) -> MatrixForm | None:
        """The form in which registers at these offsets (those below `limit`) move as matrices, where the GPU has
        that.
        """
        return None

    copy_bytes: ClassVar[tuple[int, int] | None] = None  # the least and most that an asynchronous copy moves

    def async_copy(self, b: Builder, copy: Copy) -> None:
        """Begin to copy."""
        raise AssertionError(f"{self.name} copies nothing asynchronously: its copy_bytes is None")

    def commit_copies(self, b: Builder) -> None:  # noqa: B027
        """The copies begun so far are a group."""

    def wait_copies(self, b: Builder, pending: int) -> None:  # noqa: B027
        """Wait until at most so many groups are under way."""

    def stored_for_matrices(self, b: Builder, type: Attribute) -> None:  # noqa: B027
        """Let matrix units see what this thread has stored to memory of this type."""

    # Arithmetic

    carried_bit: ClassVar[Type] = i1  # in what a bit comes to the block where its ways meet
    flushes: bool = False  # whether fast functions may take denormal numbers for zero
    native_floats: frozenset[Type] = frozenset({f32, f64})  # what is added, multiplied and compared without widening
    magnitude_floats: frozenset[Type] = frozenset()  # of which the smaller magnitude is one instruction
    fast_functions: ClassVar[Mapping[str, Function]] = {}  # of f32: exp, exp2, sqrt, rsqrt, divide
    functions: ClassVar[Mapping[str, Function]] = {}  # of libraries, by symbol
    links_libraries: ClassVar[bool] = False  # whether functions come from libraries that the options name
    assembly_types: Mapping[str, Type] = {}  # by the letters of the constraints of inline assembly

    def assembly_type(self, letter: str, type: Type) -> Type:
        """The type of an operand of inline assembly: that of its letter, or one of the same width."""
        wanted = self.assembly_types[letter]
        return type if type.bits == wanted.bits and not type.is_vector else wanted

    def choose_bytes(self, b: Builder, low: Value, high: Value, selector: int) -> Value:
        """Four bytes of two words: each hex digit of the selector is one, from the lowest; 4 is the first of `high`."""
        lanes = [*b.lanes(b.bitcast(low, vector(i8, 4))), *b.lanes(b.bitcast(high, vector(i8, 4)))]
        return b.bitcast(b.build_vector([lanes[selector >> 4 * place & 7] for place in range(4)]), i32)

    def min_magnitude(self, b: Builder, x: Value, y: Value, keeps_nan: bool) -> Value:
        """The smaller of |x| and |y|, negative if one of them is, of `magnitude_floats`; NaN stays, or is not seen."""
        raise NotImplementedError

    # Messages

    @abstractmethod
    def printer(self, b: Builder) -> Callable[[str, Sequence[Value]], None]:
        """A function that emits a call of C's printf: integers of 32 or 64 bits, doubles, pointers."""

    @abstractmethod
    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        """End the kernel with a message."""
