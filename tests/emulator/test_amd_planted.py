"""Mistakes planted into our code for AMD GPUs, a line at a time: the emulator finds them, or the values are wrong.

python -m tests.emulator.test_amd_planted  every mistake of these kinds in several kernels, and those that nothing shows

What nothing shows should be no mistake: another lane that holds the same sum, a barrier between a thread's own
accesses.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.emulator import test_amd_own_kernels as own
from tilework.compiler import ASTSource, compile
from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.llvm.run_llvm import run as run_llvm
from tilework.target import Target
from tilework.targets.amd.code_object import metadata

ARCHS = ("gfx942", "gfx1100")
Run = Callable[[str, str], None]
# of each kind: a line that has it, and what becomes of the line
KINDS: dict[str, tuple[str, str]] = {
    "no barrier": (r".*call void @llvm\.amdgcn\.s\.barrier\(.*", ""),
    "no wait": (r'.*fence syncscope\("workgroup"\) release.*', ""),
    "no store to LDS": (r".*\bstore .*ptr addrspace\(3\).*", ""),
    "no mask": (r"(.*select i1 %\w+, i32 )(%\w+)(, i32 )-2147483648(.*)", r"\g<1>\2\3\2\4"),
    "one too many": (r"(.*icmp [su][lg])t( .*)", r"\1e\2"),
    "wrong lane of four": (r"(.*update\.dpp.*, i32 )177(, i32 15, i32 15.*)", r"\g<1>176\2"),
    "no other lane": (r"(.*ds\.bpermute\()i32 %\w+(, i32 %\w+.*)", r"\1i32 0\2"),
    "past LDS": (r"(.*getelementptr i8, ptr addrspace\(3\) @global_smem, i32 )%\w+(.*)", r"\g<1>65536\2"),
}


@cache
def text_of(kernel: Any, arch: str, types: tuple[str, ...], constants: tuple[tuple[str, int], ...]) -> str:
    signature = dict(zip(kernel.arg_names, types, strict=False))
    facts: Any = {(index,): [["tt.pointer_range", 32]] for index, type in enumerate(types) if type[0] == "*"}
    source = ASTSource(kernel, signature=signature, constexprs=dict(constants), attrs=facts)
    return compile(source, target=Target.parse(f"hip:{arch}").name).asm["llir"]


def launch(text: str, arch: str, args: Sequence[Any], grid: int = 1) -> None:
    threads = 4 * Target.parse(f"hip:{arch}").warp_size
    run_llvm(text, [*args, 0, 0], grid, threads, metadata(text)["shared"], arch, max_instructions=100_000)


def draw(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def softmax(text: str, arch: str) -> None:
    rows, found = draw(1, 300), np.zeros((1, 300), np.float32)
    launch(text, arch, [rows, found, 300])
    powers = np.exp(rows - rows.max())
    assert np.allclose(found, powers / powers.sum(), rtol=1e-5)


def product(text: str, arch: str) -> None:
    (a, b), found = draw(2, 64, 64, dtype=np.float16), np.zeros((64, 64), np.float32)
    launch(text, arch, [a, b, found])
    assert np.allclose(found, a.astype(np.float32) @ b.astype(np.float32), atol=1e-4)


def scan_and_sort(text: str, arch: str) -> None:
    x, (sums, in_order) = draw(256), np.zeros((2, 256), np.float32)
    launch(text, arch, [x, sums, in_order])
    assert np.allclose(sums, np.cumsum(x), atol=1e-4) and np.array_equal(in_order, np.sort(x))


def transpose(text: str, arch: str) -> None:
    x, found = draw(64, 64), np.zeros((64, 64), np.float32)
    launch(text, arch, [x, found])
    assert np.array_equal(found, x.T)


RUNS: dict[Run, tuple[Any, tuple[str, ...], tuple[tuple[str, int], ...]]] = {
    softmax: (own.softmax, ("*fp32", "*fp32", "i32"), (("BLOCK", 512),)),
    product: (own.product, ("*fp16", "*fp16", "*fp32"), (("SIZE", 64), ("STEP", 16))),
    scan_and_sort: (own.scan_and_sort, ("*fp32",) * 3, (("N", 256),)),
    transpose: (own.transpose, ("*fp32",) * 2, (("N", 64),)),
}


def planted(run: Run, arch: str, kind: str) -> Iterator[tuple[str, str]]:
    """The lines with this kind of mistake, and the text with it."""
    kernel, types, constants = RUNS[run]
    lines = text_of(kernel, arch, types, constants).splitlines()
    pattern, new = KINDS[kind]
    for at, line in enumerate(lines):
        if (found := re.fullmatch(pattern, line)) and not line.startswith("declare"):
            yield line, "\n".join([*lines[:at], found.expand(new), *lines[at + 1 :]])


def what_shows(run: Run, arch: str, text: str) -> str | None:
    try:
        run(text, arch)
    except CheckFailed as failed:
        return failed.findings[0].kind
    except AssertionError:
        return "values"
    return None


PLANTED = [
    ("no barrier", -1, "race"),
    ("no wait", -1, "barrier without its wait"),
    ("no store to LDS", 0, "undefined value"),
    ("no mask", -1, "bad access"),
    ("one too many", -1, "bad access"),
    ("wrong lane of four", -1, "values"),
    ("no other lane", -1, "values"),
    ("past LDS", 0, "bad access"),
]


@pytest.mark.parametrize(("kind", "number", "shown"), PLANTED)
def test_mistakes_show(kind: str, number: int, shown: str) -> None:
    arch = ARCHS[len(kind) % 2] if kind != "no other lane" else "gfx942"  # gfx1100 has an instruction for it
    _, text = list(planted(softmax, arch, kind))[number]
    assert what_shows(softmax, arch, text) == shown


def main() -> int:
    for run in RUNS:
        for arch in ARCHS:
            for kind in KINDS:
                shown = [(what_shows(run, arch, text), line.strip()) for line, text in planted(run, arch, kind)]
                kinds = {one: sum(one == other for other, _ in shown) for one, _ in shown}
                print(f"{run.__name__:14} {arch:8} {kind:18}", kinds, flush=True)
                for line in [line for one, line in shown if one is None][:4]:
                    print(f"    {line[:150]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
