"""The page of environment variables: knobs by group, then those without a knob."""

from typing import Any

from tilework import knobs
from tilework.knobs.meanings import MEANINGS, WITHOUT_KNOB

GROUPS = {
    "runtime": "Running kernels",
    "compilation": "Compiling",
    "cache": "The cache of compiled kernels",
    "autotuning": "Tuning",
    "language": "Defaults of the language",
    "nvidia": "NVIDIA GPUs",
    "amd": "AMD GPUs",
    "proton": "The profiler",
    "redis": "A cache on Redis",
    "build": "Modules in C",
}
TYPES = {
    "env_bool": "on or off",
    "env_opt_bool": "on or off",
    "env_choice": "a word",
    "env_class": "module:Class",
    "env_device": "a device",
    "env_home_dir": "folder",
    "env_int": "number",
    "env_nvidia_tool": "path of a program",
    "env_opt_int": "number",
    "env_opt_str": "text",
    "env_sanitize": "on, off, strict, race",
    "env_seconds": "seconds",
    "env_size": "bytes: 500000, 64k, 4G",
    "env_str": "text",
    "env_str_callable_default": "folder",
    "env_version": "text",
}
INTRODUCTION = """\
Every variable that tilework reads. `1`, `on`, `y`, `yes` and `true` all mean on. Most variables have a knob in Python,
which sets the same option in a running program:

```python
from tilework import knobs

with knobs.runtime.scope():              # changes inside the block are undone at its end
    knobs.runtime.num_threads = 4        # as TILEWORK_NUM_THREADS=4
```

The most useful ones are [`TILEWORK_DEVICE`](#TILEWORK_DEVICE) (where kernels run),
[`TRITON_INTERPRET`](#TRITON_INTERPRET) (kernels as plain Python), [`TRITON_SANITIZE`](#TRITON_SANITIZE) (kernels that
check themselves), [`TRITON_CACHE_DIR`](#TRITON_CACHE_DIR) and
[`TILEWORK_PERFORMANCE_REMARKS`](#TILEWORK_PERFORMANCE_REMARKS).
"""


def pages() -> dict[str, str]:
    """The page, by its path in the site."""
    parts = ["# Environment variables", INTRODUCTION]
    for name, group in groups().items():
        parts += [f"## {GROUPS.get(name, name)}", f"Knobs of `tilework.knobs.{name}`.", table(group)]
    rows = [row(key, kind, "", "", meaning) for key, (kind, meaning) in WITHOUT_KNOB.items()]
    parts += ["## Without a knob", "\n".join([*header("type", "", ""), *rows])]
    return {"reference/environment.md": "\n\n".join(parts)}


def groups() -> dict[str, knobs.base_knobs]:
    """The groups of knobs, in the order of `GROUPS`; a new one comes last."""
    found = {name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)}
    return {name: found[name] for name in sorted(found, key=lambda name: [*GROUPS, name].index(name))}


def table(group: knobs.base_knobs) -> str:
    """A row for each variable of a group."""
    rows = [
        row(knob.key, TYPES[type(knob).__name__], default_of(knob), f"`{attribute}`", MEANINGS[knob.key])
        for attribute, knob in {**group.knob_descriptors, **group.READ_ONCE}.items()
    ]
    return "\n".join([*header("type", "default", "knob"), *rows])


def header(*titles: str) -> list[str]:
    return [f"| variable | {' | '.join(titles)} | meaning |", "|---" * (len(titles) + 2) + "|"]


def row(key: str, kind: str, default: str, knob: str, meaning: str) -> str:
    return f"| <span id='{key}'>`{key}`</span> | {kind} | {default} | {knob} | {meaning}. |"


def default_of(knob: knobs.env_base[Any]) -> str:
    """The value without the variable; the same on every machine."""
    match knob:
        case knobs.env_str_callable_default():
            return "the home folder"
        case knobs.env_home_dir():
            return f"`~/.triton/{knob.default}`"
        case knobs.env_nvidia_tool():
            return "the newest one found"
        case knobs.env_size():
            return f"{knob.default >> 30}G"
        case _ if isinstance(knob.default, bool):
            return "on" if knob.default else "off"
        case _:
            return "" if knob.default in (None, "") else f"`{knob.default}`"
