"""The instructions of the hottest loop of each GPU benchmark by class, registers, spills; ours beside Triton's.

    TRITON_PYTHON=/path/to/python python -m benchmarks.sass_counts [WORD ...]      rows whose name has one of the words
    python -m benchmarks.sass_counts matmul --show                                 and the instructions themselves

No GPU is needed: kernels are compiled for sm_90 with every pointer and size a multiple of 16, and nvdisasm shows the
cubins (TRITON_NVDISASM_PATH names one outside of PATH). The hottest loop is the innermost one with the most tensor-core
instructions, or else the longest; a kernel without loops counts whole. The file runs itself under the interpreter that
has Triton.
"""

import argparse
import base64
import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.compiler_of_kernels import load

CLASSES = {  # of opcodes, in the order of the columns; the first that matches counts
    "tensor": r"[HQI]GMMA|[HIQ]MMA",
    "mufu": r"MUFU",
    "fp": r"F(ADD|MUL|FMA|MNMX|SETP|SEL|CHK)|H(ADD|MUL|FMA|MNMX)2|F2F|F2FP|F2I|I2F.*",
    "imad": r"IMAD",
    "iadd": r"IADD3|IADD|LEA|IABS|VIADD|VIMNMX|IMNMX",
    "logic": r"LOP3|SHF|PRMT|SEL|BMSK|SGXT|POPC|FLO",
    "isetp": r"ISETP|PLOP3|P2R|R2P",
    "uniform": r"U[A-Z0-9]+|R2UR|S2UR|VOTEU",
    "copy": r"LDGSTS|LDGDEPBAR|UTMALDG|UBLKCP",
    "global": r"LDG|STG|ATOMG?|RED|LD|ST",
    "shared": r"LDS|STS|LDSM|STSM|ATOMS",
    "move": r"MOV|CS2R|S2R|LDC|ULDC",
    "warp": r"SHFL|VOTE|MATCH|REDUX|WARPSYNC",
    "sync": r"BAR|DEPBAR|SYNCS|WARPGROUP|MEMBAR|FENCE|BSSY|BSYNC|CCTL|ERRBAR",
    "local": r"LDL|STL",
}
MATCHED = {name: re.compile(rf"(?:{pattern})(?:\.|$)") for name, pattern in CLASSES.items()}


@dataclass(frozen=True)
class Row:
    """One compilation of a kernel: the types of its arguments, what is constant, how it is launched."""

    kernel: str
    types: str  # of the arguments that are not constant
    constants: dict[str, int]
    options: dict[str, int] = field(default_factory=dict)


def matmul(element: str, warps: int, stages: int, bm: int, bn: int, bk: int) -> Row:
    sizes = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8}
    return Row("matmul", f"*{element} " * 3 + "i32 " * 6, sizes, {"num_warps": warps, "num_stages": stages})


def descriptors(element: str, warps: int, stages: int, bm: int, bn: int, bk: int) -> Row:
    tiles = " ".join(f"tensordesc<{element}[{a},{b}]>" for a, b in ((bm, bk), (bk, bn), (bm, bn)))
    sizes = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8}
    return Row("matmul_descriptors", f"{tiles} i32 i32 i32", sizes, {"num_warps": warps, "num_stages": stages})


def attention(depth: int, warps: int, kernel: str = "attention") -> Row:
    return Row(kernel, "*fp16 " * 4 + "i32 fp32", {"BM": 128, "BN": 64, "D": depth}, {"num_warps": warps})


ROWS = {
    "matmul f16 128x256x64": matmul("fp16", 8, 3, 128, 256, 64),
    "matmul f16 128x128x64": matmul("fp16", 4, 4, 128, 128, 64),
    "matmul bf16 128x256x64": matmul("bf16", 8, 3, 128, 256, 64),
    "matmul tf32 128x128x32": matmul("fp32", 4, 3, 128, 128, 32),
    "descriptors f16 128x256x64": descriptors("fp16", 8, 3, 128, 256, 64),
    "attention f16 D64": attention(64, 4),
    "attention f16 D128": attention(128, 8),
    "add f32": Row("add", "*fp32 *fp32 *fp32 i32", {"BLOCK": 1024}),
    "softmax f32": Row("softmax", "*fp32 *fp32 i32", {"BLOCK": 4096}, {"num_warps": 8}),
    "layernorm bf16": Row("layernorm", "*bf16 *bf16 *bf16 *bf16 i32 fp32", {"BLOCK": 4096}, {"num_warps": 8}),
    "transpose f32": Row("transpose", "*fp32 *fp32 i32 i32", {"BM": 64, "BN": 64}),
    "cumsum f32": Row("cumsum", "*fp32 *fp32 i32", {"BLOCK": 4096}, {"num_warps": 8}),
    "sort f32": Row("sort", "*fp32 *fp32", {"BLOCK": 1024}),
    "histogram i32": Row("histogram", "*i32 *i32 i32", {"BLOCK": 1024}),
    "rms_norm f16": Row("rms_norm", "*fp16 *fp16 *fp16 i32 fp32", {"BLOCK": 4096}, {"num_warps": 8}),
    "gather_rows bf16": Row("gather_rows", "*bf16 *i64 *bf16 i32", {"BLOCK": 1024}),
    "silu_times bf16": Row("silu_times", "*bf16 *bf16 *bf16 i32", {"BLOCK": 1024}),
    "row_sums f32": Row("row_sums", "*fp32 *fp32 i32", {"BLOCK": 1024}),
    "small_matmul f16": Row("small_matmul", "*fp16 *fp16 *fp16 i32 i32 i32", {"BM": 16, "BN": 64, "BK": 64}),
}


