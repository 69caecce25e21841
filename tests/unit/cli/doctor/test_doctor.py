"""The doctor on modules that are down: each thing that is wrong is one line, which says what to do."""

import json
import os
import pwd
import socket
import stat
import time
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.cli.doctor.commands import findings_of
from messiahs.cli.doctor.findings import Finding, Level
from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.cli.main import main
from messiahs.client.locating import ModulePlace
from messiahs.config.policies import PolicySource
from messiahs.config.settings import load_settings
from messiahs.config.topology.reading import load_topology
from messiahs.config.whole_files import write_whole
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import IdsGiven
from messiahs.core.model.instants import HOUR, Instant
from messiahs.daemon.policies.kept import keep
from messiahs.daemon.process.pid_files import record_this_process
from messiahs.daemon.storage.high_water_mark import Mark

PERSON = 59_999
"""An account without a name."""
TOPOLOGY = """
version: 1
federation: pair
defaults: {policy: own.policy}
systems:
  left: {}
  right: {parent: left, reach: outbound}
"""
POLICY = 'policy "own" version 1;\naccept from any { limit 100 tasks; }\naccept from users { limit 100 tasks; }\n'


@pytest.fixture
def state(short_folder: Path) -> Path:
    """Prepare two modules that do not run and have no machines."""
    (short_folder / "own.policy").write_text(POLICY)
    (short_folder / "pair.yaml").write_text(TOPOLOGY)
    state = short_folder / "s"
    prepare(load_topology(short_folder / "pair.yaml"), federation_directory(state, "pair"))
    return state


def found(state: Path, what: str, *, module: str = "left") -> list[Finding]:
    place = ModulePlace(federation="pair", module=module, state_directory=state)
    return [each for each in findings_of(place) if each.what == what]


def level(state: Path, what: str) -> Level:
    (finding,) = found(state, what)
    return finding.level


