"""A host tensor descriptor that carries the shared-memory layout of its blocks, as Gluon kernels take them.

    TensorDescriptor.from_tensor(a, [64, 64], NVMMASharedLayout(128, 16))

Tilework does not compile Gluon; the type exists for programs that describe tensors to both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilework.tools.tensor_descriptor import check_descriptor, strides_of
from tilework.triton.experimental.gluon.language._layouts import NVMMASharedLayout

__all__ = ["TensorDescriptor"]


@dataclass
class TensorDescriptor:
    """`block_shape` blocks of a tensor, laid out in shared memory as `layout` says; no relative of the plain descriptor."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    layout: NVMMASharedLayout
    padding: str = "zero"

    def __post_init__(self) -> None:
        assert isinstance(self.layout, NVMMASharedLayout), f"layout must be an NVMMASharedLayout, got {self.layout!r}"
        check_descriptor(self)

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], layout: NVMMASharedLayout, padding: str = "zero"
    ) -> "TensorDescriptor":
        """The descriptor of a whole NumPy array or torch tensor."""
        return TensorDescriptor(tensor, list(tensor.shape), strides_of(tensor), list(block_shape), layout, padding)
