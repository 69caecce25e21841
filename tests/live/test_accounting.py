"""`messiahs accounting` at both ends of a link says the same, after kills of both and a cut link."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.linked_pair import await_link, kill, linked_pair, only_on
from tests.live.small_sites import Site
from tests.waiting import eventually

MEMBERS = 12
HEADER = ["NEIGHBOR", "SINCE", "GIVEN", "GIVEN USED", "TAKEN", "TAKEN USED", "BALANCE"]
BUSY = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    with linked_pair(tmp_path) as pair:
        yield pair


def rows(site: Site, *words: str) -> list[dict[str, Any]]:
    """Return the lines of a site's ledger, as soon as its module answers."""
    found: dict[str, Any] = {}
    eventually(lambda: found.update(site.document("accounting", *words)) or found)
    return list(found["rows"])


def account(site: Site, neighbor: str, *, part: str = "") -> tuple[float, float]:
    """Return what a neighbor was given and what it gave, in seconds: of what was held, or of the part that was used."""
    of_it = [row for row in rows(site) if row["neighbor"] == neighbor]
    return (of_it[0][f"given{part}_s"], of_it[0][f"taken{part}_s"]) if of_it else (0.0, 0.0)


def test_both_ends_agree_after_kills_of_both_and_a_cut_link(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    array = alpha.run("submit", *only_on(beta), "--array", f"1-{MEMBERS}", "--", "sleep", "0.5").stdout.strip()
    back = beta.run("submit", *only_on(alpha), "--", "sleep", "1").stdout.strip()
    for site in (alpha, beta):
        eventually(lambda: account(beta, "alpha")[0] > 0)
        kill(site)
        site.start()
    await_link(alpha, beta)
    assert alpha.run("neighbor", "off", "beta").returncode == 0
    assert alpha.run("neighbor", "on", "beta").returncode == 0
    await_link(alpha, beta)
    assert alpha.run("wait", array).returncode == 0
    assert beta.run("wait", back).returncode == 0
    # Claims end when they are idle, and then their final sums are exchanged.
    eventually(
        lambda: account(alpha, "beta") == account(beta, "alpha")[::-1] and account(alpha, "beta")[1] >= MEMBERS / 2
    )
    given, taken = account(alpha, "beta")
    assert given >= 1
    (of_user,) = (row for row in rows(alpha, "--by", "user", "--since", "1d") if row["origin"] == "alpha")
    assert (of_user["user"], of_user["here_s"], of_user["through"]) == ("root", 0.0, "")
    assert of_user["elsewhere_s"] == pytest.approx(taken)
    (theirs,) = (row for row in rows(beta, "--by", "user") if row["origin"] == "alpha")
    assert (theirs["through"], theirs["total_s"]) == ("alpha", pytest.approx(taken))
    assert sum(row["taken_s"] for row in rows(alpha, "--by", "day")) == pytest.approx(taken)
    assert re.split(" {2,}", alpha.run("accounting").stdout.splitlines()[0]) == HEADER


def test_both_ends_say_the_same_of_what_tasks_used_of_what_they_held(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    busy = alpha.run("submit", *only_on(beta), "--", "sh", "-c", BUSY).stdout.strip()
    idle = alpha.run("submit", *only_on(beta), "--", "sleep", "2").stdout.strip()
    assert alpha.run("wait", busy, idle).returncode == 0
    (measured_s, idle_s) = (each["usage"]["cpu_s"] for each in alpha.document("status", busy, idle)["tasks"])
    eventually(lambda: account(alpha, "beta")[1] >= 2 and account(alpha, "beta") == account(beta, "alpha")[::-1])
    _, used = account(alpha, "beta", part="_used")
    assert used == pytest.approx(measured_s + idle_s, abs=0.01)
    assert account(beta, "alpha", part="_used") == (used, 0.0)
    for by in ("user", "day"):
        (row,) = rows(alpha, "--by", by)
        assert row["elsewhere_used_s" if by == "user" else "taken_used_s"] == pytest.approx(used)
    (since,) = rows(alpha, "--since", "1d")
    assert since["taken_used_s"] == pytest.approx(used)
