"""Code objects for AMD GPUs, read back: the description of a kernel for loaders and the hardware is what its source and
options say.

python -m tests.targets.test_amd_code_objects      all examples, for all generations
"""

# pyright: reportMissingParameterType=false

import struct
import sys
from typing import Any

import pytest

import tilework
import tilework.language as tl
from examples.demo import all_cases
from tilework.compiler import ASTSource, compile
from tilework.target import Target
from tilework.targets.amd.kernel_notes import read_descriptor, read_notes
from tilework.targets.elf_sections import read_sections

FLAGS = {"gfx90a": 0x53F, "gfx942": 0x54C, "gfx950": 0x54F, "gfx1100": 0x41, "gfx1201": 0x4E}
SIZES = {"*": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u64": 8, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}
SHARED_OBJECT, AMDGPU = 3, 224


@tilework.jit
def row_sums(x, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(out + row, tl.sum(tl.exp(values - tl.max(values, 0)), 0) * tl.num_programs(0))


def compiled(source: ASTSource, arch: str) -> Any:
    return compile(source, target=Target.parse(f"hip:{arch}").name)


def check(kernel: Any, types: list[str], arch: str) -> None:
    """A loadable file with the kernel, its descriptor, which leads to the code, and its metadata."""
    target, data, name = Target.parse(f"hip:{arch}"), kernel.asm["hsaco"], kernel.metadata.name
    assert struct.unpack_from("<HHI", data, 16) == (SHARED_OBJECT, AMDGPU, 1)
    assert struct.unpack_from("<I", data, 48) == (FLAGS[arch],)
    sections = {section.name: section.data for section in read_sections(data)}
    symbols = dynamic_symbols(sections)
    assert symbols.keys() == {name, f"{name}.kd"}
    (distance,) = struct.unpack_from("<q", sections[".rodata"], 16)
    assert symbols[f"{name}.kd"] % 64 == 0 == symbols[name] % 256 and symbols[f"{name}.kd"] + distance == symbols[name]

    notes, reported, facts = read_notes(data), read_descriptor(data), kernel.metadata
    threads = facts.num_warps * target.warp_size
    assert (notes.name, notes.target, notes.max_threads) == (name, f"amdgcn-amd-amdhsa--{arch}", threads)
    assert notes.wave_size == reported.wave_size == target.warp_size and reported.entry == distance
    assert (
        notes.kernarg_bytes == reported.kernarg_bytes and notes.lds_bytes == reported.lds_bytes == 0
    )  # LDS is the launch's
    assert facts.shared <= target.limits.shared_bytes
    assert notes.private_bytes == reported.private_bytes and kernel.n_spills == reported.private_bytes // 4
    assert reported.vgprs - 8 < max(kernel.n_regs, 1) <= reported.vgprs and kernel.n_regs == notes.vgprs

    position = 0
    for argument, type in zip(notes.arguments, [*types, "*scratch", "*profile"], strict=False):
        size = SIZES.get(type) or SIZES[type[0]]
        position = -(-position // size) * size
        kind = "global_buffer" if type[0] == "*" else "by_value"
        assert argument == (position, size, kind), f"{argument} is {type} at {position}"
        position += size
    assert position <= notes.kernarg_bytes and len(notes.arguments) >= len(types) + 2


def dynamic_symbols(sections: dict[str, bytes]) -> dict[str, int]:
    strings = sections[".dynstr"]
    entries = struct.iter_unpack("<IBBHQQ", sections[".dynsym"])
    return {
        strings[at : strings.index(b"\0", at)].decode(): position
        for at, _, _, section, position, _ in entries
        if section
    }


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_code_objects(arch: str) -> None:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    kernel = compiled(ASTSource(row_sums, signature=types, constexprs={"BLOCK": 512}), arch)
    assert f'"ttg.threads-per-warp" = {kernel.metadata.warp_size} : i32' in kernel.asm["ttgir"]
    check(kernel, list(types.values()), arch)


def main() -> int:
    for arch in FLAGS:
        for case in all_cases():
            source = ASTSource(case.kernel, signature=case.types, constexprs=case.constexprs, attrs=case.attrs)
            kernel = compiled(source, arch)
            check(kernel, [case.types[name] for name in case.signature], arch)
            facts = f"{kernel.n_regs} registers, {kernel.n_spills} spilled, {kernel.metadata.shared} bytes of LDS"
            print(f"{arch:8} {case.name:24} {facts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
