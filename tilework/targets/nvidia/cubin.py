"""PTX to a cubin, by ptxas; and disassembly.

    tool = assembler(90)                                             # `pipeline.py`; None: this machine has no ptxas
    data = to_cubin(ptx, "add", CubinSettings("sm_90a"), tool.path)  # bytes; PTXASError with the output of ptxas

    ptxas -lineinfo -v --gpu-name=sm_90a add.ptx -o add.cubin

A kernel whose registers leave less than half of a multiprocessor's warps, and that needs few less for another block, is
assembled a second time with ``.maxnreg`` (`analysis/cost.py`).

Intermediate files are in a temporary folder. ptxas is killed, with its child processes, when it takes longer than
TILEWORK_PTXAS_TIMEOUT (seconds; 0 is no limit) or when this process is interrupted.

A third of what a small kernel costs ptxas comes before it reads the kernel. So a compilation starts it first
(`started`), and `add.ptx` is then a link to its standard input, where it waits. The text is written to a file that
replaces the link, and to the pipe: whichever ptxas opens has it. Line tables make it open the file a second time.

NVIDIA's other assemblers are not used. nvJitLink compiles PTX for linking (``ptxas -c``), which is other code: 40
registers instead of 32 in a kernel that sums rows. The PTX compiler library is only there to be linked statically.

`disassemble` shows a cubin as text: the instructions of the GPU, with their control information.

    Function:add
    --:-:0:-:1	LDC R1, c[0x0][0x28];
    02:-:-:Y:4	LOP3.LUT R0, R0, 0x7f, RZ, 0xc0, !PT;

The first column is the barriers that the instruction waits for (six bits), the barrier it sets when its operands are
read, the barrier it sets when its result is written, whether the warp may yield, and the cycles before the next
instruction: bits 105 and up of the 128-bit encoding (Volta and later). With `lines`, ``; FILE:LINE`` precedes the
instructions of a source line, if the disassembler is nvdisasm. nvdisasm prints instructions and encodings, or cuobjdump
if there is no nvdisasm; neither is part of NVIDIA's wheels, both are of the CUDA toolkit.
"""

import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from tilework import knobs
from tilework.errors import PTXASError, PTXASKilled, StageError
from tilework.light_dataclass import light_dataclass
from tilework.process.forks import in_child
from tilework.targets.nvidia.ptx_text import with_maxnreg
from tilework.targets.observe import RECORDING

STANDARD_INPUT = "/dev/stdin"
FOREVER = 10**6  # seconds
# performance warnings of ptxas: setmaxnreg ignored, wgmma serialised, waits inserted
SLOW = re.compile(r"^ptxas info\s*: \(C75\d\d\).*$", re.MULTILINE)


@light_dataclass
class CubinSettings:
    """The settings that determine the command line, apart from the knobs."""

    cpu: str
    fuses: bool = True
    options: str | None = None


def flags(settings: CubinSettings) -> list[str]:
    """Return the options of ptxas."""
    lines, optimised = not knobs.compilation.disable_line_info, not knobs.nvidia.disable_ptxas_opt
    debug = ["-suppress-debug-info"] if not lines else ["-lineinfo"] if optimised else ["-g"]
    fusion = [] if settings.fuses else ["--fmad=false"]
    level = [] if optimised else ["--opt-level", "0"]
    return [*debug, *fusion, "-v", *level, *shlex.split(settings.options or ""), f"--gpu-name={settings.cpu}"]


class Assembly:
    """A ptxas that was started for the kernel `name`; it waits for the text."""

    def __init__(self, name: str, settings: CubinSettings, tool: str) -> None:
        self.file = re.sub(r"[^\w.-]", "_", name)[:100]
        self.options = (tool, *flags(settings))
        self.folder = tempfile.TemporaryDirectory(prefix="tilework-ptxas-", ignore_cleanup_errors=True)
        self.source, self.result = (Path(self.folder.name, f"{self.file}.{kind}") for kind in ("ptx", "cubin"))
        self.program: Program | None = None
        if os.path.exists(STANDARD_INPUT):
            with suppress(OSError, PTXASError):  # it starts when the text is there, or says why it does not
                self.source.symlink_to(STANDARD_INPUT)
                self.program = self.start()

    def start(self) -> "Program":
        return Program([*self.options, str(self.source), "-o", str(self.result)])

    def finish(self, ptx: str, limit: int) -> tuple[int | None, str, bytes]:
        """Return exit code, output and cubin."""
        text = ptx.encode()
        written = self.source.with_suffix(".text")
        written.write_bytes(text)
        written.replace(self.source)
        self.program = self.program or self.start()
        code, log = self.program.finish(text, limit)
        return code, log, self.result.read_bytes() if code == 0 and self.result.is_file() else b""

    def close(self) -> None:
        if self.program is not None:
            self.program.close()
        self.folder.cleanup()