def cubin_of(row: Row, compiler: str, kernels: Any) -> bytes:
    """Compile a row with a compiler that is installed here."""
    made = importlib.import_module(f"{compiler}.compiler")
    where = "tilework.targets.base" if compiler == "tilework" else "triton.backends.compiler"
    target = importlib.import_module(where).GPUTarget("cuda", 90, 32)
    kernel, types = getattr(kernels, row.kernel), iter(row.types.split())
    given = {name: param.default for name, param in inspect.signature(kernel.fn).parameters.items()}
    constants = {name: value for name, value in given.items() if value is not inspect.Parameter.empty} | row.constants
    signature = {name: "constexpr" if name in constants else next(types) for name in kernel.arg_names}
    is_aligned = [type.startswith("*") or type == "i32" for type in signature.values()]
    attrs = {(index,): [["tt.divisibility", 16]] for index, is_one in enumerate(is_aligned) if is_one}
    source = made.ASTSource(kernel, signature, constants, attrs)
    return made.compile(source, target=target, options=dict(row.options)).asm["cubin"]


def compile_rows(compiler: str, names: list[str]) -> None:
    """The child process: a line of JSON for each row."""
    kernels = load(compiler)
    for name in names:
        if hasattr(kernels, ROWS[name].kernel):
            print(json.dumps([name, base64.b64encode(cubin_of(ROWS[name], compiler, kernels)).decode()]), flush=True)


def cubins(python: str, compiler: str, names: list[str]) -> dict[str, bytes]:
    """Compile the rows with the compiler of another interpreter."""
    command = [python, "-m", "benchmarks.sass_counts", *names, "--compiler", compiler]
    root = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    return {name: base64.b64decode(text) for name, text in lines}


@dataclass(frozen=True)
class Listing:
    """The instructions of a cubin's kernel, without predicates; where branches go to."""

    code: Sequence[str]
    labels: dict[str, int]
    registers: int

    def loops(self) -> list[tuple[int, int]]:
        """The first instruction and the end of each loop: what a backward branch repeats. A branch from behind the
        kernel's end, where ptxas puts rare cases, is none."""
        loops = []
        for index, line in enumerate(self.code):
            if (found := re.search(r"\bBRA\b.*\((\.L\w+)\)", line)) and self.labels[found[1]] < index:
                loops.append((self.labels[found[1]], index + 1))
        return [(first, end) for first, end in loops if "EXIT" not in self.code[first:end]]

    def hottest(self) -> list[str]:
        """The loop that counts."""
        loops = self.loops()
        inner = [one for one in loops if not any(o != one and one[0] <= o[0] and o[1] <= one[1] for o in loops)]
        parts = [self.code[first:end] for first, end in inner]
        return max(parts, key=lambda part: (counted(part)["tensor"], len(part)), default=self.code)


def listing(cubin: bytes) -> Listing:
    """Return nvdisasm's listing of a cubin."""
    from tilework import knobs

    tool = knobs.nvidia.find_tool("nvdisasm")
    if tool is None:
        sys.exit("no nvdisasm: install a CUDA toolkit, or set TRITON_NVDISASM_PATH")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool.path, "-c", file.name], capture_output=True, text=True, check=True).stdout
    code, labels = [], {}
    for line in text.splitlines():
        if (found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)) is not None:
            code.append(found[1])
        elif (found := re.match(r"\s*(\.L\w+):", line)) is not None:
            labels[found[1]] = len(code)
    while code[-1] == "NOP":  # behind the end
        code.pop()
    return Listing(code, labels, registers_of(cubin))


REGISTERS = 0x2F  # the attribute of a section `.nv.info` that counts them


def registers_of(cubin: bytes) -> int:
    """Return the registers of a thread: an attribute in an ELF file's section `.nv.info`."""
    from tilework.targets.elf_sections import read_sections
    from tilework.targets.nvidia.cubin_info import info_records

    records = (
        one for section in read_sections(cubin) if section.name == ".nv.info" for one in info_records(section.data)
    )
    counts = (int.from_bytes(value[4:8], "little") for attribute, value in records if attribute == REGISTERS)
    return max(counts, default=0)


def opcode(line: str) -> str:
    return line.split()[1 if line.startswith("@") else 0]


def counted(code: Sequence[str]) -> Counter[str]:
    """Instructions by class."""
    found: Counter[str] = Counter()
    for line in code:
        name = opcode(line)
        found[next((kind for kind, pattern in MATCHED.items() if pattern.match(name)), "other")] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--whole", action="store_true", help="count the whole kernel")
    parser.add_argument("--compiler")
    given = parser.parse_args()
    if given.compiler:
        return compile_rows(given.compiler, given.words)
    names = [name for name in ROWS if not given.words or any(word in name for word in given.words)]
    pythons = {"tilework": sys.executable, "triton": os.environ.get("TRITON_PYTHON")}
    made = {compiler: cubins(python, compiler, names) for compiler, python in pythons.items() if python}
    columns = [*CLASSES, "other"]
    print(f"{'':38}{'all':>6}{''.join(f'{name:>8}' for name in columns)}{'rest':>6}{'regs':>6}")
    for name in names:
        for compiler, found in made.items():
            if name not in found:
                continue
            listed = listing(found[name])
            part = listed.code if given.whole else listed.hottest()
            counts = counted(part)
            shown = "".join(f"{counts[column]:8}" for column in columns)
            print(f"{name:28}{compiler:10}{len(part):6}{shown}{len(listed.code) - len(part):6}{listed.registers:6}")
            if given.show:
                print("\n".join(f"    {line}" for line in part))


if __name__ == "__main__":
    main()
