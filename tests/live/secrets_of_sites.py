"""What a module must not know of the systems behind a border, and where to look for it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]

from messiahs.channel.certificates.fingerprints import key_fingerprint
from messiahs.core.border.pseudonyms import epoch_of_key
from messiahs.core.model.ids import Epoch
from messiahs.daemon.storage.border_key import NAME
from messiahs.daemon.storage.store import RowStore
from tests.live.sites import Sites

INSIDE: Final = {
    "gate-a": ("in-group-a", "in-ann-a", "in-abe-a"),
    "in-group-a": ("in-ann-a", "in-abe-a"),
    "gate-b": ("in-group-b", "in-bea-b", "in-bob-b"),
}
"""The systems behind each border of the plan BORDERED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Bytes that no system outside may have."""

    what: str
    content: bytes


def hidden_from(module: str) -> set[str]:
    """Return the systems behind borders of which a module must not know."""
    outside = [inside for border, inside in INSIDE.items() if module != border and module not in inside]
    return {name for inside in outside for name in inside}


def secrets_of(sites: Sites, module: str) -> Iterator[Secret]:
    """Yield names, addresses, keys and ids of a module behind a border, which must have been started."""
    folder = sites.at(module).folder(module)
    yield Secret(what=f"name of {module}", content=module.encode())
    yield Secret(what=f"address of {module}", content=sites.places[module].address.encode())
    yield Secret(what=f"host of {module}", content=sites.places[module].address.rpartition(":")[0].encode() + b":")
    certificate = x509.load_pem_x509_certificate((folder / "certificate.pem").read_bytes())
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    yield Secret(what=f"public key of {module}", content=public)
    yield from _as_bytes_and_hex(f"key of {module}", key_fingerprint(certificate.public_bytes(Encoding.DER)))
    store = RowStore(folder / "module.db")
    yield from _of_epoch(f"ids of {module}", store.epoch())
    store.close()
    if (folder / NAME).exists():
        key = (folder / NAME).read_bytes()
        yield from _as_bytes_and_hex(f"border key of {module}", key)
        yield from _of_epoch(f"ids that {module} shows", epoch_of_key(key))


def _of_epoch(what: str, epoch: Epoch) -> Iterator[Secret]:
    """Yield the forms in which the ids of an epoch contain it: in messages, in rows, and as text."""
    yield Secret(what=what, content=str(epoch).encode())
    yield Secret(what=what, content=_VarintBytes(epoch))
    yield from _as_bytes_and_hex(what, epoch.to_bytes(8))
    yield Secret(what=what, content=epoch.to_bytes(8, "little"))


def _as_bytes_and_hex(what: str, content: bytes) -> Iterator[Secret]:
    yield Secret(what=what, content=content)
    yield Secret(what=what, content=content.hex().encode())


def leaks(folder: Path, secrets: Collection[Secret]) -> list[str]:
    """Return which secrets are in which files of a folder, with what stands around them."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            found += [
                f"{secret.what} in {path.relative_to(folder)}: {content[max(0, at - 60) : at + 60]!r}"
                for secret in secrets
                if (at := content.find(secret.content)) >= 0
            ]
    return found
