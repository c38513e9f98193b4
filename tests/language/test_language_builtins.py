"""Builtins and tensor methods pass the right plain values to the semantic object, and only inside kernels."""

import traceback
from typing import Any

import pytest

import tilework.language as tl
from tilework.language.compile_time import base_value

BLOCK = tl.block_type(tl.float32, [4, 8])
c: Any = tl.constexpr


class Recorder(Any):
    """A semantic object that writes down what it is asked for; `options` and `to_tensor` behave."""

    class options:
        num_warps = 4

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def to_tensor(self, value: Any) -> Any:
        return value if isinstance(value, tl.tensor) else tl.tensor(value, tl.int32)

    def __getattr__(self, name: str) -> Any:
        def record(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            results = [tl.tensor(f"{name}{index}", BLOCK) for index in range(2)]
            many = name in ("split", "reduce", "scan", "map_elementwise", "inline_asm_elementwise", "broadcast")
            return results if many else results[0]

        return record


@pytest.fixture
def semantic() -> Recorder:
    return Recorder()


X: Any = tl.tensor("x", BLOCK)
Y: Any = tl.tensor("y", BLOCK)
P: Any = tl.tensor("p", tl.pointer_type(tl.float32))
combine: Any = "f"


def called(semantic: Recorder) -> tuple[Any, ...]:
    (call,) = semantic.calls
    name, args, kwargs = call
    assert not kwargs
    return (name, *args)


CASES = [
    (lambda s: tl.program_id(c(1), _semantic=s), ("program_id", 1)),
    (lambda s: tl.num_programs(axis=2, _semantic=s), ("num_programs", 2)),
    (lambda s: tl.arange(c(0), 8, _semantic=s), ("arange", 0, 8)),
    (lambda s: tl.full(c((4, c(8))), 1.0, c(tl.float16), _semantic=s), ("full", [4, 8], 1.0, tl.float16)),
    (lambda s: tl.full([], X, tl.int8, _semantic=s), ("full", [], X, tl.int8)),
    (lambda s: tl.broadcast_to(X, 4, c(8), _semantic=s), ("broadcast_to", X, [4, 8])),
    (lambda s: X.broadcast_to(tl.tuple([4, 8]), _semantic=s), ("broadcast_to", X, [4, 8])),
    (lambda s: tl.reshape(X, 32, _semantic=s), ("reshape", X, [32], False)),
    (lambda s: X.reshape((2, 16), can_reorder=c(True), _semantic=s), ("reshape", X, [2, 16], True)),
    (lambda s: tl.reshape(X, (), _semantic=s), ("reshape", X, [], False)),
    (lambda s: X.trans(_semantic=s), ("permute", X, [1, 0])),
    (lambda s: X.permute(1, 0, _semantic=s), ("permute", X, [1, 0])),
    (lambda s: tl.trans(X, (1, 0), _semantic=s), ("permute", X, [1, 0])),
    (lambda s: tl.cat(X, Y, can_reorder=c(True), _semantic=s), ("cat", X, Y, True, 0)),
    (lambda s: tl.cat(X, Y, dim=c(1), _semantic=s), ("cat", X, Y, False, 1)),
    (lambda s: tl.join(X, Y, _semantic=s), ("join", X, Y)),
    (lambda s: tl.gather(X, Y, c(1), _semantic=s), ("gather", X, Y, 1)),
    (lambda s: X.histogram(c(16), c(None), _semantic=s), ("histogram", X, 16, None)),
    (lambda s: tl.load(P, _semantic=s), ("load", P, None, None, [], "", "", "", False)),
    (
        lambda s: tl.load(P, X, 0.0, c((0, c(1))), c("zero"), c(".cg"), c("evict_last"), c(True), _semantic=s),
        ("load", P, X, 0.0, [0, 1], "zero", ".cg", "evict_last", True),
    ),
    (lambda s: tl.store(P, 1, c(None), _semantic=s), ("store", P, 1, None, [], "", "")),
    (lambda s: P.store(X, cache_modifier=c(".wb"), _semantic=s), ("store", P, X, None, [], ".wb", "")),
    (
        lambda s: tl.make_block_ptr(P, (c(4), X), c([X, 1]), tl.tuple([0, 0]), c([4, 8]), (c(1), 0), _semantic=s),
        ("make_block_ptr", P, [4, X], [X, 1], [0, 0], [4, 8], [1, 0]),
    ),
    (lambda s: tl.make_block_ptr(P, X, 1, 0, 8, 0, _semantic=s), ("make_block_ptr", P, [X], [1], [0], [8], [0])),
    (lambda s: tl.advance(P, (0, X), _semantic=s), ("advance", P, [0, X])),
    (
        lambda s: tl.make_tensor_descriptor(P, [X, 8], [8, c(1)], [c(4), 8], c("nan"), _semantic=s),
        ("make_tensor_descriptor", P, [X, 8], [8, 1], [4, 8], "nan"),
    ),
    (
        lambda s: tl.atomic_add(P, 1, sem=c("relaxed"), _semantic=s),
        ("atomic_rmw", "add", P, 1, None, "relaxed", None, False),
    ),
    (lambda s: P.atomic_xchg(1, X, scope="cta", _semantic=s), ("atomic_rmw", "xchg", P, 1, X, None, "cta", False)),
    (lambda s: tl.atomic_cas(P, 0, 1, c("acquire"), _semantic=s), ("atomic_cas", P, 0, 1, "acquire", None)),
    (lambda s: tl.cast(X, c(tl.int8), _semantic=s), ("cast", X, tl.int8, None)),
    (lambda s: X.to(tl.float16, fp_downcast_rounding=c("rtz"), _semantic=s), ("cast", X, tl.float16, "rtz")),
    (lambda s: X.to(tl.int32, bitcast=c(True), _semantic=s), ("bitcast", X, tl.int32)),
    (lambda s: tl.where(X, 1, Y, _semantic=s), ("where", X, 1, Y)),
    (lambda s: tl.minimum(X, 1, c(tl.PropagateNan.ALL), _semantic=s), ("minimum", X, 1, tl.PropagateNan.ALL)),
    (lambda s: tl.maximum(X, Y, _semantic=s), ("maximum", X, Y, tl.PropagateNan.NONE)),
    (lambda s: tl.clamp(X, 0.0, 1.0, _semantic=s), ("clamp", X, 0.0, 1.0, tl.PropagateNan.NONE)),
    (lambda s: tl.fdiv(X, Y, c(True), _semantic=s), ("fdiv", X, Y, True)),
    (lambda s: tl.fma(X, Y, 1, _semantic=s), ("fma", X, Y, 1)),
    (lambda s: tl.umulhi(X, 3, _semantic=s), ("umulhi", X, 3)),
    (lambda s: tl.add(X, 1, c(False), _semantic=s), ("add", X, 1, False)),
    (lambda s: X.abs(_semantic=s), ("abs", X)),
    (lambda s: tl.dot(X, Y, _semantic=s), ("dot", X, Y, None, None, None, None, tl.float32)),
    (
        lambda s: tl.dot(X, Y, c(None), c("ieee"), None, c(32), c(tl.float16), _semantic=s),
        ("dot", X, Y, None, "ieee", None, 32, tl.float16),
    ),
    (
        lambda s: tl.dot_scaled(X, c(None), c("e4m3"), Y, X, "e2m1", _semantic=s),
        ("dot_scaled", X, None, "e4m3", Y, X, "e2m1", None, False, True, True, tl.float32),
    ),
    (lambda s: tl.multiple_of(X, (c(16), 1), _semantic=s), ("multiple_of", X, [16, 1])),
    (lambda s: tl.max_contiguous(X, c(16), _semantic=s), ("max_contiguous", X, [16])),
    (lambda s: tl.device_print(c("x"), X, hex=c(True), _semantic=s), ("device_print", "x", (X,), True)),
    (lambda s: tl.device_assert(X, c("m"), Y, _semantic=s), ("device_assert", X, "m", Y)),
    (lambda s: tl.debug_barrier(_semantic=s), ("debug_barrier",)),
    (
        lambda s: tl.inline_asm_elementwise(c("a"), c("=r"), [X], c(tl.int32), c(True), c(1), _semantic=s),
        ("inline_asm_elementwise", "a", "=r", [X], [tl.int32], True, 1),
    ),
    (
        lambda s: tl.core.extern_elementwise("", "", (X,), {}, True, _semantic=s),
        ("extern_elementwise", "", "", [X], {}, True),
    ),
    (lambda s: X.__floordiv__(2, _semantic=s), ("floordiv", X, 2)),
    (lambda s: X.__rsub__(2, _semantic=s), ("sub", 2, X)),
    (lambda s: X.__rrshift__(2, _semantic=s), ("shr", 2, X)),
    (lambda s: X.__ge__(2, _semantic=s), ("greater_equal", X, 2)),
    (lambda s: X.__neg__(_semantic=s), ("minus", X)),
    (lambda s: X.logical_and(Y, _semantic=s), ("logical_and", X, Y)),
]


@pytest.mark.parametrize(("call", "expected"), CASES)
def test_arguments_reach_the_semantic_object_unwrapped(call: Any, expected: Any, semantic: Recorder) -> None:
    call(semantic)
    name, *args = called(semantic)
    assert name == expected[0]
    assert len(args) == len(expected) - 1
    for given, wanted in zip(args, expected[1:]):
        same = given is wanted if isinstance(wanted, base_value) else plain(given) == plain(wanted)
        assert same, (given, wanted)
        assert not isinstance(given, tl.constexpr)


def plain(value: Any) -> Any:
    """Lists compared without asking tensors for equality."""
    if isinstance(value, (list, tuple)):
        return [id(item) if isinstance(item, tl.tensor) else _value(item) for item in value]
    return value


def _value(item: Any) -> Any:
    return item.value if isinstance(item, tl.constexpr) else item


MATH = ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "floor", "ceil")


