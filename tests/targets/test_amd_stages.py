"""The stages of AMD GPUs for users who look at them or replace them: the assembly is one of them."""

from pathlib import Path
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, CompiledKernel, GPUTarget, compile
from tilework.errors import StageError
from tilework.targets.amd.code_object import generated
from tilework.triton import libtriton_ir
from tilework.triton.backends import HIPBackend, HIPOptions

TARGET = GPUTarget("hip", "gfx942", 64)
STAGES = ["ttir", "ttgir", "llir", "amdgcn", "hsaco"]
END, CHANGED = "s_endpgm", "s_nop 0\n\ts_endpgm"


@tilework.jit
def one(x):
    tl.store(x, 1.0)


def compiled(**options: object) -> CompiledKernel:
    return compile(ASTSource(one, {"x": "*fp32"}), TARGET, options)


class Hook:
    """A hook that may change the assembly."""

    def __init__(self, changes: bool) -> None:
        self.changes, self.seen = changes, []

    def __call__(self, backend: Any = None, stages: Any = None, *others: object) -> Any:
        if stages is None:
            return "changed", str(self.changes)
        self.seen.append((list(stages), others[-1]))
        amdgcn = stages["amdgcn"]
        if self.changes:
            stages["amdgcn"] = lambda text: amdgcn(text).replace(END, CHANGED)
        return None


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path) -> Any:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


def test_a_hook_sees_the_assembly() -> None:
    plain = compiled()
    assert list(plain.asm) == ["source", "ttir", "ttgir", "llir", "hsaco"] and END in plain.asm["amdgcn"]
    knobs.runtime.add_stages_inspection_hook = hook = Hook(changes=False)
    kernel = compiled()
    assert hook.seen == [(STAGES, None)]
    assert list(kernel.asm) == ["source", *STAGES]
    assert [kernel.asm[stage] for stage in ("amdgcn", "hsaco")] == [plain.asm[stage] for stage in ("amdgcn", "hsaco")]
    assert {**kernel.metadata._asdict(), "hash": "", "key_parts": ""} == {
        **plain.metadata._asdict(),
        "hash": "",
        "key_parts": "",
    }


def fake_assembler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a `llvm-mc` that keeps its input, and outputs the object of the unchanged kernel."""
    (folder / "object").write_bytes(generated(compiled().asm["llir"], as_text=False))
    program, kept = folder / "llvm" / "bin" / "llvm-mc", folder / "assembly"
    program.parent.mkdir(parents=True)
    check = '[ "$1 $2 $3" = "-triple=amdgcn-amd-amdhsa -filetype=obj -mcpu=gfx942" ]'
    program.write_text(f'#!/bin/sh\n{check} && cp "$4" {kept} && cp {folder}/object "$6"\n')
    program.chmod(0o755)
    monkeypatch.setenv("ROCM_PATH", str(folder))
    return kept


def test_a_hook_replaces_the_assembly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = fake_assembler(tmp_path, monkeypatch)
    knobs.runtime.add_stages_inspection_hook = Hook(changes=True)
    kernel = compiled()
    assert CHANGED in kernel.asm["amdgcn"] and kept.read_text() == kernel.asm["amdgcn"]
    assert kernel.asm["hsaco"][:4] == b"\x7fELF" and kernel.metadata.n_regs > 0


def test_a_file_replaces_the_assembly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.cache.override_dir = knobs.cache.dump_dir = str(tmp_path / "files")
    knobs.compilation.dump_ir = True
    changed = compiled().asm["amdgcn"].replace(END, CHANGED)
    (dumped,) = (tmp_path / "files").rglob("one.amdgcn")
    dumped.write_text(changed)
    for other in dumped.parent.iterdir():
        if other != dumped:
            other.unlink()
    kept = fake_assembler(tmp_path, monkeypatch)
    knobs.compilation.dump_ir, knobs.compilation.override = False, True
    assert compiled().asm["amdgcn"] == changed == kept.read_text()


def test_changed_assembly_needs_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    knobs.runtime.add_stages_inspection_hook = Hook(changes=True)
    with pytest.raises(StageError, match="the assembly of the stage amdgcn for hip:gfx942 cannot be assembled: neith"):
        compiled()
    monkeypatch.setattr(knobs.runtime, "device", "emulator:gfx942")
    with pytest.raises(StageError, match="the emulator executes LLVM text"):
        compiled()


def test_stages_by_hand() -> None:
    """As static methods of Triton's backend."""
    options = HIPBackend(TARGET).parse_options({})
    assert isinstance(options, HIPOptions)
    source = ASTSource(one, {"x": "*fp32"})
    module: Any = source.make_ir(TARGET, options, {}, {}, libtriton_ir.context())
    metadata: dict[str, Any] = {}
    ttgir = HIPBackend.make_ttgir(HIPBackend.make_ttir(module, metadata, options), metadata, options)
    assembly = HIPBackend.make_amdgcn(HIPBackend.make_llir(ttgir, metadata, options), metadata, options)
    assert END in assembly and metadata["shared"] == 0
    assert HIPBackend.make_hsaco(assembly, metadata, options)[:4] == b"\x7fELF"
    with pytest.raises(ValueError, match="not Gluon"):
        HIPBackend.gluon_to_ttgir(module, metadata, options)
