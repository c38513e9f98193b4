"""The machine code of the thread pool: how work is offered, joined, finished and waited for, without Python and its lock.

    pool_launch(launch, helpers, worker)     run a grid, together with up to `helpers` others
    pool_share(nest, slots, size, step, arena)     the same for a nest of a running program; called by kernels (fork.py)
    pool_serve(worker)                       the life of a helper; never returns
    pool_reset()                             forget everybody, at the start and in a forked child
    pool_poll(arena, waits), pool_main(thread)     see `poll_code.py`
    pool_watch()                             see `crash_code.py`

Work on offer stands in one of JOBS places: a function, its two arguments, and a word with the tickets that are left (high
half) and the helpers at work (low half). Helpers take a ticket with one compare-and-swap; the owner takes the tickets away
when its own part is done, and waits until no helper is at work. Whoever joins while tickets are left wakes two more, so
that many threads start in few steps. A helper without work looks out for it for some microseconds, then sleeps.

The system's locks and conditions are used only to sleep: POSIX threads, or Windows' slim locks.

`cores.py` keeps helpers off the core of the thread that woke them.
"""

import struct
import sys

from tilework.targets.cpu.run.cores import LINUX_CORES, OTHER_CORES
from tilework.targets.cpu.run.crash_code import NO_WATCH, RUNNING, WATCH
from tilework.targets.cpu.run.interface import (
    COUNT,
    FAULT,
    FORK,
    FUEL,
    FULL,
    LAUNCHED,
    NO_MEMORY,
    POLL,
    PROGRAM,
    SHARERS,
)
from tilework.targets.cpu.run.poll_code import OWNER, POLL_CODE, WINDOWS_POLL, posix_poll

JOBS = 32  # launches and nests that can be on offer at the same time
SPINS = 2000  # looks at a word before a thread sleeps: some ten microseconds
NEST_CHUNKS = 4  # per thread

LINE = 64  # bytes of a job: its word, the function, two arguments, the owner's core
CLAIMED, WAITING, ACTIVE, TICKET = 1 << 31, 1 << 30, (1 << 30) - 1, 1 << 32  # parts of a job's word

# code, slots, next program, programs, programs of a chunk, grid, fault, arena bytes, threads that share nests, failed program,
# programs that the owner ran; then what `poll_code.py` needs
LAUNCH = struct.Struct("<QQqqqiiiiqqqq88x")
LAUNCH_PLACES = {"next": 16, "fault": 52, "program": 72, "count": 80, "name": 168}
WORKER = struct.Struct("<QQQ")  # the arena, its bytes, the block it lies in

EXPORTS = ("pool_launch", "pool_share", "pool_serve", "pool_reset", "pool_poll", "pool_main", "pool_watch", "running")
# a short wait of the processor: (declaration, call)
X86_PAUSE = ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()")
ARM_PAUSE = ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)")
PAUSE = {"aarch64": ARM_PAUSE, "arm64": ARM_PAUSE, "x86_64": X86_PAUSE, "amd64": X86_PAUSE}

