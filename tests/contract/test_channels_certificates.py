"""Certificates that try more than their signer may vouch for, over real TLS and in both directions."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates import tls
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.grpc_streams import open_stream
from messiahs.config.settings import TrustedFile
from messiahs.core.interface.events import LinkRefused, LinkUp, TransferFailed, TransferReceived
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import SystemId
from tests.contract.authorities import Authority, Wanted, all_roots, naming
from tests.contract.channel_modules import CS, NYNEVE, XINU, Recorded, World, transfer
from tests.waiting import until

GATE, GATE_CHILD, FAR = SystemId("gate"), SystemId("gate.blue"), SystemId("far")
METHODS = ("Control/Exchange", "Update/Exchange", "Task/Transfer", "Task/Put")


class Sites:
    """Our site with `cs` and `xinu`, and theirs with `gate`, whose old and new root are recorded for that link.

    A third root was introduced for `far*`. Every module has files of its own (mutable).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ours, self.old, self.theirs, self.introduced = (
            Authority(name) for name in ("ours", "theirs, old", "theirs, new", "introduced")
        )
        self._own, self._recorded, self._far = (folder / f"roots-{name}.pem" for name in ("own", "gate", "far"))
        self._own.write_bytes(self.ours.root)
        self._recorded.write_bytes(all_roots((self.old, self.theirs)))
        self._far.write_bytes(self.introduced.root)
        self.files: dict[SystemId, tls.TlsFiles] = {}
        for name in (CS, XINU, NYNEVE):
            self.use(name, self.ours.sign(naming(name)))
        self.use(GATE, self.theirs.sign(naming(GATE)))

    def use(self, name: SystemId, made: tls.KeyAndCertificate) -> None:
        """Give a module a key and a certificate, and the roots of its own site's modules."""
        certificate, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        tls.write(made, certificate_file=certificate, key_file=key)
        link = (GATE, (TrustedFile(file=self._recorded, names=(GATE, "gate.*")),))
        self.files[name] = tls.TlsFiles(
            certificate_file=certificate,
            key_file=key,
            trust_file=self._own,
            links=(link,),
            introductions=(TrustedFile(file=self._far, names=("far*",)),),
        )

    def record_for_gate(self, roots: bytes) -> None:
        """Replace the roots that are recorded for the link with `gate`."""
        self._recorded.write_bytes(roots)

    def remedy(self, name: SystemId) -> str:
        """Return what to do about a certificate that no root recorded for a module has signed."""
        if name == GATE:
            return f"replace {self._recorded} (its `trust:` in the topology) with the root.pem of its site"
        trust = (
            "if it belongs to another site, name a copy of the root.pem of that site as its `trust:` in the topology"
        )
        return f"it needs one that is signed by a root in {self._own}; {trust}"

    def make(self, settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        """Make the channels of a module with its files."""
        return grpc_channels(settings, callbacks, tls.load(self.files[settings.name]))


@pytest.fixture
def sites(tmp_path: Path) -> Sites:
    return Sites(tmp_path)


def play(sites: Sites, scene: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        world = World(sites.make)
        try:
            async with asyncio.timeout(60):
                await scene(world)
        finally:
            await world.stop_all()

    asyncio.run(run())


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A certificate under which somebody poses as `name`; `why` it is refused where the handshake did not."""

    name: SystemId
    make: Callable[[Sites], tls.KeyAndCertificate]
    why: str = ""
    why_dialed: str = ""


def _signed_below(sites: Sites, name: SystemId) -> tls.KeyAndCertificate:
    return Authority("below", sites.theirs).sign(naming(name))


def _for_the_key_of(sites: Sites, name: SystemId) -> tls.KeyAndCertificate:
    return sites.theirs.sign(naming(name), key=sites.files[name].key_file.read_bytes())


def _unsigned(name: SystemId) -> str:
    return f"its certificate names {name}, but no root that vouches for {name} signed it"


NO_ROOT = "its certificate is signed by no root recorded for it: "
TWO = Wanted(uris=("messiahs://campus/gate", "messiahs://campus/xinu"), dns_names=("gate", "xinu"))
ANOTHER_DNS_NAME = "its certificate names gate as a URI, but not as a DNS name"
CROSSED = Wanted(uris=("messiahs://campus/gate",), dns_names=("xinu",))
OTHER_URI = Wanted(uris=("messiahs://campus/gate.red",), dns_names=("gate", "gate.red"))
AN_AUTHORITY = "its certificate names gate, but is that of an authority"
AUTHORITY = replace(naming(GATE), is_authority=True)
ATTEMPTS = {
    "expired": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(naming(GATE, days=(-2, -1))),
        why_dialed="its certificate is not valid: certificate has expired",
    ),
    "not yet valid": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(naming(GATE, days=(1, 2))),
        why_dialed="its certificate is not valid: certificate is not yet valid",
    ),
    "another federation": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(naming(GATE, federation="other")),
        why="its certificate names no system of campus",
    ),
    "an authority": Attempt(name=GATE, make=lambda sites: sites.theirs.sign(AUTHORITY), why=AN_AUTHORITY),
    "several names": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(TWO),
        why="its certificate names 2 systems: messiahs://campus/gate, messiahs://campus/xinu",
    ),
    "a DNS name that differs": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(CROSSED),
        why=ANOTHER_DNS_NAME,
    ),
    "an unknown root": Attempt(name=GATE, make=lambda _: Authority("unknown").sign(naming(GATE)), why_dialed=NO_ROOT),
    "our own root for their name": Attempt(
        name=GATE, make=lambda sites: sites.ours.sign(naming(GATE)), why=_unsigned(GATE), why_dialed=NO_ROOT
    ),
    "their root for our name": Attempt(
        name=XINU, make=lambda sites: sites.theirs.sign(naming(XINU)), why=_unsigned(XINU), why_dialed=NO_ROOT
    ),
    "an authority below their root for our name": Attempt(
        name=XINU, make=lambda sites: _signed_below(sites, XINU), why=_unsigned(XINU), why_dialed=NO_ROOT
    ),
    "their root for the key of our child": Attempt(
        name=XINU, make=lambda sites: _for_the_key_of(sites, XINU), why=_unsigned(XINU), why_dialed=NO_ROOT
    ),
    "the root that was introduced for other names": Attempt(
        name=GATE, make=lambda sites: sites.introduced.sign(naming(GATE)), why=_unsigned(GATE), why_dialed=NO_ROOT
    ),
    "their root for a name beside its pattern": Attempt(
        name=NYNEVE, make=lambda sites: sites.theirs.sign(naming(NYNEVE)), why=_unsigned(NYNEVE), why_dialed=NO_ROOT
    ),
}


@pytest.mark.parametrize("case", ATTEMPTS)
def test_who_dials_with_a_certificate_that_tries_more_is_refused_and_costs_nothing_else(
    case: str, sites: Sites
) -> None:
    tried = ATTEMPTS[case]
    forged = tried.make(sites)

    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((GATE, None), (XINU, None)))
        assert await refusals(forged, sites, address=cs.channels.address) <= {
            grpc.StatusCode.PERMISSION_DENIED if tried.why else grpc.StatusCode.UNAVAILABLE
        }
        assert {text for _, text in cs.refused} == ({tried.why} if tried.why else set())
        # Both neighbors have no link yet, and the core knows why for those whose names were used.
        impostors = (
            [LinkRefused(neighbor=tried.name, text=tried.why)]
            if tried.why in (_unsigned(tried.name), AN_AUTHORITY, ANOTHER_DNS_NAME)
            else []
        )
        assert cs.events == (impostors if tried.name in (GATE, XINU) else [])
        await _still_works(cs, world)

    play(sites, scene)


async def _still_works(cs: Recorded, world: World) -> None:
    for name in (GATE, XINU):
        module = await world.start(name, neighbors=((CS, cs.channels.address),))
        await until(partial(module.of_kind, LinkUp), f"the link of {name}")
        module.channels.send_tasks(CS, cs.channels.address, transfer(1))
    await until(lambda: len(cs.of_kind(TransferReceived)) == 2, "tasks of both")


async def refusals(forged: tls.KeyAndCertificate, sites: Sites, *, address: str) -> set[grpc.StatusCode]:
    """Try every method of `cs`, as any program with this certificate could."""
    credentials = grpc.ssl_channel_credentials(sites.ours.root, forged.key, forged.certificate)
    options = (("grpc.ssl_target_name_override", "cs"),)
    async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
        link = (("messiahs-link", "1"),)
        calls = [open_stream(channel, f"/messiahs.wire.v1.{method}", metadata=link) for method in METHODS]
        reading = channel.unary_stream("/messiahs.wire.v1.Task/Read", None, None)(b"")
        return {await call.code() for call in calls} | {await reading.code()}


DIALED = {
    **ATTEMPTS,
    "a URI that differs": Attempt(
        name=GATE,
        make=lambda sites: sites.theirs.sign(OTHER_URI),
        why="its certificate names gate.red instead of gate",
    ),
}


@pytest.mark.parametrize("case", DIALED)
def test_who_is_dialed_and_shows_a_certificate_that_tries_more_gets_neither_a_link_nor_tasks(
    case: str, sites: Sites
) -> None:
    tried = DIALED[case]
    true = sites.files[tried.name]
    forged = tried.make(sites)

    async def scene(world: World) -> None:
        sites.use(tried.name, forged)
        impostor = await world.start(tried.name, neighbors=((CS, None),))
        address = impostor.channels.address
        cs = await world.start(CS, neighbors=((tried.name, address),))
        await until(lambda: cs.refused, "the refusal")
        why = tried.why_dialed or tried.why
        if why is NO_ROOT:
            why += sites.remedy(tried.name)
        assert cs.refused[0] == (tried.name, why)
        assert cs.of_kind(LinkRefused)[-1:] == [LinkRefused(neighbor=tried.name, text=why)]
        cs.channels.send_tasks(tried.name, address, transfer(1))
        await until(lambda: cs.of_kind(TransferFailed), "tasks that cannot be sent")
        (failed,) = cs.of_kind(TransferFailed)
        assert (failed.kind, failed.text) == (TransferFailure.UNTRUSTED, why)
        assert impostor.events == []
        assert not cs.of_kind(LinkUp)
        await world.stop(impostor)
        sites.files[tried.name] = true
        sites.use(tried.name, (sites.theirs if tried.name == GATE else sites.ours).sign(naming(tried.name)))
        await world.start(tried.name, neighbors=((CS, None),), listen=address)
        await until(lambda: cs.of_kind(LinkUp), "the link with the true one")

    play(sites, scene)


def test_a_copy_of_the_own_root_as_the_root_of_a_neighbor_is_to_be_replaced_and_the_own_roots_stay(
    sites: Sites,
) -> None:
    """With the neighbor's root among the own ones, that root could vouch for every system of this site."""
    sites.record_for_gate(sites.ours.root)

    async def scene(world: World) -> None:
        gate = await world.start(GATE, neighbors=((CS, None),))
        cs = await world.start(CS, neighbors=((GATE, gate.channels.address),))
        await until(lambda: cs.refused, "the refusal")
        assert cs.refused[0] == (GATE, NO_ROOT + sites.remedy(GATE))

    play(sites, scene)


def test_a_module_whose_own_certificate_has_expired_says_so_when_a_neighbor_hangs_up(sites: Sites) -> None:
    sites.use(XINU, sites.ours.sign(naming(XINU, days=(-2, -1))))

    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: xinu.refused, "the refusal")
        file = sites.files[XINU].certificate_file
        text = f"it hung up on this module, because the certificate of this module, {file}, expired at "
        assert xinu.refused[0][1].startswith(text)

    play(sites, scene)


@pytest.mark.parametrize("dialing", [CS, XINU])
def test_an_authority_is_no_module_also_where_all_have_one_root(dialing: SystemId, sites: Sites) -> None:
    sites.use(XINU, sites.ours.sign(replace(naming(XINU), is_authority=True)))
    for name, files in sites.files.items():
        sites.files[name] = replace(files, links=(), introductions=())
    dialed = XINU if dialing == CS else CS

    async def scene(world: World) -> None:
        listening = await world.start(dialed, neighbors=((dialing, None),))
        other = await world.start(dialing, neighbors=((dialed, listening.channels.address),))
        cs = other if dialing == CS else listening
        await until(lambda: cs.refused, "the refusal")
        why = "its certificate names xinu, but is that of an authority"
        assert cs.refused[0][1] == why
        assert cs.of_kind(LinkRefused)[-1] == LinkRefused(neighbor=XINU, text=why)
        assert not listening.of_kind(LinkUp)
        assert not other.of_kind(LinkUp)

    play(sites, scene)


@pytest.mark.parametrize("kind", ["the old root", "the new root", "an authority below a root"])
def test_each_root_of_a_link_vouches_for_it_also_through_authorities_below_it(kind: str, sites: Sites) -> None:
    signers = {
        "the old root": sites.old,
        "the new root": sites.theirs,
        "an authority below a root": Authority("below", sites.theirs),
    }
    sites.use(GATE, signers[kind].sign(naming(GATE)))

    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((GATE, None),))
        gate = await world.start(GATE, neighbors=((CS, cs.channels.address),))
        await until(lambda: gate.of_kind(LinkUp), "the link that it dialed")
        cs.channels.send_tasks(GATE, gate.channels.address, transfer(1))
        await until(lambda: gate.of_kind(TransferReceived), "tasks")
        assert cs.refused == gate.refused == []

    play(sites, scene)


