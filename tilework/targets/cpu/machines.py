"""CPUs by name: this machine, or one that code is made for ahead of time.

    machine = named_machine("x86-64-v3")        machine.facts, machine.code_generator(2), machine.layout

| name | |
|---|---|
| `host` | this machine, in this process |
| `native` | this machine, in any process: without what a process must request from the system (AMX) |
| `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` | the levels of x86-64, on Linux |
| `armv8-a` | any 64-bit ARM, on Linux |
"""

import sys
from functools import cache
from typing import Any

from tilework.light_dataclass import light_dataclass
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.compile import LINUX, data_layout, host_features, host_target_machine, target_machine

# what LLVM calls them, and what they have for our code generator
MACHINES: dict[str, dict[str, tuple[str, frozenset[str]]]] = {
    "x86_64": {
        "x86-64": ("x86-64", frozenset()),
        "x86-64-v2": ("x86-64-v2", frozenset()),
        "x86-64-v3": ("x86-64-v3", frozenset({"avx2", "f16c", "fma"})),
        "x86-64-v4": ("x86-64-v4", frozenset({"avx2", "f16c", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq"})),
    },
    "aarch64": {"armv8-a": ("generic", frozenset())},
}
FEATURES = {"x86_64": "", "aarch64": "+neon"}
# What code for "native" may use, by LLVM's names: what Linux says of a processor, so that it can be compared where the
# code is loaded,
# and what every x86-64 has or the code generator never chooses. New instructions are often used before Linux shows
# them.
SHOWN = frozenset(
    "adx aes avx avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f avx512fp16 avx512ifma avx512vbmi"
    " avx512vbmi2 avx512vl avx512vnni avx512vpopcntdq avxvnni bmi bmi2 cx16 f16c fma fma4 fsgsbase gfni lzcnt movbe"
    " pclmul popcnt rdrnd rdseed sahf sha sse3 sse4.1 sse4.2 sse4a ssse3 tbm vaes vpclmulqdq xop".split()
)
HARMLESS = frozenset(
    "64bit clflushopt clwb cmov crc32 cx8 fxsr mmx prfchw sse sse2 xsave xsavec xsaveopt xsaves".split()
)


@light_dataclass
class CpuMachine:
    """A CPU to compile for; `cpu` is LLVM's name of it, "" for this one."""

    facts: HostTarget
    cpu: str = ""
    is_compared: bool = False  # its instructions are checked where the code is loaded

    def code_generator(self, level: int) -> Any:
        """Return LLVM's code generator with this optimisation level."""
        if not self.cpu:
            return host_target_machine(level, None, shown_features() if self.is_compared else None)
        features = FEATURES[self.facts.arch]
        if sys.platform == "linux":
            return target_machine(LINUX.format(self.facts.arch), self.cpu, features, level)
        return host_target_machine(level, self.cpu, features)

    @property
    def layout(self) -> str:
        """The data layout, as LLVM writes it."""
        return data_layout(self.code_generator(2))


@cache
def named_machine(name: str) -> CpuMachine:
    """See the module docstring."""
    if name in ("", "host"):
        return CpuMachine(HostTarget.detect())
    if name == "native":
        return CpuMachine(without_tiles(HostTarget.detect()), is_compared=True)
    for arch, known in MACHINES.items():
        if name in known:
            check_reachable(name, arch)
            cpu, features = known[name]
            return CpuMachine(HostTarget.of(arch, cpu, features), cpu)
    names = [name for known in MACHINES.values() for name in known]
    raise ValueError(f"no CPU called {name!r}; known: host, {', '.join(names)}")


def shown_features() -> str | None:
    """LLVM's features of this machine, without those that cannot be compared; None: all of them."""
    if HostTarget.detect().arch != "x86_64":
        return None
    found = host_features()[1].split(",")
    return ",".join(text if text[1:] in SHOWN | HARMLESS else f"-{text[1:]}" for text in found)


def check_reachable(name: str, arch: str) -> None:
    """Refuse to compile for another architecture on systems other than Linux."""
    if sys.platform != "linux" and arch != HostTarget.detect().arch:
        raise ValueError(f"code for {name!r} can be made on Linux, and on machines of that kind")


def without_tiles(host: HostTarget) -> HostTarget:
    """Tiles need a permission of the system, which only the process that runs the code can request."""
    features = frozenset(name for name in host.features if not name.startswith("amx-"))
    return HostTarget.of(host.arch, host.cpu, features | host.dot_features)


def machine_for_programs(name: str) -> CpuMachine:
    """Return the machine of standalone programs: this one as it is, or a `named_machine` of its architecture."""
    host = HostTarget.detect()
    if name in ("", "host", "native"):
        return CpuMachine(without_tiles(host))
    if (machine := named_machine(name)).facts.arch != host.arch:
        raise ValueError(f"programs for {name!r} are made on machines of that kind; this one is {host.arch}")
    return machine
