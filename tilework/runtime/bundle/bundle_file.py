"""The format of the file with compiled kernels: layout, writing and reading. It imports only the errors of tilework.

    write_bundle("app.tilebundle", Contents(targets=[...], kernels=[...], entries=[...], blobs={...}))
    bundle = BundleFile.open("app.tilebundle")              the header and the index are verified here
    entry = bundle.find(target=0, key="5e1f...")            by the index of a target and the key of a specialisation
    files = bundle.files(entry)                             {"json": ..., "obj": ...}: each verified when it is read

    offset  size
    0       8      magic: 89 54 57 42 4E 44 4C 0A (".TWBNDL\\n"); a transfer as text would destroy it
    8       4      version of this format                                           (all integers little-endian)
    12      4      0
    16      8      bytes of the index
    24      8      bytes of the file
    32      80     the signature of bytes 0 to 31 and the index with the writer's key (`signing.py`); zeros without one
    112     32     SHA-256 of bytes 0 to 111 and the index: the digest of the bundle
    144     ...    the index, JSON
    ...     ...    the sections, one behind the other, nothing between or behind them

The index says the size and the SHA-256 of every section, so the digest covers every byte of the file. It is all that is
read when a bundle is opened; a section is read, and compared with its hash, when a launch needs it, and the bytes that
were compared are the bytes that are used: the file is not read again. Equal sections are there once. The same contents
give the same bytes.

| in the index | |
|---|---|
| `tilework` | the version that compiled; no other one reads it, because how kernels are launched may have changed |
| `targets` | a dictionary each: `backend`, `arch`, `warp_size` and what a machine must have (`needs`) |
| `kernels` | `name`, `module`, and `source`, the hash of its text, its callees and the globals that it reads |
| `sections` | `[size, sha256]` in the order of the file |
| `entries` | for each target, by key: `[kernel, {extension: section}]` |
| `facts` | what else is known of the compilation (`python`: its version) |
| `blobs` | name to section: whatever else the runtime needs (the manifest, tunings, machine code of launchers) |
"""

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tilework.errors import BundleError
from tilework.version import __version__

if TYPE_CHECKING:
    from tilework.runtime.signing import Key

MAGIC = b"\x89TWBNDL\n"
FORMAT = 3
FIXED = struct.Struct("<8sIIQQ")
DIGEST = 32
NO_MARK = bytes(80)  # an unsigned header; `signing.py` is not imported, because most programs do not need it
HEADER = FIXED.size + len(NO_MARK) + DIGEST
PURPOSE = "tilework bundle"
AnyKey: TypeAlias = "Key | str | bytes | None"
LARGEST_INDEX = 1 << 26  # some 100,000 kernels
PLAIN_SUFFIX = "-plain"


# plain classes: every process that serves imports this file, and dataclasses take a millisecond to be made


class Entry:
    """One specialisation of a kernel for one target: indices of the target and the kernel, and its files by extension.

    The files are those of an entry of the disk cache: ``json`` is the metadata, another one the binary that it names.
    They are contents when it is written, indices of sections when it is read.
    """

    def __init__(self, target: int, kernel: int, key: str, files: Mapping[str, Any]) -> None:
        self.target, self.kernel, self.key, self.files = target, kernel, key, files

    @property
    def is_plain(self) -> bool:
        """True for code without the launch preconditions of another entry."""
        return self.key.endswith(PLAIN_SUFFIX)


class Counts(NamedTuple):
    """The number of kernels, and of compilations of them: one for each specialisation and target."""

    kernels: int
    specialisations: int

    @classmethod
    def of(cls, kernels: Sequence[Mapping[str, Any]], entries: Iterable[Entry]) -> "Counts":
        """Count entries; `kernels` are those of the whole bundle."""
        names = [kernels[entry.kernel]["name"] for entry in entries if not entry.is_plain]
        return cls(len(set(names)), len(names))

    def __str__(self) -> str:
        kernels, specialisations = ("s" if number != 1 else "" for number in self)
        return f"{self.kernels} kernel{kernels} in {self.specialisations} specialisation{specialisations}"


