"""Messages for mistakes of new users: the wrong word, a suggestion, the line."""

from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.forked_script import run_forked
from tilework.errors import CompilationError, PassError
from tilework.oracles.interpreter import InterpretedFunction
from tilework.process import plugins
from tilework.targets import options
from tilework.triton import BACKENDS

ROOT = Path(tilework.__file__).parent.parent
X, OUT = np.ones(16, np.float32), np.zeros(16, np.float32)


@tilework.jit
def copy(x, out, BLOCK: tl.constexpr, FLAG: tl.constexpr = False):  # pyright: ignore[reportArgumentType]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


@tilework.jit
def half(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK / 2)
    tl.store(out + i, tl.load(x + i))


@tilework.jit
def root(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, np.sqrt(tl.load(x + i)))  # pyright: ignore[reportCallIssue, reportArgumentType]


@tilework.jit
def arctan(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, np.arctan(tl.load(x + i)))  # pyright: ignore[reportCallIssue, reportArgumentType]


@tilework.jit
def wait(x, out, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    while v < 3:
        v += 1


@tilework.jit
def leave(x, out, BLOCK: tl.constexpr):
    for j in range(BLOCK):
        if j == 3:
            continue


@tilework.jit
def takes_any(*arrays):
    tl.store(arrays[1], tl.load(arrays[0]))


@tilework.jit
def takes_any_names(x, out, **arrays):
    tl.store(out, tl.load(x))


@tilework.jit
def assembly(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(
        out + i,
        tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1),
    )


def shown(kernel) -> str:
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](X, OUT, BLOCK=16)
    return caught.value.diagnostic().render()


@pytest.mark.parametrize("kernel", [copy, InterpretedFunction(copy.fn)], ids=["compiled", "interpreted"])
def test_a_mistyped_keyword_is_named_with_what_was_meant(kernel) -> None:
    with pytest.raises(KeyError) as caught:
        kernel[(1,)](X, OUT, BLOCK=16, num_warp=8)
    assert str(caught.value) == "Keyword argument num_warp was specified but unrecognised: did you mean 'num_warps'?"
    with pytest.raises((TypeError, KeyError), match=r"'?BLOK'?.*did you mean 'BLOCK'\?"):
        kernel[(1,)](X, OUT, BLOK=16)
    with pytest.raises(KeyError, match=r"FLAGS .*did you mean 'FLAG'\?"):  # of a parameter that has a default
        kernel[(1,)](X, OUT, BLOCK=16, FLAGS=True)


@pytest.mark.parametrize("kernel", [copy, InterpretedFunction(copy.fn)], ids=["compiled", "interpreted"])
def test_a_mistyped_name_in_a_grid_is_named_with_what_was_meant(kernel) -> None:
    with pytest.raises(KeyError) as caught:
        kernel[lambda META: (tilework.cdiv(16, META["BLOK"]),)](X, OUT, BLOCK=16)
    assert str(caught.value) == (
        "the grid asks for 'BLOK', which is no parameter of `copy`\nhelp: did you mean 'BLOCK'?"
    )
    with pytest.raises(KeyError, match=r"^'else'$"):  # an error of the program's own
        kernel[lambda META: ({}["else"],)](X, OUT, BLOCK=16)


