"""One compiled kernel on disk: a folder that appears whole, or not at all.

    ~/.triton/cache/
      VOV2XK5L.../                  one entry, named by its key
        add.ttir, add.json, ...     the files
        __grp__add.json             their names, paths, sizes and SHA-256, and how long compiling took: the manifest
        .tilework                   empty; its time is that of the last use, and it marks the folder as ours
      .tmp/3141-9f86d081.../        an entry being written, or being deleted
      .remote/                      notes on the state of the cache that machines share

A writer fills a folder under ``.tmp`` and renames it to its final path, so a process killed at any moment leaves the
old entry or the new one. Nothing is locked. Of two writers, one renames first; the other finds the same content there,
or exchanges the two folders in one step, or keeps the first folder where the file system cannot exchange them. A reader
opens the folder once and reads through that handle, so it never mixes two versions, and it verifies the checksums of
what it reads. Because of the checksums, entries need no fsync: a power cut can only leave an entry that readers
recognise as damaged and build again. Folders and files that another user owns or may write are not read.
"""

import errno
import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, TypeVar

STAMP = ".tilework"
SCRATCH = ".tmp"
NOTES = ".remote"  # what is known of the shared cache
GROUP = "__grp__"
FORMAT = 1
TOUCH_EVERY = 600.0  # seconds; the last use is known this precisely
ATTEMPTS = 5  # another process may delete folders that an operation needs

TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})
# what a file of a damaged entry answers; anything else (no handles left, a lost server) says nothing about the entry
BROKEN = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EIO})

Manifest = dict[str, Any]
T = TypeVar("T")


class Damaged(Exception):
    """An entry whose content is not what was written; the message says what is wrong, and `folder` names it."""

    folder: os.stat_result | None = None


