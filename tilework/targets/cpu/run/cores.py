"""On which core a thread of the pool works.

Linux often wakes a worker on the core of the thread that woke it, and lets the two share it for milliseconds while
another core is idle. So threads at work mark their cores, a worker that finds itself on a marked one moves to one that
is not, and whoever has woken others gives way once, so that they can run and see where they are. Other systems are left
alone.

The new core may be busy with a thread of another program, and the worker gets there late, maybe after the launch. So it
moves before it takes a ticket, and nobody waits for it; and if the user has chosen other cores for it meanwhile, these
are kept.
"""

from tilework.targets.cpu.run.machine_code import Code, code, memory, num, word
from tilework.targets.llvm.types import array, i8, i64
from tilework.targets.llvm.values import Value

CORES = 1024  # the most that are told apart
MARKS = memory("cores")
NOWHERE = num(-1)


def mark_of(b: Code, core: Value) -> tuple[Value, Value]:
    """The word that has the mark of a core, and its bit."""
    return b.gep(MARKS, b.lshr(core, 6), i64), b.shl(num(1), b.and_(core, 63))


@code("void make_way()")
def make_way(b: Code) -> None:
    """Let somebody else run who waits for this core."""
    if b.platform.is_linux:
        b.run("sched_yield")
    b.ret()


@code("i64 mark_core()")
def mark_core(b: Code) -> None:
    """Say that this thread works on its core; the core, or -1 if another one does or it is not known."""
    if b.platform.is_linux:
        number = b.run("sched_getcpu")
        with b.if_(b.icmp("ult", number, CORES)):
            core = b.zext(number, i64)
            place, bit = mark_of(b, core)
            before = b.atomic_rmw("or", place, bit, align=8)
            b.ret(b.select(b.icmp("eq", b.and_(before, bit), 0), core, NOWHERE))
    b.ret(NOWHERE)


@code("void leave_core(i64 core)")
def leave_core(b: Code, core: Value) -> None:
    """Take the mark away."""
    if b.platform.is_linux:
        with b.if_(b.icmp("sge", core, 0)):
            place, bit = mark_of(b, core)
            b.atomic_rmw("and", place, b.not_(bit), align=8)
    b.ret()


@code("i64 find_core()")
def find_core(b: Code) -> None:
    """`mark_core`, after a move to a free core if need be; then all that were allowed are allowed again."""
    here = b.run("mark_core")
    if b.platform.is_linux:
        allowed, free, found = (b.alloca(array(i8, CORES // 8), align=8) for _ in range(3))

        def choose(name: str, cores: Value) -> Value:
            return b.run(f"sched_{name}affinity", word(0), num(CORES // 8), cores)

        with b.if_(b.icmp("sge", here, 0)):
            b.ret(here)
        with b.if_(b.icmp("slt", choose("get", allowed), 0)):
            b.ret(here)
        with b.loop_carrying(0, CORES // 64, 1, [num(0)]) as loop:
            idle = b.not_(b.look(b.gep(MARKS, loop.index, i64), "monotonic"))
            both = b.and_(b.load(i64, b.gep(allowed, loop.index, i64)), idle)
            b.store(both, b.gep(free, loop.index, i64))
            loop.next([b.or_(loop.carried[0], both)])
        with b.if_(b.icmp("ne", loop.results[0], 0)):
            choose("set", free)
            there = b.run("mark_core")
            choose("get", found)
            with b.loop_carrying(0, CORES // 64, 1, [num(0)]) as loop:
                wanted, other = (b.load(i64, b.gep(cores, loop.index, i64)) for cores in (free, found))
                loop.next([b.or_(loop.carried[0], b.xor(wanted, other))])
            with b.if_(b.icmp("eq", loop.results[0], 0)):
                choose("set", allowed)
            b.ret(there)
    b.ret(here)


@code("void forget_cores()")
def forget_cores(b: Code) -> None:
    b.fill(MARKS, 0, CORES // 8)
    b.ret()
