"""What the root of a site has signed, in the file `tls/issued.json` where its key lies.

A name belongs to the key that first got it. Another system that asks for it is refused, until an administrator says
that the name has a new key, or forgets it. Certificates are noted so that a name can be revoked; expired ones are
dropped, except for the newest of each name.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import msgspec

from messiahs.channel.certificates.fingerprints import (
    certificate_fingerprint,
    certificates_in,
    key_fingerprint,
    serial_of,
    validity_of,
)
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.errors import StoreError

ISSUED_FILE: Final = "issued.json"
_LOCK: Final = "lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time change the folder `tls`: no second root is made, and no record is lost."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate that the root signed. Fingerprints and serial numbers are hexadecimal; `revoked_at` None: never."""

    name: str
    serial: str
    key: str
    fingerprint: str
    begins_at: datetime
    ends_at: datetime
    revoked_at: datetime | None = None

    @classmethod
    def of(cls, certificate: bytes, name: str) -> Self:
        """Return the entry for a certificate (PEM); a `ValueError` if it is none."""
        found = certificates_in(certificate)
        if not found:
            raise ValueError("this is no certificate in PEM")
        begins_at, ends_at = validity_of(found[0])
        return cls(
            name=name,
            serial=f"{serial_of(found[0]):x}",
            key=key_fingerprint(found[0]).hex(),
            fingerprint=certificate_fingerprint(found[0]).hex(),
            begins_at=begins_at,
            ends_at=ends_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCertificates:
    """The keys of all names (hexadecimal fingerprints), and certificates, the oldest first."""

    schema: int = 1
    keys: dict[str, str] = field(default_factory=dict)
    certificates: tuple[Issued, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the record in the folder `tls`; without a file there is nothing in it. Raises `StoreError`."""
        file = folder / ISSUED_FILE
        try:
            found = msgspec.json.decode(read_regular(file), type=cls)
            for key in found.keys.values():
                bytes.fromhex(key)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            raise StoreError(f"{file} cannot be read: {error}; restore it from a backup") from error
        return found

    def write(self, folder: Path) -> None:
        """Replace the record; the caller is `alone`. Raises `StoreError`."""
        file = folder / ISSUED_FILE
        try:
            write_whole(file, msgspec.json.format(msgspec.json.encode(self), indent=1), mode=0o600)
        except OSError as error:
            raise StoreError(f"{file} cannot be written: {error.strerror}") from error

    def of(self, name: str) -> tuple[Issued, ...]:
        """Return the certificates of a module, the oldest first."""
        return tuple(each for each in self.certificates if each.name == name)

    def is_key_revoked(self, key: str) -> bool:
        """Whether the newest certificate for a key was revoked: the key then gets no other one."""
        newest = next((each for each in reversed(self.certificates) if each.key == key), None)
        return newest is not None and newest.revoked_at is not None

    def having(self, made: Issued) -> Self:
        """Return these with another certificate, whose key is then that of its name."""
        now = datetime.now(UTC)
        newest = {each.name: each.serial for each in (*self.certificates, made)}
        others = (each for each in self.certificates if each.serial != made.serial)
        kept = tuple(each for each in others if each.ends_at > now or newest[each.name] == each.serial)
        return replace(self, keys=dict(sorted({**self.keys, made.name: made.key}.items())), certificates=(*kept, made))

    def revoking(self, serials: Iterable[str], now: datetime) -> Self:
        """Return these with some certificates marked as revoked, unless they are already."""
        wanted = frozenset(serials)
        marked = tuple(
            replace(each, revoked_at=now) if each.serial in wanted and each.revoked_at is None else each
            for each in self.certificates
        )
        return replace(self, certificates=marked)


def issued_key(folder: Path, name: str) -> bytes | None:
    """Return the fingerprint of the key for which a name was certified; None if that is not recorded.

    A `StoreError` if the record in the folder `tls` cannot be read.
    """
    found = IssuedCertificates.read(folder).keys.get(name)
    return None if found is None else bytes.fromhex(found)


def note_issued(folder: Path, keys: Mapping[str, bytes]) -> None:
    """Record the fingerprints of keys for which names are certified; the caller is `alone`. Raises `StoreError`."""
    found = IssuedCertificates.read(folder)
    noted = {**found.keys, **{name: key.hex() for name, key in keys.items()}}
    replace(found, keys=dict(sorted(noted.items()))).write(folder)


def forget_issued(folder: Path, name: str) -> None:
    """Let any key have a name again; the caller is `alone`. Raises `StoreError`."""
    found = IssuedCertificates.read(folder)
    replace(found, keys={other: key for other, key in found.keys.items() if other != name}).write(folder)
