"""An administrator shuts off the other site with one command (`messiahs neighbor off`), and readmits it."""

import json
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.live.linked_pair import await_link, kill, linked_pair, only_on
from tests.live.small_sites import Site
from tests.waiting import eventually

REASON = "incident 7"


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    with linked_pair(tmp_path) as pair:
        yield pair


def link(site: Site) -> dict[str, str]:
    """Return the only neighbor of a site, as `neighbor list` shows it."""
    (found,) = site.document("neighbor", "list").get("neighbors", [{"state": "the module starts"}])
    return dict(found)


def rows(site: Site) -> int:
    """Return the number of stored rows that name a neighbor that is shut off."""
    with closing(sqlite3.connect(site.folder / "state" / "pact" / site.name / "module.db")) as database:
        ((count,),) = database.execute("SELECT count(*) FROM rows WHERE kind = 10").fetchall()
    return int(count)


def begin_task(site: Site, at: Site, *, mark: str) -> str:
    """Submit a task that runs at one site until it is ended, and wait until it runs."""
    task = site.run("submit", *only_on(at), "--", "sh", "-c", "while true; do sleep 0.1; done", mark).stdout.strip()
    eventually(lambda: is_running(mark))
    return task


def is_running(mark: str) -> bool:
    """Return whether a process with a mark among its arguments runs."""
    return any(mark in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


@pytest.mark.parametrize("by", ["the site that listens", "the site that dials"])
def test_one_command_ends_everything_with_a_partner_until_it_is_readmitted(
    sites: tuple[Site, Site], tmp_path: Path, by: str
) -> None:
    here, there = sites if by == "the site that listens" else sites[::-1]
    theirs, own = str(tmp_path / "theirs"), str(tmp_path / "own")
    begin_task(there, here, mark=theirs)
    task = begin_task(here, there, mark=own)
    done = here.run("neighbor", "off", there.name, "--reason", REASON)
    assert (done.returncode, done.stdout) == (0, f"{here.name} has shut {there.name} off\n")
    eventually(lambda: not is_running(theirs))
    assert (link(here)["state"], link(here)["reason"]) == ("shut_off", REASON)
    assert REASON in here.reason(there.name)
    eventually(lambda: there.reason(here.name) == "its administrator has shut this module off (shut_off)")
    eventually(lambda: (here.machines("down"), there.machines("down")) == (1, 1))
    # Killed and started again, it is shut off from the first moment on.
    kill(here)
    here.start()
    eventually(lambda: link(here)["state"] == "shut_off" and rows(here) == 1)
    eventually(lambda: not is_running(own))
    eventually(lambda: "lost" in json.dumps(here.document("status", task)["tasks"][0]["history"]))
    assert here.document("status", task)["tasks"][0]["substate"] == "queued"
    assert here.run("neighbor", "on", there.name).returncode == 0
    await_link(*sites)
    eventually(lambda: is_running(own))
    here.run("cancel", task)
    assert there.run("run", *only_on(here), "--", "true").returncode == 0
    assert [site.end() for site in sites] == [0, 0]
    assert rows(here) == 0
    written = "".join(file.read_bytes().decode(errors="replace") for file in there.folder.rglob("*.log*"))
    assert REASON not in written


def test_the_request_outlives_a_kill_of_the_module_in_its_middle(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    assert alpha.process is not None
    own = psutil.Process()
    before = len(own.net_connections("unix"))
    # The command would wait 10 s, and a busy host may take longer for a start.
    with ThreadPoolExecutor() as threads, alpha.client() as client:
        alpha.process.send_signal(signal.SIGSTOP)
        request = threads.submit(client.shut_off, "beta", reason=REASON)
        # Connected to a module that does not accept.
        eventually(lambda: len(own.net_connections("unix")) > before)
        kill(alpha)
        alpha.start()
        request.result()
    assert link(alpha)["state"] == "shut_off"
    eventually(lambda: "(shut_off)" in beta.reason("alpha"))


def test_names_that_are_no_neighbors_are_refused(sites: tuple[Site, Site]) -> None:
    alpha, _ = sites
    refused = alpha.run("neighbor", "off", "gamma")
    assert refused.returncode == 1
    assert refused.stderr == "messiahs: gamma is no neighbor of alpha, which has beta\n"
