"""Policies of real daemons: loaded, read again, refused, and their effect on neighbors."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from messiahs.client.module import ModuleClient
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

TOPOLOGY = """version: 1
federation: site
defaults: {policy: open.policy, update_period: 500ms}
systems:
  top:  {policy: top.policy, machine: SPARC}
  leaf: {parent: top, machine: MARKED}
  twig: {parent: top, machine: MACHINE}
"""
BELOW = ("--require", '$arch eq "x86_64"')
"""A task that the machine of `top` itself does not accept."""
OPEN = """policy "open";
advertise every 1s { send all; }
accept from any { limit 100 tasks; }
"""
TOP = 'policy "top"; accept from any { limit 100 tasks; }\nreveal to "leaf" { only $arch, $free_slots; as "site-7"; }\n'
CLOSED = (
    'policy "closed"; accept from any { require $user eq "no-such-user" else "closed for repair"; limit 1 tasks; }\n'
)
BAD = 'policy "bad"; accept from any { require $mem <= 8min; limit 1 tasks; }\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A federation whose policy files a test may change."""

    federation: Federation
    folder: Path

    def policy(self, module: str) -> dict[str, Any]:
        """Return the policy of a module."""
        return self.federation.document("module", "policy", "--module", module)

    def log(self, module: str) -> str:
        """Return the log of a module."""
        return (self.federation.folder(module) / "module.log").read_text()

    def hang_up(self) -> None:
        """Send SIGHUP to `messiahs up`."""
        os.kill(json.loads((self.federation.state / "site" / "supervisor.pid").read_text())["pid"], signal.SIGHUP)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Share a site among the tests of this file; each writes the policies that it needs."""
    folder = tmp_path_factory.mktemp("site")
    topology = TOPOLOGY
    for word, other in (("MACHINE", {}), ("MARKED", {"attributes": "{side: leaf}"}), ("SPARC", {"arch": "sparc"})):
        topology = topology.replace(word, fixed_machine(slots=2, avail_mem="4GiB", **other))
    for name, text in (("site.yaml", topology), ("open.policy", OPEN), ("top.policy", TOP), ("bad.policy", BAD)):
        (folder / name).write_text(text)
    (folder / "closed.policy").write_text(CLOSED)
    made = Federation(topology=folder / "site.yaml", name="site", state=folder / "state", module="top")
    with brought_up(made):
        yield Site(federation=made, folder=folder)


@pytest.fixture(autouse=True)
def as_before(site: Site) -> Iterator[None]:
    """Return every module to its own policy file after a test."""
    yield
    (site.folder / "open.policy").write_text(OPEN)
    (site.folder / "top.policy").write_text(TOP)
    for module in ("top", "leaf", "twig"):
        with ModuleClient(site.federation.state / "site" / f"{module}.sock") as client:
            assert client.load_policy(None)["problems"] == []


def _load(site: Site, name: str, module: str) -> None:
    done = site.federation.run("policy", "load", str(site.folder / name), "--module", module)
    assert done.returncode == 0, done.stderr


def test_a_loaded_policy_decides_and_outlives_the_daemon(site: Site) -> None:
    for module in ("leaf", "twig"):
        _load(site, "closed.policy", module)
    refused = site.federation.run("run", "--no-wait", *BELOW, "--", "true")
    assert refused.returncode == 125
    assert "closed for repair" in refused.stderr
    before = site.policy("leaf")
    assert (before["name"], before["loaded"]) == ("closed", True)
    assert before["file"] == str(site.folder / "closed.policy")
    pid = site.federation.pid("leaf", "daemon")
    site.federation.kill("leaf", "daemon")
    eventually(lambda: site.federation.pid("leaf", "daemon") != pid)
    assert site.policy("leaf") == before
    assert f"policy {before['file']}, SHA-256 {before['sha256']}, is in force" in site.log("leaf")
    assert site.federation.run("policy", "load", "--module", "leaf").returncode == 0
    after = site.policy("leaf")
    assert (after["name"], after["file"], after["loaded"]) == ("open", str(site.folder / "open.policy"), False)
    done = site.federation.run("run", *BELOW, "--", "echo", "open again")
    assert (done.returncode, done.stdout) == (0, "open again\n"), done.stderr


def test_an_invalid_file_is_reported_with_carets_and_changes_nothing(site: Site) -> None:
    before = site.policy("leaf")
    done = site.federation.run("policy", "load", str(site.folder / "bad.policy"), "--module", "leaf")
    assert done.returncode == 1
    assert f"{site.folder / 'bad.policy'}:1:49: error[P204]: size compared with a duration" in done.stderr
    assert "^^^^ duration" in done.stderr
    assert "nothing has changed" in done.stdout
    assert site.policy("leaf") == before
    assert "is refused" in site.log("leaf")
    as_json = site.federation.run("policy", "load", str(site.folder / "bad.policy"), "--module", "leaf", "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["problems"][0]["code"] == "P204"


def test_a_hangup_of_up_makes_all_modules_read_their_files_again(site: Site) -> None:
    (site.folder / "open.policy").write_text(OPEN.replace('"open"', '"open later"'))
    (site.folder / "top.policy").write_text(TOP.replace("top", "top later"))
    _load(site, "closed.policy", "leaf")
    site.hang_up()
    names = ("top later", "open later", "open later")
    eventually(lambda: tuple(site.policy(each)["name"] for each in ("top", "leaf", "twig")) == names)
    assert not site.policy("leaf")["loaded"]


def test_a_hangup_with_a_bad_file_is_logged_with_every_problem_and_the_running_policy_stays(site: Site) -> None:
    before = {module: site.policy(module) for module in ("top", "leaf")}
    (site.folder / "top.policy").write_text(BAD)
    site.hang_up()
    eventually(lambda: "top.policy:1:49: error[P204]: size compared with a duration" in site.log("top"))
    assert site.policy("top") == before["top"]
    eventually(lambda: site.policy("leaf")["since"] != before["leaf"]["since"])


def test_a_task_runs_on_while_policies_are_loaded_and_the_trace_holds_them(site: Site) -> None:
    assert site.federation.run("trace", "start", "--all").returncode == 0
    task = site.federation.submit(*BELOW, "--", "sleep", "4")
    eventually(lambda: site.federation.status(task)["substate"] == "running")
    executor = site.federation.status(task)["executed_on"]
    _load(site, "closed.policy", executor)
    _load(site, "closed.policy", "top")
    assert site.federation.run("wait", task).returncode == 0
    status = site.federation.status(task)
    assert (status["attempt"], status["executed_on"]) == (1, executor)
    assert site.federation.run("trace", "stop", "--all").returncode == 0
    replayed = site.federation.document("trace", "replay")
    assert replayed["differences"] == []
    shown = site.federation.run("trace", "show").stdout
    assert f"{executor}: loads the policy {site.folder / 'closed.policy'}, SHA-256 " in shown


def test_decisions_that_would_change_are_found_in_a_live_recording(site: Site) -> None:
    old, same, new = (str(site.folder / name) for name in ("open.policy", "same.policy", "closed.policy"))
    (site.folder / "same.policy").write_text(OPEN)
    assert site.federation.run("trace", "start", "--module", "leaf", "--size", "4MiB").returncode == 0
    done = site.federation.run("run", "--require", '$side eq "leaf"', "--", "true")
    assert done.returncode == 0, done.stderr
    assert site.federation.run("trace", "stop", "--module", "leaf").returncode == 0
    trace = str(max((site.federation.folder("leaf") / "trace").glob("*.trace")))
    alike = site.federation.document("policy", "diff", old, same, "--replay", trace)
    assert (alike["changes"], alike["notes"]) == ([], [])
    assert alike["asked"] > 0
    found = site.federation.run("policy", "diff", old, new, "--replay", trace, "--json")
    assert found.returncode == 1, found.stderr
    changes = json.loads(found.stdout)["changes"]
    (accepting,) = [each for each in changes if each["question"] == "accept 1 slot from top"]
    assert (accepting["module"], accepting["old"]) == ("leaf", "accepted")
    assert "closed for repair" in accepting["new"]
    shown = site.federation.run("policy", "diff", new, old, "--replay", trace)
    assert shown.returncode == 1
    assert "    new  accepted" in shown.stdout.splitlines()
    assert "and not under the old policy" in shown.stderr


def test_neighbors_receive_a_changed_reveal_at_once(site: Site) -> None:
    def seen_by(module: str) -> list[str]:
        view = site.federation.vectors(module)["views"]["top"]
        return sorted({name for each in view["classes"] for name in each["attributes"]})

    eventually(lambda: seen_by("leaf") == ["arch", "free_slots"])
    eventually(lambda: "avail_mem" in seen_by("twig"))
    (site.folder / "top.policy").write_text(OPEN + "reveal to any { only $os; }")
    assert site.federation.run("policy", "load", "--module", "top").returncode == 0
    eventually(lambda: seen_by("leaf") == seen_by("twig") == ["os"])


def test_a_preview_is_the_view_that_the_neighbor_has(site: Site) -> None:
    def sent_to(neighbor: str) -> tuple[int, list[Any]]:
        (vector,) = site.federation.document("module", "preview", neighbor)["now"]["vectors"]
        return vector["machines"], vector["classes"]

    def seen_by(neighbor: str) -> tuple[int, list[Any]]:
        view = site.federation.vectors(neighbor)["views"]["top"]
        return view["machines"], view["classes"]

    for neighbor in ("leaf", "twig"):
        eventually(lambda: sent_to(neighbor) == seen_by(neighbor))  # noqa: B023 - called within this round
    leaf = site.federation.document("module", "preview", "leaf")
    assert (leaf["relation"], leaf["now"]["name"], sent_to("leaf")[0]) == ("child", "site-7", 1)
    assert site.federation.document("module", "preview", "twig")["now"]["name"] == "top"


def test_a_preview_under_another_policy_shows_the_difference_and_changes_nothing(site: Site) -> None:
    wider = site.folder / "wider.policy"
    wider.write_text('policy "wider"; reveal to "leaf" { only $arch, $os; hide counts below 2; }')
    before = site.policy("top")
    shown = site.federation.run("module", "preview", "leaf", "--policy", str(wider))
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "- name in denials: site-7" in lines
    assert "+ name in denials: top" in lines
    assert any(line.startswith("-   1 x arch sparc") for line in lines)
    assert any(line.startswith("+ ") and line.endswith(": 0 machines") for line in lines)
    assert "that name is used in denials only" in lines[-1]
    assert site.policy("top") == before


def test_a_preview_under_the_same_policy_shows_no_difference(site: Site) -> None:
    shown = site.federation.run("module", "preview", "leaf", "--policy", str(site.folder / "top.policy"))
    assert shown.returncode == 0, shown.stderr
    assert [line for line in shown.stdout.splitlines() if line.startswith(("- ", "+ "))] == []
    assert "  name in denials: site-7" in shown.stdout.splitlines()


def test_a_preview_under_an_invalid_policy_reports_its_mistakes_as_json_too(site: Site) -> None:
    done = site.federation.run("module", "preview", "leaf", "--policy", str(site.folder / "bad.policy"), "--json")
    assert done.returncode == 1
    assert [each["code"] for each in json.loads(done.stdout)["problems"]] == ["P204"]


def test_a_preview_for_a_stranger_lists_the_neighbors(site: Site) -> None:
    done = site.federation.run("module", "preview", "nobody")
    assert done.returncode == 1
    assert "`nobody` is no neighbor of top; those are leaf (child), twig (child)" in done.stderr


def test_a_preview_under_an_invalid_policy_reports_its_mistakes(site: Site) -> None:
    done = site.federation.run("module", "preview", "leaf", "--policy", str(site.folder / "bad.policy"))
    assert done.returncode == 1
    assert "bad.policy:1:49: error[P204]" in done.stderr


def test_sums_are_shown_as_they_are_combined(site: Site) -> None:
    def said() -> set[str]:
        up = site.federation.vectors("top")["up"]
        below = [each for each in up["classes"] if each["attributes"].get("arch") == "x86_64"]
        return {name for each in below for name in each["attributes"]}

    eventually(lambda: {"load", "slots"} <= said())
    (site.folder / "top.policy").write_text(OPEN + "combine { $slots: drop; }")
    assert site.federation.run("policy", "load", "--module", "top").returncode == 0
    eventually(lambda: "slots" not in said())
    assert "load" in said()
