"""Revoked certificates pass along the links of a site, and renewals climb to the key of the root."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.revocations import read_revocations
from messiahs.channel.certificates.revoking import make_revocations
from messiahs.channel.certificates.tls import make_root
from messiahs.core.interface.events import LinkDown, LinkRefused, LinkUp
from messiahs.core.model.ids import SystemId
from messiahs.errors import CertificateError
from tests.contract.changing_site import ChangingSite
from tests.contract.channel_modules import CS, NYNEVE, XINU, Recorded, World, play
from tests.waiting import until

TOP = SystemId("top")


@pytest.fixture
def site(tmp_path: Path) -> ChangingSite:
    return ChangingSite(tmp_path)


async def chain(world: World) -> dict[SystemId, Recorded]:
    """Start four modules, each of which dials the one above: `top`, `cs`, `xinu`, `nyneve`."""
    names, started, above = (TOP, CS, XINU, NYNEVE), {}, ""
    for number, name in enumerate(names):
        parents = ((names[number - 1], above),) if number else ()
        children = ((names[number + 1], None),) if number + 1 < len(names) else ()
        started[name] = await world.start(name, neighbors=(*parents, *children))
        above = started[name].channels.address
    await until(lambda: len([1 for each in started.values() for _ in each.of_kind(LinkUp)]) == 6, "all links")
    return started


def test_a_list_at_one_end_is_in_force_three_hops_away_and_goes_to_those_that_link_later(site: ChangingSite) -> None:
    async def scene(world: World) -> None:
        modules = await chain(world)
        late = SystemId("late")
        site.certify(late)
        revoked = site.root.revoke(site.serials(late))
        site.reload(TOP)
        await until(lambda: all(site.has(name) == revoked.number for name in modules), "the list everywhere")
        assert not any(each.of_kind(LinkDown) for each in modules.values())
        # A module with an older list gets the newer one with its next link; a revoked one gets no link.
        again = await world.start(late, neighbors=((NYNEVE, modules[NYNEVE].channels.address),))
        await until(lambda: again.of_kind(LinkRefused), "the refusal")
        assert not again.of_kind(LinkUp)

    play(site.make, scene)


def test_a_module_in_the_middle_that_is_revoked_loses_both_its_links(site: ChangingSite) -> None:
    async def scene(world: World) -> None:
        modules = await chain(world)
        site.root.revoke(site.serials(XINU))
        site.reload(NYNEVE)
        await until(lambda: modules[NYNEVE].of_kind(LinkDown), "the end of the link below")
        site.reload(TOP)
        await until(lambda: modules[CS].of_kind(LinkDown), "the end of the link above")
        assert not modules[TOP].of_kind(LinkDown)

    play(site.make, scene)


def test_a_list_of_another_root_or_an_older_one_changes_nothing(site: ChangingSite) -> None:
    async def scene(world: World) -> None:
        modules = await chain(world)
        first = site.root.revoke(frozenset({"abc"}))
        second = site.root.revoke(frozenset({"def"}))
        site.reload(CS)
        await until(lambda: all(site.has(name) == second.number for name in modules), "the list everywhere")
        steward = site.exchanges[XINU]._steward
        assert await steward.take_revocations(first.pem) == first.number
        with pytest.raises(CertificateError, match="no root of this site has signed"):
            await steward.take_revocations(make_revocations(make_root("campus"), {}, above=second.number))
        assert site.has(XINU) == second.number
        assert set(read_revocations(second.pem, site.root.roots).serials) == {0xABC, 0xDEF}

    play(site.make, scene)


def test_a_parent_gives_another_certificate_for_the_same_key_alone(site: ChangingSite) -> None:
    async def scene(world: World) -> None:
        await chain(world)
        files = site.files(XINU)
        key = files.key_file.read_bytes()
        _, request = make_request(federation="campus", name=XINU, key=key)
        # Backdated by a day, so that its last third has begun.
        own = site.root.sign(request, XINU, lifetime=timedelta(hours=2))
        made = await site.exchanges[XINU].ask(CS, request, certificate=own)
        assert made != own
        assert key_fingerprint(certificates_in(made)[0]) == key_fingerprint(certificates_in(own)[0])
        _, other = make_request(federation="campus", name=XINU)
        with pytest.raises(CertificateError, match="cs: the request is not for the key of xinu"):
            await site.exchanges[XINU].ask(CS, other, certificate=own)
        _, foreign = make_request(federation="campus", name=CS, key=key)
        with pytest.raises(CertificateError, match="names messiahs://campus/cs"):
            await site.exchanges[XINU].ask(CS, foreign, certificate=own)
        with pytest.raises(CertificateError, match="has passed too many modules"):
            await site.exchanges[XINU].ask(CS, request, certificate=own, hops=32)
        with pytest.raises(CertificateError, match="top is not linked"):
            await site.exchanges[XINU].ask(TOP, request, certificate=own)
        asked = [site.exchanges[XINU].ask(CS, request, certificate=own) for _ in range(30)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in answers} <= {bytes, CertificateError}

    play(site.make, scene)
