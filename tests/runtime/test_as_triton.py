"""Programs that say `import triton`, run by tilework: as a function call and with `python -m tilework.as_triton`."""

import os
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.python_programs import run_python
from tilework.process.triton_version import VERSIONS

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent

KERNEL = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, out_ptr, n, factor: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)

def check(kernel=scale, **options):
    x = np.arange(100, dtype=np.float32)
    out = np.zeros_like(x)
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100, factor=3, **options)
    assert (out == 3 * x).all()
    print("right")
"""
ACTIVATE = "import tilework\ntilework.as_triton()\n"
ACTIVATED = "import tilework; tilework.as_triton()" + KERNEL  # on the same lines: one compilation for both


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all programs, which run one after another: a kernel in the same file is compiled once."""
    return tmp_path_factory.mktemp("as_triton")


@pytest.fixture
def run(folder: Path, warm_cache: Path):
    """Run Python in a folder with the given files, check its exit code, and return what it printed."""
    shutil.rmtree(folder, ignore_errors=True)

    def runner(
        *arguments: str,
        main: str | None = None,
        files: dict[str, str] | None = None,
        code: int = 0,
        error: str = "",
        environment: dict[str, str] | None = None,
    ) -> str:
        folder.mkdir(exist_ok=True)
        for name, text in {**({} if main is None else {"main.py": main}), **(files or {})}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        settings = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "installed")]),
            "TRITON_CACHE_DIR": str(warm_cache),
            "TRITON_INTERPRET": "0",
            **(environment or {}),
        }
        done = run_python(*arguments, cwd=folder, env=settings)
        assert done.returncode == code, done.stderr
        assert error in done.stderr, done.stderr
        return done.stdout

    return runner


INSTALLED = {"installed/triton/__init__.py": "raise RuntimeError('the installed Triton was loaded')\n"}


@pytest.mark.parametrize("installed", [False, True], ids=["alone", "beside Triton"])
def test_as_a_function(run, installed: bool) -> None:
    script = ACTIVATED + "check(BLOCK=32)\n"
    assert run("main.py", main=script, files=INSTALLED if installed else {}) == "right\n"


@pytest.mark.parametrize("installed", [False, True], ids=["alone", "beside Triton"])
def test_as_a_command(run, installed: bool) -> None:
    files = INSTALLED if installed else {}
    script = KERNEL + (
        "import sys\nif __name__ == '__main__':\n    check(BLOCK=32)\n"
        "    print(sys.argv, __file__ == __import__('os').path.abspath('main.py'))\n"
    )
    printed = run("-m", "tilework.as_triton", "main.py", "--flag", "value", main=script, files=files)
    assert printed == "right\n['main.py', '--flag', 'value'] True\n"


def test_as_a_command_for_a_module(run) -> None:
    tool = KERNEL + "import sys\ncheck(BLOCK=32)\nprint(sys.argv[1:], __name__)\n"
    files = {"package/__init__.py": "", "package/tool.py": tool}
    printed = run("-m", "tilework.as_triton", "-m", "package.tool", "--flag", files=files)
    assert printed == "right\n['--flag'] __main__\n"


def test_a_script_finds_the_modules_beside_it(run) -> None:
    files = {
        "sub/main.py": "import neighbour\nprint(neighbour.NAME)\n",
        "sub/neighbour.py": "import triton\nNAME = 'here'\n",
    }
    assert run("-m", "tilework.as_triton", "sub/main.py", files=files) == "here\n"


def test_a_folder_is_a_program_too(run) -> None:
    files = {
        "program/__main__.py": "import neighbour\n",
        "program/neighbour.py": "import triton\nprint(triton.__name__)\n",
    }
    assert run("-m", "tilework.as_triton", "program", files=files) == "triton\n"


def test_the_main_module_is_whole_until_the_end(run) -> None:
    script = KERNEL + (
        "import atexit, os, pickle, sys\nclass Thing:\n    pass\n"
        "assert isinstance(pickle.loads(pickle.dumps(Thing())), Thing) and sys.modules['__main__'].check is check\n"
        "os.mkdir('elsewhere')\nos.chdir('elsewhere')\ncheck(BLOCK=32)\n"
        "atexit.register(lambda: print('end', Thing.__name__))\n"
    )
    assert run("-m", "tilework.as_triton", "main.py", main=script) == "right\nend Thing\n"


