"""Signatures of machine code from other machines: entries of shared caches, and bundles.

    key = Key.of("3f9c...")                            a secret that writers and readers share: HMAC-SHA256
    key = Key.of("-----BEGIN PRIVATE KEY-----...")     an Ed25519 key in PEM: the private one signs and verifies,
    key = Key.of("-----BEGIN PUBLIC KEY-----...")      the public one only verifies
    mark = key.sign("tilework bundle", data)           80 bytes: the kind, the key's name, the signature
    key.check("tilework bundle", data, mark)           raises BadSignature, with the reason

A signature covers a purpose and the data, so a signature made for one purpose is not valid for another. A text may
contain several keys in PEM: the first private one signs, and signatures of all of them are accepted, so that keys can
be replaced one after the other. Messages show the name of a key, which is a hash, and never the key itself.

`openssl genpkey -algorithm ed25519 -out builder.pem` makes a private key, `openssl pkey -in builder.pem -pubout -out
reader.pem` its public one, and `openssl rand -hex 32` a secret.
"""

import hashlib
import hmac
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

MARK = struct.Struct("<8s8s64s")  # the kind, the name of the key, the signature
NO_MARK = bytes(MARK.size)
HMAC, ED25519 = b"hmac-256", b"ed25519\0"
KINDS = {HMAC: "HMAC-SHA256", ED25519: "Ed25519"}
PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----", re.DOTALL)
SHORTEST = 16  # characters of a secret: a shorter one can be guessed from a signature


class BadSignature(Exception):
    """Data without a valid signature."""


class Key:
    """A key that verifies signatures and, unless it is public, makes them; see the module. Use `of`."""

    def __init__(
        self,
        kind: bytes,
        name: bytes,
        sign: Callable[[bytes], bytes] | None,
        verify: Mapping[bytes, Callable[[bytes, bytes], bool]],
    ) -> None:
        self.kind, self._name, self._sign, self._verify = kind, name, sign, verify

    def __repr__(self) -> str:
        return f"<{KINDS[self.kind]} key {self.name}>"

    @classmethod
    def of(cls, text: str | bytes) -> "Key":
        """Return the key in a text; raise ValueError if there is none."""
        secret = text.encode() if isinstance(text, str) else text
        if not secret.strip():
            raise ValueError("it is empty")
        return pem_key(secret.decode("latin-1")) if secret.lstrip().startswith(b"-----BEGIN") else shared_key(secret)

    @property
    def name(self) -> str:
        """The name of the key in messages; of several keys, that of the one that signs, or of the first."""
        return self._name.hex()

    @property
    def can_sign(self) -> bool:
        """Return True if the key can sign; a public key cannot."""
        return self._sign is not None

    def sign(self, purpose: str, data: bytes) -> bytes:
        """Return the mark of data: the kind, the name of the key and the signature."""
        if self._sign is None:
            raise ValueError(f"the key {self.name} is a public one, which cannot sign")
        return MARK.pack(self.kind, self._name, self._sign(message(purpose, data)))

    def check(self, purpose: str, data: bytes, mark: bytes) -> None:
        """Raise BadSignature unless this key, or one of these keys, has signed the data for that purpose."""
        if mark == NO_MARK or len(mark) != MARK.size:
            raise BadSignature(f"it is not signed, and must be with the key {self.name}")
        kind, name, signature = MARK.unpack(mark)
        if kind not in KINDS:
            raise BadSignature("it has a signature of an unknown kind")
        verify = self._verify.get(name) if kind == self.kind else None
        if verify is None:
            raise BadSignature(f"it is signed with the key {name.hex()}, not with {self.name}")
        if not verify(message(purpose, data), signature):
            raise BadSignature(f"it does not have the signature of the key {self.name}: it was changed without the key")


def message(purpose: str, data: bytes) -> bytes:
    """Return the bytes to sign. A purpose contains no NUL, so the separator is unambiguous."""
    return purpose.encode() + b"\0" + hashlib.sha256(data).digest()


def shared_key(secret: bytes) -> Key:
    def sign(data: bytes) -> bytes:
        return hmac.digest(secret, data, "sha256").ljust(64, b"\0")

    def verify(data: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(sign(data), signature)

    name = hmac.digest(secret, b"tilework: the name of this key", "sha256")[:8]
    return Key(HMAC, name, sign, {name: verify})


def pem_key(text: str) -> Key:
    """One or more Ed25519 keys."""
    try:
        # lazily: an optional dependency, which only these keys need
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    except ImportError as error:
        raise ValueError("an Ed25519 key needs the package cryptography: pip install 'tilework[signing]'") from error

    signer: tuple[bytes, Callable[[bytes], bytes]] | None = None
    verify: dict[bytes, Callable[[bytes, bytes], bool]] = {}

    def verifier(public: Any) -> Callable[[bytes, bytes], bool]:
        def check(data: bytes, signature: bytes) -> bool:
            try:
                public.verify(signature, data)
            except InvalidSignature:
                return False
            return True

        return check

    for block in PEM.finditer(text):
        data = block[0].encode("latin-1")
        try:
            if "PRIVATE" in block[1]:
                found: Any = serialization.load_pem_private_key(data, None)
            else:
                found = serialization.load_pem_public_key(data)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # no key, one with a password, others
            raise ValueError(f"its {block[1]} cannot be read: {error}") from error
        if not isinstance(found, Ed25519PrivateKey | Ed25519PublicKey):
            raise ValueError(f"its {block[1]} is not one of Ed25519: `openssl genpkey -algorithm ed25519` makes them")
        public = found.public_key() if isinstance(found, Ed25519PrivateKey) else found
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        name = hashlib.sha256(b"tilework: the name of this key" + raw).digest()[:8]
        verify[name] = verifier(public)
        if isinstance(found, Ed25519PrivateKey) and signer is None:
            signer = name, found.sign
    if not verify:
        raise ValueError("it begins like PEM, and has no whole key")
    name, sign = signer or (next(iter(verify)), None)
    return Key(ED25519, name, sign, verify)


def read_key(text: str | None, file: str | None, setting: str, shortest: int = 0) -> Key | None:
    """Return the key in a setting, ``<setting>`` or ``<setting>_FILE``; None if neither is set, RuntimeError if the
    text is not a key."""
    if text and file:
        raise RuntimeError(f"{setting} and {setting}_FILE are both set: which key is meant?")
    where = f"{setting}_FILE={file}" if file else setting
    try:
        if file:
            with open(file, "rb") as source:
                given: bytes = source.read(1 << 20).strip()
        elif text:
            given = text.encode()
        else:
            return None
        if len(given) < shortest and given:
            raise ValueError(f"it has {len(given)} characters, and needs {shortest}: `openssl rand -hex 32` makes one")
        return Key.of(given)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RuntimeError(f"Unable to use {where}: {why}") from error
