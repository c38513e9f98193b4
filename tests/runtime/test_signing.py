"""Keys and signatures of machine code: what is signed is verified with the right key, for one purpose only."""

import subprocess
from pathlib import Path

import pytest

from tilework.runtime.signing import MARK, NO_MARK, BadSignature, Key, read_key

SECRET = "0123456789abcdef"


def openssl(folder: Path, *options: str) -> str:
    return subprocess.run(["openssl", *options], cwd=folder, check=True, capture_output=True, text=True).stdout


def key_pair() -> tuple[str, str]:
    """Return a private and a public key."""
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    texts = (
        private.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()),
        private.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo),
    )
    return texts[0].decode(), texts[1].decode()


def pairs(kind: str) -> tuple[Key, Key]:
    """Return (a key that signs, a key that verifies)."""
    if kind == "secret":
        return Key.of(SECRET), Key.of(SECRET.encode())
    pytest.importorskip("cryptography")
    private, public = key_pair()
    return Key.of(private), Key.of(public)


@pytest.mark.parametrize("kind", ["secret", "ed25519"])
def test_what_is_signed_is_verified(kind: str) -> None:
    signer, reader = pairs(kind)
    mark = signer.sign("an entry", b"data")
    assert len(mark) == MARK.size and mark == signer.sign("an entry", b"data")
    reader.check("an entry", b"data", mark)
    for purpose, data in (("a bundle", b"data"), ("an entry", b"date"), ("an", b" entry\0data"), ("an entry", b"")):
        with pytest.raises(BadSignature, match="changed without the key"):
            reader.check(purpose, data, mark)
    for position in range(len(mark)):
        changed = bytearray(mark)
        changed[position] ^= 1
        with pytest.raises(BadSignature):
            reader.check("an entry", b"data", bytes(changed))
    for none in (NO_MARK, b"", mark[:-1]):
        with pytest.raises(BadSignature, match=f"not signed, and must be with the key {reader.name}"):
            reader.check("an entry", b"data", none)


@pytest.mark.parametrize("kind", ["secret", "ed25519"])
def test_a_key_is_shown_by_its_name_only(kind: str) -> None:
    signer, reader = pairs(kind)
    assert signer.name == reader.name and len(signer.name) == 16
    assert signer.name in repr(signer) and SECRET not in repr(signer)
    other, _ = pairs(kind) if kind == "ed25519" else (Key.of("the secret of another team"), None)
    with pytest.raises(BadSignature, match=f"with the key {other.name}, not with {reader.name}"):
        reader.check("p", b"data", other.sign("p", b"data"))


def test_a_public_key_cannot_sign_and_a_secret_is_not_one() -> None:
    signer, reader = pairs("ed25519")
    assert signer.can_sign and not reader.can_sign
    with pytest.raises(ValueError, match="cannot sign"):
        reader.sign("p", b"data")
    with pytest.raises(BadSignature):
        reader.check("p", b"data", Key.of(SECRET).sign("p", b"data"))


def test_keys_can_be_changed_one_after_the_other() -> None:
    pytest.importorskip("cryptography")
    (old, old_public), (new, new_public) = key_pair(), key_pair()
    both = Key.of(new_public + old_public)
    for text in (old, new):
        both.check("p", b"data", Key.of(text).sign("p", b"data"))
    builder = Key.of(new + old_public)
    assert builder.can_sign and builder.name == Key.of(new).name
    builder.check("p", b"data", Key.of(old).sign("p", b"data"))


def test_keys_of_openssl(tmp_path: Path) -> None:
    """The commands of the documentation make valid keys."""
    pytest.importorskip("cryptography")
    openssl(tmp_path, "genpkey", "-algorithm", "ed25519", "-out", "builder.pem")
    openssl(tmp_path, "pkey", "-in", "builder.pem", "-pubout", "-out", "reader.pem")
    builder, reader = (read_key(None, str(tmp_path / f"{name}.pem"), "SETTING") for name in ("builder", "reader"))
    assert builder is not None and reader is not None
    reader.check("p", b"data", builder.sign("p", b"data"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-algorithm", "rsa"), "not one of Ed25519"),
        (("-algorithm", "x25519"), "not one of Ed25519"),
        (("-algorithm", "ed25519", "-aes256", "-pass", "pass:x"), "ENCRYPTED PRIVATE KEY cannot be read"),
    ],
)
def test_other_keys(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    pytest.importorskip("cryptography")
    openssl(tmp_path, "genpkey", *options, "-out", "key.pem")
    with pytest.raises(RuntimeError, match=rf"SETTING_FILE=\S*key.pem: .*{message}"):
        read_key(None, str(tmp_path / "key.pem"), "SETTING")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_key(text: str, tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text(text)
    with pytest.raises(RuntimeError, match="it is empty"):
        read_key(None, str(file), "SETTING", 16)


def test_a_secret_in_a_file_ends_before_the_new_line(tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text(SECRET + "\n")
    key = read_key(None, str(file), "SETTING", 16)
    assert key is not None and key.name == Key.of(SECRET).name
    assert read_key(None, None, "SETTING") is None
