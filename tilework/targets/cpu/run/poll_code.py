"""The machine code that a running program calls now and then: part of `pool_code.py`.

    pool_poll(arena, waits)       0, or the fault code with which the program is to end
    pool_main(thread)             who runs the signal handlers of Python (0: nobody), by its number in the system

A launch that has a fault code ends: every program that looks at it leaves. The owner of a launch, if it is Python's main
thread, runs the handlers of signals that have come, five times a second at most, since it takes Python's lock for it. An
exception that they raise (KeyboardInterrupt, or what a test runner raises in an alarm) is kept in the launch, and set again
when all programs have left.

A program that waits for another one (`waits`) must not keep it from starting. If no program has begun for some time and
others are left, threads are started for them, twice as many each time. If that is not possible and nothing happens for ten
seconds, the launch fails with the code STARVED instead of waiting for ever.
"""

from tilework.targets.cpu.run.interface import FAULT, FUEL, FULL, INTERRUPTED, LAUNCHED, STARVED

# places in a launch, behind those of `pool_code.py`
OWNER, DEADLINE, EXCEPTION = 88, 96, 104  # its arena; when to look for signals; type, value and traceback
SEEN, SINCE, STARTING, EXTRA, STARTED = 128, 136, 144, 152, 160  # the last program known to begin, when; threads
MOST_EXTRA = 1024  # threads of one launch
SIGNALS_NS, STALL_NS, PATIENCE_NS = 200_000_000, 300_000, 10_000_000_000

POSIX_POLL = """
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)
declare i32 @usleep(i32)
define internal i64 @now() {
  %place = alloca [2 x i64], align 8
  call i32 @clock_gettime(i32 $CLOCK, ptr %place)
  %seconds = load i64, ptr %place
  %rest.at = getelementptr i8, ptr %place, i64 8
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}
define internal i64 @this_thread() {
  %self = call i64 @pthread_self()
  ret i64 %self
}
define internal void @pause_some(i32 %microseconds) {
  call i32 @usleep(i32 %microseconds)
  ret void
}
define internal void @sleep_some(ptr %condition) {
  %place = alloca [2 x i64], align 8
  call i32 @clock_gettime(i32 0, ptr %place)
  %rest.at = getelementptr i8, ptr %place, i64 8
  %rest = load i64, ptr %rest.at
  %later = add i64 %rest, 50000000
  %carry = icmp sge i64 %later, 1000000000
  %fewer = sub i64 %later, 1000000000
  %left = select i1 %carry, i64 %fewer, i64 %later
  store i64 %left, ptr %rest.at
  %second = zext i1 %carry to i64
  %seconds = load i64, ptr %place
  %until = add i64 %seconds, %second
  store i64 %until, ptr %place
  call i32 @pthread_cond_timedwait(ptr %condition, ptr @lock, ptr %place)
  ret void
}
define internal i1 @start_thread(ptr %launch) {
entry:
  %thread = alloca i64, align 8
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @extra_thread, ptr %launch)
  %good = icmp eq i32 %error, 0
  br i1 %good, label %started, label %out
started:
  %number = load i64, ptr %thread
  call i32 @pthread_detach(i64 %number)
  br label %out
out:
  ret i1 %good
}
"""

WINDOWS_POLL = """
declare i64 @GetTickCount64()
declare i32 @GetCurrentThreadId()
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @CloseHandle(ptr)
declare void @Sleep(i32)
define internal i64 @now() {
  %ticks = call i64 @GetTickCount64()
  %sum = mul i64 %ticks, 1000000
  ret i64 %sum
}
define internal i64 @this_thread() {
  %self = call i32 @GetCurrentThreadId()
  %wide = zext i32 %self to i64
  ret i64 %wide
}
define internal void @pause_some(i32 %microseconds) {
  %milliseconds = udiv i32 %microseconds, 1000
  call void @Sleep(i32 %milliseconds)
  ret void
}
define internal void @sleep_some(ptr %condition) {
  call i32 @SleepConditionVariableSRW(ptr %condition, ptr @lock, i32 50, i32 0)
  ret void
}
define internal i1 @start_thread(ptr %launch) {
entry:
  %thread = call ptr @CreateThread(ptr null, i64 0, ptr @extra_thread, ptr %launch, i32 0, ptr null)
  %good = icmp ne ptr %thread, null
  br i1 %good, label %started, label %out
started:
  call i32 @CloseHandle(ptr %thread)
  br label %out
out:
  ret i1 %good
}
"""

