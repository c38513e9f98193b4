"""Placeholders for arrays: a tensor seen with another dtype, and a tensor that is only a type."""

from typing import Any


class MockTensor:
    """A 16-byte aligned tensor of a dtype, for compiling without data: ``kernel.warmup(torch.float32, 64, grid=(1,))``.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, 1.0)

        compiled = kernel.warmup(tilework.MockTensor(tl.float16), grid=(1,))
        assert "!tt.ptr<f16>" in compiled.asm["ttir"]
    """

    @staticmethod
    def wrap_dtype(arg: object) -> Any:
        """Return a MockTensor for a framework's dtype; any other argument unchanged."""
        is_dtype = type(arg).__name__ == "dtype" and type(arg).__module__ == "torch"
        return MockTensor(arg) if is_dtype else arg

    def __init__(self, dtype: object, shape: list[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    def stride(self) -> tuple[int, ...]:
        """Strides of a contiguous tensor of this shape."""
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    @staticmethod
    def data_ptr() -> int:
        return 0

    @staticmethod
    def ptr_range() -> int:
        return 0


class TensorWrapper:
    """A tensor with another element type: the same memory, read as `dtype`. Made by `reinterpret`.

    Example:
        wrapped = tilework.reinterpret(np.zeros(4, np.uint8), tl.float8e5)
        assert isinstance(wrapped, tilework.TensorWrapper) and wrapped.dtype == tl.float8e5
    """

    def __init__(self, base: Any, dtype: object) -> None:
        self.dtype = dtype
        self.base = base
        self.data = getattr(base, "data", base)
        self.device = getattr(base, "device", None)
        self.shape = base.shape

    def data_ptr(self) -> int:
        return address(self.base)

    def stride(self, *args: Any) -> Any:
        """Strides in elements, as torch counts them."""
        if hasattr(self.base, "stride"):
            return self.base.stride(*args)
        strides = tuple(step // self.base.itemsize for step in self.base.strides)
        return strides[args[0]] if args else strides

    def element_size(self) -> int:
        return self.base.element_size() if hasattr(self.base, "element_size") else self.base.itemsize

    def cpu(self) -> "TensorWrapper":
        return TensorWrapper(self.base.cpu() if hasattr(self.base, "cpu") else self.base, self.dtype)

    def copy_(self, other: "TensorWrapper") -> None:
        if hasattr(self.base, "copy_"):
            self.base.copy_(other.base)
        else:
            self.base[...] = other.base

    def clone(self) -> "TensorWrapper":
        return TensorWrapper(self.base.clone() if hasattr(self.base, "clone") else self.base.copy(), self.dtype)

    def to(self, device: Any) -> "TensorWrapper":
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> "TensorWrapper":
        if hasattr(self.base, "new_empty"):
            return TensorWrapper(self.base.new_empty(sizes), self.dtype)
        return TensorWrapper(type(self.base)(sizes, self.base.dtype), self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def address(tensor: Any) -> int:
    """The address of a tensor's memory."""
    return tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.__array_interface__["data"][0]


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """View the memory of `tensor` as elements of `dtype` (a `tl` dtype or the framework's own).

    It is for types that NumPy or an older torch does not have: bytes that hold float8, 16-bit integers that hold
    bfloat16.

    Example:
        @tilework.jit
        def kernel(x, out):
            i = tl.arange(0, 2)
            tl.store(out + i, tl.load(x + i).to(tl.float32))

        bits, out = np.array([0x3C, 0x40], np.uint8), np.zeros(2, np.float32)
        kernel[(1,)](tilework.reinterpret(bits, tl.float8e5), out)
        assert out.tolist() == [1, 2]
    """
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr") or hasattr(tensor, "__array_interface__"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"Cannot reinterpret a {type(tensor)}.")
