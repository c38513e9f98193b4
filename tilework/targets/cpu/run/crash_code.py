"""The machine code that says what to do when a kernel kills the process: part of `pool_code.py`.

    pool_watch()        let a segmentation fault leave one line, if a kernel is running

The kernel that runs is noted, as a pointer to its name, in the word @running: a hint, since launches of several threads share
it. After the line, whoever was to handle the signal before does (Python's faulthandler, or the system).
"""

import signal

from tilework.targets.cpu.run.machine_code import NULL, Code, code, memory, num, word
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value, constant

PATIENCE_US = 200_000  # of a thread that dies while another one tells why
SAVED = 256  # bytes of a struct sigaction, or more
STDERR = word(2)
BEFORE = "tilework: the kernel "
BEHIND = (
    " reads or writes memory outside of its arrays, and the process dies of it."
    " Run it again with TRITON_SANITIZE=1: an error will name the line and the program\n"
)
SIGNALS = [int(getattr(signal, name)) for name in ("SIGSEGV", "SIGBUS") if hasattr(signal, name)]
RUNNING, TELLING = memory("running"), memory("telling")


def handler_of(b: Code, number: Value) -> Value:
    """Where the handler is kept that a signal had before."""
    return b.gep(memory("saved"), b.mul(b.zext(number, i64), SAVED))


@code("void crashed(i32 signal)")
def crashed(b: Code, number: Value) -> None:
    if b.platform.is_windows:
        b.ret()
        return
    name = b.load(ptr, RUNNING, ordering="monotonic", align=8)

    def tell() -> list[Value]:
        for text in (BEFORE, None, BEHIND):
            place = name if text is None else b.module.string(text)
            b.run("write", STDERR, place, b.run("strlen", name) if text is None else num(len(text)))
        b.store(word(0), TELLING, ordering="release", align=4)
        return []

    def wait() -> list[Value]:
        b.run("usleep", word(PATIENCE_US))
        return []

    with b.unless(b.is_null(name)):
        alone = b.icmp("eq", b.atomic_rmw("xchg", TELLING, constant(i32, 1), ordering="acq_rel"), 0)
        b.if_else(alone, tell, wait)
    b.run("sigaction", number, handler_of(b, number), NULL)
    b.ret()


@code("void pool_watch()")
def pool_watch(b: Code) -> None:
    for number in () if b.platform.is_windows else map(word, SIGNALS):
        b.run("sigaction", number, NULL, handler_of(b, number))
        b.run("signal", number, memory("crashed"))
    b.ret()
