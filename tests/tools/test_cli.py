"""The command line as a whole: versions, suggestions, and bad input, which gives one line and no traceback."""

from pathlib import Path

import pytest

from tilework.tools import cli
from tilework.tools.cli import main
from tilework.version import __version__

KERNEL = """
import tilework
import tilework.language as tl

@tilework.jit
def fill(p, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(p + i, n * tl.exp(tl.load(p + i)))
"""
SIGNATURE = ["--signature", "*fp32:16, fp32, 64"]
FILES: dict[str, str | bytes] = {
    "good.py": KERNEL,
    "two.py": KERNEL + "\n@tilework.jit\ndef other(p):\n    pass\n",
    "syntax.py": "def f(:\n",
    "none.py": "x = 1\n",
    "binary.py": bytes(range(256)),
    "latin.py": b"# caf\xe9\n" + KERNEL.encode(),
    "missing.py": "\nimport no_such_package\n",
    "raises.py": KERNEL + "\nraise RuntimeError('boom')\n",
    "exits.py": KERNEL + "\nraise SystemExit(3)\n",
    "bad.ttir": "module {\n  this is not ir\n}\n",
    "binary.ttir": bytes(range(256)),
    "bad.llir": "define hello\n",
    "bad.xyz": "",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder.py").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["optt"], "no command 'optt': did you mean 'opt'?"),
        (["opt", "--chek-each"], "did you mean '--check-each'?"),
        (["opt", "-triton-combin"], "did you mean '--triton-combine'?"),
        (["cache", "infoo"], "did you mean 'info'?"),
        (["compile", "good.py", "--emitt", "ptx"], "did you mean '--emit'?"),
        (["opt", "-p", "canonicalise", "/dev/null"], "did you mean 'canonicalize'?"),
    ],
)
def test_what_was_meant_is_suggested(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(argv)
    except SystemExit as error:
        code = error.code
    assert code in (1, 2)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["opt", "nowhere.ttir"], "tilework opt: error: nowhere.ttir: no such file or directory"),
        (["opt", "binary.ttir"], "tilework opt: error: binary.ttir: not text"),
        (["opt", "bad.ttir", "--check-each", "--seed", "-5"], "tilework opt: error: --seed -5: expected"),
        (["layout", "-i", "binary.ttir", "--shape", "4x4"], "tilework layout: error: binary.ttir: not text"),
        (
            ["layout", "#ttg.blocked<{}>", "--shape", "65536x65536"],
            "tilework layout: error: shape 65536x65536: 4294967296",
        ),
        (["cache", "prune", "--older-than", "-1"], "tilework cache: error: --older-than -1: expected"),
        (["cache", "info", "--dir", "good.py"], "tilework cache: error: good.py: it is not a directory"),
        (["tune", "nowhere.py"], "tilework tune: error: there is no file nowhere.py"),
        (["emulate", "folder.py"], "tilework emulate: error: folder.py: is a directory"),
    ],
)
def test_other_commands_tell_bad_input_in_a_line(
    argv: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) in (1, 2)
    reported = capsys.readouterr().err
    assert reported.startswith(words) and reported.count("\n") == 1


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tilework {__version__}\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("good.py:fil", "good.py has no kernel 'fil': did you mean 'fill'?"),
        ("two.py", "say which kernel: two.py:fill or two.py:other"),
        ("syntax.py:k", "syntax.py cannot be imported: SyntaxError"),
        ("none.py:k", "none.py has no kernels"),
        ("binary.py:k", "binary.py cannot be imported"),
        ("latin.py:fill", "latin.py cannot be imported"),
        (
            "missing.py:k",
            "missing.py cannot be imported (line 2): ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("raises.py:fill", "raises.py cannot be imported (line 10): RuntimeError: boom"),
        ("exits.py:fill", "exits.py ends the program while it is imported (line 10: exit code 3)"),
        ("nowhere.py:k", "no file nowhere.py"),
        ("folder.py:k", "no file folder.py"),
        ("nowhere.ttir", "nowhere.ttir: no such file or directory"),
        ("bad.ttir", "bad.ttir:2:3: error: there is no operation 'this'"),
        ("binary.ttir", "binary.ttir: not text: byte 0x80 at position 128 is not utf-8"),
        ("bad.xyz", "bad.xyz: a source is a .ttir"),
    ],
)
def test_bad_files_are_reported_in_a_line(
    source: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", source, *SIGNATURE, "--target", "cpu", "--emit", "ttir"]) == 1
    assert capsys.readouterr().err.startswith(f"tilework compile: {words}")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--emit", "ttri"], "target cpu has no stage 'ttri': did you mean 'ttir'? It has ttir,"),
        (["--emit", ""], "--emit names no stage"),
        (["--num-warps", "3"], "--num-warps must be a power of 2, got 3"),
        (["--num-ctas", "0"], "--num-ctas must be a power of 2, got 0"),
        (["--target", "cdua:90"], "target 'cdua:90': there is no compiler for 'cdua': did you mean 'cuda'?"),
        (["-o", "good.py"], "good.py is no folder"),
        (
            ["--signature", "*fp32"],
            "fill has the parameters p, n, B; the signature has 1 entries, and no entry for n, B",
        ),
    ],
)
def test_bad_options_are_reported_in_a_line(
    options: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "good.py", *SIGNATURE, "--target", "cpu", *options]) == 1
    assert capsys.readouterr().err.startswith(f"tilework compile: {words}")


def test_a_mistake_of_ours_is_a_line_and_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tilework.tools.cache.run", lambda args: 1 // 0)
    assert cli.main(["cache", "info"]) == 70
    (report,) = tmp_path.glob("tilework-*.txt")
    reported = capsys.readouterr().err
    assert "internal error: ZeroDivisionError" in reported and str(report) in reported and "Traceback" not in reported
    assert "Traceback" in report.read_text()


def test_assembly_of_the_host_shows_source_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "good.py", *SIGNATURE, "--target", "cpu", "--emit", "asm"]) == 0
    shown = capsys.readouterr().out
    assert " good.py:8: tl.store(p + i, n * tl.exp(tl.load(p + i)))\n" in shown
    assert "fill:\n" in shown and ".cfi_" not in shown and ".loc" not in shown and "debug_info" not in shown


def test_the_rest_is_written_where_no_disassembler_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilework.errors import StageError
    from tilework.targets.nvidia import cubin

    def nothing(*_: bool) -> None:
        raise StageError("sass needs nvdisasm")

    monkeypatch.setattr(cubin, "disassembler", nothing)
    argv = ["compile", "good.py", *SIGNATURE, "--target", "cuda:80", "--emit", "ttir,sass,ptx", "-o", "out"]
    assert main(argv) == 1
    assert sorted(path.name for path in Path("out").iterdir()) == ["fill.ptx", "fill.ttir"]
    assert capsys.readouterr().err.startswith("tilework compile: note: no sass: ")
