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

EE, HUB = SystemId("ee"), SystemId("hub")


@dataclass(kw_only=True)
class DialingMembers(ListedMembers):
    """A module that notes where it dials its neighbors, and has a link with some of them."""

    linked: tuple[SystemId, ...] = ()

    def is_linked(self, name: SystemId) -> bool:
        """Whether it is listed."""
        return name in self.linked

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


@pytest.mark.parametrize(
    ("here", "there", "problem"),
    [
        ({"borders": ("gate",)}, {}, "cs is behind the border gate, and ee is not: its name would be seen outside"),
        ({"borders": ("gate",)}, {"borders": (SystemId("hub"),)}, "cs is behind the border gate, and ee is not"),
        ({"borders": ("top",)}, {"borders": (EE,)}, "ee is behind the border ee or is it, and hub, a parent of cs, is"),
        (
            {},
            {"borders": (SystemId("gate"),)},
            "ee is behind the border gate or is it, and hub, a parent of cs, is not",
        ),
    ],
    ids=["out", "behind another one", "a border beside one that is none", "in"],
)
def test_a_parent_that_leads_past_a_border_is_refused(
    rig: Rig, here: dict[str, tuple[str, ...]], there: dict[str, tuple[SystemId, ...]], problem: str
) -> None:
    rig.members.known[HUB] = Neighbor(system=HUB, is_parent=True, is_primary_parent=True)
    token = replace(token_of(rig), **there)  # type: ignore[arg-type] # the fields of a token
    rig.settings = replace(rig.settings, **here)  # type: ignore[arg-type] # the fields of settings
    with pytest.raises(MessiahsError, match=problem):
        play(parents_of(rig).join(token))


@pytest.mark.parametrize("borders", [("hub",), ("ee", "hub"), ()])
def test_parents_behind_the_same_border_are_asked_and_so_are_two_borders(rig: Rig, borders: tuple[str, ...]) -> None:
    rig.members.known[HUB] = Neighbor(system=HUB, is_parent=True, is_primary_parent=True)
    rig.settings = replace(rig.settings, borders=borders and ("hub",))
    token = replace(token_of(rig), borders=tuple(map(SystemId, borders)))
    with pytest.raises(ChannelError, match="ee is not reached"):
        play(parents_of(rig).join(token))


def test_a_token_of_a_border_or_of_a_system_behind_one_says_so(rig: Rig) -> None:
    assert token_of(rig).borders == ()
    for settings, borders in (({"borders": ("gate",)}, ("gate",)), ({"is_border": True}, ("cs",))):
        rig.settings = replace(rig.settings, **settings)
        rig.restart()
        assert token_of(rig).borders == borders


def test_a_child_does_not_become_a_parent(rig: Rig) -> None:
    rig.members.known[EE] = Neighbor(system=EE, is_child=True)
    with pytest.raises(MessiahsError, match="ee is a child of this module, and cannot be above it as well"):
        play(parents_of(rig).join(token_of(rig)))


def test_a_parent_with_a_link_is_not_asked_again(rig: Rig) -> None:
    assert isinstance(rig.members, DialingMembers)
    rig.members.known[EE], rig.members.linked = Neighbor(system=EE, is_parent=True), (EE,)
    assert not play(parents_of(rig).join(token_of(rig)))
    assert not rig.members.added


def test_a_parent_without_a_link_is_asked_since_it_may_have_removed_this_module(rig: Rig) -> None:
    rig.members.known[EE] = Neighbor(system=EE, is_parent=True)
    with pytest.raises(ChannelError, match="ee is not reached"):
        play(parents_of(rig).join(token_of(rig)))


def test_a_parent_whose_link_is_being_ended_is_refused_until_it_has_ended(rig: Rig) -> None:
    assert isinstance(rig.members, DialingMembers)
    rig.members.known[EE], rig.members.leaving = Neighbor(system=EE, is_parent=True), (EE,)
    with pytest.raises(MessiahsError, match="the link with ee is being ended: repeat this when it has ended"):
        play(parents_of(rig).join(token_of(rig)))


def test_a_module_that_is_not_reached_becomes_no_parent(rig: Rig) -> None:
    with pytest.raises(ChannelError, match="ee is not reached"):
        play(parents_of(rig).join(token_of(rig)))
    assert not rig.members.known
