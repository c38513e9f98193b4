"""Decision trees from the sizes of a launch to a configuration.

    tree = fitted([({"M": 4096, "N": 4096}, {"big": 0.20, "small": 0.35}), ({"M": 16, "N": 4096}, {...}), ...])
    tree.answer({"M": 512, "N": 4096})         "small": for a shape without measurements
    source([Family("matmul", ...)])            the same as Python, which a person can read, change and commit
    tree_to_json(tree), tree_from_json(...)    the same as JSON, in bundles

The cost of a leaf is not the number of shapes that have a better configuration, but how much slower its own one is: the
sum over its shapes of time / best time - 1. A configuration that was not measured for a shape counts as twice as slow,
one that cannot run as ten times. A split must save more than `WORTH`, so there are few where a single configuration is
good.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any, NamedTuple

from tilework.light_dataclass import light_dataclass

DEPTH = 4
WORTH = 0.02  # of a best time, over all shapes of a node
UNKNOWN, FAILED = 1.0, 9.0  # loss of a configuration that was not measured, or that cannot run

TITLE = '"""Configurations by shape, as measured: `tilework tune --export`'  # how a module begins

Number = int | float
Shape = Mapping[str, Number]
Times = Mapping[str, float]  # milliseconds by the text of a configuration
Measured = tuple[Shape, Times]


@light_dataclass
class Leaf:
    """A leaf: the configuration for all shapes that reach it."""

    config: str
    loss: float

    def answer(self, shape: Shape) -> str:
        return self.config


@light_dataclass
class Split:
    """Shapes whose `name` is at most `limit` go left."""

    name: str
    limit: Number
    left: "Tree"
    right: "Tree"

    @property
    def loss(self) -> float:
        return self.left.loss + self.right.loss

    def answer(self, shape: Shape) -> str:
        return (self.left if shape[self.name] <= self.limit else self.right).answer(shape)


Tree = Leaf | Split


def fitted(measured: Sequence[Measured], depth: int = DEPTH) -> Tree:
    """Return the tree of some shapes (at least one), each with the time of at least one configuration that runs."""
    losses = [losses_of(times) for _, times in measured]
    return grown([shape for shape, _ in measured], losses, depth)


def losses_of(times: Times) -> dict[str, float]:
    """Return the loss of each configuration: its time relative to the best, less one."""
    best = min(times.values())
    # a user's benchmarker may return zero, or a negative value to minimise
    scale = abs(best) or min((time for time in times.values() if time > 0), default=1.0)
    return {text: (time - best) / scale if math.isfinite(time) else FAILED for text, time in times.items()}


def grown(shapes: Sequence[Shape], losses: Sequence[Mapping[str, float]], depth: int) -> Tree:
    """Return the split that saves most, or a leaf if none saves enough."""
    leaf = cheapest(losses)
    found: tuple[float, str, Number] | None = None
    for name, limit in limits(shapes) if depth else ():
        sides = [
            [one for shape, one in zip(shapes, losses, strict=True) if (shape[name] <= limit) is left]
            for left in (True, False)
        ]
        total = sum(cheapest(side).loss for side in sides)
        if found is None or total < found[0] - 1e-12:
            found = total, name, limit
    if found is None or leaf.loss <= WORTH:
        return leaf
    _, name, limit = found
    parts: list[Tree] = []
    for left in (True, False):
        chosen = [index for index, shape in enumerate(shapes) if (shape[name] <= limit) is left]
        parts.append(grown([shapes[index] for index in chosen], [losses[index] for index in chosen], depth - 1))
    split = Split(name, limit, *parts)
    return split if split.loss < leaf.loss - WORTH else leaf


def cheapest(losses: Sequence[Mapping[str, float]]) -> Leaf:
    """Return the configuration with the least loss over some shapes; of equal ones, the first by text."""
    texts = sorted({text for one in losses for text in one})
    totals = {text: sum(one.get(text, UNKNOWN) for one in losses) for text in texts}
    best = min(texts, key=lambda text: totals[text])
    return Leaf(best, totals[best])


def limits(shapes: Sequence[Shape]) -> Iterator[tuple[str, Number]]:
    """Return thresholds to split at: between two values of a size, half-way by their ratio."""
    for name in shapes[0]:
        values = sorted({shape[name] for shape in shapes})
        for low, high in pairwise(values):
            middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
            yield name, math.floor(middle) if isinstance(low, int) and isinstance(high, int) else middle


