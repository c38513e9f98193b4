"""The machine code that says what to do when a kernel kills the process: part of `pool_code.py`.

    pool_watch()        let a segmentation fault leave one line, if a kernel is running

The kernel that runs is noted, as a pointer to its name, in the word @running: a hint, since launches of several threads share
it. After the line, whoever was to handle the signal before does (Python's faulthandler, or the system).
"""

import signal

PATIENCE_US = 200_000  # of a thread that dies while another one tells why
SAVED = 256  # bytes of a struct sigaction, or more
BEFORE = b"tilework: the kernel "
BEHIND = (
    b" reads or writes memory outside of its arrays, and the process dies of it."
    b" Run it again with TRITON_SANITIZE=1: an error will name the line and the program\n"
)
SIGNALS = [int(getattr(signal, name)) for name in ("SIGSEGV", "SIGBUS") if hasattr(signal, name)]

RUNNING = "@running = global ptr null, align 8\n"


def text_of(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\{byte:02X}" for byte in data)


WATCH = f"""
@before = internal constant [{len(BEFORE)} x i8] c"{text_of(BEFORE)}"
@behind = internal constant [{len(BEHIND)} x i8] c"{text_of(BEHIND)}"
@saved = internal global [{SAVED * 64} x i8] zeroinitializer, align 16
@telling = internal global i32 0, align 4
declare i64 @write(i32, ptr, i64)
declare i64 @strlen(ptr)
declare ptr @signal(i32, ptr)
declare i32 @sigaction(i32, ptr, ptr)

define internal void @crashed(i32 %signal) {{
entry:
  %name = load atomic ptr, ptr @running monotonic, align 8
  %some = icmp ne ptr %name, null
  br i1 %some, label %ask, label %leave
ask:
  %telling = atomicrmw xchg ptr @telling, i32 1 acq_rel
  %alone = icmp eq i32 %telling, 0
  br i1 %alone, label %tell, label %wait
wait:
  call i32 @usleep(i32 {PATIENCE_US})
  br label %leave
tell:
  call i64 @write(i32 2, ptr @before, i64 {len(BEFORE)})
  %length = call i64 @strlen(ptr %name)
  call i64 @write(i32 2, ptr %name, i64 %length)
  call i64 @write(i32 2, ptr @behind, i64 {len(BEHIND)})
  store atomic i32 0, ptr @telling release, align 4
  br label %leave
leave:
  %wide = zext i32 %signal to i64
  %place = mul i64 %wide, {SAVED}
  %old = getelementptr i8, ptr @saved, i64 %place
  call i32 @sigaction(i32 %signal, ptr %old, ptr null)
  ret void
}}

define internal void @watch(i32 %signal) {{
  %wide = zext i32 %signal to i64
  %place = mul i64 %wide, {SAVED}
  %old = getelementptr i8, ptr @saved, i64 %place
  call i32 @sigaction(i32 %signal, ptr null, ptr %old)
  call ptr @signal(i32 %signal, ptr @crashed)
  ret void
}}

define void @pool_watch() {{
{chr(10).join(f"  call void @watch(i32 {number})" for number in SIGNALS)}
  ret void
}}
"""

NO_WATCH = """
define void @pool_watch() {
  ret void
}
"""
