"""Releases of programs, kept beside the bytecode of this package, as the hash of its sources is: a new cache asks nobody again.

>>> remember(identity, "13.0")
>>> known()[identity]
'13.0'
"""

import json
import os
import sys
from importlib.util import cache_from_source

from tilework.runtime.kernel_cache.key import NOTHING_KEPT, ROOT, content_of, keep

MOST = 16  # programs, the last ones


def place() -> str:
    return cache_from_source(os.path.join(ROOT, "releases.py")) + ".known"


def known() -> dict[str, str]:
    """Releases by the identity of their program."""
    try:
        found = json.loads(content_of(place()))
        return {identity: release for identity, release in found.items() if isinstance(release, str)}
    except (*NOTHING_KEPT, AttributeError):
        return {}


def remember(identity: str, release: str) -> None:
    """Keep one more, where bytecode is kept."""
    if not sys.dont_write_bytecode:
        found = [*known().items(), (identity, release)][-MOST:]
        keep(place(), json.dumps(dict(found)).encode())
