"""On which core a thread of the pool works.

Linux often wakes a helper on the core of the thread that woke it, and lets the two share it for milliseconds while another
core is idle. So threads at work mark their cores, a helper that finds itself on a marked one moves to one that is not, and
whoever has woken others gives way once, so that they can run and see where they are.

    mark_core()       say that this thread works on its core; the core, or -1 if another one does or it is not known
    find_core()       the same, after a move to a free core if need be
    leave_core(core)  take the mark away
    make_way()        let somebody else run who waits for this core
"""

CORES = 1024  # the most that are told apart

LINUX_CORES = f"""
@cores = internal global [{CORES // 8} x i8] zeroinitializer, align 64
declare i32 @sched_getcpu()
declare i32 @sched_yield()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
define internal void @make_way() {{
  call i32 @sched_yield()
  ret void
}}
define internal i64 @mark_core() {{
entry:
  %number = call i32 @sched_getcpu()
  %known = icmp ult i32 %number, {CORES}
  br i1 %known, label %mark, label %none
mark:
  %core = zext i32 %number to i64
  %place = lshr i64 %core, 6
  %shift = and i64 %core, 63
  %bit = shl i64 1, %shift
  %word = getelementptr i64, ptr @cores, i64 %place
  %before = atomicrmw or ptr %word, i64 %bit monotonic, align 8
  %taken = and i64 %before, %bit
  %mine = icmp eq i64 %taken, 0
  br i1 %mine, label %have, label %none
have:
  ret i64 %core
none:
  ret i64 -1
}}
define internal void @leave_core(i64 %core) {{
entry:
  %none = icmp slt i64 %core, 0
  br i1 %none, label %out, label %clear
clear:
  %place = lshr i64 %core, 6
  %shift = and i64 %core, 63
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %word = getelementptr i64, ptr @cores, i64 %place
  atomicrmw and ptr %word, i64 %others monotonic, align 8
  br label %out
out:
  ret void
}}
define internal i64 @find_core() {{
entry:
  %allowed = alloca [{CORES // 8} x i8], align 8
  %free = alloca [{CORES // 8} x i8], align 8
  %here = call i64 @mark_core()
  %good = icmp sge i64 %here, 0
  br i1 %good, label %stay, label %ask
ask:
  %asked = call i32 @sched_getaffinity(i32 0, i64 {CORES // 8}, ptr %allowed)
  %told = icmp sge i32 %asked, 0
  br i1 %told, label %look, label %stay
look:
  %index = phi i64 [ 0, %ask ], [ %next, %look ]
  %found = phi i64 [ 0, %ask ], [ %all, %look ]
  %allowed.at = getelementptr i64, ptr %allowed, i64 %index
  %cores.at = getelementptr i64, ptr @cores, i64 %index
  %free.at = getelementptr i64, ptr %free, i64 %index
  %mine = load i64, ptr %allowed.at
  %busy = load atomic i64, ptr %cores.at monotonic, align 8
  %idle = xor i64 %busy, -1
  %word = and i64 %mine, %idle
  store i64 %word, ptr %free.at
  %all = or i64 %found, %word
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, {CORES // 64}
  br i1 %more, label %look, label %decide
decide:
  %crowded = icmp eq i64 %all, 0
  br i1 %crowded, label %stay, label %move
move:
  call i32 @sched_setaffinity(i32 0, i64 {CORES // 8}, ptr %free)
  %there = call i64 @mark_core()
  call i32 @sched_setaffinity(i32 0, i64 {CORES // 8}, ptr %allowed)
  ret i64 %there
stay:
  ret i64 %here
}}
define internal void @forget_cores() {{
  call void @llvm.memset.p0.i64(ptr @cores, i8 0, i64 {CORES // 8}, i1 false)
  ret void
}}
"""

OTHER_CORES = """
define internal void @make_way() {
  ret void
}
define internal i64 @mark_core() {
  ret i64 -1
}
define internal void @leave_core(i64 %core) {
  ret void
}
define internal i64 @find_core() {
  ret i64 -1
}
define internal void @forget_cores() {
  ret void
}
"""
