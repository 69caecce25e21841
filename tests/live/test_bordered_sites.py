"""Two sites behind borders, below a third system: tasks and all their bytes cross, and no names do."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.sites import BORDERED, Place, Sites, on, two_sites
from tests.live.test_stdin import copied
from tests.live.test_terminals import terminal
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, eventually

WAYS = [("in-ann-a", "in-bob-b"), ("in-bea-b", "in-abe-a")]
"""Both ways between the sites: through three borders, the first two of which are one below the other."""
INSIDE = {"a": ("in-group-a", "in-ann-a", "in-abe-a"), "b": ("in-group-b", "in-bea-b", "in-bob-b")}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Start both sites."""
    places = {name: Place(address=f"127.0.0.1:{free_port()}") for name in BORDERED.modules}
    with two_sites(tmp_path_factory.mktemp("sites"), places, plan=BORDERED) as made:
        made.await_links()
        yield made


def shown_names(origin: str, document: object) -> list[str]:
    """Return the names that a user at `origin` reads of systems behind the border of the other site."""
    text = json.dumps(document)
    return [name for site, names in INSIDE.items() for name in names if site != origin[-1] and name in text]


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
@pytest.mark.parametrize("size_bytes", [100, 3 << 20], ids=["small", "large"])
def test_inputs_outputs_and_logs_cross_and_the_origin_reads_the_name_of_the_border(
    sites: Sites, tmp_path: Path, origin: str, machine: str, *, size_bytes: int
) -> None:
    source = tmp_path / "in"
    source.write_bytes(os.urandom(size_bytes))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    here = sites.at(origin)
    script = "sha256sum in | cut -c -64; cp in out; exit 7"
    task = here.submit(*on(machine), "--input", str(source), "--output", "out", "--", "sh", "-c", script)
    assert here.run("wait", task).returncode == 7
    assert here.run("logs", task).stdout == f"{digest}\n"
    assert here.run("fetch", task, "--into", str(tmp_path / "fetched")).returncode == 0
    assert (tmp_path / "fetched" / "out").read_bytes() == source.read_bytes()
    status = here.status(task)
    assert (status["attempt"], status["executed_on"]) == (1, f"gate-{machine[-1]}")
    assert shown_names(origin, (status, here.run("explain", task).stdout)) == []


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
def test_a_plan_has_the_border_as_it_shows_itself_and_nobody_behind_it(sites: Sites, origin: str, machine: str) -> None:
    here, words = sites.at(origin), (*on(machine), "--", "true")
    planned = json.loads(here.run("plan", "--json", *words).stdout)
    assert planned["outcome"] == "start"
    printed = here.run("plan", *words).stdout
    assert printed.startswith("may start now: no machine shows all that it needs")
    assert shown_names(origin, (planned, printed)) == []


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
def test_standard_input_crosses_and_goes_on_after_each_border_was_killed(
    sites: Sites, origin: str, machine: str
) -> None:
    def kill() -> None:
        for border in BORDERED.borders:
            sites.restart(border)

    copied(on(machine), sites.at(origin).environment, interrupt=kill)


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
def test_a_terminal_crosses_with_its_keys_and_its_size_and_outlives_each_border(
    sites: Sites, origin: str, machine: str
) -> None:
    script = "stty size; trap 'stty size' WINCH; while [ \"$line\" != end ]; do read line && echo [$line]; done; exit 6"
    with terminal(sites.at(origin).environment, *on(machine), "--", "sh", "-c", script) as run:
        run.shows(b"33 101\r\n")
        for border in BORDERED.borders:
            sites.restart(border)
        run.resize(50, 60)
        run.type(b"one\n")
        run.shows(b"[one]")
        run.shows(b"50 60")
        run.type(b"end\n")
        assert run.code() == 6


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
def test_a_followed_log_crosses_until_its_task_is_cancelled(sites: Sites, origin: str, machine: str) -> None:
    here = sites.at(origin)
    task = here.submit(*on(machine), "--", "sh", "-c", "echo begun; exec sleep 600")
    followed = here.start("logs", "--follow", task)
    assert followed.stdout is not None
    assert followed.stdout.readline() == "begun\n"
    assert here.run("cancel", task).returncode == 0
    assert followed.communicate(timeout=PATIENCE_SECONDS)[0] == ""
    assert here.status(task)["state"] == "killed"


