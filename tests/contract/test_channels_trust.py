"""Sites with different roots: which root vouches for which name (MESSIAHS 5.3; trust is per link)."""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates import tls
from messiahs.channel.certificates.fingerprints import certificate_fingerprint
from messiahs.channel.certificates.trusted_roots import trust_of
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.grpc_streams import open_stream
from messiahs.config.settings import TrustedFile
from messiahs.core.interface.events import (
    ControlReceived,
    LinkRefused,
    LinkUp,
    TransferFailed,
    TransferReceived,
    VectorReceived,
)
from messiahs.core.interface.messages import StatusVector, SystemStatusQuery, VectorKind
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import SystemId
from messiahs.core.model.trust import Trust
from messiahs.core.vectors.vectors import EMPTY
from messiahs.errors import ChannelError
from tests.contract.channel_modules import CS, NYNEVE, XINU, MakeChannels, Recorded, World, tls_files, transfer
from tests.waiting import until

GATE = SystemId("anl-gate")
VECTOR = StatusVector(kind=VectorKind.FOR_PARENTS, vector=EMPTY, period_ns=1, age_ns=2)
RECEIVED = (ControlReceived, VectorReceived, TransferReceived)
METHODS = ("Control/Exchange", "Update/Exchange", "Task/Transfer")


class Sites:
    """Two sites with a root each: `cs` and its neighbors at ours, `anl-gate` at theirs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ours, self.theirs = tls.make_root("campus"), tls.make_root("campus")
        self.files: dict[SystemId, tls.TlsFiles] = {}
        for name in (CS, XINU, NYNEVE):
            self.files[name] = self.issued(self.ours, name)
        self.files[GATE] = self.issued(self.theirs, GATE)
        for name, other in ((CS, GATE), (GATE, CS)):
            self.files[name] = self.trusting(name, other)

    def issued(self, root: tls.KeyAndCertificate, name: SystemId) -> tls.TlsFiles:
        """Return the files of a module that a root has signed."""
        return tls_files(self._folder / ("ours" if root is self.ours else "theirs"), root, name=name)

    def trusting(self, name: SystemId, other: SystemId) -> tls.TlsFiles:
        """Return the files of a module that knows the root of the other site."""
        files = self.files[name]
        recorded = TrustedFile(file=self.files[other].trust_file, names=(other,))
        return replace(files, links=((other, (recorded,)),))

    def make(self) -> MakeChannels:
        """Return a maker of channels that uses these files."""

        def make(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
            return grpc_channels(settings, callbacks, tls.load(self.files[settings.name]))

        return make


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    return Sites(tmp_path)


def play(sites: Sites, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World(sites.make())
        try:
            async with asyncio.timeout(60):
                await scene(world)
        finally:
            await world.stop_all()

    asyncio.run(run())


async def cs_of_two_sites(world: World) -> Recorded:
    return await world.start(CS, neighbors=((XINU, None), (GATE, None)))


async def codes(files: tls.TlsFiles, address: str) -> set[grpc.StatusCode]:
    """Try every method of a module at `address`, as any program with these files could."""
    material = tls.load(files)
    credentials = grpc.ssl_channel_credentials(material.trust, material.key, material.certificate)
    options = (("grpc.ssl_target_name_override", "cs"),)
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        link = (("messiahs-link", "1"),)
        calls = [open_stream(channel, f"/messiahs.wire.v1.{method}", metadata=link) for method in METHODS]
        reading = channel.unary_stream("/messiahs.wire.v1.Task/Read", None, None)(b"")
        return {await call.code() for call in calls} | {await reading.code()}


def test_a_neighbor_with_a_root_of_its_own_is_an_ordinary_neighbor(sites: Sites) -> None:
    async def scene(world: World) -> None:
        cs = await cs_of_two_sites(world)
        gate = await world.start(GATE, neighbors=((CS, cs.channels.address),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: gate.of_kind(LinkUp) and xinu.of_kind(LinkUp), "both links")
        for module in (gate, xinu):
            module.channels.send_control(CS, SystemStatusQuery())
            module.channels.send_vector(CS, VECTOR)
            module.channels.send_tasks(CS, cs.channels.address, transfer(1))
        await until(
            lambda: senders(cs) == {(name, kind) for name in (GATE, XINU) for kind in RECEIVED}, "what was sent"
        )
        cs.channels.send_tasks(GATE, gate.channels.address, transfer(2))
        await until(lambda: gate.of_kind(TransferReceived), "tasks for the other site")
        assert cs.refused == gate.refused == xinu.refused == []

    play(sites, scene)


def senders(module: Recorded) -> set[tuple[SystemId, type]]:
    return {(event.sender, type(event)) for event in module.events if isinstance(event, RECEIVED)}


@pytest.mark.parametrize("name", [XINU, NYNEVE, CS])
def test_the_root_of_another_site_vouches_for_none_of_our_names(sites: Sites, name: SystemId) -> None:
    async def scene(world: World) -> None:
        cs = await cs_of_two_sites(world)
        forged = replace(sites.issued(sites.theirs, name), trust_file=sites.files[CS].trust_file)
        assert await codes(forged, cs.channels.address) == {grpc.StatusCode.PERMISSION_DENIED}
        assert {text for _, text in cs.refused} == {
            f"its certificate names {name}, but no root that vouches for {name} signed it"
        }
        # The peer has not proven its name, so the refusals are reported under its address.
        assert all(peer.startswith("ipv4:127.0.0.1:") for peer, _ in cs.refused)
        assert len(cs.refused) == len(METHODS) + 1
        # A neighbor may want to know that somebody poses as it.
        assert cs.events == ([LinkRefused(neighbor=name, text=cs.refused[0][1])] if name == XINU else [])

    play(sites, scene)


def test_our_own_root_does_not_vouch_for_a_neighbor_at_another_site(sites: Sites) -> None:
    async def scene(world: World) -> None:
        cs = await cs_of_two_sites(world)
        forged = sites.issued(sites.ours, GATE)
        assert await codes(forged, cs.channels.address) == {grpc.StatusCode.PERMISSION_DENIED}
        assert cs.events == [LinkRefused(neighbor=GATE, text=cs.refused[0][1])]

    play(sites, scene)


def test_a_valid_certificate_does_not_validate_a_forged_one(sites: Sites) -> None:
    async def scene(world: World) -> None:
        cs = await cs_of_two_sites(world)
        await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: cs.of_kind(LinkUp), "a link with the true one")
        forged = replace(sites.issued(sites.theirs, XINU), trust_file=sites.files[CS].trust_file)
        assert await codes(forged, cs.channels.address) == {grpc.StatusCode.PERMISSION_DENIED}
        assert len(cs.of_kind(LinkUp)) == 1

    play(sites, scene)


def test_a_dialing_module_trusts_only_the_roots_of_that_link(sites: Sites) -> None:
    async def scene(world: World) -> None:
        sites.files[GATE] = sites.trusting(GATE, CS)
        impostor = replace(sites.issued(sites.theirs, XINU), links=())
        true, sites.files[XINU] = sites.files[XINU], impostor
        listening = await world.start(XINU)
        sites.files[XINU] = true
        cs = await world.start(CS, neighbors=((XINU, listening.channels.address), (GATE, None)))
        await until(lambda: cs.refused, "the refusal")
        assert cs.refused[0][1].startswith("its certificate is signed by no root recorded for it: ")
        cs.channels.send_tasks(XINU, listening.channels.address, transfer(1))
        await until(lambda: cs.of_kind(TransferFailed), "a transfer that fails")
        assert listening.events == []
        (failed,) = cs.of_kind(TransferFailed)
        assert (failed.kind, failed.text) == (TransferFailure.UNTRUSTED, cs.refused[0][1])
        # The rest names files of this host.
        assert failed.public == "its certificate is signed by no root recorded for it"

    play(sites, scene)


def test_an_executor_that_does_not_trust_an_origin_is_reported_as_untrusting(sites: Sites) -> None:
    async def scene(world: World) -> None:
        cs = await cs_of_two_sites(world)
        sites.files[XINU] = replace(sites.issued(sites.theirs, XINU), trust_file=sites.files[CS].trust_file)
        xinu = await world.start(XINU)
        xinu.channels.send_tasks(CS, cs.channels.address, transfer(1))
        await until(lambda: xinu.of_kind(TransferFailed), "a transfer that fails")
        (failed,) = xinu.of_kind(TransferFailed)
        assert failed.kind is TransferFailure.UNTRUSTED
        assert "no root that vouches for xinu signed it" in failed.text

    play(sites, scene)


def test_a_module_reports_the_roots_that_it_trusts_and_those_that_vouch_for_it(sites: Sites, tmp_path: Path) -> None:
    ours, theirs = (_fingerprint_of(root) for root in (sites.ours, sites.theirs))
    assert trust_of(tls.load(sites.files[CS])) == Trust(roots=(ours,), vouchers=(ours,))
    both = tmp_path / "both.pem"
    both.write_bytes(sites.theirs.certificate + sites.ours.certificate)
    files = replace(sites.files[XINU], trust_file=both)
    assert trust_of(tls.load(files)) == Trust(roots=(theirs, ours), vouchers=(ours,))


def _fingerprint_of(root: tls.KeyAndCertificate) -> bytes:
    return certificate_fingerprint(ssl.PEM_cert_to_DER_cert(root.certificate.decode()))


@pytest.mark.processes
def test_a_module_of_one_site_does_without_cryptography(sites: Sites) -> None:
    files = sites.files[XINU]
    program = """
