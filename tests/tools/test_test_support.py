"""Modules that tests written for Triton import: `_internal_testing` and `_filecheck`."""

import os
from collections.abc import Iterator

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.runtime.launch.python.wrappers import TensorWrapper
from tilework.tools.filecheck import MatchError, filecheck_test, run_filecheck, run_filecheck_test, run_parser
from tilework.triton import internal_testing as it
from tilework.triton.backends import GPUTarget


class FakeDriver:
    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def get_current_target(self) -> GPUTarget:
        return self.target


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restores the active driver."""
    driver = tilework.runtime.driver
    before = driver._active
    with knobs.runtime.scope():
        knobs.runtime.interpret = False
        yield
    driver._active = before


@pytest.mark.parametrize(
    ("text", "true"),
    [
        (("cuda", 80, 32), "is_cuda is_ampere_or_newer supports_tma"),
        (("cuda", 90, 32), "is_cuda is_ampere_or_newer is_hopper is_hopper_or_newer supports_tma supports_ws"),
        (("cuda", 100, 32), "is_cuda is_ampere_or_newer is_hopper_or_newer is_blackwell supports_tma supports_ws"),
        (
            ("cuda", 103, 32),
            "is_cuda is_ampere_or_newer is_hopper_or_newer is_blackwell is_blackwell_ultra supports_tma supports_ws",
        ),
        (("cuda", 110, 32), "is_cuda is_ampere_or_newer is_hopper_or_newer is_blackwell supports_tma supports_ws"),
        (("cuda", 120, 32), "is_cuda is_ampere_or_newer is_hopper_or_newer is_sm12x supports_tma supports_ws"),
        (("hip", "gfx90a", 64), "is_hip is_hip_cdna is_hip_cdna2 supports_tma"),
        (("hip", "gfx942", 64), "is_hip is_hip_cdna is_hip_cdna3 supports_tma"),
        (("hip", "gfx950", 64), "is_hip is_hip_cdna is_hip_cdna4 supports_tma"),
        (("hip", "gfx1151", 32), "is_hip is_hip_rdna is_hip_rdna3 is_hip_gfx11 supports_tma"),
        (("hip", "gfx1200", 32), "is_hip is_hip_rdna is_hip_rdna4 is_hip_gfx12 supports_tma"),
        (
            ("hip", "gfx1250", 32),
            "is_hip is_hip_rdna is_hip_rdna4 is_hip_gfx12 is_hip_gfx1250 is_hip_cdna5 supports_tma",
        ),
        (("cpu", "host", 1), "supports_tma"),
    ],
)
def test_questions_about_the_target(text: tuple, true: str, target: None) -> None:
    tilework.runtime.driver.set_active(FakeDriver(GPUTarget(*text)))
    questions = [name for name in vars(it) if name.startswith(("is_", "supports_"))]
    assert sorted(name for name in questions if getattr(it, name)()) == sorted(true.split())
    assert it.get_arch() == str(text[1]) and it.get_current_target() == GPUTarget(*text)


def test_capability_11_is_blackwell_since_3_7(target: None) -> None:
    tilework.runtime.driver.set_active(FakeDriver(GPUTarget("cuda", 110, 32)))
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        assert not it.is_blackwell() and it.is_hopper_or_newer()


def test_questions_in_the_interpreter(target: None) -> None:
    knobs.runtime.interpret = True
    assert it.is_interpreter() and not it.is_cuda() and it.supports_tma() and it.get_arch() == ""


def test_lists_of_dtypes() -> None:
    assert it.integral_dtypes == [*it.int_dtypes, *it.uint_dtypes] and "float64" in it.float_dtypes
    assert set(it.dtypes_with_bfloat16) == {*it.dtypes, "bfloat16"}
    assert "bool" in it.torch_dtypes and "int64" not in it.tma_dtypes and "bfloat16" in it.tma_dtypes
    for name in it.dtypes_with_bfloat16:
        assert it.torch_dtype_name(it.str_to_triton_dtype(name)) == name


@pytest.mark.parametrize("name", it.dtypes_with_bfloat16)
def test_random_values_survive_the_way_to_a_kernel(name: str) -> None:
    x = it.numpy_random((8, 16), name)
    assert (x == it.numpy_random((8, 16), name, np.random.RandomState(17))).all() and x.shape == (8, 16)
    assert x.dtype.name == ("float32" if name == "bfloat16" else name)
    if name in it.integral_dtypes:
        assert (x != 0).all() and set(it.numpy_random(1000, name, low=1, high=4).tolist()) == {1, 2, 3}
    argument = it.to_triton(x, device="cpu", dst_type=name)
    assert (it.to_numpy(argument) == x).all()
    assert isinstance(argument, TensorWrapper) == (name in it.uint_dtypes)
    assert not isinstance(it.unwrap_tensor(argument), TensorWrapper)


def test_random_values_of_odd_types() -> None:
    assert it.numpy_random(10, "bool").dtype == np.bool_
    fp8 = it.numpy_random(100, "float8e5")
    assert fp8.dtype == np.int8 and fp8.min() >= 20 and fp8.max() < 40
    assert it.to_triton(fp8, device="cpu", dst_type="float8e5").dtype == tl.float8e5
    with pytest.raises(RuntimeError, match="Unknown dtype complex64"):
        it.numpy_random(1, "complex64")


def test_an_allocator() -> None:
    assert it.default_alloc_fn(128, 16, None).data_ptr() > 0


def test_fresh_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", "/outside")
    monkeypatch.setenv("CC", "my-cc")
    before = knobs.cache, knobs.build
    start, stop = it._fresh_knobs_impl({"build"})
    fresh = start()
    try:
        assert fresh is knobs and "TRITON_CACHE_DIR" not in os.environ and os.environ["CC"] == "my-cc"
        assert knobs.cache is not before[0] and knobs.build is before[1] and knobs.propagate_env
        knobs.cache.dir = "/inside"
        assert os.environ["TRITON_CACHE_DIR"] == "/inside"
    finally:
        stop()
    assert (knobs.cache, knobs.build) == before and os.environ["TRITON_CACHE_DIR"] == knobs.cache.dir == "/outside"


@tilework.jit
def fill(p, value, BLOCK: tl.constexpr):
    # CHECK: tt.func public @fill
    tl.store(p + tl.arange(0, BLOCK), value)


@filecheck_test
@tilework.jit
def test_kernels_with_comments():
    # CHECK-LABEL: test_kernels_with_comments
    # CHECK: %[[RANGE:.*]] = tt.make_range {end = 16 : i32, start = 0 : i32}
    # CHECK: arith.addi %[[RANGE]]
    # CHECK: tt.print {{.*}} : %c11_i32
    eleven = 11  # not %eleven: values have numbers here, and constants their values
    tl.arange(0, 16) + 1  # pyright: ignore[reportUnusedExpression]
    tl.device_print("eleven", eleven)


def test_the_parser_stops_before_the_passes() -> None:
    arguments = (tilework.MockTensor(tl.float32), 1.5, 8)
    module = run_parser(fill, args=arguments, kwargs={"num_warps": 8})
    text = module.str_nodebug()
    assert "@fill(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: f32)" in text and "loc(" not in text
    assert "loc(" in str(module) and "test_test_support.py" in str(module)
    run_filecheck("fill", text, "// CHECK: tt.make_range {end = 8 : i32\n// CHECK-NOT: tt.dot\n")
    assert run_parser(fill, (*arguments[:2], tl.constexpr(8))).str_nodebug() == text
    assert "@fill" in run_parser(fill, arguments, target=GPUTarget("cuda", 80, 32)).str_nodebug()


def test_the_parser_adds_no_overflow_checks() -> None:
    @tilework.jit
    def add(a, b):
        tl.device_print("sum", a + b)

    assert "tt.assert" not in run_parser(add, (3, 5), {"debug": True}).str_nodebug()


def test_a_mismatch_shows_the_line_and_the_module() -> None:
    with pytest.raises(MatchError, match=r"(?s)make_range \{end = 9.*module:.*end = 8"):
        run_filecheck("x", "%0 = tt.make_range {end = 8", "// CHECK: make_range {end = 9\n")

    @tilework.jit
    def wrong():
        # CHECK: tt.dot
        tl.arange(0, 8)

    with pytest.raises(MatchError, match=r"tt\.dot"):
        run_filecheck_test(wrong)


def test_what_is_no_filecheck_test() -> None:
    @tilework.jit
    def nothing():
        tl.arange(0, 8)

    with pytest.raises(ValueError, match="no CHECK line"):
        run_filecheck_test(nothing)
    with pytest.raises(TypeError, match="@jit functions"):
        run_filecheck_test(len)