POSIX = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
define internal void @prepare() {
  call i32 @pthread_mutex_init(ptr @lock, ptr null)
  call i32 @pthread_cond_init(ptr @work, ptr null)
  call i32 @pthread_cond_init(ptr @done, ptr null)
  ret void
}
define internal void @take_lock() {
  call i32 @pthread_mutex_lock(ptr @lock)
  ret void
}
define internal void @give_lock() {
  call i32 @pthread_mutex_unlock(ptr @lock)
  ret void
}
define internal void @sleep(ptr %condition) {
  call i32 @pthread_cond_wait(ptr %condition, ptr @lock)
  ret void
}
define internal void @wake_one() {
  call i32 @pthread_cond_signal(ptr @work)
  ret void
}
define internal void @wake_owners() {
  call i32 @pthread_cond_broadcast(ptr @done)
  ret void
}
"""

WINDOWS = """
declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)
declare void @WakeConditionVariable(ptr)
declare void @WakeAllConditionVariable(ptr)
define internal void @prepare() {
  store i64 0, ptr @lock
  store i64 0, ptr @work
  store i64 0, ptr @done
  ret void
}
define internal void @take_lock() {
  call void @AcquireSRWLockExclusive(ptr @lock)
  ret void
}
define internal void @give_lock() {
  call void @ReleaseSRWLockExclusive(ptr @lock)
  ret void
}
define internal void @sleep(ptr %condition) {
  call i32 @SleepConditionVariableSRW(ptr %condition, ptr @lock, i32 -1, i32 0)
  ret void
}
define internal void @wake_one() {
  call void @WakeConditionVariable(ptr @work)
  ret void
}
define internal void @wake_owners() {
  call void @WakeAllConditionVariable(ptr @done)
  ret void
}
"""

STATE = f"""
@lock = internal global [128 x i8] zeroinitializer, align 64
@work = internal global [128 x i8] zeroinitializer, align 64
@done = internal global [128 x i8] zeroinitializer, align 64
@epoch = internal global [64 x i8] zeroinitializer, align 64
@sleepers = internal global [64 x i8] zeroinitializer, align 64
@jobs = internal global [{JOBS * LINE} x i8] zeroinitializer, align 64
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @pool_reset() {{
  call void @prepare()
  store i64 0, ptr @epoch
  store i64 0, ptr @sleepers
  call void @forget_cores()
  call void @llvm.memset.p0.i64(ptr @jobs, i8 0, i64 {JOBS * LINE}, i1 false)
  ret void
}}
"""

# the one who changes the epoch and then finds no sleeper, and the one who notes that he sleeps and then finds the epoch
# unchanged, cannot be wrong both: all four accesses are sequentially consistent
WAKE = """
define internal void @wake_two() {
entry:
  atomicrmw add ptr @epoch, i64 1 seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %some = icmp sgt i64 %asleep, 0
  br i1 %some, label %signal, label %out
signal:
  call void @take_lock()
  call void @wake_one()
  call void @wake_one()
  call void @give_lock()
  call void @make_way()
  br label %out
out:
  ret void
}
"""

OPEN = f"""
define internal ptr @open(ptr %code, ptr %a, i64 %b, i64 %helpers) {{
entry:
  %wanted = icmp sgt i64 %helpers, 0
  br i1 %wanted, label %try, label %alone
try:
  %index = phi i64 [ 0, %entry ], [ %next, %taken ]
  %place = mul i64 %index, {LINE}
  %job = getelementptr i8, ptr @jobs, i64 %place
  %swap = cmpxchg ptr %job, i64 0, i64 {CLAIMED} acquire monotonic, align 8
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %fill, label %taken
taken:
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, {JOBS}
  br i1 %more, label %try, label %alone
fill:
  %code.at = getelementptr i8, ptr %job, i64 8
  %a.at = getelementptr i8, ptr %job, i64 16
  %b.at = getelementptr i8, ptr %job, i64 24
  store ptr %code, ptr %code.at
  store ptr %a, ptr %a.at
  store i64 %b, ptr %b.at
  %core = call i64 @mark_core()
  %core.at = getelementptr i8, ptr %job, i64 32
  store i64 %core, ptr %core.at
  %tickets = mul i64 %helpers, {TICKET}
  %word = or i64 %tickets, {CLAIMED}
  store atomic i64 %word, ptr %job release, align 8
  call void @wake_two()
  ret ptr %job
alone:
  ret ptr null
}}
"""

CLOSE = f"""
define internal void @close(ptr %job, ptr %launch) {{
entry:
  %nobody = icmp eq ptr %job, null
  br i1 %nobody, label %out, label %withdraw
withdraw:
  %core.at = getelementptr i8, ptr %job, i64 32
  %core = load i64, ptr %core.at
  call void @leave_core(i64 %core)
  atomicrmw and ptr %job, i64 {TICKET - 1} acq_rel, align 8
  br label %look
look:
  %spin = phi i64 [ 0, %withdraw ], [ %later, %again ]
  %word = load atomic i64, ptr %job acquire, align 8
  %active = and i64 %word, {ACTIVE}
  %ready = icmp eq i64 %active, 0
  br i1 %ready, label %leave, label %again
again:
  $PAUSE
  %later = add i64 %spin, 1
  %patient = icmp ult i64 %later, {SPINS}
  br i1 %patient, label %look, label %settle
settle:
  call void @take_lock()
  atomicrmw or ptr %job, i64 {WAITING} acq_rel, align 8
  br label %check
check:
  %now = load atomic i64, ptr %job acquire, align 8
  %left = and i64 %now, {ACTIVE}
  %over = icmp eq i64 %left, 0
  br i1 %over, label %unlock, label %wait
wait:
  call void @sleep_some(ptr @done)
  call void @give_lock()
  call i32 @check_signals(ptr %launch)
  call void @take_lock()
  br label %check
unlock:
  call void @give_lock()
  br label %leave
leave:
  store atomic i64 0, ptr %job release, align 8
  br label %out
out:
  ret void
}}
"""

SERVE = f"""
define void @pool_serve(ptr %worker) {{
entry:
  br label %begin
begin:
  %seen = load atomic i64, ptr @epoch seq_cst, align 8
  br label %scan
scan:
  %index = phi i64 [ 0, %begin ], [ %next, %skip ]
  %place = mul i64 %index, {LINE}
  %job = getelementptr i8, ptr @jobs, i64 %place
  %word = load atomic i64, ptr %job monotonic, align 8
  br label %offer
offer:
  %seen.word = phi i64 [ %word, %scan ], [ %other, %join ]
  %open = icmp uge i64 %seen.word, {TICKET}
  br i1 %open, label %join, label %skip
join:
  %taken = add i64 %seen.word, {1 - TICKET}
  %swap = cmpxchg ptr %job, i64 %seen.word, i64 %taken acquire monotonic, align 8
  %other = extractvalue {{ i64, i1 }} %swap, 0
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %joined, label %offer
joined:
  %others = icmp uge i64 %taken, {TICKET}
  br i1 %others, label %call, label %run
call:
  call void @wake_two()
  br label %run
run:
  %code.at = getelementptr i8, ptr %job, i64 8
  %a.at = getelementptr i8, ptr %job, i64 16
  %b.at = getelementptr i8, ptr %job, i64 24
  %code = load ptr, ptr %code.at
  %a = load ptr, ptr %a.at
  %b = load i64, ptr %b.at
  %core = call i64 @find_core()
  call void %code(ptr %a, i64 %b, ptr %worker)
  call void @leave_core(i64 %core)
  %before = atomicrmw sub ptr %job, i64 1 acq_rel, align 8
  %parts = and i64 %before, {WAITING | ACTIVE}
  %awaited = icmp eq i64 %parts, {WAITING | 1}
  br i1 %awaited, label %tell, label %begin
tell:
  call void @take_lock()
  call void @wake_owners()
  call void @give_lock()
  br label %begin
skip:
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, {JOBS}
  br i1 %more, label %scan, label %look
look:
  %spin = phi i64 [ 0, %skip ], [ %later, %again ]
  %news = load atomic i64, ptr @epoch monotonic, align 8
  %same = icmp eq i64 %news, %seen
  br i1 %same, label %again, label %begin
again:
  $PAUSE
  %later = add i64 %spin, 1
  %patient = icmp ult i64 %later, {SPINS}
  br i1 %patient, label %look, label %doze
doze:
  call void @take_lock()
  atomicrmw add ptr @sleepers, i64 1 seq_cst, align 8
  br label %check
check:
  %latest = load atomic i64, ptr @epoch seq_cst, align 8
  %still = icmp eq i64 %latest, %seen
  br i1 %still, label %wait, label %wake
wait:
  call void @sleep(ptr @work)
  br label %check
wake:
  atomicrmw sub ptr @sleepers, i64 1 seq_cst, align 8
  call void @give_lock()
  br label %begin
}}
"""

ARENA = """
define internal ptr @arena_of(ptr %worker, i64 %bytes) {
entry:
  %size.at = getelementptr i8, ptr %worker, i64 8
  %block.at = getelementptr i8, ptr %worker, i64 16
  %size = load i64, ptr %size.at
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %have, label %grow
have:
  %known = load ptr, ptr %worker
  ret ptr %known
grow:
  %old = load ptr, ptr %block.at
  call void @free(ptr %old)
  %room = add i64 %bytes, 4096
  %block = call ptr @malloc(i64 %room)
  store ptr %block, ptr %block.at
  %none = icmp eq ptr %block, null
  %kept = select i1 %none, i64 0, i64 %bytes
  store i64 %kept, ptr %size.at
  %number = ptrtoint ptr %block to i64
  %above = add i64 %number, 4095
  %even = and i64 %above, -4096
  %start = inttoptr i64 %even to ptr
  %arena = select i1 %none, ptr null, ptr %start
  store ptr %arena, ptr %worker
  ret ptr %arena
}
"""

RUN = f"""
define internal void @run_launch(ptr %launch, i64 %unused, ptr %worker) {{
entry:
  %slots.at = getelementptr i8, ptr %launch, i64 8
  %next = getelementptr i8, ptr %launch, i64 16
  %total.at = getelementptr i8, ptr %launch, i64 24
  %chunk.at = getelementptr i8, ptr %launch, i64 32
  %x.at = getelementptr i8, ptr %launch, i64 40
  %y.at = getelementptr i8, ptr %launch, i64 44
  %z.at = getelementptr i8, ptr %launch, i64 48
  %fault.at = getelementptr i8, ptr %launch, i64 52
  %bytes.at = getelementptr i8, ptr %launch, i64 56
  %sharers.at = getelementptr i8, ptr %launch, i64 64
  %program.at = getelementptr i8, ptr %launch, i64 72
  %code = load ptr, ptr %launch
  %slots = load ptr, ptr %slots.at
  %total = load i64, ptr %total.at
  %chunk = load i64, ptr %chunk.at
  %x = load i32, ptr %x.at
  %y = load i32, ptr %y.at
  %z = load i32, ptr %z.at
  %bytes = load i64, ptr %bytes.at
  %sharers = load i64, ptr %sharers.at
  %arena = call ptr @arena_of(ptr %worker, i64 %bytes)
  %none = icmp eq ptr %arena, null
  br i1 %none, label %poor, label %work
poor:
  store atomic i32 {NO_MEMORY}, ptr %fault.at monotonic, align 4
  store atomic i64 %total, ptr %next monotonic, align 8
  ret void
work:
  %arena.fault = getelementptr i8, ptr %arena, i64 {FAULT}
  %arena.fork = getelementptr i8, ptr %arena, i64 {FORK}
  %arena.sharers = getelementptr i8, ptr %arena, i64 {SHARERS}
  %arena.program = getelementptr i8, ptr %arena, i64 {PROGRAM}
  store i32 0, ptr %arena.fault
  %arena.fuel = getelementptr i8, ptr %arena, i64 {FUEL}
  %arena.poll = getelementptr i8, ptr %arena, i64 {POLL}
  %arena.launch = getelementptr i8, ptr %arena, i64 {LAUNCHED}
  store i32 {FULL}, ptr %arena.fuel
  store ptr @pool_poll, ptr %arena.poll
  store ptr %launch, ptr %arena.launch
  %several = icmp sgt i64 %sharers, 1
  %helper = select i1 %several, ptr @pool_share, ptr null
  store ptr %helper, ptr %arena.fork
  store i64 %sharers, ptr %arena.sharers
  %failed = call i32 %code(ptr %slots, ptr %next, i64 %total, i64 %chunk, i32 %x, i32 %y, i32 %z, ptr %arena)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %note, label %out
note:
  %swap = cmpxchg ptr %fault.at, i32 0, i32 %failed monotonic monotonic, align 4
  %first = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %first, label %tell, label %out
tell:
  %program = load i64, ptr %arena.program
  store i64 %program, ptr %program.at
  br label %out
out:
  ret void
}}

