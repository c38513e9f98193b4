"""Launches from a bundle on a real GPU, in processes that have no compiler: no xDSL, no llvmlite, no Triton, no torch,
no ptxas.

    python -m tests.device.check_bundle [--processes 5]

The bundle is recorded and compiled on the CPU side, for the GPU and the CPU; the results of every kernel are compared
with NumPy's in the process that is served. Prints how long loading a kernel and the first launch took
(`benchmarks/bundle_start.py` has the columns). Then a kernel with copies through descriptors (TMA) and a matrix product
are served, and an unrecorded launch is refused.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bundle_start import COLUMNS, HEADER, Workshop
from tests.device import table
from tests.device.table import check, expect

PROCESSES = [5]
MORE = """
from examples.service import kernels as served
from tilework.runtime.devices.active_driver import driver
rng = numpy.random.default_rng(0)
a = rng.standard_normal((256, 512), dtype="f4").astype("f2")
b = rng.standard_normal((512, 128), dtype="f4").astype("f2")
of = driver.active.array_cls.of if DEVICE != "cpu" else (lambda array: array)
back = (lambda array: array.numpy()) if DEVICE != "cpu" else (lambda array: array)
if BUNDLE:
    tilework.load(BUNDLE)
out = of(numpy.zeros((256, 128), "f4"))
served.matmul_tiles[(8, 4)](out, of(a), of(b), 256, 128, 512, TILE=32, DEPTH=64)
assert numpy.allclose(back(out), a.astype("f4") @ b.astype("f4"), atol=1e-2)
if BUNDLE:
    try:
        served.matmul_tiles[(8, 4)](out, of(a), of(b), 256, 128, 511, TILE=32, DEPTH=64)
    except tilework.errors.NotRecorded as error:
        assert "`k` = 511" in str(error), error
    else:
        raise AssertionError("it was compiled")
print("{}")
"""


@check
def kernels_are_served_on_the_gpu() -> str:
    return table_of("cuda")


@check
def and_on_the_cpu_beside_it() -> str:
    return table_of("cpu")


def table_of(device: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        shop = Workshop(Path(name), device, 20)
        shop.make_bundle([target(), "cpu"])
        runs = [shop.served(device, f"empty{number}") for number in range(PROCESSES[0])]
    for run in runs:
        expect((run["heavy"], run["hits"], run["compiles"], run["native"]), ([], 20, 0, True))
    cells = (f"{column} {min(run['times'][column][0] for run in runs) * 1e3:.2f} ms" for column in COLUMNS)
    return ", ".join(cells)


@check
def a_matrix_product_is_served_and_another_shape_refused() -> str:
    with tempfile.TemporaryDirectory() as name:
        shop = Workshop(Path(name), "cuda", 1)
        shop.script.write_text(HEADER + MORE)
        shop.make_bundle([target()])
        shop.served("cuda", "empty")
    return "a product on tensor cores, and the words of TILEWORK_NO_JIT"


def target() -> str:
    """Of the GPU that is here, asked in a process of its own."""
    text = (
        "from tilework.runtime.devices.active_driver import driver; t = driver.active.get_current_target(); "
        "print(f'{t.backend}:{t.arch}')"
    )
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5)
    PROCESSES[0] = parser.parse_args().processes
    sys.exit(table.run([], "bundles"))
