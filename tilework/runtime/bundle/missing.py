"""The error of a launch that no bundle serves: the arguments that differ from the nearest recorded ones.

add(x: *fp32:16, n: i32, BLOCK=256) is not in app.tilebundle, and TILEWORK_NO_JIT=1 forbids compiling
  nearest: add(x: *fp32:16, n: i32:16, BLOCK=256)
  - `n` = 1000 is not a multiple of 16, and 1024 was
    help: pad it to a multiple of 16 ...
"""

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from tilework import knobs
from tilework.errors import NotRecorded
from tilework.process.metrics import count
from tilework.runtime.compile.compiler_presence import has_compiler
from tilework.runtime.recording.key_parts import Comparison, KeyParts, compared, parts_of
from tilework.runtime.recording.recorder import on_disk, warn_user

AGAIN = "record the program again (TILEWORK_RECORD=file) with such a launch, and compile it: tilework precompile file"
SAID: set[str] = set()  # warnings
CHANGED = ("source", "function", "global")  # parts of a kernel itself


def forbidden() -> str | None:
    """Return the reason that kernels cannot be compiled here; None if they can."""
    if knobs.runtime.no_jit:
        return "TILEWORK_NO_JIT=1 forbids compiling"
    return None if has_compiler() else "the compiler is not installed here"


def missing_kernel(record: Any, bundles: Sequence[Any]) -> None:
    """An error, if nothing can be compiled; a warning, if a bundle has a kernel of that name with another text."""
    new = KeyParts.from_json({**record.parts(), "values": record.values})
    rows = [row for bundle in bundles for row in bundle.manifest if is_same(row["parts"], new)]
    found = compared(new, [KeyParts.from_json({**row["parts"], "values": row["values"]}) for row in rows])
    paths = ", ".join(bundle.path for bundle in bundles)
    if (why := forbidden()) is not None:
        count("refusals", kernel=new.kernel)
        raise NotRecorded(text_of(found, f"is not in {paths}, and {why}", bundles))
    changes = [one.message for one in found.differences if one.part in CHANGED]
    if changes and is_changed(new, rows):
        warn_once(
            f"{new.text()} is compiled, although {paths} has the kernel: {'; '.join(changes)} since it was recorded."
            f" {AGAIN}"
        )


def warn_once(text: str) -> None:
    """Warn once, at the line of the launch."""
    if text not in SAID:
        SAID.add(text)
        warn_user(text)


def is_same(parts: Mapping[str, Any], new: KeyParts) -> bool:
    """Return True if a recorded specialisation is of a kernel of the same name; the module may have been `__main__`."""
    return parts["kernel"].rpartition(".")[2] == new.kernel.rpartition(".")[2]


def is_changed(new: KeyParts, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if no recorded specialisation has this text of the kernel."""
    own = {key: text for key, text in new.others.items() if key.partition(" ")[0] in CHANGED}
    return all({key: row["parts"]["others"].get(key) for key in own} != own for row in rows)


def text_of(found: Comparison, title: str, bundles: Sequence[Any] = ()) -> str:
    """Return the message about a launch, with its differences from the recorded ones."""
    lines = [f"{found.new.text()} {title}"]
    if found.nearest is None:
        kernels = sorted({name for bundle in bundles for name in bundle.kernels})
        others = f"; there are those of {', '.join(kernels)}" if kernels else ""
        lines.append(f"  no specialisation of this kernel is there{others}")
    else:
        lines.append(f"  nearest: {found.nearest.text()}")
    for difference in found.differences:
        lines.append(f"  - {difference.message}")
        if difference.help:
            lines.append(f"    help: {difference.help}")
    own = ".".join(platform.python_version_tuple()[:2])
    if any(difference.part in CHANGED for difference in found.differences):
        made = {bundle.file.facts.get("python") for bundle in bundles} - {own, None}
        lines += [f"  it was compiled with Python {version}, and this is {own}" for version in sorted(made)]
    return "\n".join([*lines, f"  {AGAIN}"])


def refused(
    source: Any, target: Any, backend: Any, options: Any, environment: Mapping[str, str], key: str
) -> NotRecorded:
    """The error of a compilation that TILEWORK_NO_JIT=1 forbids, of what the disk cache does not have."""
    new = parts_of(source, target, backend, options, environment)
    count("refusals", kernel=source.name if new is None else new.kernel)
    if new is None:
        return NotRecorded(f"{source.name} is not in the cache, and TILEWORK_NO_JIT=1 forbids compiling")
    found = compared(new, on_disk(source.name, new, key))
    return NotRecorded(
        text_of(found, f"is not in the cache {knobs.cache.dir}, and TILEWORK_NO_JIT=1 forbids compiling")
    )


def missing_choice(tuner: Any, fn: Any, key: tuple[Any, ...], found: Sequence[str], bundles: Sequence[Any]) -> None:
    """Raise `NotRecorded` unless the launch may be tuned; `found` are the bundles' configurations for it."""
    why = forbidden()
    if why is None:
        return
    count("refusals", kernel=fn._fn_name)
    paths, name = ", ".join(bundle.path for bundle in bundles), fn.__qualname__
    if found:
        has = f"the configuration that {paths} has for {name} and the key {key} ({found[0]})"
        raise NotRecorded(
            f"{has} is none of the configurations that the program has for this launch, and {why}\n  {AGAIN}"
        )
    known = [
        str(tuple(row["tuning"]))
        for bundle in bundles
        for row in bundle.tunings
        if row["kernel"].rpartition(":")[2] == name
    ]
    raise NotRecorded(
        f"{paths} has no choice of the autotuner for {name} and the key {key}, and {why}"
        f"\n  there are those for {', '.join(dict.fromkeys(known)) or 'no key at all'}\n  {AGAIN}"
    )
