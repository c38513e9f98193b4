"""Choose the code of a bundle for a device, the best first.

    described(GPUTarget("cuda", 80, 32))        {"backend": "cuda", "arch": 80, "warp_size": 32}
    fitting(targets, GPUTarget("cuda", 86, 32)) [(0, "cubin")]: code for 8.0 runs on 8.6, that for 9.0 would not

| target | runs on |
|---|---|
| `cuda` | the same capability; up to 8.9 also later ones of the same generation; as PTX, if any, all later ones |
| `hip` | the same architecture |
| `cpu` | machines of the same kind and system that have all instructions that the code may use |

The instructions of a CPU are read from the system, not from LLVM, which need not be installed.
"""

import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tilework import knobs
from tilework.target import GPUTarget, UnknownTarget
from tilework.targets.cpu.processor import processor_facts

BINARY = ""  # the file that the metadata names
PTX = "ptx"
ONLY_ITSELF = 90  # from this capability on code is for one architecture alone (sm_90a)

V2 = tuple("cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3".split())
V3 = (*V2, *"abm avx avx2 bmi1 bmi2 f16c fma movbe".split())
V4 = (*V3, *"avx512bw avx512cd avx512dq avx512f avx512vl".split())
# what code may use beyond these, if it was compiled for the machine it was compiled on
MORE = tuple(
    "adx aes avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512ifma"
    " avx512vbmi avx_vnni fma4 fsgsbase gfni pclmulqdq rdrand rdseed sha_ni sse4a tbm vaes vpclmulqdq xop".split()
)
ARM = tuple(
    "aes asimd asimddp asimdfhm asimdhp asimdrdm atomics bf16 crc32 dcpop fcma flagm flagm2 fp fphp frint"
    " i8mm ilrcpc jscvt lrcpc pmull sb sha1 sha2 sha3 sha512 ssbs sve sve2 svebf16 svei8mm uscat".split()
)
FOR_DOTS = frozenset("avx512_bf16 avx512_vnni avx_vnni bf16 i8mm svebf16 svei8mm".split())  # see TILEWORK_CPU_DOTS
LEVELS = {"x86-64": (), "x86-64-v2": V2, "x86-64-v3": V3, "x86-64-v4": V4, "armv8-a": ("asimd", "fp")}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def described(target: GPUTarget, has_ptx: bool = False) -> dict[str, Any]:
    """A target as the index of a bundle has it."""
    found: dict[str, Any] = {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size}
    if target.backend == "cpu":
        level = LEVELS.get(str(target.arch))
        arm = str(target.arch).startswith("arm")
        machine = this_machine() if level is None else "aarch64" if arm else "x86_64"
        has = instructions()
        own = sorted(has.intersection(ARM if machine == "aarch64" else (*V4, *MORE)))
        return {
            **found,
            "machine": machine,
            "system": sys.platform,
            "instructions": own if level is None else sorted(level),
        }
    return {**found, "ptx": True} if has_ptx else found


def parse_target(text: str) -> GPUTarget:
    """``cuda:90``, ``hip:gfx942``, ``cpu:x86-64-v3``; ``cpu`` is the kind of CPU that this machine has."""
    target = GPUTarget.parse(text)
    if target.backend != "cpu" or target.arch in LEVELS:
        return target
    if target.arch not in ("host", "native"):
        known = ", ".join(f"cpu:{name}" for name in LEVELS)
        raise UnknownTarget(f"target {text!r}: no such CPU; known are cpu, {known}")
    return GPUTarget("cpu", "native", 1)


def this_machine() -> str:
    machine = platform.machine().lower()
    return MACHINES.get(machine, machine)


def instructions() -> frozenset[str]:
    """The instruction sets of this CPU that code may use, by the system's names."""
    return had_instructions() if knobs.runtime.cpu_dots else had_instructions() - FOR_DOTS


@cache
def had_instructions() -> frozenset[str]:
    facts = processor_facts()
    return frozenset((facts.get("flags") or facts.get("Features") or "").split())


def fitting(targets: Sequence[Mapping[str, Any]], device: GPUTarget) -> list[tuple[int, str]]:
    """(index of a target, file to load) of all that a device can run."""
    found: list[tuple[tuple[int, ...], int, str]] = []
    for index, target in enumerate(targets):
        rule = RULES.get(device.backend, same_arch)
        if target.get("backend") == device.backend and (fit := rule(target, device)) is not None:
            order, file = fit
            found.append(((*order, -index), index, file))
    return [(index, file) for _, index, file in sorted(found, reverse=True)]


Fit = tuple[tuple[int, ...], str] | None  # how well, and with which file


def same_arch(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    return ((0,), BINARY) if target.get("arch") == device.arch else None


def cuda_fit(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    arch, own = target.get("arch"), device.arch
    if not isinstance(arch, int) or not isinstance(own, int) or arch > own:
        return None
    if arch == own or (arch // 10 == own // 10 and arch < ONLY_ITSELF):
        return (1, arch), BINARY
    return ((0, arch), PTX) if target.get("ptx") and arch < ONLY_ITSELF else None


def cpu_fit(target: Mapping[str, Any], device: GPUTarget) -> Fit:
    return ((len(target.get("instructions", ())),), BINARY) if why_not(target) is None else None


def why_not(target: Mapping[str, Any]) -> str | None:
    """Why code for a CPU cannot run here; None if it can."""
    if target.get("machine") != this_machine():
        return f"it is for {target.get('machine')}, and this is {this_machine()}"
    if target.get("system") != sys.platform:
        return f"it is for {target.get('system')}, and this is {sys.platform}"
    missing = set(target.get("instructions", ())) - instructions()
    why = "" if knobs.runtime.cpu_dots else ", or TILEWORK_CPU_DOTS=0 forbids it"
    return f"this CPU does not have {', '.join(sorted(missing))}{why}" if missing else None


RULES: dict[str, Callable[[Mapping[str, Any], GPUTarget], Fit]] = {"cuda": cuda_fit, "cpu": cpu_fit}


def named(target: Mapping[str, Any]) -> str:
    """As `--target` takes it: ``cuda:90``, ``cpu:x86-64-v3``."""
    arch = target.get("arch")
    return str(target.get("backend")) if arch in ("host", "native") else f"{target.get('backend')}:{arch}"


def explained(targets: Sequence[Mapping[str, Any]], device: GPUTarget) -> str:
    """Describe the targets of a bundle, and the reasons that they do not fit this device."""
    texts = []
    for target in targets:
        reason = why_not(target) if target.get("backend") == device.backend == "cpu" else None
        texts.append(named(target) + (f" ({reason})" if reason else ""))
    return ", ".join(texts) or "nothing"
