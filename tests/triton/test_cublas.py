"""What `CublasLt` checks before it calls the library, on tensors of which only the shapes are there."""

import ctypes
import math
from types import SimpleNamespace
from typing import Any

import pytest

from tilework.targets.base import GPUTarget
from tilework.triton import cublas


def tensor(dtype: str, *shape: int) -> Any:
    return SimpleNamespace(
        dtype=f"torch.{dtype}",
        shape=shape,
        ndim=len(shape),
        device=SimpleNamespace(type="cuda"),
        is_contiguous=lambda: True,
        numel=lambda: math.prod(shape),
        element_size=lambda: 1,
    )


@pytest.mark.parametrize(
    ("kind", "rows", "k", "least"),
    [
        (cublas.MXFP8, 128, 128, 512),
        (cublas.MXFP8, 16, 32, 512),
        (cublas.MXFP8, 129, 128, 1024),
        (cublas.MXFP8, 128, 160, 1024),
        (cublas.MXFP8, 384, 4096, 384 * 128),
        (cublas.NVFP4, 128, 64, 512),
        (cublas.NVFP4, 200, 80, 256 * 8),
    ],
)
def test_scales_fill_tiles(kind: cublas.Scaled, rows: int, k: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """cuBLAS reads scales in tiles of 128 rows x 4 blocks along K."""
    monkeypatch.setattr(cublas, "capability", lambda tensor: (10, 0))
    a, c = tensor(kind.dtype, rows, k // kind.per_byte), tensor("float32", rows, rows)
    enough, too_few = tensor("uint8", least), tensor("uint8", least - 1)
    cublas.check_scaled(kind, a, a, c, enough, enough)
    for letter, scales in (("A", (too_few, enough)), ("B", (enough, too_few))):
        with pytest.raises(RuntimeError, match=f"{letter} has {rows} rows of .* reads {least} scales.* {least - 1}$"):
            cublas.check_scaled(kind, a, a, c, *scales)


def test_a_handle_for_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """`triton.testing.cublas()` of Triton 3.8."""
    torch = pytest.importorskip("torch")
    assert cublas.current_handle() is None  # on the CPU
    made: list[Any] = []
    device = SimpleNamespace(get_current_target=lambda: GPUTarget("cuda", 90, 32), get_current_device=lambda: len(made))
    monkeypatch.setattr(cublas, "driver", SimpleNamespace(active=device))
    monkeypatch.setattr(cublas, "HANDLES", {})
    monkeypatch.setattr(cublas, "CublasLt", lambda workspace: workspace)
    monkeypatch.setattr(torch, "empty", lambda size, dtype, device: (size, dtype, device))
    first = cublas.current_handle()
    assert first == (32 << 20, torch.uint8, "cuda:0") and cublas.current_handle() is first
    made.append(first)
    assert cublas.current_handle() == (32 << 20, torch.uint8, "cuda:1")


def test_cublas_says_what_is_missing() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="a tensor on a CUDA device"):
        cublas.CublasLt(torch.empty(16))


class FakeCublas:
    """Records the attributes of products; all calls succeed, and there is an algorithm for everything."""

    def __init__(self) -> None:
        self.attributes: dict[int, tuple[int, int]] = {}  # by number: bytes, value
        self.products = 0

    def cublasLtMatmulDescSetAttribute(self, operation: Any, attribute: int, value: Any, size: Any) -> int:
        held = value._obj
        assert ctypes.sizeof(held) == size.value
        self.attributes[attribute] = size.value, held.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:
        arguments[-1]._obj.value = 1
        return 0

    def cublasLtMatmul(self, *arguments: Any) -> int:
        self.products += 1
        return 0

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: 0


class FakeMatrix:
    device, ndim = SimpleNamespace(type="cuda"), 2

    def __init__(self, shape: tuple[int, int], dtype: str) -> None:
        self.shape, self.dtype = shape, f"torch.{dtype}"

    def is_contiguous(self) -> bool:
        return True

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return 1

    def data_ptr(self) -> int:
        return 4096


@pytest.mark.parametrize(
    ("operands", "result"),
    [("float16", "float16"), ("float32", "float32"), ("float8_e4m3fn", "float16"), ("float8_e4m3fn", "float8_e4m3fn")],
)
def test_cublas_accumulates_fp8_fast(monkeypatch: pytest.MonkeyPatch, operands: str, result: str) -> None:
    """CUBLASLT_MATMUL_DESC_TRANSA and TRANSB are 3 and 4, of 32 bits, FAST_ACCUM is 25, of 8."""
    fake = FakeCublas()
    monkeypatch.setattr(cublas, "library", lambda: fake)
    monkeypatch.setattr(cublas, "current_stream", lambda tensor: 0)
    blas = cublas.CublasLt(FakeMatrix((1, 64), "uint8"))
    blas.matmul(*(FakeMatrix((16, 16), kind) for kind in (operands, operands, result)))
    assert fake.products == 1
    assert fake.attributes == {3: (4, 1), 4: (4, 0)} | ({25: (1, 1)} if "float8" in operands else {})


@pytest.mark.parametrize(
    ("name", "dtype", "per_byte", "block", "mode"),
    [
        ("mxfp8", "float8_e4m3fn", 1, 32, 2),
        ("nvfp4", "uint8", 2, 16, 1),
    ],
)
def test_cublas_multiplies_blocks_with_scales(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str, per_byte: int, block: int, mode: int
) -> None:
    """CUBLASLT_MATMUL_DESC_A_SCALE_POINTER and B_SCALE_POINTER are 17 and 18, the modes 31 and 32: 1 is a fp8 for 16
    elements, 2 an e8m0 for 32. The first operand of cuBLAS is B."""
    fake, layouts = FakeCublas(), []
    fake.cublasLtMatrixLayoutCreate = lambda layout, *facts: layouts.append([getattr(f, "value", f) for f in facts])  # pyright: ignore
    monkeypatch.setattr(cublas, "library", lambda: fake)
    monkeypatch.setattr(cublas, "check", lambda name, status: None)
    monkeypatch.setattr(cublas, "current_stream", lambda tensor: 0)
    monkeypatch.setattr(cublas, "capability", lambda tensor: (10, 0))
    blas = cublas.CublasLt(FakeMatrix((1, 64), "uint8"))
    multiply = getattr(blas, f"block_scaled_matmul_{name}")
    k = 256
    a, b = (FakeMatrix((rows, k // per_byte), dtype) for rows in (128, 384))
    scales = [FakeMatrix((rows, k // block), "uint8") for rows in (128, 384)]
    for address, scale in enumerate(scales):
        scale.data_ptr = lambda address=address: 64 * address + 64  # pyright: ignore
    c = FakeMatrix((128, 384), "float16")
    multiply(a, b, c, *scales)
    assert fake.products == 1 and [layout[1:] for layout in layouts[:2]] == [[k, 384, k], [k, 128, k]]
    kind = {"mxfp8": 28, "nvfp4": 33}[name]
    assert [layout[0] for layout in layouts] == [kind, kind, 2, 2]
    wanted = {17: (8, 128), 18: (8, 64), 31: (4, mode), 32: (4, mode)}
    assert {number: fake.attributes[number] for number in wanted} == wanted
    for wrong, words in [
        ((b, a, c, *scales), "the shapes of A, B and C are"),
        ((c, b, c, *scales), f"A is a matrix of {dtype}, not torch.float16"),
        ((a, b, a, *scales), "C is A @ B.T" if per_byte == 2 else "the shapes of A, B and C"),
        (
            (a, b, c, scales[0], scales[0]),
            f"B has 384 rows of {k // block} blocks.* reads {384 * k // block} scales.* are {128 * k // block}",
        ),
        ((a, b, FakeMatrix((128, 384), dtype), *scales), "C is float16, bfloat16 or float32"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            multiply(*wrong)
    monkeypatch.setattr(cublas, "capability", lambda tensor: (9, 0))
    with pytest.raises(RuntimeError, match=rf"block_scaled_matmul_{name} needs a GPU of compute capability 10\.0"):
        multiply(a, b, c, *scales)
