"""Write a small project to start from: a kernel, a test against NumPy, a benchmark and a notebook.

    tilework new saxpy               the folder saxpy/ with all of them
    tilework new work/saxpy          the same below work/

The kernel computes `factor * x + y`; change it into your own. The files need only tilework, NumPy and, for the test,
pytest. The folder, the module and a function in it get this name, so it must be a Python identifier that is not in use.
An existing folder is not changed.
"""

import argparse
import ast
import json
import keyword
import re
import sys
from pathlib import Path

from tilework.errors import UsageError

# a module of the project with such a name would hide one that NumPy or the project itself imports
MODULES = sys.stdlib_module_names | {"benchmark", "numpy", "pytest", "tilework", "torch", "triton"}

KERNEL = '''"""`NAME(factor, x, y)` is ``factor * x + y``, computed by a kernel."""

from typing import Any

import tilework
import tilework.language as tl


@tilework.jit
def NAME_kernel(x_ptr, y_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    """Each program computes `BLOCK` consecutive elements; the mask leaves out those past the end."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, factor * x + y, mask=mask)


def NAME(factor: float, x: Any, y: Any, out: Any, block: int = 4096) -> Any:
    """Write ``factor * x + y`` to `out`, and return it; contiguous arrays of NumPy or tensors of one size."""
    n = out.shape[0]
    NAME_kernel[(tilework.cdiv(n, block),)](x, y, out, n, factor, BLOCK=block)
    return out
'''

TEST = '''"""`NAME` beside NumPy: sizes that fill the blocks, and sizes that do not."""

import numpy as np
import pytest
from NAME import NAME

from tilework.testing import assert_close


@pytest.mark.parametrize("n", [1, 255, 256, 257, 10_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_what_numpy_computes(n, dtype):
    x, y = np.random.default_rng(n).standard_normal((2, n)).astype(dtype)
    out = NAME(2.5, x, y, np.full_like(x, np.nan), block=256)
    assert_close(out, dtype(2.5) * x + y, rtol=1e-6, atol=1e-6)
'''

BENCHMARK = '''"""`NAME` beside NumPy, by size:  python benchmark.py [elements ...]"""

import sys

import numpy as np
from NAME import NAME

from tilework.testing import do_bench


def gigabytes_per_second(n):
    """The kernel and NumPy; each element of float32 is 12 bytes: two are read, one is written."""
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    out = np.empty_like(x)
    calls = lambda: NAME(2.5, x, y, out), lambda: np.add(np.multiply(x, np.float32(2.5), out=out), y, out=out)
    return [12 * n / 1e6 / do_bench(call, return_mode="min") for call in calls]


print(f"{'elements':>10}{'NAME':>16}{'NumPy':>12}   GB/s")
for n in [int(size) for size in sys.argv[1:]] or [2**power for power in range(12, 25, 2)]:
    ours, numpy = gigabytes_per_second(n)
    print(f"{n:10}{ours:16.2f}{numpy:12.2f}")
'''

README = """# NAME

| file | what it is |
|---|---|
| `NAME.py` | the kernel, and a function that launches it |
| `test_NAME.py` | its test: `python -m pytest` (`pip install pytest`) |
| `benchmark.py` | how fast it is beside NumPy: `python benchmark.py` |
| `NAME.ipynb` | the same in a notebook: `jupyter notebook NAME.ipynb` (`pip install notebook`) |

```sh
TRITON_SANITIZE=1 python -m pytest    # checks every access of the kernel
tilework profile benchmark.py         # where the time goes, and how far from this machine's limits
tilework explain --why slow benchmark.py
tilework explore benchmark.py         # from the source to machine code, in a browser
```

Arrays of NumPy are computed on the CPU, torch tensors where they are: `x.cuda()` runs the same kernel on a GPU.
"""

# (text, code) of each cell
CELLS = (
    (
        "# NAME\n\nThe kernel of `NAME.py`. Change it there, and restart the notebook, or copy it into a cell.",
        "import numpy as np\nfrom NAME import NAME, NAME_kernel\n\nimport tilework\n\nNAME_kernel",
    ),
    (
        "## Does it compute the right thing?",
        "x, y = np.random.default_rng(0).standard_normal((2, 10_000), dtype=np.float32)\n"
        "out = NAME(2.5, x, y, np.empty_like(x))\n"
        "assert np.allclose(out, 2.5 * x + y, rtol=1e-5, atol=1e-5)\nout[:5]",
    ),
    (
        "## What is it compiled to?\n\nA launch returns the compiled kernel; the stages unfold. "
        "`NAME_kernel.explore()` writes a page that links them line by line.",
        "NAME_kernel[(tilework.cdiv(x.size, 4096),)](x, y, out, x.size, 2.5, BLOCK=4096)",
    ),
    (
        "## How fast is it?\n\n`benchmark.py` measures many sizes.",
        "from tilework.testing import do_bench\n\n"
        "ours = do_bench(lambda: NAME(2.5, x, y, out), warmup=5, rep=20)\n"
        "numpy = do_bench(lambda: np.float32(2.5) * x + y, warmup=5, rep=20)\n"
        'print(f"NAME {ours:.4f} ms, NumPy {numpy:.4f} ms")',
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework new`."""
    parser.add_argument("name", metavar="NAME", help="the name of the folder, the kernel and its module")


def run(args: argparse.Namespace) -> int:
    """Execute the command and return the exit code."""
    folder = Path(args.name)
    check_name(folder.name)
    if folder.exists():
        raise UsageError(f"{folder} is there already; nothing was written")
    try:
        folder.mkdir(parents=True)
        for path, content in files_of(folder.name).items():
            (folder / path).write_text(content, encoding="utf-8")
            print(folder / path)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from None
    print(f"next: cd {folder} && pip install pytest && python -m pytest && python benchmark.py")
    return 0


def check_name(name: str) -> None:
    """Raise a UsageError if a module and a function cannot have this name."""
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        meant = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
        if not meant.isidentifier() or keyword.iskeyword(meant):
            meant = f"my_{meant or 'kernel'}"
        raise UsageError(f"{name!r} cannot be the name of a kernel: try {meant!r}")
    if name in MODULES:
        raise UsageError(f"{name!r} is the name of a module that programs import: try 'my_{name}'")
    if name in names_used():
        raise UsageError(f"{name!r} is a name that the files of the project use: try 'my_{name}'")


def names_used() -> set[str]:
    """Return the variables of the project's programs, which its function must not hide."""
    nodes = [
        node for text in (KERNEL, TEST, BENCHMARK, *(code for _, code in CELLS)) for node in ast.walk(ast.parse(text))
    ]
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - {"NAME", "NAME_kernel"}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def files_of(name: str) -> dict[str, str]:
    """Return the text of each file of a project."""
    texts = {
        f"{name}.py": KERNEL,
        f"test_{name}.py": TEST,
        "benchmark.py": BENCHMARK,
        f"{name}.ipynb": notebook(),
        "README.md": README,
    }
    return {path: text.replace("NAME", name) for path, text in texts.items()}


def notebook() -> str:
    """Return the notebook, in version 4 of Jupyter's format."""
    cells: list[dict[str, object]] = []
    for index, (text, code) in enumerate(CELLS):
        cells.append({"cell_type": "markdown", "id": f"text-{index}", "metadata": {}, "source": lines_of(text)})
        cell = {"cell_type": "code", "execution_count": None, "id": f"code-{index}", "metadata": {}, "outputs": []}
        cells.append({**cell, "source": lines_of(code)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def lines_of(text: str) -> list[str]:
    return text.splitlines(keepends=True)
