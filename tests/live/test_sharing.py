"""Load sharing between real daemons: idle machines request waiting tasks, and a paying partner comes first."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.conftest import Federation, brought_up, fixed_machine
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
  hosting: {{policy: hosting.policy, machine: {fixed_machine()}}}
  acme:    {{parent: hosting}}
  bidder:  {{parent: hosting}}
"""
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


def members(made: Federation, task: str) -> list[dict[str, Any]]:
    return list(made.document("status", task, "--members")["tasks"])


def executors(made: Federation, task: str) -> list[str]:
    """Return the machines of an array's members, once all have finished."""
    eventually(lambda: all(each["state"] == "finished" for each in members(made, task)), seconds=120)
    return [each["executed_on"] for each in members(made, task)]


def test_an_idle_module_two_hops_away_gets_offered_tasks_although_its_machine_is_unknown(tmp_path: Path) -> None:
    with site(tmp_path, COUSINS, module="busy", busy=BUSY, idle=IDLE) as made:
        pinned = made.submit("--array", "1-3", "--mem", "10MiB", "--set", "pinned=1", "--", "sleep", "0.4")
        large = made.submit("--array", "1-2", "--mem", "2GiB", "--", "sleep", "0.4")
        offered = made.submit("--array", "1-16", "--mem", "10MiB", "--", "sleep", "0.4")
        assert "idle" in executors(made, offered)
        assert executors(made, pinned) == ["busy"] * 3
        assert executors(made, large) == ["busy"] * 2
        views = made.document("module", "vectors", "--module", "department")["views"]
        assert views["idle"]["machines"] == 0
        assert "task_accept" in (made.folder("idle") / "module.log").read_text()


def test_kept_tasks_are_not_given_away(tmp_path: Path) -> None:
    kept = BUSY.replace("keep at least 2", "keep at least 8")
    with site(tmp_path, COUSINS, module="busy", busy=kept, idle=IDLE) as made:
        tasks = made.submit("--array", "1-8", "--mem", "10MiB", "--", "sleep", "0.5")
        assert executors(made, tasks) == ["busy"] * 8
        assert "refused_by_policy" in (made.folder("busy") / "module.log").read_text()


def test_a_running_task_moves_to_the_idle_machine_that_asked_and_its_attempts_never_overlap(
    tmp_path: Path, shared: Path
) -> None:
    movable = MOVABLE.replace("RULE", "$task.ran < 1h")
    with site(tmp_path, COUSINS, module="top", busy=movable, idle=IDLE) as made:
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


def test_a_running_task_without_an_offer_rule_stays(tmp_path: Path) -> None:
    movable = MOVABLE.replace("RULE", "$task.ran > 1h")
    with site(tmp_path, COUSINS, module="top", busy=movable, idle=IDLE) as made:
        task = made.submit("--mem", "10MiB", "--", "sleep", "8")
        eventually(lambda: "refused_by_policy" in (made.folder("busy") / "module.log").read_text())
        eventually(lambda: made.status(task)["state"] == "finished")
        ended = made.status(task)
        assert (ended["attempt"], ended["executed_on"]) == (1, "busy")


def test_a_partners_task_takes_the_place_of_a_bidders_which_resumes_afterwards(tmp_path: Path) -> None:
    with site(tmp_path, HOSTING, module="bidder", hosting=PARTNER) as made:
        bidders = made.submit("--", "sleep", "20")
        eventually(lambda: made.status(bidders)["substate"] == "running")
        partners = made.run("run", "--module", "acme", "--", "sh", "-c", "echo first")
        assert (partners.returncode, partners.stdout) == (0, "first\n")
        assert made.status(bidders)["state"] == "executing"
        eventually(lambda: made.status(bidders)["state"] == "finished")
        ended = made.status(bidders)
        assert ended["attempt"] == 1
        events = [entry["event"] for entry in ended["history"]]
        assert events == ["bound", "suspended", "resumed", "finished"]
