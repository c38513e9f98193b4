"""One rank of `fleet`: compile some kernels, in the order in which all ranks do, and say how many it had to compile.

    FLEET_PACKAGE=tilework python -m benchmarks.fleet_process cuda:90

Reads a line before it begins, so that all ranks begin together. Run as a program: it imports one package only.
"""

import json
import os
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

PACKAGE = os.environ.get("FLEET_PACKAGE", "tilework")
package: Any = import_module(PACKAGE)
if TYPE_CHECKING:
    import tilework.language as tl
else:
    tl = import_module(f"{PACKAGE}.language")
compiler: Any = import_module(f"{PACKAGE}.compiler")
knobs: Any = import_module(f"{PACKAGE}.knobs")
GPUTarget: Any = import_module(f"{PACKAGE}.{'compiler' if PACKAGE == 'tilework' else 'backends.compiler'}").GPUTarget


@package.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@package.jit
def gelu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v / (1 + tl.exp(-1.702 * v)) * tl.load(y + i, mask=i < n), mask=i < n)


@package.jit
def softmax(x, y, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@package.jit
def layer_norm(x, y, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(i < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(out + row * n + i, d * scale * tl.load(y + i, mask=i < n), mask=i < n)


@package.jit
def matmul(x, y, out, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, 32)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, 32):
        a = tl.load(x + rows[:, None] * n + (start + k)[None, :])
        b = tl.load(y + (start + k)[:, None] * n + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total)


@package.jit
def attention(x, y, out, n, BLOCK: tl.constexpr):
    rows, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 64)
    q = tl.load(x + rows[:, None] * 64 + d[None, :])
    best, norm = tl.full((BLOCK,), -float("inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK, 64), tl.float32)
    for start in range(0, n, BLOCK):
        at = (start + tl.arange(0, BLOCK))[:, None] * 64 + d[None, :]
        keys = tl.load(y + at)
        scores = tl.dot(q, tl.trans(keys))
        new = tl.maximum(best, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        fade = tl.exp(best - new)
        norm = norm * fade + tl.sum(p, axis=1)
        total = tl.dot(p, keys, total * fade[:, None])
        best = new
    tl.store(out + rows[:, None] * 64 + d[None, :], total / norm[:, None])


KERNELS = {add: (256, 1024), gelu: (256, 1024), softmax: (1024, 4096), layer_norm: (1024, 4096), matmul: (32, 64)}
KERNELS |= {attention: (32, 64)}


def main() -> None:
    target, compiled = sys.argv[1], []
    backend, arch = target.split(":")
    chosen = GPUTarget(backend, int(arch) if arch.isdecimal() else arch, 32 if backend == "cuda" else 1)
    knobs.compilation.listener = lambda **event: compiled.append(1) if not event["cache_hit"] else None
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    for kernel, blocks in KERNELS.items():
        for block in blocks:
            types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
            attributes = {(index,): [["tt.divisibility", 16]] for index in range(4)}
            package.compile(compiler.ASTSource(kernel, types, {"BLOCK": block}, attributes), target=chosen)
    print(json.dumps({"compiles": len(compiled), "seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