class EntryStore:
    """The entries below one folder: ``EntryStore(knobs.cache.dir).read("VOV2XK5L...", "add.json")``.

    Without `private` (dumps and overrides, which their user edits) owners and permissions do not matter.
    """

    def __init__(self, root: str, private: bool = True) -> None:
        self.root, self.private = root, private

    def path(self, folder: str) -> str:
        return os.path.join(self.root, folder)

    def read(self, folder: str, group: str) -> dict[str, bytes] | None:
        """Return the checked files of a group; None when there is none. Damage raises `Damaged`, a bad root OSError."""
        if not self.check_root():
            return None
        path = self.path(folder)
        for _ in range(ATTEMPTS):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Damaged(f"{path} is not a directory") from error
                return None
            try:
                if self.private and not is_private(os.fstat(handle)):
                    return None
                files = read_group(handle, group)
                touch(handle)
                return files
            except Damaged as error:
                if is_same_folder(handle, path) and has_file(handle, manifest_name(group)):
                    error.folder = os.fstat(handle)
                    raise  # otherwise it was replaced or deleted while we read: look again
            except OSError:
                return None
            finally:
                os.close(handle)
        return None

    def write(self, folder: str, group: str, files: Mapping[str, bytes], seconds: float = 0.0) -> dict[str, str]:
        """Write a group, whose compilation took `seconds`, all files in one step; return the path of each. OSError when
        the disk does not take it."""
        path = self.path(folder)
        paths = {file: os.path.join(path, file) for file in files}
        manifest = make_manifest(paths, {file: digest(data) for file, data in files.items()}, seconds)
        content = {**files, manifest_name(group): json.dumps(manifest).encode(), STAMP: b""}
        if self.holds(folder, group, manifest):
            return paths

        def attempt() -> dict[str, str]:
            with self.temporary() as temporary:
                for file, data in content.items():
                    write_file(os.path.join(temporary, plain(file)), data)
                self.install(temporary, folder, group, manifest)
            return paths

        return retried(attempt)

    def seconds(self, folder: str, group: str) -> float:
        """Return the seconds that the compilation of a group took; 0 if they are not known."""
        manifest = read_manifest(os.path.join(self.path(folder), manifest_name(group))) or {}
        found = manifest.get("seconds")
        return found if isinstance(found, float) and 0 < found < math.inf else 0.0

    def put(self, folder: str, file: str, data: bytes) -> str:
        """Put one file into an entry, which is made if need be; its path. It has no checksum, so it is flushed."""
        path = os.path.join(self.path(folder), plain(file))

        def attempt() -> str:
            self.make_entry(folder)
            with self.temporary() as temporary:
                source = os.path.join(temporary, file)
                write_file(source, data, flush=True)
                os.replace(source, path)
            return path

        return retried(attempt)

    def file(self, folder: str, file: str) -> str | None:
        """The path of one file, if it exists and only this user can have written it; this counts as a use."""
        path = os.path.join(self.path(folder), file)
        try:
            owner, content = os.lstat(self.path(folder)), os.stat(path)
            if self.private and not (self.check_root() and is_private(owner) and is_private(content)):
                return None
            touch(self.path(folder))
        except OSError:
            return None
        return path

    def discard(self, folder: str, damaged: os.stat_result | None = None) -> None:
        """Delete an entry, in one step for other processes; with `damaged`, only if it is still that folder."""
        path, scratch = self.path(folder), os.path.join(self.root, SCRATCH)
        aside = os.path.join(scratch, unique_name())
        try:
            make_folders(scratch)
            os.rename(path, aside)
        except OSError:  # no rename on this file system (a lower layer of an overlay): the manifests go first
            with suppress(OSError):
                for file in sorted(os.listdir(path), key=lambda file: not file.startswith(GROUP)):
                    os.unlink(os.path.join(path, file))
            remove_tree(path)
            return
        if damaged is not None and not os.path.samestat(os.lstat(aside), damaged):
            with suppress(OSError):  # it was replaced in the meantime: put the new one back, unless there is a newer
                os.rename(aside, path)
                return
        remove_tree(aside)

    def check_root(self) -> bool:
        """Return True if the root exists; raise OSError if it is not a folder of this user's."""
        try:
            info = os.stat(self.root)
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(info.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", self.root)
        if self.private and not is_private(info):
            raise PermissionError(errno.EPERM, not_private(info), self.root)
        return True

    @contextmanager
    def temporary(self) -> Iterator[str]:
        """Yield a new empty folder below ``.tmp``, on the file system of the entries; it is deleted at the end."""
        scratch = os.path.join(self.root, SCRATCH)
        if not self.check_root():
            make_folders(self.root)
        path = os.path.join(scratch, unique_name())
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            make_folders(scratch)
            os.mkdir(path, 0o700)
        if self.private and not is_private(info := os.lstat(scratch)):
            os.rmdir(path)
            raise PermissionError(errno.EPERM, not_private(info), scratch)
        try:
            yield path
        finally:
            remove_tree(path)

    def claim_path(self, folder: str) -> str | None:
        """The file by which a process claims to make an entry (`claims.py`); None where no file can be made."""
        scratch = os.path.join(self.root, SCRATCH)
        try:
            if not self.check_root() or not os.path.isdir(scratch):
                make_folders(scratch)
            if not self.private or is_private(os.lstat(scratch)):
                return os.path.join(scratch, f"{folder}.claim")
        except OSError:
            pass
        return None

    def make_entry(self, folder: str) -> None:
        """Make an empty entry, unless there is one."""
        path = self.path(folder)
        with suppress(FileNotFoundError):
            info = os.lstat(path)
            if stat.S_ISDIR(info.st_mode) and (is_private(info) or not self.private):
                return
            self.discard(folder, info)
        with self.temporary() as temporary:
            write_file(os.path.join(temporary, STAMP), b"")
            rename_unless_taken(temporary, path)

    def install(self, temporary: str, folder: str, group: str, manifest: Manifest) -> None:
        """Rename a full folder to the path of its entry; keep an entry that is equal, replace one that is not."""
        path = self.path(folder)
        try:
            os.rename(temporary, path)
            return
        except OSError as error:
            if error.errno not in TAKEN:
                raise
        if self.holds(folder, group, manifest):
            return
        carry_over(path, temporary, group)
        if exchange(temporary, path) or self.is_whole(folder, group):
            return  # without an atomic exchange the first entry is kept: two renames would leave a gap
        with self.temporary() as aside:
            try:
                os.rename(path, os.path.join(aside, folder))
            except OSError:
                self.discard(folder)
            rename_unless_taken(temporary, path)

    def holds(self, folder: str, group: str, manifest: Manifest) -> bool:
        """Return True if a group is stored completely and with the same content."""
        path = os.path.join(self.path(folder), manifest_name(group))
        return compared(read_manifest(path)) == compared(manifest) and self.is_whole(folder, group)

    def is_whole(self, folder: str, group: str) -> bool:
        """Return True if a group is stored and undamaged."""
        try:
            return self.read(folder, group) is not None
        except Damaged:
            return False


def rename_unless_taken(temporary: str, path: str) -> None:
    """Rename an entry to its path, unless another writer was faster, whose entry is as good."""
    try:
        os.rename(temporary, path)
    except OSError as error:
        if error.errno not in TAKEN or not os.path.isdir(path):
            raise


def retried(attempt: Callable[[], T]) -> T:
    """Return `attempt()`; repeat it if another process deletes the folders it works in."""
    for _ in range(ATTEMPTS - 1):
        with suppress(FileNotFoundError):
            return attempt()
    return attempt()


def digest(data: bytes) -> dict[str, Any]:
    """Return the record of a file in a manifest."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def make_manifest(paths: Mapping[str, str], files: Mapping[str, dict[str, Any]], seconds: float = 0.0) -> Manifest:
    """The content of ``__grp__<name>.json``; Triton's tools read `child_paths`."""
    known = {"seconds": round(seconds, 3)} if seconds else {}
    return {"child_paths": dict(paths), "format": FORMAT, "files": dict(files), **known}


def compared(manifest: Manifest | None) -> Manifest | None:
    """Return what equal entries have in common: two compilations do not take the same time."""
    return manifest and {**manifest, "seconds": None}


def manifest_name(group: str) -> str:
    """add.json -> __grp__add.json: a group is named after the file with a kernel's metadata."""
    return GROUP + plain(group)


def read_manifest(path: str) -> Manifest | None:
    """A manifest that we wrote, or None."""
    try:
        with open(path, "rb") as source:
            return parse_manifest(source.read())
    except OSError:
        return None


def parse_manifest(text: bytes) -> Manifest | None:
    """Return the manifest in a text; None if it is not a valid one."""
    try:
        manifest = json.loads(text)
    except ValueError:
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None


def read_group(handle: int, group: str) -> dict[str, bytes]:
    """The files of a group of the open folder, each read once and checked. FileNotFoundError without a manifest."""
    if not has_file(handle, manifest_name(group)):
        raise FileNotFoundError(manifest_name(group))
    try:
        entries = json.loads(read_file(handle, manifest_name(group)))["files"]
        listed = [(file, facts["size"], facts["sha256"]) for file, facts in entries.items()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Damaged(f"{manifest_name(group)} is not a manifest") from error
    files: dict[str, bytes] = {}
    for file, size, checksum in listed:
        data = read_file(handle, file, size)
        if len(data) != size:
            raise Damaged(f"{file} should have {size} bytes")
        if hashlib.sha256(data).hexdigest() != checksum:
            raise Damaged(f"{file} does not have the checksum {checksum}")
        files[file] = data
    return files


def read_file(handle: int, file: str, size: int = 1 << 16) -> bytes:
    """All of a file of the open folder, of about `size` bytes."""
    if os.sep in file:
        raise Damaged(f"{file!r} is not a file name")
    try:
        source = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=handle)
        try:
            info = os.fstat(source)
            if not stat.S_ISREG(info.st_mode) or not is_private(info):
                raise Damaged(f"{file} is not a private file")
            parts = [data := os.read(source, size + 1)]
            while data:
                parts.append(data := os.read(source, 1 << 20))
            return b"".join(parts)
        finally:
            os.close(source)
    except OSError as error:
        if error.errno not in BROKEN:
            raise
        raise Damaged(f"{file}: {error.strerror}") from error


def write_file(path: str, data: bytes, flush: bool = False) -> None:
    """Write a new file."""
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:  # a disk that is almost full takes a part, and refuses at the next call
            view = view[os.write(target, view) :]
        if flush:
            os.fsync(target)
    finally:
        os.close(target)


def plain(file: str) -> str:
    """`file`, which must name a file inside its folder."""
    if not file or os.sep in file or "\0" in file or file in (".", ".."):
        raise ValueError(f"{file!r} is not the name of a cache file")
    return file


def has_file(handle: int, file: str) -> bool:
    """Return True if the open folder has a file of that name."""
    try:
        os.stat(file, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return False
    return True


def is_same_folder(handle: int, path: str) -> bool:
    """Return True if the open folder is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def is_private(info: os.stat_result) -> bool:
    """Return True if only this user or root can have written a file; a sticky folder keeps others from replacing it."""
    sticky = stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX
    return info.st_uid in (os.geteuid(), 0) and bool(sticky or not info.st_mode & 0o022)


def not_private(info: os.stat_result) -> str:
    """Return the reason that `is_private` is False."""
    if info.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {info.st_uid}"
    return "others may write to it (chmod go-w makes it private)"


def touch(folder: int | str) -> None:
    """Record the use of an entry, given open or by path; rarely, because a write costs more than a read."""
    try:
        if isinstance(folder, int):
            if abs(time.time() - os.stat(STAMP, dir_fd=folder).st_mtime) > TOUCH_EVERY:
                os.utime(STAMP, dir_fd=folder)
        elif abs(time.time() - os.stat(stamp := os.path.join(folder, STAMP)).st_mtime) > TOUCH_EVERY:
            os.utime(stamp)
    except OSError:  # another process deleted it, or a read-only disk: the order of eviction is a guess there anyway
        return


def unique_name() -> str:
    """Return a name that no other process on any machine uses."""
    return f"{os.getpid()}-{os.urandom(12).hex()}"


def make_folders(path: str) -> None:
    """Make a folder and those above it, all private; another process may be doing the same."""
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        parent = os.path.dirname(path.rstrip(os.sep))
        if not parent or os.path.isdir(parent):  # /proc and its like take no folders
            raise
        make_folders(parent)
        make_folders(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", path) from None


def remove_tree(path: str) -> None:
    """Delete a file or folder that may be gone already."""
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            import shutil  # lazily: slow to load, and most processes delete nothing

            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def carry_over(old: str, new: str, group: str) -> None:
    """Give the successor of an entry the files that belong to other groups or to none."""
    superseded = (read_manifest(os.path.join(old, manifest_name(group))) or {}).get("files", {})
    with suppress(OSError), os.scandir(old) as entries:
        for entry in entries:
            target = os.path.join(new, entry.name)
            if entry.name in superseded or not entry.is_file(follow_symlinks=False) or os.path.exists(target):
                continue
            if not is_private(entry.stat(follow_symlinks=False)):
                continue
            try:
                os.link(entry.path, target)
            except OSError:  # no hard links on this file system
                import shutil  # lazily, as above

                shutil.copyfile(entry.path, target)


def exchange(one: str, other: str) -> bool:
    """Exchange two paths in one step; return False where the system cannot. FileNotFoundError if one is gone."""
    if (call := renameat2()) is None:
        return False
    here, exchange_flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE: linux/fcntl.h, linux/fs.h
    code = call(here, os.fsencode(one), here, os.fsencode(other), exchange_flag)
    if code != 0:
        import ctypes  # lazily: few programs need it, and it is slow to load

        if ctypes.get_errno() == errno.ENOENT:
            raise FileNotFoundError(other)
    return code == 0


@cache
def renameat2() -> Any:
    """The C function, or None; it is loaded only when an entry must be replaced."""
    import ctypes  # lazily: few programs need it, and it is slow to load

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
