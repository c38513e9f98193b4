"""Decision trees of recorded autotuners, for bundles, and the specialisations that their answers need.

    trees = fitted_trees(records)           one per kernel, family (`recording/tuning_family.py`) and device
    needed = specializations(records)       what the program launched, and what the trees may answer for it

A record of a choice has the times of all configurations that were measured for it. Each of these configurations has a
record, too, with the specialisation that it needs for the same arguments (a candidate). The candidates that a leaf of a
tree names are compiled. A kernel with `choose=`, whose choices have no times, has no tree: of its candidates, those
with a configuration that `choose` returned for any recorded size are compiled.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilework.runtime.bundle.trees import ServedTree
from tilework.runtime.tuning.tree import Leaf, Tree, fitted

Record = Mapping[str, Any]
Group = tuple[str, str, str]  # kernel, source, family


def fitted_trees(records: Sequence[Record]) -> list[ServedTree]:
    """Fit the trees of some records; the same records give the same trees in the same order."""
    return [
        ServedTree(kernel, source, device, json.loads(family), tree)
        for (kernel, source, family, device), tree in sorted(trees_by_family(records).items())
    ]


def specializations(records: Sequence[Record]) -> list[Record]:
    """Return the specialisations to compile: those that were launched, then those that a tree or `choose` may need."""
    launched = [record for record in records if record["record"] == "kernel"]
    keys = {record["key"] for record in launched}
    answers = answers_by_family(records)
    others = {
        record["key"]: record
        for record in records
        if record["record"] == "candidate" and text_of(record["config"]) in answers.get(group_of(record), ())
    }
    return launched + [record for key, record in sorted(others.items()) if key not in keys]


def answers_by_family(records: Sequence[Record]) -> dict[Group, set[str]]:
    """Return the configurations that may be chosen for launches of each family, as JSON texts."""
    found: dict[Group, set[str]] = {}
    for (*group, _), tree in trees_by_family(records).items():
        found.setdefault((group[0], group[1], group[2]), set()).update(leaves(tree))
    for record in choices(records):
        if not times_of(record):
            found.setdefault(group_of(record), set()).add(text_of(record["config"]))
    return found


def trees_by_family(records: Sequence[Record]) -> dict[tuple[str, str, str, str], Tree]:
    """Fit the tree of each (kernel, source, family, device) with measurements."""
    measured: dict[tuple[str, str, str, str], dict[str, dict[str, float]]] = {}
    for record in choices(records):
        if record["shape"] and any(map(math.isfinite, (times := times_of(record)).values())):
            shapes = measured.setdefault((*group_of(record), record.get("device", "")), {})
            known = shapes.setdefault(text_of(record["shape"]), {})
            known |= {text: min(time, known.get(text, time)) for text, time in times.items()}
    return {
        group: fitted([(json.loads(shape), shapes[shape]) for shape in sorted(shapes)])
        for group, shapes in measured.items()
    }


def choices(records: Sequence[Record]) -> list[Record]:
    """Return the records of choices that name their family; those of older versions do not."""
    return [record for record in records if record["record"] == "tuning" and "family" in record]


def times_of(record: Record) -> dict[str, float]:
    """Return the times of a record by the text of the configuration; infinite if it cannot run."""
    return {text_of(config): math.inf if time is None else time for config, time in record["timings"]}


def group_of(record: Record) -> Group:
    return record["kernel"], record["source"], text_of(record["family"])


def leaves(tree: Tree) -> set[str]:
    """Return the configurations of a tree."""
    return {tree.config} if isinstance(tree, Leaf) else leaves(tree.left) | leaves(tree.right)


def text_of(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)
