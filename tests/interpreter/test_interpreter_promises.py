"""Guarantees of the interpreter that the other files of this folder do not test.

More works than in Triton's: bf16, libdevice functions, scaled dots and atomics of
descriptors work, exactly. Only assembly and unknown external functions are refused.
"""

import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tests.runtime.launch_kernels import add_one
from tilework import knobs
from tilework.errors import InterpreterError
from tilework.oracles.interpreter import InterpretedFunction
from tilework.oracles.interpreter.function import InterpretedLaunch
from tilework.tools.tensor_descriptor import TensorDescriptor

ROOT = Path(__file__).parent.parent.parent


def interpreted(fn: Any) -> Any:
    return tilework.jit(interpret=True)(fn)


# -- where it runs and on what -------------------------------------------------------------------------------------


def test_the_variable_makes_interpreted_functions() -> None:
    code = (
        "import numpy as np, tilework, tilework.language as tl\n"
        "from tests.interpreter.promise_kernels import double\n"
        "x = np.arange(4, dtype='f4'); double[(1,)](x); print(type(double).__name__, x.tolist())"
    )
    for text, name in (("1", "InterpretedFunction"), ("0", "JITFunction")):
        done = run_python("-c", code, cwd=ROOT, env={**os.environ, "TRITON_INTERPRET": text})
        assert done.returncode == 0, done.stderr
        assert done.stdout.split("\n")[0] == f"{name} [0.0, 2.0, 4.0, 6.0]"


def test_programs_run_one_after_the_other() -> None:
    order: list[tuple[int, ...]] = []

    @tl.core.builtin
    def note(x, y, z, _semantic=None):
        order.append(tuple(int(value.handle) for value in (x, y, z)))

    @interpreted
    def kernel(NOTE: tl.constexpr):
        NOTE(tl.program_id(0), tl.program_id(1), tl.program_id(2))

    kernel[(2, 2, 3)](note)
    assert order == [(x, y, z) for x in range(2) for y in range(2) for z in range(3)]


def test_arguments_that_share_memory_see_each_other() -> None:
    @interpreted
    def exchange(a, b):
        tl.store(a, 10)
        tl.store(b + 2, tl.load(b + 1) + 1)
        tl.store(a + 2, tl.load(a + 1) + 1)

    x = np.zeros(5, dtype="i4")
    exchange[(1,)](x[1:], x)
    assert x.tolist() == [0, 10, 11, 12, 0]


