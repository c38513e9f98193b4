"""One way to run an example: a kernel with its types, arguments and grid, and what NumPy says should come out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """`arguments(rng)` draws the inputs, `expected(inputs)` says what some of them hold afterwards."""

    name: str
    kernel: Any
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    grid: tuple[int, ...]
    arguments: Callable[[np.random.Generator], Arrays]
    expected: Callable[[Arrays], Arrays]
    atol: float = 1e-5
    divisible: tuple[str, ...] = ()
    memory: Callable[[Arrays], list[np.ndarray]] = field(default=lambda arrays: [])

    @property
    def types(self) -> dict[str, str]:
        """The signature with the compile-time parameters in it."""
        return {**self.signature, **dict.fromkeys(self.constexprs, "constexpr")}

    @property
    def attrs(self) -> dict[tuple[int, ...], list[list[Any]]]:
        """The arguments that are multiples of 16 (or 16-byte aligned)."""
        names = self.kernel.arg_names
        return {(names.index(name),): [["tt.divisibility", 16]] for name in self.divisible}
