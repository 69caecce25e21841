"""Another parent for a running module: what is refused before anybody is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.channel.membership.tokens import JoinToken
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Neighbor
from messiahs.daemon.membership.parents import Parents
from messiahs.errors import ChannelError, MessiahsError
from tests.ports import free_port
from tests.unit.daemon.membership.doors import ListedMembers, Rig, play

EE = SystemId("ee")


@dataclass(kw_only=True)
class DialingMembers(ListedMembers):
    """A module that notes where it dials its neighbors."""

    async def add(self, neighbor: Neighbor, text: str, *, address: str = "") -> str:
        """Enter it into the table, with its address."""
        return await super().add(neighbor, f"{text} at {address}")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Return the module `cs`."""
    return Rig(folder=tmp_path, members=DialingMembers())


def parents_of(rig: Rig) -> Parents:
    """Return what asks for the module."""
    assert isinstance(rig.members, DialingMembers)
    return Parents(rig.settings, rig.members)


def token_of(rig: Rig) -> JoinToken:
    """Return a token of `ee`, which does not run."""
    token, text = play(rig.door.make_token(pattern="*", lasts_ns=1_000))
    assert token.role == "child"
    return replace(JoinToken.from_text(text.encode()), parent=EE, address=f"127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"federation": "other"}, "the token is of the federation other, not campus"),
        ({"role": "sibling"}, "the token is for a sibling: ee makes one for a child"),
        ({"parent": SystemId("cs")}, "cs is this module itself"),
        ({"roots": make_root("campus").certificate}, "ee belongs to another site"),
    ],
    ids=["another federation", "for a sibling", "itself", "another site"],
)
def test_a_token_of_no_use_is_refused(rig: Rig, changes: Mapping[str, object], problem: str) -> None:
    token = replace(token_of(rig), **changes)  # type: ignore[arg-type] # the fields of a token
    with pytest.raises(MessiahsError, match=problem):
        play(parents_of(rig).join(token))
    assert not rig.members.known


def test_a_child_does_not_become_a_parent(rig: Rig) -> None:
    rig.members.known[EE] = Neighbor(system=EE, is_child=True)
    with pytest.raises(MessiahsError, match="ee is a child of this module, and cannot be above it as well"):
        play(parents_of(rig).join(token_of(rig)))


def test_a_parent_is_not_asked_again(rig: Rig) -> None:
    rig.members.known[EE] = Neighbor(system=EE, is_parent=True)
    assert not play(parents_of(rig).join(token_of(rig)))
    assert not rig.members.added


def test_a_module_that_is_not_reached_becomes_no_parent(rig: Rig) -> None:
    with pytest.raises(ChannelError, match="ee is not reached"):
        play(parents_of(rig).join(token_of(rig)))
    assert not rig.members.known