@pytest.mark.parametrize("name", [GATE_CHILD, FAR])
def test_names_of_a_pattern_may_send_and_get_tasks_straight_but_open_no_link(name: SystemId, sites: Sites) -> None:
    sites.use(name, (sites.introduced if name == FAR else sites.old).sign(naming(name)))

    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((GATE, None),))
        other = await world.start(name, neighbors=((CS, cs.channels.address),))
        await until(lambda: other.refused, "no link")
        assert f"{name} is no neighbor of cs" in other.refused[0][1]
        other.channels.send_tasks(CS, cs.channels.address, transfer(1))
        cs.channels.send_tasks(name, other.channels.address, transfer(2))
        await until(lambda: cs.of_kind(TransferReceived) and other.of_kind(TransferReceived), "tasks both ways")

    play(sites, scene)


def test_a_neighbor_that_accepts_connections_and_says_nothing_is_reported_before_it_is_given_up(sites: Sites) -> None:
    async def scene(world: World) -> None:
        # The system accepts connections for it.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            cs = await world.start(CS, neighbors=((XINU, address),))
            await until(lambda: cs.events, "the first report")
            text = f"{address} does not answer; is the module running, and the port open?"
            assert cs.events == [LinkRefused(neighbor=XINU, text=text)]
            # Nobody was refused so far.
            assert cs.refused == []
            await world.stop(cs)

    play(sites, scene)


def test_a_known_reason_stays_until_another_one_is_known(sites: Sites) -> None:
    async def scene(world: World) -> None:
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            address = "127.0.0.1", reserved.getsockname()[1]
        cs = await world.start(CS, neighbors=((XINU, f"127.0.0.1:{address[1]}"),))
        await until(lambda: cs.events, "that nobody listens")
        with socket.create_server(address):
            await until(lambda: len(cs.events) > 1, "that nobody answers")
        texts = [event.text for event in cs.of_kind(LinkRefused)]
        assert ["refused" in texts[0], "no answer within" in texts[1]] == [True, True]
        await world.stop(cs)

    play(sites, scene)


def test_who_poses_as_a_neighbor_with_a_link_leaves_the_link_and_the_core_alone(sites: Sites) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, neighbors=((XINU, None),))
        xinu = await world.start(XINU, neighbors=((CS, cs.channels.address),))
        await until(lambda: cs.of_kind(LinkUp) and xinu.of_kind(LinkUp), "the link")
        forged = sites.theirs.sign(naming(XINU))
        assert await refusals(forged, sites, address=cs.channels.address) == {grpc.StatusCode.PERMISSION_DENIED}
        assert cs.events == [LinkUp(neighbor=XINU)]

    play(sites, scene)
