"""Compiles for all processes of a user: one process with the compiler loaded, which forks workers.

    client ─ context, requests ─▶ server ─ fork ─▶ worker: adopts the context, imports the kernel, compiles into the disk cache
           ◀─ outcome of each ───        ◀────────

As many workers compile at a time as there are cores, whoever asks; of those who wait, the client with the fewest at work is
next. One worker is there before somebody asks: it has compiled a simple kernel, and while it waits another one compiles more, and takes its place. What two clients ask for is compiled once. A client that goes away takes its waiting requests along; what is being
compiled for it is finished, for the disk cache. A worker that dies is replaced, once per request: the second time it is the
kernel's fault. Without clients and work for a while (TILEWORK_SERVER_IDLE seconds) the server ends.

It runs no kernels, touches no GPU, and loads no code of the user's: workers do that, each for one client.
"""

import gc
import os
import select
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tilework import knobs
from tilework.runtime.kernel_cache.key import triton_key
from tilework.runtime.workers.compile_worker import fork_worker
from tilework.runtime.workers.line_channel import Channel, Message
from tilework.runtime.workers.process_context import is_context
from tilework.runtime.workers.server_place import is_own_peer
from tilework.runtime.workers.warm_compiler import likely_target, load_compiler, load_frontend
from tilework.targets.cpu.processor import available_cores

ATTEMPTS = 2  # a worker may be killed for reasons that are not the kernel's: try again once
LOOK_EVERY = 1.0  # seconds
SIGNS_OF_LIFE = ("loaded", "working")
MOST_WARM = 2  # targets that a worker tries before somebody asks
PAUSE = 0.2  # seconds after an answer in which its client may ask again
KEPT = 2.0  # seconds that a worker waits for more of a client that is still there
MOST_UNWANTED = 60.0  # seconds that a compilation may go on when all who asked for it are gone


@dataclass(eq=False)
class Client:
    """A connected process: what its workers must know, and how many it may have."""

    channel: Channel
    context: Message | None = None
    limit: int = 1


@dataclass(eq=False)
class Job:
    """One compilation, and who waits for it, under which number and in which words; it is done for the first of them."""

    key: str
    askers: list[tuple[Client, int, Message]]
    attempts: int = 0

    @property
    def client(self) -> Client:
        return self.askers[0][0]


@dataclass(eq=False)
class Worker:
    """A forked process that works for one client, or waits for one; with `job`, it works now."""

    process: int
    channel: Channel
    client: Client | None = None
    job: Job | None = None
    loaded: bool = False
    is_thorough: bool = False
    is_paused: bool = False
    free_since: float = 0.0
    unwanted_since: float | None = None


