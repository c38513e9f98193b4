"""Tools that look into interpreted kernels replace methods of `triton.runtime.interpreter`, and see what kernels do."""

import inspect
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tilework import jit
from tilework.oracles.interpreter.function import InterpretedFunction, Interpreter
from tilework.triton import interpreter as names


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    """Remove the modules that the import installs after these tests."""
    monkeypatch.setattr(InterpretedFunction, "execute", names.execute_with_tools)
    monkeypatch.setattr(Interpreter, "semantic_class", staticmethod(names.make_semantic))


def double(x, out, n, one, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.exp(value * 2.0 + 1.0), mask=i < n)
    tl.store(out + n, tl.load(x))
    tl.static_assert(one == 1)


def launch():
    x, out = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)
    jit(double, interpret=True)[(2,)](x, out, 6, 1, BLOCK=4)
    assert np.allclose(out[:6], np.exp(x * 2 + 1)) and out[6] == 0
    return out


def test_the_signatures_of_triton():
    assert list(inspect.signature(names.GridExecutor.__init__).parameters) == [
        "self",
        "fn",
        "arg_names",
        "grid",
        "pre_run_hooks",
    ]
    assert "num_warps" in names.RESERVED_KWS
    made = jit(double, interpret=True)
    assert made.rewrite() is names.InterpretedFunction.rewritten_fn[double]


def test_parameters_without_a_name_or_a_position():
    def kernel(out, /, value, *, scale):
        tl.store(out, value * scale)

    out = np.zeros(1, np.int32)
    jit(kernel, interpret=True)[(1,)](out, 3, scale=2)
    assert out[0] == 6


def test_operations_go_through_what_a_tool_put_there(monkeypatch):
    seen = []

    def traced(name):
        original = getattr(names.interpreter_builder, name)

        def call(*args, **kwargs):
            handles = [arg.data for arg in args if isinstance(arg, names.TensorHandle)]
            seen.append((name, len(handles)))
            return original(*args, **kwargs)

        monkeypatch.setattr(names.interpreter_builder, name, call, raising=False)

    for name in (
        "masked_load",
        "masked_store",
        "fadd",
        "fmul",
        "exp",
        "icmpSLT",
        "get_program_id",
        "addptr",
        "make_range",
    ):
        traced(f"create_{name}")
    launch()
    counts = {name.removeprefix("create_"): len([1 for other, _ in seen if other == name]) for name, _ in seen}
    assert counts == {
        **{"get_program_id": 2, "make_range": 2, "icmpSLT": 4, "addptr": 6, "masked_load": 4, "masked_store": 4},
        **{"fmul": 2, "fadd": 2, "exp": 2},
    }


def rarer(x, out):
    block = tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))
    a = tl.abs(tl.load(block, boundary_check=(0,))).to(tl.float16).to(tl.float32)
    b = tl.gather(tl.where(a > 3, a, -a), tl.zeros((4, 4), tl.int32), 0).trans()
    c = tl.dot(a, b) + tl.reshape(tl.join(a, a), (8, 4)).reshape((4, 2, 4)).sum(1)
    counts = tl.histogram(tl.cat(tl.arange(0, 2), tl.arange(0, 2), can_reorder=True), 4)
    c = tl.fma(c, 2.0, counts.to(tl.float32)[None, :])
    old = tl.atomic_add(out + 63, 1.0)
    tl.store(
        tl.advance(tl.make_block_ptr(out, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0)), (2, 2)), c + old + tl.umulhi(7, 9)
    )


def test_every_operation_can_be_replaced(monkeypatch):
    """Passed through a tool that does nothing, a kernel computes what it computes without."""
    x, plain, traced = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    jit(rarer, interpret=True)[(1,)](x, plain)
    called = set()
    for name in (name for name in dir(names.interpreter_builder) if name.startswith("create_") or name == "cast_impl"):
        own = getattr(names.interpreter_builder, name)

        def call(*args, own=own, name=name):
            called.add(name.removeprefix("create_"))
            return own(*args)

        monkeypatch.setattr(names.interpreter_builder, name, call, raising=False)
    jit(rarer, interpret=True)[(1,)](x, traced)
    launch()
    assert np.array_equal(plain, traced)
    assert called >= {
        *("tensor_pointer_load", "tensor_pointer_store", "fabs", "cast_impl", "fcmpOGT", "select", "gather", "trans"),
        *(
            "dot",
            "fma",
            "cat",
            "histogram",
            "join",
            "reshape",
            "fadd",
            "atomic_rmw",
            "umulhi",
            "masked_load",
            "masked_store",
            "exp",
            "load",
            "store",
        ),
    }


def test_a_tool_changes_what_an_operation_gives(monkeypatch):
    builder: Any = names.interpreter_builder
    original = builder.create_fmul

    def wrong(lhs, rhs):
        made = original(lhs, rhs)
        return names.TensorHandle(made.data + 1, made.dtype)

    monkeypatch.setattr(builder, "create_fmul", wrong, raising=False)
    x, out = np.arange(6, dtype=np.float32), np.zeros(8, np.float32)
    jit(double, interpret=True)[(2,)](x, out, 6, 1, BLOCK=4)
    assert np.allclose(out[:6], np.exp(x * 2 + 2))


def test_a_tool_runs_the_grid_itself(monkeypatch):
    """The steps of such a loop, with the helpers that tools import for it."""
    programs, patched = [], []

    def call(self, *args_dev, **kwargs):
        args_hst, kwargs_hst = self._init_args_hst(args_dev, kwargs)
        arguments = inspect.getcallargs(self.fn, *args_hst, **kwargs_hst)
        values = {k: v if k in self.constexprs else names._implicit_cvt(v) for k, v in arguments.items()}
        names.interpreter_builder.set_grid_dim(*self.grid)
        for x in reversed(range(self.grid[0])):
            names.interpreter_builder.set_grid_idx(x, 0, 0)
            programs.append(x)
            self.fn(**values)
        self._restore_args_dev(args_dev, args_hst, kwargs, kwargs_hst)

    def patch(fn):
        patched.append(fn)
        return names._LangPatchScope()

    monkeypatch.setattr(names.GridExecutor, "__call__", call)
    monkeypatch.setattr(names, "_patch_lang", patch)
    launch()
    assert programs == [1, 0] and patched == [double]


def test_values_outside_a_launch():
    assert names._implicit_cvt(5).dtype is tl.int32 and names._implicit_cvt(2.5).dtype is tl.float32
    array = np.zeros(3, np.int16)
    assert names._implicit_cvt(array).dtype == tl.pointer_type(tl.int16) and names._implicit_cvt(None) is None
    handle = names.TensorHandle(np.zeros(2), tl.float64)
    assert handle.get_element_ty() is tl.float64 and handle.clone().data is not handle.data


def test_one_builder_and_one_semantic_object() -> None:
    """Tools find the builder at the semantic object too."""
    assert names.interpreter_semantic.builder is names.interpreter_builder  # pyright: ignore
    assert type(names.interpreter_builder) is names.InterpreterBuilder