import sys
from pathlib import Path
from messiahs.channel.certificates import tls, trusted_roots
from messiahs.config.settings import TrustedFile
certificate, key, trust = map(Path, sys.argv[1:])
same = (("cs", (TrustedFile(file=trust, names=("cs",)),)),)
files = tls.TlsFiles(certificate_file=certificate, key_file=key, trust_file=trust, links=same)
material = tls.load(files)
context = {"x509_pem_cert": [material.certificate], "peer_uri": [b"messiahs://campus/xinu"], "peer_dns": [b"xinu"]}
presented = trusted_roots.Presented.to_grpc(context)
assert trusted_roots.TrustedRoots(material, "campus").check(presented).system == "xinu"
assert trusted_roots.trust_of(material).vouchers
assert not [name for name in sys.modules if name.startswith("cryptography")]
"""
    paths = (files.certificate_file, files.key_file, files.trust_file)
    subprocess.run([sys.executable, "-c", program, *map(str, paths)], check=True)


@pytest.mark.parametrize("content", [b"", b"no certificate\n"])
def test_a_trust_file_without_a_certificate_is_a_channel_error_that_names_it(sites: Sites, content: bytes) -> None:
    sites.files[GATE].trust_file.write_bytes(content)
    with pytest.raises(ChannelError, match=r"theirs/root\.pem: it contains no certificate in PEM"):
        tls.load(sites.files[CS])