define void @pool_launch(ptr %launch, i64 %helpers, ptr %worker) {{
  %bytes.at = getelementptr i8, ptr %launch, i64 56
  %bytes = load i64, ptr %bytes.at
  %own = call ptr @arena_of(ptr %worker, i64 %bytes)
  %owner.at = getelementptr i8, ptr %launch, i64 {OWNER}
  store ptr %own, ptr %owner.at
  %name.at = getelementptr i8, ptr %launch, i64 {LAUNCH_PLACES["name"]}
  %name = load ptr, ptr %name.at
  %outer = load atomic ptr, ptr @running monotonic, align 8
  store atomic ptr %name, ptr @running monotonic, align 8
  %job = call ptr @open(ptr @run_launch, ptr %launch, i64 0, i64 %helpers)
  call void @run_launch(ptr %launch, i64 0, ptr %worker)
  %arena = load ptr, ptr %worker
  %count.at = getelementptr i8, ptr %arena, i64 {COUNT}
  %count = load i64, ptr %count.at
  %ran.at = getelementptr i8, ptr %launch, i64 80
  store i64 %count, ptr %ran.at
  call void @close(ptr %job, ptr %launch)
  call void @wait_for_extra(ptr %launch)
  store atomic ptr %outer, ptr @running monotonic, align 8
  ret void
}}

