"""One object of a shared cache: all files of an entry, signed with the key of the machine that made it.

    data = pack("kernels/1/VOV2XK5L/add", {"add.json": ..., "add.obj": ...}, seconds=1.3, key=key)
    unpack("kernels/1/VOV2XK5L/add", data, key).files

    offset  size
    0       8      magic: 89 54 57 4B 52 4E 4C 0A (".TWKRNL\\n"); a transfer as text would destroy it
    8       4      version of this format                                        (all integers little-endian)
    12      4      bytes of the index
    16      8      bytes of the object
    24      80     the signature of the object's name and of all bytes but these (`signing.py`); zeros without one
    104     32     SHA-256 of bytes 0 to 23, of the index and of the contents
    136     ...    the index, JSON: `name` of the object, `seconds` that its compilation took, `files`: [name, bytes]
    ...     ...    the contents of the files, one after the other

The digest detects damage, and the signature detects a change by anyone without the key, who could compute the digest
again. It covers the name, so an entry cannot be stored under another entry's name.
"""

import hashlib
import hmac
import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from tilework.runtime.kernel_cache.entry import plain
from tilework.runtime.kernel_cache.remote.store import Unusable
from tilework.runtime.signing import MARK, NO_MARK, BadSignature, Key

MAGIC = b"\x89TWKRNL\n"
FORMAT = 1
FIXED = struct.Struct("<8sIIQ")
DIGEST = 32
HEADER = FIXED.size + MARK.size + DIGEST
LARGEST_INDEX = 1 << 20
LONGEST = 3600.0  # seconds of a compilation that are believed
LONGEST_NAME = 255  # bytes that file systems take


class Entry(NamedTuple):
    """A verified object."""

    files: dict[str, bytes]
    seconds: float


def pack(name: str, files: Mapping[str, bytes], seconds: float = 0.0, key: Key | None = None) -> bytes:
    """The object of that name, signed if there is a key."""
    content = b"".join(files.values())
    sizes = [[plain(file), len(data)] for file, data in files.items()]
    index = json.dumps({"name": name, "seconds": round(seconds, 3), "files": sizes}, separators=(",", ":")).encode()
    fixed = FIXED.pack(MAGIC, FORMAT, len(index), HEADER + len(index) + len(content))
    digest = digest_of(fixed, index, content)
    mark = NO_MARK if key is None else key.sign(purpose_of(name), digest)
    return b"".join((fixed, mark, digest, index, content))


def unpack(name: str, data: bytes, key: Key | None = None) -> Entry:
    """Return the entry in an object; Unusable unless it is whole, has that name and, with a key, its signature."""
    if len(data) < HEADER or not data.startswith(MAGIC):
        raise Unusable("damaged", "it is no entry of this cache")
    _, version, index_size, total = FIXED.unpack_from(data)
    if version != FORMAT:
        raise Unusable("damaged", f"it has version {version} of the format, and this tilework reads version {FORMAT}")
    if total != len(data) or index_size > min(LARGEST_INDEX, total - HEADER):
        raise Unusable("damaged", f"it has {len(data)} bytes, not {total}")
    view = memoryview(data)
    fixed, mark, digest = view[: FIXED.size], data[FIXED.size : HEADER - DIGEST], data[HEADER - DIGEST : HEADER]
    index, content = view[HEADER : HEADER + index_size], view[HEADER + index_size :]
    if not hmac.compare_digest(digest_of(fixed, index, content), digest):
        raise Unusable("damaged", "it does not have its checksum")
    if key is not None:
        try:
            key.check(purpose_of(name), digest, mark)
        except BadSignature as error:
            raise Unusable("signature", str(error)) from None
    try:
        return read_index(name, bytes(index), content)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise Unusable("damaged", f"its index says nothing sensible: {error}") from None


def read_index(name: str, text: bytes, content: memoryview) -> Entry:
    """The files of a verified object; ValueError or the like where the index is not one of this name."""
    index: dict[str, Any] = json.loads(text)
    if index["name"] != name:
        raise ValueError(f"it is the entry {index['name']!r}")
    seconds = float(index["seconds"])
    files: dict[str, bytes] = {}
    start = 0
    for file, size in index["files"]:
        if type(size) is not int or size < 0 or len(plain(file).encode()) > LONGEST_NAME or file in files:
            raise ValueError(f"the file {str(file)[:80]!r}")
        files[file] = bytes(content[start : start + size])
        start += size
    if start != len(content):
        raise ValueError("the sizes of its files")
    return Entry(files, min(seconds, LONGEST) if seconds > 0 else 0.0)


def digest_of(*parts: bytes | memoryview) -> bytes:
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.digest()


def purpose_of(name: str) -> str:
    """Return the purpose that the signature of an object covers."""
    return f"tilework entry {FORMAT} {name}"
