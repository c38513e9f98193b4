"""The file with compiled kernels: what is written is read, and anything else is an error before a byte of it is
used."""

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest

from tests.runtime.test_signing import key_pair
from tilework.errors import BundleError
from tilework.runtime.bundle.bundle_file import (
    FIXED,
    FORMAT,
    HEADER,
    NO_MARK,
    BundleFile,
    Contents,
    Entry,
    bundle_bytes,
    write_bundle,
)
from tilework.runtime.signing import MARK, Key

CONTENTS = Contents(
    targets=[{"backend": "cpu", "arch": "host"}, {"backend": "cuda", "arch": 90}],
    kernels=[{"name": "add", "source": "ab" * 32}],
    entries=[
        Entry(1, 0, "k1", {"json": b"{ }", "cubin": b"\x7fELF gpu"}),
        Entry(0, 0, "k1", {"json": b"{ }", "obj": b"\x7fELF cpu"}),
        Entry(0, 0, "k0", {"json": b'{"n": 1}', "obj": b""}),
    ],
    blobs={"manifest": b"[]\n"},
)
KEY = b"a key"


def content_of(path: Path, **checks: object) -> object:
    """Return the contents of a file, verified."""
    bundle = BundleFile.open(path, **checks)  # type: ignore[arg-type]
    entries = [(entry.target, entry.kernel, entry.key, bundle.files(entry)) for entry in bundle.entries()]
    bundle.verify()
    return bundle.targets, bundle.kernels, entries, {name: bundle.blob(name) for name in bundle.blobs}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    digest = write_bundle(file := tmp_path / "a.tilebundle", CONTENTS)
    bundle = BundleFile.open(file, digest=digest.upper())
    entry = bundle.find(1, "k1")
    assert entry is not None and bundle.files(entry) == {"json": b"{ }", "cubin": b"\x7fELF gpu"}
    assert bundle.find(1, "k0") is None and bundle.blob("nothing") is None
    assert (bundle.digest, bundle.is_signed) == (digest, False)
    _, _, entries, blobs = content_of(file)  # type: ignore[misc]
    assert [row[:3] for row in entries] == [(0, 0, "k0"), (0, 0, "k1"), (1, 0, "k1")] and blobs == CONTENTS.blobs
    assert os.listdir(tmp_path) == ["a.tilebundle"]


def test_the_same_contents_are_the_same_bytes() -> None:
    backwards = Contents(CONTENTS.targets, CONTENTS.kernels, CONTENTS.entries[::-1], CONTENTS.blobs)
    assert bundle_bytes(CONTENTS) == bundle_bytes(backwards) and bundle_bytes(CONTENTS).count(b"{ }") == 1


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "signed"])
def test_every_flipped_byte_is_an_error(tmp_path: Path, key: bytes | None) -> None:
    file, data = tmp_path / "a.tilebundle", bundle_bytes(CONTENTS, key)
    file.write_bytes(data)
    content_of(file, key=key)
    handle = os.open(file, os.O_RDWR)
    for position, byte in enumerate(data):
        os.pwrite(handle, bytes([byte ^ 1 << position % 8]), position)
        with pytest.raises(BundleError, match=r"a\.tilebundle"):
            content_of(file)  # the key is not needed to see it
        os.pwrite(handle, bytes([byte]), position)
    os.close(handle)
    content_of(file, key=key)


def test_every_length_but_the_right_one_is_an_error(tmp_path: Path) -> None:
    file, data = tmp_path / "a.tilebundle", bundle_bytes(CONTENTS)
    file.write_bytes(data)
    for size in reversed(range(len(data))):
        os.truncate(file, size)
        with pytest.raises(BundleError, match=r"cut short|no bundle"):
            BundleFile.open(file)
    file.write_bytes(data + b"\0")
    with pytest.raises(BundleError, match="damaged"):
        BundleFile.open(file)