define void @pool_share(ptr %nest, ptr %slots, i64 %size, i64 %step, ptr %arena) {{
  %sharers.at = getelementptr i8, ptr %arena, i64 {SHARERS}
  %threads = load i64, ptr %sharers.at
  %parts = mul i64 %threads, {NEST_CHUNKS}
  %portion = mul i64 %parts, %step
  %rounded = add i64 %size, %portion
  %above = sub i64 %rounded, 1
  %steps = udiv i64 %above, %portion
  %chunk = mul i64 %steps, %step
  %helpers = sub i64 %threads, 1
  %job = call ptr @open(ptr %nest, ptr %slots, i64 %chunk, i64 %helpers)
  call void %nest(ptr %slots, i64 %chunk, ptr null)
  %launch.at = getelementptr i8, ptr %arena, i64 {LAUNCHED}
  %launch = load ptr, ptr %launch.at
  call void @close(ptr %job, ptr %launch)
  ret void
}}
"""


def pool_text(architecture: str, platform: str = sys.platform) -> str:
    """The whole module for a machine; `architecture` is what `platform.machine()` calls it."""
    declaration, pause = PAUSE.get(architecture.lower(), ("", ""))
    system = WINDOWS + WINDOWS_POLL if platform == "win32" else POSIX + posix_poll(platform)
    cores = LINUX_CORES if platform.startswith("linux") else OTHER_CORES
    crash = RUNNING + (NO_WATCH if platform == "win32" else WATCH)
    text = declaration + STATE + system + cores + WAKE + OPEN + CLOSE + SERVE + ARENA + RUN + POLL_CODE + crash
    return text.replace("$PAUSE", pause)
