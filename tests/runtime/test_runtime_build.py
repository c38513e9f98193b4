"""Helper modules in C: built once, kept in the cache, rebuilt when damaged.

Most tests use a stand-in for the C compiler, which copies an extension module of Python's own, so that they need none.
"""

import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tilework import knobs
from tilework.triton import build
from tilework.triton.build import compile_module_from_src

SOURCE = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "helper", NULL, -1, methods};
PyMODINIT_FUNC PyInit_helper(void) { return PyModule_Create(&def); }
"""
CANDIDATES = ("_heapq", "_bisect", "_csv", "_json", "_random", "_queue", "math", "_datetime")
NAME, READY = next(
    (name, spec.origin) for name in CANDIDATES if (spec := find_spec(name)) and str(spec.origin).endswith(build.SUFFIX)
)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.build.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.build.impl = None
        yield


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A stand-in for a C compiler: logs its arguments and delivers a module that loads."""
    script = tmp_path / "stand-in-cc"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n'
        f'while [ "$1" != "-o" ]; do shift; done\ncp {READY} "$2"\n'
    )  # fmt: skip
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    knobs.build.cc = str(script)
    return tmp_path / "calls"


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def test_a_module_is_built_once(compiler: Path) -> None:
    first, again = (compile_module_from_src("/* one */", NAME) for _ in range(2))
    assert first.__name__ == again.__name__ == NAME and len(calls(compiler)) == 1
    assert first.__file__ == again.__file__ and str(first.__file__).startswith(knobs.cache.dir)
    compile_module_from_src("/* two */", NAME)
    assert len(calls(compiler)) == 2


def test_the_arguments_of_the_compiler(compiler: Path) -> None:
    knobs.build.cudart_path = "/cudart"
    compile_module_from_src("", NAME, ["/libs"], ["/headers"], ["cuda", "libx.so.1"], ["-DX=1"])
    compile_module_from_src("", NAME, ["/libs"], ["/headers"], ["cuda", "libx.so.1"], ["-DX=2"])
    first, second = calls(compiler)
    words = first.split()
    for word in ("-L/libs", "-I/headers", "-I/cudart", "-lcuda", "-l:libx.so.1", "-DX=1", "-shared", "-fPIC"):
        assert word in words
    assert f"-I{sysconfig.get_paths()['include']}" in words and words[0].endswith(f"/{NAME}.c")
    assert "-DX=2" in second.split()


def test_a_damaged_file_is_built_again(compiler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = f"from tilework.triton.build import *; compile_module_from_src('', {NAME!r})"
    run = lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    run()  # in another process: Python remembers the modules that it has loaded by their path
    (file,) = (tmp_path / "cache").rglob(f"*{build.SUFFIX}")
    file.unlink()
    file.write_bytes(b"not a module")
    run()
    assert len(calls(compiler)) == 2
    assert compile_module_from_src("", NAME).__name__ == NAME and len(calls(compiler)) == 2


def test_a_compiler_that_fails(compiler: Path) -> None:
    knobs.build.cc = shutil.which("false")
    with pytest.raises(RuntimeError, match="failed with exit code 1"):
        compile_module_from_src("this is not C", NAME)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    knobs.build.cc = None
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"Failed to find a C compiler.*CC"):
        compile_module_from_src("", NAME)


def test_the_build_step_can_be_replaced() -> None:
    seen = []

    def impl(name: str, src: str, srcdir: str, library_dirs: list, include_dirs: list, libraries: list) -> str:
        seen.append((name, Path(src).read_text(), library_dirs, include_dirs, libraries))
        return shutil.copy(str(READY), srcdir)

    knobs.build.impl = impl
    assert compile_module_from_src("/* mine */", NAME, ["/lib"], ["/include"], ["m"]).__name__ == NAME
    assert seen == [(NAME, "/* mine */", ["/lib"], ["/include"], ["m"])]


def test_real_c_where_there_is_a_compiler() -> None:
    headers = Path(sysconfig.get_paths()["include"], "Python.h").exists()
    if headers and any(map(shutil.which, build.COMPILERS)):
        assert compile_module_from_src(SOURCE.replace("ANSWER", "42"), "helper").answer() == 42
        with pytest.raises(RuntimeError, match="failed with exit code"):
            compile_module_from_src("this is not C", "helper")
    else:
        with pytest.raises(RuntimeError, match=r"C compiler|exit code"):
            compile_module_from_src(SOURCE.replace("ANSWER", "42"), "helper")
