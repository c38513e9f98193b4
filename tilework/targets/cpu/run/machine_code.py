"""Functions of the runtime in machine code, written with the builder of LLVM text.

    @code("ptr arena_of(ptr worker, i64 bytes)")
    def arena_of(b: Code, worker: Value, bytes: Value) -> None:
        held = b.record(worker, WORKER_FIELDS)
        with b.if_(b.icmp("uge", held.get("size"), bytes)):
            b.ret(held.get("arena"))
        ...

`b.run("arena_of", worker, bytes)` calls it, or a function of the system's (`RESULTS`), by its name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tilework.targets.cpu.run.launch_record import offsets_of
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, i1, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

NULL = constant(ptr, 0)
TYPES: dict[str, Type] = {"ptr": ptr, "i64": i64, "i32": i32, "i1": i1, "void": void}
FIELD_TYPES: dict[str, Type] = {"Q": ptr, "q": i64, "i": i32}  # by the format characters of `struct`
# result types of functions of the system and of Python
RESULTS: dict[str, Type] = {
    **dict.fromkeys(("malloc", "signal", "CreateThread"), ptr),
    **dict.fromkeys(("write", "strlen", "pthread_self", "syscall"), i64),
    **dict.fromkeys(("free", "PyGILState_Release", "PyErr_Fetch", "Sleep"), void),
    **dict.fromkeys(("AcquireSRWLockExclusive", "ReleaseSRWLockExclusive"), void),
    **dict.fromkeys(("WakeConditionVariable", "WakeAllConditionVariable"), void),
}  # all others an i32
Body = Callable[..., None]  # of a builder and the parameters


def num(value: int) -> Value:
    return constant(i64, value)


def int32(value: int) -> Value:
    return constant(i32, value)


def memory(name: str) -> Value:
    """A global variable."""
    return Value(ptr, f"@{name}")


class Platform(NamedTuple):
    """The platform that code is written for: `sys.platform`, and the name of the processor."""

    system: str
    processor: str

    @property
    def is_windows(self) -> bool:
        return self.system == "win32"

    @property
    def is_linux(self) -> bool:
        return self.system.startswith("linux")


class NativeBuilder(Builder):
    """A builder that knows the result types of the functions that it calls by name."""

    def run(self, name: str, *args: Value) -> Value:
        return self.call(name, RESULTS.get(name, i32), args)

    def is_null(self, address: Value) -> Value:
        return self.icmp("eq", address, NULL)

    def look(self, address: Value, ordering: str) -> Value:
        """Load an i64 that other threads change."""
        return self.load(i64, address, ordering=ordering, align=8)

    def record(self, base: Value, fields: Mapping[str, str]) -> "Record":
        return Record(self, base, fields)


class Code(NativeBuilder):
    """The builder of the pool's functions."""

    def __init__(self, function: Function, platform: Platform) -> None:
        super().__init__(function)
        self.platform = platform

    @contextmanager
    def unless(self, condition: Value) -> Iterator[None]:
        with self.if_(self.not_(condition)):
            yield

    @contextmanager
    def forever(self) -> Iterator[Block]:
        """An endless loop, which the body leaves by a return or a branch; yields its first block."""
        start = self.function.block("forever")
        self.br(start)
        with self.scope():
            self.resume(start)
            yield start
            if not self.block.terminated:
                self.br(start)

    def add_to(self, address: Value, amount: int, ordering: str = "acq_rel") -> Value:
        """Add to an i64 atomically; return the old value."""
        return self.atomic_rmw("add", address, num(amount), ordering=ordering, align=8)


class Record:
    """Fields in memory, by their names (`launch_record.py`)."""

    def __init__(self, b: NativeBuilder, base: Value, fields: Mapping[str, str]) -> None:
        self.b, self.base = b, base
        self.fields, self.offsets = fields, offsets_of(fields)

    def at(self, name: str) -> Value:
        return self.b.gep(self.base, self.offsets[name])

    def get(self, name: str, ordering: str = "") -> Value:
        type = FIELD_TYPES[self.fields[name]]
        return self.b.load(type, self.at(name), ordering=ordering, align=type.bits // 8)

    def set(self, ordering: str = "", **values: Value) -> None:
        for name, value in values.items():
            self.b.store(value, self.at(name), ordering=ordering, align=value.type.bits // 8)

    def change(self, name: str, old: int, new: Value, ordering: str = "monotonic") -> Value:
        """Compare and swap: store `new` if the field is `old`; return whether it was."""
        expected, align = constant(new.type, old), new.type.bits // 8
        return self.b.compare_exchange(self.at(name), expected, new, ordering=ordering, align=align)[1]


class Functions:
    """The functions of a module, each with the Python function that writes its body.

    A head is written as in C: ``ptr arena_of(ptr worker, i64 bytes)``.
    """

    def __init__(self, *attributes: str) -> None:
        self.attributes = attributes
        self.bodies: dict[str, Body] = {}

    def __call__(self, head: str) -> Callable[[Body], Body]:
        """Register a function."""
        result, name = head.partition("(")[0].split()
        known = RESULTS.setdefault(name, TYPES[result])
        assert known is TYPES[result], f"two functions called {name}"

        def register(body: Body) -> Body:
            self.bodies[head] = body
            return body

        return register

    def write(self, module: Module, make: Callable[[Function], NativeBuilder], exports: Sequence[str]) -> None:
        """Write all registered functions, each with a builder of its own; those that are not exported are internal."""
        for head, body in self.bodies.items():
            start, _, listed = head.removesuffix(")").partition("(")
            name = start.split()[1]
            params = [(TYPES[part.split()[0]], part.split()[1]) for part in listed.split(", ") if part]
            linkage = "" if name in exports else "internal"
            function = module.function(name, RESULTS[name], params, linkage=linkage, attributes=self.attributes)
            body(make(function), *function.args)


code = Functions()  # of the pool