@pytest.mark.parametrize(("origin", "machine"), WAYS, ids=map("-".join, WAYS))
def test_a_task_whose_executor_is_killed_runs_again_and_its_history_names_the_border_alone(
    sites: Sites, shared: Path, origin: str, machine: str
) -> None:
    here, ran = sites.at(origin), shared / f"ran-by-{origin}"
    script = f"echo $MESSIAHS_ATTEMPT >> {ran}; test $MESSIAHS_ATTEMPT = 2 || sleep 600"
    task = here.submit(*on(machine), "--", "sh", "-c", script)
    eventually(ran.exists)
    sites.at(machine).kill(machine, "starter")
    assert here.run("wait", task).returncode == 0
    status = here.status(task)
    assert (status["attempt"], ran.read_text().split()) == (2, ["1", "2"])
    assert shown_names(origin, (status, here.run("explain", task).stdout)) == []


def test_an_array_is_spread_over_the_machines_of_both_sites_and_leaves_nothing_behind(sites: Sites) -> None:
    here = sites.at("in-bob-b")
    array = here.submit("--array", "1-60", "--", "sh", "-c", "sleep 0.2; echo $MESSIAHS_ARRAY_INDEX")
    assert here.run("wait", array).returncode == 0
    members = here.members(array)
    assert {member["attempt"] for member in members} == {1}
    assert {member["executed_on"] for member in members} >= {"gate-a", "in-bea-b"}
    assert here.run("logs", f"{array}.60").stdout == "60\n"
    assert shown_names("in-bob-b", members) == []
    sites.leave_nothing()


def test_a_machine_knows_tasks_and_users_by_what_the_other_border_shows(sites: Sites) -> None:
    here, there = sites.at("in-ann-a"), sites.at("in-bob-b")
    task = here.submit(*on("in-bob-b"), "--", "sh", "-c", "echo $MESSIAHS_TASK_ID; exec sleep 600")
    followed = here.start("logs", "--follow", task)
    assert followed.stdout is not None
    assert followed.stdout.readline().startswith("gate-a.")
    (running,) = there.document("module", "tasks")["attempts"]
    assert running["task"].startswith("gate-a.")
    assert (running["origin"], running["user"][:5]) == ("gate-a", "user-")
    assert shown_names("in-bob-b", running) == []
    assert here.run("cancel", task).returncode == 0
    followed.communicate(timeout=PATIENCE_SECONDS)


def test_a_task_that_nobody_may_run_is_refused_without_names_of_the_other_side(sites: Sites) -> None:
    here = sites.at("in-ann-a")
    task = here.submit("--require", '$site eq "nowhere"', "--", "true")
    eventually(lambda: here.status(task)["reasons"])
    assert shown_names("in-ann-a", (here.status(task), here.run("explain", task).stdout)) == []
    assert here.run("cancel", task).returncode == 0


def test_the_reason_of_an_owner_behind_borders_is_shown_as_one_of_the_border(sites: Sites, tmp_path: Path) -> None:
    here, there = sites.at("in-ann-a"), sites.at("in-bob-b")
    for name, rule in (("strict", 'require $cpus < 1 else "closed for exams";'), ("open", "")):
        (tmp_path / f"{name}.policy").write_text(
            f'policy "{name}"; accept from any {{ {rule} }} accept from users {{ }}'
        )
    assert there.run("policy", "load", str(tmp_path / "strict.policy")).returncode == 0
    task = here.submit(*on("in-bob-b"), "--", "true")
    eventually(lambda: "closed for exams" in str(here.status(task)["reasons"]))
    shown = here.run("explain", task).stdout
    assert "gate-b (closed for exams)\n" in shown
    assert shown_names("in-ann-a", (here.status(task), shown)) == []
    assert there.run("policy", "load", str(tmp_path / "open.policy")).returncode == 0
    assert here.run("wait", task).returncode == 0
