"""Programs that stand for NVIDIA's, and machines that have none.

ptxas = fake_ptxas(tmp_path)                    # the path of a program that says it is release 12.8
monkeypatch.setenv("TRITON_PTXAS_PATH", ptxas)
arguments_of(cubin)                             # what it was called with is what it "assembled"
"""

import json
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilework import knobs
from tilework.knobs import cuda_tools

PTXAS = """#!{python} -S
import json, os, signal, sys, time
if "--version" in sys.argv:
    print("Cuda compilation tools, release {release}, V{release}.99")
    sys.exit()
arguments = sys.argv[1:]
source, result = arguments[-3], arguments[-1]
assert arguments[-2] == "-o"
text = open(source).read()
print("ptxas info    : Compiling entry function of", os.path.basename(source), file=sys.stderr)
if "fail" in text:
    print("ptxas " + source + ", line 7; error   : Not a name of any known instruction: 'fail'", file=sys.stderr)
    sys.exit(255)
if "unknown" in text:
    print("ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'", file=sys.stderr)
    sys.exit(255)
if "crash" in text:
    os.kill(os.getpid(), signal.SIGSEGV)
if "killed" in text:
    os.kill(os.getpid(), signal.SIGKILL)
if "hang" in text:
    if os.fork() == 0:
        time.sleep(600)
    time.sleep(600)
if "slow" in text:
    print("ptxas info    : (C7511) Potential Performance Loss: wgmma is serialized", file=sys.stderr)
if "nothing" not in text:
    with open(result, "w") as file:
        called = {{"arguments": arguments[:-3], "files": [source, result], "text": text, "release": "{release}"}}
        json.dump(called, file)
"""
NVDISASM = """#!{python} -S
import sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release 12.8, V12.8.55")
    sys.exit()
assert open(sys.argv[-1], "rb").read(1), "no cubin"
{function}
print("        /*0000*/                   LDC R1, c[0x0][0x28] ;                    /* 0x00000a00ff017b82 */")
print("                                                                             /* 0x000fe20000000800 */")
print("        /*0010*/                   LOP3.LUT R0, R0, 0x7f, RZ, 0xc0, !PT ;    /* 0x0000007f00007812 */")
print("                                                                             /* 0x001fc800078ec0ff */")
"""
SECTION = r'print("\t.section\t.text.add,\"ax\",@progbits")'
HEADING = r'print("\t\tFunction : add")'
SASS = "Function:add\n--:-:-:-:1\tLDC R1, c[0x0][0x28];\n01:-:-:Y:4\tLOP3.LUT R0, R0, 0x7f, RZ, 0xc0, !PT;\n"


def program(path: Path, text: str) -> str:
    """A program of this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def fake_ptxas(folder: Path, release: str = "12.8") -> str:
    """A ptxas whose cubins tell how it was called; words in the PTX make it fail, crash, hang."""
    return program(folder / f"fake-{release}" / "ptxas", PTXAS.format(python=sys.executable, release=release))


def fake_disassembler(folder: Path, name: str = "nvdisasm") -> str:
    """A disassembler that prints the same two instructions whatever the cubin is."""
    function = SECTION if name == "nvdisasm" else HEADING
    return program(folder / "fake-tools" / name, NVDISASM.format(python=sys.executable, function=function))


def arguments_of(cubin: bytes) -> list[str]:
    """The options that the fake ptxas was given."""
    return json.loads(cubin)["arguments"]


@contextmanager
def no_tools(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """A machine without any of NVIDIA's programs and libraries."""
    (folder / "empty").mkdir(exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(folder / "empty"))
        patch.setenv("CUDA_HOME", str(folder / "empty"))
        for name in ("PTXAS", "PTXAS_BLACKWELL", "NVDISASM", "CUOBJDUMP", "LIBDEVICE"):
            patch.delenv(f"TRITON_{name}_PATH", raising=False)
        patch.setattr(cuda_tools, "find_spec", lambda _: None)
        forget()
        yield
    forget()


def forget() -> None:
    """Look for tools again."""
    cuda_tools.newest.cache_clear()
    cuda_tools.find_libdevice.cache_clear()


def has_ptxas() -> bool:
    """Return True if this machine has ptxas."""
    return knobs.nvidia.find_tool("ptxas") is not None


needs_ptxas = pytest.mark.skipif(not has_ptxas(), reason="no ptxas on this machine")
needs_libdevice = pytest.mark.skipif(knobs.nvidia.find_libdevice() is None, reason="no libdevice on this machine")
needs_disassembler = pytest.mark.skipif(
    not has_ptxas() or knobs.nvidia.find_tool("nvdisasm") is None, reason="no ptxas and nvdisasm on this machine"
)