@pytest.mark.parametrize("name", MATH)
def test_elementary_functions(name: str, semantic: Recorder) -> None:
    getattr(tl, name)(X, _semantic=semantic)
    getattr(tl.math, name)(X, _semantic=semantic)
    getattr(X, name)(_semantic=semantic)
    assert semantic.calls == [*[("math_op", (name, X), {})] * 2, ("math_method", (name, X), {})]


def test_expand_dims_normalises_and_checks(semantic: Recorder) -> None:
    tl.expand_dims(X, (0, -1), _semantic=semantic)
    assert [(name, args[1]) for name, args, _ in semantic.calls] == [("expand_dims", 0), ("expand_dims", 3)]
    with pytest.raises(ValueError, match="invalid axis 4"):
        tl.expand_dims(X, 4, _semantic=semantic)
    with pytest.raises(ValueError, match=r"duplicate axes, normalized axes = \[0, 0\]"):
        tl.expand_dims(X, (0, -4), _semantic=semantic)


def test_indexing(semantic: Recorder) -> None:
    full = tl.slice(None)
    X.__getitem__(tl.tuple([None, full, None]), _semantic=semantic)
    assert [args[1] for _, args, _ in semantic.calls] == [0, 2]
    assert X.__getitem__((full, slice(None)), _semantic=semantic) is X
    for item in (0, slice(1, None), tl.slice(0, 2), Ellipsis, X):
        X.__getitem__(tl.tuple([full, item]), _semantic=semantic)
        assert semantic.calls.pop()[0] == "subscript"


