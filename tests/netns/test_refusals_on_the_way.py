"""What a hop refuses in the middle of transfers, and what remains: nothing, if nobody wants the bytes any more."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.live.disks import mounted
from tests.live.sites import MODULES, Sites
from tests.netns.conftest import Wired
from tests.netns.test_trouble_on_the_way import in_the_middle
from tests.netns.traffic import Traffic
from tests.waiting import eventually

pytestmark = pytest.mark.netns

MIB = 1 << 20


@contextmanager
def _on_a_small_disk(sites: Sites, module: str, *, scratch: Path) -> Iterator[None]:
    """Keep the state of a module on a disk of 24 MiB for the block; the module restarts before and afterwards."""
    folder = sites.at(module).folder(module)
    sites.kill(module)
    _move_rows(folder, scratch)
    with mounted(folder, "-t", "tmpfs", "-o", "size=24m,mode=711", "tmpfs"):
        _move_rows(scratch, folder)
        sites.start(module)
        yield
        sites.kill(module)
        _move_rows(folder, scratch)
    _move_rows(scratch, folder)
    sites.start(module)


def _move_rows(source: Path, target: Path) -> None:
    """Move what a module stored, without its cache of files."""
    for path in source.iterdir():
        if path.is_file():
            shutil.move(path, target / path.name)


def test_a_hop_without_room_for_a_file_passes_it_on(wired: Wired, shared: Path, tmp_path: Path) -> None:
    with _on_a_small_disk(wired.sites, "gate-a", scratch=tmp_path):
        wired.sites.await_links()
        traffic = Traffic(sites=wired.sites, folder=shared, origin="b1", machine="a1", size_bytes=30 * MIB)
        traffic.begin()
        traffic.end()
        wired.sites.leave_nothing()
    wired.sites.await_links()


@pytest.mark.usefixtures("slow_link")
def test_a_cancel_in_the_middle_of_transfers_leaves_nothing_at_any_module(wired: Wired, shared: Path) -> None:
    traffic = in_the_middle(wired, shared)
    traffic.cancel()
    wired.sites.leave_nothing()
    drafts = [path for name in MODULES for path in wired.sites.at(name).folder(name).rglob("*.part")]
    eventually(lambda: not [path for path in drafts if path.exists()], drafts)


@contextmanager
def _expired(sites: Sites, module: str) -> Iterator[None]:
    """Run a module with a certificate that has expired for the block; it restarts before and afterwards."""
    root = sites.settings(module).trust_file
    key = root.with_suffix(".key")
    hidden = key.with_suffix(".hidden")
    file = sites.settings(module).certificate_file
    before = file.read_bytes()
    file.write_bytes(_past(before, key.read_bytes()))
    # Without the root's key a start uses the certificate that it finds.
    key.rename(hidden)
    try:
        sites.restart(module)
        yield
    finally:
        hidden.rename(key)
        file.write_bytes(before)
        sites.restart(module)


def _past(certificate: bytes, root_key: bytes) -> bytes:
    """Return a certificate with the same names and the same key that was valid until a minute ago."""
    old = x509.load_pem_x509_certificate(certificate)
    key = load_pem_private_key(root_key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    ended = datetime.now(UTC) - timedelta(minutes=1)
    builder = x509.CertificateBuilder(
        subject_name=old.subject,
        issuer_name=old.issuer,
        public_key=old.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=ended - timedelta(days=1),
        not_valid_after=ended,
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.usefixtures("slow_link")
def test_a_certificate_that_expires_in_the_middle_stops_the_way_with_a_reason_until_it_is_renewed(
    wired: Wired, shared: Path
) -> None:
    traffic = in_the_middle(wired, shared)
    with _expired(wired.sites, "gate-a"):
        eventually(lambda: "expired" in str(_notes(wired.sites, "gate-b")))
    traffic.end()


def _notes(sites: Sites, module: str) -> list[str]:
    with sites.client(module) as client:
        return list(client.module()["notes"])
