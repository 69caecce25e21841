"""Nothing of what is behind a border is anywhere outside, after a run of every message type, failures included.

Each daemon records what it sends and receives (tests/live/tapped_daemons.py) in its folder. So that folder, with its
database, log, trace and attempts, has everything that the module ever knew, and is searched for what it must not know.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from messiahs.wire.v1 import control_pb2, descriptions_pb2, task_pb2, update_pb2
from tests.live.conftest import Federation
from tests.live.secrets_of_sites import Secret, hidden_from, leaks, secrets_of
from tests.live.sites import BORDERED, Place, Sites, on, two_sites
from tests.live.tapped_daemons import CERTIFICATE, ERROR, METADATA, TAP, entries
from tests.live.test_stdin import fed
from tests.live.test_terminals import terminal
from tests.ports import free_port
from tests.waiting import eventually

POLICY: Final = """policy "sites that share";
attribute $site string optional;
attribute $wrong int optional;
attribute $movable int optional;
advertise every 10s { send $site; }
reveal to any { all; demand; }
accept from any { require $wrong default 0 = 0 else "no task that is wrong"; limit 100 tasks; }
migrate {
    offer when $task.movable default 0 = 1;
    ask every 1s when $here.free_slots >= 1 and $here.site default "" eq "abe" wanting { $movable = 1 };
}
timeouts { input 2s; }
"""
ACCOUNTS: Final = {"in-ann-a": 40_417, "in-bea-b": 40_418}
"""Accounts without names, which submit tasks as the users `uid-40417` and `uid-40418`."""
KNOWING: Final = {"in-ann-a": ("in-group-a", "in-ann-a", "in-abe-a"), "in-bea-b": BORDERED.sites["b"]}
"""The modules that may know an account: the next border, and those behind it."""
PLAN: Final = replace(
    BORDERED,
    sites={**BORDERED.sites, "a": (*BORDERED.sites["a"], "out-a", "mid-a", "far-a")},
    parents={**BORDERED.parents, "out-a": "top-a", "mid-a": "top-a", "far-a": "mid-a"},
    seconds={"far-a": "top-a"},
    machines=(*BORDERED.machines, "out-a"),
    outbound=("out-a",),
)
"""The borders, and beside one of them a sibling that only dials, so that bytes between the two take its connections.

Below another one is a system with a second parent, for changes of its relations.
"""
TYPES: Final = {
    each.full_name: each
    for file in (control_pb2, descriptions_pb2, task_pb2, update_pb2)
    for each in file.DESCRIPTOR.message_types_by_name.values()
}
"""Every type of message in the protocol."""
NEVER_SENT: Final = {f"messiahs.wire.v1.{name}" for name in ("BytesWantedQuery", "SpliceQuery", "SpliceEnd")}
"""An empty message, for a direction of a stream that is not used yet, and those between a third site and its neighbors.

What a third site can read is tested in tests/live/test_splices.py.
"""
_SUBMIT: Final = """
import os, sys
from pathlib import Path
from messiahs.client import ModuleClient, Submission
os.chdir(sys.argv[1])
os.seteuid(int(sys.argv[3]))
with ModuleClient(Path(sys.argv[2]), patience=60) as user:
    task = user.submit(Submission(argv=("sh", "-c", "echo out; echo err >&2; exit 3"), requirement=sys.argv[4]))
    assert user.wait(task, timeout=60)["exit_code"] == 3
    assert b"".join(user.logs(task)).count(b"out") == 1
