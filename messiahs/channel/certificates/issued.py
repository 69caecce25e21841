"""What the root of a site has signed, in the file `tls/issued.json` where its key lies.

A name belongs to the key that first got it. Another system that asks for it is refused, until an administrator says
that the name has a new key. Certificates are noted so that a name can be revoked; expired ones are dropped, except for
the newest of each name.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Self

import msgspec

from messiahs.channel.certificates.fingerprints import (
    certificate_fingerprint,
    key_fingerprint,
    only_certificate_in,
    pem_of,
    serial_of,
    validity_of,
)
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.errors import StoreError

ISSUED_FILE: Final = "issued.json"
_LOCK: Final = "lock"
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone."""
Serial = Annotated[str, msgspec.Meta(pattern="^(?=.*[1-9a-f])[0-7]?[0-9a-f]{1,39}$")]
"""A serial number, hexadecimal: positive, and at most 20 octets in DER (RFC 5280, 4.1.2.2)."""
_SERIAL_LIMIT: Final = 1 << 159


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
    """A certificate that the root signed. Fingerprints and serial numbers are hexadecimal; `revoked_at` None: never.

    `pem` is the certificate itself, which only the newest of each name has.
    """

    name: str
    serial: Serial
    key: str
    fingerprint: str
    begins_at: Instant
    ends_at: Instant
    revoked_at: Instant | None = None
    pem: str = ""

    @classmethod
    def of(cls, certificate: bytes, name: str) -> Self:
        """Return the entry for a certificate (DER); a `ValueError` if it is none, or has no such serial number."""
        begins_at, ends_at = validity_of(certificate)
        if not 0 < serial_of(certificate) < _SERIAL_LIMIT:
            raise ValueError("the serial number of the certificate is not positive, or longer than 20 octets")
        return cls(
            name=name,
            serial=f"{serial_of(certificate):x}",
            key=key_fingerprint(certificate).hex(),
            fingerprint=certificate_fingerprint(certificate).hex(),
            begins_at=begins_at,
            ends_at=ends_at,
            pem=pem_of(certificate).decode("ascii"),
        )

    @property
    def der(self) -> bytes:
        """The certificate itself; empty if `pem` is, or is no certificate for this key."""
        try:
            found = only_certificate_in(self.pem.encode())
            return found if self.of(found, self.name).key == self.key else b""
        except ValueError:
            return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCertificates:
    """The keys of all names (hexadecimal fingerprints), and certificates, the oldest first.

    The keys of the names in `elsewhere` were made on other hosts, as far as is known.
    """

    schema: int = 1
    elsewhere: tuple[str, ...] = ()
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
        except PermissionError:
            text = f"you have no permission to read {file}: run this command as the account of its owner, or as root"
            raise StoreError(text) from None
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

    def valid(self, name: str, now: datetime) -> tuple[Issued, ...]:
        """Return the certificates of a module that have neither expired nor been revoked."""
        return tuple(each for each in self.of(name) if each.ends_at > now and each.revoked_at is None)

    def having(self, made: Issued, *, is_elsewhere: bool = False) -> Self:
        """Return these with another certificate, whose key is then that of its name, and is on another host or here."""
        now = datetime.now(UTC)
        newest = {each.name: each.serial for each in (*self.certificates, made)}
        others = (each for each in self.certificates if each.serial != made.serial)
        kept = (each for each in others if each.ends_at > now or newest[each.name] == each.serial)
        older = tuple(replace(each, pem="") if each.name == made.name else each for each in kept)
        return replace(
            self,
            keys=dict(sorted({**self.keys, made.name: made.key}.items())),
            certificates=(*older, made),
            elsewhere=tuple(sorted({*self.elsewhere, made.name} if is_elsewhere else {*self.elsewhere} - {made.name})),
        )

    def knowing(self, found: Issued) -> Self:
        """Return these with an older certificate that somebody has, unless it is noted or has expired."""
        if found.ends_at <= datetime.now(UTC) or any(each.serial == found.serial for each in self.certificates):
            return self
        found = replace(found, pem="") if self.of(found.name) else found
        keys = dict(sorted({found.name: found.key, **self.keys}.items()))
        return replace(self, keys=keys, certificates=(found, *self.certificates))

    def revoking(self, serials: Iterable[str], now: datetime) -> Self:
        """Return these with some certificates marked as revoked, unless they are already."""
        wanted = frozenset(serials)
        marked = tuple(
            replace(each, revoked_at=now) if each.serial in wanted and each.revoked_at is None else each
            for each in self.certificates
        )
        return replace(self, certificates=marked)
