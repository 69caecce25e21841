"""`messiahs audit decisions` at both ends of a link says who decided what and why, also when a module is killed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.linked_pair import await_link, kill, linked_pair, only_on
from tests.live.small_sites import Site
from tests.waiting import eventually

ASKING = """
import http.client, os, socket, sys
os.setgid({uid}); os.setuid({uid})
plug = socket.socket(socket.AF_UNIX)
plug.connect({path!r})
connection = http.client.HTTPConnection("localhost")
connection.sock = plug
connection.request("GET", "/v1/audit/decisions")
response = connection.getresponse()
assert response.status == 200
sys.stdout.buffer.write(response.read())
"""


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    with linked_pair(tmp_path) as pair:
        yield pair


def decisions(site: Site, *words: str) -> list[dict[str, Any]]:
    """Return the lines that a site's module has written."""
    shown = site.run("audit", "decisions", "--json", *words)
    return [json.loads(line) for line in shown.stdout.splitlines()]


def told(site: Site, what: str, *words: str) -> dict[str, Any]:
    """Return the only line about something, as soon as it is there."""
    found: dict[str, list[dict[str, Any]]] = {}
    eventually(
        lambda: found.update(it=[each for each in decisions(site, *words) if each["what"] == what]) or found["it"]
    )
    assert len(found["it"]) == 1, found
    return found["it"][0]


def test_a_task_is_followed_at_its_origin_and_at_its_executor(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    task = alpha.run("submit", *only_on(beta), "--", "sh", "-c", "exit 3").stdout.strip()
    alpha.run("wait", task)
    by = told(alpha, "submitted", "--task", task)
    assert (by["kind"], by["by"], by["uid"], by["user"]) == ("task", "root", 0, "root")
    bound = told(alpha, "bound", "--task", task)
    assert (bound["module"], bound["neighbor"], bound["tasks"]) == ("alpha", "beta", [f"{task}#1"])
    assert told(alpha, "finished", "--task", task)["why"] == "exit code 3"
    accepted = told(beta, "accepted")
    assert (accepted["neighbor"], accepted["origin"], accepted["user"]) == ("alpha", "alpha", "root")
    for what in ("taken", "started"):
        assert told(beta, what, "--task", task)["tasks"] == [f"{task}#1"]
    ended = told(beta, "ended", "--task", task, "--neighbor", "alpha")
    assert (ended["code"], ended["why"]) == ("finished", "exit code 3")


def test_acts_of_people_have_their_author_and_reason_and_denials_are_counted(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    refusing = beta.folder / "none.policy"
    refusing.write_text('policy "none" version 1;\naccept from any { require $cpus > 90 else "not today"; }\n')
    broken = beta.folder / "broken.policy"
    broken.write_text("polly")
    assert beta.run("policy", "load", str(refusing)).returncode == 0
    assert beta.run("policy", "load", str(broken)).returncode
    loaded = told(beta, "loaded", "--kind", "policy")
    assert (loaded["by"], loaded["uid"]) == ("root", 0)
    assert str(refusing) in loaded["about"]
    assert "SHA-256" in loaded["about"]
    assert str(broken) in told(beta, "refused", "--kind", "policy")["about"]
    task = alpha.run("submit", *only_on(beta), "--", "true").stdout.strip()
    denied = told(beta, "denied", "--neighbor", "alpha")
    assert (denied["code"], denied["why"]) == ("refused_by_policy", "not today")
    assert alpha.run("cancel", task).returncode == 0
    cancelled = told(alpha, "cancelled", "--task", task)
    assert (cancelled["by"], cancelled["user"]) == ("root", "root")
    assert alpha.run("neighbor", "off", "beta", "--reason", "incident 7").returncode == 0
    off = told(alpha, "shut_off", "--kind", "member", "--user", "root")
    assert (off["neighbor"], off["why"], off["by"]) == ("beta", "incident 7", "root")
    shown = alpha.run("audit", "decisions", "--kind", "member", "--neighbor", "beta").stdout
    assert "member  shut_off  by root  neighbor beta  why incident 7" in shown


def test_nothing_that_was_done_is_missing_after_kills(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    array = alpha.run("submit", *only_on(beta), "--array", "1-30", "--", "sleep", "0.1").stdout.strip()
    for site in (alpha, beta, alpha):
        eventually(lambda: any(each["what"] == "finished" for each in decisions(alpha)))
        kill(site)
        site.start()
    await_link(alpha, beta)
    assert alpha.run("wait", array).returncode == 0
    members = alpha.document("status", array, "--members")["tasks"]
    for what in ("bound", "finished"):
        named = {task for line in decisions(alpha) if line["what"] == what for task in line["tasks"]}
        assert {each["id"] for each in members} <= {task.partition("#")[0] for task in named}
    assert decisions(alpha, "--task", f"{array}.7")


def test_who_follows_reads_each_line_once_through_a_kill_of_the_module(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    following = alpha.begin("audit", "decisions", "--json", "--follow", "--kind", "task")
    assert following.stdout is not None
    shown: list[str] = []
    for _ in range(2):
        array = alpha.run("submit", *only_on(beta), "--array", "1-8", "--", "sleep", "0.2").stdout.strip()
        told(alpha, "submitted", "--task", array)
        kill(alpha)
        alpha.start()
        await_link(alpha, beta)
        assert alpha.run("wait", array).returncode == 0
    last = alpha.run("submit", "--", "true").stdout.strip()
    told(alpha, "submitted", "--task", last)
    while not shown or not ('"submitted"' in shown[-1] and f'"{last}"' in shown[-1]):
        shown.append(following.stdout.readline())
    following.kill()
    following.communicate()
    written = [json.dumps(each) for each in decisions(alpha, "--kind", "task")]
    before = written[: written.index(json.dumps(json.loads(shown[-1]))) + 1]
    told_once = [json.dumps(json.loads(each)) for each in shown]
    assert len(set(told_once)) == len(told_once)
    assert set(before) <= set(told_once)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_others_see_what_concerns_their_tasks_alone(sites: tuple[Site, Site]) -> None:
    alpha, _ = sites
    task = alpha.run("submit", "--", "true").stdout.strip()
    told(alpha, "submitted", "--task", task)
    folder = alpha.folder / "state" / "pact" / "alpha" / "audit"
    assert all(each.stat().st_mode & 0o077 == 0 for each in (folder, *folder.glob("*"), *folder.glob("*/*")))
    socket_path = alpha.folder / "state" / "pact" / "alpha.sock"
    for each in (socket_path.parent, *socket_path.parent.parents):
        if each.stat().st_mode & 0o011 != 0o011:
            each.chmod(0o711)
    assert b"submitted" in answer_for(0, socket_path)
    assert answer_for(65533, socket_path) == b""


def answer_for(uid: int, socket_path: Path) -> bytes:
    """Return the audit log that a module shows to an account."""
    asking = ASKING.format(uid=uid, path=str(socket_path))
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, check=True, cwd="/")
    return done.stdout