"""


@contextmanager
def tapped(folder: Path, *words: str) -> Iterator[Sites]:
    """Start both sites with a tap at each module; each module inside has a host of its own."""
    ports = {name: free_port() for name in PLAN.modules}
    hosts = {name: f"127.41.0.{number}" for number, name in enumerate(PLAN.modules, 10) if name.startswith("in-")}
    places = {name: Place(address=f"{hosts.get(name, '127.0.0.1')}:{port}") for name, port in ports.items()}
    plan = replace(PLAN, daemons=("tests.live.tapped_daemons", *words))
    with two_sites(folder, places, plan=plan, policy=POLICY) as sites:
        sites.await_links()
        yield sites


class Seen:
    """The types of all messages that a module has sent or received; each look reads what was recorded since."""

    def __init__(self, sites: Sites, module: str) -> None:
        self._tap = (sites.at(module).folder(module) / TAP).open("rb")
        self._types: set[str] = set()

    def types(self) -> set[str]:
        """Return them."""
        for what, content in entries(self._tap):
            if what in TYPES:
                _note(GetMessageClass(TYPES[what]).FromString(content), self._types)
            else:
                self._types.add(what)
        return self._types

    def has(self, message: str) -> bool:
        """Return whether a message of a type has been sent or received."""
        return f"messiahs.wire.v1.{message}" in self.types()

    def close(self) -> None:
        """Look no more."""
        self._tap.close()


def _note(message: Message, found: set[str]) -> None:
    found.add(message.DESCRIPTOR.full_name)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else (value,):
                _note(each, found)


def submit_as_other_account(here: Federation, machine: str) -> None:
    """Run a task of another account to its end."""
    _, requirement = on(machine)
    here.folder(here.module).parent.chmod(0o711)
    words = (str(here.folder(here.module).parent), f"{here.module}.sock", str(ACCOUNTS[here.module]), requirement)
    done = subprocess.run([sys.executable, "-c", _SUBMIT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def relations_change(sites: Sites, top: Seen, *, far: Seen) -> None:
    """Let a system change its primary parent, get siblings of the new one, and leave the old one."""
    here = sites.at("far-a")
    done = here.run("module", "parent", "primary", "top-a", "--module", "far-a")
    assert done.returncode == 0, done.stderr
    eventually(lambda: top.has("SumsSettled"))
    eventually(lambda: far.has("HandoverDone"))
    eventually(lambda: far.has("AssignedSibling"))
    done = here.run("module", "leave", "mid-a", "--module", "far-a")
    assert done.returncode == 0, done.stderr
    eventually(lambda: far.has("Leave"))


def all_leaks(sites: Sites) -> list[str]:
    """End all daemons, and return what modules know that they must not know."""
    secrets = {name: tuple(secrets_of(sites, name)) for name in PLAN.modules if name.startswith("in-")}
    users = {name: Secret(what=f"account of {name}", content=f"uid-{uid}".encode()) for name, uid in ACCOUNTS.items()}
    found = []
    for module in PLAN.modules:
        hidden = [secret for name in sorted(hidden_from(module)) for secret in secrets[name]]
        hidden += [user for name, user in users.items() if module not in KNOWING[name]]
        found += [f"{module}: {leak}" for leak in leaks(sites.at(module).folder(module), hidden)]
    return found


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="submitting as another account needs root")


@needs_root
def test_no_module_outside_has_anything_from_inside_after_a_run_of_every_message_type(
    tmp_path: Path, shared: Path
) -> None:
    with tapped(tmp_path) as sites:
        for module in ("top-a", "out-a", "gate-a", "gate-b", "in-group-b", "in-bob-b"):
            assert sites.at(module).run("trace", "start").returncode == 0
        for origin, machine in (("in-ann-a", "in-bob-b"), ("in-bea-b", "in-abe-a")):
            here = sites.at(origin)
            submit_as_other_account(here, machine)
            files_cross(here, machine, shared)
            tasks_fail(here, machine)
            tasks_are_ended_and_moved(sites, origin, machine)
        files_cross(sites.at("in-ann-a"), "out-a", shared)
        things_are_assigned(sites.at("in-ann-a"), "out-a")
        seen = (closing(Seen(sites, name)) for name in ("top-a", "out-a", "far-a"))
        with next(seen) as top, next(seen) as out, next(seen) as far:
            bytes_fail(sites, top, shared=shared)
            capacity_is_missing(sites.at("in-ann-a"), top)
            tasks_are_offered(sites)
            systems_are_missing(sites, top)
            relations_change(sites, top, far=far)
            lacking = {*TYPES, CERTIFICATE, METADATA, ERROR} - top.types() - out.types() - far.types() - NEVER_SENT
        # What is lacking, the run has to cause, too.
        assert (lacking, all_leaks(sites)) == (set(), [])


@needs_root
def test_a_border_that_shows_users_and_origins_is_found_by_the_search(tmp_path: Path) -> None:
    with tapped(tmp_path, "meddled") as sites:
        submit_as_other_account(sites.at("in-ann-a"), "in-bob-b")
        found = all_leaks(sites)
    places = {(each.split(": ")[0], each.split(" in ")[1].split(":")[0]) for each in found}
    assert places >= {("top-a", TAP), ("gate-b", TAP), ("in-bob-b", TAP)}, found
    assert {what for what in ("name of in-ann-a", "account of in-ann-a") for each in found if what in each} == {
        "name of in-ann-a", "account of in-ann-a"
    }  # fmt: skip


def files_cross(here: Federation, machine: str, shared: Path, /) -> None:
    """Move small and large files both ways, standard input, and what is typed and shown in a terminal."""
    source = shared / f"from-{here.module[-1]}"
    for size_bytes in (100, 200_000, 3 << 20):
        source.write_bytes(os.urandom(size_bytes))
        script = f"cp {source.name} out; cat {source.name} | head -c 2000000"
        files = ("--input", str(source), "--output", "out", "--env", "KEY=value")
        task = here.submit(*on(machine), *files, "--", "sh", "-c", script)
        assert here.run("wait", task).returncode == 0
        assert here.run("fetch", task, "--into", str(shared / f"fetched-{task}")).returncode == 0
    content = os.urandom(500_000)
    code, out, _ = fed(here, content, *on(machine), "--", "cat")
    assert (code, out) == (0, content)
    with terminal(here.environment, *on(machine), "--", "sh", "-c", "read line; echo [$line]; stty size") as run:
        run.type(b"typed\n")
        assert run.code() == 0
        assert b"[typed]\r\n33 101\r\n" in run.shown


def things_are_assigned(here: Federation, machine: str) -> None:
    """Let a task have a counted thing."""
    assert here.run("run", *on(machine), "--gpus", "1", "--", "sh", "-c", 'test -n "$MESSIAHS_GPUS"').returncode == 0


def tasks_fail(here: Federation, machine: str) -> None:
    """Let tasks be refused, and end in every way in which they fail."""
    where = on(machine)
    missing = here.submit(*where, "--", "/no/such/program")
    lacking = here.submit(*where, "--output", "never-made", "--", "true")
    late = here.submit(*where, "--time", "1s", "--", "sleep", "600")
    for task, state in ((missing, "aborted"), (lacking, "aborted"), (late, "aborted")):
        here.run("wait", task)
        assert here.status(task)["state"] == state, here.status(task)
    refused = here.submit(*where, "--set", "wrong=1", "--", "true")
    eventually(lambda: "no task that is wrong" in str(here.status(refused)["reasons"]), lambda: here.status(refused))
    assert here.run("cancel", refused).returncode == 0
    nowhere = here.submit("--require", '$site eq "nowhere"', "--", "true")
    eventually(lambda: here.status(nowhere)["reasons"])
    assert here.run("cancel", nowhere).returncode == 0


def capacity_is_missing(here: Federation, top: Seen) -> None:
    """Let a task wait for memory that no machine has, so that systems above learn what is missing."""
    task = here.submit("--mem", "1TiB", "--", "true")
    eventually(lambda: top.has("DemandClass"))
    assert here.run("cancel", task).returncode == 0


def tasks_are_ended_and_moved(sites: Sites, origin: str, machine: str, /) -> None:
    """Cancel a task, and revoke one, which runs again."""
    here, there = sites.at(origin), sites.at(machine)
    # Of a shape of its own, which the machine then refuses for a minute.
    task = here.submit(*on(machine), "--mem", "64MiB", "--", "sleep", "600")
    eventually(lambda: here.status(task)["substate"] == "running")
    (running,) = there.document("module", "tasks")["attempts"]
    revoke = ("revoke", running["attempt"], "--reason", f"maintenance of {machine}, see {there.folder(machine)}")
    assert there.run("module", *revoke, *(("--kill",) if machine == "in-bob-b" else ())).returncode == 0
    eventually(lambda: here.status(task)["attempt"] > 1 or here.status(task)["reasons"])
    assert here.run("cancel", task).returncode == 0
    here.run("wait", task)


def bytes_fail(sites: Sites, top: Seen, *, shared: Path) -> None:
    """Let the executor, and then a border, vanish while a task runs there."""
    here = sites.at("in-ann-a")
    script = f"echo a > out; until test -e {shared}/go; do sleep 0.1; done"
    task = here.submit(*on("in-bob-b"), "--output", "out", "--", "sh", "-c", script)
    eventually(lambda: here.status(task)["substate"] == "running")
    sites.kill("in-bob-b")
    eventually(lambda: top.has("TransferAnswer"))
    sites.start("in-bob-b")
    sites.restart("gate-b")
    eventually(lambda: top.has("TaskStatusQuery"))
    (shared / "go").touch()
    assert here.run("wait", task).returncode == 0


def tasks_are_offered(sites: Sites) -> None:
    """Let the machine that asks for tasks, and is free, get one that runs at the other site."""
    here = sites.at("in-ann-a")
    sites.kill("in-abe-a")
    task = here.submit("--set", "movable=1", *on("in-abe-a", "in-bob-b"), "--", "sleep", "600")
    eventually(lambda: here.status(task)["substate"] == "running")
    sites.start("in-abe-a")
    eventually(lambda: here.status(task)["executed_on"] == "in-abe-a", lambda: here.status(task))
    assert here.run("cancel", task).returncode == 0


def systems_are_missing(sites: Sites, top: Seen) -> None:
    """Let systems on both sides of borders be silent, and go, so that others ask and report."""
    with sites.stopped("gate-b"):
        eventually(lambda: top.has("SystemStatusQuery"))
    for module in ("in-abe-a", "in-bea-b", "gate-b"):
        sites.kill(module)
    eventually(lambda: top.has("MissingLink"))
    sites.start("gate-b", "in-bea-b", "in-abe-a")
    sites.await_links()