def test_the_command_ends_as_the_script_does(run) -> None:
    run("-m", "tilework.as_triton", "main.py", main="raise SystemExit(3)\n", code=3)
    run("-m", "tilework.as_triton", "main.py", main="1 / 0\n", code=1, error="ZeroDivisionError")
    run("-m", "tilework.as_triton", "absent.py", code=2, error="there is no file absent.py")
    run("-m", "tilework.as_triton", code=2, error="usage: python -m tilework.as_triton")
    run("-m", "tilework.as_triton", "-m", code=2, error="usage: python -m tilework.as_triton")
    run("-m", "tilework.as_triton", "--help", error="usage: python -m tilework.as_triton")


def test_tilework_alone_leaves_triton_alone(run) -> None:
    script = "import tilework, tilework.as_triton, triton\nprint(triton.WHO, tilework.as_triton.is_active())\n"
    files = {"installed/triton/__init__.py": "WHO = 'installed'\n"}
    assert run("main.py", main=script, files=files) == "installed False\n"


def test_a_triton_that_is_already_imported_is_an_error(run) -> None:
    files = {"installed/triton/__init__.py": ""}
    text = "RuntimeError: Triton is already imported, from "
    run("main.py", main="import triton\n" + ACTIVATE, files=files, code=1, error=text)


def test_calling_it_twice_does_nothing(run) -> None:
    script = ACTIVATE + (
        "import sys, triton\nimport tilework.as_triton\n"
        "assert tilework.as_triton() is triton and triton.jit is tilework.jit\n"
        "assert tilework.as_triton.is_active() and sum('Triton' in type(f).__name__ for f in sys.meta_path) == 1\n"
    )
    run("main.py", main=script)


def test_both_names_are_the_same_objects(run) -> None:
    script = ACTIVATE + (
        "import pickle, sys, triton, triton.language as tl, tilework.language, triton.runtime.cache\n"
        "import triton.compiler.errors, triton.runtime.driver, triton.knobs\n"
        "from triton.runtime.jit import JITFunction\n"
        "from triton.runtime import driver\n"
        "from triton.language.extra import libdevice\n"
        "assert triton.__version__ == '3.7.1' and tl is tilework.language and triton.knobs is tilework.knobs\n"
        "triton.knobs.redis.port = 99\n"
        "assert tilework.knobs.redis.port == 99\n"
        "assert JITFunction is tilework.JITFunction is triton.JITFunction\n"
        "assert triton.compiler.errors.CompilationError is tilework.CompilationError is triton.CompilationError\n"
        "assert driver is triton.runtime.driver and driver.active is tilework.runtime.driver.active\n"
        "assert triton.runtime.cache is tilework.runtime.kernel_cache.managers is "
        "sys.modules['tilework.runtime.kernel_cache.managers']\n"
        "assert tilework.__spec__.name == 'tilework' and tilework.language.__spec__.name == 'tilework.language'\n"
        "assert libdevice is tilework.language.extra.libdevice\n"
        "assert repr(tl.float32) == 'triton.language.float32' and str(tl.bfloat16) == 'bf16'\n"
        "assert pickle.loads(pickle.dumps(triton.OutOfResources(1, 2, 'x'))).limit == 2\n"
        "names = [n for n in sys.modules if n.startswith('triton.')]\n"
        "copies = [n for n in names if sys.modules[n].__name__ == n and 'experimental' not in n]\n"
        "assert not copies, copies\n"
    )
    run("main.py", main=script)


def test_every_module_can_be_imported(run) -> None:
    script = ACTIVATE + (
        "import re\nfrom importlib import import_module\n"
        f"records = re.split(r'\\n(?! )', open({str(HERE / 'triton_surface.txt')!r}).read().strip())\n"
        "for module, *entries in sorted(map(str.split, records), reverse=True):\n"
        "    exec(f'import {module}', {})\n"
        "    found = import_module(module)\n"
        "    for name in {re.match(r'\\w+', entry)[0] for entry in entries}:\n"
        "        if module != 'triton.runtime.driver':\n"
        "            exec(f'from {module} import {name}', {})\n"
        "            assert hasattr(found, name), (module, name)\n"
        "from triton import compiler\nassert compiler.errors and compiler.compiler and compiler.code_generator\n"
    )
    run("main.py", main=script)


