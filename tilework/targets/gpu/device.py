"""The interface between the vendor-neutral rules of this folder and a GPU: a vendor implements `Gpu` and adds its own
rules.

    class ToyGpu(Gpu):
        rules = Rules(NEUTRAL)

        def shuffle(self, b: Builder, value: Value, lane: Value) -> Value:
            return b.call("toy.read_lane", i32, [value, lane], attributes="convergent")

Methods emit code with the builder `b`. Every GPU implements the abstract ones. The others have a default that is
correct on any GPU: it reports an instruction as missing (a warp reduction, an asynchronous copy, matrix loads from
shared memory), and the rules do without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilework.analysis.allocation import Allocations
from tilework.ir.enums import CacheModifier, EvictionPolicy, MemSemantic, MemSyncScope, RMWOp
from tilework.layouts.linear import LinearLayout
from tilework.target import Target
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.rules import Rules
from tilework.targets.llvm.types import Type, f32, f64, i1, i8, i32, vector
from tilework.targets.llvm.values import Value, constant

Function = Callable[..., Value]  # takes a `Lowering` and the arguments


class AccessShape(NamedTuple):
    """The registers that one memory access moves: `count` of a type, each with `size` bits in memory."""

    type: Type
    count: int
    size: int


class Hints(NamedTuple):
    """The cache hints of a load or store; a volatile access is never merged or removed."""

    cache: CacheModifier = CacheModifier.NONE
    evict: EvictionPolicy = EvictionPolicy.NORMAL
    is_volatile: bool = False
    in_l1: bool = False  # the hint concerns only the L1 cache


class Access(NamedTuple):
    """A load or store of one thread; predicated if there is a predicate."""

    address: Value
    shape: AccessShape
    predicate: Value | None = None
    hints: Hints = Hints()


class Atomic(NamedTuple):
    """An atomic access to global memory where `may` holds: its memory ordering and scope, and whether the old value is
    used.

    An atomic of a tile need not complete before the next one is issued.
    """

    address: Value
    may: Value | None
    sem: MemSemantic
    scope: MemSyncScope
    is_used: bool
    is_of_tile: bool = False


class Copy(NamedTuple):
    """A copy of bytes from global memory to `target + apart` in shared memory: of zeros where the mask is false, and
    not done at all where the predicate is false.
    """

    target: Value
    apart: int
    source: Value
    bytes: int
    mask: Value | None
    predicate: Value | None


class Warps(NamedTuple):
    """Warps of a block that run the same code: their count, the first one, and the id of their barrier."""

    count: int
    first: int = 0
    barrier: int = 0
    are_all: bool = True  # the block has no other warps
    are_apart: bool = False  # they reach the barrier from different code paths


class Emission(Protocol):
    """The part of a `Lowering` that packs elements."""

    builder: Builder
    gpu: "Gpu"
    packed: dict[tuple[str, ...], Value]
    held_in: dict[str, tuple[Value, int]]


class MatrixForm(Protocol):
    """A matrix load or store between shared memory and the registers of a warp; `move` is a `shared_access.Move`."""

    @property
    def bytes(self) -> int:
        """The bytes that a thread moves at a time."""
        ...

    def addresses(self, offsets: LinearLayout) -> LinearLayout:
        """Return the layout of the address that each lane passes."""
        ...

    def prepare(self, low: Any) -> None:
        """Hoist the part of the address that depends only on the thread; `low` is the `Lowering`."""
        ...

    def load(self, move: Any, round_index: int) -> dict[int, Value]: ...

    def store(self, move: Any, registers: Sequence[Value], round_index: int) -> None: ...


class Around(Protocol):
    """Code that a vendor emits before and after ops, besides barriers; `low` is the `Lowering`."""

    def before(self, low: Any, op: Operation) -> None: ...

    def after(self, low: Any, op: Operation) -> None: ...

    def concerns(self, op: Operation) -> bool: ...


class Gpu(ABC):
    """A GPU architecture, with the options that affect its code."""

    rules: ClassVar[Rules]

    def __init__(self, target: Target) -> None:
        self.target, self.name, self.warp_size = target, str(target), target.warp_size

    def has(self, feature: str) -> bool:
        return feature in self.target.features

    # The kernel

    kernel_convention: ClassVar[str]
    line_tables: ClassVar[str] = "LineTablesOnly"  # LLVM's emission kind of debug information
    shared_alignment: ClassVar[int] = 16  # of the base of shared memory
    least_shared: int = 0  # bytes of shared memory that a program takes at least
    argument_space: ClassVar[int] = 0  # the address space of pointer arguments
    parameter_word: str = ""  # an attribute of all parameters of a kernel
    map_parameter: ClassVar[str | None] = None  # the attributes of a tensor map parameter, if supported

    @abstractmethod
    def kernel_attributes(self, threads: int, blocks: int, registers: int | None) -> Sequence[str]:
        """Return the function attributes of a kernel, for the threads of a block, the blocks of a cluster, and the
        registers of a thread (if limited).
        """

    def descriptor_parameter(self, type: Attribute, rows: int | None) -> tuple[str, dict[str, Any]] | None:
        """Return the attributes of a tensor descriptor parameter and its metadata for the launcher; None if the GPU has
        no tensor descriptors.

        A block is copied `rows` rows at a time, if given.
        """
        return None

    def around(self, module: ModuleOp, allocated: Allocations) -> Around | None:
        """Return the code that this GPU needs around ops of the module, whose shared memory is `allocated`."""
        return None

    # Ids

    @abstractmethod
    def thread_id(self, b: Builder) -> Value:
        """Return the id of this thread in its block."""

    def block_id(self, b: Builder) -> Value:
        """Return the id of this block in its cluster: 0 without `Feature.CLUSTERS`."""
        return constant(i32, 0)

    @abstractmethod
    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        """Return the index in the grid of this block, or of its cluster."""

    @abstractmethod
    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        """Return the size of the grid, in blocks or in clusters."""

    # Synchronisation and exchange

    @abstractmethod
    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        """Emit a barrier of these warps that publishes their writes to shared memory, or to `all_memory`."""

    def cluster_barrier(self, b: Builder) -> None:
        """Emit a barrier of a cluster that publishes writes to all memory; only with `Feature.CLUSTERS`."""
        raise NotImplementedError

    @abstractmethod
    def warp_barrier(self, b: Builder) -> None:
        """Emit a barrier of the lanes of each warp."""

    def set_registers(self, b: Builder, count: int, before: int) -> None:  # noqa: B027
        """Change the registers per thread of these warps from `before` to `count`; the block's total is constant."""

    @abstractmethod
    def shuffle(self, b: Builder, value: Value, lane: Value) -> Value:
        """Return the i32 that `lane` holds."""

    def shuffle_xor(self, b: Builder, value: Value, mask: int) -> Value:
        """Return the i32 of the lane with id ``lane ^ mask``."""
        return self.shuffle(b, value, b.xor(b.and_(self.thread_id(b), self.warp_size - 1), mask))

    def uniform(self, b: Builder, value: Value) -> Value:
        """Return an i32 that is equal in all lanes of a warp, in a form that the assembler recognises as uniform."""
        return self.shuffle(b, value, constant(i32, 0))

    def exchanges(self, mask: int) -> bool:
        """Return True if `exchange` is fast between lanes whose ids differ in `mask`."""
        return False

    def exchange(self, b: Builder, first: Value, second: Value, mask: int) -> Sequence[Value]:
        """Swap the `first` i32 of each lane that has `mask` set in its id with the `second` of the lane without."""
        raise NotImplementedError

    def reduce_warp(self, b: Builder, name: str, value: Value) -> Value | None:
        """Reduce an i32 over all lanes by add, and, or, xor, max, min, umax or umin; None if no instruction does."""
        return None

    def maxima(self, b: Builder, rows: Sequence[Sequence[Value]]) -> Sequence[Value] | None:
        """Return the maxnum of each row of f32, or None if that is not faster than pairwise maxima."""
        return None

    # Global memory

    @abstractmethod
    def load(self, b: Builder, at: Access, other: Sequence[Value] | None) -> Sequence[Value]:
        """Load registers from global memory; where the predicate is false the result is `other`, or zero."""

    @abstractmethod
    def store(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Store registers to global memory."""

    def fetch(self, b: Builder, address: Value, predicate: Value) -> None:  # noqa: B027
        """Prefetch the cache line of an address into L2, if the GPU has such an instruction."""

    def advance(self, b: Builder, pointer: Value, bytes: Value) -> Value:
        """Return a pointer that a loop advances, in a form that LLVM's strength reduction does not split into several
        induction variables.
        """
        return b.gep(pointer, bytes)

    def hidden_zero(self, b: Builder, loop: Operation) -> Value | None:
        """Return an opaque 0 that hides the distances between copy addresses in `loop` from the assembler, or None."""
        return None

    def atomic_width(self, kind: RMWOp, held: Type, most: int) -> int:
        """Return how many adjacent elements, at most `most`, one instruction updates."""
        return 1

    @abstractmethod
    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        """Return True if the GPU has this atomic for values of type `held`; without a `kind`, compare-and-swap."""

    @abstractmethod
    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        """Update as many adjacent elements as there are values, and return the old ones (0 where `at.may` is false).

        Values have their memory types, which are floats also for bitwise kinds. The result may be empty if it is
        unused.
        """

    @abstractmethod
    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        """Compare and swap; return the old value."""

    @abstractmethod
    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        """Load with an ordering."""

    @abstractmethod
    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        """Order this thread's accesses before the fence with those after it, for all threads of `scope`."""

    # Shared memory; plain loads and stores are LLVM's

    @abstractmethod
    def store_shared(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        """Store registers to shared memory without divergence of the warp."""

    @abstractmethod
    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        """Update an integer in shared memory atomically, where `may` holds."""

    stores_matrices: bool = False  # the GPU has matrix stores as well as loads

    def matrix_form(self, offsets: LinearLayout, bits: int, limit: int) -> MatrixForm | None:
        """Return the matrix access that moves registers at these offsets (those below `limit`), if there is one."""
        return None

    copy_bytes: ClassVar[tuple[int, int] | None] = None  # minimum and maximum of an asynchronous copy

    def async_copy(self, b: Builder, copy: Copy) -> None:
        """Start an asynchronous copy."""
        raise AssertionError(f"{self.name} copies nothing asynchronously: its copy_bytes is None")

    def commit_copies(self, b: Builder) -> None:  # noqa: B027
        """Commit the copies started so far as a group."""

    def wait_copies(self, b: Builder, pending: int) -> None:  # noqa: B027
        """Wait until at most `pending` groups are in flight."""

    def stored_for_matrices(self, b: Builder, type: Attribute) -> None:  # noqa: B027
        """Make this thread's stores to memory of this type visible to the matrix units."""

    # Prefixes of ops whose copies or dots run ahead of a loop. The assembler may unroll any other loop, so that
    # several of its loads are in flight.
    pipelined_ops: ClassVar[tuple[str, ...]] = ("tt.dot", "ttg.async_")

    # Parts of the LLVM text of barriers and of exchanges between lanes, where the order of the text determines how many
    # registers a thread needs (`codegen.order_by_use`).
    exchange_texts: ClassVar[tuple[str, ...]] = ()

    # Arithmetic

    carried_bit: ClassVar[Type] = i1  # the type of an i1 in phis
    flushes: bool = False  # fast functions may flush denormals to zero
    native_floats: frozenset[Type] = frozenset({f32, f64})  # types with arithmetic that needs no widening
    magnitude_floats: frozenset[Type] = frozenset()  # types with a `min_magnitude` instruction
    # of f32, for formulas: divide and sqrt of all numbers; exp2, log2, reciprocal and rsqrt of normal ones
    approximations: ClassVar[Mapping[str, Callable[..., Value]]] = {}
    fast_functions: ClassVar[Mapping[str, Function]] = {}  # of f32: exp, exp2, sqrt, rsqrt, divide
    functions: ClassVar[Mapping[str, Function]] = {}  # library functions, by symbol
    links_libraries: ClassVar[bool] = False  # `extern_libs` are linked
    assembly_types: Mapping[str, Type] = {}  # by the constraint codes of inline assembly

    def assembly_type(self, code: str, type: Type) -> Type:
        """Return the type of an inline assembly operand: `type` itself if it has the width of its constraint code."""
        wanted = self.assembly_types[code]
        return type if type.bits == wanted.bits and not type.is_vector else wanted

    def choose_bytes(self, b: Builder, low: Value, high: Value, selector: int) -> Value:
        """Select four bytes of two registers: each hex digit of the selector is one, 4 the lowest of `high`."""
        lanes = [*b.lanes(b.bitcast(low, vector(i8, 4))), *b.lanes(b.bitcast(high, vector(i8, 4)))]
        return b.bitcast(b.build_vector([lanes[selector >> 4 * index & 7] for index in range(4)]), i32)

    def min_magnitude(self, b: Builder, x: Value, y: Value, keeps_nan: bool) -> Value:
        """Return min(|x|, |y|), negative if exactly one of them is; NaN propagates or is ignored."""
        raise NotImplementedError

    # Messages

    @abstractmethod
    def printer(self, b: Builder) -> Callable[[str, Sequence[Value]], None]:
        """Return a function that emits a call of C's printf: integers of 32 or 64 bits, doubles, pointers."""

    @abstractmethod
    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        """Abort the kernel with a message."""
