"""The door of a module when a newcomer has the name of a neighbor."""

from pathlib import Path

from messiahs.core.model.neighbors import Neighbor
from tests.unit.daemon.membership.doors import XINU, ListedMembers, Rig, denied, wanting


def test_a_newcomer_with_the_name_of_an_assigned_sibling_learns_how_an_administrator_lets_it_in(tmp_path: Path) -> None:
    known = {XINU: Neighbor(system=XINU, is_sibling=True)}
    rig = Rig(folder=tmp_path, members=ListedMembers(known=known, assigned=(XINU,)))
    remedy = "choose another name, or let its administrator type `messiahs module remove xinu --module cs` first"
    assert denied(rig.ask(rig.token(), wanting())) == f"cs has a neighbor xinu already: {remedy}"
