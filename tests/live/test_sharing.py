"""Load sharing between real daemons: idle machines request waiting tasks, and a paying partner comes first.

What the partner owes is counted, and its tasks are refused once that is too much.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.conftest import ROOT, Federation, brought_up, fixed_machine
from tests.live.test_owners import LOCKING, lock_in
from tests.waiting import eventually

COUSINS = f"""version: 1
federation: cousins
defaults: {{policy: open.policy, update_period: 500ms}}
systems:
  top:        {{}}
  busy:       {{parent: top, policy: busy.policy, machine: {fixed_machine()}}}
  department: {{parent: top}}
  idle:       {{parent: department, policy: idle.policy, machine: {fixed_machine(slots=2)}}}
"""
OPEN = 'policy "open"; accept from any { limit 100 tasks; }\n'
BUSY = """policy "busy";
attribute $pinned int optional;
accept from any { limit 100 tasks; }
migrate {
    offer when $task.pinned default 0 = 0;
    keep at least 2 tasks;
}
"""
IDLE = """policy "idle, and tells nobody";
accept from any { limit 100 tasks; }
reveal to any nothing;
migrate { ask every 1s when $here.free_slots >= 1 wanting { $mem <= 1GiB }; }
"""
MOVABLE = """policy "busy, and lets go what runs";
accept from any { limit 100 tasks; }
migrate { offer when RULE; }
"""
HOSTING = f"""version: 1
federation: hosting
defaults: {{policy: open.policy, update_period: 500ms}}
systems:
  hosting: {{machine: {fixed_machine()}}}
  acme:    {{parent: hosting, machine: {fixed_machine(slots=2)}}}
  bidder:  {{parent: hosting}}
"""
AT_HOSTING, AT_ACME = ("--require", "$slots = 1"), ("--require", "$slots = 2")
USED_UP = "the processor time of the contract is used up"
PARTNER = """policy "hosting with paying partner";
let partner = $task.from eq "acme";
accept from any { limit 100 tasks; }
rank tasks by first where partner;
running tasks where not partner {
    suspend when $here.waiting_above >= 1;
    resume  when $here.waiting_above = 0 for 1s;
}
"""


@contextmanager
def site(folder: Path, topology: str, *, module: str, **policies: str) -> Iterator[Federation]:
    """Start a federation with its own policies."""
    name = topology.split("federation: ")[1].split("\n", maxsplit=1)[0]
    (folder / f"{name}.yaml").write_text(topology)
    for policy, text in {"open": OPEN, **policies}.items():
        (folder / f"{policy}.policy").write_text(text)
    made = Federation(topology=folder / f"{name}.yaml", name=name, state=folder / "state", module=module)
    with brought_up(made):
        yield made


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share the cousins among the tests of this file."""
    with site(tmp_path_factory.mktemp("cousins"), COUSINS, module="busy", busy=BUSY, idle=IDLE) as made:
        yield made


@pytest.fixture
def cousins(running: Federation, request: pytest.FixtureRequest) -> Federation:
    """Return the cousins; `busy` has the policy that a test names, if it names one."""
    with running.client("busy") as client:
        assert not client.load_policy(getattr(request, "param", None))["problems"]
    return running


def executors(made: Federation, task: str) -> list[str]:
    """Return the machines of an array's members, once all have finished."""
    eventually(lambda: all(each["state"] == "finished" for each in made.members(task)), seconds=120)
    return [each["executed_on"] for each in made.members(task)]


def logged(made: Federation, word: str, *, by: str) -> int:
    """Return how often a word is in the log of a module."""
    return (made.folder(by) / "module.log").read_text().count(word)


def test_an_idle_module_two_hops_away_gets_offered_tasks_although_its_machine_is_unknown(cousins: Federation) -> None:
    before = logged(cousins, "task_accept", by="idle")
    pinned = cousins.submit("--array", "1-3", "--mem", "10MiB", "--set", "pinned=1", "--", "sleep", "0.4")
    large = cousins.submit("--array", "1-2", "--mem", "2GiB", "--", "sleep", "0.4")
    offered = cousins.submit("--array", "1-16", "--mem", "10MiB", "--", "sleep", "0.4")
    assert "idle" in executors(cousins, offered)
    assert executors(cousins, pinned) == ["busy"] * 3
    assert executors(cousins, large) == ["busy"] * 2
    assert cousins.vectors("department")["views"]["idle"]["machines"] == 0
    assert logged(cousins, "task_accept", by="idle") > before


@pytest.mark.parametrize("cousins", [BUSY.replace("keep at least 2", "keep at least 8")], indirect=True)
def test_kept_tasks_are_not_given_away(cousins: Federation) -> None:
    before = logged(cousins, "refused_by_policy", by="busy")
    tasks = cousins.submit("--array", "1-8", "--mem", "10MiB", "--", "sleep", "0.5")
    assert executors(cousins, tasks) == ["busy"] * 8
    assert logged(cousins, "refused_by_policy", by="busy") > before


