"""A site whose certificates, roots and revocations change while the channels of its modules run."""

from dataclasses import replace
from pathlib import Path

from messiahs.channel.certificate_exchange import CertificateExchange
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.revocations import read_revocations
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import KeyAndCertificate, TlsFiles, load, make_root, write
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.membership.service import ClosedDoor
from messiahs.core.model.ids import SystemId
from messiahs.wire.certificates import RenewRequest

FEDERATION = "campus"


class _Steward:
    """Takes lists of revoked certificates, and has renewals signed at once."""

    def __init__(self, tls: TlsInForce, site: "ChangingSite") -> None:
        self._tls, self._site = tls, site

    async def take_revocations(self, pem: bytes) -> int:
        """Use a newer list."""
        read = read_revocations(pem, self._tls.now.trust)
        if read.number > self._tls.now.revocations.number:
            self._tls.use(replace(self._tls.now, revocations=read))
        return read.number

    async def renewed(self, request: RenewRequest) -> bytes:
        """Sign."""
        return self._site.root.renew(request.certificate_request, request.certificate)


class ChangingSite:
    """Files as in STATE/FEDERATION, and what each module has in force (mutable)."""

    def __init__(self, folder: Path, *, has_bulk: bool = False) -> None:
        self.directory = folder / FEDERATION
        self._has_bulk = has_bulk
        self.exchanges: dict[SystemId, CertificateExchange] = {}
        self._in_force: dict[SystemId, TlsInForce] = {}
        self.use_root(make_root(FEDERATION))

    @property
    def root(self) -> SiteRoot:
        """The root of the site."""
        return SiteRoot.load(self.directory)

    @property
    def root_file(self) -> Path:
        """The file with the roots of the site."""
        return self.directory / "tls" / "root.pem"

    def use_root(self, root: KeyAndCertificate) -> None:
        """Use a root in place of the last one."""
        write(root, certificate_file=self.root_file, key_file=self.directory / "tls" / "root.key")

    def files(self, name: SystemId) -> TlsFiles:
        """Return the files of a module."""
        folder = self.directory / name
        return TlsFiles(
            certificate_file=folder / "certificate.pem", key_file=folder / "key.pem", trust_file=self.root_file
        )

    def certify(self, name: SystemId, *, has_new_key: bool = False) -> None:
        """Give a module a certificate, for the key that it has."""
        files = self.files(name)
        known = files.key_file.read_bytes() if files.key_file.exists() and not has_new_key else None
        key, request = make_request(federation=FEDERATION, name=name, key=known)
        made = KeyAndCertificate(key=key, certificate=self.root.sign(request, name, is_new_key=has_new_key))
        write(made, certificate_file=files.certificate_file, key_file=files.key_file)

    def serials(self, name: SystemId) -> frozenset[str]:
        """Return the serial numbers of all certificates of a module."""
        return frozenset(each.serial for each in self.root.issued.of(name))

    def make(self, settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        """Make the channels of a module, with a certificate if it has none."""
        if not self.files(settings.name).certificate_file.exists():
            self.certify(settings.name)
        self._in_force[settings.name] = TlsInForce(load(self.files(settings.name)))
        settings = replace(settings, bulk_port=0 if self._has_bulk else None, bulk_least_bytes=1)
        tls = self._in_force[settings.name]
        exchange = self.exchanges[settings.name] = CertificateExchange(tls, _Steward(tls, self))
        return grpc_channels(settings, callbacks, tls, ClosedDoor(), (exchange,))

    def has(self, name: SystemId) -> int:
        """Return the number of the list of revoked certificates that a module has in force."""
        return self._in_force[name].now.revocations.number

    def reload(self, *names: SystemId) -> None:
        """Let modules use their files as they are now."""
        for name in names:
            self._in_force[name].use(load(self.files(name)))
