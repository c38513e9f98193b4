"""Gluon, as far as programs with both Gluon kernels and Triton kernels need it: kernels can be defined, but not
launched.

    from triton.experimental import gluon
    import triton.experimental.gluon.language as gl

    @gluon.jit
    def kernel(x, layout: gl.constexpr): ...      # fine

    kernel[grid](x, layout)                       # StageError: kernel (train.py:8) is a Gluon kernel: ...

Gluon's language has the names that it shares with the tile language. Every other name of Gluon's modules is a
placeholder (`NotCompiled`) that raises the same error when it is used. Layouts and descriptors of host programs exist:

    TensorDescriptor.from_tensor(a, [64, 64], NVMMASharedLayout(128, 16))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import tilework.language as tile_language
from tilework.errors import StageError
from tilework.runtime.launch.python.jit import JITFunction
from tilework.tools.tensor_descriptor import check_descriptor, strides_of

SWIZZLES = (0, 32, 64, 128)
BITWIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class NVMMASharedLayout:
    """A matrix in shared memory as the tensor cores and TMA of NVIDIA GPUs read it, from Hopper on.

    The rows have `swizzle_byte_width` bytes, whose 16-byte chunks are permuted so that the rows of a column are in
    different banks. `cga_layout` is the distribution over the blocks of a cluster.
    """

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        swizzle, bits = self.swizzle_byte_width, self.element_bitwidth
        assert swizzle in SWIZZLES, f"swizzle_byte_width must be one of {SWIZZLES}, got {swizzle}"
        assert bits in BITWIDTHS, f"element_bitwidth must be one of {BITWIDTHS}, got {bits}"
        object.__setattr__(self, "cga_layout", tuple(tuple(basis) for basis in self.cga_layout))

    @staticmethod
    def get_default_for(
        block_shape: Sequence[int],
        dtype: Any,
        transposed: bool = False,
        fp4_padded: bool = False,
        cga_layout: Sequence[Sequence[int]] | None = None,
    ) -> "NVMMASharedLayout":
        """Return the layout with the widest swizzle that rows of a block, as one CTA of the cluster has them, allow."""
        bases = [list(basis) for basis in cga_layout or ()]
        shares = [2 * max((basis[axis] for basis in bases), default=0) or 1 for axis in range(len(block_shape))]
        divided = zip(block_shape, shares, strict=True)
        assert all(size % share == 0 for size, share in divided), (
            f"Shape {list(block_shape)} is not divisible by CGA layout {bases}"
        )
        shape = [size // share for size, share in zip(block_shape, shares, strict=True)]
        if transposed:
            shape = [*shape[1:], shape[0]]
        bits = dtype.primitive_bitwidth
        row = shape[-1] * (2 if fp4_padded else 1) * bits // 8
        is_small = len(shape) < 2 or prod(shape[:-1]) < 8
        swizzle = 0 if is_small else next((width for width in SWIZZLES[:0:-1] if row % width == 0), 0)
        return NVMMASharedLayout(swizzle, bits, len(block_shape), transposed, fp4_padded, bases)


LANGUAGE = "triton.experimental.gluon.language"
WHY = "tilework compiles the tile language (triton.language) and has no compiler for Gluon, on any target"


class GluonJITFunction(JITFunction):
    """A kernel or function in Gluon."""

    def is_gluon(self) -> bool:
        return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        code = self.fn.__code__
        raise StageError(f"{self.__name__} ({code.co_filename}:{code.co_firstlineno}) is a Gluon kernel: {WHY}")

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.run

    warmup = preload = run


def jit(fn: Any = None, **options: Any) -> Any:
    """Decorate a Gluon kernel, as `triton.jit` does a Triton kernel."""
    return GluonJITFunction(fn, **options) if fn is not None else lambda fn: GluonJITFunction(fn, **options)


class NotCompiled:
    """The placeholder of a name of Gluon: using it raises StageError."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise StageError(f"{self.__name__} is Gluon: {WHY}")

    def __getattr__(self, name: str) -> "NotCompiled":
        return (
            NotCompiled(f"{self.__name__}.{name}") if not name.startswith("_") else object.__getattribute__(self, name)
        )

    def __repr__(self) -> str:
        return f"<{self.__name__}, which tilework cannot compile>"


def placeholders(module: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module of Gluon."""

    def find(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        shared = getattr(tile_language, name, None) if module == LANGUAGE else None
        return shared if shared is not None else NotCompiled(f"{module}.{name}")

    return find


@dataclass
class TensorDescriptor:
    """A descriptor of blocks of a tensor with their layout in shared memory; unrelated to the Triton descriptor."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    layout: NVMMASharedLayout
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        assert isinstance(self.layout, NVMMASharedLayout), f"layout must be an NVMMASharedLayout, got {self.layout!r}"
        check_descriptor(self)

    @staticmethod
    def from_tensor(
        tensor: Any,
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> "TensorDescriptor":
        """Return the descriptor of a whole NumPy array or torch tensor."""
        sizes, strides = list(tensor.shape), strides_of(tensor)
        return TensorDescriptor(tensor, sizes, strides, list(block_shape), layout, padding, round_f32_to_tf32)


TensorDescriptorIm2Col = NotCompiled("triton.experimental.gluon.nvidia.hopper.TensorDescriptorIm2Col")
