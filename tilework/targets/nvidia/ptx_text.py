"""Read facts about kernels from PTX text, and make small changes to it.

>>> entries(".entry add(.param .u64 p) .reqntid 128 { ret; }")
{'add': {'reqntid': (128,)}}

Two requirements of a launch cannot be read from the instructions: the sizes of dynamic shared memory and of scratch
memory. A comment in the first lines has them, which the compiler copies from LLVM text to PTX:

    // tilework: {"shared": 4096, "global_scratch_size": 128, "global_scratch_align": 16}
"""

import json
import re
from typing import Any

COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\([^)]*\))?([^{;]*)(?=\{)")
DIRECTIVE = re.compile(r"\.(reqntid|maxntid|minnctapersm|maxnreg|reqnctapercluster)\s+(\d+(?:\s*,\s*\d+)*)")
DYNAMIC = re.compile(r"\.extern\s+\.shared\b[^;]*\[\s*\]")
METADATA = re.compile(r"^[ \t]*(?://|;)[ \t]*tilework:(.*)$", re.MULTILINE)
KEYS = (
    "shared", "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align",
    "tmem_size", "tensordesc_meta", "fp_contract", "sanitizer", "rectangles", "num_warps", "takes_turns",
)  # fmt: skip
WARP = 32


def entries(text: str) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the kernels by name, each with its directives."""
    plain = COMMENTS.sub("", text)
    return {
        found[1]: {name: tuple(map(int, sizes.split(","))) for name, sizes in DIRECTIVE.findall(found[2])}
        for found in ENTRY.finditer(plain)
    }


def has_dynamic_shared(text: str) -> bool:
    """Return True if there is shared memory whose size the launch determines."""
    return DYNAMIC.search(COMMENTS.sub("", text)) is not None


def metadata(text: str) -> dict[str, Any]:
    """Return the contents of the metadata comment; empty without one."""
    found = METADATA.search(text)
    if found is None:
        return {}
    try:
        facts = json.loads(found[1])
    except ValueError as error:
        raise ValueError(f"{found[0].strip()}: not JSON: {error}") from None
    unknown = [name for name in facts if name not in KEYS] if isinstance(facts, dict) else [facts]
    if unknown:
        raise ValueError(f"{found[0].strip()}: {unknown[0]!r} is not one of {', '.join(KEYS)}")
    return facts


def with_metadata(text: str, facts: dict[str, Any]) -> str:
    """Return PTX with a metadata comment at its top."""
    return f"// tilework: {json.dumps(facts)}\n{text}" if facts else text


def with_maxnreg(text: str, registers: int) -> str:
    """Return PTX in which every kernel is limited to so many registers; other functions are left alone."""
    plain = COMMENTS.sub(lambda found: " " * len(found[0]), text)  # offsets are those of the text
    parts, at = [], 0
    for found in ENTRY.finditer(plain):
        for old in re.finditer(r"\.maxnreg\s+\d+", plain[found.start(2) : found.end(2)]):
            parts.append(text[at : found.start(2) + old.start()])
            at = found.start(2) + old.end()
        parts.append(f"{text[at : found.end()].rstrip()}\n.maxnreg {registers}\n")
        at = found.end()
    return "".join((*parts, text[at:]))


def with_version(text: str, version: str) -> str:
    """Return PTX with another ``.version``: ``with_version(text, "9.1")``."""
    return re.sub(r"^(\s*\.version\s+)\S+", rf"\g<1>{version}", text, count=1, flags=re.MULTILINE)


def without_debug(text: str) -> str:
    """Return PTX whose ``.target`` does not disable optimisation by ``debug``; line tables remain."""
    return re.sub(r"^(\s*\.target\s+[^\n]*?)\s*,\s*debug\b", r"\1", text, flags=re.MULTILINE)


def launch_facts(kernel: str, directives: dict[str, tuple[int, ...]], num_warps: int | None) -> dict[str, Any]:
    """Return the launch requirements of a kernel; `num_warps` is the user's request, None if there is none.

    ``.reqntid`` is the size of a block. ``.maxntid`` is a bound, and the default unless the user requests less.
    """
    facts: dict[str, Any] = {}
    if (block := directives.get("reqntid")) is not None:
        warps, rest = divmod(block[0], WARP)
        if rest or any(size != 1 for size in block[1:]):
            raise ValueError(
                f"{kernel} runs in blocks of {block} threads (.reqntid); tilework launches whole warps along x only"
            )
        if num_warps not in (None, warps):
            raise ValueError(
                f"{kernel} runs in blocks of {warps} warps (.reqntid), but num_warps={num_warps} was requested"
            )
        facts["num_warps"] = warps
    elif (most := directives.get("maxntid")) is not None:
        threads = 1
        for size in most:
            threads *= size
        if threads < WARP or (num_warps is not None and num_warps * WARP > threads):
            raise ValueError(
                f"{kernel} allows {threads} threads (.maxntid), but num_warps={num_warps or 1} was requested"
            )
        facts["num_warps"] = num_warps or threads // WARP
    if (cluster := directives.get("reqnctapercluster")) is not None:
        sizes = (*cluster, 1, 1)[:3]
        facts |= {"num_ctas": sizes[0] * sizes[1] * sizes[2], "cluster_dims": sizes}
    return facts
