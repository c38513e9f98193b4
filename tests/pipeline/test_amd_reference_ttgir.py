"""From Triton's TTIR our passes make the ops and layouts that Triton 3.7.1 makes for gfx942 and gfx950, apart from the
order of ops, the scalar arithmetic around pipelined loops, and what `DELIBERATE` lists.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.transforms.ttg.reference import normal
from tilework.ir.module_facts import num_warps, target
from tilework.ir.parser import parse_module
from tilework.targets.amd.arch import AmdFeature
from tilework.targets.amd.pipeline import ttgir_pipeline
from tilework.transforms.registry import run_pipeline
from tilework.transforms.ttg import coalesce

REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
KERNELS = {f"{path.parent.name}/{path.stem}": path for path in sorted(REFERENCE.glob("amd/gfx9*/*.ttgir"))}
STAGES = {"matmul_f16_small": 4}
POINTER = re.compile(r"(!tt\.ptr<\w+> \{tt\.divisibility = 16 : i32)(?=[},])")
PRECISION = re.compile(r", inputPrecision = tf32")
IMPRECISE = re.compile(r" \{maxNumImpreciseAcc = \d+ : i32\}")
ALIAS = re.compile(r"^(#\w+) = (.*)$", re.MULTILINE)
VALUE = re.compile(r"%\w+(:\d+)?(#\d+)?")
CARRIED = re.compile(r" -> \((.*)\)  : \w+ \{$|^scf\.yield .*? : (.*)$")
# How many iterations there are, which buffer is next: `n > k` for `n - k >= 1`, a counter in another place.
SCALAR = re.compile(r"^% = arith\.(constant \d+|(?:cmpi \w+,|select|addi|subi|divsi|muli|ceildivui) %.*) ?: i\d+$")
DELIBERATE = {
    # The uniform part of an offset that a loop advances is added once; the sum of rows needs no selection behind a
    # peeled iteration that cannot be the only one.
    "attention": re.compile(
        r"% = (arith\.addi %, %|tt\.splat %) : (i32 -> )?tensor<\d+x\d+xi32, .*"
        r"|% = arith\.select %, %, % : tensor<128xf32, .*"
    ),
    # The last address is the address before plus a step that is known.
    "matmul_f16_small": re.compile(
        r"% = arith\.constant dense<64> : tensor<64x32xi32, .*|% = tt\.splat % : i32 -> tensor<32x64xi32, .*"
    ),
}
# Atomics go one by one to addresses from data (`Feature.DIRECT_ATOMICS`): they keep the layout of the data.
DELIBERATE["histogram"] = re.compile(r".*1024xi32, #ttg\.blocked<\{sizePerThread = \[(1|4)\], .*")
DELIBERATE["attention_causal"] = DELIBERATE["attention"]


def lines(module: ModuleOp) -> Counter[str]:
    """Count the lines of a module, without names; layouts are written out, carried values are in no order."""
    text = normal(module)
    written: dict[str, str] = {}
    for name, layout in ALIAS.findall(text):
        written[name] = expanded(layout, written)
    found = (expanded(VALUE.sub("%", line).strip(), written) for line in text.splitlines())
    found = (line for line in found if not line.startswith(("#", "module", "tt.func")) and not SCALAR.match(line))
    return Counter(in_no_order(line) if "scf.for" in line or "scf.yield" in line else line for line in found)


def in_no_order(line: str) -> str:
    """Return the types of the values of a loop or a yield, sorted."""
    types, depth = [""], 0
    carried = CARRIED.search(line)
    for character in carried[1] or carried[2] if carried is not None else "":
        depth += (character in "<[({") - (character in ">])}")
        if character == "," and depth == 0:
            types.append("")
        else:
            types[-1] += character
    return f"carried: {', '.join(sorted(one.strip() for one in types))}"


def expanded(line: str, written: dict[str, str]) -> str:
    return re.sub(r"#\w+\b", lambda name: written.get(name[0], name[0]), line)


def source(path: Path) -> str:
    """Return the TTIR of a kernel, which is that for NVIDIA GPUs without what only these have."""
    if (own := path.with_suffix(".ttir")).exists():  # descriptors are pointers there
        return own.read_text()
    given = next(file for arch in ("sm_80", "sm_90") if (file := REFERENCE / arch / f"{path.stem}.ttir").exists())
    return IMPRECISE.sub("", POINTER.sub(r"\1, tt.pointer_range = 32 : i32", given.read_text()))


@pytest.mark.parametrize("kernel", KERNELS)
def test_our_passes_decide_as_tritons(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalesce, "loads_for_tables", lambda *_: {})  # atomics that we collect in LDS
    path = KERNELS[kernel]
    wanted = parse_module(path.read_text())
    given = source(path)
    if AmdFeature.XF32 not in target(wanted).features:
        given = PRECISION.sub("", given)
    module = parse_module(given)
    run_pipeline(module, ttgir_pipeline(target(wanted), num_warps(wanted), STAGES.get(path.stem, 3)))
    ours, theirs = lines(module), lines(wanted)
    different = [*(ours - theirs), *(theirs - ours)]
    allowed = DELIBERATE.get(path.stem)
    assert [line for line in different if allowed is None or not allowed.fullmatch(line)] == []


def test_there_are_kernels() -> None:
    assert len(KERNELS) >= 26
