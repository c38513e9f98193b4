"""Findings of the emulator in a launch, reported at the user's line.

    kernel.py:9:5: error: block (7, 0, 0) reads element 1000 of argument 'x', which has 1000 elements (out of bounds)
        9 |     v = tl.load(x + i)
          |     ^
    kernel.py:12: PerformanceWarning: double: 992 of 1024 wavefronts of shared memory are bank conflicts

Mistakes are errors (`SanitizerError`, for accesses also an `IndexError`). What is only slow is a `PerformanceWarning`,
once for each line.
"""

import linecache
import re
import warnings
from collections.abc import Sequence
from typing import Any

from tilework.errors import PerformanceWarning, SanitizerError
from tilework.oracles.emulator.counters import Counters, Counts
from tilework.oracles.emulator.findings import SHOWN, Finding
from tilework.oracles.emulator.syntax import EmulatorError, Trapped
from tilework.oracles.interpreter.allowed_memory import LANGUAGE, Region, is_near
from tilework.runtime.sanitize.checked_launch import HELP_UNKNOWN, KernelAccessError, distance, rendered, source_line

VERBS = {"ld": "reads", "st": "writes", "atom": "updates", "red": "updates", "cp": "copies"}  # of PTX, then of LLVM
VERBS |= {"atomicrmw": "updates", "cmpxchg": "updates", "atomic": "updates", "load": "reads", "store": "writes"}
OPCODE = re.compile(rf"\b({'|'.join(VERBS)})(?:\.|\s)")
ADDRESS = re.compile(r"global address (0x[0-9a-f]+)")
FEW = 32  # wavefronts or sectors: not worth a warning
TWICE = 2
WARNED: dict[Any, Any] = {}  # Python shows each warning once


def error_of(findings: Sequence[Finding], regions: Sequence[Region]) -> SanitizerError:
    """All that was found as one exception."""
    different = list({(one.kind, *(site.locations for site in one.sites)): one for one in reversed(findings)}.values())
    texts = [finding_text(finding, regions) for finding in different[: -SHOWN - 1 : -1]]
    if len(different) > SHOWN:
        texts.append(f"... and {len(different) - SHOWN} more")
    kind = KernelAccessError if any(finding.address is not None for finding in findings) else SanitizerError
    return kind("\n".join(texts))


def finding_text(finding: Finding, regions: Sequence[Region]) -> str:
    """One finding with the lines that it is about."""
    if not finding.sites:
        return f"{finding.kind}: {finding.what}"
    locations = [location_of(site.locations) for site in finding.sites]
    title, help = f"{finding.kind}: {finding.what}", ""
    if finding.address is not None:
        title, help = access_text(finding, finding.address, regions)
    title = ADDRESS.sub(lambda match: element_text(int(match[1], 16), regions) or match[0], title)
    notes = [f"and {source_line(location)}" for location in locations[1:] if location != locations[0]]
    site = finding.sites[0]
    return rendered(locations[0], title, help=help, notes=(*notes, f"{site.language} line {site.line}: {site.text}"))


def access_text(finding: Finding, address: int, regions: Sequence[Region]) -> tuple[str, str]:
    """The sentence about a bad access, and what to do."""
    opcode = OPCODE.search(finding.sites[0].text)
    subject = f"block {finding.block} {VERBS[opcode[1]] if opcode else 'accesses'}"
    near = min(regions, key=lambda region: distance(address, region), default=None)
    if near is None or not is_near(address, near):
        return f"{subject} address {address:#x}, which is in no array the kernel was given", HELP_UNKNOWN
    index, rest = divmod(address - near.data, near.itemsize)
    what = f"{subject} element {index}{f' plus {rest} bytes' if rest else ''} of {near.name}"
    if near.start <= address < near.end:
        return f"{what}: {finding.what}", ""
    return f"{what}, which has {(near.end - near.start) // near.itemsize} elements (out of bounds)", ""


def element_text(address: int, regions: Sequence[Region]) -> str:
    """The user's name for the element at an address; empty if it is in no array."""
    for region in regions:
        if region.start <= address < region.end:
            return f"element {(address - region.data) // region.itemsize} of {region.name}"
    return ""


def failure_of(error: EmulatorError) -> Exception:
    """Why a kernel could not go on."""
    return RuntimeError(f"device-side assert triggered: {error}") if isinstance(error, Trapped) else error


def warn_of_slow_lines(kernel: str, counters: Counters) -> None:
    """A warning for each line of the user's whose accesses take twice what they need."""
    for (file, line), counts in sorted(counters.lines.items()):
        if file != "PTX":
            for text in slow_accesses(counts):
                warnings.warn_explicit(f"{kernel}: {text}", PerformanceWarning, file, line, registry=WARNED)


def slow_accesses(counts: Counts) -> list[str]:
    """Advice for a line."""
    found = []
    if counts.wavefronts > FEW and counts.wavefronts >= TWICE * (counts.wavefronts - counts.conflicts):
        found.append(f"{counts.conflicts} of {counts.wavefronts} wavefronts of shared memory are bank conflicts")
    if counts.tile_sectors > FEW and counts.tile_sectors >= TWICE * counts.least_sectors:
        least = f"{counts.least_sectors} would hold what threads want"
        found.append(f"accesses are not coalesced: {counts.tile_sectors} sectors of global memory are touched, {least}")
    return found


def location_of(locations: Sequence[tuple[str, int]]) -> str:
    """``file:line:column`` of the innermost line outside of the language's own library."""
    own = [location for location in locations if not location[0].startswith(LANGUAGE)]
    return with_column(*(own or locations)[0]) if locations else "<kernel>"


def with_column(file: str, line: int) -> str:
    text = linecache.getline(file, line)
    return f"{file}:{line}:{len(text) - len(text.lstrip())}"
