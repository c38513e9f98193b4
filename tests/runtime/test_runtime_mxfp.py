"""E2M1 and E8M0 on the host."""

import sys

import numpy as np
import pytest

from tilework.numerics.rounding import E2M1_VALUES
from tilework.tools.mxfp import MXFP4Tensor, MXScaleTensor

ALL_CODES = np.arange(16, dtype=np.uint8)


def fp4(*values: float) -> MXFP4Tensor:
    return MXFP4Tensor(data=np.array(values, np.float32))


def codes(data: np.ndarray) -> MXFP4Tensor:
    made = MXFP4Tensor(size=data.shape)
    made.data = data
    return made


def test_every_code_survives_the_round_trip() -> None:
    assert np.array_equal(MXFP4Tensor(data=codes(ALL_CODES).to(np.float32)).data, ALL_CODES)


def test_values_are_the_table() -> None:
    assert codes(ALL_CODES).to(np.float32).tolist() == [*E2M1_VALUES, *(-E2M1_VALUES)]
    assert codes(ALL_CODES).to(np.float32).dtype == np.float32


def test_zero_keeps_its_sign() -> None:
    assert fp4(0.0, -0.0).data.tolist() == [0, 8]
    assert np.signbit(fp4(-0.0).to(np.float32))[0]


def test_out_of_range_saturates() -> None:
    assert fp4(7, 100, np.inf, 6.1).to(np.float32).tolist() == [6] * 4
    assert fp4(-7, -100, -np.inf).to(np.float32).tolist() == [-6] * 3
    assert fp4(np.nan).to(np.float32).tolist() == [6]


def test_small_numbers() -> None:
    assert fp4(0.1, 0.2, 0.3, 0.4).to(np.float32).tolist() == [0, 0, 0.5, 0.5]


def test_ties_go_to_the_even_mantissa() -> None:
    ties = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
    rounded = [0, 1, 1, 2, 2, 4, 4]
    assert fp4(*ties).to(np.float32).tolist() == rounded
    assert fp4(*(-tie for tie in ties)).to(np.float32).tolist() == [-value for value in rounded]


def test_rounding_is_to_nearest_everywhere() -> None:
    values = np.linspace(-6, 6, 4801, dtype=np.float32)
    got = MXFP4Tensor(data=values).to(np.float32)
    table = np.concatenate([E2M1_VALUES, -E2M1_VALUES])
    best = np.abs(values[:, None] - table).min(axis=1)
    assert np.array_equal(np.abs(got - values), best)


@pytest.mark.parametrize("shape", [(8,), (7,), (4, 6), (5, 3), (2, 3, 4), (0,)])
def test_packing_and_unpacking(shape: tuple[int, ...]) -> None:
    x = MXFP4Tensor(data=np.random.default_rng(0).uniform(-7, 7, shape).astype(np.float32))
    for dim in range(len(shape)):
        packed = x.to_packed_tensor(dim)
        assert packed.shape[dim] == (shape[dim] + 1) // 2
        assert packed.dtype == np.uint8
        assert np.array_equal(x.unpack_packed_tensor(packed, dim, shape), x.data)


def test_the_first_of_a_pair_is_the_low_half() -> None:
    assert codes(np.array([1, 2, 3], np.uint8)).to_packed_tensor(0).tolist() == [0x21, 0x03]
    rows = codes(np.array([[1, 2], [3, 4]], np.uint8))
    assert rows.to_packed_tensor(0).tolist() == [[0x31, 0x42]]
    assert rows.to_packed_tensor(1).tolist() == [[0x21], [0x43]]


@pytest.mark.parametrize("dim", [1, 2, -1])
def test_packing_along_a_dimension_that_is_not_there(dim: int) -> None:
    with pytest.raises(AssertionError, match="dimension"):
        fp4(1, 2).to_packed_tensor(dim)


def test_random_codes_and_what_is_refused() -> None:
    generated = MXFP4Tensor(size=1000).random()
    assert generated.data.shape == (1000,) and len(set(generated.data.tolist())) == 16
    with pytest.raises(ValueError, match="data or size"):
        MXFP4Tensor()
    with pytest.raises(AssertionError, match="float32 only"):
        generated.to(np.float16)
    with pytest.raises(AssertionError, match="random"):
        MXFP4Tensor(size=3).to(np.float32)


def test_without_torch_everything_is_numpy() -> None:
    if "torch" not in sys.modules:
        assert type(MXScaleTensor(size=(2, 2)).random().data) is np.ndarray


def scale(*values: float) -> MXScaleTensor:
    return MXScaleTensor(data=np.array(values, np.float32))


def test_powers_of_two_are_exact() -> None:
    values = [2.0**power for power in (-127, -126, -3, 0, 1, 5, 127)]
    assert scale(*values).data.tolist() == [0, 1, 124, 127, 128, 132, 254]
    assert scale(*values).to(np.float32).tolist() == values
    assert scale(3.9, 4.1).data.tolist() == [128, 129]


def test_special_scales() -> None:
    assert scale(0.0, -1.0, np.nan, np.inf, -np.inf).data.tolist() == [255] * 5
    assert np.isnan(scale(np.nan).to(np.float32))[0]


def test_scale_codes_survive_the_round_trip() -> None:
    made = MXScaleTensor(size=255)
    made.data = np.arange(255, dtype=np.uint8)
    assert np.array_equal(MXScaleTensor(data=made.to(np.float32)).data, made.data)


def test_random_scales() -> None:
    assert MXScaleTensor(size=(5000,)).random().data.max() <= 254
    bounded = MXScaleTensor(size=(500,)).random(low=0.25, high=8.0).to(np.float32)
    assert bounded.min() == 0.25 and bounded.max() == 8
    between = MXScaleTensor(size=(500,)).random(low=0.3, high=9.0).to(np.float32)
    assert between.min() == 0.5 and between.max() == 8
    with pytest.raises(AssertionError, match="not positive"):
        MXScaleTensor(size=1).random(low=-1.0)
    with pytest.raises(AssertionError, match="between"):
        MXScaleTensor(size=1).random(low=4, high=2)


def test_torch_in_torch_out() -> None:
    torch = pytest.importorskip("torch")
    x = MXFP4Tensor(data=torch.tensor([0.3, -1.25, 7.0], dtype=torch.bfloat16))
    assert torch.equal(x.data, torch.tensor([1, 10, 7], dtype=torch.uint8))
    assert torch.equal(x.to(torch.float32), torch.tensor([0.5, -1, 6]))
    packed = x.to_packed_tensor(0)
    assert torch.equal(x.unpack_packed_tensor(packed, 0, (3,)), x.data)
    generated = MXScaleTensor(size=(4, 4), device="cpu").random()
    assert isinstance(generated.to(torch.float32), torch.Tensor) and isinstance(generated.to(np.float32), np.ndarray)
