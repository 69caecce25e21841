"""A module that is backed up under load, lost with its machine, restored and started again."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.channel.certificates.fingerprints import certificate_fingerprint, certificates_in
from messiahs.channel.certificates.tls import make_root
from messiahs.config.whole_files import write_whole
from tests.live.conftest import shared_folder
from tests.live.lab import Lab, short_lease_lab
from tests.live.workload import Workload, kill_machine
from tests.waiting import eventually

TASKS = 60
_SYSTEMS = """
  home: {machine: {isolation: process, slots: 1}}
  work: {parent: home, machine: {isolation: process, slots: 2}}
"""
_BEGINS = """
exec 9>>$0/lock
flock -n 9 || echo twice >>$0/doubles
echo began >>$0/began
while [ ! -e $0/gate ]; do sleep 0.1; done
"""


@pytest.fixture
def short(tmp_path: Path) -> Iterator[Lab]:
    """Start an origin with a machine, and another machine below it, with short leases."""
    with short_lease_lab(tmp_path, _SYSTEMS, seconds=5) as made:
        yield made


def lost_and_restored(short: Lab, module: str, *, archive: Path) -> None:
    """Lose the machine of a module with all that it stored, restore it from a backup, and start it."""
    federation = short.federation
    kill_machine(federation, module)
    short.daemons.pop(module).wait(timeout=60)
    shutil.rmtree(federation.folder(module))
    restored = federation.run("restore", str(archive))
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.startswith(f"{module} of lab, as of ")
    short.start(module)


@pytest.mark.parametrize("module", ["home", "work"])
def test_after_a_backup_under_load_nothing_is_lost_and_nothing_runs_twice_at_once(
    short: Lab, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, module: str
) -> None:
    federation, archive = short.federation, tmp_path / "backup"
    work = Workload(folder=shared_folder(tmp_path_factory), tasks=TASKS)
    array = work.submit(federation)
    eventually(lambda: len(work.written()) >= TASKS // 6)
    made = federation.document("backup", "--module", module, "--out", str(archive))
    assert made["modules"] == [module]
    eventually(lambda: len(work.written()) >= TASKS // 2)
    lost_and_restored(short, module, archive=archive)
    assert federation.run("wait", array).returncode == 0
    assert federation.status(array)["counts"] == {"finished": TASKS}
    assert set(work.times_written()) == set(range(1, TASKS + 1))
    assert not work.doubles()


def test_a_task_that_began_after_the_backup_runs_again_only_when_it_has_ended(
    short: Lab, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    federation, archive = short.federation, tmp_path / "backup"
    folder = shared_folder(tmp_path_factory)
    # It waits for a file, which the backup does not know: it begins after the backup.
    filler = federation.submit("--array", "1-3", "--", "sh", "-c", f"while [ ! -e {folder}/first ]; do sleep 0.1; done")
    eventually(lambda: {each["substate"] for each in federation.members(filler)} == {"running"})
    task = federation.submit("--", "sh", "-c", _BEGINS, str(folder))
    assert federation.run("backup", "--module", "home", "--out", str(archive)).returncode == 0
    (folder / "first").touch()
    eventually((folder / "began").exists)
    lost_and_restored(short, "home", archive=archive)
    eventually(lambda: (folder / "began").read_text().count("began") == 2)
    (folder / "gate").touch()
    assert federation.run("wait", task).returncode == 0
    assert not (folder / "doubles").exists()


def test_inputs_and_results_come_back_with_a_module(short: Lab, tmp_path: Path) -> None:
    federation, archive = short.federation, tmp_path / "backup"
    (tmp_path / "in.txt").write_text("an input\n")
    large = "head -c 3000000 /dev/zero"
    done = federation.submit("--output", "out", "--", "sh", "-c", f"{large} > out; {large}")
    assert federation.run("wait", done).returncode == 0
    nowhere = ("--require", '$arch eq "pdp11"', "--input", str(tmp_path / "in.txt"))
    waiting = federation.submit(*nowhere, "--", "cat", "in.txt")
    assert federation.run("backup", "--all", "--out", str(archive)).returncode == 0
    shutil.copy(archive, tmp_path / "copy")
    lost_and_restored_all(short, tmp_path / "copy")
    assert len(federation.run("logs", done).stdout) == 3000000
    assert federation.status(waiting)["substate"] == "queued"
    assert federation.run("fetch", done, "--into", str(tmp_path / "fetched")).returncode == 0
    assert (tmp_path / "fetched" / "out").stat().st_size == 3000000
    later = federation.submit("--", "true")
    assert int(later.rpartition(".")[2]) > 100_000
    assert any("older copy" in note for note in notes_of(short, "home"))


def test_administrators_and_users_read_until_when_a_restored_module_places_no_task(tmp_path: Path) -> None:
    # With leases that end long after all of this.
    with short_lease_lab(tmp_path, _SYSTEMS, seconds=1_200) as made:
        archive = tmp_path / "backup"
        assert made.federation.run("backup", "--module", "home", "--out", str(archive)).returncode == 0
        lost_and_restored(made, "home", archive=archive)
        pattern = re.compile(r"it places no task until 2[0-9-]+T[0-9:.]+Z")
        assert any(pattern.search(note) for note in notes_of(made, "home"))
        assert pattern.search(made.federation.run("doctor", "--module", "home").stdout)
        reasons = made.federation.status(made.federation.submit("--", "true"))["reasons"]
        told = re.compile(r"older copy of its state: tasks wait until 2[0-9-]+T[0-9:]+Z")
        assert any(told.search(reason["text"]) for reason in reasons), reasons


def test_no_id_repeats_after_a_backup_of_a_module_that_had_stored_nothing(tmp_path: Path) -> None:
    with short_lease_lab(tmp_path, "\n  home: {machine: {isolation: process, slots: 1}}\n", seconds=5) as made:
        archive = tmp_path / "backup"
        assert made.federation.run("backup", "--module", "home", "--out", str(archive)).returncode == 0
        first = made.federation.submit("--", "true")
        lost_and_restored(made, "home", archive=archive)
        assert made.federation.submit("--", "true") != first


def test_of_ids_that_are_unknown_after_a_restore_each_says_whether_it_was_lost_or_forgotten(tmp_path: Path) -> None:
    with short_lease_lab(tmp_path, "\n  home: {machine: {isolation: process, slots: 1}}\n", seconds=5) as made:
        federation, archive = made.federation, tmp_path / "backup"
        cleaned = federation.submit("--", "true")
        assert federation.run("wait", cleaned).returncode == 0
        assert federation.run("clean", cleaned).returncode == 0
        assert federation.run("backup", "--module", "home", "--out", str(archive)).returncode == 0
        later = federation.submit("--", "true")
        assert federation.run("wait", later).returncode == 0
        lost_and_restored(made, "home", archive=archive)
        newest = federation.submit("--", "true")
        for task in (later, "home.50000", f"home.{int(newest.rpartition('.')[2]) - 1}"):
            told = re.compile(
                rf"no task {re.escape(task)} is known here: since 2[0-9-]+T[0-9:]+Z the module continues from an older "
                "copy of its state, and what was submitted after the copy was made is not known\n"
            )
            assert told.search(federation.run("status", task).stderr), task
        never = f"home.{int(newest.rpartition('.')[2]) + 1}"
        assert f"no task {never} is known here\n" in federation.run("status", never).stderr
        assert f"no task {cleaned} is known here any more: ended tasks" in federation.run("status", cleaned).stderr


def get_new_root(short: Lab) -> None:
    """Give the site another root while its modules run, as docs/administrators.md says, and remove the old one."""
    federation, root = short.federation, make_root("lab")
    tls = federation.folder("home").parent / "tls"
    write_whole(tls / "root.pem", (tls / "root.pem").read_bytes() + root.certificate)
    write_whole(tls / "root.key", root.key, mode=0o600)
    for words in (("certificate", "renew"), ("certificate", "revoke")):
        done = federation.run(*words)
        assert done.returncode == 0, done.stderr
    shown = federation.document("certificate", "show")["certificates"]
    ours = certificate_fingerprint(certificates_in(root.certificate)[0]).hex()
    modules = [each for each in shown if each["kind"] == "module"]
    assert [each["issuer_fingerprint"] for each in modules] == [ours] * 2
    write_whole(tls / "root.pem", root.certificate)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_backup_of_before_a_new_root_is_restored_and_its_module_is_accepted(
    short: Lab, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, *, is_lost: bool
) -> None:
    federation, archive = short.federation, tmp_path / "backup"
    folder = federation.folder("work")
    early = short.federation.submit("--require", '$arch eq "pdp11"', "--", "true")
    assert federation.run("backup", "--all", "--out", str(archive)).returncode == 0
    get_new_root(short)
    tls = files_in(folder.parent / "tls")
    for module in ("home", "work"):
        kill_machine(federation, module)
        short.daemons.pop(module).wait(timeout=60)
    if is_lost:
        shutil.rmtree(folder)
    done = federation.run("restore", str(archive), "--module", "work", *(() if is_lost else ("--replace",)))
    assert done.returncode == 0, done.stderr
    assert ("`messiahs certificate renew work` makes another one" in done.stdout) is is_lost, done.stdout
    assert ("`work` keeps its certificate.pem, which the site accepts" in done.stdout) is not is_lost, done.stdout
    assert files_in(folder.parent / "tls") == tls
    if is_lost:
        assert federation.run("certificate", "renew", "work").returncode == 0
    assert federation.run("restore", str(archive), "--module", "home", "--replace").returncode == 0
    for module in ("home", "work"):
        short.start(module)
    with federation.client("home") as client:
        eventually(lambda: client.module()["linked"] == ["work"])
    assert federation.status(early)["substate"] == "queued"
    # Too many for the slots of `home` alone.
    gate = shared_folder(tmp_path_factory) / "gate"
    late = federation.submit("--array", "1-3", "--", "sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done")
    eventually(lambda: {each["substate"] for each in federation.members(late)} == {"running"})
    gate.touch()
    assert federation.run("wait", late).returncode == 0


def lost_and_restored_all(short: Lab, archive: Path) -> None:
    """Lose the whole state directory of the federation, and restore it."""
    federation = short.federation
    modules = list(short.daemons)
    for module in modules:
        kill_machine(federation, module)
        short.daemons.pop(module).wait(timeout=60)
    shutil.rmtree(federation.folder("home").parent)
    assert federation.run("restore", str(archive)).returncode == 0
    for module in modules:
        short.start(module)


def notes_of(short: Lab, module: str) -> list[str]:
    """Return what a module reports to its administrator."""
    listed = short.federation.document("module", "list")["modules"]
    return list(next(each["notes"] for each in listed if each["name"] == module))
