"""Triton compiles the TTGIR of our pipeline to the end, and we read the TTGIR of Triton's for the same kernels."""

import base64
from functools import cache
from itertools import product

import pytest

from benchmarks.ttgir_decisions import KERNELS, ours
from tests.pipeline.compiled import CASES as EXAMPLES
from tests.pipeline.gpu import Config, ttgir
from tests.pipeline.gpu_matrix import SAMPLE
from tests.triton.peer import Answer, run_triton, triton_python
from tilework.compiler import ASTSource, compile
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.target import Target
from tilework.targets.amd.kernel_notes import read_descriptor, read_notes
from tilework.targets.amd.link import link
from tilework.targets.elf_sections import read_sections

FEATURES = {"gfx942": "", "gfx1100": "-real-true16"}  # as our code has it
SLOW = "matmul_fp8", "gfx1100"  # ten minutes of Triton's
AMD = {":".join(pair): pair for pair in product(KERNELS, FEATURES) if pair != SLOW}
OURS = {str(config): config for config in SAMPLE}
THEIRS = {str(config): config for config in SAMPLE if config.name in EXAMPLES}


@pytest.fixture(autouse=True)
def needs_triton() -> None:
    if triton_python() is None:
        pytest.skip("Triton is not installed here; TRITON_PYTHON may name an interpreter that has it")


def entry_of(key: str, arch: int | str, text: str) -> dict:
    return {"key": key, "arch": arch, "stage": "ttgir", "text": text}


def text_of(key: str, config: Config) -> dict:
    return entry_of(key, config.arch, print_module(ttgir(config)))


def kernel_of(key: str, config: Config) -> dict:
    case = EXAMPLES[config.name]
    return {
        "key": key,
        "arch": config.arch,
        "stage": "ttgir",
        "kernel": case.kernel.__name__,
        "file": case.kernel.where.file,
        "signature": case.types,
        "constexprs": dict(case.constexprs),
        "attrs": [[list(path), facts] for path, facts in case.attrs.items()],
        "options": {"num_warps": config.warps, "num_stages": config.stages},
    }


@cache
def ask(arch: int | str) -> Answer:
    """One run of Triton for each target: importing it is slow, but how it converts fp8 depends on the first target."""
    python = triton_python()
    assert python is not None
    if isinstance(arch, str):
        chosen = {key: kernel for key, (kernel, of) in AMD.items() if of == arch}
        made = {key: print_module(ours(kernel, f"hip:{arch}")) for key, kernel in chosen.items()}
        return run_triton(python, {"texts": [entry_of(key, arch, text) for key, text in made.items()]})
    texts = [text_of(key, config) for key, config in OURS.items() if config.arch == arch]
    kernels = [kernel_of(key, config) for key, config in THEIRS.items() if config.arch == arch]
    return run_triton(python, {"texts": texts, "kernels": kernels})


@pytest.mark.parametrize("key", OURS)
def test_triton_compiles_our_ttgir(key: str) -> None:
    refused = ask(OURS[key].arch).refused
    assert key not in refused, refused[key]


@pytest.mark.parametrize("key", AMD)
def test_triton_compiles_our_ttgir_for_amd(key: str) -> None:
    """Of the reference kernels, from Triton's own TTIR."""
    refused = ask(AMD[key][1]).refused
    assert key not in refused, refused[key]


@pytest.mark.parametrize("key", THEIRS)
def test_we_read_tritons_ttgir(key: str) -> None:
    module = parse_module(ask(THEIRS[key].arch).printed[key])
    verify(module)
    assert print_module(parse_module(print_module(module))) == print_module(module)


@pytest.mark.parametrize("arch", FEATURES)
def test_assembly_for_amd(arch: str) -> None:
    """Triton's assembler makes the same code object from the assembly as LLVM does directly."""
    python = triton_python()
    assert python is not None
    kernels = {}
    for name, case in EXAMPLES.items():
        source = ASTSource(case.kernel, signature=case.types, constexprs=case.constexprs, attrs=case.attrs)
        kernels[name] = compile(source, target=Target.parse(f"hip:{arch}").name)
    entries = [
        {"key": name, "arch": arch, "features": FEATURES[arch], "text": kernel.asm["amdgcn"]}
        for name, kernel in kernels.items()
    ]
    objects = run_triton(python, {"assembled": entries}).printed
    for name, kernel in kernels.items():
        linked, made = link(base64.b64decode(objects[name])), kernel.asm["hsaco"]
        assert read_notes(linked) == read_notes(made) and read_descriptor(linked) == read_descriptor(made), name
        assert code_of(linked) == code_of(made), name


def code_of(data: bytes) -> bytes:
    return next(section.data for section in read_sections(data) if section.name == ".text")
