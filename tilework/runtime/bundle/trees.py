"""The decision trees of a bundle: configurations for sizes that were not recorded.

    trees = read_trees(data, "app.tilebundle")      a BundleError if the data is not what `to_json` returned
    trees[0].fits(source, family)                   whether it is about a launch of this family of that kernel
    trees[0].tree.answer({"M": 512, "N": 4096})     the settings of a configuration, as JSON text

A tree is data, in a section of the bundle. `aot/trees.py` fits it when the bundle is made.
"""

import json
from collections.abc import Mapping
from typing import Any

from tilework.errors import BundleError
from tilework.light_dataclass import light_dataclass
from tilework.runtime.tuning.tree import Leaf, Tree, tree_from_json, tree_to_json

DESCRIPTION = ("kernel", "source", "device", "family")


@light_dataclass
class ServedTree:
    """The tree of a family of launches (`recording/tuning_family.py`) of a kernel, as measured on one device."""

    kernel: str
    source: str
    device: str
    family: Mapping[str, Any]
    tree: Tree

    def fits(self, source: str, family: Mapping[str, Any]) -> bool:
        """Return True if the tree is about launches of this family of the kernel with this text."""
        return self.source == source and self.family == family

    def to_json(self) -> dict[str, Any]:
        """Return the form in which bundles store the tree; `served_tree` is the inverse."""
        return {**{name: getattr(self, name) for name in DESCRIPTION}, "tree": tree_to_json(self.tree)}

    def lines(self) -> list[str]:
        """Return the tree as lines of text."""
        others = ", ".join(str(value) for value in self.family["others"].values())
        name, sizes = self.kernel.rpartition(":")[2], ", ".join(self.family["sizes"])
        title = f"tree {name}({sizes})" + f" of {others}" * bool(others) + f" on {self.device}" * bool(self.device)
        return [f"{title}:", *lines_of(self.tree, "  ")]


def lines_of(tree: Tree, indent: str) -> list[str]:
    """Return a subtree as lines of text."""
    if isinstance(tree, Leaf):
        return [f"{indent}{', '.join(f'{name}={value}' for name, value in json.loads(tree.config).items())}"]
    below = [f"{indent}{tree.name} <= {tree.limit}:", *lines_of(tree.left, indent + "  ")]
    return [*below, f"{indent}{tree.name} > {tree.limit}:", *lines_of(tree.right, indent + "  ")]


def read_trees(data: bytes | None, path: str) -> list[ServedTree]:
    """Parse the decision trees of a bundle; raise `BundleError` if the data is malformed."""
    try:
        return [served_tree(row) for row in json.loads(data or b"[]")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        text = f"it has no {error}" if isinstance(error, KeyError) else error
        raise BundleError(f"{path} has a decision tree that is none: {text}; compile it again") from None


def served_tree(row: Any) -> ServedTree:
    """Parse one decision tree."""
    kernel, source, device, family = (row[name] for name in DESCRIPTION)
    sizes, others = family["sizes"], family["others"]
    are_texts = all(isinstance(text, str) for text in (kernel, source, device, *sizes))
    if not are_texts or not isinstance(sizes, list) or not isinstance(others, dict):
        raise ValueError(f"its description is {json.dumps({**row, 'tree': None})}")
    return ServedTree(kernel, source, device, family, tree_from_json(row["tree"], sizes))
