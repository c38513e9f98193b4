"""What a helper does without work: it looks out for it, then sleeps. Part of `pool_code.py`.

    begin_rest(rest)        from now on it has none
    end_rest(rest)          it has found some
    look_out(rest, epoch)   whether the epoch has changed before the helper should sleep

A helper that sleeps takes some thirty microseconds to start, one that looks out less than one. How long it looks out follows from how long work
took to come of late: where launches follow each other in 60 us, for 120 us; where a millisecond is between them, for LEAST_NS only, as nearly all of the
time would be wasted. Whoever gets none of the work of others rests on, and sleeps when its time is over.

Meanwhile it makes way for other threads every microsecond or so. If that takes long, the core is not its own: another program runs there, or a thread
of another pool (OpenMP's, in torch) which looks out for work in turn, without making way. A helper that waits for such a core is of no use, while one that sleeps
has the core as soon as it is woken, and leaves it as soon as it has worked. So for some rests it does not look out at all; for more, each time that this happens again.
"""

from tilework.targets.cpu.run.machine_code import Code, code, memory, num
from tilework.targets.cpu.run.system_code import EPOCH
from tilework.targets.llvm.types import i1, i32, void
from tilework.targets.llvm.values import Value, constant

SLEEPERS, READY = memory("sleepers"), memory("ready")  # helpers that sleep, and those that are awake and have no work
LEAST_NS, MOST_NS = 10_000, 200_000  # to look out for work
FAR_NS = 2 * MOST_NS  # longer rests count as this long: one among many short ones changes little
FIRST_NS = 50_000  # what is expected at the start
LOOKS = 256  # at the epoch between two looks at the clock
CROWDED_NS = 20_000  # to make way takes a quarter of one microsecond, unless others use the time
FEWEST, MOST = 8, 256  # rests after that without looking out
# when the rest began, how long rests were of late, rests without looking out: those that are left, and how many it will be next time
REST_FIELDS = {"since": "q", "usual": "q", "asleep": "q", "next": "q"}
PAUSES: dict[str, tuple[str, tuple[Value, ...]]] = {  # a short wait of the processor
    **dict.fromkeys(("aarch64", "arm64"), ("llvm.aarch64.isb", (constant(i32, 15),))),
    **dict.fromkeys(("x86_64", "amd64"), ("llvm.x86.sse2.pause", ())),
}


def pause(b: Code) -> None:
    if (found := PAUSES.get(b.platform.processor)) is not None:
        b.call(found[0], void, found[1])


@code("void new_rest(ptr rest)")
def new_rest(b: Code, place: Value) -> None:
    """Of a new helper."""
    b.record(place, REST_FIELDS).set(usual=num(FIRST_NS), asleep=num(0), next=num(FEWEST))
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
    rest.set(asleep=b.smax(b.sub(rest.get("asleep"), 1), num(0)))
    b.ret()


@code("i1 look_out(ptr rest, i64 epoch)")
def look_out(b: Code, place: Value, epoch: Value) -> None:
    rest = b.record(place, REST_FIELDS)
    with b.if_(b.icmp("sgt", rest.get("asleep"), 0)):
        b.ret(constant(i1, 0))
    usual, again = rest.get("usual"), rest.get("next")
    long = b.smax(b.smin(b.mul(usual, 2), num(MOST_NS)), num(LEAST_NS))
    end = b.add(rest.get("since"), b.select(b.icmp("slt", usual, MOST_NS), long, num(LEAST_NS)))
    with b.forever():
        with b.loop(0, LOOKS):
            with b.if_(b.icmp("ne", b.look(EPOCH, "monotonic"), epoch)):
                rest.set(next=b.smax(b.lshr(again, 1), num(FEWEST)))
                b.ret(constant(i1, 1))
            pause(b)
        time = b.run("now")
        with b.if_(b.icmp("sge", time, end)):
            b.ret(constant(i1, 0))
        b.run("make_way")
        with b.if_(b.icmp("sgt", b.sub(b.run("now"), time), CROWDED_NS)):
            rest.set(asleep=again, next=b.smin(b.mul(again, 2), num(MOST)))
            b.ret(constant(i1, 0))
