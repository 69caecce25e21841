"""What the core learns of the files of certificates, at the start and when they change."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.tls import KeyAndCertificate, TlsFiles, issue, load, make_root, write
from messiahs.channel.certificates.trusted_roots import own_key
from messiahs.config.settings import ModuleSettings, NeighborSettings, TrustedFile
from messiahs.core.interface.events import RootsChanged
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.model.trust import OtherRoots, Trust
from messiahs.daemon.certificates.known_roots import changed_roots, known_roots

FAR, NEAR = SystemId("far"), SystemId("near")


class Module:
    """The module `cs`, with a child of its own site and one of another: its files, and its settings (mutable)."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.new, self.theirs = (make_root("campus") for _ in range(3))
        self.roots, self.linked = folder / "root.pem", folder / "far.pem"
        self.roots.write_bytes(self.ours.certificate)
        self.linked.write_bytes(self.theirs.certificate)
        recorded = (TrustedFile(file=self.linked, names=("far*",)),)
        self.files = TlsFiles(
            certificate_file=folder / "certificate.pem",
            key_file=folder / "key.pem",
            trust_file=self.roots,
            links=((FAR, recorded),),
        )
        self.settings = ModuleSettings(
            federation="campus",
            name="cs",
            state_directory=folder,
            listen="localhost:1",
            certificate_file=self.files.certificate_file,
            key_file=self.files.key_file,
            trust_file=self.roots,
            update_period_ns=SECOND,
            trusts_relays=True,
            neighbors=(
                NeighborSettings(neighbor=Neighbor(system=NEAR, is_child=True), address=None),
                NeighborSettings(neighbor=Neighbor(system=FAR, is_child=True), address=None, trust=recorded),
            ),
        )
        self.sign(self.ours)

    def sign(self, root: KeyAndCertificate) -> None:
        """Use a new key, and a certificate that a root has signed."""
        made = issue(root, federation="campus", name="cs")
        write(made, certificate_file=self.files.certificate_file, key_file=self.files.key_file)

    def known(self) -> RootsChanged:
        """Return what the core learns of the present files."""
        return known_roots(self.settings, load(self.files))


def _digest(root: KeyAndCertificate) -> bytes:
    return certificate_fingerprint(*certificates_in(root.certificate))


def test_every_file_is_known_to_the_core_also_while_one_root_replaces_another(tmp_path: Path) -> None:
    module = Module(tmp_path)
    ours, new, theirs = map(_digest, (module.ours, module.new, module.theirs))
    before = module.known()
    assert before == RootsChanged(
        key=own_key(load(module.files)),
        trust=Trust(roots=(ours,), vouchers=(ours,), trusts_relays=True),
        apart=(FAR,),
        apart_roots=((theirs,),),
        other_sites=(OtherRoots(roots=(theirs,), names=("far*",)),),
    )
    module.roots.write_bytes(module.ours.certificate + module.new.certificate)
    mixed = Trust(roots=(ours, new), vouchers=(ours,), trusts_relays=True)
    assert module.known() == replace(before, trust=mixed)
    module.sign(module.new)
    renewed = module.known()
    assert renewed == replace(before, key=renewed.key, trust=replace(mixed, vouchers=(new,)))
    assert renewed.key == own_key(load(module.files)) != before.key
    # The other site replaces its root, too.
    next_one = make_root("campus")
    module.linked.write_bytes(module.theirs.certificate + next_one.certificate)
    both = (theirs, _digest(next_one))
    linked = module.known()
    assert (linked.apart_roots, [each.roots for each in linked.other_sites]) == ((both,), [both])


def test_the_core_keeps_what_it_knows_if_a_certificate_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module = Module(tmp_path)
    found = load(module.files)
    assert changed_roots(module.settings, found) == module.known()
    with caplog.at_level(logging.WARNING):
        assert changed_roots(module.settings, replace(found, certificate=b"")) is None
    assert "the roots for searches and tasks stay as they were: the certificate of this module cannot be" in caplog.text
