"""The idle loop of a worker: it polls for work, then sleeps. Part of `pool_code.py`.

    begin_rest(rest)        from now on it has none
    end_rest(rest)          it has found some
    look_out(rest, epoch)   whether the epoch has changed before the worker should sleep

A worker that sleeps takes some thirty microseconds to start, one that looks out less than one. How long it looks out
follows from how long work took to come of late: where launches follow each other in 60 us, for 120 us; where a
millisecond is between them, for LEAST_NS only, as nearly all of the time would be wasted. Whoever gets none of the work
of others rests on, and sleeps when its time is over.

Meanwhile it makes way for other threads every microsecond or so. If that takes long, the core is not its own, and for
some time it does not look out at all; for longer, each time that this happens again. Has this process used the core, as
much as two threads can? Then it was a thread of another pool (OpenMP's, in torch), which looks out for work in turn,
without making way: a worker that sleeps takes the core from it as soon as it is woken, and leaves it as soon as it has
worked. Otherwise it was another program. Then the thread that is put off gets its core back late, and whoever waits for
it does so, too: only long launches wake a worker (`Pool.least_ns`).
"""

from tilework.targets.cpu.run.machine_code import Code, code, memory, num
from tilework.targets.cpu.run.system_code import EPOCH
from tilework.targets.llvm.types import i1, i32, void
from tilework.targets.llvm.values import Value, constant

SLEEPERS, READY = memory("sleepers"), memory("ready")  # workers that sleep, and those that are awake and have no work
LEAST_NS, MOST_NS = 10_000, 200_000  # to look out for work
FAR_NS = 2 * MOST_NS  # longer rests count as this long: one among many short ones changes little
FIRST_NS = 50_000  # what is expected at the start
LOOKS = 512  # at the epoch between two looks at the clock
CROWDED_NS = 20_000  # to make way takes a quarter of one microsecond, unless others use the time
CROWDED = memory("crowded")  # until when other programs are taken to use the core of some worker
SHORT_NS, LONG_NS = 2_000_000, 128_000_000  # how long that is believed, the first time and at most
# when the rest began, how long rests were of late, until when the core is not its own, for how long that will be next
# time
REST_FIELDS = {"since": "q", "usual": "q", "crowded": "q", "next": "q"}
PAUSES: dict[str, tuple[str, tuple[Value, ...]]] = {  # a short wait of the processor
    **dict.fromkeys(("aarch64", "arm64"), ("llvm.aarch64.isb", (constant(i32, 15),))),
    **dict.fromkeys(("x86_64", "amd64"), ("llvm.x86.sse2.pause", ())),
}


def pause(b: Code) -> None:
    if (found := PAUSES.get(b.platform.processor)) is not None:
        b.call(found[0], void, found[1])


@code("void new_rest(ptr rest)")
def new_rest(b: Code, place: Value) -> None:
    """Of a new worker."""
    b.record(place, REST_FIELDS).set(usual=num(FIRST_NS), crowded=num(0), next=num(SHORT_NS))
    b.run("begin_rest", place)
    b.ret()


@code("void begin_rest(ptr rest)")
def begin_rest(b: Code, place: Value) -> None:
    b.record(place, REST_FIELDS).set(since=b.run("now"))
    b.ret()


@code("void end_rest(ptr rest)")
def end_rest(b: Code, place: Value) -> None:
    rest = b.record(place, REST_FIELDS)
    took = b.smin(b.sub(b.run("now"), rest.get("since")), num(FAR_NS))
    rest.set(usual=b.lshr(b.add(b.mul(rest.get("usual"), 3), took), 2))
    b.ret()


@code("i1 look_out(ptr rest, i64 epoch)")
def look_out(b: Code, place: Value, epoch: Value) -> None:
    rest = b.record(place, REST_FIELDS)
    with b.if_(b.icmp("slt", rest.get("since"), rest.get("crowded"))):
        b.ret(constant(i1, 0))
    usual, again = rest.get("usual"), rest.get("next")
    long = b.smax(b.smin(b.mul(usual, 2), num(MOST_NS)), num(LEAST_NS))
    end = b.add(rest.get("since"), b.select(b.icmp("slt", usual, MOST_NS), long, num(LEAST_NS)))
    with b.forever():
        with b.loop(0, LOOKS):
            with b.if_(b.icmp("ne", b.look(EPOCH, "monotonic"), epoch)):
                rest.set(next=b.smax(b.lshr(again, 1), num(SHORT_NS)))
                b.ret(constant(i1, 1))
            pause(b)
        time = b.run("now")
        with b.if_(b.icmp("sge", time, end)):
            b.ret(constant(i1, 0))
        if b.platform.is_linux:
            used = b.run("used")
            b.run("make_way")
            took = b.sub(b.run("now"), time)
            with b.if_(b.icmp("sgt", took, CROWDED_NS)):
                until = b.add(b.add(time, took), again)
                rest.set(crowded=until, next=b.smin(b.mul(again, 2), num(LONG_NS)))
                of_two = b.mul(b.sub(b.run("used"), used), 2)
                with b.if_(b.icmp("slt", of_two, b.mul(took, 3))):
                    b.store(until, CROWDED, ordering="monotonic", align=8)
                b.ret(constant(i1, 0))
