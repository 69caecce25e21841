"""The door of a module when something goes wrong while a system is added."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from messiahs.core.model.instants import HOUR
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.membership.token_book import Phase
from messiahs.wire.codec import JoinPending
from tests.unit.daemon.membership.doors import XINU, ListedMembers, Rig, denied, play, wanting

_ALL = 'allow child when $peer.name ne "";'


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