def test_arrays_are_written_back_through_views() -> None:
    @interpreted
    def ones(p, stride, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(p + i * stride, 1, mask=i < n)

    base = np.zeros((4, 6), "i4")
    column = base[:, 2]
    ones[(1,)](column, column.strides[0] // 4, 4, 4)
    assert base[:, 2].tolist() == [1] * 4 and base.sum() == 4


# -- values --------------------------------------------------------------------------------------------------------


def test_constants_are_numbers_and_arguments_are_tensors() -> None:
    seen: dict[str, Any] = {}

    @tl.core.builtin
    def note(name, value, _semantic=None):
        seen[getattr(name, "value", name)] = value

    @interpreted
    def kernel(p, n, scale, NOTE: tl.constexpr, SIZE: tl.constexpr, NAME: tl.constexpr):
        NOTE("size", SIZE)
        NOTE("name", NAME)
        NOTE("sum", SIZE + 1)
        NOTE("n", n)
        NOTE("scale", scale)
        five = 5
        NOTE("assigned", five)
        NOTE("block", tl.arange(0, SIZE))
        kept: tl.constexpr = 6  # pyright: ignore[reportAssignmentType]
        NOTE("kept", kept)

    kernel[(1,)](np.zeros(1, "f4"), 3, 0.5, note, 4, "text")
    plain = {name: getattr(value, "value", value) for name, value in seen.items() if not isinstance(value, tl.tensor)}
    assert plain == {"size": 4, "name": "text", "sum": 5, "kept": 6}
    tensors = {name: str(value.type) for name, value in seen.items() if isinstance(value, tl.tensor)}
    assert tensors["n"] == "int32" and tensors["scale"] == "fp32" and tensors["assigned"] == "int32"
    assert "int32" in tensors["block"]


def test_data_is_numpy() -> None:
    seen: list[Any] = []

    @tl.core.builtin
    def note(value, _semantic=None):
        seen.append(value)

    @interpreted
    def kernel(p, NOTE: tl.constexpr):
        NOTE(tl.load(p + tl.arange(0, 4)))

    kernel[(1,)](np.arange(4, dtype="f4"), note)
    assert isinstance(seen[0], tl.tensor) and isinstance(seen[0].handle, np.ndarray)
    assert seen[0].handle.tolist() == [0, 1, 2, 3] and seen[0].handle.dtype == np.float32


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [("division", ZeroDivisionError), ("assertion", AssertionError), ("name", NameError), ("type", TypeError)],
)
def test_every_exception_becomes_an_interpreter_error(name: str, kind: type[Exception]) -> None:
    @interpreted
    def kernel(p, NAME: tl.constexpr):
        if NAME == "division":
            zero: tl.constexpr = 0  # pyright: ignore[reportAssignmentType]
            tl.store(p, 1 // zero)
        elif NAME == "assertion":
            tl.device_assert(tl.load(p) > 5, "too small")
        elif NAME == "name":
            tl.store(p, undefined_name)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
        else:
            tl.store(p, tl.load(p) + "text")  # pyright: ignore[reportOperatorIssue]

    with pytest.raises(InterpreterError) as caught:
        kernel[(1,)](np.zeros(1, "i4"), name)
    cause = caught.value.__cause__
    assert isinstance(cause, kind) and str(caught.value) == repr(cause)


def test_assumptions_and_assertions() -> None:
    @interpreted
    def kernel(p, n):
        tl.assume(n > 0)
        tl.device_assert(n < 10, "n is large")
        tl.store(p, n)

    out = np.zeros(1, "i4")
    kernel[(1,)](out, 5)
    assert out[0] == 5
    for value, text in ((-1, "assume"), (11, "n is large")):
        with pytest.raises(InterpreterError, match=text):
            kernel[(1,)](out, value)


# -- what else works -----------------------------------------------------------------------------------------------


def test_warmup_hooks_heuristics_and_autotuning(tmp_path: Path) -> None:
    seen: list[Any] = []

    @interpreted
    def fill(p, value, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(p + i, value, mask=i < n)

    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs))
    out = np.zeros(20, "f4")
    assert fill.warmup(out, 1.0, 20, BLOCK=8, grid=(3,)) is None and not out.any()
    ruled = tilework.heuristics({"BLOCK": lambda args: 16})(fill)
    ruled[(2,)](out, 1.0, 20)
    assert (out == 1).all() and seen == [{"BLOCK": 8}, {"BLOCK": 16}]
    measured: list[Any] = []
    bench = lambda call, quantiles: (call(), measured.append(quantiles), [float(len(measured))] * 3)[2]
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        for _ in range(2):
            configs = [tilework.Config({"BLOCK": size}) for size in (8, 16)]
            tuned = tilework.autotune(configs, ["n"], do_bench=bench, cache_results=True)(fill)
            launch = tuned[lambda meta: (tilework.cdiv(20, meta["BLOCK"]),)](out, 2.0, 20)
            assert isinstance(launch, InterpretedLaunch)
            assert tuned.best_config == configs[0] and (out == 2).all()
    assert len(measured) == 4 and not list(tmp_path.rglob("*.json"))


def test_bfloat16_is_rounded_after_every_operation() -> None:
    @interpreted
    def kernel(a, b, c):
        tl.store(c, tl.load(a) * tl.load(b) + tl.load(b))

    a, b = (np.full(1, value, ml_dtypes.bfloat16) for value in (1.3, 1.7))
    out = np.zeros(1, ml_dtypes.bfloat16)
    kernel[(1,)](a, b, out)
    assert out[0] == ml_dtypes.bfloat16(
        np.float32(ml_dtypes.bfloat16(np.float32(a[0]) * np.float32(b[0]))) + np.float32(b[0])
    )


def test_descriptors_add_and_scaled_dots() -> None:
    @interpreted
    def add(target):
        target.atomic_add([0, 0], tl.full((2, 4), 3, tl.float32))

    out = np.ones((2, 4), "f4")
    add[(2,)](TensorDescriptor.from_tensor(out, [2, 4]))
    assert (out == 7).all()

    @interpreted
    def scaled(a, b, scale, c):
        rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 32)[None, :]
        x = tl.load(a + rows * 32 + columns)
        y = tl.load(b + tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :])
        s = tl.load(scale + rows + tl.zeros((1, 1), tl.int32))
        out = tl.dot_scaled(x, s, "e4m3", y, None, "e4m3")
        tl.store(c + rows * 16 + tl.arange(0, 16)[None, :], out)

    a, b = (np.ones(shape, ml_dtypes.float8_e4m3fn) for shape in ((16, 32), (32, 16)))
    scale, c = np.full(16, 128, np.uint8), np.zeros((16, 16), "f4")
    scaled[(1,)](a, b, scale, c)
    assert (c == 64).all()


def test_assembly_and_unknown_functions_are_refused() -> None:
    @interpreted
    def assembly(p):
        tl.store(p, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(p)], tl.int32, True, 1))

    with pytest.raises(InterpreterError, match="inline_asm_elementwise"):
        assembly[(1,)](np.zeros(1, "i4"))


def test_the_rewritten_function_and_its_line() -> None:
    @interpreted
    def kernel(p):
        tl.store(p, 1)

    assert isinstance(kernel, InterpretedFunction) and callable(kernel.rewrite())
    line = Path(__file__).read_text().splitlines()[kernel.rewriter.def_file_lineno - 1]
    assert line.strip() == "def kernel(p):" and kernel.rewriter.def_file_lineno == kernel.def_line


