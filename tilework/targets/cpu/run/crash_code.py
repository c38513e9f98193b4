"""The machine code that says what to do when a kernel kills the process: part of `pool_code.py`.

    pool_watch(signals)        let fatal signals leave one line, if kernels have run; bit n of `signals` is signal n

The words at @running are pointers to the names of the kernel that runs, or NULL, and of the last one that was started:
hints, since launches of several threads share them. A store outside of an array often kills the process later, when the
allocator finds its lists corrupted and aborts. After the line the signal is raised again for the handler that was there
before (Python's faulthandler, or the system's), so that the process ends as it would have.
"""

import signal

from tilework.targets.cpu.run.launch_record import fatal_signals
from tilework.targets.cpu.run.machine_code import NULL, Code, code, memory, word
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value, constant

PATIENCE_US = 200_000  # of a thread that dies while another one tells why
SAVED = 256  # bytes of a struct sigaction, or more
STDERR = word(2)
LAST = 8  # bytes behind @running
FIND = "TRITON_SANITIZE=1: an error will name the line and the program\n"
TEXTS = {  # what is written in front of the name of the kernel, and behind it
    "outside": (
        "tilework: the kernel ",
        f" reads or writes memory outside of its arrays, and the process dies of it. Run it again with {FIND}",
    ),
    "during": (
        "tilework: the process dies of a signal while the kernel ",
        f" runs. If memory outside of its arrays is the cause, run it again with {FIND}",
    ),
    "after": (
        "tilework: the process dies of a signal; the kernel ",
        " has run before. A kernel that writes outside of its arrays (is a mask missing?) corrupts memory of others."
        f" To look for it run again with {FIND}",
    ),
}
FAULTS = [int(getattr(signal, name)) for name in ("SIGSEGV", "SIGBUS") if hasattr(signal, name)]
RUNNING, TELLING = memory("running"), memory("telling")


def handler_of(b: Code, number: Value) -> Value:
    """The address of the handler that a signal had before."""
    return b.gep(memory("saved"), b.mul(b.zext(number, i64), SAVED))


@code("void say(ptr name, ptr before, ptr behind)")
def say(b: Code, name: Value, before: Value, behind: Value) -> None:
    for text in (before, name, behind):
        b.run("write", STDERR, text, b.run("strlen", text))
    b.ret()


@code("void crashed(i32 signal)")
def crashed(b: Code, number: Value) -> None:
    if b.platform.is_windows:
        b.ret()
        return
    name, last = (b.load(ptr, b.gep(RUNNING, at), ordering="monotonic", align=8) for at in (0, LAST))

    def tell() -> list[Value]:
        is_fault = constant(i32, 0)
        for fault in FAULTS:
            is_fault = b.or_(is_fault, b.zext(b.icmp("eq", number, fault), i32))
        is_idle = b.is_null(name)
        kind = {key: [b.module.string(text) for text in pair] for key, pair in TEXTS.items()}
        texts = [
            b.select(is_idle, after, b.select(b.icmp("ne", is_fault, 0), outside, during))
            for outside, during, after in zip(kind["outside"], kind["during"], kind["after"], strict=True)
        ]
        b.run("say", b.select(is_idle, last, name), *texts)
        b.store(word(0), TELLING, ordering="release", align=4)
        return []

    def wait() -> list[Value]:
        b.run("usleep", word(PATIENCE_US))
        return []

    with b.unless(b.is_null(last)):
        alone = b.icmp("eq", b.atomic_rmw("xchg", TELLING, constant(i32, 1), ordering="acq_rel"), 0)
        b.if_else(alone, tell, wait)
    b.run("sigaction", number, handler_of(b, number), NULL)
    b.run("raise", number)  # it arrives when this returns
    b.ret()


@code("void pool_watch(i64 signals)")
def pool_watch(b: Code, signals: Value) -> None:
    for number in () if b.platform.is_windows else fatal_signals():
        with b.if_(b.icmp("ne", b.and_(signals, 1 << number), 0)):
            b.run("sigaction", word(number), NULL, handler_of(b, word(number)))
            b.run("signal", word(number), memory("crashed"))
    b.ret()