SIGNALS = f"""
@main_thread = internal global i64 0
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)

define void @pool_main(i64 %thread) {{
  store atomic i64 %thread, ptr @main_thread monotonic, align 8
  ret void
}}

define internal i32 @check_signals(ptr %launch) {{
entry:
  %main = load atomic i64, ptr @main_thread monotonic, align 8
  %self = call i64 @this_thread()
  %mine = icmp eq i64 %main, %self
  %known = icmp ne ptr %launch, null
  %may = and i1 %mine, %known
  br i1 %may, label %look, label %nothing
look:
  %fault.at = getelementptr i8, ptr %launch, i64 52
  %before = load atomic i32, ptr %fault.at monotonic, align 4
  %over = icmp ne i32 %before, 0
  br i1 %over, label %nothing, label %ask
ask:
  %state = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %keep, label %release
keep:
  %type.at = getelementptr i8, ptr %launch, i64 {EXCEPTION}
  %value.at = getelementptr i8, ptr %launch, i64 {EXCEPTION + 8}
  %trace.at = getelementptr i8, ptr %launch, i64 {EXCEPTION + 16}
  call void @PyErr_Fetch(ptr %type.at, ptr %value.at, ptr %trace.at)
  store atomic i32 {INTERRUPTED}, ptr %fault.at monotonic, align 4
  br label %release
release:
  call void @PyGILState_Release(i32 %state)
  %code = select i1 %bad, i32 {INTERRUPTED}, i32 0
  ret i32 %code
nothing:
  ret i32 0
}}
"""

ASKED = f"""
define i32 @pool_poll(ptr %arena, i32 %waits) {{
entry:
  %fuel.at = getelementptr i8, ptr %arena, i64 {FUEL}
  store i32 {FULL}, ptr %fuel.at
  %launch.at = getelementptr i8, ptr %arena, i64 {LAUNCHED}
  %launch = load ptr, ptr %launch.at
  %fault.at = getelementptr i8, ptr %launch, i64 52
  %fault = load atomic i32, ptr %fault.at monotonic, align 4
  %over = icmp ne i32 %fault, 0
  br i1 %over, label %leave, label %look
look:
  %now = call i64 @now()
  %owner.at = getelementptr i8, ptr %launch, i64 {OWNER}
  %owner = load ptr, ptr %owner.at
  %mine = icmp eq ptr %owner, %arena
  br i1 %mine, label %time, label %others
time:
  %deadline.at = getelementptr i8, ptr %launch, i64 {DEADLINE}
  %deadline = load i64, ptr %deadline.at
  %first = icmp eq i64 %deadline, 0
  %due = icmp sge i64 %now, %deadline
  %either = or i1 %first, %due
  br i1 %either, label %again, label %others
again:
  %later = add i64 %now, {SIGNALS_NS}
  store i64 %later, ptr %deadline.at
  br i1 %first, label %others, label %signals
signals:
  %raised = call i32 @check_signals(ptr %launch)
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %leave, label %others
others:
  %waiting = icmp ne i32 %waits, 0
  br i1 %waiting, label %wait, label %out
wait:
  call void @let_others(ptr %launch, i64 %now)
  br label %out
out:
  ret i32 0
leave:
  %code = phi i32 [ %fault, %entry ], [ %raised, %signals ]
  %place = getelementptr i8, ptr %arena, i64 {FAULT}
  store i32 %code, ptr %place
  ret i32 %code
}}
"""

