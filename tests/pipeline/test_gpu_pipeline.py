"""The stage `ttgir`: every kernel computes the same after every pass, and the text is repeatable and readable.

All configurations: ``python -m tests.pipeline.gpu_matrix``.
"""

import random
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.pipeline.compiled import first_difference
from tests.pipeline.gpu import CASES, Config, check, run, ttgir, ttir
from tests.pipeline.gpu_generated import problem_of
from tests.pipeline.gpu_matrix import SAMPLE
from tests.pipeline.stages import check_stage
from tilework import knobs
from tilework.compiler import ASTSource, compile
from tilework.inspect.check_each import check_each
from tilework.ir import ttg
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.rewrite import erase_op
from tilework.ir.verify import verify
from tilework.oracles.evaluator import EvaluationError
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.tools.cli import main
from tilework.transforms.registry import PASSES, parse_pipeline, run_pipeline

# Every kernel once, on one target or the other.
NAMES = list(CASES)
EACH = [config for config in SAMPLE if (NAMES.index(config.name) + config.arch // 10) % 2 or "fp8e4nv" in config.name]


@pytest.mark.parametrize("config", SAMPLE, ids=str)
def test_the_product_is_ttgir_and_is_read_again(config: Config) -> None:
    """And of each kernel on one target, every pass keeps what it computes, and the second product has the text of the
    first."""
    module = ttgir(config)
    verify(module)
    check_stage(module, "ttgir")
    text = print_module(module)
    assert first_difference(module, parse_module(text)) is None
    if config in EACH:
        problem = check(config, every=9, product=text)
        assert problem is None, problem


@pytest.mark.parametrize("arch", (75, 80, 86, 89, 90))
def test_the_pipeline_names_passes(arch: int) -> None:
    items = ttgir_pipeline(Target.parse(f"cuda:{arch}"), num_warps=8, num_stages=4, num_ctas=1)
    assert len(parse_pipeline(",".join(items))) == len(items)
    assert all(item.partition("{")[0] in PASSES for item in items)
    assert ("triton-nvidia-tma-lowering" in items) == (arch >= 90)
    assert any(item.startswith("tritongpu-pipeline") for item in items) == (arch >= 80)


def with_barriers(config: Config) -> ModuleOp:
    module = ttgir(config)
    run_pipeline(module, [one for item in config.memory_passes for one in parse_pipeline(item)])
    return module


@pytest.mark.parametrize("name", ("matmul_fp16_64x64x32", "attention", "persistent_descriptors"))
@pytest.mark.parametrize("arch", (80, 90))
def test_code_without_its_barriers_is_found_out(name: str, arch: int) -> None:
    config = Config(name, arch)
    module = with_barriers(config)
    run(CASES[name], module, barriers=True, fences=True)
    barriers = [op for op in module.walk() if type(op) is ttg.BarrierOp]
    assert barriers
    for op in barriers:
        erase_op(op)
    with pytest.raises(EvaluationError, match="barrier is missing"):
        run(CASES[name], module, barriers=True, fences=True)


def test_a_pass_that_is_wrong_is_named() -> None:
    """The check is worth something: a pipeline that waits for too little is found."""
    module = ttgir(Config("matmul_fp16_64x64x32", 80))
    text = print_module(module)
    assert "{num = 2 : i32}" in text
    wrong = parse_module(text.replace("{num = 2 : i32}", "{num = 4 : i32}"))
    with pytest.raises(EvaluationError, match="a wait is missing"):
        run(CASES["matmul_fp16_64x64x32"], wrong)


MATMUL = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:16, 64, 64, 32, 8"


def test_the_command_writes_both_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(Path(CASES["matmul"].kernel.where.file))
    command = ["compile", f"{source}:matmul", "--signature", MATMUL, "--target", "cuda:90", "--num-warps", "8"]
    assert main([*command, "--emit", "ttir,ttgir", "-o", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["matmul.ttgir", "matmul.ttir"]
    text = (tmp_path / "matmul.ttgir").read_text()
    assert '"ttg.num-warps" = 8 : i32' in text and "ttng.warp_group_dot" in text
    verify(parse_module(text))
    assert main(["compile", str(tmp_path / "matmul.ttir"), "--target", "cuda:80", "--emit", "ttgir"]) == 0
    assert "tt.dot" in capsys.readouterr().out


def test_the_command_checks_each_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "add.ttir"
    options = ["--signature", "*fp32:16, *fp32:16, *fp32:16, i32:16, 128", "--target", "cuda:80", "-o", str(tmp_path)]
    assert main(["compile", f"{CASES['add'].kernel.where.file}:add", *options]) == 0
    assert (
        main(
            ["opt", str(file), "-p", ",".join(ttgir_pipeline(Target.parse("cuda:80"))), "--check-each", "--verify-each"]
        )
        == 0
    )
    captured = capsys.readouterr()
    assert "checked 'add'" in captured.err and "#blocked" in captured.out
    assert main(["opt", str(file), "-p", "cse", "--check-each", "--given", "n=96"]) == 0
    assert main(["opt", str(file), "-p", "cse", "--check-each", "--given", "n=many"]) == 1
    assert "--given n=many: expected NAME=NUMBER" in capsys.readouterr().err


def test_compile_keeps_the_ttgir(tmp_path: Path) -> None:
    case = CASES["softmax"]
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        source = ASTSource(case.kernel, case.types, dict(case.constexprs), case.attrs)
        kernel = compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8, "num_stages": 2})
    assert '"ttg.num-warps" = 8 : i32' in kernel.asm["ttgir"] and "tt.reduce" in kernel.asm["ttir"]
    verify(parse_module(kernel.asm["ttgir"]))


def test_given_arguments_reach_a_pipelined_loop() -> None:
    """Without them `check_each` draws sizes for which the loop runs once."""
    config = Config("matmul_fp16_64x64x32", 90)
    case, rng = CASES[config.name], np.random.default_rng(1)
    arrays = case.arguments(rng)
    report = check_each(ttir(config.name, 90), ",".join(config.passes), given=arrays, grid=(1, 1, 1))
    assert report.ok and report.checked == ("typed_matmul",), str(report)


def test_order_of_compilations_does_not_matter() -> None:
    """Caches of layouts and passes hold no state of a kernel."""
    configs = [Config(name, arch) for name in ("add", "matmul", "attention") for arch in (80, 90)]
    first = {config: print_module(ttgir(config)) for config in configs}
    random.Random(5).shuffle(configs)
    assert {config: print_module(ttgir(config)) for config in configs} == first


@pytest.mark.parametrize("seed", range(2))
def test_generated_kernels(seed: int) -> None:
    """More of them: ``python -m tests.pipeline.gpu_generated 0 100``."""
    problem = problem_of(seed)
    assert problem is None, problem