def test_a_module_that_is_down_is_looked_at_and_the_command_that_starts_it_is_named(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--module", "left", "--state", str(state)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "left of pair"
    (failed,) = [line for line in lines if "FAIL" in line]
    assert "FAIL daemon:" in failed
    assert f"`messiahs module run left --state {state}`" in failed
    assert {line.split()[1] for line in lines[1:]} >= {"clock:", "disk:", "port:", "certificate:", "policy:", "unit:"}


def test_the_document_has_every_line_of_every_module(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MESSIAHS_MODULE", raising=False)
    assert main(["doctor", "--state", str(state), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {each["module"] for each in document["checks"]} == {"left", "right"}
    assert all(set(each) == {"module", "level", "what", "text"} for each in document["checks"])


def test_the_module_that_the_environment_names_is_looked_at_alone(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESSIAHS_MODULE", "right")
    for words, modules in (((), {"right"}), (("--module", "left"), {"left"})):
        assert main(["doctor", "--state", str(state), "--json", *words]) == 1
        assert {each["module"] for each in json.loads(capsys.readouterr().out)["checks"]} == modules


def test_a_port_that_another_process_holds_is_named(state: Path) -> None:
    assert level(state, "port") is Level.OK
    host, _, port = load_settings(state / "pair" / "left" / "settings.json").listen.rpartition(":")
    with socket.create_server((host, int(port))):
        (finding,) = found(state, "port")
    assert (finding.level, f"port {port} is in use" in finding.text) == (Level.FAIL, True)


def test_a_daemon_that_does_not_answer_is_named_with_what_to_do_and_the_others_are_listed(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host, _, port = load_settings(state / "pair" / "left" / "settings.json").listen.rpartition(":")
    with socket.socket(socket.AF_UNIX) as listener, socket.create_server((host, int(port))):
        listener.bind(str(state / "pair" / "left.sock"))
        listener.listen()
        record_this_process(state / "pair" / "left" / "daemon.pid")
        (finding,) = found(state, "daemon")
        assert level(state, "port") is Level.WARN
        assert main(["module", "list", "--state", str(state), "--json"]) == 0
    text = f"the module `left` does not answer yet: its process {os.getpid()} is busy ("
    assert (finding.level, finding.text.startswith(text)) == (Level.FAIL, True)
    left, right = json.loads(capsys.readouterr().out)["modules"]
    (note,) = left["notes"]
    assert (left["pid"], note.startswith(text)) == (os.getpid(), True)
    assert (right["pid"], right["notes"]) == (None, [])


def test_a_module_that_nobody_dials_needs_no_port(state: Path) -> None:
    (finding,) = found(state, "port", module="right")
    assert (finding.level, "outbound" in finding.text) == (Level.OK, True)


def test_a_key_that_others_can_read_fails_with_the_command_that_closes_it(state: Path) -> None:
    key = state / "pair" / "left" / "key.pem"
    assert level(state, "key") is Level.OK
    key.chmod(0o644)
    (finding,) = found(state, "key")
    assert (finding.level, f"`chmod 600 {key}`" in finding.text) == (Level.FAIL, True)
    key.unlink()
    (finding,) = found(state, "key")
    assert (finding.level, "certificate request" in finding.text) == (Level.FAIL, True)


def test_a_certificate_for_another_key_fails(state: Path) -> None:
    left, right = (state / "pair" / name / "certificate.pem" for name in ("left", "right"))
    left.write_bytes(right.read_bytes())
    (finding,) = found(state, "certificate")
    assert (finding.level, "is not for the key in" in finding.text) == (Level.FAIL, True)


def test_a_certificate_of_a_root_that_is_not_here_fails(state: Path) -> None:
    write_whole(state / "pair" / "tls" / "root.pem", make_root("pair").certificate)
    (finding,) = found(state, "certificate")
    assert (finding.level, "is signed by no root here" in finding.text) == (Level.FAIL, True)


def test_a_certificate_that_is_none_fails(state: Path) -> None:
    assert (level(state, "certificate"), level(state, "root")) == (Level.OK, Level.OK)
    (state / "pair" / "left" / "certificate.pem").write_text("nothing")
    assert level(state, "certificate") is Level.FAIL


def test_a_policy_with_a_mistake_fails_and_none_at_all_is_a_warning(state: Path, short_folder: Path) -> None:
    assert level(state, "policy") is Level.OK
    (short_folder / "own.policy").write_text("accept from nobody")
    (finding,) = found(state, "policy")
    assert (finding.level, "policy check" in finding.text) == (Level.FAIL, True)
    (short_folder / "pair.yaml").write_text(TOPOLOGY.replace("defaults: {policy: own.policy}\n", ""))
    prepare(load_topology(short_folder / "pair.yaml"), state / "pair")
    assert level(state, "policy") is Level.WARN


def test_a_mistake_in_a_policy_is_one_line_without_its_excerpt(
    state: Path, short_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (short_folder / "own.policy").write_text("accept from nobody")
    assert main(["doctor", "--module", "left", "--state", str(state)]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "FAIL policy:" in line]
    assert "own.policy" in line
    assert "\\n" not in line


def test_a_folder_that_others_can_change_fails_as_the_next_start_does(state: Path) -> None:
    assert level(state, "folder") is Level.OK
    (state / "pair").chmod(0o777)
    (finding,) = found(state, "folder")
    assert (finding.level, "is not safe from other users" in finding.text) == (Level.FAIL, True)


def load(state: Path, text: str) -> None:
    source = PolicySource(file="other.policy", text=text, timeouts=Timeouts())
    keep(state / "pair" / "left", source, now=Instant(1))


def test_a_policy_that_was_loaded_in_its_place_is_a_warning(state: Path) -> None:
    load(state, POLICY)
    said, loaded, own = found(state, "policy")
    assert (said.level, "other.policy, which" in said.text) == (Level.WARN, True)
    assert (loaded.level, loaded.text) == (Level.OK, "other.policy has no problems")
    assert (own.level, "own.policy" in own.text) == (Level.OK, True)


def test_a_policy_that_was_loaded_where_no_file_is_named_is_the_one_in_force(state: Path, short_folder: Path) -> None:
    (short_folder / "pair.yaml").write_text(TOPOLOGY.replace("defaults: {policy: own.policy}\n", ""))
    prepare(load_topology(short_folder / "pair.yaml"), state / "pair")
    load(state, POLICY)
    said, loaded = found(state, "policy")
    assert (said.level, "name it with `policy:`" in said.text) == (Level.WARN, True)
    assert (loaded.level, loaded.text) == (Level.OK, "other.policy has no problems")


def test_a_loaded_policy_that_cannot_be_used_fails(state: Path) -> None:
    (state / "pair" / "left" / "loaded_policy.json").write_text("{}")
    assert [each.level for each in found(state, "policy")] == [Level.FAIL, Level.OK]
    load(state, "accept from nobody")
    _, loaded, own = found(state, "policy")
    assert (loaded.level, "other.policy:1" in loaded.text) == (Level.FAIL, True)
    assert own.level is Level.OK


@pytest.mark.processes
@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_policy_by_which_the_machine_cannot_run_tasks_fails(
    state: Path, short_folder: Path, *, is_loaded: bool
) -> None:
    limiting = 'policy "p";\naccept from any { limit 9 tasks; limit network to none; }\n'
    (short_folder / "pair.yaml").write_text(TOPOLOGY.replace("left: {}", "left: {machine: {isolation: process}}"))
    prepare(load_topology(short_folder / "pair.yaml"), state / "pair")
    if is_loaded:
        load(state, limiting)
    else:
        (short_folder / "own.policy").write_text(limiting)
    (failed,) = [each for each in found(state, "policy") if each.level is Level.FAIL]
    assert (":2:34: " in failed.text, "only in sandboxes" in failed.text) == (True, True)
    assert failed.text.startswith("other.policy" if is_loaded else str(short_folder))


def test_a_clock_that_was_set_back_is_a_warning(state: Path) -> None:
    assert level(state, "clock") is Level.OK
    mark = Mark(state / "pair" / "left" / "module.mark")
    mark.reserve(IdsGiven(submissions=1))
    mark.follow(Instant(time.time_ns() + HOUR), at_once=True)
    (finding,) = found(state, "clock")
    assert (finding.level, "set it right" in finding.text) == (Level.WARN, True)


def test_settings_that_cannot_be_read_are_a_finding(state: Path) -> None:
    (state / "pair" / "left" / "settings.json").write_text("{")
    place = ModulePlace(federation="pair", module="left", state_directory=state)
    (finding,) = findings_of(place)
    assert (finding.level, finding.what) == (Level.FAIL, "settings")


def test_an_empty_state_directory_is_an_error(short_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--state", str(short_folder)]) == 1
    assert "no module has ever run" in capsys.readouterr().err


@pytest.mark.processes
def test_the_most_that_a_task_may_have_is_one_line_and_stands_below_the_list_of_modules(
    short_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at_most = "{mem: 8GiB, disk: 1536MiB, time: 2h, open_files: 4096}"
    machines = f"left: {{machine: {{slots: 1, at_most: {at_most}}}}}\n  right: {{parent: left, machine: {{slots: 1}}}}"
    (short_folder / "pair.yaml").write_text(f"version: 1\nfederation: pair\nsystems:\n  {machines}\n")
    state = short_folder / "s"
    prepare(load_topology(short_folder / "pair.yaml"), federation_directory(state, "pair"))
    text = "a task has at most 8 GiB of memory, 1.5 GiB of disk, 7200 s of run time, 4096 open files"
    (finding,) = found(state, "maxima")
    assert (finding.level, finding.text) == (Level.OK, f"{text}: one that states more is denied")
    assert found(state, "maxima", module="right") == []
    assert main(["module", "list", "--state", str(state)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "at most" in line] == [f"left: {text}"]
    assert main(["module", "list", "--state", str(state), "--json"]) == 0
    modules = {each["name"]: each["at_most"] for each in json.loads(capsys.readouterr().out)["modules"]}
    left = {"mem": 8 << 30, "disk": 1536 << 20, "time": 7_200, "open_files": 4_096}
    assert modules == {"left": left, "right": {}}


def _of_state(state: Path, text: str) -> None:
    (state.parent / "pair.yaml").write_text(text)
    prepare(load_topology(state.parent / "pair.yaml"), state / "pair")


def test_a_module_of_one_person_says_whose_it_is_and_how_others_are_let_in(state: Path) -> None:
    _of_state(state, TOPOLOGY.replace("left: {}", "left: {users: owner}"))
    (finding,) = found(state, "users")
    owner = pwd.getpwuid(os.geteuid()).pw_name
    text = f"{owner} alone; `users: everyone` or `users: group:NAME` opens it to others"
    assert (finding.level, finding.text) == (Level.OK, text)


@pytest.mark.parametrize(
    ("users", "whom"), [("everyone", "every account of this host"), ("group:daemon", "the group daemon")]
)
def test_users_who_cannot_enter_the_folder_of_the_socket_are_a_warning_until_it_is_open(
    state: Path, users: str, whom: str
) -> None:
    _of_state(state, TOPOLOGY.replace("left: {}", f"left: {{users: '{users}'}}"))
    socket_of_users = load_settings(state / "pair" / "left" / "settings.json").users_socket
    closed = [each for each in socket_of_users.parents if not each.stat().st_mode & stat.S_IXOTH]
    (finding,) = found(state, "users")
    text = f"{whom} may use it, and cannot enter or read {closed[-1]}: run it with `--sockets /run/messiahs`, or"
    assert finding.level is Level.WARN
    said, _, command = finding.text.partition(" open it ")
    assert (said, command.startswith(f"(`chmod o+x {closed[-1]} && ")) == (text, True)
    for each in (state, state / "pair"):
        each.chmod(0o711)
    for each in closed:
        each.chmod(0o711)
    # They look for modules in these, so they have to read them.
    (finding,) = found(state, "users")
    assert finding.text.endswith(f" open it (`chmod o+rx {state} && chmod o+rx {state / 'pair'}`)")
    for each in (state, state / "pair"):
        each.chmod(0o755)
    (finding,) = found(state, "users")
    assert (finding.level, finding.text) == (Level.OK, f"{whom}, at {socket_of_users}")


@pytest.mark.processes
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the module's folder to a person")
def test_others_whose_tasks_would_run_as_a_person_are_a_warning(state: Path) -> None:
    _of_state(state, TOPOLOGY.replace("left: {}", "left: {users: everyone, machine: {slots: 1, isolation: process}}"))
    for each in (state.parent, state, state / "pair"):
        each.chmod(0o755)
    os.chown(state / "pair" / "left", PERSON, PERSON)
    text = f"every account of this host may use it, and all tasks run as {PERSON}: write `isolation: bubblewrap`"
    (finding,) = found(state, "users")
    assert (finding.level, finding.text) == (Level.WARN, f"{text}, or run it as root")
