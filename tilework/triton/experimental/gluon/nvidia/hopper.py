"""A host tensor descriptor that carries the shared-memory layout of its blocks, as Gluon kernels take them.

    TensorDescriptor.from_tensor(a, [64, 64], NVMMASharedLayout(128, 16))

Tilework does not compile Gluon; the type exists for programs that describe tensors to both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilework.tools import tensor_descriptor
from tilework.tools.tensor_descriptor import strides_of
from tilework.triton.experimental.gluon.language._layouts import NVMMASharedLayout

__all__ = ["TensorDescriptor"]


@dataclass(init=False)
class TensorDescriptor(tensor_descriptor.TensorDescriptor):
    """`block_shape` blocks of a tensor, laid out in shared memory as `layout` says."""

    layout: NVMMASharedLayout

    def __init__(
        self,
        base: Any,
        shape: Sequence[int],
        strides: Sequence[int],
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
    ) -> None:
        assert isinstance(layout, NVMMASharedLayout), f"layout must be an NVMMASharedLayout, got {layout!r}"
        self.layout = layout
        super().__init__(base, shape, strides, block_shape, padding)

    @staticmethod
    def from_tensor(  # pyright: ignore[reportIncompatibleMethodOverride]
        tensor: Any, block_shape: Sequence[int], layout: NVMMASharedLayout, padding: str = "zero"
    ) -> "TensorDescriptor":
        """The descriptor of a whole NumPy array or torch tensor."""
        return TensorDescriptor(tensor, list(tensor.shape), strides_of(tensor), list(block_shape), layout, padding)
