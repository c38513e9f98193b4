"""The output of a script whose kernel does not compile: the user's lines and the diagnostic, no frames of tilework."""

import os
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tests.runtime.forked_script import run_forked

ROOT = Path(tilework.__file__).parent.parent
KERNEL = """
import threading
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def inner(x):
    return x + tl.arange(24, 0)

@tilework.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, inner(i))

tuned = tilework.autotune([tilework.Config({"BLOCK": 16}), tilework.Config({"BLOCK": 32})], ["n"])(kernel)
"""
LAUNCHES = {
    "plain": "kernel[(1,)](np.zeros(16, 'f4'), 16, BLOCK=16)",
    "callable grid": "kernel[lambda meta: (1,)](np.zeros(16, 'f4'), 16, BLOCK=16)",
    "run": "kernel.run(np.zeros(16, 'f4'), 16, BLOCK=16, grid=(1,))",
    "warmup": "kernel.warmup(tilework.MockTensor(tl.float32), 16, BLOCK=16, grid=(1,))",
    "autotuned": "tuned[(1,)](np.zeros(16, 'f4'), 16)",
    "compile": "tilework.compile(tilework.ASTSource(kernel, {'x': '*fp32', 'n': 'i32'}, {'BLOCK': 16}))",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path) -> Path:
    """One for all programs, which are run one after the other."""
    made = tmp_path_factory.mktemp("uncaught")
    (made / "cache").symlink_to(warm_cache)
    return made


def shown_by(folder: Path, text: str, **environment: str) -> str:
    script = folder / "train.py"
    script.write_text(KERNEL + text + "\n")
    code, _, shown = run_forked(script, {"TRITON_CACHE_DIR": str(folder / "cache"), **environment})
    assert code == 1
    return shown


def stderr_of(folder: Path, text: str) -> str:
    """The same in a process of its own: pytest has changed what shows errors of threads in this one."""
    script = folder / "train.py"
    script.write_text(text + "\n")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder / "cache")}
    done = run_python(str(script), env=variables)
    assert "Exception in thread" in done.stderr or done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("how", LAUNCHES)
def test_no_line_of_ours_is_shown(folder: Path, how: str) -> None:
    shown = shown_by(folder, LAUNCHES[how])
    lines = shown.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and LAUNCHES[how] in shown
    assert str(ROOT / "tilework") not in shown and "contextlib" not in shown
    assert "train.py:9:16: error: " in shown and "tl.arange(24, 0)" in shown
    assert "note: called from here" in shown


def test_in_a_thread(folder: Path) -> None:
    call = LAUNCHES["plain"]
    shown = stderr_of(
        folder, f"{KERNEL}t = threading.Thread(target=lambda: {call}, name='worker')\nt.start()\nt.join()"
    )
    assert shown.startswith("Exception in thread worker:\nTraceback") and str(ROOT / "tilework") not in shown


def test_everything_is_shown_when_requested(folder: Path) -> None:
    shown = shown_by(folder, LAUNCHES["plain"], TRITON_FRONT_END_DEBUGGING="1")
    assert str(ROOT / "tilework" / "frontend") in shown


def test_other_errors_are_as_ever(folder: Path) -> None:
    shown = shown_by(
        folder,
        "kernel[(1,)](type('Bad', (), {'data_ptr': lambda self: 1 + None, 'dtype': 'float32'})(), 16, BLOCK=16)",
    )
    assert "TypeError: unsupported operand" in shown and str(ROOT / "tilework") in shown


@tilework.jit
def wrong(x):
    tl.store(x, undefined_name)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821


def test_notebooks_ask_the_exception() -> None:
    with pytest.raises(tilework.CompilationError) as caught:
        wrong[(1,)](np.zeros(1, "f4"))
    lines = caught.value._render_traceback_()  # pyright: ignore[reportAttributeAccessIssue]
    text = "\n".join(lines)
    assert "undefined_name" in text and "test_uncaught.py" in text and str(ROOT / "tilework" / "runtime") not in text


SETTINGS = {
    "a node that is none": "raise tilework.CompilationError(None, None, 'mine')",
    "a message that is no text": "raise tilework.CompilationError('x', 'node', 5)",
    "nothing but a source": "raise tilework.CompilationError('x = 1', None)",
    "a diagnostic that fails": (
        "class Own(tilework.CompilationError):\n    diagnostic = None\nraise Own('x', None, 'mine')"
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_errors_that_users_raise(folder: Path, name: str) -> None:
    shown = shown_by(folder, SETTINGS[name])
    assert "raise" in shown and "excepthook" not in shown and ("CompilationError" in shown or "Own" in shown)


def test_what_was_handled_and_noted_is_shown(folder: Path) -> None:
    text = f"""
try:
    {{}}['absent']
except KeyError:
    try:
        {LAUNCHES["plain"]}
    except tilework.CompilationError as error:
        error.add_note("try again")
        raise
"""
    shown = shown_by(folder, text)
    assert shown.index("KeyError: 'absent'") < shown.index("During handling") < shown.index("train.py:9:16: error: ")
    assert shown.endswith("try again\n") and str(ROOT / "tilework") not in shown


HOOK = (
    "import sys\ndef mine(kind, error, trace):\n    print('mine', kind.__name__, file=sys.stderr)\n"
    "sys.excepthook = mine\n"
)


def test_a_hook_of_the_user_is_queried_first(folder: Path) -> None:
    assert shown_by(folder, HOOK + LAUNCHES["plain"]) == "mine CompilationError\n"
    assert stderr_of(folder, HOOK + KERNEL + LAUNCHES["plain"]) == "mine CompilationError\n"


STREAMS = {
    "none": "None",
    "ascii": "__import__('io').TextIOWrapper(open(2, 'wb', closefd=False), encoding='ascii', write_through=True)",
}


@pytest.mark.parametrize("stream", STREAMS)
def test_odd_streams(folder: Path, stream: str) -> None:
    """Nothing fails in the function that shows what has failed."""
    for text in ("raise tilework.CompilationError('ä = 1', None, 'ä')", LAUNCHES["plain"]):
        shown = shown_by(folder, f"import sys\nsys.stderr = {STREAMS[stream]}\n{text}")
        assert "excepthook" not in shown and ("error: " in shown) == (stream == "ascii")


def test_notebooks_that_debug_the_front_end_see_everything() -> None:
    from tilework import knobs

    with pytest.raises(tilework.CompilationError) as caught:
        wrong[(1,)](np.zeros(1, "f4"))
    with knobs.compilation.scope():
        knobs.compilation.front_end_debugging = True
        text = "\n".join(caught.value._render_traceback_())  # pyright: ignore[reportAttributeAccessIssue]
    assert str(ROOT / "tilework" / "frontend") in text
