"""A small corpus of this repository's own kernels: `python -m benchmarks.corpus_sample FOLDER` writes it.

It needs no torch and no library, so tests use it, and it shows what a recorded corpus looks like.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks import gpu_kernels
from benchmarks.corpus import Launch, Parameter, Storage, Tensor, Writer
from benchmarks.kernel_source import module_text


def parameters(kernel: Any) -> list[Parameter]:
    """Return the declarations of a kernel's parameters."""
    return [
        Parameter(one.name, one.is_constexpr, not one.do_not_specialize, not one.do_not_specialize_on_alignment,
                  one.annotation_type or "")
        for one in kernel.params
    ]  # fmt: skip


def tensors(dtype: str, *shapes: tuple[int, int]) -> tuple[list[Storage], list[Tensor]]:
    """Return contiguous matrices of normal numbers, each with its storage."""
    storages = [Storage(dtype, rows * columns, ["normal", 1.0]) for rows, columns in shapes]
    return storages, [Tensor(index, dtype, list(shape), [shape[1], 1]) for index, shape in enumerate(shapes)]


def launches(writer: Writer, rows: int = 64) -> list[Launch]:
    """Return the launches of the sample; `rows` scales their sizes."""

    def launch(name: str, dtype: str, shapes: list[tuple[int, int]], rest: list[Any], grid: list[int],
               **options: int) -> Launch:  # fmt: skip
        kernel = getattr(gpu_kernels, name)
        text, names = module_text(kernel)
        storages, given = tensors(dtype, *shapes)
        declared = parameters(kernel)
        defaults = [one.default for one in kernel.params[len(given) + len(rest) :]]
        values = dict(zip((one.name for one in declared), [*given, *rest, *defaults], strict=True))
        module = writer.add_module(name, text)
        return Launch("sample", name, module, names[id(kernel)], declared, values, storages, grid, options)

    matrix, n = (rows, 1000), rows * 1000
    return [
        launch("add", "fp32", [matrix] * 3, [n, 1024], [(n + 1023) // 1024]),
        launch("softmax", "bf16", [matrix] * 2, [1000, 1024], [rows]),
        launch("layernorm", "bf16", [matrix, matrix, (1, 1000), (1, 1000)], [1000, 1e-5, 1024], [rows], num_warps=8),
        launch("matmul", "fp16", [(rows, rows)] * 3, [rows] * 6 + [32, 32, 32, 8], [(rows // 32) ** 2], num_stages=3),
    ]


def write(folder: str | Path, rows: int = 64) -> None:
    writer = Writer(folder)
    for launch in launches(writer, rows):
        writer.add(launch)
    writer.finish()


if __name__ == "__main__":
    write(sys.argv[1])
