"""`messiahs audit log` at both ends of a link says what truly crossed it, also when modules are killed meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.linked_pair import await_link, kill, linked_pair, only_on
from tests.live.small_sites import Site
from tests.waiting import eventually

MEMBERS = 40
INPUT_BYTES = 100_000


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    with linked_pair(tmp_path) as pair:
        yield pair


def log(site: Site, *words: str) -> list[dict[str, Any]]:
    """Return the rows of a site's log, as soon as its module answers."""
    found: dict[str, Any] = {}
    eventually(lambda: found.update(site.document("audit", "log", *words)) or found)
    return list(found["rows"])


def tasks_in(site: Site) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the rows of tasks by neighbor, direction and submission, of which there is one row each."""
    rows = [row for row in log(site) if row["what"] == "tasks"]
    found = {(row["neighbor"], row["direction"], row["submission"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_both_ends_count_every_attempt_once_through_kills_of_both(sites: tuple[Site, Site], tmp_path: Path) -> None:
    alpha, beta = sites
    given = tmp_path / "given"
    given.write_bytes(b"x" * INPUT_BYTES)
    script = 'sleep 0.3; cat given >kept; test "$0" != 7'
    submit = ("submit", *only_on(beta), "--array", f"1-{MEMBERS}", "--input", str(given), "--output", "kept")
    array = alpha.run(*submit, "--", "sh", "-c", script, "{}").stdout.strip()
    single = beta.run("submit", *only_on(alpha), "--", "sh", "-c", "exit 3").stdout.strip()
    for site in (alpha, beta, alpha):
        before = sum(row["ended"].get("finished", 0) for row in tasks_in(alpha).values())
        eventually(lambda before=before: ended_in(alpha) > before)  # type: ignore[misc]
        kill(site)
        site.start()
    assert alpha.run("wait", array).returncode
    beta.run("wait", single)
    row = tasks_in(alpha)["beta", "out", array]
    theirs = tasks_in(beta)["alpha", "in", array]
    attempts = sum(task["attempt"] for task in alpha.document("status", array, "--members")["tasks"])
    for each in (row, theirs):
        assert (each["user"], each["shown_submission"]) == ("root", array)
        assert each["input_bytes"] == each["count"] * INPUT_BYTES
    assert (row["count"], row["ended"]["finished"]) == (attempts, MEMBERS)
    assert row["output_bytes"] == MEMBERS * INPUT_BYTES
    # Attempts may get lost on their way, and end there after their lease has expired here.
    assert MEMBERS <= theirs["ended"]["finished"] <= theirs["count"] <= attempts
    for site, neighbor, direction in ((alpha, "beta", "in"), (beta, "alpha", "out")):
        assert tasks_in(site)[neighbor, direction, single]["ended"] == {"finished": 1}


def ended_in(site: Site) -> int:
    return sum(row["ended"].get("finished", 0) for row in tasks_in(site).values())


def test_the_log_is_shown_in_columns_and_by_neighbor_and_time(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    assert alpha.run("run", *only_on(beta), "--", "true").returncode == 0
    assert alpha.run("run", *only_on(alpha), "--", "true").returncode == 0
    assert alpha.run("neighbor", "off", "beta", "--reason", "incident 7").returncode == 0
    shown = alpha.run("audit", "log").stdout.splitlines()
    assert shown[0].startswith("SINCE ")
    assert shown[1].split()[2:5] == ["beta", "out", "tasks"]
    assert shown[-1].endswith("incident 7")
    assert log(alpha, "--neighbor", "beta", "--since", "1h")[0]["what"] == "tasks"
    unknown = alpha.run("audit", "log", "--neighbor", "gamma")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "gamma is no neighbor of alpha, which has beta" in unknown.stderr
    assert alpha.run("neighbor", "on", "beta").returncode == 0
    await_link(alpha, beta)