class Contents:
    """The contents of a bundle."""

    def __init__(
        self,
        targets: Sequence[Mapping[str, Any]],
        kernels: Sequence[Mapping[str, Any]],
        entries: Sequence[Entry],
        blobs: Mapping[str, bytes] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.targets, self.kernels, self.entries = targets, kernels, entries
        self.blobs, self.facts = blobs or {}, facts or {}


def bundle_bytes(contents: Contents, key: AnyKey = None, version: str = __version__) -> bytes:
    """Return the bytes of a bundle, signed if there is a key."""
    sections: dict[bytes, int] = {}  # index by content
    rows: list[dict[str, Any]] = [{} for _ in contents.targets]

    def section_of(data: bytes) -> int:
        return sections.setdefault(bytes(data), len(sections))

    for entry in sorted(contents.entries, key=lambda entry: (entry.target, entry.kernel, entry.key)):
        if entry.key in rows[entry.target]:
            raise ValueError(f"two entries of target {entry.target} have the key {entry.key}")
        files = {name: section_of(data) for name, data in sorted(entry.files.items())}
        rows[entry.target][entry.key] = [entry.kernel, files]
    blobs = {name: section_of(data) for name, data in sorted(contents.blobs.items())}
    index = json.dumps(
        {
            "tilework": version,
            "targets": list(contents.targets),
            "kernels": list(contents.kernels),
            "sections": [[len(data), hashlib.sha256(data).hexdigest()] for data in sections],
            "entries": rows,
            "blobs": blobs,
            "facts": dict(contents.facts),
        },
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    total = HEADER + len(index) + sum(map(len, sections))
    fixed = FIXED.pack(MAGIC, FORMAT, 0, len(index), total)
    try:
        fixed += NO_MARK if (signer := key_of(key)) is None else signer.sign(PURPOSE, fixed + index)
    except ValueError as error:  # a public key
        raise BundleError(f"the bundle cannot be signed: {error}") from error
    return b"".join((fixed, hashlib.sha256(fixed + index).digest(), index, *sections))


def write_bundle(path: str | os.PathLike[str], contents: Contents, key: AnyKey = None) -> str:
    """Replace a bundle atomically, and return its digest; processes that read the old one keep it."""
    data, path = bundle_bytes(contents, key), os.fspath(path)
    temporary = f"{path}.{os.getpid()}-{os.urandom(6).hex()}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return data[HEADER - DIGEST : HEADER].hex()


def key_of(key: AnyKey) -> "Key | None":
    """Return the key in a text: a secret, or an Ed25519 key in PEM."""
    if not isinstance(key, str | bytes):
        return key
    from tilework.runtime.signing import Key  # lazily: few bundles are signed

    try:
        return Key.of(key)
    except ValueError as error:
        raise BundleError(f"the key of a bundle is none: {error}") from error


class BundleFile:
    """An open bundle whose index has been verified; see the module. Use `open`."""

    def __init__(self, path: str, handle: int, read: "Verified") -> None:
        self.path, self.digest, self.is_signed = path, read.digest, read.is_signed
        start, index = read.sections_at, read.index
        try:
            self.version: str = index["tilework"]
            self.targets: list[dict[str, Any]] = [dict(target) for target in index["targets"]]
            self.kernels: list[dict[str, Any]] = [dict(kernel) for kernel in index["kernels"]]
            self._entries: list[dict[str, Any]] = [dict(rows) for rows in index["entries"]]
            self.facts: dict[str, Any] = dict(index["facts"])
            self._blobs: dict[str, int] = dict(index["blobs"])
            self._sections: list[tuple[int, int, str]] = []
            for size, checksum in index["sections"]:
                if not isinstance(size, int) or size < 0 or not isinstance(checksum, str):
                    raise ValueError(f"section {len(self._sections)} has the size {size!r}")
                self._sections.append((start, size, checksum))
                start += size
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"{path} has an index that says nothing sensible: {error}") from None
        if len(self._entries) != len(self.targets) or start != read.size:
            raise BundleError(f"{path} has an index that does not describe this file")
        self._handle = handle

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        digest: str | None = None,
        key: AnyKey = None,
        version: str = __version__,
    ) -> "BundleFile":
        """Open and verify a file, which must have the `digest`, and be signed with `key`, where these are given."""
        path = os.fspath(path)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe is no reason to wait
        except OSError as error:
            raise BundleError(f"the bundle {path} cannot be read: {error.strerror}") from error
        try:
            read = verified(path, handle, digest, key)
            made = read.index.get("tilework")
            if made != version:
                raise BundleError(
                    f"{path} was compiled by tilework {made}, and this is {version}: compile it again, `tilework"
                    " precompile`"
                )
            return cls(path, handle, read)
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                raise BundleError(f"the bundle {path} cannot be read: {error.strerror}") from error
            raise

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # `os` may be gone by then
        if (handle := self.__dict__.pop("_handle", None)) is not None:
            close(handle)

    def section(self, position: int) -> bytes:
        """Return a section, verified."""
        try:
            start, size, checksum = self._sections[position]
        except (IndexError, TypeError):
            raise BundleError(f"{self.path} has no section {position!r}") from None
        try:
            data = read_all(self._handle, size, start)
        except OSError as error:
            raise BundleError(f"the bundle {self.path} cannot be read: {error.strerror}") from error
        if len(data) != size or hashlib.sha256(data).hexdigest() != checksum:
            raise BundleError(
                f"{self.path} is damaged: section {position} is not what was written; nothing of it is used"
            )
        return data

    def find(self, target: int, key: str) -> Entry | None:
        """Return the entry of a specialisation for the target of that index."""
        row = self._entries[target].get(key)
        return None if row is None else self._entry(target, key, row)

    def _entry(self, target: int, key: str, row: Any) -> Entry:
        try:
            kernel, files = row
            self.kernels[kernel]
            return Entry(target, kernel, key, {str(name): position for name, position in files.items()})
        except (IndexError, TypeError, ValueError, AttributeError):
            raise BundleError(f"{self.path} has an index that says nothing sensible about {key}") from None

    def entries(self) -> Iterator[Entry]:
        """Return all entries, target by target."""
        for target, rows in enumerate(self._entries):
            for key, row in rows.items():
                yield self._entry(target, key, row)

    def files(self, entry: Entry) -> dict[str, bytes]:
        """The files of an entry by extension, verified."""
        return {name: self.section(position) for name, position in entry.files.items()}

    def blob(self, name: str) -> bytes | None:
        """Return the blob of a name, verified; None if there is none."""
        return self.section(self._blobs[name]) if name in self._blobs else None

    @property
    def blobs(self) -> list[str]:
        return list(self._blobs)

    def sizes(self, entry: Entry) -> dict[str, int]:
        """Bytes of each file of an entry."""
        return {name: self._sections[position][1] for name, position in entry.files.items()}

    def verify(self) -> None:
        """Verify every section, used or not."""
        for position in range(len(self._sections)):
            self.section(position)