def test_what_does_not_exist(run) -> None:
    script = ACTIVATE + (
        "import importlib.util\n"
        "for name in ('triton.nothing', 'triton.runtime.nothing', 'triton.language.nothing'):\n"
        "    assert importlib.util.find_spec(name) is None\n"
        "    try:\n        __import__(name)\n    except ModuleNotFoundError as error:\n        print(error)\n"
    )
    files = {**INSTALLED, "installed/triton/nothing.py": "raise RuntimeError('loaded')\n"}
    assert run("main.py", main=script, files=files) == (
        "No module named 'triton.nothing'\nNo module named 'triton.runtime.nothing'\n"
        "No module named 'triton.language.nothing'\n"
    )


def test_modules_are_plain_modules(run) -> None:
    """torch.compile follows an import inside of a function only where it gives exactly a module."""
    script = ACTIVATE + (
        "import sys, triton, triton.language.core, triton.runtime.cache, triton.backends\n"
        "assert triton.runtime.cache._base32 and 'CONSTEXPR_0' in dir(triton.language.core)\n"
        "print({type(module).__name__ for name, module in sys.modules.items() if name.split('.')[0] == 'triton' "
        "and name != 'triton.as_triton'})\n"
    )
    assert run("main.py", main=script) == "{'module'}\n"


def test_gluon_kernels_can_be_defined_but_not_launched(run) -> None:
    script = ACTIVATE + (
        "import importlib.util\n"
        "from triton.experimental import gluon\n"
        "from triton.experimental.gluon import language as gl\n"
        "from triton.experimental.gluon.language import extra\n"
        "from triton.experimental.gluon.language.nvidia.hopper import tma, fence_async_shared\n"
        "import triton\n"
        "assert importlib.util.find_spec('triton.experimental.gluon.language.nothing') is None\n"
        "exp, tanh = gl.exp, extra.libdevice.tanh\n"
        "@triton.autotune([triton.Config({'B': 16}), triton.Config({'B': 32})], key=[])\n"
        "@gluon.jit(do_not_specialize=['n'])\n"
        "def kernel(x, n, B: gl.constexpr):\n    gl.store(x + gl.arange(0, B, gl.BlockedLayout([1], [32], [4], "
        "[0])), 1)\n"
        "for use in (lambda: kernel.fn[(1,)](None, 3, 16), lambda: gl.BlockedLayout([1], [32], [4], [0]), "
        "lambda: tma.async_load(1)):\n"
        "    try:\n        use()\n    except RuntimeError as error:\n"
        "        print(str(error).split(': tilework')[0].replace(__file__, 'main.py'))\n"
    )
    assert run("main.py", main=script) == (
        "kernel (main.py:11) is a Gluon kernel\n"
        "triton.experimental.gluon.language.BlockedLayout is Gluon\n"
        "triton.experimental.gluon.language.nvidia.hopper.tma.async_load is Gluon\n"
    )


def test_errors_read_as_tritons(run) -> None:
    script = KERNEL + (
        "@triton.jit\ndef wrong(x_ptr):\n    tl.arange(0, 7)\n"
        "try:\n    wrong[(1,)](np.zeros(4, np.float32))\n"
        "except triton.CompilationError as error:\n"
        "    print(error.__cause__)\n    assert 'at 2:4:' in str(error)\n"
    )
    strict = {"TILEWORK_STRICT_TRITON": "1"}
    printed = run("-m", "tilework.as_triton", "main.py", main=script, environment=strict)
    assert "arange's range must be a power of 2" in printed


def test_autotuning_compiles_candidates_that_say_triton(run) -> None:
    script = KERNEL.replace(
        "@triton.jit\n",
        "@triton.autotune([triton.Config({'BLOCK': b}) for b in (16, 32, 64)], key=['n'])\n@triton.jit\n",
    )
    script += "if __name__ == '__main__':\n    check()\n    assert scale.best_config.kwargs['BLOCK'] in (16, 32, 64)\n"
    assert "right\n" in run("-m", "tilework.as_triton", "main.py", main=script)


def test_the_interpreter_under_tritons_name(run) -> None:
    script = KERNEL + "check(BLOCK=32)\nprint(type(scale).__name__)\n"
    printed = run("-m", "tilework.as_triton", "main.py", main=script, environment={"TRITON_INTERPRET": "1"})
    assert printed == "right\nInterpretedFunction\n"


EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if "CASES = [" in path.read_text("utf-8")]
RUN_CASES = """
import copy, sys
from importlib import import_module
import numpy as np
wrap = lambda value: value
if sys.argv[1] == "torch":
    import torch
    wrap = lambda value: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
for name in sys.argv[2:]:
    for case in import_module("programs." + name).CASES:
        values = case.arguments(np.random.default_rng(0))
        expected = case.expected(copy.deepcopy(values))
        arguments = {key: wrap(value) for key, value in values.items() if key in case.kernel.arg_names}
        case.kernel[case.grid](**arguments, **case.constexprs)
        for key, wanted in expected.items():
            pairs = zip(values[key], wanted) if isinstance(wanted, list) else [(values[key], wanted)]
            for got, want in pairs:
                np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=0, atol=case.atol)
    print(type(case.kernel).__module__, name)
"""


@pytest.mark.parametrize("arrays", ["numpy", "torch"])
def test_examples_run_when_they_say_triton(run, arrays: str) -> None:
    pytest.importorskip(arrays)
    files = {"programs/__init__.py": ""}
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8").replace("tilework", "triton")
        assert "import triton.language as tl" in text
        files[f"programs/{path.name}"] = text
    names = [path.stem for path in EXAMPLES]
    printed = run("-m", "tilework.as_triton", "main.py", arrays, *names, main=RUN_CASES, files=files)
    assert len(names) >= 8 and printed.splitlines() == [f"tilework.runtime.launch.python.jit {name}" for name in names]


def test_examples_run_when_they_say_import_tilework_as_triton(run) -> None:
    files = {"programs/__init__.py": ""}
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8").replace("import tilework\n", "import tilework as triton\n")
        files[f"programs/{path.name}"] = text.replace("tilework.", "triton.").replace(
            "import triton.language", "import tilework.language"
        )
        assert "@triton.jit" in files[f"programs/{path.name}"] or path.stem == "demo"
    names = [path.stem for path in EXAMPLES]
    printed = run("main.py", "numpy", *names, main=RUN_CASES, files=files)
    assert printed.splitlines() == [f"tilework.runtime.launch.python.jit {name}" for name in names]


DTYPES = {
    "int1": "int1", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "float16": "fp16", "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64", "float8e5": "fp8e5", "float8e5b16": "fp8e5b16", "float8e4nv": "fp8e4nv", "float8e4b8": "fp8e4b8",
    "float8e4b15": "fp8e4b15",
}  # fmt: skip


def test_dtypes_say_triton(run) -> None:
    """The `repr` of a dtype is `triton.language.NAME`, so that it can be evaluated again."""
    script = ACTIVATE + (
        f"import triton, triton.language as tl\nDTYPES = {DTYPES}\n"
        "for name, text in DTYPES.items():\n"
        "    dtype = getattr(tl, name)\n"
        "    assert str(dtype) == text, (name, str(dtype))\n"
        "    assert repr(dtype).startswith('triton.language.') and eval(repr(dtype)) is dtype, repr(dtype)\n"
    )
    run("main.py", main=script)


CHILDREN = """
import importlib.metadata, multiprocessing, subprocess, sys
from concurrent.futures import ProcessPoolExecutor

def ask(_=0):
    installed = importlib.metadata.version("triton")  # libraries ask it before they import anything
    import triton.language as tl
    import triton.compiler.compiler as compiler
    return f"{tl.__name__} {compiler.__name__} {sys.modules['triton'].__version__} {installed}"

ASK = "import triton.language as tl, triton, tilework; print(tl.__name__, tilework.__file__)"

if __name__ == "__main__":
    print(subprocess.check_output([sys.executable, "-c", ASK], text=True, cwd="/"), end="")
    for method in ("spawn", "forkserver"):
        with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
            print(pool.submit(ask).result())
"""