@contextmanager
def started(name: str, settings: CubinSettings, tool: str) -> Iterator[None]:
    """Start ptxas for a kernel that `to_cubin` assembles later in this context."""
    with closing(Assembly(name, settings, tool)) as assembly:
        token = STARTED.set(assembly)
        try:
            yield
        finally:
            STARTED.reset(token)


def to_cubin(
    ptx: str, name: str, settings: CubinSettings, tool: str, fewer: Callable[[int], int | None] | None = None
) -> bytes:
    """Assemble the kernel `name` with the ptxas at the path `tool`; once more where `fewer` returns a lower limit for
    the registers that it takes. That cubin is kept if it does not spill.
    """
    log, data = assemble(ptx, name, settings, tool)
    used, remarks = re.findall(r"Used (\d+) registers", log), list[str]()
    if fewer is not None and len(used) == 1 and (limit := fewer(int(used[0]))) is not None:
        with suppress(PTXASError):
            again = assemble(with_maxnreg(ptx, limit), name, settings, tool)
            if " 0 bytes spill stores" in again[0]:
                log, data = again
                remarks.append(f"at most {limit} registers instead of {used[0]}, for another block per multiprocessor")
    if knobs.nvidia.dump_ptxas_log:
        print(log)
    if (seen := RECORDING.get()) is not None:
        seen.assembler = log
    if knobs.compilation.performance_remarks:
        for remark in (*resources(log), *remarks, *SLOW.findall(log)):
            print(f"{name}: remark: {remark}", file=sys.stderr)
    return data


def assemble(ptx: str, name: str, settings: CubinSettings, tool: str) -> tuple[str, bytes]:
    """Return the output of ptxas and the cubin."""
    assembly, wanted = STARTED.get(), (tool, *flags(settings))
    file = re.sub(r"[^\w.-]", "_", name)[:100]
    if assembly is None or (assembly.file, assembly.options) != (file, wanted):
        assembly = Assembly(name, settings, tool)
    STARTED.set(None)
    with closing(assembly):
        code, log, data = assembly.finish(ptx, knobs.nvidia.ptxas_timeout)
    if not data:
        command = shlex.join([*wanted, f"{file}.ptx", "-o", f"{file}.cubin"])
        help = "the file is the kernel's ptx stage; TRITON_KERNEL_DUMP=1 writes it"
        if "for option 'gpu-name'" in log:
            help = (
                f"this ptxas knows no {settings.cpu}: TRITON_PTXAS_PATH names another one, arch= another architecture"
            )
        raise (PTXASKilled if code is None or code < 0 else PTXASError)(
            f"{describe(code)} for the kernel {name}\n`ptxas` stderr:\n{log.rstrip()}\n\nRepro command: {command}\n"
            f"help: {help}"
        )
    return log, data


def resources(log: str) -> list[str]:
    """Return the registers and spills of each kernel, as ptxas reports them."""
    spilled = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    used = re.findall(r"Used (\d+) registers", log)
    return [
        f"{count} registers per thread"
        + (f", {out} bytes are spilled and {back} read back" if int(out) else ", no spills")
        for count, (out, back) in zip(used, spilled, strict=False)
    ]


class Program:
    """A program that was started, in a session of its own. Its output is kept in a file: its child processes would keep
    a pipe open.
    """

    def __init__(self, command: list[str]) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        try:
            self.process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, start_new_session=True
            )
        except OSError as error:
            self.log.close()
            raise PTXASError(f"{command[0]} cannot be started: {error}") from None
        WAITING.add(self)

    def finish(self, text: bytes, limit: int) -> tuple[int | None, str]:
        """Give it its standard input; return (exit code, output). The code is None if it was killed after `limit`
        seconds.
        """
        try:
            self.wait(text, limit or FOREVER)
        except subprocess.TimeoutExpired:
            self.log.seek(0, os.SEEK_END)
            self.log.write(f"it was stopped after {limit} seconds (TILEWORK_PTXAS_TIMEOUT)".encode())
        code = self.process.returncode
        self.log.flush()
        self.log.seek(0)
        said = self.log.read().decode(errors="replace")
        self.close()
        return code, said

    def wait(self, text: bytes, limit: float) -> None:
        """Write the input and wait for the end; raise TimeoutExpired.

        `Popen` with a limit sleeps between looks: up to 50 ms, and as long as the program has run. A file that stands
        for the process is ready when it ends.
        """
        try:
            ended = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # Linux 5.3 has it
            self.process.communicate(text, limit)
            return
        assert self.process.stdin is not None
        pipe, left, deadline = self.process.stdin, memoryview(text), time.monotonic() + limit
        try:
            os.set_blocking(pipe.fileno(), False)
            waits = select.poll()
            waits.register(ended, select.POLLIN)
            waits.register(pipe.fileno(), select.POLLOUT)
            while True:
                ready = dict(waits.poll(max(0.0, deadline - time.monotonic()) * 1e3))
                if ended in ready:
                    self.process.wait()
                    return
                if not ready:
                    raise subprocess.TimeoutExpired(self.process.args, limit)
                with suppress(BrokenPipeError):
                    left = left[os.write(pipe.fileno(), left) :] if left else left
                    if left:
                        continue
                waits.unregister(pipe.fileno())
                pipe.close()
        finally:
            os.close(ended)

    def close(self) -> None:
        WAITING.discard(self)
        if self.process.returncode is None:
            stop(self.process)
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.log.close()


