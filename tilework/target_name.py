"""The name of a target, as users and drivers write it. What is known about it is in `target.py`, which launches do not need."""

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, init=False)
class GPUTarget:
    """The name of a target, as users and drivers write it: ``GPUTarget("cuda", 90, 32)``.

    Example:
        from tilework.compiler import GPUTarget

        assert GPUTarget.parse("cuda:90") == GPUTarget("cuda", 90, 32)
        assert str(GPUTarget("hip", "gfx942", 64)) == "hip:gfx942"
    """

    backend: str
    arch: int | str
    warp_size: int

    # written out, because every first launch needs them: making them from text takes a fifth of a millisecond each

    def __init__(self, backend: str, arch: int | str, warp_size: int) -> None:
        self.__dict__.update(backend=backend, arch=arch, warp_size=warp_size)

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.backend, self.arch, self.warp_size))

    @classmethod
    def parse(cls, text: str) -> "GPUTarget":
        """``cuda:90`` -> GPUTarget("cuda", 90, 32); ``cpu`` -> GPUTarget("cpu", "host", 1)."""
        return import_module("tilework.target").Target.parse(text).name  # by its name: it stands above

    def __str__(self) -> str:
        return self.backend if self.arch == "host" else f"{self.backend}:{self.arch}"