class Generator(Any):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def call_JitFunction(self, fn: Any, args: Any, kwargs: Any) -> Any:
        self.calls.append((fn, args, kwargs))
        return tl.tuple(args[: len(args) // 2]) if len(args) > 2 else args[0]


def test_reduce_builds_its_region_from_the_function(semantic: Recorder) -> None:
    generator = Generator()
    result = tl.reduce(X, c(-1), c("combine"), _semantic=semantic, _generator=generator)
    name, (inputs, axis, region), _ = semantic.calls[0]
    assert (name, inputs, axis, result.handle) == ("reduce", [X], 1, "reduce0")
    a, b = tl.tensor("a", tl.float32), tl.tensor("b", tl.float32)
    assert region([a, b]) == [a] and generator.calls == [("combine", [a, b], {})]
    assert region([a, b, a, b]) == [a, b]


def test_reduce_of_a_tuple_gives_a_tuple(semantic: Recorder) -> None:
    result = tl.reduce(tl.tuple([X, Y]), None, combine, keep_dims=c(True), _semantic=semantic, _generator=Generator())
    assert isinstance(result, tl.tuple) and len(result) == 2
    assert [name for name, *_ in semantic.calls] == ["reduce", *["expand_dims"] * 4]
    assert semantic.calls[0][1][1] is None
    with pytest.raises(ValueError, match="invalid axis 2"):
        tl.reduce(X, 2, combine, _semantic=semantic, _generator=Generator())


def test_scan_and_map(semantic: Recorder) -> None:
    tl.associative_scan(X, 0, combine, c(True), _semantic=semantic, _generator=Generator())
    name, (inputs, axis, _, reverse), _ = semantic.calls.pop()
    assert (name, inputs, axis, reverse) == ("scan", [X], 0, True)
    result = tl.map_elementwise(combine, X, Y, pack=c(2), _semantic=semantic, _generator=Generator())
    name, (args, pack, _), _ = semantic.calls.pop()
    assert (name, args, pack) == ("map_elementwise", (X, Y), 2) and isinstance(result, tl.tuple)


def test_library_methods_call_the_jit_function(semantic: Recorder) -> None:
    generator = Generator()
    X.sum(c(0), keep_dims=True, _semantic=semantic, _generator=generator)
    assert generator.calls == [(tl.sum, (X, c(0)), {"keep_dims": True})]
    for name in ("max", "argmin", "cumsum", "softmax", "sigmoid", "ravel", "cdiv", "sort", "flip", "xor_sum", "topk"):
        assert tl.core.is_builtin(getattr(tl.tensor, name))


def test_descriptors(semantic: Recorder) -> None:
    shape, strides = tl.tuple([tl.tensor("m", tl.int32), c(8)]), tl.tuple([tl.tensor("s", tl.int64), c(1)])
    desc: Any = tl.tensor_descriptor("d", shape, strides, BLOCK)
    assert (desc.dtype, desc.block_type, list(desc.block_shape)) == (tl.float32, BLOCK, [4, 8])
    handles: list[Any] = []
    desc._flatten_ir(handles)
    assert handles == ["d", "m", "s"]
    copy, cursor = desc.type._unflatten_ir(["D", "M", "S"], 0)
    assert cursor == 3 and copy.type == desc.type and copy.shape[0].handle == "M" and copy.strides[1].value == 1
    assert desc.type.mangle() == "TDfp32S4_8S"
    tl.load_tensor_descriptor(desc, [0, X], _semantic=semantic)
    tl.store_tensor_descriptor(desc, [0, X], Y, _semantic=semantic)
    desc.atomic_add([0, 0], Y, _semantic=semantic)
    desc.gather(X, 0, _semantic=semantic)
    desc.scatter(Y, X, 0, _semantic=semantic)
    assert [(name, *args[:2]) for name, args, _ in semantic.calls] == [
        ("descriptor_load", desc, [0, X]),
        ("descriptor_store", desc, Y),
        ("descriptor_atomic", "add", desc),
        ("descriptor_gather", desc, X),
        ("descriptor_scatter", desc, Y),
    ]


def test_old_descriptor_functions_name_their_replacement(semantic: Recorder) -> None:
    with pytest.raises(TypeError, match=r"desc\.load"):
        tl._experimental_descriptor_load(P, [0], [8], tl.float32, _semantic=semantic)
    with pytest.raises(TypeError, match=r"desc\.store"):
        tl._experimental_descriptor_store(P, X, [0], _semantic=semantic)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tl.program_id(0),
        lambda: tl.load(P),
        lambda: X + 1,
        lambda: 1 - X,
        lambda: X == X,
        lambda: X.to(tl.int8),
        lambda: X.sum(),
        lambda: X[:, None],
        lambda: tl.extra.cuda.smid(),
        lambda: tl.extra.libdevice.sin(X),
    ],
)
def test_outside_a_kernel_the_missing_decorator_is_named(call: Any) -> None:
    with pytest.raises(ValueError, match="@jit"):
        call()