WAITING: set[Program] = set()
STARTED: ContextVar[Assembly | None] = ContextVar("STARTED", default=None)


@in_child
def leave_waiting() -> None:
    """Close the pipes of programs that another thread had started before a fork: they would not see the end of their
    input before this child ends.
    """
    for program in WAITING:
        assert program.process.stdin is not None
        program.process.stdin.close()
    WAITING.clear()


def run(command: list[str], limit: int) -> tuple[int | None, str]:
    """Run a program and return (exit code, output); the code is None if it was killed after `limit` seconds."""
    with closing(Program(command)) as program:
        return program.finish(b"", limit)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program and its child processes."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def describe(code: int | None) -> str:
    """Return the reason why ptxas failed."""
    if code is None:
        return "`ptxas` did not finish"
    if code == 0:
        return "`ptxas` wrote no cubin"
    if code > 0:
        return f"`ptxas` failed with error code {code}"
    try:
        how = signal.Signals(-code).name
    except ValueError:
        how = f"signal {-code}"
    return f"`ptxas` was killed by {how}{' (out of memory?)' if how == 'SIGKILL' else ''}"


LIMIT = 600  # seconds
FUNCTION = r"^\s*(?:\.section\s+\.text\.([^,\s]+),|Function : (\S+))"
INSTRUCTION = r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* (0x[0-9a-f]{16}) \*/"
SECOND_HALF = r"^\s*/\* (0x[0-9a-f]{16}) \*/"
LINE = r'^\s*//## File "(.*)", line (\d+)'
LABEL = r"^\s*(\.L_x?_?\w+):"


def disassemble(cubin: bytes, lines: bool = False) -> str:
    """Return the instructions of a cubin; a StageError names the missing tools."""
    tool, options = disassembler(lines)
    with tempfile.TemporaryDirectory(prefix="tilework-sass-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        code, printed = run([tool, *options, str(file)], LIMIT)
    text = tabulate(printed)
    if code != 0 or not text:
        raise StageError(f"{tool} {' '.join(options)} cannot show the cubin:\n{printed.strip()}")
    return text


def disassembler(lines: bool = False) -> tuple[str, list[str]]:
    """Return the disassembler and its options."""
    if (tool := knobs.nvidia.find_tool("nvdisasm")) is not None:
        return tool.path, ["-c", "-hex", *(["-g"] if lines else [])]
    if (tool := knobs.nvidia.find_tool("cuobjdump")) is not None:
        return tool.path, ["-sass"]
    raise StageError(
        "sass needs nvdisasm or cuobjdump, and neither is on this machine: install a CUDA toolkit,"
        " or set TRITON_NVDISASM_PATH or TRITON_CUOBJDUMP_PATH to the program"
    )


def tabulate(printed: str) -> str:
    """Reformat a disassembler's output as lines of control bits and instruction; "" if there is no instruction."""
    lines: list[str] = []
    pending = ""
    count = 0
    for line in printed.splitlines():
        if (found := re.match(FUNCTION, line)) is not None:
            lines.append(f"Function:{found[1] or found[2]}")
        elif (found := re.match(INSTRUCTION, line)) is not None:
            pending = found[1]
        elif pending and (found := re.match(SECOND_HALF, line)) is not None:
            lines.append(f"{waiting(int(found[1], 16))}\t{pending};")
            pending = ""
            count += 1
        elif (found := re.match(LABEL, line)) is not None:
            lines.append(f"{found[1]}:")
        elif (found := re.match(LINE, line)) is not None:
            lines.append(f"; {found[1]}:{found[2]}")
    return "\n".join([*lines, ""]) if count else ""


def waiting(upper: int) -> str:
    """Return the control bits in the upper 64 bits of an instruction: ``02:-:-:Y:4``."""
    control = upper >> 41
    stall, no_yield, write, read, wait = (
        control & 15,
        control >> 4 & 1,
        control >> 5 & 7,
        control >> 8 & 7,
        control >> 11 & 63,
    )
    barriers = [f"{wait:02d}" if wait else "--", *(str(barrier) if barrier != 7 else "-" for barrier in (read, write))]
    return ":".join([*barriers, "-" if no_yield else "Y", f"{stall:x}"])
