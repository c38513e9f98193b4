"""Show what a file written by `tilework precompile` contains, or verify it.

tilework bundle app.tilebundle                  targets, kernels, sizes, digest
tilework bundle app.tilebundle --verify         every byte of it
"""

import argparse
import json
from collections import Counter
from typing import Any

from tilework.errors import BundleError
from tilework.runtime.bundle.bundle_file import BundleFile, Counts
from tilework.runtime.bundle.serving import Bundle, bundle_key, cpu_mismatch, target_name

MISTAKES = (BundleError,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the bundle")
    parser.add_argument("--verify", action="store_true", help="verify every section, and print nothing else")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(args: argparse.Namespace) -> int:
    bundle = Bundle(BundleFile.open(args.file, key=bundle_key()))
    if args.verify:
        bundle.verify()
        print(f"{args.file}: verified, digest {bundle.digest}")
    else:
        print(json.dumps(facts_of(bundle), indent=1) if args.json else text_of(bundle))
    return 0


def facts_of(bundle: Bundle) -> dict[str, Any]:
    file = bundle.file
    sizes: Counter[int] = Counter()
    entries = list(file.entries())
    for entry in entries:
        sizes[entry.target] += sum(file.sizes(entry).values())
    counts = [
        Counts.of(file.kernels, [one for one in entries if one.target == index]) for index in range(len(file.targets))
    ]
    return {
        "path": file.path,
        "digest": file.digest,
        "signed": file.is_signed,
        "tilework": file.version,
        **file.facts,
        "targets": [
            {**target, **counts[index]._asdict(), "bytes": sizes[index]} for index, target in enumerate(file.targets)
        ],
        "kernels": file.kernels,
        "specializations": bundle.manifest,
        "tunings": bundle.tunings,
        "trees": [tree.to_json() for tree in bundle.trees],
    }


def text_of(bundle: Bundle) -> str:
    from tilework.runtime.recording.key_parts import KeyParts  # lazily: for the texts only

    facts = facts_of(bundle)
    signed = "signed" if facts["signed"] else "not signed"
    lines = [f"{facts['path']}: tilework {facts['tilework']}, {signed}", f"digest {facts['digest']}"]
    for target in facts["targets"]:
        reason = cpu_mismatch(target) if target["backend"] == "cpu" else None
        note = f"; not for this machine: {reason}" if reason else ""
        counts = Counts(target["kernels"], target["specialisations"])
        lines.append(f"target {target_name(target)}: {counts}, {target['bytes']:,} bytes{note}")
    for row in facts["specializations"]:
        parts = KeyParts.from_json({**row["parts"], "values": row["values"]})
        lines.append(f"  {parts.text(with_options=True)}")
    for row in facts["tunings"]:
        chosen = ", ".join(f"{name}={value}" for name, value in row["config"].items())
        lines.append(f"  tuned {row['kernel'].rpartition(':')[2]}{tuple(row['tuning'])}: {chosen}")
    lines += [f"  {line}" for tree in bundle.trees for line in tree.lines()]
    return "\n".join(lines)
