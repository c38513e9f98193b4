"""TTGIR that the reference compiler printed: read, verified, within the contract of its stage, and printed again.

`reference/pipeliner` is what it prints in the middle of its pipeliner: without aliases, and with marks on the ops.
"""

import re
from pathlib import Path

import pytest

from tests.pipeline.stages import StageError, check_stage
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import first_problem

REFERENCE = Path(__file__).parent / "reference"
FINAL = sorted([path for part in ("sm_80", "sm_90", "amd") for path in REFERENCE.glob(f"{part}/*.ttgir")])
INNER = sorted(REFERENCE.glob("pipeliner/*.ttgir"))
ALIAS = re.compile(r"^(#\w+) = (.*)\n", re.MULTILINE)


def label(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def without_aliases(text: str) -> str:
    """`text` with the definition of each alias in place of its name."""
    definitions = dict(ALIAS.findall(text))
    body = ALIAS.sub("", text)
    while any(re.search(rf"{name}\b", body) for name in definitions):
        for name, value in definitions.items():
            body = re.sub(rf"{name}\b", lambda match, value=value: value, body)
    return body


def test_there_are_fixtures() -> None:
    assert len(FINAL) >= 27 and len(INNER) == 5


@pytest.mark.parametrize("path", INNER, ids=label)
def test_text_without_aliases_is_printed_with_them(path: Path) -> None:
    text = path.read_text()
    printed = print_module(parse_module(text, path.name))
    assert printed.startswith("#blocked = ") or printed.startswith("#mma = ")
    assert without_aliases(printed) == without_aliases(text)


@pytest.mark.parametrize("path", [*FINAL, *INNER], ids=label)
def test_ttgir_is_well_formed_and_printed_as_it_was(path: Path) -> None:
    text = path.read_text()
    module = parse_module(text, path.name)
    assert first_problem(module) is None
    check_stage(module, "ttgir")
    printed = print_module(module)
    if path in FINAL:
        assert printed == text
    else:
        assert module.is_structurally_equivalent(parse_module(printed))
    assert module.is_structurally_equivalent(parse_module(print_module(module, debuginfo=True)))


def test_ttgir_is_no_ttir() -> None:
    module = parse_module(FINAL[0].read_text())
    with pytest.raises(StageError, match="ttir has no encodings"):
        check_stage(module, "ttir")


BARE = "tt.func @f(%x: f32) { %y = tt.splat %x : f32 -> tensor<8xf32> tt.return }"
MASKED = 'tt.func @f(%p: i1) { "ttg.mask"(%p) ({ "ttg.mask.return"() : () -> () }) : (i1) -> () tt.return }'
EIGHT = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>"
WARPS = f"tt.func @f(%x: f32) {{ %y = tt.splat %x : f32 -> tensor<8xf32, {EIGHT}> tt.return }}"
OUTSIDE = [
    ("every tensor of ttgir has an encoding, but found tensor<8xf32>", BARE),
    ("is not an op of ttgir", MASKED),
    ("Layout has 8 warps per CTA, but the context requires 4 warps per CTA.", WARPS),
]


@pytest.mark.parametrize(("message", "text"), OUTSIDE, ids=["no encoding", "pipeliner", "warps"])
def test_the_contract_of_ttgir(message: str, text: str) -> None:
    module = parse_module(f'module attributes {{"ttg.num-warps" = 4 : i32}} {{ {text} }}')
    with pytest.raises(StageError, match=re.escape(message)):
        check_stage(module, "ttgir")
