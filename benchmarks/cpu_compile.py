"""The part of `make bench-compile` about the CPU: milliseconds of each stage for a launch that finds nothing in the
cache.

A stage's time includes writing its product as text. `x4` is the total with a tile of four times as many elements,
relative to the total: code does not grow with the tile.
"""

import os
import tempfile
from typing import Any, NamedTuple

import tilework
import tilework.language as tl
from benchmarks import cpu_kernels
from examples import add, attention, matmul, softmax
from examples.case import Case
from tilework import knobs
from tilework.compiler import ASTSource, compile
from tilework.targets.base import GPUTarget

ROUNDS = 7


class Row(NamedTuple):
    """A kernel at two tile sizes; milliseconds that the first may take."""

    name: str
    kernel: Any
    types: dict[str, str]
    attrs: dict[tuple[int, ...], Any]
    tile: dict[str, int]
    larger: dict[str, int]
    budget: float | None = None

    def source(self, tile: dict[str, int]) -> ASTSource:
        return ASTSource(self.kernel, {**self.types, **dict.fromkeys(tile, "constexpr")}, tile, self.attrs)


def example(case: Case, tile: dict[str, int], larger: dict[str, int], budget: float) -> Row:
    constants = dict(case.constexprs)
    return Row(case.name, case.kernel, case.types, case.attrs, {**constants, **tile}, {**constants, **larger}, budget)


def plain(kernel: Any, types: str, tile: dict[str, int], larger: dict[str, int]) -> Row:
    """A kernel of `make bench-cpu`; `types` are those of its parameters, all of them multiples of 16."""
    function = getattr(kernel, "fn", kernel) if isinstance(kernel, tilework.Autotuner) else kernel
    names = function.arg_names[: len(types.split())]
    attrs = {(index,): [["tt.divisibility", 16]] for index, type in enumerate(types.split()) if type != "fp32"}
    return Row(function.__name__, function, dict(zip(names, types.split(), strict=True)), attrs, tile, larger)


@tilework.jit
def histogram(x_ptr, out_ptr, BLOCK: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)), 256)
    tl.store(out_ptr + tl.arange(0, 256), counts)


ROWS = [
    example(add.CASES[0], {"BLOCK": 1024}, {"BLOCK": 4096}, 60.0),
    example(softmax.CASES[0], {"BLOCK": 1024}, {"BLOCK": 4096}, 120.0),
    example(matmul.CASES[0], {"BM": 64, "BN": 64, "BK": 64}, {"BM": 128, "BN": 128, "BK": 64}, 350.0),
    example(attention.CASES[0], {"BM": 64, "BN": 64, "D": 64}, {"BM": 128, "BN": 128, "D": 64}, 500.0),
    plain(
        cpu_kernels.layernorm,
        "*fp32 *fp32 *fp32 *fp32 i32 fp32",
        {"ROWS": 4, "BLOCK": 1024},
        {"ROWS": 4, "BLOCK": 4096},
    ),
    plain(cpu_kernels.cumsum, "*fp32 *fp32 i32", {"ROWS": 8, "BLOCK": 1024}, {"ROWS": 8, "BLOCK": 4096}),
    plain(cpu_kernels.transpose, "*fp32 *fp32 i32 i32", {"BM": 32, "BN": 32}, {"BM": 64, "BN": 64}),
    plain(histogram, "*i32 *i32", {"BLOCK": 1024}, {"BLOCK": 4096}),
    plain(cpu_kernels.sort_rows, "*fp32 *fp32 i32", {"ROWS": 1, "COLS": 1024}, {"ROWS": 4, "COLS": 1024}),
    plain(cpu_kernels.sort_rows, "*fp32 *fp32 i32", {"ROWS": 1, "COLS": 1024}, {"ROWS": 1, "COLS": 4096}),
]


def stage_times(*sources: ASTSource) -> list[dict[str, float]]:
    """Milliseconds of the frontend, each stage, and storing the entry, the least of some rounds. The sources take
    turns, so that whatever else the machine does slows down all of them."""
    found: list[dict[str, list[float]]] = [{} for _ in sources]
    current = 0

    def listen(*, times: knobs.CompileTimes, **event: Any) -> None:
        for name, time in (
            ("frontend", times.ir_initialization),
            *times.lowering_stages,
            ("store", times.store_results),
        ):
            found[current].setdefault(name, []).append(time / 1e3)

    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        knobs.compilation.listener = listen
        for _ in range(ROUNDS):
            for current, source in enumerate(sources):  # noqa: B007
                compile(source, GPUTarget("cpu", "host", 1))
    return [{name: min(times) for name, times in each.items()} for each in found]


def sizes(tile: dict[str, int], larger: dict[str, int]) -> str:
    """``1024 to 4096``: the sizes that change."""
    changed = [name for name in tile if tile[name] != larger[name]]
    return " to ".join("x".join(str(chosen[name]) for name in changed) for chosen in (tile, larger))


def main() -> None:
    os.environ.setdefault("TILEWORK_DEVICE", "native")
    columns = ("frontend", "ttir", "ttcir", "llir", "obj", "store")
    print(f"{'CPU':24}{''.join(f'{name:>10}' for name in columns)}{'total':>10}{'budget':>10}{'x4':>8}")
    with knobs.cache.scope(), tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        for row in ROWS:
            times, larger = stage_times(row.source(row.tile), row.source(row.larger))
            total, grown = sum(times.values()), sum(larger.values())
            cells = "".join(f"{times.get(name, 0.0):7.1f} ms" for name in columns)
            budget = f"{row.budget:7.0f} ms" if row.budget else f"{'':10}"
            print(
                f"{row.name:24}{cells}{total:7.1f} ms{budget}{grown / total - 1:+8.0%}   {sizes(row.tile, row.larger)}"
            )


if __name__ == "__main__":
    main()
