"""The door of a module when something goes wrong while a system is added."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.membership.token_book import Phase
from messiahs.wire.codec import JoinAccept, JoinDeny, JoinPending
from tests.unit.daemon.membership.doors import XINU, ListedMembers, Rig, denied, play, wanting

_ALL = 'allow child when $peer.name ne ""; allow sibling when $peer.name ne "";'


@dataclass(kw_only=True)
class SlowMembers(ListedMembers):
    """A module that adds a neighbor when it is let go (mutable)."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def add(self, neighbor: Neighbor, text: str) -> str:
        """Enter it into the table, later."""
        self.begun.set()
        await self.go.wait()
        return await super().add(neighbor, text)


def test_a_neighbor_that_could_not_be_stored_is_not_added_after_the_expiry(tmp_path: Path) -> None:
    rig = Rig(folder=tmp_path, members=ListedMembers(rules=_ALL, problem="no space"))
    token, request = rig.token(), wanting()
    assert isinstance(rig.ask(token, request), JoinPending)
    rig.members.problem = ""
    rig.clock[0] += HOUR
    assert "has expired" in denied(rig.ask(token, request))
    assert not rig.members.known


def test_a_token_that_was_accepted_is_for_its_role_alone(tmp_path: Path) -> None:
    rig = Rig(folder=tmp_path, members=ListedMembers(rules=_ALL, problem="no space"))
    token, request = rig.token(role="sibling"), wanting(role=Relation.SIBLING)
    assert isinstance(rig.ask(token, request), JoinPending)
    rig.members.problem = ""
    assert denied(rig.ask(token, replace(request, role=Relation.CHILD))) == "the token is for a sibling"
    assert isinstance(rig.ask(token, request), JoinAccept)


def test_a_neighbor_whose_link_is_being_ended_is_judged_when_it_has_ended(tmp_path: Path) -> None:
    known = {XINU: Neighbor(system=XINU, is_child=True)}
    rig = Rig(folder=tmp_path, members=ListedMembers(rules=_ALL, known=known, leaving=(XINU,)))
    token, request = rig.token(), wanting()
    assert rig.ask(token, request) == JoinPending(text="the link with xinu is being ended", again_ns=2 * SECOND)
    assert [each.phase for each in rig.door.book.tokens()] == [Phase.UNUSED]
    rig.members.known.clear()
    rig.members.leaving, rig.members.rules = (), ""
    assert isinstance(rig.ask(token, request), JoinDeny)


def test_a_holder_that_hangs_up_while_it_is_added_has_used_its_token(tmp_path: Path) -> None:
    async def hang_up() -> None:
        members = SlowMembers(rules=_ALL)
        rig = Rig(folder=tmp_path, members=members)
        token, _ = await rig.door.make_token(pattern="*", lasts_ns=HOUR)
        asking = asyncio.create_task(rig.door.answer(token.id, wanting()))
        await members.begun.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert asking.cancelled()
        members.go.set()
        # The next act waits until the answer is whole.
        await rig.door.make_token(pattern="*", lasts_ns=HOUR)
        assert XINU in members.known
        assert {each.id: each.phase for each in rig.door.book.tokens()}[token.id] is Phase.ADDED

    play(hang_up())
