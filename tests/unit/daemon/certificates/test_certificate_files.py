"""The files of certificates while a module runs: what can be used is used, and the rest changes nothing."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.revoking import make_revocations
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.certificates.tls import KeyAndCertificate, TlsFiles, issue, load, make_root, write
from messiahs.channel.certificates.trusted_roots import is_signed
from messiahs.daemon.certificates.renewing import AskForRenewal, Renewal
from messiahs.daemon.certificates.watching import CertificateFiles
from messiahs.errors import CertificateError
from tests.waiting import until


class Module:
    """The module `cs` of the federation `campus`, with its files and what is in force (mutable)."""

    def __init__(self, folder: Path, *, lifetime: timedelta = timedelta(days=800)) -> None:
        self.directory = folder / "campus"
        tls = self.directory / "tls"
        write(make_root("campus"), certificate_file=tls / "root.pem", key_file=tls / "root.key")
        own = self.directory / "cs"
        self.files = TlsFiles(
            certificate_file=own / "certificate.pem", key_file=own / "key.pem", trust_file=tls / "root.pem"
        )
        self.key = self.write(lifetime=lifetime).key
        self.in_force = TlsInForce(load(self.files))
        self.certificates = CertificateFiles(self.files, self.in_force, federation="campus", name="cs")
        self.renewal = self.renewal_by(None)

    def renewal_by(self, ask: AskForRenewal | None) -> Renewal:
        """Return what renews the certificate, with a parent that is asked."""
        return Renewal(self.certificates, self.in_force, federation="campus", name="cs", ask=ask)

    @property
    def root(self) -> SiteRoot:
        """The root of the site."""
        return SiteRoot.load(self.directory)

    def signed(self, name: str = "cs", *, lifetime: timedelta = timedelta(days=800)) -> KeyAndCertificate:
        """Return the key of the module, or a new one, with a certificate for a name."""
        key = self.files.key_file.read_bytes() if self.files.key_file.exists() else None
        key, request = make_request(federation="campus", name=name, key=key)
        return KeyAndCertificate(key=key, certificate=self.root.sign(request, name, lifetime=lifetime))

    @property
    def trust(self) -> bytes:
        """The roots of the site (PEM)."""
        return self.files.trust_file.read_bytes()

    def root_pair(self) -> KeyAndCertificate:
        """Return the key of the root, and its certificate, the last in the file."""
        certificate = b"-----BEGIN" + self.trust.split(b"-----BEGIN")[-1]
        return KeyAndCertificate(key=(self.directory / "tls" / "root.key").read_bytes(), certificate=certificate)

    def use_new_root(self, key: KeyAndCertificate | None = None, *, keeps_old: bool = False) -> None:
        """Use another root behind the old one or in its place, with a certificate that it has signed."""
        old, new = self.trust, key or make_root("campus")
        write(new, certificate_file=self.files.trust_file, key_file=self.directory / "tls" / "root.key")
        if keeps_old:
            self.files.trust_file.write_bytes(old + new.certificate)
        self.write()

    def write(self, *, lifetime: timedelta = timedelta(days=800)) -> KeyAndCertificate:
        """Write a certificate for the key of the module."""
        made = self.signed(lifetime=lifetime)
        write(made, certificate_file=self.files.certificate_file, key_file=self.files.key_file)
        return made


def play(scene: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(scene())


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        made = module.write()
        await module.certificates.check()
        assert module.in_force.now.certificate == made.certificate
        assert not module.certificates.problem

    play(scene)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda module: module.files.certificate_file.write_bytes(module.signed().certificate[:300]), "no certificate"),
        (lambda module: module.files.certificate_file.unlink(), "No such file"),
        (lambda module: module.files.key_file.write_bytes(b"-----BEGIN"), "contains no private key"),
        (lambda module: module.files.key_file.write_bytes(make_root("x").key), "is not for the key in"),
        (
            lambda module: module.files.certificate_file.write_bytes(module.signed("xinu").certificate),
            "names messiahs://campus/xinu, xinu, not URI:messiahs://campus/cs",
        ),
        (lambda module: module.files.certificate_file.write_bytes(make_root("x").certificate), "is not for the key"),
        (lambda module: module.files.trust_file.write_bytes(b""), "contains no certificate in PEM"),
        (
            lambda module: module.files.trust_file.write_bytes(
                b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"
            ),
            "root.pem: ",
        ),
    ],
)
def test_what_is_of_no_use_leaves_the_old_in_force_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Module], object], text: str
) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        before = module.in_force.now
        damage(module)
        for _ in range(3):
            await module.certificates.check()
        assert module.in_force.now == before
        warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warned) == 1
        assert text in warned[0]
        assert "what was in force before stays in force" in warned[0]

    play(scene)


def test_revoked_certificates_count_even_while_another_file_is_of_no_use(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        module.root.revoke(frozenset({"abc"}))
        module.files.certificate_file.write_bytes(b"half")
        await module.certificates.check()
        assert set(module.in_force.now.revocations.serials) == {0xABC}

    play(scene)


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_older_list_of_revoked_certificates_is_not_taken_back(tmp_path: Path, *, is_lost: bool) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        module.root.revoke(frozenset({"abc"}))
        older = module.files.revoked_file.read_bytes()
        module.root.revoke(frozenset({"def"}))
        await module.certificates.check()
        if is_lost:
            module.files.revoked_file.unlink()
        else:
            module.files.revoked_file.write_bytes(older)
        await module.certificates.check()
        assert set(module.in_force.now.revocations.serials) == {0xABC, 0xDEF}
        assert "is older than the list" in module.certificates.problem

    play(scene)


def test_a_root_that_was_removed_is_trusted_no_more_though_it_has_signed_the_list(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        module.root.sign(make_request(federation="campus", name="xinu")[1], "xinu")
        module.root.revoke(names=frozenset({"xinu"}))
        revoked = set(module.root.revocations.serials)
        await module.certificates.check()
        old = module.in_force.now
        module.use_new_root()
        await module.certificates.check()
        now = module.in_force.now
        assert (now.trust != old.trust, now.certificate != old.certificate, now.revocations.number) == (True, True, 0)
        assert "revoked.pem: no root of this site has signed the list" in module.certificates.problem
        # The key of the new root signs what the record has noted.
        module.root.revoke(frozenset({"def"}))
        await module.certificates.check()
        now = module.in_force.now
        assert (set(now.revocations.serials), module.certificates.problem) == ({*revoked, 0xDEF}, "")

    play(scene)


def test_a_list_with_a_high_number_is_forgotten_with_its_root(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        stolen = module.root_pair()
        module.files.revoked_file.write_bytes(make_revocations(stolen, {0x666: datetime.now(UTC)}, above=1 << 60))
        await module.certificates.check()
        module.use_new_root(keeps_old=True)
        await module.certificates.check()
        # A list of the new root, which does not know of the high number, counts as soon as the old one is gone.
        later = make_revocations(module.root_pair(), {0xABC: datetime.now(UTC)}, above=0)
        module.files.revoked_file.write_bytes(later)
        await module.certificates.check()
        assert set(module.in_force.now.revocations.serials) == {0x666}
        module.use_new_root(key=module.root_pair())
        await module.certificates.check()
        assert (set(module.in_force.now.revocations.serials), module.certificates.problem) == ({0xABC}, "")

    play(scene)


def test_a_module_that_was_revoked_itself_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        module.root.revoke(frozenset(each.serial for each in module.root.issued.of("cs")))
        await module.certificates.check()
        assert "was revoked: no other module accepts it" in module.in_force.note()
        with pytest.raises(CertificateError, match="a revoked one is not renewed"):
            await module.renewal.renew()

    play(scene)


def test_a_certificate_in_its_last_third_is_renewed_where_the_key_of_the_root_lies(tmp_path: Path) -> None:
    async def scene() -> None:
        # Backdated by a day: the last third begins before now.
        module = Module(tmp_path, lifetime=timedelta(hours=1))
        assert module.in_force.now.own.is_due()
        renewing = asyncio.create_task(module.renewal.go_on())
        await until(lambda: not module.in_force.now.own.is_due(), "the renewed certificate")
        renewing.cancel()
        assert module.in_force.now.key == module.key
        assert not module.certificates.problem

    play(scene)


def test_a_renewal_says_whether_a_parent_gave_another_certificate(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        present, other = module.in_force.now.certificate, module.signed().certificate
        (module.directory / "tls" / "root.key").unlink()
        given = iter((present, other))

        async def answer(_: bytes, __: bytes) -> bytes:
            return next(given)

        renewal = module.renewal_by(answer)
        assert [await renewal.renew(), await renewal.renew()] == [False, True]

    play(scene)


def test_a_root_that_was_added_just_now_vouches_for_what_it_signs(tmp_path: Path) -> None:
    async def scene() -> None:
        module, new = Module(tmp_path), make_root("campus")
        file = module.files.trust_file
        both = file.read_bytes() + new.certificate
        write(new, certificate_file=file, key_file=file.with_name("root.key"))
        file.write_bytes(both)
        assert await module.renewal.renew()
        assert is_signed(certificates_in(module.in_force.now.certificate), roots=new.certificate)

    play(scene)


def test_where_nobody_can_sign_the_renewal_says_so_and_changes_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        before = module.in_force.now
        (module.directory / "tls" / "root.key").unlink()
        with pytest.raises(
            CertificateError, match=r"no parent to ask: make a request .*certificate request cs.*certificate sign"
        ):
            await module.renewal.renew()
        assert module.in_force.now == before

    play(scene)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda _: b"half", "not exactly one certificate"),
        (lambda module: module.signed().certificate * 2, "not exactly one certificate"),
        (lambda module: module.signed("xinu").certificate, "names messiahs://campus/xinu, xinu, not"),
        (lambda _: make_root("x").certificate, "is not for the key in"),
        (
            lambda module: issue(make_root("campus"), federation="campus", name="cs", key=module.key).certificate,
            "no root of this site has signed it",
        ),
    ],
)
def test_what_a_parent_gives_is_checked_before_it_replaces_the_certificate(
    tmp_path: Path, given: Callable[[Module], bytes], text: str
) -> None:
    async def scene() -> None:
        module = Module(tmp_path)
        before, made = module.files.certificate_file.read_bytes(), given(module)
        (module.directory / "tls" / "root.key").unlink()

        async def answer(_: bytes, __: bytes) -> bytes:
            return made

        with pytest.raises(CertificateError, match=text):
            await module.renewal_by(answer).renew()
        assert module.files.certificate_file.read_bytes() == before
        assert not module.certificates.problem

    play(scene)