class Verified:
    """The verified header and index of a file."""

    def __init__(self, digest: str, index: Mapping[str, Any], is_signed: bool, sections_at: int, size: int) -> None:
        self.digest, self.index, self.is_signed = digest, index, is_signed
        self.sections_at, self.size = sections_at, size


def verified(path: str, handle: int, digest: str | None, key: AnyKey) -> Verified:
    """Read the header and the index, and verify them."""
    header = read_all(handle, HEADER, 0)
    if header[: len(MAGIC)] != MAGIC[: len(header)] or not header:
        raise BundleError(f"{path} is no bundle of compiled kernels: it begins with {header[: len(MAGIC)]!r}")
    if len(header) < HEADER:
        raise BundleError(f"{path} is cut short: it has {len(header)} bytes, and the header of a bundle has {HEADER}")
    _, version, reserved, index_size, total = FIXED.unpack_from(header)
    if version != FORMAT:
        raise BundleError(f"{path} has version {version} of the format, and this tilework reads version {FORMAT}:"
                          " compile it"
                          " again, `tilework precompile`")  # fmt: skip
    size = os.fstat(handle).st_size
    if size != total:
        raise BundleError(f"{path} is {'cut short' if size < total else 'damaged'}: it has {size} bytes, not {total}")
    if reserved or index_size > min(total - HEADER, LARGEST_INDEX):
        raise BundleError(f"{path} is damaged: its header says nothing sensible")
    index, signed = read_all(handle, index_size, HEADER), header[: HEADER - DIGEST]
    found = hashlib.sha256(signed + index).hexdigest()
    if found != header[HEADER - DIGEST :].hex():
        raise BundleError(f"{path} is damaged: its digest is not that of its index; nothing of it is used")
    if digest is not None and found != digest.lower():
        raise BundleError(f"{path} is not the requested bundle: its digest is {found}, not {digest}")
    mark, is_signed = signed[FIXED.size :], signed[FIXED.size :] != NO_MARK
    if (verifier := key_of(key)) is not None:
        if not is_signed:
            raise BundleError(
                f"{path} is not signed, and TILEWORK_BUNDLE_KEY requires a signature: compile it with that key"
            )
        from tilework.runtime.signing import BadSignature  # lazily: few bundles are signed

        try:
            verifier.check(PURPOSE, signed[: FIXED.size] + index, mark)
        except BadSignature as error:
            raise BundleError(f"{path} is signed with another key, or was changed without the key: {error}") from None
    try:
        parsed = json.loads(index)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise BundleError(f"{path} has an index that is not JSON")
    return Verified(found, parsed, is_signed, HEADER + index_size, size)


def read_all(handle: int, size: int, offset: int) -> bytes:
    """Return `size` bytes from an offset of a file; fewer if it ends before."""
    data = os.pread(handle, size, offset)
    while len(data) < size and (more := os.pread(handle, size - len(data), offset + len(data))):
        data += more
    return data