WAITING = f"""
define internal ptr @extra_thread(ptr %launch) {{
  %worker = alloca [3 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %worker, i8 0, i64 24, i1 false)
  call void @run_launch(ptr %launch, i64 0, ptr %worker)
  %block.at = getelementptr i8, ptr %worker, i64 16
  %block = load ptr, ptr %block.at
  call void @free(ptr %block)
  %extra.at = getelementptr i8, ptr %launch, i64 {EXTRA}
  atomicrmw sub ptr %extra.at, i64 1 acq_rel, align 8
  ret ptr null
}}

define internal void @let_others(ptr %launch, i64 %now) {{
entry:
  %next.at = getelementptr i8, ptr %launch, i64 16
  %total.at = getelementptr i8, ptr %launch, i64 24
  %seen.at = getelementptr i8, ptr %launch, i64 {SEEN}
  %since.at = getelementptr i8, ptr %launch, i64 {SINCE}
  %lock.at = getelementptr i8, ptr %launch, i64 {STARTING}
  %extra.at = getelementptr i8, ptr %launch, i64 {EXTRA}
  %started.at = getelementptr i8, ptr %launch, i64 {STARTED}
  %next = load atomic i64, ptr %next.at monotonic, align 8
  %total = load i64, ptr %total.at
  %left = sub i64 %total, %next
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %look, label %rest
look:
  %seen = load atomic i64, ptr %seen.at monotonic, align 8
  %same = icmp eq i64 %seen, %next
  br i1 %same, label %time, label %news
news:
  store atomic i64 %next, ptr %seen.at monotonic, align 8
  store atomic i64 %now, ptr %since.at monotonic, align 8
  br label %rest
time:
  %since = load atomic i64, ptr %since.at monotonic, align 8
  %waited = sub i64 %now, %since
  %long = icmp sgt i64 %waited, {STALL_NS}
  br i1 %long, label %take, label %rest
take:
  %swap = cmpxchg ptr %lock.at, i64 0, i64 1 acq_rel monotonic, align 8
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %plan, label %rest
plan:
  %started = load atomic i64, ptr %started.at monotonic, align 8
  %double = add i64 %started, 1
  %room = sub i64 {MOST_EXTRA}, %started
  %few = call i64 @llvm.smin.i64(i64 %double, i64 %left)
  %count = call i64 @llvm.smin.i64(i64 %few, i64 %room)
  %possible = icmp sgt i64 %count, 0
  br i1 %possible, label %start, label %full
start:
  %index = phi i64 [ 0, %plan ], [ %more, %good ]
  atomicrmw add ptr %extra.at, i64 1 acq_rel, align 8
  %runs = call i1 @start_thread(ptr %launch)
  br i1 %runs, label %good, label %refused
good:
  %more = add i64 %index, 1
  %again = icmp slt i64 %more, %count
  br i1 %again, label %start, label %done
refused:
  atomicrmw sub ptr %extra.at, i64 1 acq_rel, align 8
  %any = icmp sgt i64 %index, 0
  br i1 %any, label %done, label %full
done:
  %new = phi i64 [ %more, %good ], [ %index, %refused ]
  %sum = add i64 %started, %new
  store atomic i64 %sum, ptr %started.at monotonic, align 8
  store atomic i64 %now, ptr %since.at monotonic, align 8
  br label %give
full:
  %hopeless = icmp sgt i64 %waited, {PATIENCE_NS}
  br i1 %hopeless, label %fail, label %give
fail:
  %fault.at = getelementptr i8, ptr %launch, i64 52
  %program.at = getelementptr i8, ptr %launch, i64 72
  %set = cmpxchg ptr %fault.at, i32 0, i32 {STARVED} monotonic monotonic, align 4
  %first = extractvalue {{ i32, i1 }} %set, 1
  br i1 %first, label %tell, label %give
tell:
  store i64 %next, ptr %program.at
  br label %give
give:
  store atomic i64 0, ptr %lock.at release, align 8
  br label %rest
rest:
  %others = load atomic i64, ptr %started.at monotonic, align 8
  %crowd = trunc i64 %others to i32
  %longer = mul i32 %crowd, 4
  %sleep = add i32 %longer, 20
  call void @pause_some(i32 %sleep)
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)

define internal void @wait_for_extra(ptr %launch) {{
entry:
  %extra.at = getelementptr i8, ptr %launch, i64 {EXTRA}
  br label %look
look:
  %round = phi i64 [ 0, %entry ], [ %later, %check ], [ %later, %again ]
  %left = load atomic i64, ptr %extra.at acquire, align 8
  %none = icmp eq i64 %left, 0
  br i1 %none, label %out, label %again
again:
  call void @pause_some(i32 100)
  %later = add i64 %round, 1
  %part = and i64 %later, 511
  %due = icmp eq i64 %part, 0
  br i1 %due, label %check, label %look
check:
  call i32 @check_signals(ptr %launch)
  br label %look
out:
  ret void
}}
"""

POLL_CODE = SIGNALS + ASKED + WAITING


def posix_poll(platform: str) -> str:
    """What the system gives, with its clock that does not jump."""
    return POSIX_POLL.replace("$CLOCK", "6" if platform == "darwin" else "1")
