"""Pass names, pipeline text, and the pipelines built from them."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.target import Target
from tilework.targets.base import pass_of, run_passes
from tilework.transforms import registry
from tilework.transforms.passes import Pass
from tilework.transforms.registry import (
    NEEDS,
    PASSES,
    BadPassOption,
    BadPipeline,
    Present,
    UnknownPass,
    get_pass,
    parse_pipeline,
    ttir_pipeline,
)


class WithOptions(Pass):
    name = "test-with-options"
    num_stages: int = 3
    fast: bool = False
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        raise AssertionError("only made, never run")


@pytest.fixture
def with_options(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = registry.get_pass
    monkeypatch.setattr(registry, "get_pass", lambda name: WithOptions if name == WithOptions.name else chosen(name))


@pytest.mark.parametrize("name", sorted(PASSES))
def test_every_registered_pass_can_be_made(name: str) -> None:
    assert isinstance(get_pass(name)(), Pass)


@pytest.mark.parametrize("text", ["canonicalize,cse", " canonicalize , cse ", "builtin.module(canonicalize,cse)"])
def test_a_pipeline_is_a_list_of_names(text: str) -> None:
    assert parse_pipeline(text) == [get_pass("canonicalize")(), get_pass("cse")()]


def test_an_empty_pipeline() -> None:
    assert parse_pipeline("") == parse_pipeline("builtin.module()") == []


def test_options_become_fields(with_options: None) -> None:
    (made,) = parse_pipeline("test-with-options{num-stages=4 fast=true target=cuda:90}")
    assert made == WithOptions(num_stages=4, fast=True, target="cuda:90")
    assert parse_pipeline("test-with-options{fast},cse") == [WithOptions(fast=True), get_pass("cse")()]


def test_an_unknown_pass_is_named() -> None:
    with pytest.raises(UnknownPass, match=r"`no-such-pass`; there are: .*canonicalize, .*cse"):
        parse_pipeline("no-such-pass")
    with pytest.raises(UnknownPass, match=r"no pass is called `canonicalise`: did you mean 'canonicalize'\?"):
        parse_pipeline("canonicalise")
    with pytest.raises(BadPassOption, match=r"does not take `targett`: did you mean 'target'\?"):
        parse_pipeline("convert-triton-to-tritongpu{targett=cuda:90}")


@pytest.mark.parametrize("options", ["stages=4", "num-stages=many", "fast=perhaps"])
def test_a_bad_option_is_named(with_options: None, options: str) -> None:
    with pytest.raises(BadPassOption, match=f"does not take `{options.partition('=')[0]}"):
        parse_pipeline(f"test-with-options{{{options}}}")


def test_bad_pipeline_text() -> None:
    with pytest.raises(BadPipeline, match="position 4"):
        parse_pipeline("cse,(,")


def test_descriptors_become_pointers_before_sm_90() -> None:
    rewrite = "triton-rewrite-tensor-descriptor-to-pointer"
    assert rewrite in ttir_pipeline(Target.parse("cuda:80")) and rewrite in ttir_pipeline(Target.parse("cpu"))
    assert rewrite not in ttir_pipeline(Target.parse("cuda:90")) and rewrite not in ttir_pipeline(
        Target.parse("cuda:100")
    )
    assert all(name in PASSES for name in ttir_pipeline(Target.parse("cuda:80")))


def test_after_sees_every_stage() -> None:
    module = parse_module("tt.func public @f() {\n  tt.return\n}")
    seen: list[str] = []
    registry.run_pipeline(module, ["canonicalize", get_pass("cse")()], after=lambda stage, _: seen.append(stage.name))
    assert seen == ["canonicalize", "cse"]


def test_passes_do_nothing_without_what_they_need() -> None:
    texts = [
        text for path in sorted(Path(__file__).parent.rglob("*.mlir")) for text in path.read_text().split("// -----")
    ]
    ran = set[str]()
    for text in [text for text in texts if "test.use" not in text][::6]:
        module = parse_module(text)
        present, before = Present(module), print_module(module)
        idle = [name for name, needs in NEEDS.items() if not present.serves(needs)]
        for name in idle:
            get_pass(name)().run(module)
        assert print_module(module) == before, (idle, before)
        ran.update(idle)
    assert ran == NEEDS.keys()


def test_a_pass_is_requested_once_there_is_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    chosen = registry.get_pass
    monkeypatch.setattr(registry, "get_pass", lambda name: requested.append(name) or chosen(name))
    text = "tt.func public @f(%n: i32) {\n  BODY\n  tt.return\n}"
    loop = "%c = arith.constant 1 : i32\n  scf.for %i = %c to %n step %c : i32 {\n  }"
    for body in ("", loop):
        pass_of.cache_clear()
        run_passes(parse_module(text.replace("BODY", body)), ["triton-loop-unroll", "tritongpu-prefetch", "dce"])
        requested.append("and")
    assert requested == ["dce", "and", "triton-loop-unroll", "tritongpu-prefetch", "dce", "and"]