@dataclass(eq=False)
class Server:
    """See the module."""

    listener: socket.socket
    cores: int = field(default_factory=available_cores)
    clients: list[Client] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    spare: Worker | None = None  # that waits for a client
    coming: Worker | None = None  # that will, after its exercises
    targets: list[Any] = field(default_factory=list)  # that somebody has asked for, the last one last
    loaded: list[Any] = field(default_factory=list)  # one of each backend
    half_loaded: list[Any] = field(default_factory=list)  # those of them of which simple kernels need nothing more
    ends: int | None = None  # a handle that is readable when the server is to end
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self, idle_seconds: float) -> None:
        """Serve until nobody has asked for a while."""
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, lambda mask: self.accept())
        if self.ends is not None:
            self.selector.register(self.ends, selectors.EVENT_READ, lambda mask: None)
        last, events = time.monotonic(), [None]
        while time.monotonic() - last < idle_seconds and not is_over(self.ends):
            if self.half_loaded and not events and self.is_quiet():
                self.load_the_rest()
            look_after = LOOK_EVERY if self.prepare() and not self.half_loaded else PAUSE
            events = self.selector.select(min(look_after, idle_seconds))
            for key, mask in events:
                now = self.selector.get_map().get(key.fd)
                if now is not None and now.data is key.data:  # not removed by an event before it
                    key.data(mask)
            self.dispatch()
            self.end_unwanted()
            self.end_idle()
            self.pause_exercises()
            if events or self.is_busy():
                last = time.monotonic()

    def prepare(self) -> bool:
        """Make the next worker that will wait, if nobody is disturbed: one that is there soon, then a thorough one. Whether that waits already."""
        wants_more = self.spare is not None and not self.spare.is_thorough and not self.half_loaded
        if self.coming is None and (self.spare is None or wants_more) and self.is_quiet():
            self.coming = self.forked(self.targets[-MOST_WARM:] or self.loaded, is_thorough=wants_more)
        return self.spare is not None and not wants_more

    def is_busy(self) -> bool:
        return bool(self.waiting) or any(worker.job is not None for worker in self.workers)

    def is_quiet(self) -> bool:
        """Whether nobody waits, nor has just had an answer and is likely to ask for the next kernel: a fork would keep them waiting."""
        now = time.monotonic()
        return not self.is_busy() and all(now - worker.free_since > PAUSE for worker in self.workers)

    # connections

    def watch(self, channel: Channel, on_messages: Callable[[list[Message] | None], None]) -> None:
        def ready(mask: int) -> None:
            if mask & selectors.EVENT_READ:
                on_messages(channel.receive())
            if channel.fileno() >= 0:
                channel.flush()
                self.update(channel)

        self.selector.register(channel, selectors.EVENT_READ, ready)

    def send(self, channel: Channel, message: Message) -> None:
        channel.send(message)
        self.update(channel)

    def update(self, channel: Channel) -> None:
        """Wait for what the channel waits for now; who handles it is asked of the selector, for nobody collects cycles here."""
        self.selector.modify(channel, events_of(channel), self.selector.get_key(channel).data)

    def forget(self, channel: Channel) -> None:
        self.selector.unregister(channel)
        channel.close()

    # clients

    def accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # it is gone already, or there are no handles left
            return
        if not is_own_peer(connection):
            connection.close()
            return
        client = Client(Channel(connection))
        self.clients.append(client)
        self.watch(client.channel, lambda messages: self.from_client(client, messages))
        self.send(client.channel, {"state": "ready"})

    def from_client(self, client: Client, messages: list[Message] | None) -> None:
        for message in messages or ():
            if client.context is None and is_greeting(message):
                client.context, client.limit = message["context"], message["limit"]
            elif client.context is not None and is_question(message):
                self.ask(client, message["id"], message["request"])
            else:  # a client that does not speak our language
                messages = None
                break
        if messages is None:
            self.leave(client)

    def ask(self, client: Client, number: int, request: Message) -> None:
        """Add a request, or whoever asks for what is already being done."""
        environment = (client.context or {}).get("environment", {})
        key = f"{request['entry_key']} {environment.get('TRITON_CACHE_DIR')}"
        for job in (*self.waiting, *(worker.job for worker in self.workers if worker.job is not None)):
            if job.key == key:
                job.askers.append((client, number, request))
                return
        self.waiting.append(Job(key, [(client, number, request)]))

    def leave(self, client: Client) -> None:
        """A client is gone: what only it waits for is not begun."""
        self.clients.remove(client)
        self.forget(client.channel)
        working = [worker.job for worker in self.workers if worker.job is not None]
        for job in (*self.waiting, *working):
            job.askers = [asker for asker in job.askers if asker[0] is not client]
        self.waiting = [job for job in self.waiting if job.askers]
        self.end_idle()

    # workers

    def dispatch(self) -> None:
        """Give work to workers, as long as there are cores for them."""
        while (job := self.next_job()) is not None:
            self.waiting.remove(job)
            client, _, request = job.askers[0]
            self.load(request["target"])
            idle = [worker for worker in self.workers if worker.client is client and worker.job is None]
            worker = idle[0] if idle else self.hire(client, is_kernel="own" not in request)
            if worker is None:  # no process can be made now: who asked does it without us
                self.answer(job, {"state": "refused", "detail": "the server cannot fork"})
                continue
            worker.job, worker.loaded = job, False
            job.attempts += 1
            self.send(worker.channel, request)

    def load(self, target: Any) -> None:
        """Have the compiler for a target, and workers who have it, too."""
        if target not in self.targets:
            self.targets.append(target)
        if target[0] not in [backend for backend, *_ in self.loaded]:
            load_compiler(target)
            self.loaded.append(target)
            self.half_loaded.append(target)
            self.end_spares()

    def load_the_rest(self) -> None:
        """Have the compiler for all kernels, and a worker who has it, too."""
        load_compiler(self.half_loaded.pop(), all_of_it=True)
        gc.freeze()
        self.end_spares()

    def end_spares(self) -> None:
        """Workers that nobody has asked, for the server has more now than they have."""
        for worker in (self.spare, self.coming):
            if worker is not None:
                self.bury(worker)

    def next_job(self) -> Job | None:
        """Of those who have fewer at work than they may, the first request of the one with the fewest."""
        at_work = [worker.client for worker in self.workers if worker.job is not None]
        if len(at_work) >= self.cores:
            return None
        open_jobs = [job for job in self.waiting if at_work.count(job.client) < job.client.limit]
        return min(open_jobs, key=lambda job: at_work.count(job.client), default=None)

    def hire(self, client: Client, is_kernel: bool) -> Worker | None:
        """A worker for a client; the one that is there is for kernels: for what else a first launch needs LLVM is most of the work."""
        if is_kernel and self.spare is not None:
            worker, self.spare = self.spare, None
        else:
            worker = self.forked()
        if worker is not None:
            worker.client = client
            self.workers.append(worker)
            self.send(worker.channel, client.context or {})
        return worker

    def forked(self, targets: Sequence[Any] = (), is_thorough: bool = False) -> Worker | None:
        """A new worker, which tries some targets first; None if there can be none now."""
        try:
            worker = Worker(*fork_worker(targets, is_thorough), is_thorough=is_thorough)
        except OSError:
            return None
        self.watch(worker.channel, lambda messages: self.from_worker(worker, messages))
        return worker

    def from_worker(self, worker: Worker, messages: list[Message] | None) -> None:
        for message in messages or ():
            worker.loaded |= message["state"] == "loaded"
            if worker is self.coming:
                self.replace_spare(worker)
            if worker.job is None or message["state"] == "warm":
                continue
            if message["state"] in SIGNS_OF_LIFE:
                self.answer(worker.job, message, only_described=True)
            else:
                self.answer(worker.job, message)
                worker.job, worker.unwanted_since, worker.free_since = None, None, time.monotonic()
        if messages is None:
            self.bury(worker)
        self.end_idle()

    def replace_spare(self, worker: Worker) -> None:
        """A worker has done its exercises."""
        if self.spare is not None:
            self.bury(self.spare)
        self.pause(worker, False)
        self.spare, self.coming = worker, None

    def pause_exercises(self) -> None:
        """Let exercises wait while those at work, and a client that will go on, need all cores."""
        at_work = sum(worker.job is not None for worker in self.workers)
        if self.coming is not None:
            self.pause(self.coming, at_work > 0 and at_work + 1 >= self.cores)

    def pause(self, worker: Worker, is_paused: bool) -> None:
        if worker.is_paused != is_paused:
            os.kill(worker.process, signal.SIGSTOP if is_paused else signal.SIGCONT)
            worker.is_paused = is_paused

    def answer(self, job: Job, outcome: Message, only_described: bool = False) -> None:
        for client, number, request in job.askers:
            if "functions" in request or not only_described:
                self.send(client.channel, {**outcome, "id": number})

    def bury(self, worker: Worker) -> None:
        """A worker is dead: its request is done again, or was its death."""
        if worker is self.spare:
            self.spare = None
        elif worker is self.coming:
            self.coming = None
            if self.spare is not None:
                self.spare.is_thorough = True  # there is no better one
        else:
            self.workers.remove(worker)
        self.forget(worker.channel)
        os.kill(worker.process, signal.SIGKILL)  # it may have closed its channel and live
        code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
        job = worker.job
        if job is None or not job.askers:
            return
        if job.attempts < ATTEMPTS:
            self.waiting.insert(0, job)
        else:
            state = "died" if worker.loaded else "refused"
            self.answer(job, {"state": state, "detail": "the worker ended", "code": code})

    def end_idle(self) -> None:
        """Workers whose client is gone end, and those for which it has had nothing for a while."""
        wanted, now = {id(job.client) for job in self.waiting}, time.monotonic()
        for worker in [worker for worker in self.workers if worker.job is None and id(worker.client) not in wanted]:
            if worker.client not in self.clients or now - worker.free_since > KEPT:
                self.bury(worker)

    def end_unwanted(self) -> None:
        """What nobody waits for any more has some time to end by itself."""
        now = time.monotonic()
        for worker in list(self.workers):
            if worker.job is not None and not worker.job.askers:
                worker.unwanted_since = worker.unwanted_since or now
                if now - worker.unwanted_since > MOST_UNWANTED:
                    self.bury(worker)


