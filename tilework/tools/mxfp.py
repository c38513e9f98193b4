"""Numbers of the OCP microscaling formats on the host: E2M1 elements and E8M0 scales.

    >>> x = MXFP4Tensor(data=np.array([0.3, -1.25, 7.0], np.float32))
    >>> x.data                        # codes: sign << 3 | exponent << 1 | mantissa
    array([ 1, 10,  7], dtype=uint8)
    >>> x.to(np.float32)              # 0.3 is nearest to 0.5; -1.25 is a tie, the even mantissa wins; 7 saturates
    array([ 0.5, -1. ,  6. ], dtype=float32)
    >>> x.to_packed_tensor(0)         # two codes in a byte, the first in the low half, padded with zero
    array([161,   7], dtype=uint8)
    >>> MXScaleTensor(data=np.array([1.0, 6.0, 0.0], np.float32)).data     # floor(log2) + 127; 255 is NaN
    array([127, 129, 255], dtype=uint8)

The arithmetic is NumPy's. torch tensors go in and come out as torch tensors on their device; with only a `size`, codes
are torch tensors when a `device` is named or torch is already loaded, and NumPy arrays otherwise.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.numerics.rounding import E8M0_MAX, E8M0_NAN, decode_e2m1, decode_e8m0, encode_e2m1, encode_e8m0


def is_torch(value: Any) -> bool:
    """A tensor, dtype or device of torch; torch is not imported to find out."""
    return type(value).__module__.partition(".")[0] == "torch"


def to_numpy(value: Any) -> np.ndarray:
    """The elements on the host; float types that NumPy lacks are widened to float32."""
    if not is_torch(value):
        return np.asarray(value)
    plain = value.detach()
    if plain.dtype.is_floating_point and plain.dtype.itemsize < 4:
        plain = plain.float()
    return plain.cpu().numpy()


def like(array: np.ndarray, model: Any) -> Any:
    """`array` in the library, and on the device, of `model`."""
    if not is_torch(model):
        return array
    import torch  # lazily: torch is optional

    return torch.from_numpy(np.ascontiguousarray(array)).to(model.device)


class MicroscalingTensor:
    """The base of both formats: `data` (uint8 codes), or only a `size` until `random()` fills it."""

    def __init__(self, data: Any = None, size: int | Sequence[int] | None = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError(f"{type(self).__name__} needs data or size")
        self.device = data.device if device is None and data is not None and is_torch(data) else device
        self.data: Any = None
        if data is not None:
            self.data = like(self.encode(to_numpy(data)), data)
            if is_torch(data) and device is not None:
                self.data = self.data.to(device)
            self.size = tuple(self.data.shape)
        else:
            assert size is not None
            self.size = (size,) if isinstance(size, int) else tuple(size)

    @staticmethod
    def encode(values: np.ndarray) -> np.ndarray:
        raise AssertionError("a format defines its encoding")

    @staticmethod
    def decode(codes: np.ndarray) -> np.ndarray:
        raise AssertionError("a format defines its decoding")

    def random_codes(self, low: int, high: int) -> Any:
        """Random codes in ``low <= code < high``, from the generator of the library that will hold them."""
        if self.device is None and "torch" not in sys.modules:
            return np.random.randint(low, high, self.size).astype(np.uint8)
        import torch  # lazily: torch is optional

        return torch.randint(low, high, self.size, dtype=torch.uint8, device=self.device)

    def to(self, dtype: Any) -> Any:
        """The values as float32: a torch tensor for `torch.float32`, a NumPy array for `numpy.float32`."""
        wants_torch = is_torch(dtype)
        name = str(dtype).removeprefix("torch.") if wants_torch else np.dtype(dtype).name
        assert name == "float32", f"{type(self).__name__} converts to float32 only, not to {dtype}"
        assert self.data is not None, "there are no values yet: call random()"
        values = self.decode(to_numpy(self.data))
        if not wants_torch or is_torch(self.data):
            return like(values, self.data if wants_torch else None)
        import torch  # lazily: torch is optional

        return torch.from_numpy(values)


class MXFP4Tensor(MicroscalingTensor):
    """E2M1 values (0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives), each stored as a uint8 code.

    `to` returns the values; `to_packed_tensor` packs two codes into a byte, as `tl.dot_scaled` expects them; `random`
    creates one of a given `size`.

    Example:
        from tilework.tools.mxfp import MXFP4Tensor

        x = MXFP4Tensor(data=np.array([0.3, -1.25, 7.0], np.float32))
        assert x.to(np.float32).tolist() == [0.5, -1, 6]  # the nearest ones; 7 is too large
        assert x.to_packed_tensor(0).tolist() == [161, 7]
    """

    encode = staticmethod(encode_e2m1)
    decode = staticmethod(decode_e2m1)

    def random(self) -> "MXFP4Tensor":
        """Fill with random codes."""
        self.data = self.random_codes(0, 16)
        return self

    def to_packed_tensor(self, dim: int) -> Any:
        """Two codes per byte along `dim`, the first in the low half; an odd size is padded with zero."""
        codes = to_numpy(self.data)
        check_dim(dim, codes.ndim)
        if codes.shape[dim] % 2:
            codes = np.pad(codes, [(0, int(axis == dim)) for axis in range(codes.ndim)])
        pairs = np.moveaxis(codes, dim, -1)
        return like(np.moveaxis(pairs[..., 1::2] << 4 | pairs[..., 0::2], -1, dim), self.data)

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Sequence[int]) -> Any:
        """The codes that `to_packed_tensor(dim)` packed; `original_shape` shows if the last one is padding."""
        packed = to_numpy(packed_tensor)
        check_dim(dim, packed.ndim)
        last = np.moveaxis(packed, dim, -1)
        pairs = np.stack([last & 0xF, last >> 4], axis=-1)
        codes = pairs.reshape(*last.shape[:-1], 2 * last.shape[-1])[..., : original_shape[dim]]
        return like(np.moveaxis(codes, -1, dim).reshape(tuple(original_shape)), packed_tensor)


class MXScaleTensor(MicroscalingTensor):
    """E8M0 scales: powers of two from 2**-127 to 2**127, and NaN.

    Example:
        from tilework.tools.mxfp import MXScaleTensor

        scales = MXScaleTensor(data=np.array([1.0, 6.0], np.float32))
        assert scales.data.tolist() == [127, 129] and scales.to(np.float32).tolist() == [1, 4]
    """

    encode = staticmethod(encode_e8m0)
    decode = staticmethod(decode_e8m0)

    def random(self, low: float | None = None, high: float | None = None) -> "MXScaleTensor":
        """Fill with random powers of two from `low` to `high`; never NaN."""
        first = 0 if low is None else e8m0_bound(low) + (np.frexp(low)[0] != 0.5)
        last = E8M0_MAX if high is None else e8m0_bound(high)
        assert first <= last, f"no scale is between {low} and {high}"
        self.data = self.random_codes(first, last + 1)
        return self


def e8m0_bound(value: float) -> int:
    """The code of the largest power of two up to `value`."""
    code = int(encode_e8m0(np.asarray(value)))
    assert code != E8M0_NAN, f"{value} is not positive and finite"
    return code


def check_dim(dim: int, rank: int) -> None:
    """Packing needs an axis that exists."""
    assert 0 <= dim < rank, f"dimension {dim} is not one of the {rank} dimensions of the tensor"