def test_printing_has_its_own_form(capsys: pytest.CaptureFixture[str]) -> None:
    @interpreted
    def kernel(p):
        tl.device_print("x is", tl.load(p))

    kernel[(2,)](np.full(1, 7, "i4"))
    assert capsys.readouterr().out.splitlines() == ["pid (0, 0, 0) x is: 7", "pid (1, 0, 0) x is: 7"]


def test_sizes_of_dots_and_fp8() -> None:
    @tilework.jit(interpret=True)
    def tiny(p, q, T: tl.constexpr):
        one = tl.zeros((1, 1), tl.float32) + tl.load(p)
        wide = tl.dot(one, one, input_precision="ieee")
        tl.store(q, tl.sum(wide).to(T).to(tl.float32))

    for dtype in (tl.float8e4nv, tl.float8e5, tl.float8e4b8, tl.float8e5b16, tl.float8e4b15):
        out = np.zeros(1, "f4")
        tiny[(1,)](np.full(1, 0.5, "f4"), out, dtype)
        assert out[0] == 0.25


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_dot_precisions_are_exact(precision: str) -> None:
    @tilework.jit(interpret=True)
    def product(p, q, PRECISION: tl.constexpr):
        i = tl.arange(0, 2)[:, None] * 2 + tl.arange(0, 2)[None, :]
        x = tl.load(p + i)
        tl.store(q + i, tl.dot(x, x, input_precision=PRECISION))

    x, out = np.array([[1.0000001, 0], [0, 1.0000001]], "f4"), np.zeros((2, 2), "f4")
    product[(1,)](x, out, precision)
    assert out[0, 0] == np.float32(np.float64(x[0, 0]) ** 2)


def test_errors_have_the_cause() -> None:
    @tilework.jit(interpret=True)
    def bad(p):
        tl.arange(3, 3)

    with pytest.raises(InterpreterError, match="must be greater than the start") as caught:
        bad[(1,)](np.zeros(1, "f4"))
    assert isinstance(caught.value.__cause__, ValueError) and str(caught.value) == repr(caught.value.__cause__)


def test_aliasing_arrays_share_their_memory() -> None:
    @tilework.jit(interpret=True)
    def shift(a, b):
        tl.store(a, 7)
        tl.store(b + 1, tl.load(b) + 1)

    x = np.zeros(4, "i4")
    shift[(1,)](x[1:], x[1:])
    assert x.tolist() == [0, 7, 8, 0]


def test_autotune_heuristics_and_hooks() -> None:
    seen: list[int] = []
    kernel = interpreted(add_one.fn)
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["BLOCK"]))
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    chosen = tilework.heuristics({"BLOCK": lambda args: args["n"]})(kernel)
    assert chosen[(1,)](x, y, 64).name == "add_one" and (y == x + 1).all()
    assert chosen.warmup(x, y, 64, grid=(1,)) is None and seen == [64, 64]
    tuned = tilework.autotune([tilework.Config({"BLOCK": 32}), tilework.Config({"BLOCK": 64})], key=["n"])(kernel)
    y[:] = 0
    tuned[lambda meta: (tilework.cdiv(64, meta["BLOCK"]),)](x, y, 64)
    assert (y == x + 1).all()


def test_launches_return_what_the_compiler_would_make() -> None:
    """Programs that look at the code of a kernel run on; it is compiled when they do, and not before."""

    @interpreted
    def plus_one(x):
        return x + 1

    @interpreted
    def kernel(out, N: tl.constexpr):
        tl.store(out + tl.arange(0, N), plus_one(tl.arange(0, N)))

    out, compiled = np.zeros(4, np.int32), []
    with knobs.runtime.scope():
        knobs.runtime.jit_post_compile_hook = lambda **facts: compiled.append(facts["fn"].name)
        launch = kernel[(1,)](out, N=4, num_warps=2)
        assert out.tolist() == [1, 2, 3, 4] and not compiled and not hasattr(launch, "__len__")
        assert launch.name == "kernel" and "tt.store" in launch.asm["ttir"] and launch.metadata.num_warps == 2
    assert len(compiled) == 1
    with pytest.raises(AttributeError, match="nothing_known"):
        _ = launch.nothing_known


@pytest.mark.parametrize("interpret", [False, True])
def test_constants_have_a_value_and_a_type(interpret: bool) -> None:
    def constants(out, N: tl.constexpr):
        one: tl.constexpr = 1  # pyright: ignore[reportAssignmentType]
        text: tl.constexpr = "abc"  # pyright: ignore[reportAssignmentType]
        nothing: tl.constexpr = None  # pyright: ignore[reportAssignmentType]
        tl.static_assert(one.type == tl.constexpr(1).type)
        tl.static_assert(N.type.value == 4)
        tl.static_assert(text.type.value == text.value)
        tl.static_assert(nothing.value is None)
        count = 3
        tl.static_assert(count.type == tl.int32)  # pyright: ignore[reportAttributeAccessIssue]
        tl.store(out, one.value + one.type.value + N.value + len(text.value) + count)

    out = np.zeros(1, np.int32)
    tilework.jit(constants, interpret=interpret)[(1,)](out, 4)
    assert out[0] == 12
