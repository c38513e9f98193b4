"""The thread pool in odd situations: forks, signals, exits, no threads or memory left, kernels launched by kernels that
print, launches that follow each other and none at all.

Whatever happens, a launch that returns has done its work, and the process goes on. Situations that change a whole
process are put into scripts, which all start with the same kernels.
"""

from collections.abc import Callable

import pytest

from tests.targets.pool_scripts import Scripts

Run = Callable[..., str]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """They have the same path and the same cache, so that the kernels are compiled once."""
    return Scripts(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def run(scripts: Scripts) -> Run:
    return scripts.run


FORKED = """
def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs dies of it
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return child

"""


@pytest.mark.parametrize("native", ["0", "1"])
def test_parent_and_child_launch_at_the_same_time(run: Run, native: str) -> None:
    """While a third thread does, in the parent; scratch memory is not shared."""
    text = """
check()
stop = []
def go_on():
    while not stop:
        check()
thread = threading.Thread(target=go_on)
thread.start()
children = [in_child(lambda: [check() for _ in range(8)]) for _ in range(3)]
for _ in range(8):
    check()
print([os.waitpid(child, 0)[1] for child in children])
stop.append(1)
thread.join()
"""
    assert run(FORKED + text, TILEWORK_NATIVE_LAUNCH=native) == "[0, 0, 0]\n"


def test_scratch_memory_is_private(run: Run) -> None:
    text = """
arena = pool.Arena()
arena.memory[100] = 7
def change():
    arena.memory[100] = 8
os.waitpid(in_child(change), 0)
print(arena.memory[100])
"""
    assert run(FORKED + text) == "7\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(run: Run, method: str) -> None:
    text = f"""
import multiprocessing
def work(number):
    check()
    return number
if __name__ == "__main__":
    check()
    with multiprocessing.get_context({method!r}).Pool(2) as workers:
        print(workers.map(work, range(4)))
    check()
"""
    assert run(text) == "[0, 1, 2, 3]\n"


def test_forty_threads(run: Run) -> None:
    text = """
done = []
def work():
    check()
    done.append(1)
check()
threads = [threading.Thread(target=work) for _ in range(40)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(done))
"""
    assert run(text) == "40\n"


def test_a_signal_handler_launches_while_workers_are_started(run: Run) -> None:
    """The handler runs in the very thread that holds the lock."""
    text = """
seen = []
signal.signal(signal.SIGUSR1, lambda *_: (check_add(), seen.append(1)))
load, add_worker = pool.Pool.load, pool.Pool.add_worker
def interrupted(method):
    def call(self):
        signal.raise_signal(signal.SIGUSR1)
        result = method(self)
        signal.raise_signal(signal.SIGUSR1)
        return result
    return call
pool.Pool.load, pool.Pool.add_worker = interrupted(load), interrupted(add_worker)
check(), check_sums(256)  # as many workers as there may be: short launches start fewer
print(len(seen), pool.POOL.count)
"""
    assert run(text) == "8 3\n"


def test_a_signal_every_millisecond(run: Run) -> None:
    text = """
check()
seen = []
signal.signal(signal.SIGALRM, lambda *_: (check_add(1 << 12), check_sums(2), seen.append(1)))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while len(seen) < 200:
    check()
signal.setitimer(signal.ITIMER_REAL, 0)
check()
print("ok")
"""
    assert run(text) == "ok\n"


def test_objects_that_launch_when_they_die(run: Run) -> None:
    """In the middle of a launch's Python code, and when the interpreter ends."""
    text = """
class Last:
    def __init__(self):
        self.me = self
    def __del__(self):
        check_add(1 << 12)
        check_sums(2)
atexit.register(lambda: (check(), print("end", flush=True)))
gc.set_threshold(50)
check()
kept = Last()
for _ in range(50):
    Last()
    check_add(1 << 12)
"""
    assert run(text) == "end\n"


@pytest.mark.parametrize("kind", ["launch", "print"])
def test_the_interpreter_ends_while_threads_launch(run: Run, kind: str) -> None:
    text = f"""
kind = {kind!r}
def launch():
    x = numbers(16)
    while True:
        show[(16,)](x, np.zeros_like(x), B=1024) if kind == "print" else check()
check()
if kind == "print":
    sys.stdout = open(os.devnull, "w")
for _ in range(4):
    threading.Thread(target=launch, daemon=True).start()
time.sleep(0.1)
"""
    run(text)


def test_a_thread_that_exits_and_one_that_is_interrupted(run: Run) -> None:
    text = """
def leave():
    check()
    sys.exit(3)
thread = threading.Thread(target=leave)
thread.start()
check()
thread.join()
for _ in range(5):
    interrupted = False
    try:  # on a busy machine the signal may come before `start` returns
        threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        while True:
            check_sums(256)
    except KeyboardInterrupt:
        interrupted = True
    check()
    assert interrupted
"""
    run(text)


@pytest.mark.parametrize("native", ["0", "1"])
def test_too_few_threads(run: Run, native: str) -> None:
    """As with `ulimit -u`: the system refuses, and the launch goes on with those that there are."""
    text = """
start, made = threading.Thread.start, []
def refuse(thread):
    if len(made) == 2:
        raise RuntimeError("can't start new thread")
    if thread.daemon:  # a worker
        made.append(thread)
    start(thread)
threading.Thread.start = refuse
check()
check()
print(pool.POOL.count, len(made))
"""
    assert run(text, TILEWORK_NUM_THREADS="64", TILEWORK_NATIVE_LAUNCH=native) == "2 2\n"


def test_more_threads_than_cores(run: Run) -> None:
    """And no more of them than the largest grid has programs."""
    assert 15 <= int(run("check()\ncheck_sums(256)\nprint(pool.POOL.count)", TILEWORK_NUM_THREADS="300")) <= 255


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_first_launch_starts_threads_for_work_that_is_worth_it(run: Run, native: str) -> None:
    """Nothing is known of a kernel: some programs run first, and the rest, or a fault of it, is as ever."""
    text = """
@tilework.jit
def count(x, least: tl.constexpr):
    i = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    tl.device_assert(i < least, "too many")
    tl.atomic_add(x + i, 1)
seen = np.zeros(5000, "i4")
count[(2,)](seen, least=5000)
print(pool.POOL.count, seen[:3])
seen[:] = 0
count[(50, 100)](seen, least=5001, debug=True)
print((seen == 1).all())
try:
    count[(50, 100)](seen, least=4321, debug=True)
except RuntimeError as error:
    program = eval(str(error).partition("program ")[2].removesuffix("]"))
    print(program[0] + 50 * program[1] >= 4321)
"""
    printed = run(text, TILEWORK_NUM_THREADS="16", TILEWORK_NATIVE_LAUNCH=native)
    assert printed == "0 [1 1 0]\nTrue\nTrue\n"


def test_numbers_of_threads_that_make_no_sense(run: Run) -> None:
    text = """
for number in ("0", "-3", "5000000000", "9" * 40, "", "1.5"):
    os.environ["TILEWORK_NUM_THREADS"] = number
    try:
        check()
    except (ValueError, RuntimeError) as error:
        assert "TILEWORK_NUM_THREADS" in str(error), error
        print("refused")
os.environ["TILEWORK_NUM_THREADS"] = " 2 "
check()
print(pool.POOL.count)
"""
    assert run(text) == "refused\n" * 6 + "1\n"


@pytest.mark.parametrize("native", ["0", "1"])
def test_no_memory_for_scratch(run: Run, native: str) -> None:
    """A MemoryError, however often one tries, and small kernels still run."""
    text = """
@tilework.jit
def centred(x, out, B: tl.constexpr):  # the sums are kept until the largest is known
    i = tl.program_id(0) * B + tl.arange(0, B)
    sums = tl.cumsum(tl.load(x + i))
    tl.store(out + i, sums - tl.max(sums))

B = 1 << 20
x, out = np.ones(B, "f4"), np.zeros(B, "f4")
check()
centred[(2,)](x[: B // 2], out[: B // 2], B=B // 4)
centred.warmup(x, out, B=B, grid=(1,))
x = np.ones(4 * B, "f4")
out = np.zeros(4 * B, "f4")
used = int(open("/proc/self/statm").read().split()[0]) * 4096
limit = resource.getrlimit(resource.RLIMIT_AS)[1]
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), limit))
failed = 0
for grid in (1, 1, 4, 4):
    try:
        centred[(grid,)](x, out, B=B)
    except MemoryError:
        failed += 1
check_add(1 << 12)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
centred[(4,)](x, out, B=B)
assert (out.reshape(4, B) == np.arange(1 - B, 1)).all()
print(failed)
"""
    assert run(text, TILEWORK_NATIVE_LAUNCH=native) == "4\n"


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("threads", ["1", "4"])
def test_what_is_printed_launches(run: Run, native: str, threads: str) -> None:
    """Inside of the launch that prints, maybe in the same thread: the scratch memory of both stays theirs."""
    text = """
class Launching:
    written = 0
    def write(self, text):
        self.written += text.count("largest")
        check_sums(3)
        check_add(1 << 10)
    def flush(self):
        pass
check()
x = numbers(16)
y = np.zeros_like(x)
stdout, sys.stdout = sys.stdout, Launching()
for launches in range(1, 4):
    y[:] = 0
    show[(16,)](x, y, B=1024)
    assert (y == expected(x)).all() and sys.stdout.written == 16 * launches, launches
sys.stdout = stdout
print("ok")
"""
    assert run(text, TILEWORK_NATIVE_LAUNCH=native, TILEWORK_NUM_THREADS=threads) == "ok\n"


def test_asserts_that_fail_in_many_threads(run: Run) -> None:
    text = """
x = np.zeros(1 << 16, "f4")
def fail():
    for _ in range(20):
        try:
            positive[(256,)](x, B=256, debug=True)
        except RuntimeError as error:
            assert "not positive" in str(error), error
            failed.append(1)
failed = []
threads = [threading.Thread(target=fail) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
check()
print(len(failed))
"""
    assert run(text) == "160\n"


@pytest.mark.parametrize("phase", ["llvm", "jit", "image", "loading", "launcher", "hashing"])
def test_a_fork_while_another_thread_compiles(run: Run, phase: str) -> None:
    """The child finds no lock taken by a thread that it does not have."""
    text = f"""
place = {phase!r}
import llvmlite.binding as llvm
from tilework.targets.llvm import compile, object_loader
from tilework.runtime.launch.native import machine as native_machine
def to_llvm(*_):
    raise object_loader.Unknown
check()  # imports everything: Python itself cannot fork while another thread imports
add = tilework.jit(add.fn)
compile.host_jit.cache_clear()
old_launcher = native_machine.MADE[:]  # other kernels still use it
native_machine.MADE.clear()
inside = threading.Event()
def wait(*_):
    if threading.current_thread() is not threading.main_thread() and not inside.is_set():
        inside.set()
        time.sleep(0.1)
if place == "llvm":
    parse = llvm.parse_assembly
    compile.llvm.parse_assembly = lambda *a: (parse(*a), hold_llvm())[0]
    def hold_llvm():
        with llvm.ffi.lib._lock:
            wait()
elif place == "jit":
    create = llvm.create_lljit_compiler
    object_loader.mapped = to_llvm
    compile.llvm.create_lljit_compiler = lambda *a, **k: (wait(), create(*a, **k))[1]
elif place == "image":
    image = object_loader.Layout.image
    object_loader.Layout.image = lambda *a: (wait(), image(*a))[1]
elif place == "loading":
    knobs.runtime.kernel_load_start_hook.add(wait)
elif place == "hashing":
    from tilework.language.function import JITCallable
    digest = JITCallable._hash_now
    JITCallable._hash_now = lambda fn: (wait(), digest(fn))[1]
elif place == "launcher":
    plain = native_machine.is_plain_python
    native_machine.is_plain_python = lambda: (wait(), plain())[1]
with knobs.cache.scope():
    if place == "llvm":
        knobs.cache.dir = os.path.join(os.path.dirname(__file__), "empty")
    thread = threading.Thread(target=check_add)
    thread.start()
    assert inside.wait(100)
    child = in_child(check)
    print(os.waitpid(child, 0)[1])
    thread.join()
check()
"""
    assert run(FORKED + text) == "0\n"


@pytest.mark.parametrize("phase", ["jit", "image", "launcher", "loading"])
def test_a_signal_handler_launches_while_the_first_launch_loads(run: Run, phase: str) -> None:
    text = f"""
place = {phase!r}
import llvmlite.binding as llvm
from tilework.targets.llvm import compile, object_loader
from tilework.runtime.launch.native import machine as native_machine
def to_llvm(*_):
    raise object_loader.Unknown
seen = []
signal.signal(signal.SIGUSR1, lambda *_: (seen.append(1), check_sums(2), check_add(1 << 12), gc.collect()))
def strike(*_):
    if not seen:
        signal.raise_signal(signal.SIGUSR1)
if place == "jit":
    create = llvm.create_lljit_compiler
    object_loader.mapped = to_llvm
    compile.llvm.create_lljit_compiler = lambda *a, **k: (strike(), create(*a, **k))[1]
elif place == "image":
    image = object_loader.Layout.image
    object_loader.Layout.image = lambda *a: (strike(), image(*a))[1]
elif place == "loading":
    knobs.runtime.kernel_load_start_hook.add(strike)
else:
    plain = native_machine.is_plain_python
    native_machine.is_plain_python = lambda: (strike(), plain())[1]
check()
gc.collect()
check()
print(len(seen))
"""
    assert run(text) == "1\n"


def test_an_interrupt_while_a_kernel_prints(run: Run) -> None:
    """It reaches the one who launches, not the machine code that has called back."""
    text = """
class Interrupted:
    times = 0
    def write(self, text):
        self.times += 1
        if self.times < 3:  # the second one comes while the first waits
            signal.raise_signal(signal.SIGINT)
x = numbers(16)
y = np.zeros_like(x)
stdout, sys.stdout = sys.stdout, Interrupted()
try:
    show[(16,)](x, y, B=1024)
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted", file=stdout)
assert (y == expected(x)).all()
sys.stdout = None
show[(16,)](x, y, B=1024)
"""
    assert run(text, TILEWORK_NUM_THREADS="1") == "interrupted\n"


def test_a_worker_is_awake_between_launches_and_asleep_after_them(run: Run) -> None:
    """It uses no more of the processor then; a forked child has none that is awake."""
    text = """
print(ready())
check()
print(until(lambda: (check_sums(), ready())[1] > 0))
child = os.fork()
if child == 0:
    os._exit(ready())
print(os.waitpid(child, 0)[1])
print(until(lambda: ready() == 0))
start = time.process_time()
time.sleep(0.1)
print(time.process_time() - start < 0.05)
"""
    assert run(text) == "0\nTrue\n0\nTrue\nTrue\n"


@pytest.mark.parametrize("threads, workers", [("1", 0), ("2", 1)])
def test_short_launches_that_follow_each_other_are_shared(run: Run, threads: str, workers: int) -> None:
    """A single one would not wake a worker, which takes some ten microseconds."""
    text = """
x, y = np.ones(1 << 14, "f4"), np.zeros(1 << 14, "f4")
def launch():
    add[(64,)](x, y, 1 << 14, B=256)
    return pool.POOL.count
launch()
end = time.monotonic() + (0.1 if os.environ["TILEWORK_NUM_THREADS"] == "1" else 1)  # with one there is none to wait for
while not launch() and time.monotonic() < end:
    pass
assert (y == 2).all()
print(launch())
"""
    assert run(text, TILEWORK_NUM_THREADS=threads) == f"{workers}\n"
