"""# Vector add

The smallest kernel that has everything: programs, tiles, offsets, masks, a launch over a grid, and a measurement.

    python 01_vector_add.py

tilework and NumPy are all it needs. `--quick` does the same with fewer sizes.
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, do_bench, perf_report

QUICK = "--quick" in sys.argv


# %%
# ## The kernel
#
# A kernel is a Python function that is compiled when it is first launched. It runs many times, as many *programs*,
# and each program works on a *tile*: here a block of `BLOCK` consecutive elements. `tl.program_id(0)` says which
# program this is, and `tl.arange(0, BLOCK)` is a whole tile of integers, so `offsets` holds the offsets of all
# elements that this program adds.
#
# The tile of the last program may extend past the end of the arrays. A `mask` marks the elements that exist: a masked
# load does not read the others, and a masked store does not write them.


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# %%
# ## The launch
#
# `add[grid](...)` launches the kernel. Arrays become pointers to their first element, numbers are passed as scalars,
# and parameters annotated with `tl.constexpr` are compile-time constants: another `BLOCK` is another compiled kernel.
# The grid is the number of programs; it may be a function of the constants.


def add_arrays(x: np.ndarray, y: np.ndarray, block: int = 4096) -> np.ndarray:
    out = np.empty_like(x)
    add[lambda meta: (tilework.cdiv(x.size, meta["BLOCK"]),)](
        x, y, out, x.size, BLOCK=block
    )
    return out


rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, 98_432), dtype="f4")
assert np.array_equal(add_arrays(x, y), x + y)
print("98432 sums are those of NumPy")

# %%
# ## What a launch returns
#
# A launch returns the compiled kernel, with every stage of compilation in `asm`. Here is the heart of the first
# stage, TTIR: the same five lines, with the types and shapes that the compiler has found.

compiled = add[(25,)](x, y, np.empty_like(x), x.size, BLOCK=4096)
ttir = (
    compiled.asm["ttir"] if compiled is not None else ""
)  # the interpreter compiles nothing
for line in ttir.splitlines():
    if "tt.load" in line or "tt.store" in line or "arith.addf" in line:
        print(line.split(" loc(")[0].strip())

# %%
# ## How fast is it?
#
# An addition reads two arrays and writes one, 12 bytes for each element of float32, and does almost nothing else:
# what counts is how fast memory is. `do_bench` returns the milliseconds of a call and empties the caches before each
# call, so these are gigabytes per second from memory. `perf_report` calls a function for every size and every line of
# a table. NumPy adds into an existing array, as the kernel does, but on one core. The kernel uses all cores, which
# pays as soon as each has enough to do; for a few thousand elements the launch is most of the time.


@perf_report(
    Benchmark(
        x_names=["elements"],
        x_vals=[2**power for power in range(12, 19 if QUICK else 25, 2)],
        line_arg="library",
        line_vals=["tilework", "NumPy"],
        line_names=["tilework", "NumPy"],
        plot_name="Vector add, float32",
        xlabel="elements",
        ylabel="GB/s (more is better)",
        x_log=True,
        args={},
    )
)
def gigabytes_per_second(elements: int, library: str) -> float:
    x, y = rng.standard_normal((2, elements), dtype="f4")
    out = np.empty_like(x)
    grid = (tilework.cdiv(elements, 4096),)
    calls = {
        "tilework": lambda: add[grid](x, y, out, elements, BLOCK=4096),
        "NumPy": lambda: np.add(x, y, out=out),
    }
    ms = do_bench(calls[library], warmup=5, rep=20, return_mode="min")
    return 12 * elements / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## On a GPU
#
# A launch runs where its arguments are. NumPy's arrays are in the memory of the host; a tensor of torch that was made
# with `device="cuda"` is on the GPU, and the same kernel, unchanged, runs there. `do_bench` measures with the GPU's
# own clock. Without a GPU this cell only says so.


@perf_report(
    Benchmark(
        x_names=["elements"],
        x_vals=[2**power for power in range(12, 29, 2)],
        line_arg="library",
        line_vals=["tilework", "torch"],
        line_names=["tilework", "torch"],
        plot_name="Vector add on the GPU, float32",
        xlabel="elements",
        ylabel="GB/s (more is better)",
        x_log=True,
        args={},
    )
)
def gpu_gigabytes_per_second(elements: int, library: str, device: str = "cuda") -> float:
    import torch

    x, y = torch.randn((2, elements), device=device)
    out = torch.empty_like(x)
    grid = (tilework.cdiv(elements, 4096),)
    calls = {
        "tilework": lambda: add[grid](x, y, out, elements, BLOCK=4096),
        "torch": lambda: torch.add(x, y, out=out),
    }
    calls[library]()
    assert torch.equal(out, x + y)
    ms = do_bench(calls[library], warmup=5, rep=20, return_mode="median")
    return 12 * elements / ms / 1e6


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Choose another `BLOCK`: `add_arrays(x, y, block=256)` gives the same result, with sixteen times as many programs.
# - Leave out the mask of the store, and run with `TRITON_SANITIZE=1`: the line, the element and the array are named.
# - `TRITON_INTERPRET=1` runs the kernel as plain Python: `print(offsets)` and `breakpoint()` work in it.
#
# Next: [fused softmax](02_fused_softmax.py), where a tile is a row and is kept in registers.
