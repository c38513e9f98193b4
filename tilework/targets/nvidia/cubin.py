"""PTX to a cubin, by ptxas; and disassembly.

    tool = assembler(90)                                             # `pipeline.py`; None: this machine has no ptxas
    data = to_cubin(ptx, "add", CubinSettings("sm_90a"), tool.path)  # bytes; PTXASError with the output of ptxas

    ptxas -lineinfo -v --gpu-name=sm_90a add.ptx -o add.cubin

A kernel that spills, or whose registers leave less than half of a multiprocessor's warps, may be assembled a second
time (`variants.py`).

Intermediate files are in a temporary folder. ptxas is killed, with its child processes, when it takes longer than
TILEWORK_PTXAS_TIMEOUT (seconds; 0 is no limit) or when this process is interrupted.

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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tilework import knobs
from tilework.errors import PTXASError, PTXASKilled, StageError
from tilework.light_dataclass import light_dataclass
from tilework.process.output import bytes_in
from tilework.targets.observe import RECORDING

if TYPE_CHECKING:
    from tilework.targets.nvidia.variants import Variants

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


def to_cubin(ptx: str, name: str, settings: CubinSettings, tool: str, variants: "Variants | None" = None) -> bytes:
    """Assemble the kernel `name` with the ptxas at the path `tool`; return the cheapest of its `variants`."""
    log, data = assemble(ptx, name, settings, tool)
    remarks: list[str] = []
    if variants is not None and (best := answer_of(log)) is not None:
        for text, remark in variants.others(best):
            with suppress(PTXASError):
                other = assemble(text, name, settings, tool)
                found = answer_of(other[0])
                if found is not None and variants.cost(found) < variants.cost(best):
                    (log, data), best, remarks = other, found, [remark]
                    if not found.spilled:
                        break
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
    wanted, file = (tool, *flags(settings)), re.sub(r"[^\w.-]", "_", name)[:100]
    with tempfile.TemporaryDirectory(prefix="tilework-ptxas-", ignore_cleanup_errors=True) as folder:
        source, result = Path(folder, f"{file}.ptx"), Path(folder, f"{file}.cubin")
        source.write_text(ptx, encoding="utf-8")
        code, log = run([*wanted, str(source), "-o", str(result)], knobs.nvidia.ptxas_timeout)
        data = result.read_bytes() if code == 0 and result.is_file() else b""
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


SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


class Answer(NamedTuple):
    """The registers of a thread, and the bytes that it spills and reads back."""

    registers: int
    spilled: int


def answer_of(log: str) -> Answer | None:
    """Return the registers and spills of the only kernel that ptxas reports; None if there are others."""
    used, spilled = USED.findall(log), SPILLS.findall(log)
    return Answer(int(used[0]), sum(int(count) for pair in spilled for count in pair)) if len(used) == 1 else None


def resources(log: str) -> list[str]:
    """Return the registers and spills of each kernel, as ptxas reports them."""
    return [
        f"{count} registers per thread"
        + (f", {out} bytes are spilled and {back} read back" if int(out) else ", no spills")
        for count, (out, back) in zip(USED.findall(log), SPILLS.findall(log), strict=False)
    ]


def run(command: list[str], limit: int) -> tuple[int | None, str]:
    """Run a program and return (exit code, output); the code is None if it was killed after `limit` seconds."""
    with tempfile.TemporaryFile() as log:  # child processes of the program would keep a pipe open
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise PTXASError(f"{command[0]} cannot be started: {error}") from None
        code: int | None = None
        try:
            code = wait(process, limit)
        except subprocess.TimeoutExpired:
            log.seek(0, os.SEEK_END)
            log.write(f"it was stopped after {limit} seconds (TILEWORK_PTXAS_TIMEOUT)".encode())
            log.flush()
        finally:
            if code is None:
                stop(process)
        return code, bytes_in(log).decode(errors="replace")


def wait(process: "subprocess.Popen[bytes]", limit: int) -> int:
    """Return the exit code; raise TimeoutExpired after `limit` seconds.

    `Popen.wait` with a limit sleeps between looks, up to 50 ms. The descriptor of a process is ready when it ends.
    """
    if limit and hasattr(os, "pidfd_open"):
        with suppress(OSError):  # Linux 5.3 has it
            descriptor = os.pidfd_open(process.pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                if not ended.poll(limit * 1000):
                    raise subprocess.TimeoutExpired(process.args, limit)
            finally:
                os.close(descriptor)
    return process.wait(limit or None)


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
