"""A small network, trained by kernels of ours that promise the same bits: after any number of steps all weights have
them.

>>> train(lambda kernel, args: run(kernel, args), steps=300)["w1"]

Two layers, tanh between them, softmax and cross-entropy behind: forward, backward, and a step down the gradient.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tilework.language.extra import libdevice

BATCH, INPUTS, HIDDEN, CLASSES, BATCHES = 32, 16, 32, 16, 8
RATE = 0.3
SHAPES = {"w1": (INPUTS, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}
Arrays = dict[str, Any]
Run = Callable[[Any, Arrays], None]


@tilework.jit
def tile(p: Any, M: tl.constexpr, N: tl.constexpr) -> Any:
    return p + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@tilework.jit(reproducible=True)
def forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, h: Any, p: Any, labels: Any, loss: Any, first: Any) -> None:
    rows, classes = tl.arange(0, 32), tl.arange(0, 16)
    inputs = tl.load(tile(x + first * 16, 32, 16))
    hidden = libdevice.tanh(tl.dot(inputs, tl.load(tile(w1, 16, 32))) + tl.load(b1 + tl.arange(0, 32))[None, :])
    scores = tl.dot(hidden, tl.load(tile(w2, 32, 16))) + tl.load(b2 + classes)[None, :]
    scores -= tl.max(scores, axis=1)[:, None]
    shares = tl.exp(scores)
    sums = tl.sum(shares, axis=1)
    wanted = classes[None, :] == tl.load(labels + first + rows)[:, None]
    tl.store(tile(h, 32, 32), hidden)
    tl.store(tile(p, 32, 16), shares / sums[:, None])
    tl.store(loss, tl.sum(tl.log(sums) - tl.sum(tl.where(wanted, scores, 0.0), axis=1)) / 32)


@tilework.jit(reproducible=True)
def backward(x: Any, h: Any, p: Any, labels: Any, w2: Any, g1: Any, g2: Any, g3: Any, g4: Any, first: Any) -> None:
    rows, classes = tl.arange(0, 32), tl.arange(0, 16)
    hidden = tl.load(tile(h, 32, 32))
    wanted = classes[None, :] == tl.load(labels + first + rows)[:, None]
    errors = (tl.load(tile(p, 32, 16)) - wanted.to(tl.float32)) / 32
    tl.store(tile(g3, 32, 16), tl.dot(tl.trans(hidden), errors))
    tl.store(g4 + classes, tl.sum(errors, axis=0))
    behind = tl.dot(errors, tl.trans(tl.load(tile(w2, 32, 16)))) * (1 - hidden * hidden)
    tl.store(tile(g1, 16, 32), tl.dot(tl.trans(tl.load(tile(x + first * 16, 32, 16))), behind))
    tl.store(g2 + tl.arange(0, 32), tl.sum(behind, axis=0))


@tilework.jit(reproducible=True)
def descend(w1: Any, b1: Any, w2: Any, b2: Any, g1: Any, g2: Any, g3: Any, g4: Any, rate: Any) -> None:
    many, some, few = tl.arange(0, 512), tl.arange(0, 32), tl.arange(0, 16)
    tl.store(w1 + many, tl.load(w1 + many) - rate * tl.load(g1 + many))
    tl.store(b1 + some, tl.load(b1 + some) - rate * tl.load(g2 + some))
    tl.store(w2 + many, tl.load(w2 + many) - rate * tl.load(g3 + many))
    tl.store(b2 + few, tl.load(b2 + few) - rate * tl.load(g4 + few))


def fresh() -> Arrays:
    """Data, weights and room for what is computed, the same at every call; the classes can be learned."""
    random = np.random.default_rng(3)
    x = random.standard_normal((BATCHES * BATCH, INPUTS)).astype(np.float32)
    labels = np.argmax(x @ random.standard_normal((INPUTS, CLASSES)), axis=1).astype(np.int32)
    weights = {name: (0.3 * random.standard_normal(shape)).astype(np.float32) for name, shape in SHAPES.items()}
    gradients = {f"g{index}": np.zeros(shape, np.float32) for index, shape in enumerate(SHAPES.values(), 1)}
    room = {"h": np.zeros((BATCH, HIDDEN), np.float32), "p": np.zeros((BATCH, CLASSES), np.float32)}
    return {"x": x, "labels": labels, **weights, **gradients, **room, "loss": np.zeros(1, np.float32)}


def train(run: Run, steps: int, arrays: Arrays) -> None:
    """So many steps; `run` launches one program of a kernel with arguments by their names."""
    for step in range(steps):
        arrays |= {"first": step % BATCHES * BATCH, "rate": RATE}
        for kernel in (forward, backward, descend):
            run(kernel, {name: arrays[name] for name in kernel.arg_names})