GRIDS = {
    "a quotient": ((16 / 4,), r"grid sizes are integers, got \(4.0,\)\nhelp: divide with `//`, or with tilework.cdiv"),
    "a function without return": (lambda meta: None, "got None\nhelp: a grid is a tuple of .*, or a function"),
    "a text": ("4", "got '4'\nhelp: a grid is a tuple of one to three integers"),
    "an attribute": (lambda meta: (16 // meta.BLOCK,), r"no attribute 'BLOCK'\nhelp: write meta\['BLOCK'\]"),
}


@pytest.mark.parametrize("kernel", [copy, InterpretedFunction(copy.fn)], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("name", GRIDS)
def test_a_wrong_grid_is_told_what_to_write(kernel, name: str) -> None:
    grid, words = GRIDS[name]
    with pytest.raises((TypeError, AttributeError), match=words):
        kernel[grid](X, OUT, BLOCK=16)


@pytest.mark.parametrize("kernel", [copy, InterpretedFunction(copy.fn)], ids=["compiled", "interpreted"])
def test_names_in_another_case_are_similar(kernel) -> None:
    with pytest.raises((TypeError, KeyError), match=r"did you mean 'BLOCK'\?"):
        kernel[(1,)](X, OUT, block=16)


ARRAYS = {
    "object": (np.array([None] * 16), TypeError, "no element type object"),
    "complex64": (np.zeros(16, np.complex64), TypeError, "no element type complex64"),
    "big-endian": (np.zeros(16, ">f4"), TypeError, "this machine's byte order, not >f4"),
    "a wide integer": (2**70, OverflowError, "64 bits"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_argument_that_has_no_type_is_named(name: str) -> None:
    value, kind, words = ARRAYS[name]
    with pytest.raises(kind, match=rf"{words} \(argument 'out' of copy\): pass a"):
        copy[(1,)](X, value, BLOCK=16)


def test_a_default_that_has_no_type_is_named() -> None:
    kernel = tilework.jit(has_bad_default)
    with pytest.raises(TypeError, match=r"type: dtype \(argument 'kind' of has_bad_default\)"):
        kernel[(1,)](X)


def has_bad_default(x, kind=tl.float32):
    tl.store(x, tl.load(x).to(kind))


def test_decorators_refuse_what_is_no_configuration_or_rule() -> None:
    with pytest.raises(TypeError, match=r"autotune takes configurations, not dicts: write Config\(\{'BLOCK': 16\}\)"):
        tilework.autotune(configs=[{"BLOCK": 16}], key=[])(copy)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="heuristics: the rule of 'BLOCK' is a function"):
        tilework.heuristics({"BLOCK": 16})(copy)  # pyright: ignore[reportArgumentType]
    assert tilework.autotune(configs=[tilework.Config({})], key="out")(copy).keys == ["out"]


def test_launches_refuse_names_that_backends_of_triton_overlook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its backends, which `as_triton` puts in the place of ours, take no notice of them."""
    group, entry = "tilework.backends", BACKENDS["cpu"]
    monkeypatch.setitem(plugins.PREFERRED, (group, "cpu"), plugins.Plugin(group, "cpu", entry, plugins.OWN))
    monkeypatch.setattr(options, "_warned", set())
    kernel = tilework.jit(copy.fn)
    with pytest.warns(UserWarning, match="the option waves_per_eu=2 is for AMD GPUs"):
        kernel[(1,)](X, OUT, BLOCK=16, waves_per_eu=2)
    test_a_mistyped_keyword_is_named_with_what_was_meant(kernel)


def test_an_argument_without_a_type_names_its_parameter() -> None:
    for wrong in ([1, 2], "abc", object()):
        with pytest.raises(TypeError, match=rf"type: {type(wrong).__name__} \(argument 'out' of copy\): pass an array"):
            copy[(1,)](X, wrong, BLOCK=16)
        with pytest.raises(TypeError, match=rf"type: {type(wrong).__name__} \(argument 'out'\): pass an array"):
            InterpretedFunction(copy.fn)[(1,)](X, wrong, BLOCK=16)


def test_kernels_name_their_parameters() -> None:
    for kernel, parameter in ((takes_any, "`*arrays`"), (takes_any_names, "`**arrays`")):
        with pytest.raises(TypeError) as caught:
            kernel[(1,)](X, OUT)
        assert str(caught.value).endswith(f"; a kernel must name its parameters: {parameter} is not possible")


def test_functions_of_array_libraries() -> None:
    text = shown(root)
    assert "error: numpy.sqrt works on arrays of the host" in text and "help: use tl.sqrt" in text and "^^^^^^^" in text
    assert "help: use tl.extra.libdevice.atan" in shown(arctan)


def test_functions_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(root.fn.__globals__, "np", torch)
    assert "error: torch.sqrt works on arrays of the host" in shown(tilework.jit(root.fn))


def test_words_of_python() -> None:
    with tilework.knobs.language.scope():
        tilework.knobs.language.strict_triton = True
        assert "kernels have no `continue`" in shown(leave)
    assert "divide with `//`" in shown(half)
    text = shown(wait)
    assert "must be a scalar, this one is int1[16]" in text and "help: reduce it first: `while tl.max" in text
    assert "while v < 3:\n      |           ^^^^^\n" in text


def test_inline_assembly_on_the_cpu_has_a_caret() -> None:
    with pytest.raises(PassError) as caught:
        assembly[(1,)](X, OUT, BLOCK=16)
    text = str(caught.value)
    assert f"{__file__}:" in text and "is GPU code" in text and "^^^^^^^^^^^^^^^^^^^^^^^^^" in text
    assert "help: compute it with functions of `tl`" in text


SCRIPT = """
import sys
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i // tl.load(x + i) + tl.arange(0, {other}))

x = np.zeros({size}, "i4")
{launch}
"""
RUN = "kernel[(1,)](x, BLOCK=16)"
UNCAUGHT = {
    "interpreter": (16, 8, RUN, {"TRITON_INTERPRET": "1"}, "i // tl.load(x + i)"),
    "sanitizer": (12, 16, RUN, {"TRITON_SANITIZE": "1"}, "out of bounds"),
    "option": (16, 16, "kernel[(1,)](x, BLOCK=16, num_warp=2)", {}, "did you mean 'num_warps'?"),
    "argument": (16, 16, "kernel[(1,)]('x', BLOCK=16)", {}, "argument 'x' of kernel"),
    "grid": (16, 16, "kernel[(1.5,)](x, BLOCK=16)", {}, "grid sizes are integers"),
    "call": (16, 16, "kernel(x, BLOCK=16)", {}, "launch it over a grid"),
}


@pytest.mark.parametrize("how", UNCAUGHT)
def test_no_line_of_ours_is_shown(tmp_path: Path, warm_cache: Path, how: str) -> None:
    size, other, launch, variables, words = UNCAUGHT[how]
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(size=size, other=other, launch=launch))
    code, _, shown = run_forked(script, {"TRITON_CACHE_DIR": str(warm_cache), **variables})
    assert code == 1 and words in shown and launch in shown
    assert str(ROOT / "tilework") not in shown and shown.count("Traceback") == 1


def test_a_target_that_is_not_there_says_so() -> None:
    with pytest.raises(ValueError, match=r"metal:m1.*no compiler for 'metal'; there are compilers for cpu, cuda, hip"):
        tilework.compiler.GPUTarget.parse("metal:m1")


@tilework.jit
def with_default(x, out):
    tl.store(out, tl.load(x) or 9.0)


@tilework.jit
def condition_or_true(x, out, ALWAYS: tl.constexpr):
    if tl.load(x) > 5 or ALWAYS:
        tl.store(out, 1.0)


@pytest.mark.parametrize("interpret", [False, True])
def test_a_default_behind_or_is_warned_about(interpret: bool, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(UserWarning, match=r"`or` gives 9.0 here.*tl.where\(x != 0, x, 9.0\)"):
        tilework.jit(with_default.fn, interpret=interpret)[(1,)](X, OUT.copy())
    recwarn.clear()
    tilework.jit(condition_or_true.fn, interpret=interpret)[(1,)](X, OUT.copy(), True)
    assert not recwarn.list


@tilework.jit
def without_brackets(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, 1.0, mask=i >= 0 & i < 8)


@tilework.jit
def with_brackets(x, out):
    i = tl.arange(0, 16)
    tl.store(out + i, 1.0, mask=0 <= (i & 7) < 8)


@pytest.mark.parametrize("interpret", [False, True])
def test_comparisons_beside_bitwise_operators_are_warned_about(
    interpret: bool, recwarn: pytest.WarningsRecorder
) -> None:
    tilework.jit(with_brackets.fn, interpret=interpret)[(1,)](X, OUT.copy())
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"is a chain of comparisons; did you mean `\(i >= 0\) & \(i < 8\)`\?"):
        tilework.jit(without_brackets.fn, interpret=interpret)[(1,)](X, OUT.copy())