# ---- as JSON; the text of each configuration is JSON, too
#
#     {"size": "M", "limit": 512, "at_most": {"config": {"BLOCK": 32}, "loss": 0.0}, "above": {...}}


def tree_to_json(tree: Tree) -> dict[str, Any]:
    """Return a tree as JSON."""
    if isinstance(tree, Leaf):
        return {"config": json.loads(tree.config), "loss": tree.loss}
    sides = {"at_most": tree_to_json(tree.left), "above": tree_to_json(tree.right)}
    return {"size": tree.name, "limit": tree.limit, **sides}


def tree_from_json(data: Any, sizes: Sequence[str]) -> Tree:
    """The inverse of `tree_to_json` for a kernel with these sizes; a ValueError says what is wrong."""
    match data:
        case {"config": dict(config), "loss": int() | float() as loss, **rest} if not rest:
            return Leaf(json.dumps(config, sort_keys=True), loss)
        case {"size": name, "limit": int() | float() as limit, "at_most": left, "above": right, **rest} if not rest:
            if name not in sizes:
                raise ValueError(f"it splits at {name!r}, and the sizes are {', '.join(sizes)}")
            return Split(name, limit, tree_from_json(left, sizes), tree_from_json(right, sizes))
        case _:
            raise ValueError(f"neither a configuration nor a split: {json.dumps(data)[:80]}")


# ---- as Python


class Family(NamedTuple):
    """The shapes of one kernel with arguments of some types on one kind of device."""

    kernel: str
    types: str
    device: str
    measured: list[Measured]


def source(families: Sequence[Family], settings_of: Mapping[str, Mapping[str, object]], made: str) -> str:
    """A module with a function for each family; `settings_of` are the settings of each configuration, by its text."""
    parts = [f"{TITLE}, {made}.", "", USE, '"""', ""]
    parts += ["from tilework import Config", ""]
    for name, family in zip(names_of(families), families, strict=True):
        tree = fitted(family.measured)
        sizes = list(family.measured[0][0])
        types = f" of {family.types}" if family.types else ""
        parts += ["", f"def choose_{name}({', '.join(sizes)}):"]
        parts += [f'    """{family.kernel}{types} on {family.device}."""', *body(tree, settings_of, "    "), ""]
        parts += [f"# measured for choose_{name}: {', '.join(sizes)}, best time, loss by the choice"]
        for shape, times in sorted(family.measured, key=lambda one: list(one[0].values())):
            best, loss = min(times.values()), losses_of(times).get(tree.answer(shape))
            text = "not measured" if loss is None else f"{loss:.1%}"
            parts.append(f"#   {', '.join(map(str, shape.values()))}: {best:.4g} ms, {text}")
        parts.append("")
    return "\n".join(parts)


def names_of(families: Sequence[Family]) -> list[str]:
    """Return a name for each family: its kernel, and a number if that has several families."""
    kernels = [family.kernel for family in families]
    names = list[str]()
    for kernel in kernels:
        numbered = (f"{kernel}_{number}" for number in count(1))
        names.append(
            kernel if kernels.count(kernel) == 1 else next(name for name in numbered if name not in {*kernels, *names})
        )
    return names


USE = """    @tilework.autotune(configs, key=[...], choose=choose_KERNEL)

Sizes that were not measured get the configuration of those that are like them; nothing is measured at a launch."""


def body(tree: Tree, settings_of: Mapping[str, Mapping[str, object]], indent: str) -> list[str]:
    """Return the lines of the body of a function."""
    if isinstance(tree, Leaf):
        settings = dict(settings_of[tree.config])
        options = {
            name: settings.pop(name) for name in ("num_warps", "num_stages", "num_ctas", "maxnreg") if name in settings
        }
        usual = {"num_ctas": 1, "maxnreg": None}
        given = [f"{name}={value!r}" for name, value in options.items() if name not in usual or value != usual[name]]
        kwargs = ", ".join(f'"{name}": {value!r}' for name, value in settings.items())
        return [f"{indent}return Config({', '.join([f'{{{kwargs}}}', *given])})"]
    return [
        f"{indent}if {tree.name} <= {tree.limit}:",
        *body(tree.left, settings_of, indent + "    "),
        *body(tree.right, settings_of, indent),
    ]
