"""Objects in S3, or in a server with its protocol (MinIO, Ceph, R2): `s3://bucket/prefix`, through s3fs (fsspec).

Credentials come from the places where Amazon's clients look: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile,
the role of the machine. `?endpoint_url=http://minio:9000` and `?region=eu-west-1` say where it is, if not at Amazon's.
"""

from collections.abc import Iterator
from typing import Any

import s3fs
from fsspec.asyn import sync

from tilework.process.forks import cached_property
from tilework.runtime.kernel_cache.remote.store import CLAIM, LARGEST, Failure, RemoteStore, too_large

KINDS = {"InvalidAccessKeyId": "password", "SignatureDoesNotMatch": "password", "ExpiredToken": "password",
         "AccessDenied": "permission", "QuotaExceeded": "full", "NoSuchBucket": "unreachable"}  # fmt: skip

TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")  # another client has created the object, or is creating it


class ObjectStore(RemoteStore):
    """A store whose objects are in S3; see the module docstring."""

    @cached_property
    def files(self) -> Any:
        """Return the client. Making it looks for credentials, possibly over the network."""
        options, limits = self.address.options, self.timeouts
        given = {"endpoint_url": options.get("endpoint_url"), "region_name": options.get("region")}
        files = s3fs.S3FileSystem(
            key=self.address.user or None,
            secret=self.address.password or None,
            client_kwargs={name: value for name, value in given.items() if value},
            config_kwargs={
                "connect_timeout": limits.connect,
                "read_timeout": limits.object,
                "retries": {"max_attempts": 0},
            },
            use_listings_cache=False,
            skip_instance_cache=True,  # one of this process: a fork must not use the threads of its parent
        )
        files.retries = 1
        return files

    def path(self, name: str) -> str:
        prefix = self.address.path.strip("/")
        return "/".join(part for part in (self.address.host, prefix, name) if part)

    def get(self, name: str) -> bytes | None:
        bucket, _, key = self.path(name).partition("/")
        try:
            # one request; `cat_file` also sends a HEAD, and lists the bucket if the object does not exist
            answer = self.files.call_s3("get_object", Bucket=bucket, Key=key)
            return sync(self.files.loop, read, answer)
        except FileNotFoundError as error:
            if code_of(error) == "NoSuchBucket":
                raise
            return None

    def put(self, name: str, data: bytes) -> None:
        self.files.pipe_file(self.path(name), data)

    def create(self, name: str, data: bytes) -> bool:
        try:
            self.files.pipe_file(self.path(name), data, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            if code_of(error) in TAKEN:
                return False
            raise
        return True

    def delete(self, name: str) -> None:
        try:
            self.files.rm_file(self.path(name))
        except FileNotFoundError:
            return

    def names(self, prefix: str) -> Iterator[str]:
        start, _, _ = prefix.rpartition("/")
        root = self.path("") + "/" if self.path("") else ""
        for found in self.files.find(self.path(start)):
            name = found.removeprefix(root)
            if name.startswith(prefix) and not name.endswith(CLAIM):
                yield name

    def client_failure(self, error: Exception) -> Failure:
        text, kind, code = str(error), type(error).__name__, code_of(error)
        if code in KINDS:
            return Failure(KINDS[code], text)
        if "Credentials" in kind:
            return Failure("password", text)
        if isinstance(error, PermissionError):
            return Failure("permission", text)
        if "SSL" in kind or "certificate" in text:
            return Failure("TLS", text)
        if isinstance(error, TimeoutError) or "Timeout" in kind:
            return Failure("time-out", text or "no answer in time")
        return Failure("unreachable", text or kind)


async def read(answer: Any) -> bytes:
    """Return the object in an answer, unless it is too large."""
    if answer.get("ContentLength", LARGEST + 1) > LARGEST:
        answer["Body"].close()
        raise too_large()
    return await answer["Body"].read()


def code_of(error: Exception) -> str:
    """Return the error code in the server's answer; empty if the server did not answer."""
    answer: dict[str, Any] = getattr(error.__cause__, "response", None) or {}
    return answer.get("Error", {}).get("Code", "")