def test_who_recomputes_the_hashes_needs_the_key_or_meets_the_digest(tmp_path: Path) -> None:
    digest = write_bundle(file := tmp_path / "a.tilebundle", CONTENTS, KEY)
    evil = Contents(CONTENTS.targets, CONTENTS.kernels, [Entry(0, 0, "k1", {"json": b"{ }", "obj": b"evil"})])
    content_of(file, key=KEY, digest=digest)
    write_bundle(file, evil, b"another key")
    content_of(file)  # by itself it is whole
    with pytest.raises(BundleError, match="another key"):
        BundleFile.open(file, key=KEY)
    with pytest.raises(BundleError, match=f"not {digest}"):
        BundleFile.open(file, digest=digest)
    write_bundle(file, evil)
    with pytest.raises(BundleError, match="not signed"):
        BundleFile.open(file, key=KEY)


def test_a_signature_fits_into_the_header() -> None:
    assert len(NO_MARK) == MARK.size


def test_readers_with_a_public_key_cannot_sign(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    private, public = key_pair()
    (_, stranger) = key_pair()
    write_bundle(file := tmp_path / "a.tilebundle", CONTENTS, private)
    for key in (private, public, public.encode(), Key.of(public), stranger + public):
        content_of(file, key=key)
    with pytest.raises(BundleError, match=f"another key.*{Key.of(public).name}, not with {Key.of(stranger).name}"):
        BundleFile.open(file, key=stranger)
    with pytest.raises(BundleError, match=r"the key of a bundle is none: .* no whole key"):
        BundleFile.open(file, key=public.encode()[:40])
    with pytest.raises(BundleError, match="a public one, which cannot sign"):
        write_bundle(tmp_path / "b.tilebundle", CONTENTS, public)
    assert not (tmp_path / "b.tilebundle").exists()


def test_a_file_that_changes_while_it_is_open_is_not_believed(tmp_path: Path) -> None:
    write_bundle(file := tmp_path / "a.tilebundle", CONTENTS)
    bundle = BundleFile.open(file)
    entry = bundle.find(0, "k1")
    assert entry is not None
    data = bytearray(file.read_bytes())
    data[data.index(b"ELF cpu")] ^= 1
    with file.open("r+b") as same:  # in place: the reader has this very file open
        same.write(data)
    with pytest.raises(BundleError, match="nothing of it is used"):
        bundle.files(entry)


def repacked(change: str, value: object) -> bytes:
    """Return a complete bundle with correct hashes and a changed index."""
    data = bundle_bytes(CONTENTS)
    size = FIXED.unpack_from(data)[3]
    index = json.loads(data[HEADER : HEADER + size])
    index[change] = value
    text = json.dumps(index).encode()
    sections = data[HEADER + size :]
    fixed = FIXED.pack(data[:8], FORMAT, 0, len(text), HEADER + len(text) + len(sections)) + NO_MARK
    return fixed + hashlib.sha256(fixed + text).digest() + text + sections


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("sections", [[1 << 60, "00"]]),
        ("sections", [[-1, "00"]]),
        ("sections", 7),
        ("sections", [["8", "00"]]),
        ("targets", []),
        ("targets", [1]),
        ("entries", [{"k": [99, {}]}, {}]),
        ("entries", [{"k": 3}, {}]),
        ("entries", [{"k": [0, {"json": 99}]}, {}]),
        ("entries", [{"k": [0, {"json": "x"}]}, {}]),
        ("blobs", {"manifest": -9}),
        ("blobs", None),
        ("tilework", ["0"]),
    ],
)
def test_an_index_of_someone_else(tmp_path: Path, change: str, value: object) -> None:
    (file := tmp_path / "a.tilebundle").write_bytes(repacked(change, value))
    with pytest.raises(BundleError, match=r"a\.tilebundle"):
        content_of(file)


def test_other_versions_are_named(tmp_path: Path) -> None:
    file = tmp_path / "a.tilebundle"
    file.write_bytes(bundle_bytes(CONTENTS, version="9.9"))
    with pytest.raises(BundleError, match=r"compiled by tilework 9\.9.*precompile"):
        BundleFile.open(file)
    data = bytearray(bundle_bytes(CONTENTS))
    data[8:12] = struct.pack("<I", 7)
    file.write_bytes(data)
    with pytest.raises(BundleError, match="version 7 of the format"):
        BundleFile.open(file)
    with pytest.raises(BundleError, match="cannot be read"):
        BundleFile.open(tmp_path / "none")
    with pytest.raises(BundleError, match="cannot be read"):
        BundleFile.open(tmp_path)