def is_greeting(message: Message) -> bool:
    """Return True for the first message of a client: its context, and how many workers it may have."""
    limit = message.get("limit")
    return type(limit) is int and limit > 0 and is_context(message.get("context"))


def is_question(message: Message) -> bool:
    """Return True for a request, as far as the server reads it; what else is wrong with it, its worker finds."""
    request = message.get("request")
    if type(message.get("id")) is not int or not isinstance(request, dict):
        return False
    target = request.get("target")
    kinds = [type(part) for part in target] if isinstance(target, list) else []
    return isinstance(request.get("entry_key"), str) and kinds in ([str, int, int], [str, str, int])


def events_of(channel: Channel) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.unsent else 0)


def is_over(ends: int | None) -> bool:
    """Whether the process of a handle has ended."""
    return ends is not None and bool(select.select([ends], (), (), 0)[0])


def serve(
    listener: socket.socket,
    package: str,
    target: Sequence[Any] | None,
    in_background: bool,
    ends: int | None,
    tell_ready: Callable[[], None],
) -> None:
    """Load the compiler for a target, then serve; not if the files of the package are no longer those that were asked for."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    chosen = likely_target() if target is None else list(target)
    if in_background:
        loading = threading.Thread(
            target=load_when_idle, args=(chosen,)
        )  # who serves must not be slow, and cannot become fast
        loading.start()
        loading.join()
    else:
        load_frontend()  # as much as what is left: who comes now waits for less than loading it would take
        if triton_key() == package:
            tell_ready()
        load_compiler(chosen)
    if triton_key() != package:
        return
    gc.freeze()  # workers share these pages as long as nobody writes to them
    gc.disable()
    tell_ready()
    asked = [] if target is None else [chosen]
    Server(listener, targets=asked, loaded=[chosen], half_loaded=[chosen], ends=ends).run(knobs.autotuning.server_idle)


def load_when_idle(target: Sequence[Any]) -> None:
    """Load the compiler in a thread that takes what others leave of the cores."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    load_compiler(target)
