"""`triton.tools.LinearLayout`: linear layouts (`tilework/layouts/linear.py`) with the interface and the text of
Triton's class.

>>> layout = LinearLayout.identity_1d(4, "lane", "dim0") * LinearLayout.identity_1d(2, "warp", "dim0")
>>> layout.bases
[('lane', [[1], [2]]), ('warp', [[4]])]
>>> layout.apply({"lane": 3, "warp": 1})
{'dim0': 7}

What the operations want of their operands (sizes that are powers of two, all ins given, a surjective layout to invert
...) is a ValueError where it is not so.
"""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from tilework.layouts import linear
from tilework.layouts.linear import LayoutError
from tilework.layouts.picture import hardware_view, tensor_view

Bases = Sequence[tuple[str, Sequence[Sequence[int]]]]


class LinearLayout:
    """See the module docstring. `LinearLayout()` is the empty layout."""

    __slots__ = ("layout",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]  # as Triton's class

    def __init__(self) -> None:
        self.layout = linear.LinearLayout({}, {})

    @classmethod
    def of(cls, layout: linear.LinearLayout) -> "LinearLayout":
        """Wrap a layout of tilework."""
        self = cls()
        self.layout = layout
        return self

    @staticmethod
    def identity_1d(size: int, inDim: str, outDim: str) -> "LinearLayout":
        """Input i maps to coordinate i."""
        return LinearLayout.of(linear.LinearLayout.identity(size, inDim, outDim))

    @staticmethod
    def strided_1d(size: int, stride: int, inDim: str, outDim: str) -> "LinearLayout":
        """Input i maps to coordinate i * stride."""
        bases = [(stride << bit,) for bit in range(linear.log2(size))]
        return LinearLayout.of(linear.LinearLayout({inDim: bases}, {outDim: size << linear.log2(stride)}))

    @staticmethod
    def zeros_1d(size: int, inDim: str, outDim: str, outDimSize: int = 1) -> "LinearLayout":
        """Return the layout that maps every input to coordinate 0."""
        return LinearLayout.of(linear.LinearLayout.zeros(size, inDim, outDim, outDimSize))

    @staticmethod
    def from_bases(
        bases: Bases,
        out_dim_names: Sequence[str],
        out_dim_sizes: Sequence[int] | None = None,
        require_surjective: bool = True,
    ) -> "LinearLayout":
        """Return the layout with these images of powers of two; without sizes, each out gets the smallest that holds
        all."""
        if isinstance(bases, Mapping):
            raise TypeError("from_bases(): bases is a sequence of (in dim, vectors), not a mapping")
        if out_dim_sizes is None:
            if not require_surjective:
                raise ValueError("out_dim_sizes must be provided when require_surjective is false")
            return LinearLayout.of(linear.LinearLayout(bases, tuple(out_dim_names)))
        if len(out_dim_names) != len(out_dim_sizes):
            raise ValueError("out_dim_names and out_dim_sizes must have the same length")
        found = linear.LinearLayout(bases, dict(zip(out_dim_names, out_dim_sizes, strict=True)))
        if require_surjective and not found.is_surjective:
            raise LayoutError("a layout that leaves coordinates out needs require_surjective=False")
        return LinearLayout.of(found)

    @property
    def bases(self) -> list[tuple[str, list[list[int]]]]:
        """The vector of every basis, by in."""
        return [(name, [list(vector) for vector in vectors]) for name, vectors in self.layout.bases]

    @property
    def out_dims(self) -> list[tuple[str, int]]:
        """Name and size of every out."""
        return list(self.layout.outs)

    @property
    def num_in_dims(self) -> int:
        return len(self.layout.columns)

    @property
    def num_out_dims(self) -> int:
        return len(self.layout.outs)

    def get_in_dim_names(self) -> list[str]:
        return list(self.layout.in_names)

    def get_out_dim_names(self) -> list[str]:
        return list(self.layout.out_names)

    def is_surjective(self) -> bool:
        return self.layout.is_surjective

    def is_injective(self) -> bool:
        return self.layout.is_injective

    def is_invertible(self) -> bool:
        return self.layout.is_invertible

    def compose(self, outer: "LinearLayout", /) -> "LinearLayout":
        """x goes to outer(self(x))."""
        return LinearLayout.of(self.layout.compose(outer.layout))

    def invert(self) -> "LinearLayout":
        return LinearLayout.of(self.layout.invert())

    def pseudoinvert(self) -> "LinearLayout":
        """Return the layout from coordinates to the smallest input that maps there."""
        return LinearLayout.of(self.layout.pseudoinvert())

    def invert_and_compose(self, outer: "LinearLayout", /) -> "LinearLayout":
        """Return the layout from inputs here to the inputs of `outer` with the same coordinates."""
        return LinearLayout.of(self.layout.invert_and_compose(outer.layout))

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        """Return the coordinates of an input; all input dimensions must be given."""
        if absent := [name for name in self.layout.in_names if name not in inputs]:
            raise LayoutError(f"apply wants all ins: {', '.join(absent)} not given")
        return self.layout.apply(inputs)

    def get_matrix_view(self) -> list[list[int]]:
        """The matrix over bits: a row for each bit of the coordinates, a column for each bit of the inputs."""
        columns = self.layout.flat_columns
        return [[column >> row & 1 for column in columns] for row in range(self.layout.total_out_bits)]

    def get_shared_view(self, use_hw: bool, /) -> str:
        """The picture of a layout of shared memory, with ins `offset` and `block`."""
        return (hardware_view if use_hw else tensor_view)(self.layout)

    def get_distributed_view(self, use_hw: bool, /) -> str:
        """The picture of a layout of threads, with ins `register`, `lane`, `warp` and `block`."""
        return (hardware_view if use_hw else tensor_view)(self.layout)

    def __mul__(self, other: "LinearLayout") -> "LinearLayout":
        if not isinstance(other, LinearLayout):
            self.refuse("__mul__", other)
        return LinearLayout.of(self.layout * other.layout)

    def __imul__(self, other: "LinearLayout") -> "LinearLayout":
        return self * other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearLayout):
            self.refuse("__eq__", other)
        return self.layout == other.layout

    def __ne__(self, other: object) -> bool:
        return not self == other

    def refuse(self, method: str, other: object) -> NoReturn:
        raise TypeError(f"{method}(): a LinearLayout goes with another, not with {type(other).__name__} {other!r}")

    def __repr__(self) -> str:
        return f"\n{self.layout}" if self.layout.columns or self.layout.outs else "\n(empty layout)"