@pytest.mark.parametrize("cousins", [MOVABLE.replace("RULE", "$task.ran < 1h")], indirect=True)
def test_a_running_task_moves_to_the_idle_machine_that_asked_and_its_attempts_never_overlap(
    cousins: Federation, shared: Path
) -> None:
    made = replace(cousins, module="top")
    locked = ("--env", f"LOCK={lock_in(shared)}", "--mem", "10MiB", "--", "sh", "-c", LOCKING)
    task = made.submit(*locked)
    eventually(lambda: made.status(task)["state"] == "finished")
    ended = made.status(task)
    assert (ended["exit_code"], ended["attempt"], ended["executed_on"]) == (0, 2, "idle")
    steps = [(entry["event"], entry["module"]) for entry in ended["history"] if entry["event"] != "vacating"]
    assert steps == [
        ("bound", "busy"), ("moving", "busy"), ("moved", "busy"), ("bound", "idle"), ("finished", "idle"),
    ]  # fmt: skip
    assert "moving at busy: idle asked for tasks" in made.run("explain", task).stdout


@pytest.mark.parametrize("cousins", [MOVABLE.replace("RULE", "$task.ran > 1h")], indirect=True)
def test_a_running_task_without_an_offer_rule_stays(cousins: Federation, shared: Path) -> None:
    made, before = replace(cousins, module="top"), logged(cousins, "refused_by_policy", by="busy")
    task = made.submit("--mem", "10MiB", "--", *until_told(shared))
    eventually(lambda: made.status(task)["substate"] == "running")
    eventually(lambda: logged(cousins, "refused_by_policy", by="busy") > before)
    (shared / "go").touch()
    eventually(lambda: made.status(task)["state"] == "finished")
    ended = made.status(task)
    assert (ended["attempt"], ended["executed_on"]) == (1, "busy")


@pytest.fixture(scope="module")
def hosting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a host, its partner and another customer between tests, each of which brings the policy of the host."""
    with site(tmp_path_factory.mktemp("hosting"), HOSTING, module="bidder") as made:
        eventually(lambda: made.vectors()["down"]["machines"] == 2)
        yield made


def load(made: Federation, policy: str, /) -> None:
    """Give the host a policy."""
    with made.client("hosting") as client:
        assert not client.load_policy(policy)["problems"]


def test_a_partners_task_takes_the_place_of_a_bidders_which_resumes_afterwards(
    hosting: Federation, shared: Path
) -> None:
    load(hosting, PARTNER)
    bidders = hosting.submit(*AT_HOSTING, "--", *until_told(shared))
    eventually(lambda: hosting.status(bidders)["substate"] == "running")
    partners = hosting.run("run", "--module", "acme", *AT_HOSTING, "--", "sh", "-c", "echo first")
    assert (partners.returncode, partners.stdout) == (0, "first\n")
    assert hosting.status(bidders)["state"] == "executing"
    (shared / "go").touch()
    eventually(lambda: hosting.status(bidders)["state"] == "finished")
    ended = hosting.status(bidders)
    assert ended["attempt"] == 1
    events = [entry["event"] for entry in ended["history"]]
    assert events == ["bound", "suspended", "resumed", "finished"]


def balance(made: Federation) -> float:
    """Return the seconds that the host gave to its partner, less those that it took."""
    rows = made.document("accounting", "--module", "hosting")["rows"]
    return sum(float(row["balance_s"]) for row in rows if row["neighbor"] == "acme")


def test_a_partner_is_refused_by_its_balance_once_it_owes_too_much_and_not_before(hosting: Federation) -> None:
    """The policy is the one that is shipped, with seconds in place of hours."""
    shipped = (ROOT / "policies" / "hosting.policy").read_text()
    assert shipped.count("1000h") == 1
    limit = int(balance(hosting)) + 2
    load(hosting, shipped.replace("acme.example", "acme").replace("1000h", f"{limit}s"))

    def submitted(seconds: float) -> str:
        account = ("--set", "account=acme-2031", "--mem", "10MiB")
        return hosting.submit("--module", "acme", *account, *AT_HOSTING, "--", "sleep", str(seconds))

    assert finished_at(hosting, submitted(2.1)) == "hosting"
    eventually(lambda: balance(hosting) >= limit)
    refused = submitted(0)
    eventually(lambda: USED_UP in str(hosting.status(refused)["reasons"]))
    # What the partner gives to the host is taken off.
    owed = balance(hosting) - limit + 0.1
    assert finished_at(hosting, hosting.submit("--module", "hosting", *AT_ACME, "--", "sleep", str(owed))) == "acme"
    assert finished_at(hosting, refused) == "hosting"


def finished_at(made: Federation, task: str, /) -> str:
    """Return the machine of a task, once it has finished."""
    eventually(lambda: made.status(task)["state"] == "finished")
    return str(made.status(task)["executed_on"])


def until_told(shared: Path) -> tuple[str, ...]:
    """Return a command that runs until the file `go` exists."""
    return "sh", "-c", f"until [ -e {shared}/go ]; do sleep 0.1; done"
