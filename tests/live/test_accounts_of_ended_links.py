"""The accounts of both ends of a link agree after it was ended while tasks ran beyond it, between two sites."""

import pytest

from tests.live.small_sites import Site, Sites, described, on, started
from tests.waiting import eventually

__all__ = ["described"]


def is_running(site: Site, array: str) -> bool:
    return [each["substate"] for each in site.members(array)] == ["running"]


def neighbors(site: Site) -> list[str]:
    return [each["name"] for each in site.document("neighbor", "list").get("neighbors", ())]


def account(site: Site, neighbor: str) -> tuple[float, float]:
    """Return what a neighbor was given and what it gave, in seconds."""
    (row,) = (row for row in site.document("accounting")["rows"] if row["neighbor"] == neighbor)
    return row["given_s"], row["taken_s"]


@pytest.mark.parametrize("by", ["uni", "chem"])
def test_both_sites_have_the_same_accounts_after_one_has_removed_the_other(described: Sites, by: str) -> None:
    sites = started(described)
    uni, chem, phys = sites["uni"], sites["chem"], sites["phys"]
    remover, other = (uni, chem) if by == "uni" else (chem, uni)
    array = phys.run("submit", *on("lab"), "--array", "1-1", "--", "sleep", "3").stdout.strip()
    eventually(lambda: is_running(phys, array))
    assert remover.run("module", "remove", other.name).returncode == 0
    assert phys.run("wait", array).returncode == 0
    eventually(lambda: (neighbors(uni), neighbors(chem)) == (["phys"], ["lab"]), "the end of the link")
    given, taken = account(uni, "chem")
    assert account(chem, "uni") == (taken, given)
    assert taken >= 3
    log = (uni.folder / "state" / "pact" / "uni" / "module.log").read_text()
    assert "chem neighbor_removed" in log
    assert "without an agreed final sum" not in log
