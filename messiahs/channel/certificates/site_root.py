"""The root of a site where its key lies: it signs the certificates of modules, and the list of revoked ones.

Every certificate that it signs is noted in tls/issued.json. A name keeps its key: another key for the same name is
signed only if an administrator says so. All methods block; several processes may use them at once.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from messiahs.channel.certificates.fingerprints import (
    certificates_in,
    key_fingerprint,
    only_certificate_in,
    pem_of,
    validity_of,
)
from messiahs.channel.certificates.issued import ISSUED_FILE, Issued, IssuedCertificates, alone
from messiahs.channel.certificates.requests import requested_key, sign_request
from messiahs.channel.certificates.revocations import (
    LIST_LIMIT_BYTES,
    NO_REVOCATIONS,
    REVOKED_FILE,
    Revocations,
    read_revocations,
)
from messiahs.channel.certificates.revoking import make_revocations
from messiahs.channel.certificates.tls import FOREIGN_KEY, MODULE_LIFETIME, KeyAndCertificate, signer_in
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.errors import CertificateError, RevocationListError

FOLDER: Final = "tls"
ROOT_FILE: Final = "root.pem"
ROOT_KEY_FILE: Final = "root.key"
VALID_LIMIT: Final = 32
"""Certificates of one name that are valid at once: all of them fit into the list of revoked ones, for many names."""

_RESTORED: Final = (
    'restore them from a backup, or give the site a new root: docs/administrators.md, "Certificates of modules"'
)
_TOGETHER: Final = (
    f"they belong together: bring {ROOT_FILE}, {ROOT_KEY_FILE}, {ISSUED_FILE} and, if there is one, {REVOKED_FILE} to "
    f"{{}} from where the present root lies; a host that signs no certificates has {ROOT_FILE} without {ROOT_KEY_FILE}"
)
_NOTHING: Final[frozenset[str]] = frozenset()


class SiteRoot:
    """The root of the site whose state is in STATE/FEDERATION; the folder's name is that of the federation."""

    def __init__(self, directory: Path, root: KeyAndCertificate) -> None:
        self._directory, self._root = directory, root
        self._folder = directory / FOLDER

    @staticmethod
    def is_at(directory: Path) -> bool:
        """Whether the key of the site's root is in this STATE/FEDERATION."""
        return (directory / FOLDER / ROOT_KEY_FILE).exists()

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the root of a site from STATE/FEDERATION; a `CertificateError` if it or its key cannot be used."""
        folder = directory / FOLDER
        try:
            found = KeyAndCertificate(
                key=read_regular(folder / ROOT_KEY_FILE), certificate=read_regular(folder / ROOT_FILE)
            )
            signer_in(found)
        except FileNotFoundError as error:
            text = f"{error.filename} is missing: this is done where the key of the site's root lies"
            raise CertificateError(text) from error
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
        except (ValueError, TypeError, AssertionError) as error:
            remedy = _TOGETHER.format(folder) if str(error) == FOREIGN_KEY else _RESTORED
            text = f"{folder / ROOT_FILE} and {ROOT_KEY_FILE} contain no root: {error}; {remedy}"
            raise CertificateError(text) from error
        return cls(directory, found)

    @property
    def federation(self) -> str:
        """Name of the federation."""
        return self._directory.name

    @property
    def roots(self) -> bytes:
        """The roots of the site (PEM), as they go to its modules."""
        return self._root.certificate

    @property
    def issued(self) -> IssuedCertificates:
        """What the root has signed; a `StoreError` if the record is damaged."""
        return IssuedCertificates.read(self._folder)

    @property
    def revocations(self) -> Revocations:
        """What was revoked; a `CertificateError` if the list is damaged, or none of the roots has signed it."""
        try:
            return self._stored_list()
        except RevocationListError as error:
            file = self._folder / REVOKED_FILE
            raise RevocationListError(f"{file}: {error}; `messiahs certificate revoke` signs it again") from error

    def is_revoked(self, certificate: bytes) -> bool:
        """Whether a certificate (PEM) was revoked, or another one for its key that was the newest."""
        shown = certificates_in(certificate)[0]
        return self.revocations.holds(shown) or self.issued.is_key_revoked(key_fingerprint(shown).hex())

    def is_current(self, certificate: bytes) -> bool:
        """Whether the key here has signed a certificate (DER), the last third of whose lifetime has not begun."""
        begins_at, ends_at = validity_of(certificate)
        return datetime.now(UTC) < ends_at - (ends_at - begins_at) / 3 and self._has_signed(certificate)

    def sign(
        self, request: bytes, name: str, *, is_new_key: bool = False, lifetime: timedelta = MODULE_LIFETIME
    ) -> bytes:
        """Return a certificate (PEM) for a request (PEM) of a module on another host, and note it.

        Raises a `CertificateError` if the request is of no use or names another module or federation, if the name has
        another key (unless `is_new_key`) or too many valid certificates, or if the key was revoked; a `StoreError` if
        the record cannot be used.
        """
        with alone(self._folder):
            issued, key = self.issued, self._key_of(request, name)
            _check_key(issued, name, key=key, is_new_key=is_new_key)
            return self._made(issued, request, name, is_elsewhere=True, lifetime=lifetime)

    def check(self, request: bytes, name: str) -> None:
        """Raise a `CertificateError` if a request (PEM) is of no use, or the name or the key may get no certificate."""
        _check_key(self.issued, name, key=self._key_of(request, name), is_new_key=False)

    def renew_here(self, request: bytes, name: str, *, present: bytes) -> bytes:
        """Return another certificate (PEM) for a module on this host, and note it and the present one (DER).

        Raises as `sign`.
        """
        with alone(self._folder):
            issued, key = self.issued, self._key_of(request, name)
            _check_key(issued, name, key=key, is_new_key=False)
            if self._has_signed(present):
                issued = issued.knowing(Issued.of(present, name))
            return self._made(issued, request, name, is_elsewhere=False, lifetime=MODULE_LIFETIME)

    def renew(self, request: bytes, certificate: bytes) -> bytes:
        """Return a certificate (PEM) for the key and name of a valid one (PEM) of this site.

        A new one is made in the last third of the lifetime, or if another root of the site signed the last one; before,
        this is the newest that the key has. The certificate that is shown is noted. Raises a `CertificateError` if it
        is not valid, was revoked, is for another key or name, or for a key that the record of this root does not have.
        """
        from messiahs.channel.certificates.renewals import name_of_valid, shown_certificate  # noqa: PLC0415 - expensive

        shown = shown_certificate(certificate)
        name = name_of_valid(shown, roots=self.roots, federation=self.federation)
        key = self._key_of(request, name)
        if key != key_fingerprint(shown).hex():
            raise CertificateError(f"the request is not for the key of {name}: a renewed certificate keeps the key")
        with alone(self._folder):
            if self.revocations.holds(shown):
                raise CertificateError(f"the certificate of {name} was revoked")
            before = self.issued
            if before.keys.get(name) != key and not self._has_signed(shown):
                text = f"the certificate of {name} was signed by another root, and its key is not noted here"
                raise CertificateError(f"{text}: `messiahs certificate request` and `sign` make another one")
            _check_key(before, name, key=key, is_new_key=False)
            issued = before.knowing(Issued.of(shown, name))
            newest = [each.der for each in issued.of(name)[-1:] if each.der]
            for found in (*newest, shown):
                if key_fingerprint(found).hex() == key and self.is_current(found):
                    if issued != before:
                        issued.write(self._folder)
                    return pem_of(found)
            is_elsewhere = name in issued.elsewhere
            return self._made(issued, request, name, is_elsewhere=is_elsewhere, lifetime=MODULE_LIFETIME)

    def revoke(
        self, serials: frozenset[str] = _NOTHING, *, names: frozenset[str] = _NOTHING, found: Iterable[Issued] = ()
    ) -> Revocations:
        """Put certificates on the list of revoked ones, and write the list; return it.

        These are the ones with these serial numbers, all of modules with these names, and those that were `found`
        somewhere, which are noted. Certificates on the last list stay on it, unless they are known to have expired. If
        that list is of no use (its root was removed, or it is damaged), those stay that are noted as revoked.
        Raises a `CertificateError` if the list would become too long: the last one then stays as it is.
        """
        now = datetime.now(UTC).replace(microsecond=0)
        with alone(self._folder):
            last, issued = self._last_list(), self.issued
            for each in found:
                issued, serials = issued.knowing(each), serials | {each.serial}
            # A name's certificates are chosen here, so that none is renewed in the meantime.
            named = (each for each in issued.certificates if each.name in names and each.ends_at > now)
            serials |= {each.serial for each in named}
            issued = issued.revoking(serials, now)
            expired = {int(each.serial, 16) for each in issued.certificates if each.ends_at < now}
            noted = {int(one.serial, 16): one.revoked_at for one in issued.certificates if one.revoked_at is not None}
            listed = {**noted, **dict.fromkeys((int(each, 16) for each in serials), now), **last.serials}
            listed = {serial: at for serial, at in listed.items() if serial not in expired}
            pem = make_revocations(self._root, listed, above=last.number)
            if len(pem) > LIST_LIMIT_BYTES:
                text = f"with {len(listed)} certificates, the list of revoked ones exceeds {LIST_LIMIT_BYTES} bytes"
                raise CertificateError(
                    f"{text}: nothing was revoked, and the last list stays in force; revoke fewer, or give the site a "
                    "new root (docs/administrators.md)"
                )
            # First the list, which counts; the notes are completed by a repetition.
            write_whole(self._folder / REVOKED_FILE, pem)
            issued.write(self._folder)
        return read_revocations(pem, self.roots)

    def _stored_list(self) -> Revocations:
        try:
            return read_revocations(read_regular(self._folder / REVOKED_FILE), self.roots)
        except FileNotFoundError:
            return NO_REVOCATIONS
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error

    def _last_list(self) -> Revocations:
        try:
            return self._stored_list()
        except RevocationListError:
            return NO_REVOCATIONS

    def _has_signed(self, certificate: bytes) -> bool:
        from messiahs.channel.certificates.renewals import has_signed  # noqa: PLC0415 - an expensive import

        return has_signed(signer_in(self._root)[0].public_key(), certificate)

    def _key_of(self, request: bytes, name: str) -> str:
        try:
            return requested_key(request, federation=self.federation, name=name).hex()
        except ValueError as error:
            raise CertificateError(str(error)) from error

    def _made(
        self, issued: IssuedCertificates, request: bytes, name: str, *, is_elsewhere: bool, lifetime: timedelta
    ) -> bytes:
        """Make a certificate (PEM) and note it; the caller is `alone`."""
        if len(issued.valid(name, datetime.now(UTC))) >= VALID_LIMIT:
            text = f"`{name}` has {VALID_LIMIT} valid certificates, and gets no other one before one of them expires"
            raise CertificateError(f"{text} or is revoked (`messiahs certificate revoke`)")
        made = sign_request(self._root, request, federation=self.federation, name=name, lifetime=lifetime)
        # Nobody has it before it is noted.
        issued.having(Issued.of(only_certificate_in(made), name), is_elsewhere=is_elsewhere).write(self._folder)
        return made


def _check_key(issued: IssuedCertificates, name: str, *, key: str, is_new_key: bool) -> None:
    if issued.is_key_revoked(key):
        text = f"the certificate of `{name}` was revoked, and its key gets no other one: request one for a new key"
        raise CertificateError(f"{text} (`messiahs certificate request {name} --new-key`)")
    if issued.keys.get(name, key) != key and not is_new_key:
        latest = next((f", signed {each.begins_at:%Y-%m-%d}" for each in reversed(issued.of(name))), "")
        text = f"`{name}` has a certificate for another key{latest}"
        raise CertificateError(f"{text}: if it is to have a new key, `messiahs certificate sign --new-key` says so")