@pytest.mark.parametrize("how", ["command", "function"])
def test_processes_that_the_program_starts(run, how: str) -> None:
    """Child processes import the same tilework, not one on their own search path, and not the installed Triton."""
    other = {"installed/tilework/__init__.py": "raise RuntimeError('another tilework was loaded')\n"}
    script, start = (CHILDREN, ("-m", "tilework.as_triton")) if how == "command" else (ACTIVATE + CHILDREN, ())
    printed = run(*start, "main.py", main=script, files={**INSTALLED, **other}).splitlines()
    assert printed == [
        f"tilework.language {ROOT / 'tilework' / '__init__.py'}",
        *["tilework.language tilework.compiler 3.7.1 3.7.1+tilework"] * 2,
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_selected_version_here_and_in_processes(run, version: str) -> None:
    """The module, the distribution and the metadata of kernels have the selected version, also in child processes."""
    script = KERNEL + (
        "import importlib.metadata, subprocess, sys, triton\n"
        "seen = triton.__version__, importlib.metadata.version('triton')\n"
        "assert importlib.metadata.metadata('triton')['Name'] == 'triton'\n"
        "x = np.zeros(4, np.float32)\n"
        "compiled = scale.warmup(x, x, 4, factor=3, BLOCK=4, grid=(1,)).metadata\n"
        "import tilework\n"
        "assert compiled.triton_version == triton.__version__ and compiled.tilework_version == tilework.__version__\n"
        "ASK = ('import importlib.metadata; before = importlib.metadata.version(\"triton\"); import triton;'\n"
        "       'assert importlib.metadata.version(\"triton\") == before; print(triton.__version__, before)')\n"
        "print(*seen)\nprint(subprocess.check_output([sys.executable, '-c', ASK], text=True, cwd='/'), end='')\n"
    )
    printed = run("-m", "tilework.as_triton", "main.py", main=script, environment={"TILEWORK_TRITON_VERSION": version})
    assert printed.splitlines() == [f"{version} {version}+tilework"] * 2


def test_the_version_follows_the_knob(run) -> None:
    script = ACTIVATE + (
        "import triton\nfrom triton import __version__ as first\n"
        "triton.knobs.language.triton_version = '3.6.0'\nprint(first, triton.__version__)\n"
    )
    assert run("main.py", main=script) == "3.7.1 3.6.0\n"


WORKER = (
    KERNEL.replace(
        "import triton\n",
        """
import sys, threading, types
version = types.SimpleNamespace(cuda=DEVICE == "cuda", hip=DEVICE == "hip")
sys.modules["torch"] = types.SimpleNamespace(version=version)
import triton
del sys.modules["torch"]
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
assert len(threading.enumerate()) == 1
loaded = set(sys.modules)
""",
    )
    + """
target = GPUTarget("cuda", 90, 32) if DEVICE == "cuda" else GPUTarget("cpu", "host", 1)
source = ASTSource(scale, {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, {"factor": 3, "BLOCK": 128})
with triton.knobs.cache.scope():
    triton.knobs.cache.dir = "empty"
    compile(source, target)
print(sorted(name for name in set(sys.modules) - loaded if ".transforms." in name or ".ir." in name))
"""
)


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_compile_workers_of_torch_are_forked_with_the_compiler(run, device: str) -> None:
    """The program that forks them loads it with `import triton`, and forks from one thread."""
    program = "torch/_inductor/compile_worker/__main__.py"
    path = os.pathsep.join([str(ROOT / "packages" / "triton"), str(ROOT)])
    files = {program: f"DEVICE = {device!r}\n{WORKER}"}
    assert run(program, files=files, environment={"PYTHONPATH": path}) == "[]\n"


def test_workers_of_pytest(run) -> None:
    """`pytest -n`, from a folder where tilework is found only because the command runs there."""
    pytest.importorskip("xdist")
    test = (
        "import triton, tilework, os\ndef test():\n    assert triton.jit is tilework.jit and "
        "'PYTEST_XDIST_WORKER' in os.environ\n"
    )
    arguments = ("-m", "tilework.as_triton", "-m", "pytest", "-p", "xdist", "-n", "1", "test_it.py")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others are of no interest, and slow to load
    assert "1 passed" in run(*arguments, files={"test_it.py": test, **INSTALLED}, environment=alone)


def test_the_distribution_called_triton(run) -> None:
    """`pip install ./packages/triton` puts this folder's package into an environment; programs need nothing else."""
    package = ROOT / "packages" / "triton"
    version = tomllib.loads((package / "pyproject.toml").read_text())["project"]["version"]
    script = (
        "import triton.language as tl"
        + KERNEL
        + "check(BLOCK=32)\nimport tilework\nprint(tilework.as_triton() is triton, f'{triton.__version__}+tilework')\n"
    )
    path = os.pathsep.join([str(package), str(ROOT)])
    assert run("main.py", main=script, environment={"PYTHONPATH": path}) == f"right\nTrue {version}\n"
