"""Objects as files of a folder that machines share, `file:///mnt/cache`: NFS, Lustre, a volume of a cluster.

A file is written under a temporary name in its folder and then renamed, so that readers see all of it or nothing. The
umask of the process that writes a file decides who may read and change it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from tilework.runtime.kernel_cache.entry import unique_name
from tilework.runtime.kernel_cache.remote.store import CLAIM, LARGEST, Failure, RemoteStore, Unusable, too_large

UNFINISHED = ".tmp"
ERRORS = {"ENOSPC": "full", "EDQUOT": "full", "EROFS": "read-only", "EACCES": "read-only", "EPERM": "read-only"}


class FolderStore(RemoteStore):
    """A store whose objects are files of a folder; see the module docstring."""

    def path(self, name: str) -> str:
        parts = name.split("/")
        if not all(parts) or {".", ".."} & set(parts):
            raise ValueError(f"{name!r} is not the name of an object")
        return os.path.join(self.address.path, *parts)

    def get(self, name: str) -> bytes | None:
        try:
            info = os.stat(path := self.path(name))
            if not stat.S_ISREG(info.st_mode):  # opening a pipe waits for its writer
                raise Unusable("wrong type", "it is not a file")
            if info.st_size > LARGEST:
                raise too_large()
            with open(path, "rb") as file:
                return file.read(info.st_size)
        except (FileNotFoundError, NotADirectoryError):
            self.ping()
            return None
        except PermissionError as error:  # of one writer, with another umask
            raise Unusable("unreadable", error.strerror or str(error)) from error

    def put(self, name: str, data: bytes) -> None:
        os.replace(self.written(name, data), self.path(name))

    def create(self, name: str, data: bytes) -> bool:
        temporary = self.written(name, data)
        try:
            os.link(temporary, self.path(name))
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        return True

    def written(self, name: str, data: bytes) -> str:
        """Write a temporary file beside the file of an object, and return its path."""
        path = self.path(name)
        self.ping()  # a folder that is not there is not made: it may not be mounted
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{unique_name()}{UNFINISHED}"
        try:
            with open(temporary, "xb") as file:
                file.write(data)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def names(self, prefix: str) -> Iterator[str]:
        root = self.address.path
        start, _, _ = prefix.rpartition("/")
        for folder, folders, files in os.walk(os.path.join(root, start)):
            folders[:] = [one for one in folders if not one.startswith(".")]
            inner = os.path.relpath(folder, root).replace(os.sep, "/")
            for file in files:
                name = file if inner == "." else f"{inner}/{file}"
                if name.startswith(prefix) and not file.endswith((CLAIM, UNFINISHED)):
                    yield name

    def ping(self) -> None:
        os.stat(self.address.path)

    def client_failure(self, error: Exception) -> Failure:
        import errno  # lazily: only failures have one

        number = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
        text = getattr(error, "strerror", None) or str(error)
        return Failure(ERRORS.get(number, "unreachable" if number else "refused"), text)