def test_a_builtin_that_fails_shows_core_py(semantic: Recorder) -> None:
    with pytest.raises(ValueError) as caught:
        tl.expand_dims(X, 9, _semantic=semantic)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert any(file.endswith("/core.py") for file in files)


def test_builtin_demands_a_semantic_parameter() -> None:
    with pytest.raises(AssertionError, match="_semantic"):

        @tl.core.builtin
        def f(x: Any) -> Any:
            return x


def test_must_use_result() -> None:
    @tl.core.must_use_result
    def f() -> None: ...

    @tl.core.must_use_result("Use it.")
    def g() -> None: ...

    assert vars(f)["_must_use_result"] is True and vars(g)["_must_use_result"] == "Use it."
    assert "tl.advance" in vars(tl.advance)["_must_use_result"]


def test_static_print_and_assert(semantic: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    tl.static_print(c("a"), X, c(3), sep=c("|"), _semantic=semantic)
    assert capsys.readouterr().out == "a|fp32[constexpr[4], constexpr[8]]|3\n"
    tl.static_assert(c(True), _semantic=semantic)
    with pytest.raises(AssertionError, match="no"):
        tl.static_assert(c(False), c("no"), _semantic=semantic)


def test_view_warns(semantic: Recorder) -> None:
    X.view(32, _semantic=semantic)
    (warned, (text, kind), _), (name, args, _) = semantic.calls
    assert warned == "warn" and "reshape" in text and kind is UserWarning
    assert (name, *args) == ("reshape", X, [32], True)


def test_cuda_functions(semantic: Recorder) -> None:
    assert tl.extra.cuda.num_threads(_semantic=semantic) == 128 and tl.extra.cuda.num_warps(_semantic=semantic) == 4
    tl.extra.cuda.globaltimer(_semantic=semantic)
    tl.extra.cuda.smid(_semantic=semantic)
    assert [(args[0], *args[3:]) for _, args, _ in semantic.calls] == [
        ("mov.u64 $0, %globaltimer;", [tl.int64], False, 1),
        ("mov.u32 $0, %smid;", [tl.int32], True, 1),
    ]


def test_loop_iterators_hold_their_arguments() -> None:
    loop: Any = tl.range(X, num_stages=c(3), flatten=True)
    assert loop.start.value == 0 and loop.end is X and loop.step.value == 1
    assert loop.num_stages == 3 and loop.flatten is True and loop.loop_unroll_factor is None
    unrolled: Any = tl.static_range(c(8), 0, step=-2)
    assert (unrolled.start.value, unrolled.end, unrolled.step) == (8, 0, -2)
    assert tl.condition(X, disable_licm=True).condition is X
    with pytest.raises(AssertionError, match="not a constexpr"):
        tl.static_range(X)
    with pytest.raises(TypeError):
        tl.range(X, stages=3)  # pyright: ignore[reportCallIssue]
    for iterator in (loop, unrolled):
        with pytest.raises(RuntimeError, match="@jit"):
            for _ in iterator:
                pass
